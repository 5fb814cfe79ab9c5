"""Names of version 0.1 still work, and tell the new ones."""

from __future__ import annotations

import pytest

import reliablenet as rn
from reliablenet._renamed import renamed_parameter

PROBA, Y = [[0.9, 0.1], [0.2, 0.8]], [0, 0]


@pytest.mark.parametrize(
    "found",
    [
        rn.metrics.evaluate(PROBA, Y, accepted=[True, True]),
        rn.metrics.risk_coverage_curve(PROBA, Y),
        rn.metrics.jcw_curve(PROBA, Y),
    ],
)
def test_frame_is_to_frame(found) -> None:
    with pytest.warns(DeprecationWarning, match="`frame` is now called `to_frame`"):
        old = found.frame()
    assert old.equals(found.to_frame())


def test_a_new_name_gives_no_warning_and_both_names_are_too_many() -> None:
    @renamed_parameter("seed", "random_state")
    def draw(random_state: int = 0) -> int:
        return random_state

    assert draw(random_state=3) == draw(3) == 3
    with pytest.warns(DeprecationWarning, match="seed"), pytest.raises(TypeError, match="both"):
        draw(seed=1, random_state=2)
