"""`source_test`: whether new rows come from the source that a model was certified on, without their labels.

Score, prediction and each input of the new rows are compared with those of the certification rows, which had no part in
the model. If both are of one source, any division of them into old and new is as likely as any other: the exact null
distribution of every comparison, from which random divisions are drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reliablenet._checks import check_fraction, check_seed, parameter_error
from reliablenet._listing import listed
from reliablenet.certificate.groups import draw_places
from reliablenet.tables.source import LEVELS, Source, cell_codes, surprise_levels

SCORE_CELLS = 20
ENOUGH = 20  # divisions as unlike as the real one, after which a comparison is settled
FIRST, MANY = 100, 20_000  # divisions drawn at first, and where that is enough for a small p-value
OUTPUT_WEIGHT = 0.5  # of the level goes to score, prediction and rarity, the rest to the columns

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class SourcePart:
    """One comparison of new rows with certification rows.

    Attributes
    ----------
    name : str
        "score", "prediction", "rarity" (how rare the values of a row were in training, all columns
        together) or the name of a column.
    p_value : float
        Alone.
    adjusted : float
        Allowing for all comparisons; the source changed here if it is at most the level.
    """

    name: str
    p_value: float
    adjusted: float


@dataclass(frozen=True)
class SourceTest:
    """Whether rows come from the certified source, as far as they show it.

    Attributes
    ----------
    level : float
        At most this is the probability of "changed" if they do.
    rows, reference_rows : int
        New rows, and certification rows that they were compared with.
    parts : tuple of SourcePart
        The most suspicious first.
    """

    level: float
    rows: int
    reference_rows: int
    parts: tuple[SourcePart, ...]

    @property
    def changed(self) -> bool:
        """Whether the source changed."""
        return self.p_value <= self.level

    @property
    def p_value(self) -> float:
        """Of all comparisons together."""
        return min(part.adjusted for part in self.parts)

    @property
    def where(self) -> list[str]:
        """Names of the comparisons that show a change."""
        return [part.name for part in self.parts if part.adjusted <= self.level]

    def __str__(self) -> str:
        of = f"{self.rows:,} new rows compared with {self.reference_rows:,} certification rows"
        if not self.changed:
            return f"No change of the source is seen: {of}, smallest p-value {self.p_value:.2g}."
        return f"The source changed, in {listed(self.where, 8, str)}: {of}, p-value {self.p_value:.2g}."

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON can hold it."""
        return {"changed": self.changed, "p_value": self.p_value, "where": self.where} | asdict(
            self
        )


class NewRows:
    """New rows, counted as they pass, batch by batch.

    Parameters
    ----------
    model : fitted or loaded estimator of this library
    """

    def __init__(self, model: Any) -> None:
        self.model = model
        source: Source | None = model.source_
        known = source is not None and source.reference is not None
        self._profile = source.profile if source is not None and known else None
        self._reference = source.reference if source is not None else None
        self._score: list[NDArray[np.float64]] = []
        self._predicted: list[NDArray[Any]] = []
        self._counts: list[Counts] = []
        self.rows = 0

    def add(self, X: Any) -> None:
        """Count a batch."""
        rows = self.model._check_rows(X, reset=False)
        outputs = self.model._outputs(rows)
        score = outputs.acceptance()
        self._score.append(score)
        self._predicted.append(_predictions(outputs))
        self.rows += len(score)
        cells = None if self._profile is None else cell_codes(self._profile, rows)
        if cells is None or self._profile is None:
            self._profile = None
            return
        levels = surprise_levels(self._profile, cells)
        counted = [np.bincount(levels, minlength=LEVELS)] + [
            np.bincount(cells[:, place], minlength=len(column.counts))
            for place, column in enumerate(self._profile.columns)
        ]
        if self._counts:
            counted = [old + new for old, new in zip(self._counts, counted, strict=True)]
        self._counts = counted

    def test(self, level: float = 0.05, random_state: int = 0) -> SourceTest:
        """Compare all rows so far with the certification rows."""
        evidence, score = self.model.evidence_, np.concatenate(self._score)
        pooled = np.concatenate([evidence.score, score])
        cuts = np.unique(np.quantile(pooled, np.arange(1, SCORE_CELLS) / SCORE_CELLS))
        names, weights = ["score"], [1.0]
        pairs = [tuple(_histogram(cuts, values) for values in (evidence.score, score))]
        ordered = [True]
        old, new = getattr(evidence, "predicted", None), np.concatenate(self._predicted)
        if len(new) and old is not None:
            size = int(max(old.max(), new.max())) + 1
            names, weights, ordered = [*names, "prediction"], [*weights, 1.0], [*ordered, False]
            pairs.append((np.bincount(old, minlength=size), np.bincount(new, minlength=size)))
        if self._profile is not None and self._reference is not None:
            columns = self._profile.columns
            names += ["rarity", *(str(column.name) for column in columns)]
            shared = (1.0 - OUTPUT_WEIGHT) / OUTPUT_WEIGHT * (len(weights) + 1.0) / len(columns)
            weights += [1.0, *([shared] * len(columns))]
            held = [self._reference.surprise, *self._reference.counts]
            pairs += [(np.array(a), b) for a, b in zip(held, self._counts, strict=True)]
            ordered += [True, *(column.kind == "number" for column in columns)]
        share = np.array(weights) / sum(weights)
        random = np.random.default_rng(random_state)
        values = [
            p_value(a, b, ordered=is_ordered, least=level * weight, random=random)
            for (a, b), is_ordered, weight in zip(pairs, ordered, share, strict=True)
        ]
        adjusted = holm(values, share)
        parts = [SourcePart(*part) for part in zip(names, values, adjusted, strict=True)]
        parts.sort(key=lambda part: (part.adjusted, part.p_value))
        return SourceTest(level, self.rows, len(evidence.score), tuple(parts))


def source_test(
    model: Any, X: Any, *, level: float = 0.05, groups: Any = None, random_state: int = 0
) -> SourceTest:
    """Test whether rows come from the source that a model was certified on; no labels are needed.

    It says that the source changed, never that the promise broke: a change may leave the mistakes as
    they are, and mistakes may change where no input does.

    Parameters
    ----------
    model : fitted or loaded estimator of this library
    X : array or data frame of shape (n, d)
        Rows that were drawn independently of each other.
    level : float in (0, 1)
        Probability of "changed" for rows of the same source, at most.
    groups : array-like of shape (n,), optional
        Whose row each is; one row of each group counts, drawn at random. Needed where the certificate
        counts groups.
    random_state : int
        For that draw and for the divisions.

    Returns
    -------
    SourceTest

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> import reliablenet as rn
    >>> from reliablenet.datasets import SyntheticBand
    >>> rows = SyntheticBand(random_state=0).sample(2000)
    >>> clf = rn.CertifiedThreshold(LogisticRegression(), random_state=0).fit(rows.X, rows.y)
    >>> new = SyntheticBand(random_state=1).sample(200)
    >>> rn.source_test(clf, new.X + 1.0).changed
    True
    """
    check_fraction("level", level, "source_test")
    seed = check_seed("random_state", random_state, "source_test")
    if groups is None and model.grouped_:
        raise parameter_error(
            "groups",
            "source_test",
            "name the group of each row, because the certificate counts one row per group",
            groups,
        )
    new = NewRows(model)
    if groups is not None:
        from sklearn.utils import _safe_indexing

        X = _safe_indexing(X, draw_places(groups, len(X), seed))
    new.add(X)
    return new.test(level, seed)


def p_value(
    old: Any, new: Any, *, ordered: bool, least: float, random: np.random.Generator
) -> float:
    """Return the p-value of two lists of counts in the same cells, by random divisions of their sum.

    Divisions are drawn until 20 are at least as unlike as the real one, or so many that a p-value of
    half of ``least`` can be told (Besag and Clifford, 1991): its level is exact, and below where many
    divisions are alike.

    Parameters
    ----------
    old, new : array-like of int, shape (cells,)
    ordered : bool
        Compare cumulative counts, as Anderson and Darling do; else each cell, as chi-squared does.
    least : float
    random : Generator

    Returns
    -------
    float
    """
    old, new = np.asarray(old, np.int64), np.asarray(new, np.int64)
    total = old + new
    kept = total > 0
    total, new = total[kept], new[kept]
    m = int(new.sum())
    if len(total) < 2:
        return 1.0
    real = _unlikeness(new[None], total, m, ordered)[0] * (1 - 1e-12)
    most = int(np.ceil(min(20.0 / least, max(2.0 / least, MANY))))
    drawn = as_far = 0
    while drawn < most:
        size = min(max(FIRST, 4 * drawn), most - drawn)
        draws = random.multivariate_hypergeometric(total, m, size=size, method="marginals")
        beyond = np.flatnonzero(_unlikeness(draws, total, m, ordered) >= real)
        if as_far + len(beyond) >= ENOUGH:
            return float(ENOUGH / (drawn + beyond[ENOUGH - as_far - 1] + 1))
        drawn, as_far = drawn + size, as_far + len(beyond)
    return (as_far + 1) / (drawn + 1)


def holm(p_values: Sequence[float], weights: NDArray[np.float64]) -> list[float]:
    """Return p-values that allow for all of them, by Holm's method with weights that sum to one.

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet.monitor.drift import holm
    >>> [round(p, 3) for p in holm([0.01, 0.04, 0.5], np.array([0.5, 0.25, 0.25]))]
    [0.02, 0.08, 0.5]
    """
    values = np.asarray(p_values)
    result, left, largest = np.ones(len(values)), 1.0, 0.0
    for place in np.argsort(values / weights, kind="stable"):
        largest = max(largest, min(1.0, float(values[place] / weights[place] * left)))
        result[place] = largest
        left -= weights[place]
    return [float(value) for value in result]


def _unlikeness(new: Counts, total: Counts, m: int, ordered: bool) -> NDArray[np.float64]:
    """Return how far the counts of a division lie from those of all rows."""
    n = total.sum()
    if ordered:
        shares = np.cumsum(total)[:-1] / n
        gaps = np.cumsum(new, axis=1)[:, :-1] / m - shares
        result = gaps**2 / (shares * (1 - shares)) @ (total[:-1] / n)
    else:
        result = (new - m * total / n) ** 2 @ (1.0 / total)
    return np.asarray(result, np.float64)


def _histogram(cuts: NDArray[np.float64], values: NDArray[np.float64]) -> Counts:
    cells = np.searchsorted(cuts, values, side="right")
    return np.bincount(cells, minlength=len(cuts) + 1)


def _predictions(outputs: Any) -> NDArray[Any]:
    proba = getattr(outputs, "proba", None)
    return np.zeros(0, np.int64) if proba is None else np.asarray(proba.argmax(axis=1))
