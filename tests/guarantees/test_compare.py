"""The best of many methods keeps its promise, though it was chosen on the rows that certify it.

Whole comparisons, few of them; `studies/guarantees/compare.py` draws 20,000 of each source.
"""

from __future__ import annotations

import numpy as np
from contract_helpers import Scores

import reliablenet as rn
from reliablenet.tables import Fold, Folds

METHODS, ROWS, DRAWS = 8, 150, 60
ALPHA, RHO, ERROR = 0.1, 0.1, 0.2


def promises(seed: int) -> tuple[bool, bool]:
    """Tell whether the corrected and the single certificate of the winner were broken.

    Scores are uniform on (1/2, 1) and independent of the errors, so that the true JCW at a threshold
    t is ERROR * 2 (1 - t).
    """
    random = np.random.default_rng(seed)
    selection, certification = (
        Fold(random.uniform(0.5, 1.0, (ROWS, METHODS)), (random.random(ROWS) >= ERROR).astype(int))
        for _ in range(2)
    )
    methods = {f"method {column}": Scores(column) for column in range(METHODS)}
    folds = Folds(selection, selection, certification)
    found = rn.compare(folds=folds, methods=methods, alpha=ALPHA, rho=RHO, resamples=1)
    assert len(found.choice.divisors) == METHODS

    def broken(threshold: float) -> bool:
        return ERROR * 2 * (1 - max(threshold, 0.5)) > ALPHA if threshold < np.inf else False

    best, winner = found.best(), next(iter(found.results.values()))
    corrected = best.certificate is not None and broken(best.certificate.threshold)
    return corrected, broken(winner.certificate.threshold)


def test_choosing_the_best_breaks_the_single_certificate_but_not_the_corrected_one() -> None:
    corrected, single = np.mean([promises(seed) for seed in range(DRAWS)], axis=0)
    error = np.sqrt(RHO * (1 - RHO) / DRAWS)
    assert corrected <= RHO + 3 * error
    assert single > RHO + 3 * error  # so that the correction is needed, and this test can fail
