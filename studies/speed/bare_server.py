"""A bare FastAPI route around the forward pass of a model's network: what serving costs at least.

``python -m studies.speed.bare_server MODEL`` prints the address that it listens on. It takes rows that are encoded
already, checks nothing, logs nothing and has no threshold.
"""

from __future__ import annotations

import socket
import sys
from typing import Any

import torch
import uvicorn
from fastapi import FastAPI, Request

import reliablenet as rn
from reliablenet.training.forward import evaluate_logits


def make_app(network: torch.nn.Module) -> FastAPI:
    """Return the application: the padded pass that `decide` makes, and a plain one."""
    app = FastAPI()

    @app.post("/padded")
    async def padded(request: Request) -> dict[str, Any]:
        rows = torch.tensor((await request.json())["rows"], dtype=torch.float32)
        return {"proba": torch.softmax(evaluate_logits(network, rows), -1).tolist()}

    @app.post("/plain")
    async def plain(request: Request) -> dict[str, Any]:
        rows = torch.tensor((await request.json())["rows"], dtype=torch.float32)
        with torch.no_grad():
            return {"proba": torch.softmax(network(rows), -1).tolist()}

    return app


def main() -> None:
    """Serve on a free port of loopback."""
    torch.set_num_threads(1)
    network = rn.load(sys.argv[1]).network_.eval()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        # asyncio sets it on sockets of its own alone; without, every answer waits 40 ms for the client
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        print(f"Serving bare on http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
        config = uvicorn.Config(make_app(network), log_level="warning", access_log=False)
        uvicorn.Server(config).run([listening])


if __name__ == "__main__":
    main()
