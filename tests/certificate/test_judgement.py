"""Scored rows judged: the counts at a threshold, the lowest threshold they allow, and labels that look swapped."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.stats import binom, hypergeom

from reliablenet.certificate import Certificate, Provenance
from reliablenet.certificate.fingerprint import Fingerprint
from reliablenet.certificate.judgement import (
    IMPLAUSIBLE,
    Count,
    check_threshold_value,
    first_excess_error,
    judge,
    midway,
    warn_of_labels,
)
from reliablenet.certificate.scored import ScoredRows
from reliablenet.errors import InvalidParameterError, LabelWarning


def test_rows_are_counted_at_the_threshold_asked_for_or_at_the_lowest_they_allow():
    score = np.array([0.6, 0.7, 0.8, 0.9])
    rows = ScoredRows(score, np.array([True, True, False, False]), 0.0)
    assert judge(rows, 0.1, 0.2, threshold=0.7) == Certificate(1, 3, 4, 0.1, 0.2, 0.7, "fixed")
    found = judge(rows, 0.35, 0.2)  # of 4 rows it affords 0 errors
    assert found == Certificate(0, 2, 4, 0.35, 0.2, 0.75, "monotone")


def threshold_by_hand(rows: ScoredRows, most: int) -> np.ndarray:
    """Return which rows the most permissive cut accepts that leaves at most so many errors."""
    accepted = np.zeros(rows.n, bool)
    for cut in np.unique(rows.score)[::-1]:
        more = rows.score >= cut
        if np.count_nonzero(more & rows.wrong) > most:
            break
        accepted = more
    return accepted


@given(st.integers(0, 2**32 - 1), st.integers(-1, 12), st.integers(1, 60))
def test_the_threshold_is_the_lowest_with_at_most_so_many_errors(seed, most, n):
    rng = np.random.default_rng(seed)
    rows = ScoredRows(rng.normal(size=n).round(1), rng.random(n) < rng.random(), -math.inf)
    threshold = midway(rows, most)
    np.testing.assert_array_equal(rows.score >= threshold, threshold_by_hand(rows, most))
    wrong = np.sort(rows.score[rows.wrong])[::-1]
    if most >= 0:
        excess = first_excess_error(rows, most)
        assert excess == (wrong[most] if len(wrong) > most else -math.inf)
        above = rows.score[rows.score > excess]
        if math.isfinite(excess) and len(above):
            assert threshold == (excess + above.min()) / 2 or threshold == above.min()
    else:
        assert threshold == math.inf


def test_neighbouring_scores_have_no_middle():
    low = 0.5
    high = math.nextafter(low, 1.0)
    rows = ScoredRows(np.array([low, high]), np.array([True, False]), 0.0)
    assert midway(rows, 0) == high
    assert midway(ScoredRows(np.array([low, low]), np.array([True, False]), 0.0), 0) == math.inf
    huge = ScoredRows(np.array([1.6e308, 1.7e308]), np.array([True, False]), -math.inf)
    assert math.isfinite(midway(huge, 0))


def test_an_error_at_the_lowest_score_there_is_costs_nothing():
    """Nothing lies below it: to accept all is to accept it."""
    rows = ScoredRows(np.array([0.0, 0.5]), np.array([True, False]), 0.0)
    assert first_excess_error(rows, 1) == 0.0
    assert midway(rows, 1) == 0.0


def test_a_certificate_holds_all_that_was_counted():
    truth = np.array([0, 0, 1, -1, 0])
    rows = ScoredRows(
        np.array([0.9, 0.8, 0.7, 0.6, 0.5]), np.array([False, True, False, True, False]), 0.0,
        truth=truth, predicted=np.array([0, 1, 1, 0, 0]), unknown=truth < 0,
    )  # fmt: skip
    known = Provenance(table="ab", uses=2)
    found = judge(rows, 0.2, 0.1, 0.7, unit="group", provenance=known)
    assert (found.errors, found.accepted, found.n, found.commonest, found.unknown) == (
        1,
        3,
        5,
        3,
        1,
    )
    assert (found.alpha, found.rho, found.threshold, found.kind, found.unit) == (
        0.2,
        0.1,
        0.7,
        "fixed",
        "group",
    )
    mark = Fingerprint()
    mark.add(rows.score.astype(np.float32), rows.wrong)
    assert found.provenance == replace(known, model=mark.text())
    assert judge(rows, 0.2, 0.1).kind == "monotone"
    assert judge(rows, 0.2, 0.1).provenance.model == mark.text()


def test_batches_are_counted_as_one():
    rng = np.random.default_rng(0)
    truth, predicted = rng.integers(0, 3, 50), rng.integers(0, 3, 50)
    rows = ScoredRows(rng.random(50), truth != predicted, 0.0, truth=truth, predicted=predicted)
    rows = replace(rows, unknown=np.arange(50) % 9 < 2)
    whole, parts = Count(), Count()
    nothing = (whole.n, whole.accepted, whole.errors, whole.right, whole.unknown, whole.unit)
    assert nothing == (0, 0, 0, 0, 0, "row")
    whole.look(rows)
    for a in range(0, 50, 9):
        parts.look(rows.take(slice(a, a + 9)))
    assert whole.labels == parts.labels == Counter(truth[~rows.unknown].tolist())
    assert (whole.unknown, parts.unknown) == (rows.unknown.sum(),) * 2
    assert (whole.right, parts.right) == ((~rows.wrong).sum(),) * 2
    assert whole.mark.text() == parts.mark.text()
    parts.look(ScoredRows(np.ones(2), np.zeros(2, bool), 0.0))  # of these no label is known
    parts.look(rows)
    assert parts.labels is None
    parts.n = 102
    assert parts.certificate(0.1, 0.1, 0.5, "fixed").commonest is None


def test_scores_beyond_float32_are_marked_without_a_warning():
    judge(ScoredRows(np.array([1e300, -1e300]), np.zeros(2, bool), -math.inf), 0.1, 0.1, 0.0)


@pytest.mark.parametrize(("right", "n", "classes"), [(200, 1000, 2), (0, 30, 2), (3, 400, 10)])
def test_fewer_right_than_guesses_would_get_is_warned_of(right, n, classes):
    truth = np.arange(n) % classes
    rows = ScoredRows(np.ones(n), np.arange(n) >= right, 0.0, truth=truth, predicted=truth)
    assert binom.cdf(right, n, 1 / classes) < 1e-9
    text = f"Only {right:,} of {n:,} predictions are right, fewer than guessing among {classes} labels would get. Are probability columns or labels swapped?"
    count = Count(n=n)
    count.look(rows)
    for warn in (lambda: warn_of_labels(rows), count.warn_of_labels):
        with pytest.warns(LabelWarning) as caught:
            warn()
        assert str(caught[0].message) == text


@pytest.mark.parametrize(("right", "n", "classes"), [(480, 1000, 2), (0, 29, 2), (0, 500, 1)])
def test_bad_luck_and_a_single_label_are_not_warned_of(right, n, classes):
    truth = np.arange(n) % classes
    warn_of_labels(ScoredRows(np.ones(n), np.arange(n) >= right, 0.0, truth=truth, predicted=truth))
    warn_of_labels(ScoredRows(np.ones(n), np.ones(n, bool), 0.0))


def test_of_unknown_classes_alone_no_label_is_the_commonest():
    unknown = np.ones(3, bool)
    rows = ScoredRows(
        np.ones(3), unknown, 0.0, truth=np.full(3, -1), predicted=np.zeros(3, int), unknown=unknown
    )
    found = judge(rows, 0.1, 0.1)
    assert (found.commonest, found.unknown) == (0, 3)


def test_counts_of_parts_merge_to_those_of_all_rows():
    rng = np.random.default_rng(0)
    truth, predicted = rng.integers(0, 3, 50), rng.integers(0, 3, 50)
    rows = ScoredRows(rng.random(50), truth != predicted, 0.0, truth=truth, predicted=predicted)
    rows = replace(rows, unknown=np.arange(50) % 9 < 2)
    whole, first = Count(50, 30, 7), Count(20, 10, 3)
    second = Count(30, 20, 4)
    whole.look(rows)
    first.look(rows.take(slice(0, 20)))
    second.look(rows.take(slice(20, 50)))
    first.merge(second)
    for name in ("n", "accepted", "errors", "right", "unknown", "unit", "labels"):
        assert getattr(first, name) == getattr(whole, name)
    assert first.mark.text() == whole.mark.text()
    assert second.n == 30


@pytest.mark.parametrize("early", [False, True])
def test_where_one_part_knows_no_labels_none_are_known(early):
    known, bare = Count(), Count()
    known.look(ScoredRows(np.ones(2), np.zeros(2, bool), 0.0, truth=np.zeros(2, int)))
    bare.look(ScoredRows(np.ones(2), np.zeros(2, bool), 0.0))
    first, second = (bare, known) if early else (known, bare)
    first.merge(second)
    assert first.labels is None
    assert first.right == 4


@pytest.mark.parametrize(
    ("errors", "accepted", "wrong", "n", "warned"),
    [
        (40, 100, 100, 1000, True),
        (23, 23, 80, 500, True),  # all of them wrong, where one in six is
        (22, 100, 100, 1000, False),  # bad luck may be
        (10, 100, 100, 1000, False),  # as all rows
        (0, 100, 100, 1000, False),
        (100, 1000, 100, 1000, False),
        (0, 0, 100, 1000, False),
        (1000, 1000, 1000, 1000, False),
    ],
)
def test_rows_acted_on_that_are_wrong_more_often_than_all_are_warned_of(
    errors, accepted, wrong, n, warned
):
    count = Count(n=n, accepted=accepted, errors=errors, right=n - wrong)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        count.certificate(0.05, 0.05, 0.5, "fixed")
    text = (
        f"Rows acted on are wrong more often ({errors / max(accepted, 1):.1%}) than all rows ({wrong / n:.1%}): the "
        "higher the score, the more mistakes. If the score is yours and a low one means a sure answer, "
        "turn its sign."
    )
    assert [str(one.message) for one in found] == [text] * warned
    assert all(one.category is LabelWarning for one in found)


def test_a_ranking_is_blamed_where_chance_cannot_be():
    """The bound on the chance is above that of drawing rows without replacement, for any threshold."""
    n, wrong, accepted = 300, 60, 40
    for errors in range(accepted + 1):
        count = Count(n=n, accepted=accepted, errors=errors, right=n - wrong)
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            count.certificate(0.5, 0.05, 0.5, "fixed")
        if found:
            assert n * hypergeom.sf(errors - 1, n, wrong, accepted) < IMPLAUSIBLE
    assert found


@pytest.mark.parametrize("threshold", [math.nan, "high", None, True])
def test_a_threshold_that_no_score_can_be_compared_with_is_refused(threshold) -> None:
    with pytest.raises(InvalidParameterError) as caught:
        check_threshold_value(threshold, "certify")
    assert str(caught.value) == f"`threshold` of certify must be a number; got {threshold!r}."
    assert check_threshold_value(1, "certify") == 1.0
