"""Model files that were written before, and what was told of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import reliablenet as rn

HERE = Path(__file__).parent
WORDS = (
    "verdict",
    "reason",
    "notes",
    "promise_text",
    "sha256",
)  # sentences are written better over time
NETWORK_TOLERANCE, TOLERANCE = 1e-6, 1e-12  # sums of products differ from processor to processor


def read(folder: Path, name: str, **settings: Any) -> tuple[Any, dict[str, Any], Any]:
    """Return the model, what was told of it, and the rows it was told of."""
    told = json.loads((folder / f"{name}.json").read_text())
    rows = told["rows"]
    rows = pd.DataFrame(rows) if isinstance(rows, dict) else np.array(rows)
    return rn.load(folder / f"{name}.rnet", **settings), told, rows


def check_decisions(decided: Any, told: dict[str, Any], tolerance: float) -> None:
    """Compare decisions with those that were told: answers and actions exactly, confidence to the last bits."""
    found = decided.to_frame()
    for column in found.columns.difference(["confidence", "value"]):
        assert found[column].tolist() == told[column]
    for column in found.columns.intersection(["confidence", "value"]):
        np.testing.assert_allclose(found[column], told[column], rtol=tolerance)


def without_words(certificate: dict[str, Any]) -> dict[str, Any]:
    """Return what a certificate holds and decides, without the sentences and the hash over all."""
    kept = {name: value for name, value in certificate.items() if name not in WORDS}
    if "parts" in kept:
        kept["parts"] = [without_words(part) for part in kept["parts"]]
    return kept
