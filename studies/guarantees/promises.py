"""Every promise, on sources whose risks are known: how often is a granted one false, and what does it act on?

Three settings for each promise: at the edge (a risk one in a thousand above the budget where acting is tempting),
few rows, and kinds of rows that differ in difficulty and number. All draws are computed at once by
`promise_draws`, and the first of each setting again by the library, which must act on the same rows. *Faults* are
what a careless mechanism would do; the same simulation must catch them.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from reliablenet.certificate.path import learn_path
from reliablenet.certificate.promise import Promise
from reliablenet.certificate.rule_plan import RulePlan, plan_rule
from reliablenet.certificate.rule_search import certified_rule_batches
from studies.guarantees import promise_draws as draws_of
from studies.guarantees.promise_draws import Array, Source
from studies.runner import Block, Record, Study

DRAWS, FEWER_DRAWS = 20_000, 2_000
COMPARED = 25  # draws of each setting on which the library must act on the same rows
RHO = 0.05
EDGE = np.array([0.7, 1.001, 3.0])  # risk at three scores, over the budget
SHARES = np.array([0.4, 0.25, 0.2, 0.1, 0.05])


def rising(alpha: float, steepness: Any, scores: int = 50) -> Array:
    """Return P(acted and wrong | kind): with coverage it rises, evenly at first and then faster."""
    coverage = np.arange(1, scores + 1) / scores
    steep = np.atleast_1d(np.asarray(steepness, float))[:, None]
    return alpha * steep * coverage**2


def among(alpha: float, ratio: Any, scores: int = 100) -> Source:
    """Return a source in which the error rate among rows acted on is alpha times a ratio."""
    coverage = np.arange(1, scores + 1) / scores
    return Source.of([1.0], alpha * np.asarray(ratio(coverage)) * coverage)


def unequal(alpha: float, kinds: int = 5) -> Array:
    """Return risks of kinds that differ: the hardest four times those of the easiest."""
    return rising(alpha, np.geomspace(2.5, 10.0, kinds))


# promise, how the rule is found, and settings: name, source, rows
GROUPS = Promise.by_group(0.05)
COMMON = Promise.by_group(0.05, common=True)
COSTS = {
    "one": Promise.cost([[0, 3], [3, 0]], 0.15),
    "several": Promise.cost([[0, 1], [4, 0]], 0.2),
}
BOTH = Promise.all_of(Promise.overall(0.05), Promise.by_group(0.05))
EQUAL5 = Source.of(np.full(5, 0.2), unequal(0.05))  # five groups of about 400
AMONG = [
    ("edge", among(0.1, lambda c: 1.001 + 0 * c), 1000),
    ("few rows", among(0.1, lambda c: 0.2 + 1.2 * c), 150),
    ("best in the middle", among(0.1, lambda c: 1.6 - 3.6 * c + 3 * c**2), 2000),
]
CASES: dict[str, tuple[Promise, str, list[tuple[str, Source, int]]]] = {
    "overall, learned path": (
        Promise.overall(0.05),
        "path",
        [
            ("edge", Source.of([0.5, 0.5], rising(0.05, [1.001, 6.0])), 1000),
            ("few rows", Source.of([0.5, 0.5], rising(0.05, [1.0, 6.0])), 150),
            ("unequal", Source.of(SHARES, unequal(0.05)), 2000),
        ],
    ),
    "among rows acted on, learned order": (
        Promise.among_accepted(0.1),
        "path",
        AMONG,
    ),
    "among rows acted on, ten coverages": (
        Promise.among_accepted(0.1),
        "coverages",
        AMONG,
    ),
    "by group": (
        GROUPS,
        "own",
        [
            ("edge", Source.of(np.full(5, 0.2), 0.05 * EDGE), 2000),
            ("few rows", Source.of([0.6, 0.3, 0.1], rising(0.05, [1.0, 3.0, 6.0])), 300),
            ("unequal", EQUAL5, 2000),
        ],
    ),
    "by group, one threshold": (
        COMMON,
        "one",
        [
            ("edge", Source.of(np.full(5, 0.2), 0.05 * EDGE * np.array([[1, 1e-3, 1e-3, 1e-3, 1e-3]]).T), 2000),
            ("few rows", Source.of([0.6, 0.4], rising(0.05, [1.0, 3.0])), 300),
            ("unequal", EQUAL5, 2000),
        ],
    ),
    "by predicted class": (
        Promise.by_predicted({0: 0.02, 1: 0.03}),
        "own",
        [
            ("edge", Source.of([0.5, 0.5], np.array([[0.04], [0.06]]) * EDGE), 846),
            ("few rows", Source.of([0.5, 0.5], rising(0.05, [1.0, 3.0])), 200),
            ("unequal", Source.of([0.85, 0.15], rising(0.05, [1.0, 9.0])), 2000),
        ],
    ),
    "by true class, two": (
        Promise.by_class(0.05),
        "own",
        [
            ("edge", Source.of([0.5, 0.5], 0.05 * EDGE), 1000),
            ("few rows", Source.of([0.6, 0.4], rising(0.05, [1.0, 3.0])), 200),
            ("unequal", Source.of([0.9, 0.1], rising(0.05, [1.0, 9.0])), 2000),
        ],
    ),
    "by true class, five": (
        Promise.by_class(0.05),
        "one",
        [
            ("edge", Source.of(np.full(5, 0.2), 0.05 * EDGE * np.array([[1, 1e-3, 1e-3, 1e-3, 1e-3]]).T), 2000),
            ("few rows", Source.of(np.full(3, 1 / 3), rising(0.05, [1.0, 2.0, 3.0])), 300),
            ("unequal", Source.of(SHARES, unequal(0.05)), 2000),
        ],
    ),
    "cost, one": (
        COSTS["one"],
        "one",
        [
            ("edge", Source.of([0.5, 0.5], 0.05 * EDGE), 1000),
            ("few rows", Source.of([0.5, 0.5], rising(0.05, [1.0, 3.0])), 150),
            ("unequal", Source.of([0.9, 0.1], rising(0.05, [1.0, 9.0])), 2000),
        ],
    ),
    "cost, several": (
        COSTS["several"],
        "one",
        [
            ("edge", Source.of([0.5, 0.5], 0.2 / 2.5 * EDGE), 1000),
            ("few rows", Source.of([0.5, 0.5], rising(0.08, [1.0, 3.0])), 150),
            ("unequal", Source.of([0.9, 0.1], rising(0.08, [1.0, 6.0])), 2000),
        ],
    ),
    "overall and by group": (
        BOTH,
        "several",
        [
            ("edge", Source.of([0.8, 0.1, 0.1], 0.05 * EDGE * np.array([[1e-3, 1, 1]]).T), 3000),
            ("few rows", Source.of([0.6, 0.4], rising(0.05, [1.0, 3.0])), 300),
            ("unequal", EQUAL5, 2000),
        ],
    ),
}  # fmt: skip
# the promise whose settings a fault is tried in, and the way in which it goes wrong
FAULTS = {
    "each group at rho": ("by group", "uncorrected"),
    "all groups together": ("by group, one threshold", "together"),
    "each predicted class at rho": ("by predicted class", "uncorrected"),
    "each true class at rho": ("by true class, two", "uncorrected"),
    "all true classes together": ("by true class, five", "together"),
    "the observed cost within the budget": ("cost, one", "observed"),
    "the observed costs within the budget": ("cost, several", "observed"),
    "each promise and each group at rho": ("overall and by group", "several at rho"),
    "each coverage at rho": ("among rows acted on, ten coverages", "coverages at rho"),
    "path learned on the certification fold": ("overall, learned path", "own fold"),
    "the best of all thresholds that pass": ("among rows acted on, learned order", "best"),
    "a blind start": ("among rows acted on, learned order", "blind"),
    "one threshold, no path": ("overall, learned path", "plain"),
}
MANY_CLASSES, FEW_ROWS = Source.of(np.full(8, 0.125), rising(0.05, 3.0)), 300


def run_setting(case: str, name: str, draws: int, fault: str = "") -> Record:
    """Count what is granted in all draws of a setting, and what of it is false."""
    promise, way, settings = CASES[case]
    source, n = next((source, n) for setting, source, n in settings if setting == name)
    way = FAULTS[fault][1] if fault else way
    if way == "own fold":  # many classes to be fitted, and few rows
        source, n = MANY_CLASSES, FEW_ROWS
    random = np.random.default_rng([n, len(case), len(name)])
    right, wrong = source.draw(random, n, draws)
    plan: RulePlan | None = None
    if way in ("path", "blind", "best", "own fold"):
        accept = np.zeros(wrong.shape, bool)
        folds = draws if way == "own fold" else min(draws_of.FOLDS, draws)
        for some in np.array_split(np.arange(draws), folds):
            fold = learned(promise, source, n, random, way, right[some], wrong[some])
            plan = plan or fold
            order = way if way in ("blind", "best") else ""
            accept[some] = draws_of.on_path(
                promise, RHO, source, fold, right[some], wrong[some], order
            )
    else:
        find: dict[str, Any] = {
            "uncorrected": partial(draws_of.own_thresholds, corrected=False),
            "together": draws_of.together,
            "observed": partial(draws_of.one_threshold, bounded=False),
            "several at rho": partial(draws_of.several, corrected=False),
            "coverages at rho": partial(draws_of.coverages, corrected=False),
            "own": draws_of.own_thresholds,
            "one": draws_of.one_threshold,
            "plain": draws_of.one_threshold,
            "several": draws_of.several,
            "coverages": draws_of.coverages,
        }
        accept = find[way](promise, RHO, right, wrong)
    acted = acted_on(promise, way, accept)
    if not fault:
        same = min(COMPARED, draws if plan is None else -(-draws // draws_of.FOLDS))
        compare(promise, source, n, plan, right[:same], wrong[:same], accept[:same], acted[:same])
    granted = acted.any(axis=(1, 2))
    beyond = source.risks(promise, accept) > 1.0
    return {
        "granted": int(granted.sum()),
        "failures": int((granted & beyond).sum()),
        "coverage": round(float(source.coverage(accept, acted).mean()), 4),
    }


def acted_on(promise: Promise, way: str, accept: Array) -> Array:
    """Return which rows that are predicted right are acted on; ``accept`` tells which mistakes are.

    A row of one of two true classes that is predicted right has the threshold of that prediction, which
    the mistakes of the other class decide.
    """
    own = promise.kind == "by_class" and way in ("own", "uncorrected")
    return accept[:, ::-1] if own else accept


def learned(
    promise: Promise,
    source: Source,
    n: int,
    random: np.random.Generator,
    way: str,
    right: Array,
    wrong: Array,
) -> RulePlan:
    """Return a plan from a selection fold of half the rows, or, for the fault, from the certification fold itself."""
    if way != "own fold":
        return draws_of.learn(promise, source, n, random, max(n // 2, 100))
    rows = draws_of.rows_of(promise, source, right[0], wrong[0])
    path = learn_path(rows.score, np.asarray(rows.predicted), rows.wrong.astype(float), 0.0)
    return RulePlan(promise, path, classes=list(range(len(source.shares))))


def compare(
    promise: Promise,
    source: Source,
    n: int,
    plan: RulePlan | None,
    right: Array,
    wrong: Array,
    accept: Array,
    acted: Array,
) -> None:
    """Raise if the library acts on other rows."""
    used = plan or plan_rule(promise, 0.0, n, None, np.arange(len(source.shares)))
    for i in range(len(accept)):
        rows = draws_of.rows_of(promise, source, right[i], wrong[i])
        found = certified_rule_batches(lambda rows=rows: [rows], used, RHO)  # type: ignore[misc]
        errors = int((wrong[i] * accept[i]).sum())
        expected = int((right[i] * acted[i]).sum()) + errors, errors
        if (found.accepted, found.errors) != expected:
            raise ArithmeticError(
                f"draw {i} of {promise}: {found.accepted, found.errors} is not {expected}."
            )


def blocks(draws: int = DRAWS) -> list[Block]:
    """Return a block for each promise and setting, and for each fault."""
    found = []
    for case, (_, _, settings) in CASES.items():
        for name, _, n in settings:
            setting: Record = {
                "promise": case,
                "setting": name,
                "fault": "",
                "n": n,
                "draws": draws,
            }
            found.append(
                Block.once(setting | {"rho": RHO}, partial(run_setting, case, name, draws))
            )
    for fault, (case, way) in FAULTS.items():
        for name, _, n in CASES[case][2]:
            if way == "own fold" and name != "few rows":
                continue
            count, rows = (min(draws, FEWER_DRAWS), FEW_ROWS) if way == "own fold" else (draws, n)
            setting = {"promise": case, "setting": name, "fault": fault, "n": rows, "draws": count}
            found.append(
                Block.once(setting | {"rho": RHO}, partial(run_setting, case, name, count, fault))
            )
    return found


STUDY = Study(
    "guarantees",
    "promises",
    about="Does each promise hold, and does the simulation catch careless ways to make it?",
    cost="five minutes",
    blocks=blocks,
)
