"""Tables of docs/explanations/default.md, from committed results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

import reliablenet as rn
from reliablenet.bench import load_profile, results
from reliablenet.bench.methods import Point
from reliablenet.bench.profiles import DATASET_TITLES
from reliablenet.bench.tables import matched_coverage
from reliablenet.datasets import SyntheticBand
from studies.runner import RESULTS, read_records
from tools.docs.markdown import bold, record_table, sentence, table
from tools.docs.team_tables import draws_of

PROFILE = load_profile("cpu")
STORE = PROFILE.open_store(RESULTS)
SHIFTED_GAMMA = 0.7  # of Synthetic Band's shift
FOUR = ("synthetic_band", "german_credit", "adult", "unsw_nb15-alpha-0.01")
# Classifiers of the study in the table of certified throughput, and what they are called there.
SHOWN = {
    "tabular": "our network",
    "images": "our network",
    "images_augmented": "augmented",
    "boosting": "boosting",
    "erm_early": "erm_early",
    "erm": "erm",
    "reliablenet": "reliablenet",
    "reliablenet_last": "reliablenet_last",
}
OURS_AND_BOOSTING = {"tabular+certified": "our network", "boosting+certified": "boosting"}
PARTS_OF_IT = {
    "tabular+certified": "whole",
    "tabular-encoding+certified": "no bins",
    "tabular-ensemble+certified": "one member",
    "tabular-average+certified": "no average",
    "tabular-folds+certified": "no last fit",
    "tabular_constrained+certified": "constrained",
}


def certified_throughput() -> str:
    """Return certified throughput by dataset and method, of the datasets that have been run."""
    runs = _runs()
    runs = runs[(runs["point"] == Point.CERTIFIED) & runs["classifier"].isin(SHOWN)]
    runs = runs.assign(shown=runs["classifier"].map(SHOWN))
    by_method = runs.groupby(["plan", "shown"])["certified_throughput"].agg(["mean", "std"])
    columns, rows = list(dict.fromkeys(SHOWN.values())), []
    for plan in dict.fromkeys(runs["plan"]):
        found = by_method.loc[plan]
        cells = {name: f"{mean:.3f} ± {std:.3f}" for name, mean, std in found.itertuples()}
        best = found["mean"].idxmax()
        cells[best] = bold(cells[best])
        name = _name(plan)
        if "images" in PROFILE.plans[plan].data:  # fewer than there are
            name += f", {runs.loc[runs['plan'] == plan, 'train_rows'].iloc[0]:,} images"
        rows.append([name, *(cells.get(column, "-") for column in columns)])
    return table(["dataset", *columns], rows)


def results_in_short() -> str:
    """Return certified throughput of our network, boosting and the paper's, and what the team adds."""
    methods = OURS_AND_BOOSTING | {"reliablenet+certified": "paper's network"}
    means: Any = draws_of("reporting").pivot_table(index="table", columns="method", values="T")
    return sentence(
        "results_in_short",
        table=_by_plan((*FOUR[:3], "unsw_nb15", FOUR[3]), methods),
        tables=len(means),
        team=means["team"].mean(),
        tuned=means["boosting, tuned"].mean(),
        logistic=means["logistic regression"].mean(),
    )


def certified_by_set() -> str:
    """Return certified throughput of our network, boosting and the paper's, by dataset."""
    methods = OURS_AND_BOOSTING | {
        "boosting_all+certified": "boosting on 85 %",
        "erm_early+certified": "MLP, early stop",
        "reliablenet+certified": "paper's ReliableNet",
    }
    return _by_plan((*FOUR[:3], "unsw_nb15", FOUR[3]), methods)


def band_optimum() -> str:
    """Return how near our network comes to what is possible on Synthetic Band."""
    plan = "synthetic_band"
    ours = float(np.mean(_granted(plan, "tabular+certified")))
    oracle = []
    for seed in PROFILE.seeds:
        band = SyntheticBand(random_state=seed)
        rows = band.folds().certification
        score = 1.0 / (1.0 + np.exp(-rows.X @ band.direction))  # ranks as the truth does
        proba = np.column_stack([1.0 - score, score])
        alpha = PROFILE.plans[plan].alpha
        oracle.append(rn.certified_threshold(proba, rows.y, alpha).throughput)
    known, best = float(np.mean(oracle)), SyntheticBand().best_throughput(alpha)
    shares = {"share_of_known": ours / known, "share_of_best": ours / best}
    return sentence("band_optimum", known=known, ours=ours, best=best, **shares)


def ablation() -> str:
    """Return certified throughput with each part taken away in turn."""
    return _by_plan(FOUR, PARTS_OF_IT)


def fixed_threshold() -> str:
    """Return what rules at the paper's eps* do, with and without the constraint."""
    methods = {
        "reliablenet_last@eps": "paper's ReliableNet",
        "tabular_free@eps": "ours, unconstrained",
        "tabular@eps": "ours, constrained where needed",
    }
    runs, rows = _runs(), []
    for plan in FOUR:
        cells = []
        for method in methods:
            found = runs[(runs["plan"] == plan) & (runs["method"] == method)]
            granted = found["certified_throughput"].mean()
            cells.append(
                f"{found['certified'].sum()} of {len(found)} certified, {granted:.3f} right, {found['budget_spent'].mean():.0%} of the budget"
            )
        rows.append([_name(plan), *cells])
    headings = ["dataset", *methods.values()]
    return table(headings, rows, left=headings)


def shifted() -> str:
    """Return JCW under shift where all accept as many rows."""
    methods = OURS_AND_BOOSTING | {
        "erm_early+certified": "MLP, early stop",
        "reliablenet_last@eps": "paper's ReliableNet",
    }
    numbers: Any = matched_coverage(STORE, PROFILE).numbers
    rows = []
    for plan in FOUR:
        by_method = numbers[numbers["dataset"] == plan].set_index("method")
        for coverage in ("0.5", "0.75"):
            values = [float(by_method.loc[method, f"jcw_{coverage}"]) for method in methods]
            cells = [bold(f"{value:.4f}", value == min(values)) for value in values]
            rows.append([_name(plan), coverage, *cells])
    band = SyntheticBand()
    tosses = 0.75 - (1.0 - band.in_band(SHIFTED_GAMMA))  # all rows outside the band come first
    found = table(["dataset", "coverage", *methods.values()], rows)
    return sentence("shifted", table=found, tosses=tosses / 2)


def default_times() -> str:
    """Return what our network costs beside the paper's."""
    return record_table(
        {
            "dataset": lambda r: DATASET_TITLES[r["dataset"]],
            "training rows": lambda r: f"{r['rows']:,}",
            "fit": lambda r: f"{r['fit']:.2f}",
            "predict": lambda r: f"{r['predict']:.2f}",
        },
        read_records("speed", "default_times"),
    )


def boosting_tried() -> str:
    """Return certified throughput of boosting with other settings, and ours on the same seeds."""
    columns = {}
    for plan, result in zip(FOUR, read_records("default", "boosting_tried"), strict=True):
        ours = float(np.mean(_granted(plan, "tabular+certified", PROFILE.seeds[: result["seeds"]])))
        columns[_name(plan)] = {"our network": ours} | result["throughput"]
    return _settings_by_set("setting", columns, "our network")


def default_tried() -> str:
    """Return certified throughput with changes that were not kept, and the time that fits took."""
    records, columns = read_records("default", "default_tried"), {}
    for result in records:
        values = {"as it is" if c == "none" else c: v for c, v in result["throughput"].items()}
        seeds = "1 seed" if result["seeds"] == 1 else f"{result['seeds']} seeds"
        columns[f"{DATASET_TITLES[result['dataset']]}, {seeds}"] = values
    times = [f"{c} {ratio:.1f}" for c, ratio in records[-1]["time"].items() if c != "none"]
    return sentence(
        "default_tried",
        table=_settings_by_set("change", columns, "as it is"),
        dataset=DATASET_TITLES[records[-1]["dataset"]],
        times=", ".join(times),
    )


def fold_shares() -> str:
    """Return certified throughput by the rule that says how many rows certify, as a share of ours."""
    records = read_records("default", "fold_shares")
    models = list(dict.fromkeys(record["model"] for record in records))
    rules = records[-1]["throughput"] | next(
        record["throughput"] for record in records if record["model"] == "our default"
    )
    ours = next(rule for rule in rules if rule.endswith("(as it is)"))
    counts = {model: sum(r["model"] == model for r in records) for model in models}
    names = {"our default": "our network"}  # it was measured without trees
    heads = [f"{names.get(model, model)}, {count} settings" for model, count in counts.items()]
    rows = []
    for rule in rules:
        cells = []
        for model in models:
            found = [r for r in records if r["model"] == model and rule in r["throughput"]]
            ratios = [r["throughput"][rule] / r["throughput"][ours] for r in found]
            cells.append(f"{np.mean(ratios):.3f}" if ratios else "-")
        rows.append([rule, *cells])
    return table(["certification rows", *heads], rows)


def fold_shares_by_set() -> str:
    """Return certified throughput of our network by table and rule."""
    records = [
        one for one in read_records("default", "fold_shares") if one["model"] == "our default"
    ]
    rules = list(records[0]["throughput"])
    names = DATASET_TITLES | {"breast_cancer": "breast cancer"}
    ours = next(rule for rule in rules if rule.endswith("(as it is)"))
    rows = (
        [f"{names[record['table']]}, {record['rows']:,} rows", *_better(record["throughput"], ours)]
        for record in records
    )
    return table(["table", *rules], rows)


def _better(values: Mapping[str, float], ours: str) -> list[str]:
    """Return cells, in bold what is better than ours."""
    return [bold(f"{value:.3f}", value > values[ours]) for value in values.values()]


def _settings_by_set(what: str, columns: dict[str, dict[str, float]], ours: str) -> str:
    """Return a table with a line for each setting, in bold what is better than ours."""
    settings = next(iter(columns.values()))
    cells = zip(*(_better(values, ours) for values in columns.values()), strict=True)
    rows = ([name, *line] for name, line in zip(settings, cells, strict=True))
    return table([what, *columns], rows)


def images_table() -> str:
    """Return certified throughput on images: digits, and the images of the paper's study."""
    found = {record["method"]: record for record in read_records("default", "images")}
    first = next(iter(found.values()))
    digits = [(one["mean"], one["sd"]) for one in found.values()]
    rows = [[f"{first['images']:,} digits, alpha {first['alpha']:g}", *_spread(digits)]]
    methods = {
        "default": "images+certified",
        "default, augmented": "images_augmented+certified",
        "paper's ReliableNet": "reliablenet+certified",
        "ERM, early stop": "erm_early+certified",
    }
    for plan in ("coloured_mnist", "cifar10"):
        granted = {name: _granted(plan, method) for name, method in methods.items()}
        values = [
            (np.mean(granted[name]), np.std(granted[name], ddof=1)) if name in granted else None
            for name in found
        ]
        images = _runs().set_index("plan").loc[plan, "train_rows"].iloc[0]
        rows.append([f"{_name(plan)}, {images:,} images", *_spread(values)])
    return table(["set", *found], rows)


def _spread(values: Sequence[tuple[Any, Any] | None]) -> list[str]:
    return ["-" if value is None else "{:.3f} ± {:.3f}".format(*value) for value in values]


def _granted(plan: str, method: str, seeds: Sequence[int] | None = None) -> list[float]:
    """Return certified throughput by seed, 0 where nothing was certified."""
    found = results.finished_runs(STORE, PROFILE, plan, method)
    return [
        results.certified_throughput(record)
        for seed, record in found.items()
        if seeds is None or seed in seeds
    ]


def _by_plan(plans: Sequence[str], methods: dict[str, str]) -> str:
    """Return certified throughput, a row for each plan and a titled column for each method."""
    rows = []
    for plan in plans:
        granted = [_granted(plan, method) for method in methods]
        rows.append([_name(plan), *_spread([(np.mean(g), np.std(g, ddof=1)) for g in granted])])
    return table(["dataset", *methods.values()], rows)


@cache
def _runs() -> pd.DataFrame:
    return results.results_frame(STORE, PROFILE)


def _name(plan: str) -> str:
    settings = PROFILE.plans[plan]
    return f"{settings.title}, alpha {settings.alpha:g}"


PARTS = {
    "results_in_short": results_in_short,
    "ablation": ablation,
    "band_optimum": band_optimum,
    "boosting_tried": boosting_tried,
    "certified_throughput": certified_throughput,
    "certified_by_set": certified_by_set,
    "default_times": default_times,
    "default_tried": default_tried,
    "fixed_threshold": fixed_threshold,
    "fold_shares": fold_shares,
    "fold_shares_by_set": fold_shares_by_set,
    "images_table": images_table,
    "shifted": shifted,
}
