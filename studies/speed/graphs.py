"""Does a graph of ONNX decide as its model does on the tables of the paper and on requests in words, and how long does it take?

Models are fitted on the paper's folds with the trees beside the network, on at most `TRAINING_ROWS` rows: a graph is as large
then as with more. That of Banking77 is the model of the study `banking77`. Times are of one thread and of the processor, which
other work on the machine does not lengthen.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch

import reliablenet as rn
from reliablenet.datasets import load_dataset
from reliablenet.export.onnx.trial import AT_ONCE, feeds, open_graph, run
from studies.default import banking77
from studies.default.fitting import ALPHAS, quietly
from studies.runner import Block, Study

TRAINING_ROWS = 5000
TEXTS = "banking77"
TIMED = {"adult": 1_000_000, TEXTS: 100_000}


def fitted(name: str) -> tuple[Any, Any]:
    """Return a model with its trees, and the certification rows."""
    if name == TEXTS:
        return fitted_on_texts()
    folds = load_dataset(name, 0).folds
    train, held = folds.train, folds.certification
    few = np.random.default_rng(0).permutation(len(train))[:TRAINING_ROWS]
    rows = train.X.iloc[few] if hasattr(train.X, "iloc") else train.X[few]
    ours = rn.ReliableClassifier(ALPHAS[name], members="auto", random_state=0, verbose=False)
    with quietly():
        ours.fit(rows, train.y[few], selection=folds.selection, certification=held)
    return ours, held.X


def fitted_on_texts() -> tuple[Any, Any]:
    """Return a model of requests in words, and the certification rows."""
    table = banking77.requests()
    order = np.random.RandomState(0).permutation(len(table))
    held, train = np.split(order, [banking77.CERTIFICATION])
    model = banking77.fitted("TF-IDF", 0, table.iloc[train], table.iloc[held])
    return model, table[["text"]].iloc[held]


def graph_of(model: Any) -> tuple[Any, int]:
    """Return the graph of a model, ready to run, and its size."""
    with tempfile.TemporaryDirectory() as folder:
        content = model.export(Path(folder) / "model.onnx").read_bytes()
    return open_graph(content), len(content)


def compare(model: Any, session: Any, X: Any) -> dict[str, Any]:
    """Return in how many rows a graph differs from its model, and the largest gap of confidence."""
    with quietly():
        ours = model.decide(X)
    label, confidence, accepted = run(session, feeds(session, X))
    return {
        "rows": len(ours),
        "acted_on": int(ours.accepted.sum()),
        "other_label": int((label != ours.label).sum()),
        "other_accepted": int((accepted != ours.accepted).sum()),
        "gap": float(f"{np.abs(confidence - ours.confidence).max():.1e}"),
    }


def equality(name: str) -> dict[str, Any]:
    """Compare all certification rows of a table."""
    model, X = fitted(name)
    session, size = graph_of(model)
    return compare(model, session, X) | {"bytes": size}


def processor_time(work: Callable[[], object]) -> float:
    """Return the seconds that a piece of work keeps the processor busy."""
    start = time.process_time()
    work()
    return time.process_time() - start


def speed(name: str, rows: int) -> dict[str, Any]:
    """Decide many rows by the model and by its graph."""
    torch.set_num_threads(1)
    model, X = fitted(name)
    session, _ = graph_of(model)
    many = X.iloc[np.random.default_rng(0).integers(len(X), size=rows)].reset_index(drop=True)
    with quietly():
        ours = processor_time(lambda: model.decide(many))
    given: dict[str, Any] = {}
    read = processor_time(lambda: given.update(feeds(session, many)))
    graph = processor_time(lambda: run(session, given))
    return {
        "rows_at_once": AT_ONCE,
        "decide_seconds": round(ours, 1),
        "graph_seconds": round(graph, 1),
        "reading_seconds": round(read, 1),
        "ratio": round(graph / ours, 3),
        "ratio_with_reading": round((graph + read) / ours, 3),
        "onnxruntime": onnxruntime.__version__,
    }


def blocks() -> list[Block]:
    """Return the tables, then many rows of two of them."""
    return [
        *(
            Block.once({"what": "equality", "dataset": name}, partial(equality, name))
            for name in (*ALPHAS, TEXTS)
        ),
        *(
            Block.once({"what": "speed", "dataset": name, "rows": rows}, partial(speed, name, rows))
            for name, rows in TIMED.items()
        ),
    ]


def complaints(records: list[dict[str, Any]]) -> list[str]:
    """Return where a graph decides otherwise, or takes longer."""
    found = [
        f"{record['dataset']}: {record['other_label'] + record['other_accepted']} rows differ"
        for record in records
        if record["what"] == "equality" and record["other_label"] + record["other_accepted"]
    ]
    return found + [
        f"{record['dataset']}: the graph takes {record['ratio']} of the time"
        for record in records
        if record["what"] == "speed" and record["ratio"] > 1.0
    ]


STUDY = Study(
    "speed",
    "graphs",
    about="Does a graph of ONNX decide as its model does, and how long does it take?",
    cost="ten minutes; needs the source files",
    blocks=blocks,
    complaints=complaints,
)
