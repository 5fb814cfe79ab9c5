"""A process that has imported the slow libraries, and forks a process of its own for each command asked of it.

Most of the time of a short command goes into importing torch, scikit-learn, pandas and scipy. What is forked here is
`python -m MODULE ...` or `python -c CODE ...` in all else: its own session, folder, environment, standard streams, signals and
end. Our own package is not among what is imported, so that it starts as it always does.
"""

from __future__ import annotations

import contextlib
import json
import os
import runpy
import signal
import socket
import sys
from typing import Any

SLOW = ("torch", "pandas", "scipy.stats", "sklearn.ensemble", "sklearn.pipeline", "skops.io")


def serve(place: str) -> dict[str, Any]:
    """Wait for commands; return in the process of each, and there alone."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"{place}.new")
    listener.listen(64)
    os.rename(f"{place}.new", place)  # from now on it can be asked
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how a process ended but its client
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = os.getppid()
    listener.settimeout(1.0)
    while os.getppid() == parent:  # it never outlives the tests
        with contextlib.suppress(TimeoutError):
            client, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                return command_of(client)
            client.close()
    os._exit(0)


def command_of(client: socket.socket) -> dict[str, Any]:
    """Take the request and fork once more: one waits and tells the exit code, the other becomes the command."""
    client.settimeout(None)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    text, streams, _, _ = socket.recv_fds(client, 1 << 20, 3)
    while not text.endswith(b"\0"):
        text += client.recv(1 << 20)
    request: dict[str, Any] = json.loads(text[:-1])
    pid = os.fork()
    if pid:
        for stream in streams:
            os.close(stream)
        os.setsid()
        client.sendall(f"{pid}\n".encode())
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        with contextlib.suppress(OSError):  # the client has gone
            client.sendall(f"{code}\n".encode())
        os._exit(0)
    client.close()
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    return request


def become(request: dict[str, Any]) -> None:
    """Run a module or a text as `python` does, to the end of this interpreter."""
    kind, what, *arguments = request["arguments"]
    sys.stdout, sys.stderr = (
        open(number, "w", buffering=1, closefd=False)  # noqa: SIM115
        for number in (1, 2)
    )
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    if kind == "-m":
        sys.argv = [what, *arguments]
        sys.path[0] = request["cwd"]
        runpy.run_module(what, run_name="__main__", alter_sys=True)
    else:
        sys.argv = ["-c", *arguments]
        sys.path[0] = ""
        exec(compile(what, "<string>", "exec"), {"__name__": "__main__"})  # noqa: S102


if __name__ == "__main__":
    for module in SLOW:
        __import__(module)
    become(serve(sys.argv[1]))
