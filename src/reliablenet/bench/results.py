"""Results, read and asked: finished runs, one frame of all of them, and their curves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reliablenet.bench.methods import GEOMETRY, find_method, study_methods
from reliablenet.bench.profiles import Plan, Profile
from reliablenet.bench.store import GRID, Record, Store, settings_hash
from reliablenet.errors import InvalidDataError

# Column of the frame: where its value lies in a record.
MEASURES = {
    "accuracy": ("certification", "accuracy"),
    "coverage": ("certification", "coverage"),
    "accuracy_accepted": ("certification", "accuracy_accepted"),
    "jcw": ("certification", "jcw"),
    "budget_spent": ("certification", "budget_spent"),
    "throughput": ("certification", "throughput"),
    "aurc": ("certification", "aurc"),
    "aurc_shift": ("shift", "aurc"),
    "jcw_shift": ("shift", "jcw"),
    "coverage_shift": ("shift", "coverage"),
    "ece": ("certification", "ece"),
}
CURVES = ("certification", "shift")  # the folds that curves are stored of, in this order


class NoRunsError(InvalidDataError):
    """A store has no finished run of what was asked for.

    Attributes
    ----------
    fact : str
        The first sentence of the message.
    store : Store
    profile : Profile
    plans : tuple of str
        Those asked for, empty for all of the profile.
    method : str
        That asked for, empty for all.
    """

    def __init__(
        self, store: Store, profile: Profile, plans: Sequence[str] = (), method: str = ""
    ) -> None:
        self.store, self.profile = store, profile
        self.plans, self.method = tuple(plans), method
        where = f" for {', '.join(plans)}" if plans else ""
        self.fact = f"No run of the profile {profile.name!r}{where} lies in {store.folder}."
        super().__init__(
            f"{self.fact} Make it first: `run_jobs(pending_jobs(profile, store), store)`."
        )


def find_run(store: Store, profile: Profile, plan: str, method: str, seed: int) -> Record | None:
    """Return the record of a run if it is there, succeeded, and has the profile's settings."""
    wanted = find_method(method).hash(profile.plans[plan], seed, profile.rho)
    return store.read_finished(plan, method, seed, wanted)


def finished_runs(store: Store, profile: Profile, plan: str, method: str) -> dict[int, Record]:
    """Return by seed the records that are there, succeeded, and have the profile's settings.

    Parameters
    ----------
    store : Store
    profile : Profile
    plan, method : str

    Returns
    -------
    dict of int to dict
    """
    found = {seed: find_run(store, profile, plan, method, seed) for seed in profile.seeds}
    return {seed: record for seed, record in found.items() if record is not None}


@dataclass(frozen=True)
class GeometryRun:
    """The run that the figures of Synthetic Band show: one plan, one seed, and no method."""

    plan_name: str
    plan: Plan
    seed: int
    rho: float

    def __str__(self) -> str:
        return f"{self.plan_name} {GEOMETRY} {self.seed}"

    def settings(self) -> dict[str, Any]:
        """Return all that decides the outcome, as JSON can hold it."""
        return {"method": GEOMETRY, "seed": self.seed, "rho": self.rho} | self.plan.settings()

    def find(self, store: Store) -> Record | None:
        """Return the record of the finished run, if there is one."""
        wanted = settings_hash(self.settings())
        return store.read_finished(self.plan_name, GEOMETRY, self.seed, wanted)


def geometry_run(profile: Profile) -> GeometryRun | None:
    """Return that run of a profile: its first seed on its first plan of Synthetic Band, if it has one."""
    for name, plan in profile.plans.items():
        if plan.dataset == "synthetic_band":
            return GeometryRun(name, plan, profile.seeds[0], profile.rho)
    return None


def finished_curves(
    store: Store, profile: Profile, plan: str, method: str, part: str
) -> dict[int, NDArray[np.float64]]:
    """Return by seed the error rate of accepted rows at each coverage of `GRID`.

    Parameters
    ----------
    store : Store
    profile : Profile
    plan, method : str
    part : {"certification", "shift"}
        The fold; of shifts the first.

    Returns
    -------
    dict of int to array
    """
    runs = finished_runs(store, profile, plan, method)
    place = CURVES.index(part)
    return {
        seed: store.curves(plan, method, seed, record["hash"])[place].astype(float)
        for seed, record in runs.items()
    }


def stack_curves(curves: dict[int, NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return curves as one array, a row for each seed; it may have none."""
    return np.array(list(curves.values()), dtype=float).reshape(-1, len(GRID))


def results_frame(store: Store, profile: Profile) -> pd.DataFrame:
    """Return one row a run: plan, method, seed, counts, and every measure.

    Parameters
    ----------
    store : Store
    profile : Profile

    Returns
    -------
    DataFrame
        ``point`` is the operating point of the method, ``classifier`` the name of what it acts
        with, and ``certified_throughput`` the throughput, 0 where there is no certificate.

    Raises
    ------
    InvalidDataError
        If there is no run to show.
    """
    rows = []
    for plan in profile.plans:
        for method in study_methods():
            for record in finished_runs(store, profile, plan, method.name).values():
                names = {"plan": plan, "method": method.name}
                kind = {"point": method.point.value, "classifier": method.classifier}
                rows.append(names | kind | _row(record))
    if not rows:
        raise NoRunsError(store, profile)
    return pd.DataFrame(rows)


def _row(record: Record) -> dict[str, Any]:
    measured, certificate = record["measured"], record["certificate"]
    parts = {
        "certification": measured["certification"],
        "shift": next(iter(measured["shifts"].values())),
    }
    row: dict[str, Any] = {
        "seed": record["seed"],
        "alpha": record["alpha"],
        "errors": certificate["errors"],
        "n": certificate["n"],
        "train_rows": record["rows"]["train"],
        "upper_bound": certificate["upper_bound"],
        "certified": certificate["certified"],
        "within_alpha": parts["certification"]["jcw"] <= record["alpha"],
        "best_throughput": record["info"].get("best_throughput", np.nan),
        "certified_throughput": certified_throughput(record),
    }
    for name, (part, measure) in MEASURES.items():
        value = parts[part][measure]
        row[name] = np.nan if value is None else value
    return row


def certified_throughput(record: Record) -> float:
    """Return the share of rows that a run acts on rightly, 0 if it has no certificate."""
    throughput: float = record["measured"]["certification"]["throughput"]
    return throughput if record["certificate"]["certified"] else 0.0
