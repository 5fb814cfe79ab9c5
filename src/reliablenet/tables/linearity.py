"""Is a number related to the label by a line? A test that decides how the number is encoded."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, xlogy
from scipy.stats import chi2

LEVEL = 0.01
STEPS = 25  # of Newton's method, which needs about six
RIDGE = 1e-6  # keeps a step finite where a line separates the classes
LARGEST_STEP = 3.0


def is_nonlinear(
    numbers: NDArray[np.float64], groups: NDArray[np.intp], y: NDArray[np.intp], n_classes: int
) -> bool:
    """Tell whether the share of some class follows no line in the number, on the scale of log-odds.

    For each class against the rest, a logistic line through the means of the groups is held against
    one share a group. The difference of their deviances has about a chi-squared distribution if the
    line is true; the smallest of the classes' p-values is compared with 0.01 / K.

    Parameters
    ----------
    numbers : array of shape (n,)
    groups : array of int of shape (n,)
        Rows of similar numbers, such as those of one quantile bin.
    y : array of int of shape (n,)
        Class indices.
    n_classes : int

    Returns
    -------
    bool

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet.tables.linearity import expit, is_nonlinear
    >>> random = np.random.default_rng(0)
    >>> x = random.normal(size=4000)
    >>> groups = np.searchsorted([-1.0, -0.5, 0.0, 0.5, 1.0], x)
    >>> steady = (random.random(4000) < expit(x)).astype(int)
    >>> humped = (random.random(4000) < expit(1 - x**2)).astype(int)
    >>> is_nonlinear(x, groups, steady, 2), is_nonlinear(x, groups, humped, 2)
    (False, True)
    """
    _, groups = np.unique(groups, return_inverse=True)
    rows = np.bincount(groups).astype(np.float64)
    freedom = len(rows) - 2
    if freedom < 1:
        return False
    counts = np.zeros((len(rows), n_classes))
    np.add.at(counts, (groups, y), 1.0)
    means = np.bincount(groups, weights=numbers - numbers.mean()) / rows
    spread = np.sqrt(np.average(means**2, weights=rows))
    lines = _logistic_lines(means / (spread or 1.0), rows, counts)
    deviance = 2.0 * (
        _likelihood(counts, rows, counts / rows[:, None]) - _likelihood(counts, rows, lines)
    )
    return bool(chi2.sf(deviance.max(), freedom) < LEVEL / n_classes)


def _logistic_lines(
    x: NDArray[np.float64], rows: NDArray[np.float64], counts: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the shares of each class, against the rest, that a line in x fits best."""
    offset, slope = np.zeros(counts.shape[1]), np.zeros(counts.shape[1])
    shares = np.full(counts.shape, 0.5)
    for _ in range(STEPS):
        residual = counts - rows[:, None] * shares
        weight = rows[:, None] * shares * (1.0 - shares)
        a, b, c = weight.sum(0) + RIDGE, x @ weight, (x**2) @ weight + RIDGE
        first, second = residual.sum(0), x @ residual
        determinant = a * c - b * b
        steps = np.array([c * first - b * second, a * second - b * first]) / determinant
        offset, slope = np.array([offset, slope]) + steps.clip(-LARGEST_STEP, LARGEST_STEP)
        shares = expit(offset + x[:, None] * slope)
        if np.abs(steps).max() < 1e-9:
            break
    return shares


def _likelihood(
    counts: NDArray[np.float64], rows: NDArray[np.float64], shares: NDArray[np.float64]
) -> NDArray[np.float64]:
    rest = rows[:, None] - counts
    with np.errstate(divide="ignore"):
        likelihood: NDArray[np.float64] = (xlogy(counts, shares) + xlogy(rest, 1.0 - shares)).sum(0)
    return likelihood
