import math

import numpy as np
import pytest

from refusal import refused
from reliablenet.certificate import Certificate, anytime_upper
from reliablenet.certificate.anytime import log_evidence_below
from reliablenet.certificate.scored import ScoredRows
from reliablenet.certificate.sequential import certify_anytime, lowest_certified, threshold_grid
from reliablenet.errors import InvalidDataError, InvalidParameterError

ROWS = ScoredRows(
    np.linspace(0, 1, 400), np.linspace(0, 1, 400) < 0.3, 0.0, unknown=np.arange(400) < 2
)


def test_a_threshold_needs_every_higher_one():
    assert lowest_certified([0, 0, 100], 500, 0.05) == 1
    assert lowest_certified([40, 40], 500, 0.05) == -1
    with pytest.raises(InvalidParameterError, match="never fall"):
        lowest_certified([3, 1], 500, 0.05)


def test_the_grid_covers_ever_more_rows():
    score = np.random.default_rng(0).random(1000)
    grid = threshold_grid(score, 10)
    assert [(score >= t).mean() for t in grid] == pytest.approx(np.arange(1, 11) / 10)
    assert threshold_grid([0.5, 0.5]).tolist() == [0.5]
    with pytest.raises(InvalidDataError, match="at least one"):
        threshold_grid([])


def test_a_certificate_of_any_time_says_alpha_and_survives_json():
    random = np.random.default_rng(0)
    score = random.random(2000)
    wrong = random.random(2000) < 0.3 * (1 - score)
    grid = threshold_grid(random.random(500))
    found = certify_anytime(ScoredRows(score, wrong, 0.0), grid.tolist(), 0.05)
    assert found.certified
    assert found.kind == "anytime"
    assert found.upper_bound == 0.05
    assert "at most 5 % of all rows" in found.reason
    assert Certificate.from_json(found.to_json()) == found
    few = certify_anytime(ScoredRows(score[:20], wrong[:20], 0.0), grid.tolist(), 0.05)
    assert not few.certified
    assert few.threshold == math.inf
    with pytest.raises(InvalidParameterError, match="fall from one"):
        certify_anytime(ScoredRows(score, wrong, 0.0), [0.1, 0.2], 0.05)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: threshold_grid([0.1, np.nan]), "`score` of threshold_grid must be finite numbers, at least one."),
        (lambda: threshold_grid([[0.1, 0.2]]), "`score` of threshold_grid must be finite numbers, at least one."),
        (lambda: threshold_grid([0.1], steps=0), "`steps` of threshold_grid must be a whole number of at least 1; got 0."),
        (lambda: lowest_certified([3, 1], 500, 0.05), "`errors` of lowest_certified must never fall as the threshold falls; got [3, 1]."),
        (lambda: lowest_certified([[1, 2]], 500, 0.05), "`errors` of lowest_certified must never fall as the threshold falls; got [[1, 2]]."),
        (lambda: lowest_certified([1], 500, 0.0), "`alpha` of lowest_certified must lie in (0, 1); got 0.0."),
        (lambda: lowest_certified([1], 500, 0.1, 1.0), "`rho` of lowest_certified must lie in (0, 1); got 1.0. Did you mean 0.01?"),
        (lambda: certify_anytime(ROWS, [], 0.05), "`thresholds` of certify_anytime must fall from one to the next; got []."),
        (lambda: certify_anytime(ROWS, [0.5, 0.5], 0.05), "`thresholds` of certify_anytime must fall from one to the next; got [0.5, 0.5]."),
        (lambda: certify_anytime(ROWS, [[0.5]], 0.05), "`thresholds` of certify_anytime must fall from one to the next; got [[0.5]]."),
        (lambda: threshold_grid([[1], [2, 3]]), "`score` must be an array; got a list that cannot become one: "),
        (lambda: lowest_certified([[1], [2, 3]], 5, 0.1), "`errors` must be an array; got a list that cannot become one: "),
    ],
)  # fmt: skip
def test_bad_input_is_refused_in_these_words(call, message):
    with refused(message):
        call()


def test_the_grid_is_this():
    assert threshold_grid([3, 1, 2, 4], steps=4).tolist() == [4.0, 3.0, 2.0, 1.0]
    assert threshold_grid([3, 1, 2, 4], steps=3).tolist() == [3.0, 2.0, 1.0]
    assert len(threshold_grid(np.arange(1000))) == 40


def test_a_threshold_is_certified_where_its_evidence_and_that_of_all_above_suffices():
    """Against the bound: the evidence below alpha suffices just where the bound is below it."""
    for n in (60, 100, 400):
        most = sum(anytime_upper(k, n) <= 0.05 for k in range(20)) - 1
        errors = np.arange(20)
        assert lowest_certified(errors, n, 0.05) == most
    assert lowest_certified(np.array([0, 0]), 400, 0.05) == 1


def test_evidence_that_is_just_enough_certifies():
    """Levels whose logarithm is the evidence to the last bit; most evidence has such a level."""
    found = 0
    for n in range(60, 160):
        evidence = log_evidence_below(0, n, 0.05)
        rho = math.exp(-evidence)
        if -math.log(rho) == evidence:
            found += 1
            assert lowest_certified([0], n, 0.05, rho) == 0
    assert found > 0


@pytest.mark.parametrize(("alpha", "rho"), [(0.1, 0.001), (0.02, 0.3), (0.3, 0.05)])
def test_the_lowest_threshold_is_certified_for_its_own_budget_and_level(alpha, rho):
    score = np.linspace(1, 0, 500)
    rows = ScoredRows(score, np.arange(500) % 11 == 10, 0.0)
    grid = score[::20]
    bounds = [anytime_upper(int((rows.wrong & (score >= t)).sum()), 500, rho) for t in grid]
    expected = next((t for t, bound in zip(grid[::-1], bounds[::-1], strict=True) if bound <= alpha), math.inf)  # fmt: skip
    found = certify_anytime(rows, grid, alpha, rho)
    assert found.threshold == expected
    assert found.accepted == (score >= expected).sum()  # those at it among them


def test_rows_are_counted_at_the_threshold_that_is_certified():
    found = certify_anytime(ROWS, [0.9, 0.5, 0.1], 0.05, 0.05, commonest=7)
    accepted = ROWS.score >= 0.5
    assert (found.threshold, found.accepted, found.n) == (0.5, accepted.sum(), 400)
    assert found.errors == (accepted & ROWS.wrong).sum() == 0
    assert (found.commonest, found.unknown, found.alpha, found.rho) == (7, 2, 0.05, 0.05)
    # a mistake at a threshold counts against it
    edge = ScoredRows(np.full(400, 0.5), np.arange(400) < 100, 0.0)
    assert certify_anytime(edge, [0.5], 0.05).threshold == math.inf
    assert certify_anytime(edge, [0.6, 0.5], 0.05).threshold == 0.6
