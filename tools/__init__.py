"""What keeps the project: scripts that no user needs."""
