"""Weights of several epochs of one training, so that one fit serves several methods."""

from __future__ import annotations

import copy
import math
from typing import Any

from torch import Tensor


class Snapshots:
    """A callback of scikit-learn's kind that keeps the weights of an early and of the last epoch."""

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.early: dict[str, Tensor] = {}
        self.last: dict[str, Tensor] = {}

    def setup(self, estimator: Any, context: Any) -> None:
        """Nothing to prepare."""

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Nothing to do before an epoch."""

    def on_fit_task_end(self, estimator: Any, context: Any, *, metadata: Any) -> None:
        """Copy the weights after an epoch."""
        if context.task_name == "epoch":
            self.last = copy.deepcopy(estimator.network_.state_dict())
            if metadata["epoch"]["epoch"] == self.epoch:
                self.early = self.last

    def teardown(self, estimator: Any, context: Any) -> None:
        """Nothing to clear away."""


def with_weights(model: Any, weights: dict[str, Tensor]) -> Any:
    """Return the classifier with other weights; its rule does not hold for them, so it has none."""
    other = copy.copy(model)
    other.network_ = copy.deepcopy(model.network_)
    other.network_.load_state_dict(weights)
    other.threshold_ = math.inf
    return other
