"""Figures of the paper, from the results in a store; each is a picture and its numbers.

Every frame has a row for each method asked for, run or not: ``seeds`` says over how many runs the
mean and the standard deviation (of a sample, as in the paper) are taken, ``missing`` what is not
there. Runs of other settings than the profile's count as not there.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from reliablenet._checks import parameter_error
from reliablenet._files import write_atomically
from reliablenet.bench.methods import GEOMETRY, METHODS, paper_methods
from reliablenet.bench.plots import (
    GROUPS,
    SUMMARY_METRICS,
    SWEEPS,
    StudyFigure,
    draw_curves,
    draw_distance,
    draw_groups,
    draw_plane,
    draw_summary,
    draw_sweep,
)
from reliablenet.bench.profiles import Profile
from reliablenet.bench.results import (
    CURVES,
    NoRunsError,
    finished_curves,
    finished_runs,
    geometry_run,
    stack_curves,
)
from reliablenet.bench.store import GRID, Curves, Record, Store
from reliablenet.datasets import DATASETS
from reliablenet.errors import InvalidDataError

PLACES = {"shifts": "shift", "groups": "group", "sweeps": "level"}  # of a record: of a frame


def shift_summary(
    store: Store,
    profile: Profile,
    metric: str = "budget_spent",
    *,
    methods: Sequence[str] | None = None,
) -> StudyFigure:
    """Show one of the paper's five summaries under the fixed shift of each dataset.

    Parameters
    ----------
    store : Store
    profile : Profile
    metric : {"budget_spent", "coverage", "accuracy_accepted", "ece", "aurc"}
        ``budget_spent`` is JCW / alpha. It and coverage come together, whichever is asked for: JCW
        alone can be had by deferring more.
    methods : sequence of str, optional
        By default the paper's.

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
    methods: Sequence[str] | None = None,
) -> StudyFigure:
    """Show the error rate of accepted rows at every coverage.

    Parameters
    ----------
    store : Store
    profile : Profile
    plan : str, optional
        By default a panel for each plan of the profile.
    part : {"shift", "certification"}
    methods : sequence of str, optional
        By default the paper's. Those of one training that rank rows alike share one curve and one line of the legend.

    Returns
    -------
    StudyFigure
        Its frame has 200 rows for each plan and method: ``risk`` by ``coverage``.
    """
    if part not in CURVES:
        raise parameter_error("part", "risk_coverage", f"be one of {[*CURVES]}", part)
    plans = [*profile.plans] if plan is None else [_check_plan("risk_coverage", profile, plan)]
    tables = []
    for name in plans:
        for method in _check_methods(methods):
            curves = finished_curves(store, profile, name, method, part)
            columns: dict[str, Any] = {"plan": name, "part": part, "method": method}
            columns |= {"seeds": len(curves), "missing": _missing(profile, curves)}
            columns["coverage"] = GRID
            columns["risk"], columns["risk_sd"] = _mean_sd(stack_curves(curves))
            tables.append(pd.DataFrame(columns))
    table = pd.concat(tables, ignore_index=True)
    if not table["seeds"].any():
        raise NoRunsError(store, profile, plans)
    return StudyFigure(table, partial(draw_curves, profile))


def by_group(
    store: Store, profile: Profile, plan: str, *, methods: Sequence[str] | None = None
) -> StudyFigure:
    """Show JCW and coverage on each group of the shifted rows, in the dataset's order.

    Parameters
    ----------
    store : Store
    profile : Profile
    plan : str
        Of Adult (women by education), German Credit (age) or UNSW-NB15 (family of attacks).
    methods : sequence of str, optional
        By default the paper's.

    Returns
    -------
    StudyFigure
        Its frame has one row for each group and method.
    """
    _check_plan("by_group", profile, plan, GROUPS)
    table = _table(store, profile, [plan], methods, "groups", ["jcw", "coverage"])
    return StudyFigure(table, partial(draw_groups, profile.plans[plan]))


def by_severity(
    store: Store, profile: Profile, plan: str, *, methods: Sequence[str] | None = None
) -> StudyFigure:
    """Show JCW and coverage along the sweep of a shift, from mild to severe.

    Parameters
    ----------
    store : Store
    profile : Profile
    plan : str
        Of Synthetic Band (width of the band), Coloured MNIST (how far colour tells the label) or
        CIFAR-10 (noise).
    methods : sequence of str, optional
        By default the paper's.

    Returns
    -------
    StudyFigure
        Its frame has one row for each level and method.
    """
    _check_plan("by_severity", profile, plan, SWEEPS)
    table = _table(store, profile, [plan], methods, "sweeps", ["jcw", "coverage"])
    table["level"] = table["level"].astype(float)
    return StudyFigure(table, partial(draw_sweep, profile.plans[plan]))


def confidence_by_distance(store: Store, profile: Profile) -> StudyFigure:
    """Show the confidence of ERM and ReliableNet on Synthetic Band by distance to the boundary.

    The distance is |w·x| on the 3,000 certification rows; within the band labels are coin tosses.

    Parameters
    ----------
    store : Store
    profile : Profile

    Returns
    -------
    StudyFigure
        Its frame has one row for each method and bin: the bin's middle as ``distance``, its
        ``rows``, mean and sd of ``confidence`` over them, their ``accuracy``, and ``threshold``,
        the eps* of the warmed-up network.
    """
    record, _ = _read_geometry(store, profile)
    return StudyFigure(pd.DataFrame(record["distance"]), draw_distance)


def geometry(store: Store, profile: Profile) -> StudyFigure:
    """Show the confident errors of ERM and ReliableNet on Synthetic Band in the plane.

    Both act at the same threshold: eps*, which the warmed-up network sets on the selection fold.

    Parameters
    ----------
    store : Store
    profile : Profile

    Returns
    -------
    StudyFigure
        Its frame has one row for each method: on the 3,000 certification rows those ``accepted``,
        the confident ``errors`` among them, how many of these lie ``in_band``, ``coverage``, ``jcw``.
    """
    record, backgrounds = _read_geometry(store, profile)
    plane = record["plane"]
    draw = partial(draw_plane, plane=plane, backgrounds=backgrounds, alpha=record["alpha"])
    return StudyFigure(pd.DataFrame(plane["rows"]), draw)


def _read_geometry(store: Store, profile: Profile) -> tuple[Record, Curves]:
    run = geometry_run(profile)
    if run is None:
        raise InvalidDataError(
            f"The profile {profile.name!r} has no plan of Synthetic Band, which this figure is about. "
            "Choose another profile."
        )
    record = run.find(store)
    if record is None:
        raise NoRunsError(store, profile, [run.plan_name], GEOMETRY)
    return record, store.curves(run.plan_name, GEOMETRY, run.seed, record["hash"])


def _table(
    store: Store,
    profile: Profile,
    plans: Sequence[str],
    methods: Sequence[str] | None,
    places: str,
    metrics: Sequence[str],
) -> pd.DataFrame:
    """Return mean and sd over seeds of measured values, one row a plan, place and method."""
    chosen = _check_methods(methods)
    rows = []
    for plan in plans:
        measured = {
            method: {
                seed: record["measured"][places]
                for seed, record in finished_runs(store, profile, plan, method).items()
            }
            for method in chosen
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
    if not table["seeds"].any():
        raise NoRunsError(store, profile, plans)
    return table


def _mean_sd(values: np.ndarray[Any, Any]) -> tuple[Any, Any]:
    """Return mean and sample sd over the first axis, NaN where there is too little for them."""
    blank = np.full(values.shape[1:], np.nan)[()]  # a number if there is one value a run
    mean = values.mean(axis=0) if len(values) else blank
    return mean, values.std(axis=0, ddof=1) if len(values) > 1 else blank


def _missing(profile: Profile, found: Iterable[int]) -> str:
    absent = [str(seed) for seed in profile.seeds if seed not in set(found)]
    return f"seeds {', '.join(absent)}" if absent else ""


def _check_plan(owner: str, profile: Profile, plan: str, datasets: Iterable[str] = DATASETS) -> str:
    known = [name for name, one in profile.plans.items() if one.dataset in datasets]
    if plan not in known:
        raise parameter_error("plan", owner, f"be one of {known} in {profile.name}", plan)
    return plan


def _check_methods(methods: Sequence[str] | None) -> Sequence[str]:
    if methods is None:
        return paper_methods()
    unknown = [method for method in methods if method not in METHODS]
    if unknown or not methods:
        raise parameter_error("methods", "figures", f"be among {[*METHODS]}", unknown or [*methods])
    return methods


@dataclass(frozen=True)
class Entry:
    """A figure that can be had by name.

    Parameters
    ----------
    title : str
    make : callable (store, profile, ...) -> StudyFigure
    settings : mapping
        Of the callable.
    by_method : bool
        Whether it shows methods that can be chosen.
    """

    title: str
    make: Callable[..., StudyFigure]
    settings: Mapping[str, Any] = field(default_factory=dict)
    by_method: bool = True

    def __call__(
        self, store: Store, profile: Profile, methods: Sequence[str] | None = None
    ) -> StudyFigure:
        """Return the figure; raise a ReliableNetError where there is nothing for it to show."""
        chosen = {"methods": methods} if self.by_method else {}
        return self.make(store, profile, **self.settings, **chosen)


def _catalogue() -> dict[str, Entry]:
    entries = {
        "shift_jcw_and_coverage": Entry("Budget spent and coverage under shift", shift_summary),
        "shift_accuracy_accepted": Entry(
            "Accuracy of accepted rows under shift", shift_summary, {"metric": "accuracy_accepted"}
        ),
        "shift_ece": Entry("Calibration error under shift", shift_summary, {"metric": "ece"}),
        "shift_aurc": Entry("AURC under shift", shift_summary, {"metric": "aurc"}),
        "risk_coverage_shift": Entry("Error rate by coverage under shift", risk_coverage),
        "risk_coverage_certification": Entry(
            "Error rate by coverage, certification fold", risk_coverage, {"part": "certification"}
        ),
    }
    for plan in ("adult", "german_credit", "unsw_nb15", "unsw_nb15-alpha-0.01"):
        title = f"JCW and coverage by group, {plan}"
        entries[f"groups_{plan}"] = Entry(title, by_group, {"plan": plan})
    for plan in ("synthetic_band", "coloured_mnist", "cifar10"):
        title = f"JCW and coverage by severity, {plan}"
        entries[f"severity_{plan}"] = Entry(title, by_severity, {"plan": plan})
    distance = "Confidence by distance from the boundary"
    entries["confidence_by_distance"] = Entry(distance, confidence_by_distance, by_method=False)
    entries["geometry"] = Entry("Geometry of the band", geometry, by_method=False)
    return entries


FIGURES = _catalogue()


def write_figure(figure: StudyFigure, folder: Path, name: str) -> list[Path]:
    """Write a figure as PNG and SVG, and its numbers as CSV; return the three files.

    The same numbers give the same files, to the byte.
    """
    import matplotlib as mpl

    picture = figure.plot()
    contents = {".csv": figure.to_frame().to_csv(index=False).encode()}
    with mpl.rc_context({"svg.hashsalt": name}):
        for kind, metadata in (("png", {"Software": None}), ("svg", {"Date": None})):
            buffer = io.BytesIO()
            picture.savefig(buffer, format=kind, dpi=150, metadata=metadata)
            contents[f".{kind}"] = buffer.getvalue()
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for suffix, content in contents.items():
        paths.append(folder / f"{name}{suffix}")
        write_atomically(paths[-1], content)
    return paths
