"""Tables of docs/how-to/numbers.md, from committed results."""

from __future__ import annotations

from typing import Any

import numpy as np

from studies.runner import read_records
from tools.docs.markdown import bold, percent, record_table, table

METHODS = ("ReliableRegressor", "boosting", "ridge")


def number_guarantees() -> str:
    """Return how often certificates for numbers were false, of folds with given scores and of whole fits."""
    columns = {
        "what": lambda r: _name(r),
        "draws": lambda r: f"{r['draws']:,}",
        "granted": lambda r: percent(r["granted"], r["draws"]),
        "false": lambda r: percent(r["failures"], r["draws"]),
        "acted on and right": lambda r: f"{r['throughput']:.3f}" if "throughput" in r else "",
    }
    return record_table(columns, read_records("guarantees", "numbers"))


def number_throughput() -> str:
    """Return the share of test rows acted on and right, by table and method."""
    records = read_records("default", "regression")
    rows = []
    for name in dict.fromkeys(record["table"] for record in records):
        found = {r["method"]: r for r in records if r["table"] == name}
        if len(found) < len(METHODS):  # is being measured
            continue
        one = next(iter(found.values()))
        means = {method: float(np.mean(r["throughput"])) for method, r in found.items()}
        cells = [
            bold(f"{means[method]:.3f}", means[method] == max(means.values())) for method in METHODS
        ]
        rows.append([name, str(one["tolerance"]), f"{one['rows']:,}", *cells])
    return table(["table, target", "tolerance", "rows", *METHODS], rows)


def _name(record: dict[str, object]) -> str:
    tolerances: Any = record.get("tolerances")
    chosen = {0: ", a tolerance for each of 80 cells made on it", 1: ""}
    setting = str(record["setting"])
    if record["part"] == "rule":
        setting = f"{record['rows']} rows with {setting} scores"
        setting += chosen.get(len(tolerances), ", one tolerance chosen on it")
    return setting


PARTS = {"number_guarantees": number_guarantees, "number_throughput": number_throughput}
