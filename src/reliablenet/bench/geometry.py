"""Geometry: where on Synthetic Band two networks, ERM and ReliableNet, are confident and wrong.

`GeometryJob` trains and measures them, a job of the study like any other; its record holds all that
the two figures show, and drawing reads it.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from reliablenet._checks import check_count
from reliablenet._json import strict
from reliablenet.bench.fitting import fit_erm, fit_reliablenet
from reliablenet.bench.measuring import Run, describe_run
from reliablenet.bench.methods import GEOMETRY
from reliablenet.bench.plots import StudyFigure, new_panels
from reliablenet.bench.profiles import Plan, Profile
from reliablenet.bench.results import no_runs
from reliablenet.bench.store import Curves, Record, Store, settings_hash
from reliablenet.datasets import Dataset, load_dataset
from reliablenet.datasets.synthetic_band import SyntheticBand
from reliablenet.errors import InvalidDataError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DATASET = "synthetic_band"
PLANE = {"dimension": 2, "gamma": 0.9}  # the band as it is drawn
COLOURS = {"ERM": "#555555", "ReliableNet": "#d55e00"}  # Okabe and Ito
CELLS = 100  # of the background, along each axis


@dataclass(frozen=True)
class GeometryJob:
    """The networks of both figures, to be trained and measured for one plan and seed."""

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

    def run(self) -> dict[str, Run]:
        """Train and measure; whatever goes wrong is recorded as the error of the run."""
        start = time.perf_counter()
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                distance = measure_distance(*_train(self, {}))
                plane, backgrounds = measure_plane(*_train(self, PLANE))
        except Exception as error:  # one broken run must not end the study
            return self.failed(f"{type(error).__name__}: {error}")
        timing = {
            "fit_seconds": round(time.perf_counter() - start, 3),
            "notes": sorted({str(warning.message) for warning in caught}),
        }
        found = {"distance": distance, "plane": plane, "timing": timing}
        return {GEOMETRY: (describe_run(self.settings()) | strict(found), backgrounds)}

    def failed(self, story: str) -> dict[str, Run]:
        """Return the record of a run that could not be made, and why."""
        return {GEOMETRY: (describe_run(self.settings()) | {"error": story}, None)}


def geometry_job(profile: Profile) -> GeometryJob | None:
    """Return the job of a profile: its first seed on its first plan of Synthetic Band, if it has one."""
    for name, plan in profile.plans.items():
        if plan.dataset == DATASET:
            return GeometryJob(name, plan, profile.seeds[0], profile.rho)
    return None


def _train(job: GeometryJob, data: dict[str, Any]) -> tuple[Dataset, dict[str, Any], float]:
    """Return the data, both networks fitted, and eps*."""
    dataset = load_dataset(DATASET, job.seed, **(dict(job.plan.data) | data))
    erm = fit_erm(job.plan, dataset, job.seed, job.rho)
    ours = fit_reliablenet(job.plan, dataset, job.seed, job.rho)
    models = {"ERM": erm.model, "ReliableNet": ours.others["reliablenet_last"]}
    return dataset, models, float(ours.eps or 0.0)


def measure_distance(
    dataset: Dataset, models: dict[str, Any], threshold: float, bins: int = 24
) -> list[dict[str, Any]]:
    """Return one row for each model and bin of |w·x| on the certification rows.

    Parameters
    ----------
    dataset : Dataset
        Synthetic Band.
    models : dict of str to classifier
    threshold : float
        The eps* of the warmed-up network.
    bins : int
        Of distance, equally wide; the few rows beyond the 99th percentile are left out.

    Returns
    -------
    list of dict
    """
    check_count("bins", bins, "measure_distance")
    fold = dataset.folds.certification
    band = SyntheticBand(**dataset.info["generator"])
    distance = np.abs(fold.X @ band.direction)
    edges = np.linspace(0.0, np.quantile(distance, 0.99), bins + 1)
    place = np.searchsorted(edges, distance, side="right") - 1
    inside = place < bins
    rows = []
    for name, model in models.items():
        proba = model.predict_proba(fold.X)
        scored = pd.DataFrame(
            {"confidence": proba.max(axis=1), "right": model.predict(fold.X) == fold.y}
        )
        groups = scored[inside].groupby(place[inside])
        mean, sd = groups.mean(), groups["confidence"].std()
        for number, count in groups.size().items():
            rows.append(
                {
                    "method": name,
                    "seed": band.random_state,
                    "gamma": band.gamma,
                    "threshold": threshold,
                    "distance": (edges[number] + edges[number + 1]) / 2,
                    "rows": count,
                    "confidence": mean.loc[number, "confidence"],
                    "confidence_sd": sd.loc[number],
                    "accuracy": mean.loc[number, "right"],
                }
            )
    return rows


def measure_plane(
    dataset: Dataset, models: dict[str, Any], threshold: float
) -> tuple[dict[str, Any], Curves]:
    """Return where models err confidently on Synthetic Band in the plane, and their confidence.

    Parameters
    ----------
    dataset : Dataset
        Synthetic Band of two dimensions.
    models : dict of str to classifier
    threshold : float
        At which both act.

    Returns
    -------
    dict
        ``rows``: one for each model, counts and shares of the certification rows; ``errors``: the
        places of confident errors; ``direction`` of the boundary and ``reach`` of the picture.
    array of shape (models, CELLS, CELLS)
        Confidence at each place of the picture, to three digits.
    """
    fold = dataset.folds.certification
    band = SyntheticBand(**dataset.info["generator"])
    reach = 1.02 * float(np.abs(fold.X).max())
    ticks = np.linspace(-reach, reach, CELLS)
    cells = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
    rows, errors, backgrounds = [], {}, []
    for name, model in models.items():
        accepted = model.predict_proba(fold.X).max(axis=1) >= threshold
        wrong = accepted & (model.predict(fold.X) != fold.y)
        errors[name] = np.asarray(fold.X[wrong], dtype=float).round(4).tolist()
        confidence = model.predict_proba(cells).max(axis=1)
        backgrounds.append(confidence.reshape(CELLS, CELLS).round(3))
        rows.append(
            {
                "method": name,
                "seed": band.random_state,
                "gamma": band.gamma,
                "threshold": threshold,
                "rows": len(fold),
                "accepted": int(accepted.sum()),
                "errors": int(wrong.sum()),
                "in_band": int((np.abs(fold.X[wrong] @ band.direction) <= band.gamma).sum()),
                "coverage": accepted.mean(),
                "jcw": wrong.mean(),
            }
        )
    direction = [float(value) for value in band.direction]
    plane = {"rows": rows, "errors": errors, "direction": direction, "reach": reach}
    return plane, np.stack(backgrounds).astype(np.float32)


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
    record, _ = _read(store, profile)
    return StudyFigure(pd.DataFrame(record["distance"]), _draw_distance)


def _draw_distance(table: pd.DataFrame) -> Figure:
    figure, panels = new_panels(1, 1, (6.4, 4.2))
    axes = panels[0, 0]
    first = table.iloc[0]
    edge = f"edge of the band, gamma = {first['gamma']:g}"
    axes.axvline(first["gamma"], color="0.2", linewidth=1, linestyle="--", label=edge)
    for (name, part), style in zip(
        table.groupby("method", sort=False), (("--", "s"), ("-", "o")), strict=True
    ):
        colour = COLOURS[str(name)]
        low = part["confidence"] - part["confidence_sd"]
        high = (part["confidence"] + part["confidence_sd"]).clip(upper=1)
        axes.fill_between(part["distance"], low, high, color=colour, alpha=0.15, linewidth=0)
        axes.plot(
            part["distance"],
            part["confidence"],
            linestyle=style[0],
            marker=style[1],
            markersize=4,
            color=colour,
            label=name,
        )
    level = f"eps* = {first['threshold']:.2f}"
    axes.axhline(first["threshold"], color="0.2", linewidth=1, linestyle=":", label=level)
    axes.set(xlim=(0, None), ylim=(0.45, 1.01))
    axes.set_xlabel("distance to the true boundary, |w·x|", fontsize=10)
    axes.set_ylabel("confidence: mean and sd of rows", fontsize=10)
    axes.set_title(f"Confidence by distance, Synthetic Band, seed {first['seed']}", fontsize=10)
    figure.legend(loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    return figure


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
    record, backgrounds = _read(store, profile)
    plane, alpha = record["plane"], record["alpha"]

    def draw(table: pd.DataFrame) -> Figure:
        return _draw_plane(table, plane, backgrounds, alpha)

    return StudyFigure(pd.DataFrame(plane["rows"]), draw)


def _read(store: Store, profile: Profile) -> tuple[Record, Curves]:
    job = geometry_job(profile)
    if job is None:
        raise InvalidDataError(
            f"The profile {profile.name!r} has no plan of Synthetic Band, which this figure is about. "
            "Choose another profile."
        )
    record = job.find(store)
    if record is None:
        raise no_runs(store, profile, [job.plan_name], GEOMETRY)
    return record, store.curves(job.plan_name, GEOMETRY, job.seed, record["hash"])


def _draw_plane(
    table: pd.DataFrame, plane: dict[str, Any], backgrounds: Curves, alpha: float
) -> Figure:
    reach, direction = plane["reach"], np.array(plane["direction"])
    first = table.iloc[0]
    gamma, threshold = first["gamma"], first["threshold"]
    figure, panels = new_panels(1, 2, (10.5, 5.4), sharey=True)
    rows = table.to_dict("records")
    for axes, row, background in zip(panels.flat, rows, backgrounds, strict=True):
        name = str(row["method"])
        image = axes.imshow(
            background,
            origin="lower",
            extent=(-reach, reach, -reach, reach),
            vmin=0.5,
            vmax=1.0,
            cmap="viridis",
            interpolation="bilinear",
        )
        for side in (-gamma, gamma):
            ends = side * direction, side * direction + (-direction[1], direction[0])
            axes.axline(*ends, color="0.3", linewidth=2.5)  # for the white to show on yellow
            axes.axline(*ends, color="white", linestyle="--")
        errors = np.array(plane["errors"][name], dtype=float).reshape(-1, 2)
        axes.plot(*errors.T, "x", color="#d55e00", markersize=6, markeredgewidth=1.5)
        axes.set_xlim(-reach, reach)
        axes.set_ylim(-reach, reach)
        axes.set_xlabel("$x_1$", fontsize=10)
        axes.set_title(
            f"{name}: {row['errors']} confident errors, JCW {row['jcw']:.4f}, "
            f"coverage {row['coverage']:.2f}",
            fontsize=10,
        )
    panels[0, 0].set_ylabel("$x_2$", fontsize=10)
    bar = figure.colorbar(image, ax=panels, shrink=0.8)
    bar.set_label("confidence", fontsize=10)
    bar.ax.axhline(threshold, color="white", linewidth=2)
    figure.suptitle(
        f"Synthetic Band in the plane, {first['rows']:,} rows, seed {first['seed']}; gamma = {gamma:g} "
        f"(dashed), alpha = {alpha:g}, both at eps* = {threshold:.2f} (line in the scale)",
        fontsize=11,
    )
    return figure
