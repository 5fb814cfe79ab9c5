import math

import numpy as np
import pytest

from reliablenet.certificate import Certificate
from reliablenet.certificate.scored import ScoredRows
from reliablenet.certificate.sequential import certify_anytime, lowest_certified, threshold_grid
from reliablenet.errors import InvalidDataError, InvalidParameterError


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
