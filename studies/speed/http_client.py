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


async def _client(host: str, port: int, request: bytes, end: float, seconds: list[float]) -> None:
    reader, writer = await asyncio.open_connection(host, port)
    try:
        while time.perf_counter() < end:
            begun = time.perf_counter()
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200"), head
            length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
            await reader.readexactly(length)
            seconds.append(time.perf_counter() - begun)
    finally:
        writer.close()


async def _load(url: str, path: str, body: bytes, clients: int, duration: float) -> list[float]:
    host, port = url.removeprefix("http://").split(":")
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    seconds: list[float] = []
    end = time.perf_counter() + duration
    request = head.encode() + body
    await asyncio.gather(*(_client(host, int(port), request, end, seconds) for _ in range(clients)))
    return seconds


def load(url: str, path: str, body: Any, clients: int, duration: float) -> dict[str, float]:
    """Return requests a second, and the median and 99 % of their times in milliseconds."""
    begun = time.perf_counter()
    seconds = asyncio.run(_load(url, path, orjson.dumps(body), clients, duration))
    spent = time.perf_counter() - begun
    middle, high = np.quantile(seconds, [0.5, 0.99])
    return {
        "rate": len(seconds) / spent,
        "p50_ms": 1e3 * float(middle),
        "p99_ms": 1e3 * float(high),
        "requests": len(seconds),
    }


@contextmanager
def server(*arguments: str) -> Iterator[tuple[str, int]]:
    """Start a program that says where it serves; yield its address and its process id."""
    process = subprocess.Popen(  # noqa: S603
        [sys.executable, "-m", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
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
