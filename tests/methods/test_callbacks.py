"""scikit-learn's callback protocol, the progress bar, and resuming through the estimator."""

from __future__ import annotations

import numpy as np
import pytest
from contract_helpers import fit_quietly, quick
from sklearn.callback import ProgressBar

import reliablenet as rn
from reliablenet.datasets import SyntheticBand

BAND = SyntheticBand(random_state=0).sample(600)


class Recorder:
    """Follows sklearn.callback.FitCallback; stops training after a given epoch."""

    def __init__(self, stop_after: int = 0) -> None:
        self.stop_after = stop_after
        self.epochs: list[dict] = []
        self.scores: list[float] = []
        self.calls: list[str] = []

    def setup(self, estimator, context) -> None:
        self.calls.append("setup")

    def on_fit_task_begin(self, estimator, context) -> None:
        self.calls.append(f"begin {context.task_name}")

    def on_fit_task_end(self, estimator, context, *, X, y, metadata, fitted_estimator) -> bool:
        self.calls.append(f"end {context.task_name}")
        if context.task_name != "epoch":
            return False
        self.epochs.append(metadata["epoch"])
        self.scores.append(fitted_estimator.score(X, y))
        return len(self.epochs) == self.stop_after

    def teardown(self, estimator, context) -> None:
        self.calls.append("teardown")


def test_a_callback_sees_every_epoch_and_a_working_model() -> None:
    recorder = Recorder()
    model = quick(rn.ReliableClassifier, network="mlp").set_callbacks(recorder)
    fit_quietly(model, BAND.X, BAND.y)
    assert [epoch["epoch"] for epoch in recorder.epochs] == list(range(1, 8))
    assert recorder.scores[-1] > 0.6
    assert recorder.calls[:2] == ["setup", "begin fit"]
    assert recorder.calls[-2:] == ["end fit", "teardown"]


def test_a_callback_can_stop_training() -> None:
    model = quick(rn.ERMClassifier).set_callbacks(Recorder(stop_after=3))
    fit_quietly(model, BAND.X, BAND.y)
    assert len(model.history_.records) == 3
    assert "callback" in model.history_.stopped


def test_callbacks_change_nothing() -> None:
    plain = fit_quietly(quick(rn.ReliableClassifier), BAND.X, BAND.y)
    watched = quick(rn.ReliableClassifier).set_callbacks(Recorder(), ProgressBar())
    fit_quietly(watched, BAND.X, BAND.y)
    np.testing.assert_array_equal(plain.predict_proba(BAND.X), watched.predict_proba(BAND.X))


def test_silence_when_piped_and_a_bar_on_request(capfd) -> None:
    fit_quietly(quick(rn.ERMClassifier), BAND.X, BAND.y)
    assert capfd.readouterr() == ("", "")
    fit_quietly(quick(rn.ERMClassifier, verbose=True), BAND.X, BAND.y)
    out, err = capfd.readouterr()
    assert out == ""
    assert "7/7" in err


def test_a_broken_fit_goes_on_to_the_same_bits(tmp_path) -> None:
    class Interrupt(Recorder):
        def on_fit_task_end(self, estimator, context, *, metadata) -> bool:
            if context.task_name == "epoch" and metadata["epoch"]["epoch"] == 5:
                raise KeyboardInterrupt
            return False

    undisturbed = fit_quietly(quick(rn.ReliableClassifier), BAND.X, BAND.y)
    settings = {"checkpoint_file": tmp_path / "run.safetensors"}
    broken = quick(rn.ReliableClassifier, **settings).set_callbacks(Interrupt())
    with pytest.raises(KeyboardInterrupt):
        fit_quietly(broken, BAND.X, BAND.y)
    resumed = fit_quietly(quick(rn.ReliableClassifier, **settings), BAND.X, BAND.y)
    np.testing.assert_array_equal(resumed.predict_proba(BAND.X), undisturbed.predict_proba(BAND.X))
    assert resumed.history_.frame().equals(undisturbed.history_.frame())
