"""Tables of the page on guarantees, from the simulations in results/guarantees."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from reliablenet.metrics.paired import CLEAR, LIKELY, RESAMPLES
from studies.guarantees.intervals import interval
from studies.guarantees.rules import mean
from studies.runner import Record, read_records
from tools.docs.markdown import Part, percent, record_table, sentence, table

_stored = partial(read_records, "guarantees")
SETTING: dict[str, Callable[[Record], str]] = {
    "n": lambda r: f"{r['n']:,}",
    "alpha": lambda r: f"{r['alpha']:g}",
    "rho": lambda r: f"{r['rho']:g}",
}
WORDING: dict[str, Callable[[Record], str]] = {
    "n": SETTING["n"],
    "alpha": SETTING["alpha"],
    "methods": lambda r: str(r["pair"]),
    "clearly": lambda r: percent(r["clearly"], r["draws"]),
    "clearly or probably": lambda r: percent(r["said"], r["draws"]),
    "clearly, in 0.1": lambda r: percent(r["former_clearly"], r["draws"]),
    "either, in 0.1": lambda r: percent(r["former_said"], r["draws"]),
}

PROMISED: dict[str, Callable[[Record], str]] = {
    "promise": lambda r: str(r["promise"]),
    "setting": lambda r: str(r["setting"]),
    "n": SETTING["n"],
    "false": lambda r: _share(r["failures"], r["draws"]),
    "granted": lambda r: percent(r["granted"], r["draws"]),
    "acted on": lambda r: f"{r['coverage']:.3f}",
}


def guarantee_validity() -> str:
    """Return, for each setting, the source on which the chosen threshold failed most often."""
    settings: dict[tuple[Any, ...], list[Record]] = {}
    for record in _stored("validity"):
        settings.setdefault((record["n"], record["alpha"], record["rho"]), []).append(record)
    worst = [max(found, key=lambda r: r["chosen_failures"]) for found in settings.values()]
    draws = worst[0]["draws"]
    return sentence("guarantee_validity", draws=draws, table=_validity(worst))


def guarantee_validity_all() -> str:
    """Return every setting on every source."""
    return _validity(_stored("validity"))


def _validity(records: Sequence[Record]) -> str:
    def power(record: Record) -> str:
        granted = record.get("fixed_granted")
        return "-" if granted is None else percent(granted, record["draws"])

    return record_table(
        SETTING
        | {
            "source": lambda r: r["source"],
            "chosen: false": lambda r: _share(r["chosen_failures"], r["draws"]),
            "granted": lambda r: percent(r["chosen_granted"], r["draws"]),
            "fixed: false": lambda r: _share(r["fixed_failures"], r["draws"]),
            "granted at half": power,
        },
        records,
        left=("source",),
    )


def guarantee_ties() -> str:
    """Return how often the bound beside a chosen threshold failed, as printed before and now."""
    return _with_draws(
        SETTING
        | {
            "scores": lambda r: f"{r['scores']:,}",
            "now": lambda r: _share(r["most_errors"], r["draws"]),
            "in 0.1": lambda r: _share(r["own_errors"], r["draws"]),
            "slider, now": lambda r: percent(r["slider_most_errors"], r["draws"]),
            "slider, in 0.1": lambda r: percent(r["slider_own_errors"], r["draws"]),
        },
        _stored("ties"),
        left=(),
    )


def guarantee_promises() -> str:
    """Return how often each promise was false where it was granted, and what its rule acts on."""
    return _with_draws(
        PROMISED, [r for r in _stored("promises") if not r["fault"]], left=("promise", "setting")
    )


def guarantee_promise_faults() -> str:
    """Return the same of careless ways, and of ways that cost rows."""
    careless: dict[str, Callable[[Record], str]] = {"instead": lambda r: str(r["fault"])}
    return record_table(
        careless | PROMISED | {"draws": lambda r: f"{r['draws']:,}"},
        [r for r in _stored("promises") if r["fault"]],
        left=("instead", "promise", "setting"),
    )


def guarantee_fits() -> str:
    """Return how often the promise of a whole fit was broken."""
    records = _stored("fits")
    found = record_table(
        {
            "estimator": lambda r: f"`{r['estimator']}`",
            "rows": lambda r: f"{r['rows']:,}",
            "rho": lambda r: f"{r['rho']:g}",
            "fits": lambda r: f"{r['draws']:,}",
            "fresh rows a fit": lambda r: f"{r['fresh']:,}",
            "granted": lambda r: percent(r["granted"], r["draws"]),
            "false": lambda r: _share(r["failures"], r["draws"]),
        },
        records,
        left=("estimator",),
    )
    return sentence("guarantee_fits", table=found)


def guarantee_rules() -> str:
    """Return false certificates and mean JCW of every rule around every estimator."""
    records = _stored("rules")
    found = {(r["rule"], r["estimator"]): r for r in records}
    faults = [r for r in records if r["rule"] == "conformal, refitted"]
    rules = list(dict.fromkeys(r["rule"] for r in records if r not in faults))
    estimators = list(dict.fromkeys(r["estimator"] for r in records))
    fits = [r["draws"] for r in records if r not in faults]

    def cell(record: Record | None) -> str:
        if record is None:
            return "-"
        return f"{percent(record['failures'], record['draws'])} / {_mean(record)}"

    cells = table(
        ["rule", *(f"`{name}`" for name in estimators)],
        ([f"`{rule}`", *(cell(found.get((rule, name))) for name in estimators)] for rule in rules),
    )
    text = sentence("guarantee_rules", least=min(fits), most=max(fits), table=cells, **records[0])
    return text + "".join(
        sentence("guarantee_rules_fault", mean=_mean(one), draws=one["draws"], alpha=one["alpha"])
        for one in faults
    )


def _mean(record: Record) -> str:
    """Return the mean JCW of a record with its standard error."""
    return "{:.4f} ± {:.4f}".format(*mean(record))


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
    return sentence(
        "guarantee_folds",
        draws=records[0]["draws"],
        counted=record_table(counted, [r for r in records if "failures" in r], left),
        averaged=record_table(averaged, [r for r in records if "mean" in r], left),
    )


def guarantee_voids() -> str:
    """Return faults and remedies with their false certificates."""
    return _with_draws(
        {
            "what": lambda r: "" if r["remedied"] else r["what"],
            "case": lambda r: ("remedy: " if r["remedied"] else "fault: ") + r["case"],
            "granted": lambda r: percent(r["granted"], r["draws"]),
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
    rows = []
    for sizes, likeness in sources:
        cells = (found[way, sizes, likeness] for way in ways)
        shown = (
            f"{percent(r['failures'], r['draws'])} / {percent(r['granted'], r['draws'])}"
            for r in cells
        )
        tied = "more errors where more rows" if sizes == "tied" else "no matter for errors"
        rows.append([f"{likeness:g}", tied, *shown])
    headings = ["likeness", "rows of a person", *ways]
    cells_of_all = table(headings, rows, left=("rows of a person",))
    return sentence("guarantee_groups", table=cells_of_all, **records[0])


def guarantee_compare() -> str:
    """Return false certificates of the best of many methods, and what each way hands out."""
    records = _stored("compare")
    sources: dict[tuple[int, str], dict[str, Record]] = {}
    for record in records:
        sources.setdefault((record["methods"], record["source"]), {})[record["way"]] = record
    former, equal, new, fault = dict.fromkeys(record["way"] for record in records)

    def false(way: str) -> Callable[[Record], str]:
        return lambda r: _share(r["ways"][way]["failures"], r["ways"][way]["draws"])

    def handed_out(way: str) -> Callable[[Record], str]:
        return lambda r: f"{r['ways'][way]['throughput']:.3f}"

    found = record_table(
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
    return sentence("guarantee_compare", table=found, **records[0])


def guarantee_wording() -> str:
    """Return how often one of two equal methods is called better."""
    records = [record for record in _stored("wording") if record["equal"]]
    return sentence(
        "guarantee_wording",
        clear=CLEAR,
        likely=LIKELY,
        resamples=RESAMPLES,
        draws=records[0]["draws"],
        table=record_table(WORDING, records, left=("methods",)),
    )


def guarantee_wording_power() -> str:
    """Return how often the better of two methods is called so."""
    records = [record for record in _stored("wording") if not record["equal"]]
    return _with_draws(WORDING, records, left=("methods",))


def guarantee_copies() -> str:
    """Return twins and copies among the certification rows of the datasets."""
    return record_table(
        {
            "dataset": lambda r: r["dataset"].replace("_", " "),
            "certification rows": lambda r: f"{r['n']:,}",
            "with a twin": lambda r: percent(r["twins"], r["n"]),
            "of these with another label": lambda r: (
                percent(r["twins"] - r["copies"], r["twins"]) if r["twins"] else "-"
            ),
            "warned": lambda r: "yes" if r["warned"] else "no",
        },
        _stored("copies"),
        left=("dataset",),
    )


def _with_draws(
    columns: dict[str, Callable[[Record], str]], records: Sequence[Record], left: Sequence[str]
) -> str:
    """Return a table below the number of draws that each of its lines is made of."""
    return sentence(
        "draws_a_line", draws=records[0]["draws"], table=record_table(columns, records, left)
    )


def _share(count: int, draws: int) -> str:
    """Return a share with its exact two-sided interval at 99 %."""
    low, high = interval(count, draws)
    return f"{count / draws:.2%} ({low:.2%} to {high:.2%})"


def _or_not_yet(part: Part) -> Part:
    """Let a page be built before its simulation, which takes hours, has been run."""

    def table() -> str:
        try:
            return part()
        except FileNotFoundError as error:
            return sentence("not_run", file=Path(error.filename).name)

    return table


def bearing_tables() -> str:
    """Return who bears the mistakes under one certificate for all and under one by group, by table."""
    shown = []
    for name in dict.fromkeys(record["table"] for record in _stored("bearing")):
        found = [record for record in _stored("bearing") if record["table"] == name]
        rows = []
        for group in dict.fromkeys(record["group"] for record in found):
            part = [record for record in found if record["group"] == group]
            n = sum(record["rows"] for record in part)
            cells = [group, f"{n:,}"]
            for rule in ("overall", "by_group"):
                acted, wrong = (sum(r[rule][key] for r in part) for key in ("acted_on", "wrong"))
                cells += [percent(acted, n), percent(wrong, n)]
            rows.append(cells)
        head = ["group", "rows", "acted on", "wrongly", "acted on, by group", "wrongly, by group"]
        title = f"**{name}**, alpha {found[0]['alpha']:g}"
        shown.append(f"{title}\n\n{table(head, rows)}")
    return "\n\n".join(shown)


PARTS = {
    part.__name__: _or_not_yet(part)
    for part in (
        bearing_tables,
        guarantee_compare,
        guarantee_copies,
        guarantee_fits,
        guarantee_folds,
        guarantee_groups,
        guarantee_promise_faults,
        guarantee_promises,
        guarantee_rules,
        guarantee_ties,
        guarantee_validity,
        guarantee_validity_all,
        guarantee_voids,
        guarantee_wording,
        guarantee_wording_power,
    )
}
