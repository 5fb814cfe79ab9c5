"""Tables of docs/how-to/text.md, from committed results."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from studies.runner import Record, read_records
from tools.docs.markdown import table

ROWS = {"known": "known intents", "mixed": "13 % unknown", "unknown": "unknown intents"}
LEVEL = 0.05


def banking77_certified() -> str:
    """Return what is certified with each kind of features, over the draws."""
    rows = []
    for features, found in _by_features("all").items():
        shares = [
            [r["accuracy"] for r in found],
            [r["acted on"] / r["rows"] for r in found],
            [r["wrong"] / r["rows"] for r in found],
            [r["throughput"] for r in found],
        ]
        right, acted, wrong, throughput = map(_spread, shares)
        certified = f"{sum(r['certified'] for r in found)} of {len(found)}"
        rows.append([features, right, certified, acted, wrong, throughput])
    head = ["features", "accuracy", "certified", "acted on", "acted on wrongly"]
    return table([*head, "acted on and right"], rows)


def banking77_unknown() -> str:
    """Return what is acted on wrongly where intents are unknown, and whether it is noticed."""
    rows = []
    for features, found in _by_features("ten unknown").items():
        for kind, name in ROWS.items():
            acted = _spread([r[f"{kind} acted on"] for r in found])
            wrong = acted if kind == "unknown" else _spread([r[f"{kind} wrong"] for r in found])
            noticed = sum(r[f"{kind} p-value"] <= LEVEL for r in found)
            rows.append([features, name, acted, wrong, f"{noticed} of {len(found)}"])
    head = ["features", "rows", "acted on", "acted on wrongly", "noticed"]
    return table(head, rows, left=head[:2])


def _by_features(intents: str) -> dict[str, list[Record]]:
    found: dict[str, list[Record]] = {}
    for record in read_records("default", "banking77"):
        if record["intents"] == intents:
            found.setdefault(record["features"], []).append(record)
    return found


def _spread(shares: Sequence[float]) -> str:
    """Return the mean of a share over draws, and the smallest and the largest if there are several."""
    found = 100 * np.array(shares)
    if len(found) == 1:
        return f"{found[0]:.1f} %"
    return f"{found.mean():.1f} % ({found.min():.1f} to {found.max():.1f})"


def text_directions() -> str:
    """Return how many directions words need, on the development split."""
    found = read_records("default", "text_tried")
    rows = [[str(r["directions"]), f"{100 * r['accuracy']:.1f} %"] for r in found]
    return table(["directions", "accuracy"], rows)


PARTS = {
    "banking77_certified": banking77_certified,
    "banking77_unknown": banking77_unknown,
    "text_directions": text_directions,
}
