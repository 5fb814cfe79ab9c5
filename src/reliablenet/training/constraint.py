"""`JCWConstraint`: the confident-wrong budget as a penalty with a multiplier, for any training loop."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from reliablenet._checks import (
    check_count,
    check_fraction,
    check_positive,
    check_threshold,
    is_real,
    parameter_error,
)
from reliablenet.errors import InvalidDataError, ReliableNetError
from reliablenet.risk.event import check_labels, check_logits
from reliablenet.risk.fused import StepGradient, step_gradient
from reliablenet.risk.members import average_members, cross_entropy_of_members
from reliablenet.risk.surrogate import M1, M2, check_smoothing
from reliablenet.training.group_budgets import GroupBudgets

NORMALISER_FLOOR = 1e-2  # Algorithm 1 divides the violation by max(alpha, 1e-2)
BATCHES_AN_EPOCH = 100


class NotFiniteError(InvalidDataError):
    """The constraint met logits that are not finite."""


class JCWConstraint(nn.Module):
    """Keep P(confident and wrong) within a budget while a network is trained (Algorithm 1).

    Each step the surrogate psi of the batch gives the normalised violation
    v = (psi - alpha) / max(alpha, 0.01). `penalty` returns multiplier * v, to be added to the loss;
    `step` then moves the multiplier by projected ascent along a running mean of v. Several calls of
    `penalty` before one `step` (gradient accumulation) count as one batch; calls without gradients
    count for nothing.

    Under `torch.distributed` the violation is averaged over all ranks' rows, so that every rank
    holds the same multiplier. The state is in `state_dict`, and ``.to(device)`` moves it.

    With groups there is a budget and a multiplier for each: its psi is the mean over its own rows, and
    the penalty is the sum of multiplier * v over the groups that the batch holds. Each multiplier
    moves as that of a constraint which sees the rows of this group alone; it rests while there are none.

    Parameters
    ----------
    alpha : float in (0, 1), or one for each group
        Budget.
    threshold : float in (1/K, 1]
        Confidence from which the model acts.
    groups : int, optional
        Number of groups, G. `penalty` is then told the group of each row.
    rows : int, or one for each group, optional
        Rows of the training set (over all ranks). The multiplier's step is scaled by batch / rows,
        so that it does not depend on the batch size; None takes an epoch to be 100 batches.
    tau, tau_min : float in (0, 1)
        First and last smoothing level.
    tau_decay : float in (0, 1)
        Factor by which `tighten` lowers tau.
    dual_rate : float
        Step size of the multiplier.
    ema : float in [0, 1)
        Weight of the past in the running mean of the violation.
    multiplier_max : float
        Cap of the multiplier.
    m1, m2 : float
        Shape of the surrogate, see `zeta`.

    Attributes
    ----------
    multiplier, violation_ema : Tensor of shape (), or (G,) with groups
    tau : float

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> from reliablenet import JCWConstraint
    >>> _ = torch.manual_seed(0)
    >>> network = nn.Linear(2, 2)
    >>> optimiser = torch.optim.Adam(network.parameters())
    >>> constraint = JCWConstraint(alpha=0.05, threshold=0.8)
    >>> X, y = torch.randn(64, 2), torch.randint(2, (64,))
    >>> for stage in range(2):
    ...     for step in range(3):
    ...         logits = network(X)
    ...         loss = nn.functional.cross_entropy(logits, y) + constraint.penalty(logits, y)
    ...         optimiser.zero_grad()
    ...         loss.backward()
    ...         optimiser.step()
    ...         constraint.step()
    ...     constraint.tighten()
    >>> round(constraint.tau, 5), bool(constraint.multiplier > 0)
    (0.21125, True)

    A budget for each of two groups:

    >>> constraint = JCWConstraint(alpha=0.05, threshold=0.8, groups=2)
    >>> group = torch.arange(64) % 2
    >>> penalty = constraint.penalty(network(X), y, group)
    >>> constraint.step()
    >>> constraint.multiplier.shape
    torch.Size([2])
    """

    multiplier: Tensor
    violation_ema: Tensor

    def __init__(
        self,
        alpha: float | Sequence[float] = 0.05,
        threshold: float = 0.8,
        *,
        groups: int | None = None,
        rows: int | Sequence[int] | None = None,
        tau: float = 0.5,
        tau_min: float = 0.01,
        tau_decay: float = 0.65,
        dual_rate: float = 1.1,
        ema: float = 0.75,
        multiplier_max: float = 50.0,
        m1: float = M1,
        m2: float = M2,
    ) -> None:
        super().__init__()
        owner = "JCWConstraint"
        self.budgets: GroupBudgets | None = None
        if groups is None:
            self.alpha = check_fraction("alpha", alpha, owner)
            self.rows = None if rows is None else check_count("rows", rows, owner)
        else:
            self.budgets = GroupBudgets(groups, alpha, rows, NORMALISER_FLOOR)
            self.alpha, self.rows = self.budgets.strictest, self.budgets.rows
        self._scale = max(self.alpha, NORMALISER_FLOOR)
        self.threshold = check_threshold("threshold", threshold, owner)
        self.tau, self.m1, self.m2 = check_smoothing(tau, m1, m2, owner)
        self.tau_min = check_fraction("tau_min", tau_min, owner)
        if self.tau_min > self.tau:
            raise parameter_error("tau_min", owner, f"not exceed tau = {self.tau:g}", tau_min)
        self.tau_decay = check_fraction("tau_decay", tau_decay, owner)
        self.dual_rate = check_positive("dual_rate", dual_rate, owner)
        self.ema = 0.0 if is_real(ema) and ema == 0.0 else check_fraction("ema", ema, owner)
        self.multiplier_max = check_positive("multiplier_max", multiplier_max, owner)
        shape = () if self.budgets is None else (self.budgets.groups,)
        self.register_buffer("multiplier", torch.zeros(shape))
        self.register_buffer("violation_ema", torch.zeros(shape))
        self._pending: list[tuple[Tensor, float, int]] = []  # psi is tensor * number, of n rows
        self._counts: list[Tensor] = []  # of the groups' rows among them
        self._checked: tuple[Any, ...] = ()

    def penalty(self, logits: Tensor, y: Tensor, group: Tensor | None = None) -> Tensor:
        """Return multiplier * v of a batch, and remember v for the next `step`.

        Parameters
        ----------
        logits : Tensor of shape (n, K)
        y : integer Tensor of shape (n,)
        group : integer Tensor of shape (n,), optional
            Group of each row, 0 to G-1, if there are groups.

        Returns
        -------
        Tensor of shape ()
            Differentiable once in the logits.
        """
        step, factors = self._evaluate(logits, y, group, loss_weight=0.0)
        if self.budgets is None:
            value = self.multiplier * (step.psi - self.alpha) / self._scale
        else:
            excess = step.psi * factors - self.budgets.alphas * (factors > 0)
            value = (self.multiplier * excess / self.budgets.scales).sum()
        penalty: Tensor = _WithGradient.apply(  # type: ignore[no-untyped-call]
            logits,
            value,
            step.gradient.clone(),  # autograd keeps no tensor of inference mode
        )
        return penalty

    def backward(self, logits: Tensor, y: Tensor, group: Tensor | None = None) -> StepGradient:
        """Backpropagate cross-entropy + penalty, and return what the step consisted of.

        Does what ``(cross_entropy(logits, y) + penalty(logits, y)).backward()`` does for a fraction
        of the cost of the penalty, because both share one softmax and no graph is recorded for them.

        Parameters
        ----------
        logits : Tensor of shape (n, K), or (n, members, K) of an ensemble
            Of an ensemble the cross-entropy is the mean of the members', and the penalty is that of
            their mean probability.
        y : integer Tensor of shape (n,)
        group : integer Tensor of shape (n,), optional
            As for `penalty`.

        Returns
        -------
        StepGradient
            Detached; of an ensemble, that of the penalty alone.
        """
        if logits.ndim == 3:
            averaged = average_members(logits)
            step, _ = self._evaluate(averaged, y, group, loss_weight=0.0)
            loss = cross_entropy_of_members(logits, y)
            torch.autograd.backward([loss, averaged], [None, step.gradient])
            return step
        step = self.differentiate(logits, y, group)
        logits.backward(step.gradient)
        return step

    def differentiate(self, logits: Tensor, y: Tensor, group: Tensor | None = None) -> StepGradient:
        """Do what `backward` does up to the logits, for whoever brings a backward pass of their own.

        Parameters
        ----------
        logits : Tensor of shape (n, K), or (n, members, K) of an ensemble
        y : integer Tensor of shape (n,)
        group : integer Tensor of shape (n,), optional
            As for `penalty`.

        Returns
        -------
        StepGradient
            Its ``gradient`` is that of cross-entropy + penalty in the logits.
        """
        if logits.ndim == 3:
            leaf = logits.detach().clone().requires_grad_()
            step = self.backward(leaf, y, group)
            return step._replace(gradient=leaf.grad)  # type: ignore[arg-type]
        return self._evaluate(logits, y, group, loss_weight=1.0)[0]

    def _evaluate(
        self, logits: Tensor, y: Tensor, group: Tensor | None, *, loss_weight: float
    ) -> tuple[StepGradient, Tensor]:
        """Return what a batch gives, and the groups' factors (`GroupBudgets.factors`), if there are any."""
        kind = tuple(
            getattr(rows, name, None) for rows in (logits, y) for name in ("shape", "dtype")
        )
        if kind != self._checked:
            check_logits(logits, y)
            if logits.ndim != 2 or len(y) == 0:
                raise InvalidDataError(
                    f"`logits` given to JCWConstraint must have shape (n, K) with n >= 1; got "
                    f"{tuple(logits.shape)}. Flatten further axes: logits.flatten(0, -2)."
                )
            check_threshold("threshold", self.threshold, "JCWConstraint", logits.shape[-1])
            self._checked = kind
        # tau of 0.01 needs more digits than half precision has
        half = logits.dtype in (torch.float16, torch.bfloat16)
        multiplier: Tensor | float = self.multiplier
        factors, counts, scale = self.multiplier, None, self._scale
        try:
            if self.budgets is not None:
                group = self.budgets.check(group, y)
                counts = self.budgets.count(group)
                factors = self.budgets.factors(counts)
                multiplier, scale = self.multiplier * factors / self.budgets.scales, 1.0
            elif group is not None:
                raise InvalidDataError(
                    "`group` given to JCWConstraint must be None: it was made without groups=G."
                )
            elif logits.device.type == "cpu":
                # a number is fastest, but reading it would wait for a device
                multiplier = self.multiplier.item()
            step = step_gradient(
                logits.detach().float() if half else logits,
                y.long(),
                multiplier,
                loss_weight=loss_weight,
                scale=scale,
                threshold=self.threshold,
                tau=self.tau,
                m1=self.m1,
                m2=self.m2,
                group=group,
            )
        except (RuntimeError, IndexError):  # the usual causes, too dear to look for beforehand
            check_labels(y, logits.shape[-1])
            if self.budgets is not None and group is not None:
                self.budgets.check_values(group)
            raise
        if torch.is_grad_enabled():
            self._pending.append((step.total, step.weight, len(y)))
            if counts is not None:
                self._counts.append(counts)
        return step._replace(gradient=step.gradient.to(logits.dtype)) if half else step, factors

    def step(self) -> None:
        """Move the multiplier: v_ema <- ema v_ema + (1-ema) v, then projected ascent along it."""
        if not self._pending:
            raise ReliableNetError(
                "JCWConstraint.step() needs a penalty() since the last step(), computed with "
                "gradients; got none. Call penalty, backward, optimiser.step, then step."
            )
        if self.budgets is not None:
            self._step_groups(self.budgets)
            return
        total, weight, n = self._pending[0]
        if len(self._pending) > 1:
            n = sum(count for *_, count in self._pending)
            parts = [value * (factor * count / n) for value, factor, count in self._pending]
            total, weight = torch.stack(parts).sum(), 1.0
        self._pending.clear()
        if dist.is_available() and dist.is_initialized():
            totals = torch.stack([total * (weight * n), torch.full_like(total, n)])
            dist.all_reduce(totals)
            total, weight, n = totals[0] / totals[1], 1.0, int(totals[1])
        rate = self.dual_rate * (1.0 / BATCHES_AN_EPOCH if self.rows is None else n / self.rows)
        multiplier, smooth = self.multiplier, self.violation_ema
        if total.device.type == "cpu":  # plain numbers are fastest here
            v = (total.item() * weight - self.alpha) / self._scale
            if not math.isfinite(v):
                raise _not_finite()
            mean = smooth.item() * self.ema + v * (1.0 - self.ema)
            smooth.fill_(mean)
            multiplier.fill_(min(max(multiplier.item() + rate * mean, 0.0), self.multiplier_max))
        else:  # reading a number would wait for the device
            violation = (total * weight - self.alpha) / self._scale
            smooth.lerp_(violation.to(smooth), 1.0 - self.ema)
            multiplier.add_(smooth, alpha=rate).clamp_(0.0, self.multiplier_max)

    def _step_groups(self, budgets: GroupBudgets) -> None:
        """Do what `step` does, for each group of which there were rows."""
        parts = [total * (weight * n) for total, weight, n in self._pending]
        sums, counts = torch.stack(parts).sum(0), torch.stack(self._counts).sum(0)
        self._pending.clear()
        self._counts.clear()
        if dist.is_available() and dist.is_initialized():
            totals = torch.stack([sums.to(counts), counts])
            dist.all_reduce(totals)
            sums, counts = totals
        violation = (sums / counts.clamp(min=1.0) - budgets.alphas) / budgets.scales
        if counts.device.type == "cpu" and not bool(torch.isfinite(violation).all()):
            raise _not_finite()
        moved = (1.0 - self.ema) * (counts > 0)
        self.violation_ema.lerp_(violation.to(self.violation_ema), moved.to(self.violation_ema))
        pace = self.dual_rate * budgets.pace(counts, BATCHES_AN_EPOCH)
        self.multiplier.add_(self.violation_ema * pace).clamp_(0.0, self.multiplier_max)

    def set_multiplier(self, value: float | Sequence[float]) -> None:
        """Set the multiplier from without, in place of `step`, and forget the batches since.

        With groups: one for all, or one for each.
        """
        given: list[Any] = (
            [value] if self.budgets is None else self.budgets.one_each("value", value)
        )
        for one in given:
            check_positive("value", one, "JCWConstraint.set_multiplier", zero=True)
        self._pending.clear()
        self._counts.clear()
        capped = self.multiplier.new_tensor([min(one, self.multiplier_max) for one in given])
        self.multiplier.copy_(capped.view_as(self.multiplier))

    def tighten(self) -> None:
        """End a stage: lower tau by the factor ``tau_decay``, but not below ``tau_min``."""
        if not bool(torch.isfinite(self.violation_ema).all()):
            raise _not_finite()
        self.tau = max(self.tau_min, self.tau * self.tau_decay)

    def get_extra_state(self) -> Tensor:
        """Put tau into `state_dict`, as a tensor so that every file format can hold it."""
        return torch.tensor(self.tau, dtype=torch.float64)

    def set_extra_state(self, state: Tensor) -> None:
        """Take tau from a `state_dict`."""
        self.tau = float(state)

    def extra_repr(self) -> str:
        """Show the settings that a reader looks for first."""
        return f"alpha={self.alpha:g}, threshold={self.threshold!r}, tau={self.tau:g}"


class _WithGradient(Function):
    """A scalar with a given gradient in the logits, both computed beforehand."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, value: Tensor, gradient: Tensor) -> Tensor:
        ctx.save_for_backward(gradient)
        return value.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_value: Tensor) -> tuple[Tensor, None, None]:
        return ctx.saved_tensors[0] * grad_value, None, None


def _not_finite() -> NotFiniteError:
    return NotFiniteError(
        "`logits` given to JCWConstraint.penalty must be finite; the violation became NaN or "
        "infinite. The network has diverged: lower the learning rate, clip gradients, or look for "
        "inputs that are not finite."
    )
