"""Answers that are right or wrong, whatever they are: `score` and `correct` alone."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import torch

import reliablenet as rn
from reliablenet.certificate.scored import score_rows
from reliablenet.errors import InvalidDataError, InvalidParameterError
from reliablenet.metrics import evaluate, jcw_curve, risk_coverage_curve

SCORE = [0.1, 3.0, -2.0, 0.5]
RIGHT = [True, True, False, True]


@pytest.fixture(scope="module")
def answers():
    """Scores with ties, whether each answer is right, and the same as labels."""
    rng = np.random.default_rng(0)
    score = rng.normal(size=2000).round(2)
    right = rng.random(2000) < 1 / (1 + np.exp(-3 - score))
    predicted = rng.integers(5, size=2000)
    return score, right, predicted, np.where(right, predicted, 5)


@pytest.mark.parametrize(
    "correct",
    [
        RIGHT,
        np.array(RIGHT),
        [1, 1, 0, 1],
        np.array([1, 1, 0, 1], np.uint8),
        [1.0, 1.0, 0.0, 1.0],
        torch.tensor([1.0, 1.0, 0.0, 1.0], dtype=torch.float16),
        torch.tensor(RIGHT),
        pd.Series(RIGHT, dtype="boolean"),
        pd.Series([1, 1, 0, 1], dtype="Int64"),
        np.array([True, 1, 0.0, np.True_], dtype=object),
    ],
    ids=repr,
)
def test_verdicts_are_read_however_they_are_written(correct) -> None:
    rows = score_rows(None, score=SCORE, correct=correct, owner="certify")
    assert rows.wrong.tolist() == [False, False, True, False]
    assert rows.score.tolist() == SCORE
    assert rows.lowest == -math.inf
    assert rows.truth is None
    assert rows.predicted is None
    assert rows.label_counts() is None


@pytest.mark.parametrize(
    ("correct", "got"),
    [
        ([1, 1, 0.5, 1], "0.5 in row 2"),
        ([1.0, math.nan, 0.0, 1.0], "nan in row 1"),
        ([1, 2, 0, 1], "2 in row 1"),
        ([1, -1, 0, 1], "-1 in row 1"),
        ([True, None, False, True], "None in row 1"),
        (pd.Series([True, None, False, True], dtype="boolean"), "<NA> in row 1"),
        (["yes", "no", "yes", "yes"], "'yes' in row 0"),
        ([b"1", b"1", b"0", b"1"], "b'1' in row 0"),
    ],
    ids=repr,
)
def test_what_is_neither_right_nor_wrong_is_refused_with_its_row(correct, got) -> None:
    text = rf"`correct` of certify must hold true or false \(or 1 and 0\).*; got {got}\. Decide"
    with pytest.raises(InvalidDataError, match=text):
        rn.certify(score=SCORE, correct=correct, threshold=0.0)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"proba": np.eye(4)}, "takes `correct` with `score` alone.*Leave out `proba`"),
        ({"y": [0, 1, 0, 1]}, "takes `correct` with `score` alone.*Leave out `y`"),
        ({"predicted": [0, 1, 0, 1]}, "Leave out `predicted`, or `correct`"),
        ({"classes": [0, 1]}, "Leave out `classes`, or `correct`"),
        ({"score": None}, "needs a `score` beside `correct`: how sure each answer is"),
        ({"score": SCORE[:3]}, r"`score` .* one entry for each of the 4 rows; got shape \(3,\)"),
        ({"score": [0.1, math.inf, 0, 1]}, r"`score` of \w+ must be finite; got inf in row 1"),
        ({"score": list("abcd")}, "`score` .* must hold numbers"),
        ({"correct": []}, r"`correct` .* must be a non-empty vector; got shape \(0,\)"),
        ({"correct": [RIGHT]}, r"`correct` .* must be a non-empty vector; got shape \(1, 4\)"),
        ({"correct": None}, "needs the truth of each row: `y`, or `correct` with `score`"),
        ({"correct": None, "y": [0, 1, 0, 1]}, "or `score` and `correct` alone"),
    ],
)
@pytest.mark.parametrize(
    "call", [rn.certify, rn.certified_threshold, rn.jcw_threshold, rn.conformal_threshold]
)
def test_what_does_not_go_with_verdicts_is_refused(call, given, text) -> None:
    arguments = {"score": SCORE, "correct": RIGHT} | given
    if call is rn.certify:
        arguments["threshold"] = 0.0
    with pytest.raises((InvalidParameterError, InvalidDataError), match=text):
        call(**arguments)


def test_a_threshold_is_asked_for_where_the_rule_is_fixed() -> None:
    with pytest.raises(
        InvalidParameterError, match="`threshold` of certify must be a number; got None"
    ):
        rn.certify(score=SCORE, correct=RIGHT)


def test_verdicts_prove_what_labels_prove(answers) -> None:
    score, right, predicted, truth = answers
    by_label = {"proba": None, "y": truth, "score": score, "predicted": predicted}
    by_verdict = {"score": score, "correct": right}
    assert rn.jcw_threshold(**by_verdict) == rn.jcw_threshold(**by_label)
    assert rn.conformal_threshold(**by_verdict) == rn.conformal_threshold(**by_label)
    for call, more in ((rn.certify, {"threshold": 0.3}), (rn.certified_threshold, {})):
        one, other = call(**by_verdict, **more), call(**by_label, **more)
        for name in ("errors", "accepted", "n", "threshold", "upper_bound", "certified", "reason"):
            assert getattr(one, name) == getattr(other, name)
        assert one.certified
        assert one.commonest is None
        assert "commonest label" not in rn.certificate.wording.acted_on(one)
        assert one.to_dict()["guessing_error"] is None
        assert rn.Certificate.from_json(one.to_json()) == one
    assert jcw_curve(**by_verdict).to_frame().equals(jcw_curve(**by_label).to_frame())
    assert risk_coverage_curve(**by_verdict).aurc == risk_coverage_curve(**by_label).aurc
    found = evaluate(**by_verdict, accepted=score > 0)
    assert found.errors == int((~right[score > 0]).sum())
    assert math.isnan(found.ece)


def test_one_row_of_each_group_counts(answers) -> None:
    score, right, _, _ = answers
    certificate = rn.certified_threshold(
        score=score, correct=right, groups=np.arange(2000) // 4, alpha=0.1
    )
    assert (certificate.unit, certificate.n) == ("group", 500)


@pytest.mark.parametrize(("wrong", "coverage"), [(1, 1.0), (30, 0.0)])
def test_a_constant_score_accepts_all_or_nothing(wrong, coverage) -> None:
    right = np.arange(200) >= wrong
    certificate = rn.certified_threshold(score=np.full(200, 7.0), correct=right, alpha=0.05)
    assert certificate.coverage == coverage
    assert certificate.threshold == (-math.inf if coverage else math.inf)
    assert certificate.certified == bool(coverage)
    assert "best scores already hold too many mistakes" in certificate.reason or coverage


def test_answers_that_are_all_wrong_are_worth_nothing() -> None:
    score, right = np.arange(1000.0), np.arange(1000) < 990
    certificate = rn.certify(score=score, correct=right, threshold=995, alpha=0.05)
    assert certificate.certified
    assert certificate.empty
    assert str(certificate) == ("Certified, but worth nothing: of 5 rows acted on 5 were wrong.")
    assert not rn.certify(score=score, correct=right, threshold=985, alpha=0.05).empty


def test_scored_rows_without_labels_may_have_any_threshold() -> None:
    rows = score_rows(None, score=SCORE, correct=RIGHT, owner="certify")
    assert rn.certify(rows, threshold=-5.0).accepted == 4
