"""How a certified rule goes on: watched, audited, renewed."""
