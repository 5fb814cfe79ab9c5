from __future__ import annotations

import pytest

import reliablenet as rn
from reliablenet.bench.ablations import PARTS, AblatedClassifier
from reliablenet.datasets import SyntheticBand
from reliablenet.tables import PiecewiseEncoder
from reliablenet.training.schedule import AdaptiveSchedule

SHORT = AdaptiveSchedule(warmup_epochs=2, epochs_per_stage=2, patience=1)
BAND = SyntheticBand(random_state=0).sample(2000)


def traits(model):
    """Tell which parts a fitted model has."""
    inner = list(model.network_.modules())
    return {
        "encoding": isinstance(model.encoder_, PiecewiseEncoder),
        "ensemble": next(len(m.head) for m in inner if hasattr(m, "head")) > 1,
        "average": model._optimisation().averaging > 0,
        "folds": model.history_.refitted_rows > 0,
    }


@pytest.mark.filterwarnings("ignore::reliablenet.errors.ReuseWarning")
@pytest.mark.parametrize("part", PARTS)
def test_one_part_is_taken_away_and_no_other(part) -> None:
    settings = {"network": "tabular", "schedule": SHORT, "random_state": 0, "verbose": False}
    whole = rn.ReliableClassifier(**settings).fit(BAND.X, BAND.y)
    assert traits(whole) == dict.fromkeys(PARTS, True)
    model = AblatedClassifier(**settings, without=part).fit(BAND.X, BAND.y)
    assert traits(model) == dict.fromkeys(PARTS, True) | {part: False}


def test_an_unknown_part() -> None:
    with pytest.raises(rn.errors.InvalidParameterError, match="`without` of AblatedClassifier"):
        AblatedClassifier(without="luck").fit(BAND.X, BAND.y)
