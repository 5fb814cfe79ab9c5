"""Whether a scale for each predicted class pays, judged on the selection fold alone.

Scales that are learned from few rows, or where a score means the same in every class, put rows into a
worse order than the score itself. So they are tried first: learned on four fifths of the fold, and used on
the fifth that they have not seen. They are taken only if they would act rightly on more rows under the same
budget, by more than the standard error of that gain. The certification fold has no part in it, and a
certificate holds whatever is decided here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from reliablenet.certificate.path import learn_path
from reliablenet.certificate.rule import factorize
from reliablenet.certificate.scored import ScoredRows

PARTS = 5  # of the selection fold, each left out once
STANDARD_ERRORS = 1.0  # by which a gain must show

Floats = NDArray[np.float64]


def class_scales_pay(rows: ScoredRows, predicted: NDArray[Any], spending: Floats) -> bool:
    """Tell whether a scale for each predicted class acts rightly on clearly more rows than one for all.

    Parameters
    ----------
    rows : ScoredRows
        The selection fold.
    predicted : array of shape (n,)
        Predicted labels.
    spending : array of shape (n,)
        What acting on each row spends of a budget of 1.

    Returns
    -------
    bool
        False where there are too few rows or mistakes to tell.

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet.certificate.path_gain import class_scales_pay
    >>> from reliablenet.certificate.scored import ScoredRows
    >>> rng = np.random.default_rng(0)
    >>> score, predicted = rng.uniform(0.5, 1.0, 2000), rng.integers(0, 2, 2000)
    >>> alike = rng.random(2000) < 0.8 * (1 - score)
    >>> differ = rng.random(2000) < np.where(predicted == 0, 0.3, 1.4) * (1 - score)
    >>> for wrong in (alike, differ):
    ...     rows = ScoredRows(score, wrong, 0.0)
    ...     class_scales_pay(rows, predicted, wrong / (2000 * 0.05))
    False
    True
    """
    places = _places_of_unseen_rows(rows, factorize(predicted)[0], spending)
    if places is None:
        return False
    less, more = (_affordable(rows.score, spending, budget) for budget in (0.5, 2.0))
    around = more & ~less
    spent = float(spending[around].sum())
    if spent == 0.0:
        return False
    # what a unit of budget buys near the threshold: rules that spend unequally are compared at this price
    price = np.count_nonzero(around & ~rows.wrong) / spent
    worth = ~rows.wrong - price * spending
    one, several = _affordable(rows.score, spending), _affordable(places, spending)
    gain = (several.astype(float) - one) * worth
    noise = float(gain.std()) * np.sqrt(rows.n)
    return bool(gain.sum() > STANDARD_ERRORS * noise)


def _places_of_unseen_rows(
    rows: ScoredRows, classes: NDArray[np.intp], spending: Floats
) -> Floats | None:
    """Return the place of each row on a path learned without it; None where none could be learned."""
    # neighbours in score go to different parts; the order of the rows says nothing
    part = np.empty(rows.n, np.intp)
    part[np.lexsort((rows.score, classes))] = np.arange(rows.n) % PARTS
    places = np.empty(rows.n)
    for number in range(PARTS):
        left_out = part == number
        known = ~left_out
        path = learn_path(rows.score[known], classes[known], spending[known], rows.lowest)
        if not path.scales:
            return None
        places[left_out] = path.places(rows.score[left_out], classes[left_out])
    return places


def _affordable(place: Floats, spending: Floats, budget: float = 1.0) -> NDArray[np.bool_]:
    """Tell which rows a rule along a path acts on that keeps a budget on these very rows."""
    order = np.argsort(-place)
    over = np.flatnonzero(np.cumsum(spending[order]) > budget * (1.0 + 1e-9))
    cut = -np.inf if len(over) == 0 else place[order[over[0]]]
    return np.asarray(place > cut)
