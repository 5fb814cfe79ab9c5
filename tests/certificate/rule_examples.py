"""Rows, promises and certificates that several tests of rules share."""

from __future__ import annotations

import json
from functools import cache
from types import SimpleNamespace

import numpy as np

from reliablenet import Certificate, Promise, RuleCertificate, certified_rule
from reliablenet.certificate.rule import Rule, Thresholds
from reliablenet.certificate.rule_certify import judge_fixed_rule
from reliablenet.certificate.scored import ScoredRows
from reliablenet.certificate.sealing import digest

RNG = np.random.default_rng(0)
P = RNG.uniform(0.5, 1.0, 4000)
FLIP = RNG.random(4000) < 0.4
Y = np.where(FLIP, RNG.random(4000) < P, RNG.random(4000) > P).astype(int)
PROBA = np.where(FLIP[:, None], np.column_stack([1 - P, P]), np.column_stack([P, 1 - P]))
BY = RNG.choice(["A", "B", "C"], 4000, p=[0.6, 0.39, 0.01])
COSTS = [[0, 1], [5, 0]]
EASY = np.tile([[0.9, 0.1], [0.2, 0.8]], (100, 1))  # every answer is right
TRUTH = np.tile([0, 1], 100)
PROMISES = {
    "overall": Promise.overall(0.05),
    "among": Promise.among_accepted(0.1),
    "groups": Promise.by_group(0.05, by="race"),
    "common": Promise.by_group({"A": 0.05, "B": 0.05}, by="race", common=True),
    "predicted": Promise.by_predicted({0: 0.02, 1: 0.03}),
    "classes": Promise.by_class(0.05),
    "cost": Promise.cost(COSTS, 0.1),
    "several": Promise.all_of(Promise.overall(0.05), Promise.by_group(0.05, by="race")),
}


@cache
def make(name: str) -> RuleCertificate:
    return certified_rule(PROBA, Y, PROMISES[name], by={"race": BY})


def forged(name: str, change) -> str:
    """Return the text of a certificate, changed by one who also mends every hash."""
    values = json.loads(make(name).to_json())
    change(values)
    for part in values["parts"]:
        part.pop("sha256", None)
        part["sha256"] = digest(part)
    values.pop("sha256")
    return json.dumps(values | {"sha256": digest(values)})


def set_in(*path):
    *way, last, value = path

    def change(values):
        for step in way:
            values = values[step]
        values[last] = value

    return change


def draw(seed: int, n: int = 300, classes: int = 2, decimals: int = 2):
    """Return probabilities with many ties, labels that they predict well or badly, and groups."""
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.full(classes, rng.uniform(0.3, 1.0)), n).round(decimals)
    proba[:, 0] += 1.0 - proba.sum(axis=1)
    proba = np.abs(proba) / np.abs(proba).sum(axis=1, keepdims=True)
    y = np.where(
        rng.random(n) < rng.uniform(0.1, 0.6), rng.integers(0, classes, n), proba.argmax(1)
    )
    return proba, y, rng.choice(["A", "B", "C"], n, p=[0.6, 0.3, 0.1])


REFUSED = certified_rule(
    EASY[:40], TRUTH[:40], Promise.by_group(0.05), by=np.repeat(["A", "B"], 20)
)
BOTH = Promise.by_group(0.1, by="race")
FIXED = Rule((Thresholds(("race",), {"A": 0.5, "B": 0.5}),))


def fixed(wrong: int, group: str = "A", n: int = 300):
    """Return the certificate of a fixed rule on rows of which so many are wrong."""
    rows = ScoredRows(
        np.full(n, 0.9), np.arange(n) < wrong, 0.0, by={"race": np.resize(list(group), n)}
    )
    return judge_fixed_rule(rows, FIXED, BOTH, 0.05)


def rule_of(parts, promise=None, **changes):
    """A certificate of a rule with these parts, which may contradict each other: only words are looked at."""
    return SimpleNamespace(
        **{
            "parts": tuple(parts), "promise": promise or Promise.overall(0.05), "certified": False,
            "unproved": [], "deferred": {}, "threshold": 0.9, "mixtures": "", "others": [],
            "rule": SimpleNamespace(tables=()),
        } | changes
    )  # fmt: skip


def fixed_part(errors=1, accepted=60, n=100, alpha=0.05, rho=0.05, **more) -> Certificate:
    return Certificate(errors, accepted, n, alpha, rho, 0.9, **more)
