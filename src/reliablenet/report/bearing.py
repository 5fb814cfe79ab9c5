"""Beyond the whole: who bears the mistakes on the certification fold, and how far the source may move."""

from __future__ import annotations

from typing import Any

from reliablenet.certificate.shift import sensitivities
from reliablenet.metrics import Breakdown
from reliablenet.report import text
from reliablenet.report.charts import Numbers, marked_numbers

SHOWN = 8


def bearing_parts(found: Breakdown) -> list[dict[str, Any]]:
    """Return the parts that bear more mistakes than their share of rows, the clearest first.

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet.metrics import breakdown
    >>> from reliablenet.report.bearing import bearing_parts
    >>> half = np.arange(400) < 100
    >>> found = breakdown(
    ...     score=np.ones(400), correct=~half | (np.arange(400) % 2 == 0),
    ...     accepted=np.ones(400, bool), by={"young": half},
    ... )
    >>> [(part["name"], part["rows"], part["mistakes"], part["clear"]) for part in bearing_parts(found)]
    [('young = True', 25.0, 100.0, True)]
    """
    return [
        {
            "name": f"{cell.column} = {cell.value}",
            "counts": f"{text.count(cell.errors)} of {text.count(cell.n)} rows acted on wrongly, "
            f"{text.percent(cell.jcw)}",
            "rows": 100 * cell.n / found.whole.n,
            "mistakes": 100 * cell.errors / found.whole.errors,
            "clear": found.is_clear(cell),
        }
        for cell in found.worst(SHOWN)
    ]


def bearing_table(found: Breakdown) -> Numbers:
    """Return every part with counts and simultaneous intervals; clear differences are marked."""
    frame: Any = found.to_frame()
    rows = [
        [
            f"{row.column} = {row.value}" if row.column else "All rows",
            text.count(row.n),
            text.count(row.accepted),
            text.count(row.errors),
            text.percent(row.jcw, 2),
            f"{text.percent(row.jcw_low, 2)} to {text.percent(row.jcw_high, 2)}",
            text.percent(row.error_accepted, 2),
            text.percent(row.share_of_rows),
            text.percent(row.share_of_mistakes),
        ]
        for row in frame.itertuples()
    ]
    columns = ["Part", "Rows", "Acted on", "And wrong", "Acted on wrongly", "Interval"]
    columns += ["Wrong where it acts", "Of all rows", "Of all mistakes"]
    return marked_numbers(columns, rows, frame.index[frame["clear"]].tolist())


def moves_table(certificate: Any) -> Numbers | None:
    """Return what the bound would be under moves of the source of some sizes; None without a certificate."""
    rows: list[list[str]] = []
    for name, card in sensitivities(certificate).items():
        for distance, found in card.examples.items():
            reach = f"{card.reach[distance]:.3g}"
            for size, bound in found.items():
                kept = bound <= card.alpha
                cells = [name or "All rows", distance, f"{size:g}", text.percent_up(bound, 1.0)]
                rows.append([*cells, "yes" if kept else "no", reach])
    columns = ["Part", "Distance", "Size of the move", "Bound there", "Alpha kept", "Kept up to"]
    return marked_numbers(columns, rows) if rows else None
