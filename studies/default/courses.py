"""How the multiplier goes in the paper's training, where a training takes seconds.

The last digits hang on the processor: sums of products are rounded in another order where vectors are longer, and a constraint that
binds makes much of little. So each record says which kind it was trained on.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from reliablenet.bench import PROFILES
from reliablenet.bench.fitting import fit_reliablenet
from reliablenet.datasets import load_dataset
from studies.default.fitting import SEEDS, quietly
from studies.runner import Block, Study

PLANS = ("synthetic_band", "german_credit")


def course(plan: str, seed: int) -> dict[str, Any]:
    """Train the paper's method once and say how its multiplier went."""
    profile = PROFILES["paper"]
    with quietly():
        dataset = load_dataset(plan, seed)
        fitted: Any = fit_reliablenet(profile.plans[plan], dataset, seed, profile.rho)
    records = fitted.model.history_.records
    return {
        "highest": max(record.multiplier for record in records),
        "feasible_from": next(r.epoch for r in records if r.stage > 0 and r.inner_feasible),
        "last": round(records[-1].multiplier, 4),
        "jcw_train": round(records[-1].jcw_train, 6),
        "jcw_selection": round(records[-1].jcw_selection, 6),
        "processor": torch.backends.cpu.get_cpu_capability(),
    }


def blocks() -> list[Block]:
    """Return the datasets and seeds."""
    return [
        Block.once({"plan": plan, "seed": seed}, partial(course, plan, seed))
        for plan in PLANS
        for seed in SEEDS
    ]


STUDY = Study(
    "default",
    "courses",
    about="How does the multiplier go in the paper's training?",
    cost="two minutes; needs the source files",
    blocks=blocks,
)
