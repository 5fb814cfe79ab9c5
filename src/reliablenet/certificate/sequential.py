"""Sequential certification: look at fresh rows as often as you like until they certify a threshold.

A fixed plan opens a fold once. Whoever looks every month and stops at the first success certifies too
often. Here each threshold of a falling grid, fixed before the first fresh row, gathers evidence that its JCW is below
alpha (`log_evidence_below`), and one is certified while its evidence and that of every higher one has
reached 1 / rho. JCW falls as the threshold rises, so that there is a first threshold in the grid whose JCW
exceeds alpha; whatever is certified wrongly lies at it or below, so that its own evidence must have
reached 1 / rho, which ever happens with probability at most rho. One may go on after a success: lower thresholds
follow with more rows (docs/decisions/0029).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reliablenet._checks import as_array, check_count, check_fraction, parameter_error
from reliablenet.certificate.anytime import log_evidence_below
from reliablenet.certificate.record import Certificate
from reliablenet.certificate.scored import ScoredRows
from reliablenet.errors import InvalidDataError

STEPS = 40  # thresholds of a grid


def threshold_grid(score: ArrayLike, steps: int = STEPS) -> NDArray[np.float64]:
    """Return falling thresholds that accept ever more of these rows, the last one all of them.

    The scores must be those of rows that are not among the fresh ones, such as the old certification fold.

    Parameters
    ----------
    score : array-like of shape (n,)
    steps : int
        The most thresholds; equal ones count once.

    Returns
    -------
    array of float, falling

    Examples
    --------
    >>> from reliablenet.certificate.sequential import threshold_grid
    >>> threshold_grid([0.5, 0.6, 0.7, 0.8, 0.9], steps=2).tolist()
    [0.7, 0.5]
    """
    values = np.sort(as_array(score, "score").astype(np.float64))
    if values.ndim != 1 or len(values) == 0 or not np.isfinite(values).all():
        raise InvalidDataError("`score` of threshold_grid must be finite numbers, at least one.")
    steps = check_count("steps", steps, "threshold_grid")
    share = np.arange(1, steps + 1) / steps
    place = len(values) - np.ceil(share * len(values)).astype(int)
    return np.unique(values[place])[::-1].copy()


def lowest_certified(errors: ArrayLike, n: int, alpha: float, rho: float = 0.05) -> int:
    """Return the place of the lowest threshold that is certified now, -1 if none is.

    Parameters
    ----------
    errors : array-like of int, shape (thresholds,)
        Rows accepted and wrong at each threshold of the falling grid, among n rows.
    n : int
    alpha, rho : float in (0, 1)

    Returns
    -------
    int

    Examples
    --------
    >>> from reliablenet.certificate.sequential import lowest_certified
    >>> [lowest_certified([0, 1, 9], n, 0.05) for n in (50, 150, 600)]
    [-1, 1, 2]
    """
    owner = "lowest_certified"
    alpha, rho = check_fraction("alpha", alpha, owner), check_fraction("rho", rho, owner)
    counts = as_array(errors, "errors")
    if counts.ndim != 1 or np.any(np.diff(counts) < 0):
        raise parameter_error("errors", owner, "never fall as the threshold falls", errors)
    enough = np.asarray(log_evidence_below(counts, np.int64(n), alpha)) >= -math.log(rho)
    return int(np.argmin(enough)) - 1 if not enough.all() else len(counts) - 1


def certify_anytime(
    rows: ScoredRows, thresholds: Sequence[float], alpha: float, rho: float = 0.05, **known: Any
) -> Certificate:
    """Certify the lowest threshold of the grid that all rows so far allow.

    Parameters
    ----------
    rows : ScoredRows
        All fresh rows since the grid was fixed.
    thresholds : sequence of float
        The grid, falling.
    alpha, rho : float in (0, 1)
    **known
        What else the certificate is to hold, such as its provenance.

    Returns
    -------
    Certificate
        Of the kind "anytime"; its threshold is ``inf`` while none is certified.

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet.certificate.scored import ScoredRows
    >>> from reliablenet.certificate.sequential import certify_anytime
    >>> rng = np.random.default_rng(0)
    >>> score = rng.random(1000)
    >>> wrong = rng.random(1000) < 0.2 * (1 - score)
    >>> rows = ScoredRows(score, wrong, 0.0)
    >>> c = certify_anytime(rows, [0.9, 0.6, 0.3, 0.0], alpha=0.05)
    >>> c.certified, c.threshold, c.kind
    (True, 0.6, 'anytime')
    """
    grid = np.asarray(thresholds, np.float64)
    if grid.ndim != 1 or len(grid) == 0 or np.any(np.diff(grid) >= 0):
        raise parameter_error(
            "thresholds", "certify_anytime", "fall from one to the next", thresholds
        )
    wrong = np.sort(rows.score[rows.wrong])
    errors = len(wrong) - np.searchsorted(wrong, grid)
    place = lowest_certified(errors, rows.n, alpha, rho)
    threshold = math.inf if place < 0 else float(grid[place])
    accepted = rows.score >= threshold
    return Certificate(
        errors=int((accepted & rows.wrong).sum()),
        accepted=int(accepted.sum()),
        n=rows.n,
        alpha=alpha,
        rho=rho,
        threshold=threshold,
        kind="anytime",
        unknown=rows.n_unknown,
        **known,
    )
