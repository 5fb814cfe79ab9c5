from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from reliablenet.tables.linearity import _logistic_lines, is_nonlinear


def draw(n, seed, logit, *, bins=16):
    random = np.random.default_rng(seed)
    x = random.normal(size=n)
    groups = np.searchsorted(np.quantile(x, np.linspace(0, 1, bins + 1)[1:-1]), x)
    return x, groups, (random.random(n) < expit(logit(x))).astype(int)


def test_a_line_is_taken_for_a_bend_in_no_more_than_about_one_draw_in_a_hundred():
    found = sum(is_nonlinear(*draw(1000, seed, lambda x: 0.5 + x), 2) for seed in range(600))
    assert found <= 14  # 6 are expected, and 15 or more have a probability of 0.002


@pytest.mark.parametrize("logit", [lambda x: 1 - x**2, lambda x: 2.0 * (x > 1), np.abs])
def test_a_bend_is_found(logit):
    assert all(is_nonlinear(*draw(3000, seed, logit), 2) for seed in range(20))


def test_a_bend_of_any_class_counts():
    x, groups, humped = draw(4000, 0, lambda x: 1 - 2 * x**2)
    rest = np.random.default_rng(1).integers(0, 2, len(x))
    y = np.where(humped == 1, 2, rest)  # the classes 0 and 1 bend only against the third
    assert is_nonlinear(x, groups, y, 3)


def test_lines_are_those_of_scikit_learn():
    random = np.random.default_rng(0)
    x = np.array([-2.0, -0.5, 0.5, 2.0])
    counts = random.integers(5, 60, (4, 3)).astype(float)
    rows = counts.sum(1)
    found = _logistic_lines(x, rows, counts)
    for label in range(3):
        table = np.repeat(x, 2)[:, None]
        weights = np.column_stack([counts[:, label], rows - counts[:, label]]).ravel()
        model = LogisticRegression(C=1e10, tol=1e-10, max_iter=1000)
        model.fit(table, np.tile([1, 0], 4), sample_weight=weights)
        np.testing.assert_allclose(
            found[:, label], model.predict_proba(x[:, None])[:, 1], atol=1e-4
        )


def test_two_groups_never_bend_and_a_class_in_one_group_alone_is_no_trouble():
    x = np.repeat([0.0, 1.0], 50)
    assert not is_nonlinear(x, x.astype(int), x.astype(int), 2)
    x = np.repeat([0.0, 1.0, 2.0, 3.0], 50)
    assert not is_nonlinear(x, x.astype(int), (x > 1).astype(int), 2)  # separated by a line
    assert is_nonlinear(x, x.astype(int), (x == 1).astype(int), 2)
