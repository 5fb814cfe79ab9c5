"""`GroupBudgets`: what the constraint knows about groups: a budget for each, and how many rows a batch has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from reliablenet._checks import check_count, check_fraction, parameter_error
from reliablenet.errors import InvalidDataError

OWNER = "JCWConstraint"


class GroupBudgets(nn.Module):
    """Budgets of groups of rows, each as if the group were alone.

    Parameters
    ----------
    groups : int
        How many there are, G.
    alpha : float, or sequence of G floats, in (0, 1)
    rows : int, sequence of G ints, or None
        Training rows over all ranks: of all groups together, or of each.
    floor : float
        A violation is divided by the budget, or by this if it is larger.

    Attributes
    ----------
    alphas, scales : Tensor of shape (G,)

    Examples
    --------
    >>> import torch
    >>> from reliablenet.training.group_budgets import GroupBudgets
    >>> GroupBudgets(2, [0.05, 0.1], None, 0.01).alphas
    tensor([0.0500, 0.1000])
    """

    alphas: Tensor
    scales: Tensor
    group_rows: Tensor | None

    def __init__(self, groups: int, alpha: Any, rows: Any, floor: float) -> None:
        super().__init__()
        self.groups = check_count("groups", groups, OWNER)
        budgets = self.one_each("alpha", alpha)
        budgets = [check_fraction("alpha", one, OWNER) for one in budgets]
        self.strictest = min(budgets)
        self.register_buffer("alphas", torch.tensor(budgets), persistent=False)
        self.register_buffer("scales", self.alphas.clamp(min=floor), persistent=False)
        self.rows: int | None = None
        counted = None
        if isinstance(rows, Sequence):
            counts = [check_count("rows", one, OWNER) for one in self.one_each("rows", rows)]
            counted = torch.tensor(counts, dtype=self.alphas.dtype)
        elif rows is not None:
            self.rows = check_count("rows", rows, OWNER)
        self.register_buffer("group_rows", counted, persistent=False)

    def one_each(self, name: str, value: Any) -> list[Any]:
        """Return a setting of each group, from one for all or one for each."""
        if not isinstance(value, Sequence):
            return [value] * self.groups
        if len(value) != self.groups:
            expected = f"be a number, or hold one for each of {self.groups} groups"
            raise parameter_error(name, OWNER, expected, value)
        return list(value)

    def check(self, group: Any, y: Tensor) -> Tensor:
        """Return the group of each row as indices, or say what is wrong; looks at no value."""
        if not isinstance(group, Tensor):
            raise InvalidDataError(
                f"`group` given to {OWNER} must name the group of each row, 0 to {self.groups - 1}, "
                f"because it was made with groups={self.groups}; got {type(group).__name__}."
            )
        if group.is_floating_point() or group.dtype == torch.bool or group.shape != y.shape:
            raise InvalidDataError(
                f"`group` given to {OWNER} must hold integers of the shape of `y`, {tuple(y.shape)}; "
                f"got {group.dtype} of shape {tuple(group.shape)}."
            )
        return group.long()

    def check_values(self, group: Tensor) -> None:
        """Raise if an index belongs to no group."""
        if not 0 <= int(group.min()) <= int(group.max()) < self.groups:
            raise InvalidDataError(
                f"`group` given to {OWNER} must hold indices from 0 to {self.groups - 1}; got values "
                f"from {int(group.min())} to {int(group.max())}."
            )

    def count(self, group: Tensor) -> Tensor:
        """Return the rows of each group in a batch."""
        counts = torch.zeros_like(self.alphas)
        return counts.index_add_(0, group, counts.new_ones(len(group)))

    def factors(self, counts: Tensor) -> Tensor:
        """Return rows of a batch over rows of each group in it, over all ranks; 0 for one without rows.

        A mean over the batch times this is the mean over the group. All ranks call this, or none.
        """
        shared = counts
        if torch.is_grad_enabled() and dist.is_available() and dist.is_initialized():
            shared = counts.clone()
            dist.all_reduce(shared)
        return shared.sum() / shared.clamp(min=1.0) * (shared > 0)

    def pace(self, counts: Tensor, batches_an_epoch: int) -> Tensor:
        """Return the share of an epoch that a batch is, for each group; 0 for one without rows."""
        present = counts > 0
        if self.group_rows is not None:
            return counts / self.group_rows
        if self.rows is not None:
            return counts.sum() / self.rows * present
        return present / batches_an_epoch
