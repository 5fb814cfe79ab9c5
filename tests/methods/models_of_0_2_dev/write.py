"""Write the models of this folder. Run with the code of 0.2 in progress, commit 9093a2e, and never again."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

import reliablenet as rn
from reliablenet.datasets import SyntheticBand
from reliablenet.tables import PiecewiseEncoder, TabularEncoder

NEW = 12  # rows that each model decides


def table(n: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Return a small table with numbers, a category and gaps, and its labels."""
    random = np.random.default_rng(seed)
    debt, job = random.normal(size=n).round(3), random.choice(["office", "trade"], n)
    y = np.where(debt + (job == "trade") + 0.3 * random.normal(size=n) > 0.5, "yes", "no")
    frame = pd.DataFrame({"debt": debt, "job": job})
    frame.loc[random.random(n) < 0.05, "debt"] = np.nan
    return frame, y


def models_of_frames() -> dict[str, Any]:
    """Return what learns from a table with texts and gaps: every network, and rules around them."""
    short = rn.Schedule(warmup_epochs=4, epochs_per_stage=2, max_stages=1)
    trees = HistGradientBoostingClassifier(max_iter=5, max_leaf_nodes=8, random_state=0)
    forest = RandomForestClassifier(3, max_depth=4, random_state=0)
    calibrated = rn.TemperatureScaling(
        rn.ReliableClassifier(0.1, schedule=short, random_state=0), 0.1, random_state=0
    )
    return {
        "reliable": rn.ReliableClassifier(0.1, random_state=0),
        "reliable_at_selection": rn.ReliableClassifier(
            0.1, threshold="selection", network="mlp", schedule=short, random_state=0
        ),
        "erm": rn.ERMClassifier(0.1, epochs=4, fold_sizes=(0.5, 0.2, 0.3), random_state=0),
        "selectivenet": rn.SelectiveNetClassifier(0.1, epochs=4, random_state=0),
        "deep_gamblers": rn.DeepGamblersClassifier(
            0.1, epochs=4, warmup_epochs=1, score="softmax", random_state=0
        ),
        "uncertified": rn.ERMClassifier(0.001, epochs=1, random_state=0),
        "boosting": rn.CertifiedThreshold(
            make_pipeline(TabularEncoder(), trees), 0.1, random_state=0
        ),
        "forest": rn.ConfidenceThreshold(
            make_pipeline(PiecewiseEncoder(), forest), 0.1, random_state=0
        ),
        "two_rules": rn.CertifiedThreshold(calibrated, 0.1, random_state=0),
    }


def models_of_arrays() -> dict[str, Any]:
    """Return rules around classifiers of scikit-learn that take arrays."""
    return {
        "threshold": rn.CertifiedThreshold(LogisticRegression(), random_state=0),
        "temperature": rn.TemperatureScaling(GaussianNB(), 0.1, threshold=0.8, random_state=0),
        "conformal": rn.ConformalRiskControl(LogisticRegression(), random_state=0),
        "groups": rn.CertifiedThreshold(LogisticRegression(), 0.1, random_state=0),
    }


def main(folder: Path) -> None:
    """Fit, save, and write down what the models say of a few rows."""
    warnings.simplefilter("ignore")
    frame, labels = table(600, 0)
    band = SyntheticBand(seed=0)
    past, new = band.sample(800), band.sample(NEW)
    rows = table(NEW, 1)[0]
    for name, model in models_of_frames().items():
        told = rows.astype(object).where(rows.notna(), None).to_dict("list")
        write(folder, name, model.fit(frame, labels), rows, told)
    for name, model in models_of_arrays().items():
        groups = np.arange(800) // 3 if name == "groups" else None
        write(folder, name, model.fit(past.X, past.y, groups=groups), new.X, new.X.tolist())


def write(folder: Path, name: str, model: Any, rows: Any, told: Any) -> None:
    """Write a model, the rows, and what it says of them."""
    model.save(folder / f"{name}.rnet")
    decided = model.decide(rows)
    story = {
        "rows": told,
        "label": decided.label.tolist(),
        "confidence": decided.confidence.tolist(),
        "accepted": decided.accepted.tolist(),
        "proba": model.predict_proba(rows).tolist(),
        "selection_threshold": str(model.selection_threshold_),
        "fingerprint": model.fingerprint_,
        "certificate": json.loads(model.certificate_.to_json()),
    }
    (folder / f"{name}.json").write_text(json.dumps(story, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
