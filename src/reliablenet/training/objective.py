"""`Objective`: what an unconstrained epoch minimises, and how a network's outputs are to be read."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from reliablenet.training.ensemble import average_members


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
            return nn.functional.cross_entropy(
                outputs.flatten(0, 1), y.repeat_interleave(outputs.shape[1])
            )
        return nn.functional.cross_entropy(outputs, y)

    def logits(self, outputs: Tensor) -> Tensor:
        """Return the class logits of shape (n, K) among the outputs."""
        return average_members(outputs) if outputs.ndim == 3 else outputs

    def score(self, outputs: Tensor) -> Tensor | None:
        """Return the learned acceptance score of shape (n,); None where none was learned."""
        return None

    def is_warmup(self, epoch: int) -> bool:
        """Tell whether an epoch only prepares, so that its weights are never kept."""
        return False
