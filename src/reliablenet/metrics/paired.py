"""How sure is it that one rule beats another: both are measured on the same resampled rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reliablenet.certificate.planning import largest_certifiable_errors
from reliablenet.certificate.scored import ScoredRows

CHUNK_ENTRIES = 2_000_000  # rows times resamples held at once
RESAMPLES = 1000  # in a contest; with few, all of them may agree by chance
# Shares of resamples from which one rule is called clearly or probably better. Of two equal rules one
# is ahead on the rows themselves, so that a share of 1 - p is met in up to 2 p of all draws. Simulated
# in studies/guarantees/wording.py: "clearly" in at most 5 % of draws, either word in at most 15 %.
CLEAR, LIKELY = 0.98, 0.93


@dataclass(frozen=True, eq=False)
class Contest:
    """One rule against others, all certified at one level and measured on the same resampled rows.

    Attributes
    ----------
    winner : str
    throughput : dict of str to float
        Certified throughput of each rule on the rows themselves.
    draws : dict of str to array of shape (resamples,)
        The same in each resample.
    """

    winner: str
    throughput: dict[str, float]
    draws: dict[str, NDArray[np.float64]]

    @property
    def resamples(self) -> int:
        """Number of resamples."""
        return len(self.draws[self.winner])

    def runner_up(self) -> str | None:
        """Return the best of the other rules, None if all equal the winner in every resample."""
        own = self.draws[self.winner]
        others = [name for name, draws in self.draws.items() if not np.array_equal(draws, own)]
        return max(others, key=lambda name: self.throughput[name], default=None)

    def sureness(self, rival: str) -> float:
        """Return the share of resamples in which the winner beats a rival; a tie counts half."""
        difference = self.draws[self.winner] - self.draws[rival]
        return float(((difference > 0).mean() + (difference >= 0).mean()) / 2)

    def word(self, rival: str) -> str:
        """Return "clearly" or "probably" if the winner is so much ahead of a rival, else ""."""
        share = self.sureness(rival)
        return "clearly" if share >= CLEAR else "probably" if share >= LIKELY else ""


def hold_contest(winner: str, rules: Mapping[str, ScoredRows], alpha: float, rho: float) -> Contest:
    """Measure rules against one of them, by certified throughput at one level.

    The resamples are the same for the same rows, so that a stored comparison says again what the
    fresh one said.

    Parameters
    ----------
    winner : str
    rules : mapping of str to ScoredRows
        All about the same rows in the same order; the winner is one of them.
    alpha, rho : float

    Returns
    -------
    Contest

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet.certificate.scored import ScoredRows
    >>> from reliablenet.metrics.paired import hold_contest
    >>> wrong = np.arange(1000) % 10 == 0
    >>> noise = np.random.default_rng(0).random(1000)
    >>> rules = {
    ...     "well": ScoredRows(noise - wrong, wrong, -np.inf),
    ...     "blind": ScoredRows(noise, wrong, -np.inf),
    ... }
    >>> contest = hold_contest("well", rules, alpha=0.05, rho=0.05)
    >>> contest.runner_up(), contest.word("blind"), contest.resamples
    ('blind', 'clearly', 1000)
    """
    listed = list(rules.values())
    most = largest_certifiable_errors(listed[0].n, alpha, rho)
    once = np.arange(listed[0].n)[None]
    own = [float(_throughput(rule, most, once)[0]) for rule in listed]
    draws = resample_certified_throughput(listed, alpha, rho, RESAMPLES, np.random.RandomState(0))
    names = list(rules)
    return Contest(winner, dict(zip(names, own, strict=True)), dict(zip(names, draws, strict=True)))


def resample_certified_throughput(
    rules: Sequence[ScoredRows],
    alpha: float,
    rho: float,
    resamples: int,
    random: np.random.RandomState,
) -> NDArray[np.float64]:
    """Return the certified throughput of each rule in each bootstrap resample of the same rows.

    The threshold is certified anew in every resample, so that the spread holds that of the
    threshold too.

    Parameters
    ----------
    rules : sequence of ScoredRows
        One entry a rule; all about the same n rows in the same order.
    alpha, rho : float
    resamples : int
    random : RandomState

    Returns
    -------
    array of shape (rules, resamples)

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet.certificate.scored import ScoredRows
    >>> from reliablenet.metrics.paired import resample_certified_throughput
    >>> wrong = np.arange(1000) % 20 == 0                          # 5 % are wrong
    >>> ranked = ScoredRows(np.where(wrong, 0.6, 0.9), wrong, 0.0)     # errors come last
    >>> blind = ScoredRows(np.full(1000, 0.8), wrong, 0.0)             # all or nothing
    >>> random = np.random.RandomState(0)
    >>> draws = resample_certified_throughput([ranked, blind], 0.05, 0.05, 200, random)
    >>> bool((draws[0] > 0.92).all()), float((draws[1] == 0).mean()) > 0.9
    (True, True)
    """
    n = rules[0].n
    most = largest_certifiable_errors(n, alpha, rho)
    result = np.zeros((len(rules), resamples))
    size = max(1, CHUNK_ENTRIES // n)
    for start in range(0, resamples, size):
        part = slice(start, min(start + size, resamples))
        drawn = random.randint(n, size=(part.stop - start, n))
        for number, rule in enumerate(rules):
            result[number, part] = _throughput(rule, most, drawn)
    return result


def _throughput(rule: ScoredRows, most: int, drawn: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the certified throughput in samples of the rows, one sample a line of row numbers."""
    samples, n = drawn.shape
    if most < 0:
        return np.zeros(samples)
    cells, blocks = _cells(rule)
    counts = np.array([np.bincount(cells[rows], minlength=3 * blocks) for rows in drawn])
    before, beside, wrong = counts[:, 0::3], counts[:, 1::3], counts[:, 2::3]
    passed = np.cumsum(wrong, axis=1) <= most
    reached = np.column_stack([np.ones(samples, bool), passed[:, :-1]])
    right = (before * reached).sum(axis=1) + (beside * passed).sum(axis=1)
    return np.asarray(right / n)


def _cells(rule: ScoredRows) -> tuple[NDArray[np.intp], int]:
    """Return the cell of each row, and the number of blocks; a block has three cells.

    From the highest score down, a block ends with a score that some wrong row has: its cells are the
    rows above that score (all right), the right rows at it and the wrong rows at it. Rows of equal
    score are accepted together, and only a score with errors can exceed what is affordable.
    """
    order = np.argsort(-rule.score)
    score, wrong = rule.score[order], rule.wrong[order]
    starts = np.flatnonzero(np.r_[True, score[1:] != score[:-1]])
    sizes = np.diff(np.r_[starts, rule.n])
    faulty = np.logical_or.reduceat(wrong, starts)
    block: NDArray[np.intp] = np.repeat(np.cumsum(faulty) - faulty, sizes)
    cells = np.empty(rule.n, np.intp)
    cells[order] = 3 * block + np.where(wrong, 2, np.repeat(faulty, sizes))
    return cells, int(faulty.sum()) + 1
