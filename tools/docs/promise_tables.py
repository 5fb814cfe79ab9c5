"""Tables of the pages on promises, from committed results."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from reliablenet.bench.profiles import DATASET_TITLES
from studies.default.class_thresholds import TABLES
from studies.default.fitting import SEEDS
from studies.runner import Record, read_records
from tools.docs.markdown import bold, percent, record_table, sentence, table

LEVEL = 0.0005  # a difference below it is none in a table of three digits


def remixing() -> str:
    """Return JCW and throughput along the sweep of Coloured MNIST, by certificate."""
    records = read_records("guarantees", "remixing")
    cases = list(dict.fromkeys(record["case"] for record in records))
    rows = []
    for correlation in dict.fromkeys(record["correlation"] for record in records):
        cells = [f"{correlation:g}"]
        for case in cases:
            found = [r for r in records if (r["case"], r["correlation"]) == (case, correlation)]
            jcw = [r["errors"] / r["n"] for r in found]
            right = np.mean([(r["accepted"] - r["errors"]) / r["n"] for r in found])
            text = f"{np.mean(jcw):.3f} ({max(jcw):.3f})"
            cells += [bold(text, max(jcw) > found[0]["alpha"]), f"{right:.3f}"]
        rows.append(cells)
    headings = ["correlation"]
    for case in cases:
        headings += [f"{case}: wrongly", "rightly"]
    first = records[0]
    seeds = len({record["seed"] for record in records})
    return sentence(
        "remixing",
        seeds=seeds,
        images=first["n"],
        alpha=first["alpha"],
        table=table(headings, rows),
    )


def class_thresholds() -> str:
    """Return certified throughput with one threshold and with one for each predicted class."""
    records = read_records("default", "class_thresholds")
    pairs: dict[tuple[str, float, str], list[Record]] = {}
    for record in records:
        if "dataset" in record:
            key = record["dataset"], record["alpha"], record["model"]
            pairs.setdefault(key, []).append(record)
    made = [record for record in records if "made" in record]
    pairs = {key: found for key, found in pairs.items() if len(found) == len(SEEDS)}
    missing = [DATASET_TITLES[name] for name in TABLES if name not in {key[0] for key in pairs}]
    rows, gains = [], []
    for (name, alpha, model), found in pairs.items():
        one, several = (np.array([r[way] for r in found]) for way in ("one", "several"))
        gains.append(float((several - one).mean()))
        rows.append(
            [
                DATASET_TITLES[name],
                f"{alpha:g}",
                model,
                bold(f"{one.mean():.3f}", gains[-1] < -LEVEL),
                bold(f"{several.mean():.3f}", gains[-1] > LEVEL),
                _gain(gains[-1]),
                f"{int((several > one).sum())} of {len(found)}",
            ]
        )
    headings = ["dataset", "alpha", "model", "one threshold", "several", "gain", "seeds ahead"]
    return sentence(
        "class_thresholds",
        table=table(headings, rows, left=("dataset", "model")),
        missing=sentence("class_thresholds_missing", names=", ".join(missing)) if missing else "",
        pairs=len(gains),
        ahead=sum(gain > LEVEL for gain in gains),
        level=sum(abs(gain) <= LEVEL for gain in gains),
        behind=sum(gain < -LEVEL for gain in gains),
        draws=made[0]["draws"],
        least=min(record["rows"] for record in made),
        most=max(record["rows"] for record in made),
        made=record_table(MADE, made, left=("made rows",)),
    )


def _gain(value: float) -> str:
    return f"{round(value, 3) + 0.0:+.3f}"  # no minus before a zero


MADE: dict[str, Callable[[Record], str]] = {
    "made rows": lambda r: r["made"],
    "rows": lambda r: f"{r['rows']:,}",
    "one threshold": lambda r: f"{r['one']:.3f}",
    "several": lambda r: f"{r['several']:.3f}",
    "gain": lambda r: f"{_gain(r['several'] - r['one'])} ± {r['standard_error']:.3f}",
    "one: false": lambda r: percent(r["one_failures"], r["draws"]),
    "several: false": lambda r: percent(r["several_failures"], r["draws"]),
}

PARTS = {"remixing": remixing, "class_thresholds": class_thresholds}
