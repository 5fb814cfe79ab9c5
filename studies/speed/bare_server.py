"""Bare FastAPI routes: what serving costs at least.

``python -m studies.speed.bare_server MODEL`` prints the address that it listens on. Two routes are around the forward
pass of the model's network: they take rows that are encoded already, check nothing, log nothing and have no threshold.
A third tells how often `decide` runs in a process like this one, without any HTTP.
"""

from __future__ import annotations

import socket
import sys
import time
from typing import Any

import pandas as pd
import torch
import uvicorn
from fastapi import FastAPI, Request

import reliablenet as rn
from reliablenet.training.forward import evaluate_logits


def make_app(model: Any) -> FastAPI:
    """Return the application: the padded pass that `decide` makes, a plain one, and `decide` itself."""
    app, network = FastAPI(), model.network_.eval()

    @app.post("/padded")
    async def padded(request: Request) -> dict[str, Any]:
        rows = torch.tensor((await request.json())["rows"], dtype=torch.float32)
        return {"proba": torch.softmax(evaluate_logits(network, rows), -1).tolist()}

    @app.post("/plain")
    async def plain(request: Request) -> dict[str, Any]:
        rows = torch.tensor((await request.json())["rows"], dtype=torch.float32)
        with torch.no_grad():
            return {"proba": torch.softmax(network(rows), -1).tolist()}

    @app.post("/decide")
    async def decide(request: Request) -> dict[str, float]:
        asked = await request.json()
        table = pd.DataFrame(asked["records"])
        begun, spent, passes = time.perf_counter(), time.process_time(), 0
        while time.perf_counter() - begun < asked["seconds"]:
            model.decide(table)
            passes += 1
        return {
            "rate": passes / (time.perf_counter() - begun),
            "processor_seconds": (time.process_time() - spent) / passes,
        }

    return app


def main() -> None:
    """Serve on a free port of loopback."""
    torch.set_num_threads(1)
    model = rn.load(sys.argv[1])
    with socket.create_server(("127.0.0.1", 0)) as listening:
        # asyncio sets it on sockets of its own alone; without, every answer waits 40 ms for the client
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        print(f"Serving bare on http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
        config = uvicorn.Config(make_app(model), log_level="warning", access_log=False)
        uvicorn.Server(config).run([listening])


if __name__ == "__main__":
    main()
