"""Scales of predicted classes are taken only where they pay on rows that they have not seen."""

from __future__ import annotations

import math

import numpy as np
import pytest

from reliablenet import Promise, certified_rule
from reliablenet.certificate.path import learn_path
from reliablenet.certificate.path_gain import _affordable, class_scales_pay
from reliablenet.certificate.rule_plan import plan_rule
from reliablenet.certificate.scored import ScoredRows

ALPHA = 0.05
NAMES = np.array(["ill", 7], object)  # labels of two kinds, which cannot be sorted


def draw(seed: int, n: int, risks: tuple[float, float] = (0.3, 1.4)) -> ScoredRows:
    """Return rows in which a prediction is wrong with so many times 1 - score."""
    rng = np.random.default_rng(seed)
    score, predicted = rng.uniform(0.5, 1.0, n), rng.integers(0, 2, n)
    wrong = rng.random(n) < np.take(risks, predicted) * (1 - score)
    return ScoredRows(score, wrong, 0.5, truth=predicted ^ wrong, predicted=predicted)


def pays(rows: ScoredRows) -> bool:
    return class_scales_pay(rows, NAMES[rows.predicted], rows.wrong / (rows.n * ALPHA))


@pytest.mark.parametrize("n", [500, 2000])
def test_classes_that_differ_are_told_from_classes_that_do_not(n):
    differ = sum(pays(draw(seed, n)) for seed in range(40))
    alike = sum(pays(draw(seed, n, (0.8, 0.8))) for seed in range(40))
    assert differ >= 30
    assert alike <= 8  # a normal gain of no size exceeds its standard error in 16 %


def test_rows_in_another_order_decide_the_same():
    rows = draw(3, 400)
    for seed in range(3):
        shuffled = rows.take(np.random.default_rng(seed).permutation(rows.n))
        assert pays(shuffled) == pays(rows)


@pytest.mark.parametrize(
    "rows",
    [
        draw(0, 55),  # four fifths of them are too few to learn from
        draw(0, 400).take(slice(0, 0)),
        ScoredRows(np.linspace(0.5, 1, 300), np.zeros(300, bool), 0.5, predicted=np.arange(300) % 2),
        ScoredRows(np.linspace(0.5, 1, 300), np.arange(300) < 40, 0.5, predicted=np.zeros(300, int)),
    ],
    ids=["few", "none", "no mistake", "one class"],
)  # fmt: skip
def test_where_nothing_can_be_told_the_score_is_kept(rows):
    assert not pays(rows)
    assert plan_rule(Promise.overall(ALPHA), 0.5, 100, rows, [0, 1]).path.scales == {}


def accepted_by_hand(place: list[float], spending: list[float], budget: float) -> list[bool]:
    """Return the rows at or above the lowest place at which what they spend together is affordable."""
    best = math.inf
    for limit in sorted(set(place), reverse=True):
        spent = sum(cost for own, cost in zip(place, spending, strict=True) if own >= limit)
        if spent > budget * (1 + 1e-9):
            break
        best = limit
    return [own >= best for own in place]


def pays_by_hand(rows: ScoredRows, spending: np.ndarray) -> bool:
    """Say it row by row: scales learned on four fifths, what they gain on the fifth, and its error."""
    score, wrong, classes = rows.score.tolist(), rows.wrong.tolist(), rows.predicted.tolist()
    ranked = sorted(range(rows.n), key=lambda row: (classes[row], score[row]))
    part = {row: rank % 5 for rank, row in enumerate(ranked)}
    places = [0.0] * rows.n
    for number in range(5):
        known = np.array([part[row] != number for row in range(rows.n)])
        path = learn_path(rows.score[known], rows.predicted[known], spending[known], 0.5)
        for row in range(rows.n):
            if part[row] == number:
                place = path.places(rows.score[row : row + 1], rows.predicted[row : row + 1])
                places[row] = float(place[0])
    costs = spending.tolist()
    half, double = (accepted_by_hand(score, costs, budget) for budget in (0.5, 2.0))
    near = [row for row in range(rows.n) if double[row] and not half[row]]
    bought, spent = sum(not wrong[row] for row in near), sum(costs[row] for row in near)
    if spent == 0:
        return False
    one, several = accepted_by_hand(score, costs, 1.0), accepted_by_hand(places, costs, 1.0)
    gains = [
        (several[row] - one[row]) * ((not wrong[row]) - bought / spent * costs[row])
        for row in range(rows.n)
    ]
    mean = sum(gains) / rows.n
    error = sum((gain - mean) ** 2 for gain in gains) ** 0.5
    return sum(gains) > error


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("costs", [(1.0, 1.0), (1.0, 3.0)])
def test_the_decision_is_that_of_the_plain_account(ties, costs):
    said = []
    for seed in range(100):
        rows = draw(seed, 200, (0.55, 1.0))
        if ties:
            rows = ScoredRows(rows.score.round(2), rows.wrong, 0.5, predicted=rows.predicted)
        spending = rows.wrong * np.take(costs, rows.predicted) / (rows.n * ALPHA)
        said.append(class_scales_pay(rows, rows.predicted, spending))
        assert said[-1] == pays_by_hand(rows, spending), seed
    assert 10 <= sum(said) <= 90  # both answers are given


def test_rules_that_act_on_the_same_rows_do_not_pay():
    rows = draw(2, 300)
    spending = 0.8 * rows.wrong / rows.wrong.sum()  # all are affordable, in whatever order
    assert not class_scales_pay(rows, rows.predicted, spending)


def test_a_budget_for_all_rows_leaves_nothing_to_gain():
    rows = draw(1, 1000)
    assert not class_scales_pay(rows, rows.predicted, rows.wrong / rows.n)


def test_what_is_affordable_is_counted_from_the_best_place_on():
    place = np.array([0.9, 0.8, 0.8, 0.7, 0.6])
    spending = np.array([0.0, 0.5, 0.0, 0.5, 0.5])
    assert _affordable(place, spending).tolist() == [True, True, True, True, False]
    assert _affordable(place, spending, 0.5).tolist() == [True, True, True, False, False]
    assert _affordable(place, spending, 0.4).tolist() == [True, False, False, False, False]
    assert _affordable(place, spending, 2.0).all()


def test_a_rule_has_several_thresholds_where_they_pay_and_one_elsewhere():
    found = {}
    for name, risks in {"differ": (0.3, 1.4), "alike": (0.8, 0.8)}.items():
        chosen, held = draw(10, 2000, risks), draw(11, 2000, risks)
        found[name] = certified_rule(held, None, Promise.overall(ALPHA), selection=chosen)
    assert set(found["differ"].rule.thresholds) == {0, 1}
    assert set(found["alike"].rule.thresholds) == {"all"}


def test_other_promises_learn_their_path_as_they_are():
    """Costs differ by class beforehand, and shares among rows acted on have no plain score to beat."""
    rows = draw(0, 400, (0.8, 0.8))
    for promise in (Promise.cost([[0, 1], [4, 0]], 0.1), Promise.among_accepted(0.1)):
        assert set(plan_rule(promise, 0.5, 400, rows, [0, 1]).path.scales) == {0, 1}
