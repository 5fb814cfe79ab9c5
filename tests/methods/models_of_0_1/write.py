"""Write the models of this folder. Run with the code of version 0.1, commit 5ea4732, and never again."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

import reliablenet as rn
from reliablenet.datasets import SyntheticBand


def table(n: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Return a small table with numbers, a category and gaps, and its labels."""
    random = np.random.default_rng(seed)
    debt, job = random.normal(size=n).round(3), random.choice(["office", "trade"], n)
    y = np.where(debt + (job == "trade") + 0.3 * random.normal(size=n) > 0.5, "yes", "no")
    frame = pd.DataFrame({"debt": debt, "job": job})
    frame.loc[random.random(n) < 0.05, "debt"] = np.nan
    return frame, y


def main(folder: Path) -> None:
    """Fit, save, and write down what the models say of a few rows."""
    warnings.simplefilter("ignore")
    band = SyntheticBand(random_state=0)
    past, new = band.sample(800), band.sample(12)
    frame, labels = table(600, 0)
    schedule = rn.training.Schedule(warmup_epochs=4, epochs_per_stage=2, max_stages=1)
    linear = LogisticRegression()
    models = {
        "network": rn.ReliableClassifier(0.1, network="mlp", schedule=schedule, random_state=0).fit(
            frame, labels
        ),
        "threshold": rn.CertifiedThreshold(linear, random_state=0).fit(past.X, past.y),
        "temperature": rn.TemperatureScaling(linear, 0.1, random_state=0).fit(past.X, past.y),
        "groups": rn.CertifiedThreshold(linear, 0.1, random_state=0).fit(
            past.X, past.y, groups=np.arange(800) // 3
        ),
        "refused": rn.ConfidenceThreshold(linear, random_state=0).fit(past.X, past.y),
    }
    for name, model in models.items():
        rows = table(12, 1)[0] if name == "network" else new.X
        decided = model.decide(rows)
        model.save(folder / f"{name}.rnet")
        certificate = json.loads(model.certificate_.to_json())
        told = {
            "rows": rows.where(rows.notna(), None).to_dict("list")
            if name == "network"
            else rows.tolist(),
            "label": decided.label.tolist(),
            "confidence": decided.confidence.tolist(),
            "accepted": decided.accepted.tolist(),
            "fingerprint": model.fingerprint_,
            "certificate": {
                key: certificate[key]
                for key in (
                    "certified",
                    "errors",
                    "accepted",
                    "n",
                    "alpha",
                    "rho",
                    "threshold",
                    "kind",
                )
            },
        }
        (folder / f"{name}.json").write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
