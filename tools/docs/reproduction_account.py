"""The figures of the account on docs/reproduction.md: what reproduced, what did not and why, what helps where.

The sentences stand in templates/reproduction.md. Every number in them is computed here, from the committed records and
from the paper's own tables; nothing is trained.
"""

from __future__ import annotations

import itertools
import textwrap
from typing import Any

import numpy as np
import pandas as pd
import torch

import reliablenet as rn
from reliablenet.bench import PROFILES, Profile
from reliablenet.bench.methods import METHODS, Point
from reliablenet.bench.profiles import DATASET_TITLES
from reliablenet.bench.tables import TITLES, agreement, paper_values, ranking
from reliablenet.certificate import rows_for_errors
from reliablenet.certificate.planning import largest_certifiable_errors
from reliablenet.metrics.measures import area_under_risk_coverage
from reliablenet.risk.surrogate import M1, M2
from reliablenet.training.networks import mlp
from reliablenet.training.schedule import Schedule
from studies.runner import read_records
from tools.docs.markdown import sentence, table

PAPERS = "reliablenet_last@eps"
REDUCED = (
    "network",
    "width",
    "epochs",
    "warmup_epochs",
    "epochs_per_stage",
    "max_stages",
    "dual_rate",
)
CHANCE = 0.2  # an accuracy that no network of these datasets has that has learned anything
COURSE = ["highest", "feasible_from", "last", "jcw_train", "jcw_selection"]
ABLATED = ("erm@eps", "warmup@eps", PAPERS)  # without, with some and with all of the method


def values(store: Any, runs: pd.DataFrame, profile: Profile) -> dict[str, Any]:
    """Return all figures of the account by the names that the template has for them."""
    means = runs.groupby(["plan", "method"]).mean(numeric_only=True)
    mean = {plan: means.loc[plan].to_dict("index") for plan in dict.fromkeys(runs["plan"])}
    return (
        {"mean": mean, "paper": paper_values(), "schedule": Schedule()}
        | {"reproduced": reproduced(store, profile), "reductions": _reductions(profile)}
        | why_not(runs, mean, profile)
        | contradictions(mean)
        | {"ablation": ablation(mean), "under_shift": under_shift(runs, profile)}
        | what_helps(store, runs, profile)
    )


def reproduced(store: Any, profile: Profile) -> str:
    """Return for each dataset which of the paper's figures for ReliableNet came out."""
    numbers: Any = agreement(store, profile).numbers
    lines = []
    for plan, rows in numbers.groupby("dataset", sort=False):
        far = rows[rows["distance"] > 2]
        near = rows[rows["distance"] <= 2]["measure"]
        misses = [
            f"{row.measure} {_number(row.ours, row.measure)} against {_number(row.paper, row.measure)}"
            for row in far.itertuples()
        ]
        cells = [", ".join(near) or "nothing", "; ".join(misses) or "nothing"]
        lines.append([_name(plan, profile), *cells])
    return _table(["dataset", "agrees in", "does not agree in (ours against the paper's)"], lines)


def why_not(runs: pd.DataFrame, mean: Any, profile: Profile) -> dict[str, Any]:
    """Return the measurements behind the reasons why rows do not agree."""
    courses = pd.DataFrame(read_records("default", "courses"))
    shown: Any = courses.groupby("plan", sort=False)[COURSE].mean()
    headings = {
        "multiplier, highest": "{:.1f}",
        "surrogate within alpha from epoch": "{:.0f}",
        "multiplier, last epoch": "{:.1f}",
        "JCW of training rows, last epoch": "{:.4f}",
        "JCW of selection rows, last epoch": "{:.4f}",
    }
    lines = [
        [DATASET_TITLES[plan], *map(str.format, headings.values(), row)]
        for plan, row in shown.iterrows()
    ]
    band = mean["synthetic_band"][PAPERS]
    broken = [_broken(runs, plan, profile) for plan in dict.fromkeys(runs["plan"])]
    return {
        "courses": _table(["dataset", *headings], lines),
        "processor": " and ".join(sorted(set(courses["processor"]))),
        "german": shown.loc["german_credit"],
        "band": shown.loc["synthetic_band"],
        "papers_mistakes": paper_values()["synthetic_band"][PAPERS]["jcw"][0] * band["n"],
        "broken": "\n\n".join(filter(None, broken)),
    }


def _broken(runs: pd.DataFrame, plan: str, profile: Profile) -> str:
    """Return on how many seeds a method broke down on a dataset; nothing if none did."""
    rows, alpha = runs[runs["plan"] == plan], profile.plans[plan].alpha
    constrained, selective = (rows[rows["method"] == name] for name in (PAPERS, "selectivenet"))
    parts = []
    if count := int((constrained["accuracy"] < CHANCE).sum()):
        weight = Schedule().multiplier_max / max(alpha, 0.01)
        found = {"count": count, "runs": len(constrained), "chance": CHANCE}
        parts.append(sentence("collapsed", **found, alpha=alpha, weight=weight).strip())
    if count := int((selective["coverage"] == 0).sum()):
        parts.append(sentence("silent", count=count, runs=len(selective)).strip())
    return f"* **{_name(plan, profile)}.** {' '.join(parts)}" if parts else ""


def contradictions(mean: Any) -> dict[str, Any]:
    """Return what is computed to show where the paper contradicts itself."""
    published, schedule = paper_values(), Schedule()
    german_rows = int(mean["german_credit"][PAPERS]["n"])
    affords = largest_certifiable_errors(german_rows, 0.05)
    counts = _counts_behind(published["german_credit"][PAPERS]["jcw"], german_rows)
    certified = {sum(k <= affords for k in found) for found in counts}
    adult_rows = int(mean["adult"][PAPERS]["n"])
    cheapest = float(rn.zeta(torch.tensor(-0.5, dtype=torch.float64), schedule.tau, M1, M2))
    band_rows, parameters = 5000, sum(weights.numel() for weights in mlp(10, 2).parameters())
    slack = rn.uniform_slack(
        band_rows, 0.05, schedule.tau_min, n_parameters=parameters, lipschitz=1.0, radius=1.0
    )
    return {
        "german_rows": german_rows,
        "german_counts": " or ".join(map(str, counts)),
        "german_affords": affords,
        "german_certified": " or ".join(map(str, sorted(certified))),
        "rows_for_none": rows_for_errors(0, 0.05),
        "rows_for_two": rows_for_errors(2, 0.05),
        "lowest_aurc": _perfect_aurc(published["adult"][PAPERS]["accuracy"][0], adult_rows),
        "narrowest": M1 * schedule.tau_min,
        "cheapest_mistake": cheapest,
        "most_errors": 0.05 / cheapest,
        "parameters": parameters,
        "band_rows": band_rows,
        "slack": slack,
        "rows_for_hoeffding": next(
            n for n in itertools.count(1) if rn.hoeffding_upper(0.0, n, 0.05, 1.0) <= 0.05
        ),
    }


def what_helps(store: Any, runs: pd.DataFrame, profile: Profile) -> dict[str, Any]:
    """Return, by certified throughput, what constrained training adds and what does not."""
    rivals = {"erm": "erm+certified", "erm_early": "erm_early+certified"}
    rivals["boosting"] = "boosting+certified"
    better: dict[str, list[str]] = {rival: [] for rival in rivals}
    numbers: Any = ranking(store, profile).numbers
    lines = []
    for plan, rows in numbers.groupby("dataset", sort=False):
        granted = _granted(runs, plan)
        ours = max(
            ("reliablenet+certified", "reliablenet_last+certified"), key=lambda m: granted[m].mean()
        )
        cells = []
        for rival, method in rivals.items():
            if method not in granted:
                cells.append("-")
                continue
            difference = (granted[ours] - granted[method]).dropna()
            sure = "sure" if (difference > 0).all() or (difference < 0).all() else "not sure"
            cells.append(f"{difference.mean():+.3f} ({sure})")
            if (difference > 0).all():
                better[rival].append(_name(plan, profile))
        best = rows.iloc[0]
        first = f"{METHODS[best['method']].classifier} {best['throughput']:.3f}"
        lines.append([_name(plan, profile), first, f"{granted[ours].mean():.3f}", *cells])
    headings = ["dataset", "best", "ReliableNet (its better checkpoint)"]
    headings += ["minus ERM trained to the end", "minus early-stopped ERM", "minus boosting"]
    where = {rival: ", ".join(plans) or "no dataset" for rival, plans in better.items()}
    verdict = "worth_its_cost" if better["erm_early"] else "not_worth_its_cost"
    return {
        "helps": _table(headings, lines),
        "better_than": where,
        "verdict": sentence(verdict, datasets=where["erm_early"]).strip(),
    }


def under_shift(runs: pd.DataFrame, profile: Profile) -> str:
    """Return what rules spend of their budget under shift, and at what coverage."""
    methods = [*ABLATED, "erm_early+certified", "boosting+certified"]
    lines = []
    for plan in dict.fromkeys(runs["plan"]):
        cells = []
        for method in methods:
            rows = runs[(runs["plan"] == plan) & (runs["method"] == method)]
            spent = (rows["jcw_shift"] / rows["alpha"]).mean()
            cells.append(
                f"{spent:.2f} at {rows['coverage_shift'].mean():.2f}" if len(rows) else "-"
            )
        lines.append([_name(plan, profile), *cells])
    return _table(["dataset", *methods], lines)


def ablation(mean: Any) -> str:
    """Return what training adds at the same threshold, indented as part of a list."""
    lines = [
        [
            DATASET_TITLES.get(plan, plan),
            *(f"{found[m]['coverage']:.3f}, {found[m]['budget_spent']:.2f}" for m in ABLATED),
        ]
        for plan, found in mean.items()
    ]
    headings = ["dataset", *(f"{method}: coverage, JCW/alpha" for method in ABLATED)]
    return textwrap.indent(_table(headings, lines), "   ")


def _table(headings: list[str], lines: list[list[str]]) -> str:
    return table(headings, lines, left=headings)


def _counts_behind(jcw: list[float], n: int) -> list[tuple[int, ...]]:
    """Return the error counts of five seeds whose mean and deviation round to the paper's."""
    most = 12
    return [
        counts
        for counts in itertools.combinations_with_replacement(range(most + 1), 5)
        if round(float(np.mean(counts)) / n, 4) == jcw[0]
        and round(float(np.std(counts, ddof=1)) / n, 4) == jcw[1]
    ]


def _perfect_aurc(accuracy: float, n: int) -> float:
    """Return the AURC of a ranking that puts every mistake last."""
    wrong = np.arange(n) >= round(accuracy * n)
    return area_under_risk_coverage(np.linspace(1.0, 0.0, n), wrong)


def _granted(runs: pd.DataFrame, plan: str) -> pd.DataFrame:
    rows = runs[(runs["plan"] == plan) & (runs["point"] == Point.CERTIFIED)]
    return rows.pivot(index="seed", columns="method", values="certified_throughput")


def _name(plan: str, profile: Profile) -> str:
    settings = profile.plans[plan]
    alpha = "" if settings.dataset == plan else f", alpha {settings.alpha:g}"
    return f"{settings.title}{alpha}"


def _number(value: float, title: str) -> str:
    name = next(name for name, text in TITLES.items() if text == title)
    return f"{value:.4f}" if name in ("jcw", "aurc_shift") else f"{value:.3f}"


def _shown(value: Any) -> str:
    """Return a setting of a plan as the page has it; nothing for None."""
    return "" if value is None else f"{value:.3g}" if isinstance(value, float) else str(value)


def _reductions(profile: Profile) -> str:
    """Say how the images of the profile differ from the paper's."""
    parts = []
    for name, plan in profile.plans.items():
        full = PROFILES["paper"].plans[name]
        changes = [
            f"{key} {_shown(getattr(plan, key))} instead of {_shown(getattr(full, key)) or 'the full network'}"
            for key in REDUCED
            if getattr(plan, key) != getattr(full, key)
        ]
        if plan.data != full.data:
            changes.insert(0, f"{plan.data['images']:,} training images instead of all")
        if changes:
            parts.append(f"{_name(name, profile)}: {', '.join(changes)}")
    return "; ".join(parts)
