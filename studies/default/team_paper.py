"""Does the team act rightly on fewer rows than its network does, on the tables of the paper?

Both come from one fit on the paper's folds: the network is certified as it stands in the team.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import reliablenet as rn
from reliablenet.datasets import load_dataset
from studies.default.fitting import ALPHAS, SEEDS, certified_throughput, quietly
from studies.runner import Block, Study


def measure(name: str, seed: int) -> dict[str, Any]:
    """Return certified throughput of the team and of its network, and the weights."""
    folds = load_dataset(name, seed).folds
    held = folds.certification
    with quietly():
        ours = rn.ReliableClassifier(ALPHAS[name], members="auto", random_state=seed, verbose=False)
        ours.fit(folds.train.X, folds.train.y, selection=folds.selection, certification=held)
        found = ours.certificate_
        assert isinstance(found, rn.Certificate)
        network = ours._class_outputs(held.X).proba
        alone = rn.certified_threshold(network, held.y, ALPHAS[name], classes=ours.classes_)
    return {
        "team": round(certified_throughput(found), 4),
        "network": round(certified_throughput(alone), 4),
        "weights": [round(weight, 3) for weight in ours.team_.weights],
    }


def blocks() -> list[Block]:
    """Return the fits, all datasets of a seed together."""
    return [
        Block.once({"dataset": name, "alpha": alpha, "seed": seed}, partial(measure, name, seed))
        for seed in SEEDS
        for name, alpha in ALPHAS.items()
    ]


STUDY = Study(
    "default",
    "team_paper",
    about="Does the team act rightly on fewer rows than its network, on the tables of the paper?",
    cost="half an hour; needs the source files",
    blocks=blocks,
)
