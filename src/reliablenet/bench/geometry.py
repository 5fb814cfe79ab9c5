"""Geometry: where on Synthetic Band two networks, trained on the spot, are confident and wrong."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from reliablenet._checks import check_count
from reliablenet.bench.drawing import StudyFigure, new_panels
from reliablenet.bench.profiles import PROFILES, Plan
from reliablenet.bench.trainings import fit_models
from reliablenet.datasets import Dataset, load_dataset
from reliablenet.datasets.synthetic_band import SyntheticBand
from reliablenet.errors import ConstraintWarning, NotCertifiedWarning

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PLAN = PROFILES["paper"].plans["synthetic_band"]
RHO = PROFILES["paper"].rho
TRAININGS = {"ERM": ("erm", "erm"), "ReliableNet": ("reliablenet", "reliablenet_last")}
COLOURS = {"ERM": "#555555", "ReliableNet": "#d55e00"}  # Okabe and Ito
CELLS = 200  # of the background, along each axis


def confidence_by_distance(seed: int = 0, *, plan: Plan = PLAN, bins: int = 24) -> StudyFigure:
    """Train ERM and ReliableNet on Synthetic Band, and show confidence by distance to the boundary.

    The distance is |w·x| on the 3,000 certification rows; within the band labels are coin tosses.

    Parameters
    ----------
    seed : int
    plan : Plan
        Of Synthetic Band; by default the paper's.
    bins : int
        Of distance, equally wide; the few rows beyond the 99th percentile are left out.

    Returns
    -------
    StudyFigure
        Its frame has one row for each method and bin: the bin's middle as ``distance``, its
        ``rows``, mean and sd of ``confidence`` over them, their ``accuracy``, and ``threshold``,
        the eps* of the warmed-up network.
    """
    check_count("bins", bins, "confidence_by_distance")
    dataset, models, threshold = _train(seed, plan, {})
    fold = dataset.folds.certification
    band = SyntheticBand(**dataset.info["generator"])
    distance = np.abs(fold.X @ band.direction)
    edges = np.linspace(0.0, np.quantile(distance, 0.99), bins + 1)
    place = np.searchsorted(edges, distance, side="right") - 1
    inside = place < bins
    tables = []
    for name, model in models.items():
        proba = model.predict_proba(fold.X)
        rows = pd.DataFrame(
            {"confidence": proba.max(axis=1), "right": model.predict(fold.X) == fold.y}
        )
        groups = rows[inside].groupby(place[inside])
        number = np.array(list(groups.groups), dtype=int)
        table = pd.DataFrame(
            {
                "distance": (edges[number] + edges[number + 1]) / 2,
                "rows": groups.size().to_numpy(),
                "confidence": groups["confidence"].mean().to_numpy(),
                "confidence_sd": groups["confidence"].std().to_numpy(),
                "accuracy": groups["right"].mean().to_numpy(),
            }
        )
        tables.append(table.assign(method=name, threshold=threshold, gamma=band.gamma, seed=seed))
    columns = ["method", "seed", "gamma", "threshold", "distance", "rows", "confidence"]
    table = pd.concat(tables, ignore_index=True)
    return StudyFigure(table[[*columns, "confidence_sd", "accuracy"]], _draw_distance)


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


def geometry(seed: int = 0, gamma: float = 0.9, *, plan: Plan = PLAN) -> StudyFigure:
    """Train ERM and ReliableNet on Synthetic Band in the plane, and show their confident errors.

    Both act at the same threshold: eps*, which the warmed-up network sets on the selection fold.

    Parameters
    ----------
    seed : int
    gamma : float
        Half-width of the band.
    plan : Plan
        Of Synthetic Band; by default the paper's.

    Returns
    -------
    StudyFigure
        Its frame has one row for each method: on the 3,000 certification rows those ``accepted``,
        the confident ``errors`` among them, how many of these lie ``in_band``, ``coverage``, ``jcw``.
    """
    dataset, models, threshold = _train(seed, plan, {"dimension": 2, "gamma": gamma})
    fold = dataset.folds.certification
    direction = SyntheticBand(**dataset.info["generator"]).direction
    reach = 1.02 * float(np.abs(fold.X).max())
    ticks = np.linspace(-reach, reach, CELLS)
    cells = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
    rows, crosses, backgrounds = [], {}, {}
    for name, model in models.items():
        accepted = model.predict_proba(fold.X).max(axis=1) >= threshold
        wrong = accepted & (model.predict(fold.X) != fold.y)
        crosses[name] = fold.X[wrong]
        backgrounds[name] = model.predict_proba(cells).max(axis=1).reshape(CELLS, CELLS)
        rows.append(
            {
                "method": name,
                "seed": seed,
                "gamma": gamma,
                "threshold": threshold,
                "rows": len(fold),
                "accepted": int(accepted.sum()),
                "errors": int(wrong.sum()),
                "in_band": int((np.abs(fold.X[wrong] @ direction) <= gamma).sum()),
                "coverage": accepted.mean(),
                "jcw": wrong.mean(),
            }
        )

    def draw(table: pd.DataFrame) -> Figure:
        figure, panels = new_panels(1, 2, (10.5, 5.4), sharey=True)
        for axes, row in zip(panels.flat, table.to_dict("records"), strict=True):
            name = str(row["method"])
            image = axes.imshow(
                backgrounds[name],
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
            axes.plot(*crosses[name].T, "x", color="#d55e00", markersize=6, markeredgewidth=1.5)
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
            f"Synthetic Band in the plane, {len(fold):,} rows, seed {seed}; gamma = {gamma:g} (dashed), "
            f"alpha = {plan.alpha:g}, both at eps* = {threshold:.2f} (line in the scale)",
            fontsize=11,
        )
        return figure

    return StudyFigure(pd.DataFrame(rows), draw)


def _train(
    seed: int, plan: Plan, settings: dict[str, Any]
) -> tuple[Dataset, dict[str, Any], float]:
    """Return the data, both networks fitted, and eps*."""
    dataset = load_dataset("synthetic_band", seed, **(dict(plan.data) | settings))
    models = {}
    with warnings.catch_warnings():  # advice to those who would use the model
        warnings.simplefilter("ignore", ConstraintWarning)
        warnings.simplefilter("ignore", NotCertifiedWarning)
        for name, (training, kept) in TRAININGS.items():
            models[name] = fit_models(plan, training, dataset, seed, RHO)[kept]
    return dataset, models, models["ReliableNet"].training_threshold_
