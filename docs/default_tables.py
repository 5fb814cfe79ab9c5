"""Tables of docs/explanations/default.md, from committed results."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import reliablenet as rn
from reliablenet.bench import load_profile
from reliablenet.bench.profiles import DATASET_TITLES
from reliablenet.bench.results import certified_throughput, finished_runs, results_frame
from reliablenet.bench.tables import matched_coverage
from reliablenet.datasets import SyntheticBand

ROOT = Path(__file__).parents[1]
PROFILE = load_profile("cpu")
STORE = PROFILE.open_store(ROOT / "results")
SHIFTED_GAMMA = 0.7  # of Synthetic Band's shift
FOUR = ("synthetic_band", "german_credit", "adult", "unsw_nb15-alpha-0.01")
PARTS_OF_IT = {
    "tabular+certified": "whole",
    "tabular-encoding+certified": "no bins",
    "tabular-ensemble+certified": "one member",
    "tabular-average+certified": "no average",
    "tabular-folds+certified": "no last fit",
    "tabular_constrained+certified": "constrained",
}


def certified_by_set() -> str:
    """Return certified throughput of our default, boosting and the paper's, by dataset."""
    methods = {
        "tabular+certified": "our default",
        "boosting+certified": "boosting",
        "boosting_all+certified": "boosting on 85 %",
        "erm_early+certified": "MLP, early stop",
        "reliablenet+certified": "paper's ReliableNet",
    }
    return _by_plan((*FOUR[:3], "unsw_nb15", FOUR[3]), methods)


def band_optimum() -> str:
    """Return how near our default comes to what is possible on Synthetic Band."""
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
    return (
        f"On Synthetic Band the truth is known. A rule that knows the boundary, certified on the same rows, acts rightly on {known:.4f} of them; our default on {ours:.4f}, "
        f"which is {ours / known:.3f} of that. The most that any rule with JCW within alpha can reach on the source, if nothing had to be proved, is {best:.4f}; our default has {ours / best:.4f} of it.\n"
    )


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
    lines = ["| dataset | " + " | ".join(methods.values()) + " |", "| --- |" + " --- |" * 3]
    runs = _runs()
    for plan in FOUR:
        cells = []
        for method in methods:
            found = runs[(runs["plan"] == plan) & (runs["method"] == method)]
            granted = found["certified_throughput"].mean()
            cells.append(
                f"{found['certified'].sum()} of {len(found)} certified, {granted:.3f} right, {found['budget_spent'].mean():.0%} of the budget"
            )
        lines.append(_line(_name(plan), cells))
    return "\n".join(lines) + "\n"


def shifted() -> str:
    """Return JCW under shift where all accept as many rows."""
    methods = {
        "tabular+certified": "our default",
        "boosting+certified": "boosting",
        "erm_early+certified": "MLP, early stop",
        "reliablenet_last@eps": "paper's ReliableNet",
    }
    numbers = matched_coverage(STORE, PROFILE).numbers
    lines = _heading(["dataset", "coverage", *methods.values()])
    for plan in FOUR:
        found = numbers[numbers["dataset"] == plan].set_index("method")
        for coverage in ("0.5", "0.75"):
            values = [float(found.loc[method, f"jcw_{coverage}"]) for method in methods]
            cells = _bold([f"{value:.4f}" for value in values], int(np.argmin(values)))
            lines.append(_line(_name(plan), [coverage, *cells]))
    band = SyntheticBand()
    tosses = 0.75 - (1.0 - band.in_band(SHIFTED_GAMMA))  # all rows outside the band come first
    return (
        "\n".join(lines)
        + f"\n\nOn Synthetic Band a rule that knows the boundary expects {tosses / 2:.4f} at coverage 0.75, half of the coin tosses "
        "that it has to accept: differences there are chance.\n"
    )


def default_times() -> str:
    """Return what our default costs beside the paper's."""
    lines = _heading(["dataset", "training rows", "fit", "predict"])
    for name, found in _measured("default_times_results.json").items():
        cells = [f"{found['rows']:,}", f"{found['fit']:.2f}", f"{found['predict']:.2f}"]
        lines.append(_line(DATASET_TITLES[name], cells))
    return "\n".join(lines) + "\n"


def untuned() -> str:
    """Return how our default does on tables that nobody tuned it on."""
    lines = _heading(["table", "rows", "alpha", "our default", "best method", "share of it"])
    for name, found in _measured("untuned_results.json").items():
        ours, by_method = found["throughput"]["reliablenet"], found["throughput"]
        best = max(by_method, key=lambda method: by_method[method])
        share = f"{ours / by_method[best]:.3f}"
        cells = [f"{found['rows']:,}", f"{found['alpha']:g}", f"{ours:.3f}"]
        lines.append(_line(name, [*cells, f"{best} {by_method[best]:.3f}", share]))
    return "\n".join(lines) + "\n"


def boosting_tried() -> str:
    """Return certified throughput of boosting with other settings, and ours on the same seeds."""
    columns = {}
    for plan, result in zip(FOUR, _measured("boosting_tried_results.json").values(), strict=True):
        ours = float(np.mean(_granted(plan, "tabular+certified", PROFILE.seeds[: result["seeds"]])))
        columns[_name(plan)] = {"our default": ours} | result["throughput"]
    return _settings_by_set("setting", columns, "our default")


def default_tried() -> str:
    """Return certified throughput with changes that were not kept, and the time that fits took."""
    name = "default_tried_results.json"
    largest, result = list(_measured(name).items())[-1]
    times = [
        f"{change} {ratio:.1f}" for change, ratio in result["time"].items() if change != "none"
    ]
    return (
        _one_change(name, "none")
        + f"\nTime of a fit on {DATASET_TITLES[largest]}, as it is = 1: {', '.join(times)}.\n"
    )


def fold_shares() -> str:
    """Return certified throughput by the rule that says how many rows certify, as a share of ours."""
    records = list(_measured("fold_shares_results.json").values())
    models = list(dict.fromkeys(record["model"] for record in records))
    rules = records[-1]["throughput"] | next(
        record["throughput"] for record in records if record["model"] == "our default"
    )
    ours = next(rule for rule in rules if rule.endswith("(as it is)"))
    heads = [f"{model}, {sum(r['model'] == model for r in records)} settings" for model in models]
    lines = _heading(["certification rows", *heads])
    for rule in rules:
        cells = []
        for model in models:
            found = [r for r in records if r["model"] == model and rule in r["throughput"]]
            ratios = [r["throughput"][rule] / r["throughput"][ours] for r in found]
            cells.append(f"{np.mean(ratios):.3f}" if ratios else "-")
        lines.append(_line(rule, cells))
    return "\n".join(lines) + "\n"


def fold_shares_by_set() -> str:
    """Return certified throughput of our default by table and rule."""
    records = [
        record
        for record in _measured("fold_shares_results.json").values()
        if record["model"] == "our default"
    ]
    rules = list(records[0]["throughput"])
    names = DATASET_TITLES | {"breast_cancer": "breast cancer"}
    columns = {
        f"{names[record['table']]}, {record['rows']:,} rows": record["throughput"]
        for record in records
    }
    lines = _heading(["table", *rules])
    ours = next(rule for rule in rules if rule.endswith("(as it is)"))
    for name, values in columns.items():
        cells = [f"{values[rule]:.3f}" for rule in rules]
        bold = [
            f"**{cell}**" if values[rule] > values[ours] else cell
            for rule, cell in zip(rules, cells, strict=True)
        ]
        lines.append(_line(name, bold))
    return "\n".join(lines) + "\n"


def _one_change(name: str, usual: str) -> str:
    """Return a table of results that differ from the usual in one setting."""
    columns = {}
    for dataset, result in _measured(name).items():
        values = {"as it is" if c == usual else c: v for c, v in result["throughput"].items()}
        seeds = "1 seed" if result["seeds"] == 1 else f"{result['seeds']} seeds"
        columns[f"{DATASET_TITLES[dataset]}, {seeds}"] = values
    return _settings_by_set("change", columns, "as it is")


def _settings_by_set(what: str, columns: dict[str, dict[str, float]], ours: str) -> str:
    """Return a table with a line for each setting, in bold what is better than ours."""
    lines = _heading([what, *columns])
    for setting in next(iter(columns.values())):
        pairs = ((values[setting], values[ours]) for values in columns.values())
        cells = [f"**{value:.3f}**" if value > usual else f"{value:.3f}" for value, usual in pairs]
        lines.append(_line(setting, cells))
    return "\n".join(lines) + "\n"


def images_table() -> str:
    """Return certified throughput on images: digits, and the images of the paper's study."""
    found = _measured("images_results.json")
    lines = _heading(["set", *found["throughput"]])
    values = [(one["mean"], one["sd"]) for one in found["throughput"].values()]
    lines.append(_line(f"{found['images']:,} digits, alpha {found['alpha']:g}", _spread(values)))
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
            for name in found["throughput"]
        ]
        images = _runs().set_index("plan").loc[plan, "train_rows"].iloc[0]
        lines.append(_line(f"{_name(plan)}, {images:,} images", _spread(values)))
    return "\n".join(lines) + "\n"


def _spread(values: Sequence[tuple[float, float] | None]) -> list[str]:
    return ["-" if value is None else "{:.3f} ± {:.3f}".format(*value) for value in values]


def _granted(plan: str, method: str, seeds: Sequence[int] | None = None) -> list[float]:
    """Return certified throughput by seed, 0 where nothing was certified."""
    found = finished_runs(STORE, PROFILE, plan, method)
    return [
        certified_throughput(record)
        for seed, record in found.items()
        if seeds is None or seed in seeds
    ]


def _by_plan(plans: Sequence[str], methods: dict[str, str]) -> str:
    """Return certified throughput, a row for each plan and a titled column for each method."""
    lines = _heading(["dataset", *methods.values()])
    for plan in plans:
        granted = [_granted(plan, method) for method in methods]
        lines.append(
            _line(_name(plan), _spread([(np.mean(g), np.std(g, ddof=1)) for g in granted]))
        )
    return "\n".join(lines) + "\n"


@cache
def _runs() -> pd.DataFrame:
    return results_frame(STORE, PROFILE)


def _name(plan: str) -> str:
    settings = PROFILE.plans[plan]
    return f"{settings.title}, alpha {settings.alpha:g}"


def _bold(cells: list[str], place: int) -> list[str]:
    return [f"**{cell}**" if number == place else cell for number, cell in enumerate(cells)]


def _heading(names: list[str]) -> list[str]:
    return ["| " + " | ".join(names) + " |", "| --- |" + " --: |" * (len(names) - 1)]


def _line(name: str, cells: list[str]) -> str:
    return f"| {name} | " + " | ".join(cells) + " |"


def _measured(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / "benchmarks" / name).read_text())
    return found


DEFAULT = {
    "ablation": ablation,
    "band_optimum": band_optimum,
    "boosting_tried": boosting_tried,
    "certified_by_set": certified_by_set,
    "default_times": default_times,
    "default_tried": default_tried,
    "fixed_threshold": fixed_threshold,
    "fold_shares": fold_shares,
    "fold_shares_by_set": fold_shares_by_set,
    "images_table": images_table,
    "shifted": shifted,
    "untuned": untuned,
}
