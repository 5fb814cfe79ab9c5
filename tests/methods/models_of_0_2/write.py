"""Write the models of this folder. Run with the code of version 0.2, and never again.

They are of the kinds that 0.2 added; `models_of_0_2_dev` has those that it had before.
"""

from __future__ import annotations

import json
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline

import reliablenet as rn
from reliablenet.methods import TunedClassifier
from reliablenet.methods.renewal import renew
from reliablenet.methods.seen import model_hashes
from reliablenet.modelfile.signature import make_keys, sign_file
from reliablenet.tables import TabularEncoder
from reliablenet.training import Schedule

BAD = ["late", "lost", "slow", "torn", "wrong", "missing"]
COMMON = ["my", "the", "please", "is", "i", "want", "when"]
NEW = 12  # rows that each model decides
SHORT = Schedule(warmup_epochs=3, epochs_per_stage=2, max_stages=1)
SEED = {"random_state": 0}


def table(n: int, seed: int) -> pd.DataFrame:
    """Return rows with numbers, gaps, a category, a date, words, and what depends on them."""
    random = np.random.default_rng(seed)
    debt, job = random.normal(size=n).round(3), random.choice(["office", "trade"], n)
    day = pd.Timestamp("2024-01-01") + pd.to_timedelta(random.integers(0, 300, n), "D")
    said = [
        " ".join(random.permutation([*random.choice(BAD, 2), *random.choice(COMMON, 4)]))
        for _ in range(n)
    ]
    frame = pd.DataFrame({"debt": debt, "job": job, "day": day.strftime("%Y-%m-%d"), "said": said})
    risk = debt + (job == "trade") + 0.4 * np.array(["lost" in text for text in said])
    frame["y"] = np.where(risk + 0.6 * random.normal(size=n) > 0.6, "yes", "no")
    frame["price"] = (
        100 + 30 * risk + np.where(job == "trade", 12, 2) * random.normal(size=n)
    ).round(2)
    frame.loc[random.random(n) < 0.05, "debt"] = np.nan
    return frame


def rule(**settings: Any) -> Any:
    """Return a rule around a logistic regression."""
    inner = make_pipeline(TabularEncoder(text=None, dates=None), LogisticRegression())
    return rn.CertifiedThreshold(inner, **(SEED | settings))


def promises() -> dict[str, Any]:
    """Return a promise of each kind."""
    costs = [[0, 1], [5, 0]]
    return {
        "by_group": rn.Promise.by_group(0.1, by="job"),
        "by_group_common": rn.Promise.by_group(
            {"office": 0.1, "trade": 0.12}, by="job", common=True
        ),
        "among_accepted": rn.Promise.among_accepted(0.1),
        "by_predicted": rn.Promise.by_predicted({"yes": 0.05, "no": 0.1}),
        "by_class": rn.Promise.by_class({"yes": 0.1}),
        "cost": rn.Promise.cost(costs, 0.3, classes=["no", "yes"]),
        "several": rn.Promise.all_of(rn.Promise.overall(0.1), rn.Promise.by_group(0.15, by="job")),
    }


def classifiers() -> dict[str, Any]:
    """Return what learns from numbers and a category."""
    network = {"members": "network", "schedule": SHORT}
    rules = {name: rule(promise=promise) for name, promise in promises().items()}
    untuned = make_pipeline(TabularEncoder(text=None, dates=None), LogisticRegression())
    strengths = [{"logisticregression__C": strength} for strength in (1e-4, 1.0)]
    return rules | {
        "tuned": TunedClassifier(untuned, 0.1, settings=strengths, **SEED),
        "team": rn.ReliableClassifier(
            0.1, members=("network", "boosting", "forest"), schedule=SHORT, **SEED
        ),
        "team_with_own": rn.ReliableClassifier(
            0.1, members=("network", LogisticRegression()), schedule=SHORT, **SEED
        ),
        "weighted": rn.ReliableClassifier(0.1, class_weight="balanced", **network, **SEED),
        "trained_by_group": rn.ReliableClassifier(
            promise=rn.Promise.by_group(0.15, by="job"), **network, **SEED
        ),
    }


def main(folder: Path) -> None:
    """Fit, save, and write down what the models say of a few rows."""
    warnings.simplefilter("ignore")
    past, later, new = table(900, 0), table(600, 1), table(NEW, 2)
    columns = ["debt", "job"]
    for name, model in classifiers().items():
        rows = past[:500] if name == "team" else past  # fewer rows make smaller trees
        write(folder, name, model.fit(rows[columns], rows["y"]), new[columns])
    words = rn.ReliableClassifier(0.15, members="network", schedule=SHORT, **SEED)
    write(
        folder,
        "text_and_dates",
        words.fit(past[["debt", "day", "said"]], past["y"]),
        new[["debt", "day", "said"]],
    )
    path = rule(promise=rn.Promise.overall(0.1))
    path.fit(past[columns], past["y"], selection=(later[columns], later["y"]))
    write(folder, "learned_path", path, new[columns])
    inner = make_pipeline(TabularEncoder(text=None, dates=None), LinearRegression())
    numbers = {
        "regressor": (rn.ReliableRegressor(15.0, alpha=0.3, epochs=4, **SEED), 300),
        "regressor_inside": (rn.CertifiedThreshold(inner, 0.2, tolerance="10%", **SEED), 240),
    }
    for name, (model, n) in numbers.items():
        write(folder, name, model.fit(past[columns][:n], past["price"][:n]), new[columns])
    first = rule(alpha=0.1).fit(past[columns], past["y"])
    rows, hashes = first.score_rows(later[columns], later["y"]), model_hashes(first, later[columns])
    write(folder, "renewed", renew(first, rows, hashes, reason="a new year")[0], new[columns])
    write(folder, "signed", first, new[columns])
    with tempfile.TemporaryDirectory() as kept:
        key, public = make_keys(Path(kept) / "key")
        sign_file(folder / "signed.rnet", key)
        (folder / "signed.pub").write_bytes(public.read_bytes())


def write(folder: Path, name: str, model: Any, rows: pd.DataFrame) -> None:
    """Write a model, the rows, and what it says of them."""
    model.save(folder / f"{name}.rnet")
    decided = model.decide(rows)
    story = {
        "rows": rows.astype(object).where(rows.notna(), None).to_dict("list"),
        "decided": decided.to_frame().to_dict("list"),
        "fingerprint": model.fingerprint_,
        "certificate": json.loads(model.certificate_.to_json()),
    }
    (folder / f"{name}.json").write_text(json.dumps(story, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
