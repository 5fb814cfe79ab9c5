"""Runs of a study as a store holds them, made of counts alone."""

from __future__ import annotations

from pathlib import Path

from reliablenet.bench import METHODS, Plan, Profile, Store
from reliablenet.certificate import Certificate

PROFILE = Profile("mine", {"adult": Plan("adult"), "unsw_nb15": Plan("unsw_nb15")}, seeds=(0, 37))
TINY_FILE = """\
name = "tiny"
extends = "smoke"
only = true
seeds = [0]
[plans.synthetic_band]
epochs = 2
max_stages = 1
"""


def record(method: str, seed: int, errors: int, accepted: int, accuracy: float = 0.8) -> dict:
    n, alpha = 100, 0.05
    certificate = Certificate(errors, accepted, n, alpha, 0.05, 0.9)
    measured = {
        "accuracy": accuracy,
        "coverage": accepted / n,
        "accuracy_accepted": (accepted - errors) / accepted if accepted else None,
        "jcw": errors / n,
        "budget_spent": errors / n / alpha,
        "throughput": (accepted - errors) / n,
        "aurc": 0.1,
        "ece": 0.02,
    }
    return {
        "method": method,
        "seed": seed,
        "alpha": alpha,
        "hash": METHODS[method].hash(PROFILE.plans["adult"], seed, PROFILE.rho),
        "info": {"best_throughput": 0.8},
        "rows": {"train": 400, "selection": 100, "certification": n},
        "certificate": certificate.to_dict(),
        "measured": {"certification": measured, "shifts": {"women": measured | {"aurc": 0.3}}},
    }


def small_study(folder: Path) -> Store:
    """Return a store with four methods on Adult, two seeds each."""
    store = Store(folder)
    counts = {
        "erm": ((20, 100), (22, 100)),
        "reliablenet_last@eps": ((1, 40), (3, 50)),
        "reliablenet_last+certified": ((1, 61), (1, 41)),
        "erm+certified": ((1, 51), (2, 99)),
    }
    for method, pairs in counts.items():
        for seed, (errors, accepted) in zip((0, 37), pairs, strict=True):
            store.write("adult", method, seed, record(method, seed, errors, accepted), None)
    return store
