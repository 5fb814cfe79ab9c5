"""How a network can unlearn what it knew under the paper's schedule, epoch by epoch.

scikit-learn's handwritten digits as images of 8 by 8, with noise that makes them hard, the paper's small convolutional network and alpha
0.01: the paper's schedule, and ours, which returns to its warm-up where the constraint does not serve.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

import reliablenet as rn
from studies.default.fitting import quietly
from studies.runner import Block, Study

ALPHA, SEED, THRESHOLD = 0.01, 0, 0.3
NOISE = (0.6, 1.5)  # standard deviation, where pixels lie in [0, 1]
SHOWN = ("epoch", "stage", "tau", "psi", "multiplier", "accuracy", "jcw_selection", "coverage")


def course(noise: float, schedule: str) -> list[dict[str, Any]]:
    """Return the epochs of one fit, and which of them was kept."""
    digits = load_digits()
    random = np.random.default_rng(SEED)
    images = digits.images[:, None] / 16 + noise * random.normal(size=(len(digits.target), 1, 8, 8))
    # the adaptive schedule is made to constrain: at a threshold as low as the paper's
    threshold: Any = "certified" if schedule == "paper" else THRESHOLD
    model = rn.ReliableClassifier(
        ALPHA,
        threshold=threshold,
        network="cnn5",
        schedule=schedule,
        random_state=SEED,
        verbose=False,
    )
    with quietly():
        history = model.fit(images.astype(np.float32), digits.target).history_
    kept = {"threshold": round(history.threshold, 4), "chosen_epoch": history.chosen_epoch}
    return [
        kept
        | {
            name: None if value != value else round(float(value), 5)
            for name, value in ((name, getattr(record, name)) for name in SHOWN)
        }
        | {"at_chance": bool(record.at_chance)}
        for record in history.records
    ]


def blocks() -> list[Block]:
    """Return the schedules at each noise."""
    return [
        Block.once(
            {"noise": noise, "schedule": schedule, "alpha": ALPHA, "seed": SEED},
            partial(course, noise, schedule),
        )
        for noise in NOISE
        for schedule in ("paper", "adaptive")
    ]


STUDY = Study(
    "default",
    "collapse",
    about="How can a network unlearn what it knew under the paper's schedule?",
    cost="three minutes",
    blocks=blocks,
)
