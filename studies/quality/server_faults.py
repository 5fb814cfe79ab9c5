"""The long form of tests/serve: servers under load that something befalls, and requests made up by the thousand."""

from __future__ import annotations

import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import reliablenet as rn
from reliablenet.training import Schedule
from studies.runner import ROOT, Block, Record, Study

sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "serve")]

from fault_cases import CASES, Case, count_kept  # noqa: E402
from http_fuzz_cases import fuzz  # noqa: E402
from serving import LocalServer, make_rows  # noqa: E402

TIMES, FUZZ_ROUNDS, EXAMPLES = 10, 25, 40


def _saved(folder: Path) -> Path:
    schedule = Schedule(warmup_epochs=2, epochs_per_stage=2, max_stages=1)
    model = rn.ReliableClassifier(alpha=0.1, network="mlp", schedule=schedule, random_state=0)
    path: Path = model.fit(*make_rows(1500, seed=0)).save(folder / "colours.rnet")
    return path


def befall(case: Case, number: int) -> Record:
    """Let something befall servers while clients ask and report, and count what is missing from their log."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with case(_saved(folder), folder, number) as (log, loads):
            return dict(count_kept(log, loads))


def made_up(seed: int) -> Record:
    """Ask with requests from the OpenAPI description, sound and broken."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with LocalServer(_saved(folder), folder / "d.db", audit=0.5) as server:
            found: Any = fuzz(server.url, EXAMPLES, seed)
    codes = {str(code): count for code, count in sorted(found.codes.items())}
    return {"requests": found.requests, "failures": len(found.failures), "codes": codes}


def blocks() -> list[Block]:
    """Return what befalls servers, those cases that this machine can make, and the rounds of requests."""
    return [
        *(
            Block.once({"what": what, "number": number}, partial(befall, case, number))
            for what, (case, why_not) in CASES.items()
            for number in range(TIMES)
            if not why_not
        ),
        *(
            Block.once({"what": "made-up requests", "seed": seed}, partial(made_up, seed))
            for seed in range(FUZZ_ROUNDS)
        ),
    ]


STUDY = Study(
    "quality",
    "server_faults",
    about="Does a server keep what it told, whatever befalls it, and does any request fail it?",
    cost="half an hour",
    blocks=blocks,
)
