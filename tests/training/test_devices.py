from __future__ import annotations

import pytest
import torch

from reliablenet.errors import InvalidParameterError
from reliablenet.training.devices import find_device, has_fast_bfloat16, in_double


@pytest.mark.parametrize(
    ("cuda", "mps", "expected"),
    [(True, True, "cuda"), (False, True, "mps"), (False, False, "cpu")],
)
def test_auto_takes_the_fastest_there_is(monkeypatch, cuda, mps, expected):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)
    assert find_device("auto", "X").type == expected


@pytest.mark.parametrize("name", ["gpu", "cuda:99", None, "meta:x"])
def test_a_device_that_is_not_there_is_refused(name):
    with pytest.raises(
        InvalidParameterError, match='`device` of X must be "auto" or name a device'
    ):
        find_device(name, "X")


@pytest.mark.parametrize(("answers", "fast"), [([], False), ([False, True], True)])
def test_bfloat16_is_fast_where_the_processor_says_so(monkeypatch, answers, fast):
    asks = [lambda answer=answer: answer for answer in answers]
    monkeypatch.setattr("reliablenet.training.devices.FAST_BFLOAT16", asks)
    assert has_fast_bfloat16(torch.device("cpu")) is fast
    assert has_fast_bfloat16(torch.device("meta")) is False


def test_numbers_in_double_stay_where_they_are():
    assert in_double(torch.ones(2)).dtype == torch.float64
