"""Figures of the paper, from the results in a store; each is a picture and its numbers.

Every frame has a row for each method asked for, run or not: ``seeds`` says over how many runs the
mean and the standard deviation (of a sample, as in the paper) are taken, ``missing`` what is not
there. Runs of other settings than the profile's count as not there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from reliablenet._checks import parameter_error
from reliablenet.bench.drawing import (
    DATASET_NAMES,
    GROUPS,
    SUMMARY_METRICS,
    SWEEPS,
    StudyFigure,
    draw_curves,
    draw_groups,
    draw_summary,
    draw_sweep,
)
from reliablenet.bench.geometry import PLAN, confidence_by_distance, geometry
from reliablenet.bench.profiles import Profile
from reliablenet.bench.protocol import GRID
from reliablenet.bench.runner import finished_runs
from reliablenet.bench.store import Store
from reliablenet.bench.trainings import METHODS
from reliablenet.errors import InvalidDataError

PAPER_METHODS = (
    "erm",
    "temperature",
    "confidence_threshold",
    "conformal_risk_control",
    "selectivenet",
    "deep_gamblers",
    "reliablenet_last@eps",
)
PLACES = {"shifts": "shift", "groups": "group", "sweeps": "level"}  # of a record: of a frame


def shift_summary(
    store: Store,
    profile: Profile,
    metric: str = "budget_spent",
    *,
    methods: Sequence[str] = PAPER_METHODS,
) -> StudyFigure:
    """Show one of the paper's five summaries under the fixed shift of each dataset.

    Parameters
    ----------
    store : Store
    profile : Profile
    metric : {"budget_spent", "coverage", "accuracy_accepted", "ece", "aurc"}
        ``budget_spent`` is JCW / alpha. It and coverage come together, whichever is asked for: JCW
        alone can be had by deferring more.
    methods : sequence of str

    Returns
    -------
    StudyFigure
        Its frame has one row for each plan and method.
    """
    if metric not in SUMMARY_METRICS:
        raise parameter_error("metric", "shift_summary", f"be one of {[*SUMMARY_METRICS]}", metric)
    together = ["budget_spent", "coverage"]
    metrics = together if metric in together else [metric]
    table = _table(store, profile, [*profile.plans], methods, "shifts", metrics)
    return StudyFigure(table, partial(draw_summary, profile, metrics))


def risk_coverage(
    store: Store,
    profile: Profile,
    plan: str | None = None,
    part: str = "shift",
    *,
    methods: Sequence[str] = PAPER_METHODS,
) -> StudyFigure:
    """Show the error rate of accepted rows at every coverage.

    Parameters
    ----------
    store : Store
    profile : Profile
    plan : str, optional
        By default a panel for each plan of the profile.
    part : {"shift", "certification"}
    methods : sequence of str
        Those of one training that rank rows alike share one curve and one line of the legend.

    Returns
    -------
    StudyFigure
        Its frame has 200 rows for each plan and method: ``risk`` by ``coverage``.
    """
    parts = ("certification", "shift")
    if part not in parts:
        raise parameter_error("part", "risk_coverage", f"be one of {[*parts]}", part)
    plans = [*profile.plans] if plan is None else [_check_plan("risk_coverage", profile, plan)]
    tables = []
    for name in plans:
        for method in _check_methods(methods):
            runs = finished_runs(store, profile, name, method)
            curves = [
                store.curves(name, method, seed, record["hash"])[parts.index(part)]
                for seed, record in runs.items()
            ]
            risk = np.array(curves, dtype=float).reshape(-1, len(GRID))
            columns: dict[str, Any] = {"plan": name, "part": part, "method": method}
            columns |= {"seeds": len(runs), "missing": _missing(profile, runs), "coverage": GRID}
            for label, values in zip(("risk", "risk_sd"), _mean_sd(risk), strict=True):
                columns[label] = values
            tables.append(pd.DataFrame(columns))
    table = pd.concat(tables, ignore_index=True)
    _check_any(store, profile, plans, table)
    return StudyFigure(table, partial(draw_curves, profile))


def by_group(
    store: Store, profile: Profile, plan: str, *, methods: Sequence[str] = PAPER_METHODS
) -> StudyFigure:
    """Show JCW and coverage on each group of the shifted rows, in the dataset's order.

    Parameters
    ----------
    store : Store
    profile : Profile
    plan : str
        Of Adult (women by education), German Credit (age) or UNSW-NB15 (family of attacks).
    methods : sequence of str

    Returns
    -------
    StudyFigure
        Its frame has one row for each group and method.
    """
    _check_plan("by_group", profile, plan, GROUPS)
    table = _table(store, profile, [plan], methods, "groups", ["jcw", "coverage"])
    return StudyFigure(table, partial(draw_groups, profile.plans[plan]))


def by_severity(
    store: Store, profile: Profile, plan: str, *, methods: Sequence[str] = PAPER_METHODS
) -> StudyFigure:
    """Show JCW and coverage along the sweep of a shift, from mild to severe.

    Parameters
    ----------
    store : Store
    profile : Profile
    plan : str
        Of Synthetic Band (width of the band), Coloured MNIST (how far colour tells the label) or
        CIFAR-10 (noise).
    methods : sequence of str

    Returns
    -------
    StudyFigure
        Its frame has one row for each level and method.
    """
    _check_plan("by_severity", profile, plan, SWEEPS)
    table = _table(store, profile, [plan], methods, "sweeps", ["jcw", "coverage"])
    table["level"] = table["level"].astype(float)
    return StudyFigure(table, partial(draw_sweep, profile.plans[plan]))


def _table(
    store: Store,
    profile: Profile,
    plans: Sequence[str],
    methods: Sequence[str],
    places: str,
    metrics: Sequence[str],
) -> pd.DataFrame:
    """Return mean and sd over seeds of measured values, one row a plan, place and method."""
    _check_methods(methods)
    rows = []
    for plan in plans:
        measured = {
            method: {
                seed: record["measured"][places]
                for seed, record in finished_runs(store, profile, plan, method).items()
            }
            for method in methods
        }
        order = [place for found in measured.values() for one in found.values() for place in one]
        names = list(dict.fromkeys(order)) or [""]
        for place in names[:1] if places == "shifts" else names:  # a study has one fixed shift
            for method, found in measured.items():
                here = {seed: one[place] for seed, one in found.items() if place in one}
                notes = [_missing(profile, here)]
                row: dict[str, Any] = {
                    "plan": plan,
                    "alpha": profile.plans[plan].alpha,
                    PLACES[places]: place,
                    "rows": np.mean([one["n"] for one in here.values()]) if here else np.nan,
                    "method": method,
                    "seeds": len(here),
                }
                for metric in metrics:
                    values = np.array([one[metric] for one in here.values()], dtype=float)
                    row[metric], row[f"{metric}_sd"] = _mean_sd(values[~np.isnan(values)])
                    if undefined := int(np.isnan(values).sum()):  # as accuracy if none is accepted
                        notes.append(f"{metric} undefined in {undefined} of them")
                rows.append(row | {"missing": "; ".join(filter(None, notes))})
    table = pd.DataFrame(rows)
    _check_any(store, profile, plans, table)
    return table


def _mean_sd(values: np.ndarray[Any, Any]) -> tuple[Any, Any]:
    """Return mean and sample sd over the first axis, NaN where there is too little for them."""
    blank = np.full(values.shape[1:], np.nan)[()]  # a number if there is one value a run
    mean = values.mean(axis=0) if len(values) else blank
    return mean, values.std(axis=0, ddof=1) if len(values) > 1 else blank


def _missing(profile: Profile, found: Iterable[int]) -> str:
    absent = [str(seed) for seed in profile.seeds if seed not in set(found)]
    return f"seeds {', '.join(absent)}" if absent else ""


def _check_any(store: Store, profile: Profile, plans: Sequence[str], table: pd.DataFrame) -> None:
    if not table["seeds"].any():
        raise InvalidDataError(
            f"No results of profile {profile.name} for {', '.join(plans)} in {store.folder}. Run: "
            f"reliablenet bench run --profile {profile.name} --results {store.folder.parent} "
            f"--datasets {','.join(plans)}"
        )


def _check_plan(
    owner: str, profile: Profile, plan: str, datasets: Iterable[str] = DATASET_NAMES
) -> str:
    known = [name for name, one in profile.plans.items() if one.dataset in datasets]
    if plan not in known:
        raise parameter_error("plan", owner, f"be one of {known} in {profile.name}", plan)
    return plan


def _check_methods(methods: Sequence[str]) -> Sequence[str]:
    unknown = [method for method in methods if method not in METHODS]
    if unknown or not methods:
        raise parameter_error("methods", "figures", f"be among {[*METHODS]}", unknown or [*methods])
    return methods


def _on_band(function: Callable[..., StudyFigure], store: Store, profile: Profile) -> StudyFigure:
    """Draw what needs no store, with the profile's first seed and its settings for the band."""
    return function(profile.seeds[0], plan=profile.plans.get("synthetic_band", PLAN))


# All that a report shows. Each raises a ReliableNetError where there is nothing for it to show.
FIGURES: dict[str, Callable[[Store, Profile], StudyFigure]] = {
    "shift_jcw_and_coverage": shift_summary,
    "shift_accuracy_accepted": partial(shift_summary, metric="accuracy_accepted"),
    "shift_ece": partial(shift_summary, metric="ece"),
    "shift_aurc": partial(shift_summary, metric="aurc"),
    "risk_coverage_shift": risk_coverage,
    "risk_coverage_certification": partial(risk_coverage, part="certification"),
    "groups_adult": partial(by_group, plan="adult"),
    "groups_german_credit": partial(by_group, plan="german_credit"),
    "groups_unsw_nb15": partial(by_group, plan="unsw_nb15"),
    "groups_unsw_nb15-alpha-0.01": partial(by_group, plan="unsw_nb15-alpha-0.01"),
    "severity_synthetic_band": partial(by_severity, plan="synthetic_band"),
    "severity_coloured_mnist": partial(by_severity, plan="coloured_mnist"),
    "severity_cifar10": partial(by_severity, plan="cifar10"),
    "confidence_by_distance": partial(_on_band, confidence_by_distance),
    "geometry": partial(_on_band, geometry),
}
