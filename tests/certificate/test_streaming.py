"""Batches give the certificate that the same rows give in memory."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, strategies as st
from parts import count_parts

from reliablenet.certificate import Certificate, Provenance, certified_threshold, certify
from reliablenet.certificate.scored import ScoredRows, score_rows
from reliablenet.certificate.streaming import (
    ThresholdCounts,
    certified_threshold_batches,
    certify_batches,
)
from reliablenet.errors import InvalidDataError, InvalidParameterError, LabelWarning


def cut(rows: ScoredRows, size: int) -> list[ScoredRows]:
    return [rows.take(slice(i, i + size)) for i in range(0, rows.n, size)]


@st.composite
def tables(draw) -> tuple[np.ndarray, np.ndarray, float, float, int]:
    """Scores with ties and neighbouring floats, labels, alpha, rho, and a batch size."""
    n = draw(st.integers(1, 400))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    score = rng.choice(rng.uniform(0.0, 1.0, draw(st.integers(1, 60))), n)
    score = np.where(
        rng.random(n) < draw(st.sampled_from([0.0, 0.5])), np.nextafter(score, 2), score
    )
    if draw(st.booleans()):
        score = rng.permutation(n) / n  # no ties at all
    wrong = rng.random(n) < draw(st.sampled_from([0.0, 0.01, 0.1, 0.5, 1.0]))
    alpha = draw(st.sampled_from([0.01, 0.05, 0.2, 0.6, 0.95]))
    rho = draw(st.sampled_from([0.01, 0.05, 0.5, 0.9]))
    return score, wrong, alpha, rho, draw(st.integers(1, n))


def check_same(found: Certificate, expected: Certificate) -> None:
    """Provenance is no part of what certificates prove, and must be the same all the same."""
    assert found == expected
    assert found.provenance == expected.provenance


@given(tables())
def test_the_monotone_certificate_is_that_of_memory(table) -> None:
    score, wrong, alpha, rho, size = table
    y, predicted = np.zeros(len(score), int), wrong.astype(int)
    rows = score_rows(None, y, score=score, predicted=predicted, owner="test")
    expected = certified_threshold(None, y, alpha, rho, score=score, predicted=predicted)
    check_same(certified_threshold_batches(lambda: iter(cut(rows, size)), alpha, rho), expected)


@given(tables())
def test_probabilities_give_the_same_in_batches(table) -> None:
    score, wrong, alpha, rho, size = table
    top = 0.5 + score / 2
    proba, y = np.column_stack([top, 1 - top]), wrong.astype(int)
    batches = cut(score_rows(proba, y, owner="test"), size)
    found = certified_threshold_batches(lambda: batches, alpha, rho)
    check_same(found, certified_threshold(proba, y, alpha, rho))
    found = certify_batches(batches, 0.8, alpha, rho)
    check_same(found, certify(proba, y, 0.8, alpha, rho))


@given(tables(), st.sampled_from([-math.inf, 0.0, 0.3, 0.5, 1.0, math.inf]))
def test_the_fixed_certificate_is_that_of_memory(table, threshold) -> None:
    score, wrong, alpha, rho, size = table
    truth = {"y": np.zeros(len(score)), "score": score, "predicted": wrong * 1.0}
    expected = certify(None, threshold=threshold, alpha=alpha, rho=rho, **truth)
    batches = cut(score_rows(None, **truth, owner="test"), size)
    check_same(certify_batches(batches, threshold, alpha, rho), expected)


@given(tables(), st.integers(1, 50), st.sampled_from([None, 0.5]))
def test_groups_give_the_same_in_batches(table, n_groups, threshold) -> None:
    """One row of each group is drawn by its place, in one batch or in many."""
    score, wrong, alpha, rho, size = table
    groups = np.array([f"person {i % n_groups}" for i in range(len(score))])
    truth = {"y": np.zeros(len(score)), "score": score, "predicted": wrong * 1.0}
    batches = cut(replace(score_rows(None, **truth, owner="test"), group=groups), size)
    levels = {"alpha": alpha, "rho": rho}
    if threshold is None:
        found = certified_threshold_batches(lambda: batches, **levels)
        check_same(found, certified_threshold(None, **truth, **levels, groups=groups))
    else:
        found = certify_batches(batches, threshold, **levels)
        check_same(found, certify(None, threshold=0.5, **truth, **levels, groups=groups))
    assert (found.unit, found.n) == ("group", min(n_groups, len(score)))


@pytest.mark.filterwarnings("ignore::reliablenet.errors.LabelWarning")
@given(tables(), st.integers(1, 30))
def test_classes_that_the_model_does_not_know_are_counted_in_batches_too(table, period) -> None:
    score, wrong, alpha, rho, size = table
    top = 0.5 + score / 2
    names = np.array(["no", "yes", "maybe"])
    labels = names[np.where(np.arange(len(score)) % period == period - 1, 2, wrong.astype(int))]
    labels[0] = "no"  # where none is known at all, the labels are refused
    rows = {"proba": np.column_stack([top, 1 - top]), "y": labels, "classes": names[:2]}
    expected = certify(threshold=0.8, alpha=alpha, rho=rho, **rows)
    assert expected.unknown == (labels == "maybe").sum()
    batches = cut(score_rows(**rows, owner="test"), size)
    check_same(certify_batches(batches, 0.8, alpha, rho), expected)


def test_one_pass_is_enough_where_no_or_every_row_may_be_accepted() -> None:
    calls = []

    def read(n: int) -> list[ScoredRows]:
        calls.append(n)
        return [ScoredRows(np.linspace(0, 1, n), np.zeros(n, bool), -math.inf)]

    assert certified_threshold_batches(lambda: read(40)).threshold == math.inf
    assert certified_threshold_batches(lambda: read(59)).threshold == -math.inf
    assert calls == [40, 59]


def test_rows_that_change_between_the_passes_are_refused() -> None:
    rows = ScoredRows(np.linspace(0, 1, 200), np.arange(200) % 2 == 0, -math.inf)
    looks = iter([[rows], [rows, rows]])
    with pytest.raises(InvalidDataError, match="200 at first, 400 on the second look"):
        certified_threshold_batches(lambda: next(looks))


def test_no_rows_and_bad_settings_are_refused() -> None:
    with pytest.raises(InvalidDataError, match="certify_batches needs rows; got 0"):
        certify_batches([], 0.5)
    with pytest.raises(InvalidDataError, match="certified_threshold_batches needs rows"):
        certified_threshold_batches(list)
    with pytest.raises(InvalidParameterError, match=r"`alpha` of certify_batches .* mean 0.05"):
        certify_batches([], 0.5, alpha=5)
    with pytest.raises(InvalidParameterError, match=r"`threshold` .* must be a number; got nan"):
        certify_batches([], math.nan)


def test_streaming_needs_neither_torch_nor_pandas() -> None:
    code = (
        "import sys, reliablenet.certificate.streaming;"
        "sys.exit(str({'torch', 'pandas', 'pyarrow'} & set(sys.modules) or ''))"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert found.stderr.strip() == ""


def test_a_score_at_the_threshold_is_accepted() -> None:
    rows = ScoredRows(np.array([0.3, 0.5, 0.5, 0.7]), np.array([True, True, False, True]), 0.0)
    certificate = certify_batches(cut(rows, 3), 0.5)
    assert (certificate.errors, certificate.accepted, certificate.n) == (2, 3, 4)
    assert certificate.kind == "fixed"
    assert type(certify_batches(cut(rows, 3), 1).threshold) is float


@pytest.mark.parametrize("size", [1, 7, 100])
def test_one_accepted_row_decides_the_threshold_with_the_first_error_below(size) -> None:
    """One error in 100 rows is affordable: the highest of 100 wrong rows is all that is accepted."""
    rows = ScoredRows(np.arange(100.0), np.ones(100, bool), -math.inf)
    certificate = certified_threshold_batches(lambda: cut(rows, size))
    assert (certificate.errors, certificate.accepted, certificate.n) == (1, 1, 100)
    assert certificate.threshold == 98.5


def test_one_right_row_above_the_errors_is_accepted() -> None:
    rows = ScoredRows(np.arange(59.0), np.arange(59) < 58, -math.inf)
    certificate = certified_threshold_batches(lambda: cut(rows, 10))
    assert (certificate.errors, certificate.accepted) == (0, 1)
    assert certificate.threshold == 57.5


def test_errors_at_the_very_top_leave_nothing_to_accept() -> None:
    rows = ScoredRows(np.array([0.5] * 90 + [0.9] * 10), np.arange(100) >= 90, 0.0)
    certificate = certified_threshold_batches(lambda: cut(rows, 30))
    assert (certificate.errors, certificate.accepted) == (0, 0)
    assert certificate.threshold == math.inf
    assert certificate.kind == "monotone"


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: certify_batches([], 0.5), "certify_batches needs rows; got 0."),
        (
            lambda: certified_threshold_batches(list),
            "certified_threshold_batches needs rows; got 0.",
        ),
        (
            lambda: certify_batches([], 0.5, alpha=0.0),
            "`alpha` of certify_batches must lie in (0, 1); got 0.0.",
        ),
        (
            lambda: certify_batches([], 0.5, rho=0.0),
            "`rho` of certify_batches must lie in (0, 1); got 0.0.",
        ),
        (
            lambda: certified_threshold_batches(list, alpha=0.0),
            "`alpha` of certified_threshold_batches must lie in (0, 1); got 0.0.",
        ),
        (
            lambda: certified_threshold_batches(list, rho=0.0),
            "`rho` of certified_threshold_batches must lie in (0, 1); got 0.0.",
        ),
        (
            lambda: certify_batches([], math.nan),
            "`threshold` of certify_batches must be a number; got nan.",
        ),
        (
            lambda: certify_batches([], None),
            "`threshold` of certify_batches must be a number; got None.",
        ),
    ],
)
def test_errors_say_whose_parameter_what_is_allowed_and_what_came(call, text) -> None:
    with pytest.raises((InvalidDataError, InvalidParameterError)) as caught:
        call()
    assert str(caught.value) == text


def test_rows_that_change_are_refused_in_these_words() -> None:
    rows = ScoredRows(np.linspace(0, 1, 200), np.arange(200) % 2 == 0, -math.inf)
    looks = iter([[rows], [rows, rows]])
    with pytest.raises(InvalidDataError) as caught:
        certified_threshold_batches(lambda: next(looks))
    assert str(caught.value) == (
        "The rows changed while they were certified: 200 at first, 400 on the second look. "
        "Certify a file that nobody writes to."
    )


@pytest.mark.parametrize("threshold", [None, 0.8])
@pytest.mark.parametrize("ends", [(10,), (0, 150), (1, 2, 100, 300)])
def test_counts_of_parts_merge_to_the_certificate_of_memory(ends, threshold) -> None:
    rng = np.random.default_rng(0)
    score = rng.uniform(0.5, 1.0, 300).round(2)
    wrong = rng.random(300) > score
    proba, y = np.column_stack([score, 1 - score]), wrong.astype(int)
    rows = score_rows(proba, y, owner="test")
    parts = [rows.take(slice(a, b)) for a, b in pairwise([0, *ends, 300])]
    counts = count_parts(ThresholdCounts(0.1, 0.1, threshold), parts)
    if threshold is None:
        expected = certified_threshold(proba, y, 0.1, 0.1)
        assert 0.0 < expected.threshold < 1.0
    else:
        expected = certify(proba, y, threshold, 0.1, 0.1)
    check_same(counts.certificate(), expected)


def test_provenance_is_kept_beside_the_fingerprint_of_the_rows() -> None:
    rows = ScoredRows(np.linspace(0, 1, 200), np.arange(200) < 40, 0.0)
    known = Provenance(table="abc", uses=2)
    plain = certify_batches([rows], 0.5).provenance
    for found in (
        certify_batches([rows], 0.5, provenance=known),
        certified_threshold_batches(lambda: [rows], provenance=known),
        certified_threshold_batches(lambda: [rows.take(slice(0, 10))], provenance=known),
    ):
        assert (found.provenance.table, found.provenance.uses) == ("abc", 2)
    assert plain.model == certify_batches([rows], 0.5, provenance=known).provenance.model != ""


def test_labels_that_look_swapped_are_warned_of_in_batches_too() -> None:
    truth = np.arange(300) % 2
    rows = ScoredRows(np.full(300, 0.9), np.ones(300, bool), 0.0, truth=truth, predicted=1 - truth)
    with pytest.warns(LabelWarning, match="Only 0 of 300 predictions are right"):
        certify_batches(cut(rows, 100), 0.5)
    with pytest.warns(LabelWarning, match="Only 0 of 300 predictions are right"):
        certified_threshold_batches(lambda: cut(rows, 100))


@pytest.mark.parametrize("lowest", [0.0, -math.inf])
def test_parts_in_which_every_row_may_be_accepted_start_where_scores_do(lowest) -> None:
    rows = ScoredRows(np.linspace(0.5, 1.0, 200), np.zeros(200, bool), lowest)
    found = count_parts(
        ThresholdCounts(0.05, 0.05), [rows.take(slice(0, 90)), rows.take(slice(90, 200))]
    )
    certificate = found.certificate()
    assert (certificate.threshold, certificate.accepted) == (lowest, 200)
