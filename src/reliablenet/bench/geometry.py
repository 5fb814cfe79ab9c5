"""Geometry: where on Synthetic Band two networks, ERM and ReliableNet, are confident and wrong.

`GeometryJob` trains and measures them, a job of the study like any other; its record holds all that
the two figures show.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
import pandas as pd

from reliablenet._checks import check_count
from reliablenet._json import strict
from reliablenet.bench.fitting import fit_erm, fit_reliablenet
from reliablenet.bench.measuring import Run, describe_run
from reliablenet.bench.methods import GEOMETRY
from reliablenet.bench.profiles import Profile
from reliablenet.bench.results import GeometryRun, geometry_run
from reliablenet.bench.store import Curves
from reliablenet.datasets import Dataset, load_dataset
from reliablenet.datasets.synthetic_band import SyntheticBand

PLANE = {"dimension": 2, "gamma": 0.9}  # the band as it is drawn
CELLS = 100  # of the background, along each axis


class GeometryJob(GeometryRun):
    """The networks of both figures, to be trained and measured for one plan and seed."""

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
    """Return the job of a profile, if it has one."""
    found = geometry_run(profile)
    return None if found is None else GeometryJob(**vars(found))


def _train(job: GeometryJob, data: dict[str, Any]) -> tuple[Dataset, dict[str, Any], float]:
    """Return the data, both networks fitted, and eps*."""
    dataset = load_dataset(job.plan.dataset, job.seed, **(dict(job.plan.data) | data))
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
