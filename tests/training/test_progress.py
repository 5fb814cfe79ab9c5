from __future__ import annotations

import math

import pytest

from reliablenet.training import EpochRecord, History
from reliablenet.training.progress import progress


def record(epoch: int, stage: int) -> EpochRecord:
    numbers = dict.fromkeys(EpochRecord.__dataclass_fields__, math.nan)
    return EpochRecord(
        **numbers | {"epoch": epoch, "stage": stage, "jcw_selection": 0.0123, "feasible": True}
    )


@pytest.mark.parametrize("verbose", ["auto", False])
def test_nothing_is_printed_when_nobody_watches(capfd, verbose):
    with progress("ERMClassifier", 2, verbose) as show:
        show(History(0.05, records=[record(1, 0)]))
    assert capfd.readouterr() == ("", "")


def test_a_bar_on_standard_error_shows_epoch_and_jcw_against_its_budget(capfd, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    with progress("ReliableClassifier", 2, True) as show:
        show(History(0.05, records=[record(1, 0)]))
        show(History(0.05, records=[record(1, 0), record(2, 1)]))
    out, err = capfd.readouterr()
    assert out == ""
    assert "ReliableClassifier" in err
    assert "2/2" in err
    assert "JCW 0.0123/0.05" in err
