"""How a command is asked of the server. It imports next to nothing: a shell starts it in place of the command."""

from __future__ import annotations

import json
import os
import socket
import sys


def ask(
    place: str, arguments: list[str], streams: list[int], cwd: str, env: dict[str, str]
) -> tuple[int, socket.socket]:
    """Start a command; return its process and where its exit code will come."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(place)
    request = json.dumps({"arguments": arguments, "cwd": cwd, "env": env}).encode() + b"\0"
    sent = socket.send_fds(connection, [request], streams)
    connection.sendall(request[sent:])
    return read_number(connection), connection


def read_number(connection: socket.socket) -> int:
    """Return the next line of the server."""
    line = b""
    while not line.endswith(b"\n"):
        part = connection.recv(1)
        assert part, "the server has gone"
        line += part
    return int(line)


def main(place: str, arguments: list[str]) -> None:
    """Be the command for whoever started this: its streams, its folder, its exit code."""
    _, connection = ask(place, arguments, [0, 1, 2], os.getcwd(), dict(os.environ))
    code = read_number(connection)
    sys.exit(code if code >= 0 else 128 - code)  # as a shell tells of a signal
