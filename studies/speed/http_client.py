"""A client that keeps connections open and asks without a pause, and the servers that it asks."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import orjson

# Freed memory is kept: by the accident of its heap a program gave back what every pass of the network needs,
# or did not, and the bare route took twice the time in one run of two.
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "MALLOC_MMAP_THRESHOLD_": str(2**25),
    "MALLOC_TRIM_THRESHOLD_": str(2**28),
    "MALLOC_TOP_PAD_": str(2**24),
}
AHEAD = 8  # requests that a client sends before it reads their answers


async def _answer(reader: asyncio.StreamReader) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200"), head
    length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
    await reader.readexactly(length)


async def _ask_until(host: str, port: int, request: bytes, end: float) -> list[float]:
    """Ask again and again until the end; return how long each answer took."""
    reader, writer = await asyncio.open_connection(host, port)
    seconds: list[float] = []
    try:
        while time.perf_counter() < end:
            begun = time.perf_counter()
            writer.write(request)
            await _answer(reader)
            seconds.append(time.perf_counter() - begun)
    finally:
        writer.close()
    return seconds


async def _ask_often(host: str, port: int, request: bytes, count: int) -> None:
    """Ask so many times, with some requests always on their way."""
    reader, writer = await asyncio.open_connection(host, port)
    try:
        for start in range(0, count, AHEAD):
            together = min(AHEAD, count - start)
            writer.write(request * together)
            for _ in range(together):
                await _answer(reader)
    finally:
        writer.close()


def _request(url: str, path: str, body: Any) -> tuple[str, int, bytes]:
    """Return host, port and what is sent to them."""
    content = orjson.dumps(body)
    host, port = url.removeprefix("http://").split(":")
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(content)}\r\n\r\n"
    )
    return host, int(port), head.encode() + content


def load(url: str, path: str, body: Any, clients: int, duration: float) -> dict[str, float]:
    """Return requests a second, and the median and 99 % of their times in milliseconds."""
    request = _request(url, path, body)

    async def ask() -> list[list[float]]:
        end = time.perf_counter() + duration
        return await asyncio.gather(*(_ask_until(*request, end) for _ in range(clients)))

    begun = time.perf_counter()
    seconds = [one for client in asyncio.run(ask()) for one in client]
    spent = time.perf_counter() - begun
    middle, high = np.quantile(seconds, [0.5, 0.99])
    return {
        "rate": len(seconds) / spent,
        "p50_ms": 1e3 * float(middle),
        "p99_ms": 1e3 * float(high),
        "requests": len(seconds),
    }


def send(url: str, path: str, body: Any, clients: int, count: int) -> None:
    """Send so many requests, each client the same number, as fast as the server answers."""
    request = _request(url, path, body)

    async def ask() -> None:
        await asyncio.gather(*(_ask_often(*request, count // clients) for _ in range(clients)))

    asyncio.run(ask())


@contextmanager
def server(*arguments: str) -> Iterator[tuple[str, int]]:
    """Start a program that says where it serves; yield its address and its process id."""
    process = subprocess.Popen(  # noqa: S603
        [sys.executable, "-m", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, **ENVIRONMENT},
    )
    try:
        assert process.stdout is not None
        line = next(line for line in process.stdout if "Serving" in line)
        yield line.split(" on ")[-1].strip(), process.pid
    finally:
        process.terminate()
        process.wait(60)


def processor_seconds(pid: int) -> float:
    """Return the processor's time that a process has taken so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident(pid: int) -> float:
    """Return the memory of a process in MiB."""
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.split("VmRSS:")[1].split()[0]) / 1024
