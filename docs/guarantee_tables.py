"""Tables of the page on guarantees, from the simulations in results/guarantees."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from scipy.stats import binomtest

from reliablenet.metrics.paired import CLEAR, LIKELY, RESAMPLES

RESULTS = Path(__file__).parents[1] / "results" / "guarantees"
Record = dict[str, Any]


def guarantee_validity() -> str:
    """Return, for each setting, the source on which the chosen threshold failed most often."""
    settings: dict[tuple[Any, ...], list[Record]] = {}
    for record in _stored("validity"):
        settings.setdefault((record["n"], record["alpha"], record["rho"]), []).append(record)
    worst = [max(found, key=lambda r: r["chosen_failures"]) for found in settings.values()]
    return _count_line(_stored("validity"), "a setting and source") + _validity(worst)


def guarantee_validity_all() -> str:
    """Return every setting on every source."""
    return _validity(_stored("validity"))


def _validity(records: Sequence[Record]) -> str:
    def power(record: Record) -> str:
        granted = record.get("fixed_granted")
        return "-" if granted is None else _percent(granted, record["draws"])

    return _table(
        {
            "n": lambda r: f"{r['n']:,}",
            "alpha": lambda r: f"{r['alpha']:g}",
            "rho": lambda r: f"{r['rho']:g}",
            "source": lambda r: r["source"],
            "chosen: false": lambda r: _share(r["chosen_failures"], r["draws"]),
            "granted": lambda r: _percent(r["chosen_granted"], r["draws"]),
            "fixed: false": lambda r: _share(r["fixed_failures"], r["draws"]),
            "granted at half": power,
        },
        records,
        left=("source",),
    )


def guarantee_ties() -> str:
    """Return how often the bound beside a chosen threshold failed, as printed before and now."""
    records = _stored("ties")
    return _count_line(records, "a line") + _table(
        {
            "n": lambda r: f"{r['n']:,}",
            "alpha": lambda r: f"{r['alpha']:g}",
            "rho": lambda r: f"{r['rho']:g}",
            "scores": lambda r: f"{r['scores']:,}",
            "now": lambda r: _share(r["most_errors"], r["draws"]),
            "in 0.1": lambda r: _share(r["own_errors"], r["draws"]),
            "slider, now": lambda r: _percent(r["slider_most_errors"], r["draws"]),
            "slider, in 0.1": lambda r: _percent(r["slider_own_errors"], r["draws"]),
        },
        records,
        left=(),
    )


def guarantee_fits() -> str:
    """Return how often the promise of a whole fit was broken."""
    records = _stored("fits")
    fresh = f"{records[0]['fresh']:,}"
    return f"True JCW by {fresh} fresh rows a fit.\n\n" + _table(
        {
            "estimator": lambda r: f"`{r['estimator']}`",
            "rows": lambda r: f"{r['rows']:,}",
            "rho": lambda r: f"{r['rho']:g}",
            "fits": lambda r: f"{r['draws']:,}",
            "granted": lambda r: _percent(r["granted"], r["draws"]),
            "false": lambda r: _share(r["failures"], r["draws"]),
        },
        records,
        left=("estimator",),
    )


def guarantee_rules() -> str:
    """Return false certificates and mean JCW of every rule around every estimator."""
    records = _stored("rules")
    found = {(r["rule"], r["estimator"]): r for r in records}
    faults = [r for r in records if r["rule"] == "conformal, refitted"]
    rules = list(dict.fromkeys(r["rule"] for r in records if r not in faults))
    estimators = list(dict.fromkeys(r["estimator"] for r in records))
    first, fits = records[0], sorted({r["draws"] for r in records if r not in faults})

    def cell(record: Record | None) -> str:
        if record is None:
            return "-"
        return f"{_percent(record['failures'], record['draws'])} / {_mean(record)}"

    lines = [
        f"{first['rows']} rows, alpha {first['alpha']:g}, rho {first['rho']:g}, {fits[0]:,} to {fits[-1]:,} fits a cell, true JCW by "
        f"{first['fresh']:,} fresh rows each: share of false certificates / mean JCW and its standard error.\n",
        "| rule | " + " | ".join(f"`{name}`" for name in estimators) + " |",
        "| --- |" + " --: |" * len(estimators),
    ]
    lines += [
        f"| `{rule}` | " + " | ".join(cell(found.get((rule, name))) for name in estimators) + " |"
        for rule in rules
    ]
    lines += [
        f"\nWith the fault, a network fitted to the selection rows of a conformal rule around it: mean JCW {_mean(fault)} ({fault['draws']:,} fits), "
        f"where {fault['alpha']:g} is promised."
        for fault in faults
    ]
    return "\n".join(lines) + "\n"


def _mean(record: Record) -> str:
    """Return the mean JCW of a record with its standard error."""
    n, average = record["draws"], record["sum"] / record["draws"]
    error = (max(record["squares"] / n - average**2, 0.0) / (n - 1)) ** 0.5
    return f"{average:.4f} ± {error:.4f}"


def guarantee_folds() -> str:
    """Return false certificates and mean JCW by the way in which folds are drawn."""
    records = _stored("folds")
    columns: dict[str, Callable[[Record], str]] = {
        "source and model": lambda r: r["source"],
        "folds": lambda r: r["cut"],
        "sizes": lambda r: ", ".join(f"{count:,}" for count in r["counts"]),
        "alpha": lambda r: f"{r['alpha']:.4g}",
    }
    left = ("source and model", "folds")
    counted = columns | {
        "rho": lambda r: f"{r['rho']:g}",
        "false": lambda r: _share(r["failures"], r["draws"]),
    }
    averaged = columns | {
        "mean JCW": lambda r: f"{r['mean']:.4f} ± {r['standard_error']:.4f}",
    }
    return (
        _count_line(records, "a line; sizes are those of training, selection and certification")
        + _table(counted, [r for r in records if "failures" in r], left)
        + "\n"
        + _table(averaged, [r for r in records if "mean" in r], left)
    )


def guarantee_voids() -> str:
    """Return faults and remedies with their false certificates."""
    return _count_line(_stored("voids"), "a line") + _table(
        {
            "what": lambda r: "" if r["remedied"] else r["what"],
            "case": lambda r: ("remedy: " if r["remedied"] else "fault: ") + r["case"],
            "granted": lambda r: _percent(r["granted"], r["draws"]),
            "false": lambda r: _share(r["failures"], r["draws"]),
        },
        _stored("voids"),
        left=("what", "case"),
    )


def guarantee_groups() -> str:
    """Return false and true certificates by the way in which grouped rows are counted."""
    records = _stored("groups")
    ways = list(dict.fromkeys(record["way"] for record in records))
    sources = list(dict.fromkeys((r["sizes"], r["likeness"]) for r in records))
    found = {(r["way"], r["sizes"], r["likeness"]): r for r in records}
    first = records[0]
    lines = [
        f"{first['persons']} persons of 1 to {first['most_rows']} rows, alpha {first['alpha']:g}, rho "
        f"{first['rho']:g}, {first['draws']:,} draws: share of false certificates where JCW is hardly over "
        "alpha / share granted where JCW is a fifth of alpha.\n",
        "| likeness | rows of a person | " + " | ".join(ways) + " |",
        "| --: | --- |" + " --: |" * len(ways),
    ]
    for sizes, likeness in sources:
        cells = (found[way, sizes, likeness] for way in ways)
        shown = (
            f"{_percent(r['failures'], r['draws'])} / {_percent(r['granted'], r['draws'])}"
            for r in cells
        )
        tied = "more errors where more rows" if sizes == "tied" else "no matter for errors"
        lines.append(f"| {likeness:g} | {tied} | " + " | ".join(shown) + " |")
    return "\n".join(lines) + "\n"


def guarantee_compare() -> str:
    """Return false certificates of the best of many methods, and what each way hands out."""
    records = _stored("compare")
    sources: dict[tuple[int, str], dict[str, Record]] = {}
    for record in records:
        sources.setdefault((record["methods"], record["source"]), {})[record["way"]] = record
    former, equal, new, fault = dict.fromkeys(record["way"] for record in records)
    first = records[0]
    intro = (
        f"{first['n']} certification rows, alpha {first['alpha']:g}, rho {first['rho']:g}, "
        f"{first['draws']:,} draws a line.\n\n"
    )

    def false(way: str) -> Callable[[Record], str]:
        return lambda r: _share(r["ways"][way]["failures"], r["ways"][way]["draws"])

    def handed_out(way: str) -> Callable[[Record], str]:
        return lambda r: f"{r['ways'][way]['throughput']:.3f}"

    return intro + _table(
        {
            "methods": lambda r: f"{r['methods']}",
            "they are": lambda r: r["source"],
            "`best()`: false": false(new),
            f"{fault}: false": false(fault),
            f"throughput {former}": handed_out(former),
            equal: handed_out(equal),
            "`best()`": handed_out(new),
        },
        [
            {"methods": methods, "source": source, "ways": ways}
            for (methods, source), ways in sources.items()
        ],
        left=("they are",),
    )


def guarantee_wording() -> str:
    """Return how often one of two equal methods is called better."""
    records = [record for record in _stored("wording") if record["equal"]]
    rule = (
        f"*Clearly* from {CLEAR:.0%} of {RESAMPLES:,} paired resamples on, *probably* from "
        f"{LIKELY:.0%}. "
    )
    return rule + _count_line(records, "a line") + _wording(records)


def guarantee_wording_power() -> str:
    """Return how often the better of two methods is called so."""
    records = [record for record in _stored("wording") if not record["equal"]]
    return _count_line(records, "a line") + _wording(records)


def _wording(records: Sequence[Record]) -> str:
    def share(name: str) -> Callable[[Record], str]:
        return lambda r: _percent(r[name], r["draws"])

    return _table(
        {
            "n": lambda r: f"{r['n']:,}",
            "alpha": lambda r: f"{r['alpha']:g}",
            "methods": lambda r: r["pair"],
            "clearly": share("clearly"),
            "clearly or probably": share("said"),
            "clearly, in 0.1": share("former_clearly"),
            "either, in 0.1": share("former_said"),
        },
        records,
        left=("methods",),
    )


def guarantee_copies() -> str:
    """Return twins and copies among the certification rows of the datasets."""
    return _table(
        {
            "dataset": lambda r: r["dataset"].replace("_", " "),
            "certification rows": lambda r: f"{r['n']:,}",
            "with a twin": lambda r: _percent(r["twins"], r["n"]),
            "of these with another label": lambda r: (
                _percent(r["twins"] - r["copies"], r["twins"]) if r["twins"] else "-"
            ),
            "warned": lambda r: "yes" if r["warned"] else "no",
        },
        _stored("copies"),
        left=("dataset",),
    )


def _stored(name: str) -> list[Record]:
    found: list[Record] = json.loads((RESULTS / f"{name}.json").read_text())
    return found


def _count_line(records: Sequence[Record], unit: str) -> str:
    return f"{records[0]['draws']:,} draws {unit}.\n\n"


def _table(
    columns: dict[str, Callable[[Record], str]], records: Sequence[Record], left: Sequence[str]
) -> str:
    lines = ["| " + " | ".join(columns) + " |"]
    lines.append("|" + "".join(" --- |" if name in left else " --: |" for name in columns))
    for record in records:
        lines.append("| " + " | ".join(cell(record) for cell in columns.values()) + " |")
    return "\n".join(lines) + "\n"


def _percent(count: int, n: int) -> str:
    return f"{count / n:.1%}" if count / n >= 0.001 or not count else f"{count / n:.2%}"


def _share(count: int, draws: int) -> str:
    """Return a share with its exact two-sided interval at 99 %."""
    low, high = binomtest(count, draws).proportion_ci(0.99, "exact")
    return f"{count / draws:.2%} ({low:.2%} to {high:.2%})"


def _or_not_yet(part: Callable[[], str]) -> Callable[[], str]:
    """Let a page be built before its simulation, which takes hours, has been run."""

    def table() -> str:
        try:
            return part()
        except FileNotFoundError as error:
            return f"*Not run yet: there is no {Path(error.filename).name}.*\n"

    return table


PARTS = {
    part.__name__: _or_not_yet(part)
    for part in (
        guarantee_compare,
        guarantee_copies,
        guarantee_fits,
        guarantee_folds,
        guarantee_groups,
        guarantee_rules,
        guarantee_ties,
        guarantee_validity,
        guarantee_validity_all,
        guarantee_voids,
        guarantee_wording,
        guarantee_wording_power,
    )
}
