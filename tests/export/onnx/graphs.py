"""What the tests of graphs share: a mixed table, and a way to run a part of a graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from onnx import TensorProto, helper

from reliablenet.export.onnx.graph import Graph
from reliablenet.export.onnx.trial import feeds, open_graph


def mixed(n: int = 500, seed: int = 0) -> tuple[pd.DataFrame, Any]:
    """A table with gaps, rare and foreign texts, a value that many rows share, and a bent relation."""
    draw = np.random.default_rng(seed)
    X = pd.DataFrame({"age": draw.integers(18, 90, n).astype(float), "debt": draw.normal(size=n)})
    X["gain"] = np.where(draw.random(n) < 0.5, 0.0, draw.exponential(50.0, n))
    X["job"] = draw.choice(["cook", "clerk", "früh", "a b"], n).astype(object)
    X["town"] = np.where(draw.random(n) < 0.01, f"village {seed}", "Rome")
    X["town"] = X["town"].where(draw.random(n) < 0.7, "Oslo").astype(object)
    X["member"] = draw.random(n) < 0.5
    bent = np.abs(X["age"] - 54) > 18
    y = np.where(bent ^ (X["debt"] > 0.5) ^ (X["job"] == "cook"), "yes", "no")
    X.loc[draw.random(n) < 0.1, "age"] = np.nan
    X.loc[draw.random(n) < 0.1, "job"] = None
    return X, y


def open_part(graph: Graph, value: str, kind: int) -> Any:
    """Return a graph that gives a value inside it, ready to run."""
    graph.nodes.append(helper.make_node("Identity", [value], ["found"]))
    shape = ["rows"] if kind == TensorProto.BOOL else ["rows", None]
    graph.outputs.append(helper.make_tensor_value_info("found", kind, shape))
    return open_graph(graph.finish({}, "0").SerializeToString())


def run_part(graph: Graph, value: str, kind: int, X: pd.DataFrame) -> Any:
    """Return a value inside a graph, for rows."""
    session = open_part(graph, value, kind)
    return session.run(None, feeds(session, X))[0]
