"""The long form of tests/serve: servers killed under load, and requests made up by the thousand."""

from __future__ import annotations

import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import reliablenet as rn
from reliablenet.monitor.log import DecisionLog
from reliablenet.training import Schedule
from studies.runner import ROOT, Block, Record, Study

sys.path[:0] = [str(ROOT / "tests" / "serve")]

from http_fuzz_cases import fuzz  # noqa: E402
from serving import Load, LocalServer, ServerProcess, make_rows, records, wait_until  # noqa: E402

KILLS, FUZZ_ROUNDS, EXAMPLES = 10, 25, 40


def _saved(folder: Path) -> Path:
    schedule = Schedule(warmup_epochs=2, epochs_per_stage=2, max_stages=1)
    model = rn.ReliableClassifier(alpha=0.1, network="mlp", schedule=schedule, random_state=0)
    path: Path = model.fit(*make_rows(1500, seed=0)).save(folder / "colours.rnet")
    return path


def kill(number: int) -> Record:
    """Kill a server while clients ask and report, and count what is missing from its log."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        log, rows = folder / "d.db", records(make_rows(5, seed=0)[0])
        with ServerProcess(_saved(folder), log) as server, Load(server.url, rows) as load:
            wait_until(lambda: len(load.reported) > 20 * (1 + number))
            server.kill()
        with DecisionLog(log) as opened:
            entries = list(opened.entries())
    there = [entry.id for entry in entries]
    known = {entry.id for entry in entries if entry.wrong is not None}
    return {
        "acknowledged": len(load.decisions),
        "reported": len(load.reported),
        "lost": len(set(load.decisions) - set(there)),
        "lost_outcomes": len(set(load.reported) - known),
        "twice": len(there) - len(set(there)),
    }


def made_up(seed: int) -> Record:
    """Ask with requests from the OpenAPI description, sound and broken."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with LocalServer(_saved(folder), folder / "d.db", audit=0.5) as server:
            found: Any = fuzz(server.url, EXAMPLES, seed)
    codes = {str(code): count for code, count in sorted(found.codes.items())}
    return {"requests": found.requests, "failures": len(found.failures), "codes": codes}


def blocks() -> list[Block]:
    """Return the kills, and the rounds of requests."""
    return [
        *(
            Block.once({"what": "kill -9 under load", "number": number}, partial(kill, number))
            for number in range(KILLS)
        ),
        *(
            Block.once({"what": "made-up requests", "seed": seed}, partial(made_up, seed))
            for seed in range(FUZZ_ROUNDS)
        ),
    ]


STUDY = Study(
    "quality",
    "server_faults",
    about="Does a server that is killed keep what it told, and does any request fail it?",
    cost="half an hour",
    blocks=blocks,
)
