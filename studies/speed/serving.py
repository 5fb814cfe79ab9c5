"""What serving costs: single rows and batches over HTTP, every decision in the log before it is told.

Both servers run at once and are asked in turns by one client on the same machine, so that ratios are within one run.
"""

from __future__ import annotations

import os
import tempfile
import time
from functools import partial
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import requests

import reliablenet as rn
from studies.runner import Block, Record, Study
from studies.speed.http_client import load, processor_seconds, resident, send, server

ROUNDS, SECONDS = 15, 1.0
BATCH_ROUNDS, BATCH_SECONDS = 15, 1.0
BATCH = 1_000
CLIENTS = 64
NETWORK: dict[str, Any] = {"members": ("network",)}  # beside a route that has nothing else
MODELS: dict[str, dict[str, Any]] = {"default": {}, "network alone": NETWORK}
MEMORY_REQUESTS, MEMORY_LOOKS = 1_000_000, 20


def make_rows(n: int, seed: int) -> tuple[pd.DataFrame, Any]:
    """Eight numbers and six categories, as of a table of customers."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({f"x{i}": rng.normal(size=n) for i in range(8)})
    for i in range(6):
        table[f"c{i}"] = rng.choice(list("abcdef"), n)
    risk = table.x0 + table.x1 + (table.c0 == "a") + 0.5 * rng.normal(size=n)
    return table, np.where(risk > 0, "yes", "no")


def fitted(folder: Path, **settings: Any) -> Any:
    """Return a model of the library with its defaults, but for these settings, saved."""
    model = rn.ReliableClassifier(alpha=0.05, random_state=0, **settings)
    model.fit(*make_rows(3000, 0))
    model.save(folder / "model.rnet")
    return model


def counts(url: str) -> dict[str, float]:
    """Return what the server has counted."""
    lines = requests.get(f"{url}/metrics", timeout=600).text.splitlines()
    return {line.split()[0]: float(line.split()[1]) for line in lines if line[0] != "#"}


def single_rows(clients: int) -> Record:
    """Single rows a second, ours and bare in turns."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = fitted(folder, **NETWORK)
        table, _ = make_rows(1, 1)
        row = {"dataframe_records": table.to_dict("records")}
        encoded = {"rows": model.encoder_.compact(table).tolist()}
        path = str(folder / "model.rnet")
        log = ("--log", str(folder / "d.db"), "--port", "0")
        with (
            server("reliablenet", "serve", path, *log) as (ours, our_pid),
            server("studies.speed.bare_server", path) as (bare, bare_pid),
        ):
            asked = {
                "ours": (our_pid, ours, "/invocations", row),
                "padded": (bare_pid, bare, "/padded", encoded),
                "plain": (bare_pid, bare, "/plain", encoded),
            }
            found: dict[str, list[dict[str, float]]] = {name: [] for name in asked}
            for place in range(ROUNDS + 1):
                for kind, (pid, url, route, body) in asked.items():
                    spent = processor_seconds(pid)
                    measured = load(url, route, body, clients, SECONDS)
                    spent = processor_seconds(pid) - spent
                    measured["processor_ms"] = 1e3 * spent / measured["requests"]
                    if place:  # the first round warms up
                        found[kind].append(measured)
            sums = counts(ours)
    decided = sum(value for key, value in sums.items() if "decisions_total" in key)
    middle = {
        f"{kind}_{key}": round(float(np.median([one[key] for one in rounds])), 2)
        for kind, rounds in found.items()
        for key in ("rate", "p50_ms", "p99_ms", "processor_ms")
    }
    return {
        **middle,
        **_ratio(found, "padded"),
        **_ratio(found, "plain"),
        "rows_a_pass": round(decided / sums["reliablenet_batches_total"], 2),
        "log_share_of_work": round(
            sums["reliablenet_log_seconds_total"]
            / (sums["reliablenet_log_seconds_total"] + sums["reliablenet_model_seconds_total"]),
            3,
        ),
        "load_of_machine": round(os.getloadavg()[0], 1),
    }


def _ratio(found: dict[str, list[dict[str, float]]], bare: str) -> Record:
    """Return our rate over that of a bare route in the same round."""
    pairs = zip(found["ours"], found[bare], strict=True)
    ratios = [ours["rate"] / other["rate"] for ours, other in pairs]
    return {
        f"ratio_to_{bare}": round(float(np.median(ratios)), 3),
        f"least_and_most_to_{bare}": [round(min(ratios), 3), round(max(ratios), 3)],
    }


def batches(**settings: Any) -> Record:
    """Rows a second in batches over HTTP, against `decide` in a process alike, in turns.

    Both have one thread for a pass of the network, and the server three for its own work. Where other
    programs take the processors, it cannot use them: what it costs of the processor's time stands beside, as a
    multiple of what `decide` costs.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fitted(folder, **settings)
        rows = make_rows(BATCH, 1)[0].to_dict("records")
        body = {"dataframe_records": rows}
        asked: Record = {"records": rows, "seconds": BATCH_SECONDS}
        path, log = str(folder / "model.rnet"), ("--log", str(folder / "d.db"), "--port", "0")
        ratios, costs, rates = [], [], []
        with (
            server("reliablenet", "serve", path, *log) as (url, pid),
            server("studies.speed.bare_server", path) as (bare, _),
        ):
            for place in range(BATCH_ROUNDS + 1):
                spent = processor_seconds(pid)
                served = load(url, "/invocations", body, 2, BATCH_SECONDS)
                cost = (processor_seconds(pid) - spent) / served["requests"]
                alone = requests.post(f"{bare}/decide", json=asked, timeout=600).json()
                if place:
                    ratios.append(served["rate"] / alone["rate"])
                    costs.append(cost / alone["processor_seconds"])
                    rates.append(BATCH * served["rate"])
    return {
        "ratio_to_decide": round(float(np.median(ratios)), 3),
        "least_and_most": [round(min(ratios), 3), round(max(ratios), 3)],
        "processor_time_of_decide": round(float(np.median(costs)), 2),
        "rows_a_second": round(max(rates)),
        "load_of_machine": round(os.getloadavg()[0], 1),
    }


def memory(asked: int = MEMORY_REQUESTS, looks: int = MEMORY_LOOKS) -> Record:
    """Memory of one server process while it answers single rows, and how it grows in the second half of them.

    It is one process that is watched, so that a study that was stopped begins this block again.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fitted(folder)
        table, _ = make_rows(1, 1)
        body = {"dataframe_records": table.to_dict("records")}
        # The study may be stopped for a while: no request is late then.
        log = ("--log", str(folder / "d.db"), "--port", "0", "--timeout", "7200")
        step, begun = CLIENTS * ceil(asked / looks / CLIENTS), time.perf_counter()
        with server("reliablenet", "serve", str(folder / "model.rnet"), *log) as (url, pid):
            found = []
            for _ in range(looks):
                send(url, "/invocations", body, CLIENTS, step)
                found.append(resident(pid))
            spent = time.perf_counter() - begun
            decided = sum(value for key, value in counts(url).items() if "decisions_total" in key)
    assert decided == looks * step
    half = looks // 2
    slope = np.polyfit(np.arange(looks - half) * step, found[half:], 1)[0]
    return {
        "requests": looks * step,
        "mib": [round(one, 1) for one in found],
        "mib_more_a_million_in_second_half": round(1e6 * float(slope), 1),
        "requests_a_second": round(looks * step / spent),
    }


def blocks() -> list[Block]:
    """Return the measures."""
    return [
        *(
            Block.once({"what": "single rows", "clients": clients}, partial(single_rows, clients))
            for clients in (1, CLIENTS)
        ),
        *(
            Block.once(
                {"what": f"batches of {BATCH} rows", "model": model}, partial(batches, **settings)
            )
            for model, settings in MODELS.items()
        ),
        Block.once({"what": "memory"}, memory),
    ]


STUDY = Study(
    "speed",
    "serving",
    about="What do decisions over HTTP cost, each of them logged?",
    cost="three minutes, and half an hour for the memory of a million requests",
    blocks=blocks,
)
