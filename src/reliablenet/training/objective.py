"""`Objective`: what an unconstrained epoch minimises, and how a network's outputs are to be read.

`RunningMeans` adds up what the batches of an epoch showed: the objective, or what the constraint gave.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from reliablenet.risk.fused import StepGradient, log_likelihood
from reliablenet.risk.members import average_members, cross_entropy_of_members
from reliablenet.risk.surrogate import phi, psi
from reliablenet.training import ranks
from reliablenet.training.devices import in_double
from reliablenet.training.history import NAN

# Few large sums are faster than many small ones, but what waits to be summed takes memory, and keeps
# the batches around it from giving theirs back.
ROWS_HELD = 2**17
BATCHES_HELD = 2**14


@dataclass(frozen=True)
class Objective:
    """Cross-entropy of outputs that are class logits; the base of every other objective.

    Outputs of shape (n, members, K) are those of an ensemble: its loss is the mean of the members',
    its prediction their mean probability.

    A method that trains more than logits (a head that abstains, say) overrides these. Settings are
    fields, because a checkpoint tells runs apart by them.
    """

    def loss(self, outputs: Tensor, y: Tensor, epoch: int) -> Tensor:
        """Return the mean loss of a batch in an epoch (from 1)."""
        if outputs.ndim == 3:
            return cross_entropy_of_members(outputs, y)
        return functional.cross_entropy(outputs, y)

    def held_out_loss(self, outputs: Tensor, y: Tensor, epoch: int, weight: Tensor | None) -> float:
        """Return the mean loss of rows that are not trained on, by weight where they have one."""
        if weight is None:
            return float(self.loss(outputs, y, epoch))
        each = functional.cross_entropy(self.logits(outputs), y, reduction="none")
        return float((weight * each).sum() / weight.sum())

    def logits(self, outputs: Tensor) -> Tensor:
        """Return the class logits of shape (n, K) among the outputs."""
        return average_members(outputs) if outputs.ndim == 3 else outputs

    def score(self, outputs: Tensor) -> Tensor | None:
        """Return the learned acceptance score of shape (n,); None where none was learned."""
        return None

    def is_warmup(self, epoch: int) -> bool:
        """Tell whether an epoch only prepares, so that its weights are never kept."""
        return False


class EpochMeans(NamedTuple):
    """Means over the rows of an epoch as they passed; all but the loss are NaN without a constraint."""

    loss: float
    psi: float = NAN
    phi: float = NAN
    jcw: float = NAN


class RunningMeans:
    """Adds up the losses and violations of an epoch, over all ranks in the end.

    Parameters
    ----------
    threshold, tau, m1, m2 : float
        As for `violation` and `zeta`; used only if constrained steps are added.
    """

    def __init__(self, threshold: float, tau: float, m1: float, m2: float) -> None:
        self.threshold = threshold
        self.surrogate = (tau, m1, m2)
        self.sums = [0.0] * 5  # rows, loss, psi, phi, confident and wrong
        self.constrained = False
        self._losses: list[Tensor] = []
        self._counts: list[int] = []
        self._steps: list[tuple[Tensor, Tensor]] = []
        self._rows = 0

    def add(self, batch: Tensor | StepGradient, rows: int) -> None:
        """Add the mean loss of a batch, or what a constrained step gave."""
        if isinstance(batch, StepGradient):
            self._steps.append((batch.confidence, batch.margin))
        else:
            self._losses.append(batch)
            self._counts.append(rows)
        self._rows += rows
        if self._rows >= ROWS_HELD or len(self._losses) + len(self._steps) >= BATCHES_HELD:
            self._add_held()

    def _add_held(self) -> None:
        values = [float(self._rows), 0.0, 0.0, 0.0, 0.0]
        if self._losses:
            losses = torch.stack(self._losses)
            values[1] = float(in_double(losses * losses.new_tensor(self._counts)).sum())
        if self._steps:
            self.constrained = True
            confidence, margin = (torch.cat(parts) for parts in zip(*self._steps, strict=True))
            values[1] -= float(in_double(log_likelihood(confidence, margin)).sum())
            g = torch.minimum(confidence - self.threshold, margin)
            values[2] = float(psi(g, *self.surrogate)) * self._rows
            values[3] = float(phi(g, *self.surrogate)) * self._rows
            values[4] = float((g > 0).sum())
        self.sums = [total + value for total, value in zip(self.sums, values, strict=True)]
        self._losses, self._counts, self._steps, self._rows = [], [], [], 0

    def over_all_ranks(self, device: torch.device) -> EpochMeans:
        """Return the means over all rows of all ranks."""
        self._add_held()
        rows, *sums = ranks.add_up(self.sums, device)
        means = [total / rows for total in sums]
        return EpochMeans(*means) if self.constrained else EpochMeans(means[0])
