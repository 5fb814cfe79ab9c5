"""The process that serves."""

import gc
import weakref

import pytest

from reliablenet.serve.server import _set_aside


class Model:
    """Something that refers to itself, as networks and estimators do."""

    def __init__(self):
        self.itself = self


@pytest.fixture
def _as_before():
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("_as_before")
def test_the_collector_passes_over_what_stays_and_finds_a_model_that_was_replaced():
    model = Model()
    seen = weakref.ref(model)
    _set_aside()
    kept = gc.get_freeze_count()
    assert kept > 10_000
    del model
    gc.collect()
    assert seen() is not None  # it is not looked at
    _set_aside()
    assert seen() is None
    assert gc.get_freeze_count() > 10_000
