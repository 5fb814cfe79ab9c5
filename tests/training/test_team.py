"""A team: weights by the likelihood of held-out labels, and the average of what members say."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

from reliablenet.errors import InvalidDataError
from reliablenet.training import team as module
from reliablenet.training.team import OwnMember, Team, weigh


def opinions(n: int = 300) -> tuple[list[np.ndarray], np.ndarray]:
    draw = np.random.default_rng(0)
    y = draw.integers(3, size=n)
    said = [draw.dirichlet(np.ones(3), n) + strength * np.eye(3)[y] for strength in (0.2, 0.6, 0.5)]
    return [one / one.sum(1, keepdims=True) for one in said], y


def test_weights_are_the_most_likely_ones(monkeypatch) -> None:
    """An independent optimiser finds the same, with nothing granted beforehand."""
    monkeypatch.setattr(module, "PRIOR_ROWS", 0.0)
    monkeypatch.setattr(module, "ROUNDS", 20_000)
    said, y = opinions()
    truth = np.stack([one[np.arange(len(y)), y] for one in said])

    def loss(free: np.ndarray) -> float:
        weights = np.exp(free) / np.exp(free).sum()
        return float(-np.log(weights @ truth).mean())

    best = minimize(loss, np.zeros(3)).fun
    assert -np.log(np.array(weigh(said, y)) @ truth).mean() <= best + 1e-6


def test_on_few_rows_all_count_nearly_alike() -> None:
    said, y = opinions()
    few = weigh([one[:4] for one in said], y[:4])
    assert max(few) < 0.5
    assert weigh([one[:0] for one in said], y[:0]) == pytest.approx((1 / 3, 1 / 3, 1 / 3))


def test_the_average_is_by_weight() -> None:
    said, _ = opinions(5)

    class Says:
        def __init__(self, what):
            self.what = what

        def probabilities(self, X, n_classes):
            return self.what

    team = Team((Says(said[1]), Says(said[2])), (0.5, 0.25, 0.25))
    total = team.combine(said[0], team.listen(np.zeros((5, 1), np.float32), 3))
    assert np.allclose(total, 0.5 * said[0] + 0.25 * said[1] + 0.25 * said[2])


@pytest.mark.parametrize("weights", [(1.0, 0.5), (0.5,), (1.5, -0.5), (float("nan"), 0.5)])
def test_weights_that_are_none_are_refused(weights) -> None:
    with pytest.raises(InvalidDataError, match="sum to 1"):
        Team((OwnMember(None),), weights)


def test_a_classifier_of_ones_own_has_the_same_bits_in_any_company() -> None:
    draw = np.random.default_rng(0)
    X = draw.normal(size=(1500, 30)).astype(np.float32)
    y = 2 * (X[:, 0] + X[:, 1] > 0)  # there is no class 1
    member = OwnMember.fit(LogisticRegression(), X, y, None)
    whole = member.probabilities(X, 3)
    assert np.all(whole[:, 1] == 0.0)
    for size in (1, 3, 700):
        assert np.array_equal(member.probabilities(X[600 : 600 + size], 3), whole[600 : 600 + size])
