"""Whether the bound printed beside a chosen threshold holds, where scores have ties and where not.

A source has so many scores, each as likely as the other, with a known share of errors at each. The lowest
certifiable score is chosen on n rows. *Own errors* is the bound of the errors counted there, as version 0.1
printed it; *most errors* is the bound of the most errors that alpha affords, which is printed now. The same
is asked of a slider that shows a bound at every score of the certified region: does any of them fail?
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import reliablenet as rn
from reliablenet.certificate.judgement import judge
from reliablenet.certificate.scored import ScoredRows
from studies.guarantees.validity import largest_certifiable
from studies.runner import Block, Study

DRAWS = 20_000
COMPARED = 25  # draws of each setting on which the library must say the same
# n, alpha, rho, and how many scores: many rise evenly; of three, the second is hardly over the budget
SETTINGS = (
    (153, 0.05, 0.05, 3),
    (1000, 0.05, 0.05, 3),
    (20_000, 0.05, 0.05, 3),
    (1000, 0.05, 0.05, 20),
    (1000, 0.05, 0.05, 500),
    (20_000, 0.05, 0.05, 20),
    (1000, 0.01, 0.2, 20),
)
EDGE = (0.7, 1.001, 3.0)  # JCW of the three scores, over alpha


def run_setting(n: int, alpha: float, rho: float, scores: int, draws: int) -> dict[str, int]:
    """Count the draws in which a bound lies below the truth."""
    random = np.random.default_rng([n, scores, round(1e6 * rho)])
    # JCW rises with the square of coverage to three times alpha, as of a calibrated score.
    even = 3 * (np.arange(1, scores + 1) / scores) ** 2
    truth = alpha * (np.array(EDGE) if scores == len(EDGE) else even)
    chances = np.diff(truth, prepend=0.0)
    found = random.multinomial(n, [*chances, 1 - chances.sum()], size=draws)[:, :-1]
    errors = np.cumsum(found, axis=1)
    most = largest_certifiable(n, alpha, rho)
    granted = errors <= most
    chosen = granted.sum(axis=1) - 1  # the last score that is certified; -1 if none is
    place = np.maximum(chosen, 0)[:, None]
    counted, real = np.take_along_axis(errors, place, 1)[:, 0], truth[place[:, 0]]
    bound = np.asarray(rn.clopper_pearson_upper(np.arange(n + 1), n, rho))
    whole = chosen == scores - 1  # every row is accepted: nothing was chosen
    printed = np.where(whole, bound[counted], bound[most])
    acts = chosen >= 0
    region = granted & (np.arange(scores) <= chosen[:, None])
    _compare(random, found, n, alpha, rho, printed, acts)
    return {
        "granted": int(acts.sum()),
        "own_errors": int((acts & (real > bound[counted])).sum()),
        "most_errors": int((acts & (real > printed)).sum()),
        "slider_own_errors": int((region & (truth > bound[errors])).any(axis=1).sum()),
        "slider_most_errors": int((region & (truth > printed[:, None])).any(axis=1).sum()),
    }


def blocks(draws: int = DRAWS, settings: Any = SETTINGS) -> list[Block]:
    """Return a block for each setting."""
    return [
        Block.once(
            {"n": n, "alpha": alpha, "rho": rho, "scores": scores, "draws": draws},
            partial(run_setting, n, alpha, rho, scores, draws),
        )
        for n, alpha, rho, scores in settings
    ]


def _compare(
    random: np.random.Generator,
    found: Any,
    n: int,
    alpha: float,
    rho: float,
    printed: Any,
    acts: Any,
) -> None:
    """Raise if the library prints another bound for the first draws."""
    scores = found.shape[1]
    for draw in range(min(COMPARED, len(found))):
        right = random.multinomial(n - found[draw].sum(), np.full(scores, 1 / scores))
        level = np.repeat(np.arange(scores), found[draw] + right)
        wrong = np.concatenate(
            [np.arange(k + r) < k for k, r in zip(found[draw], right, strict=True)]
        )
        certificate = judge(ScoredRows(1.0 - level / scores, wrong, 0.0), alpha, rho)
        said = (certificate.certified, certificate.upper_bound)
        if said[0] != acts[draw] or (said[0] and said[1] != printed[draw]):
            raise ArithmeticError(f"draw {draw}: {said} is not {acts[draw], printed[draw]}.")


STUDY = Study(
    "guarantees",
    "ties",
    about="Does the bound beside a chosen threshold hold where scores have ties?",
    cost="a minute",
    blocks=blocks,
)
