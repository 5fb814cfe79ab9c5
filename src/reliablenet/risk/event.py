"""The confident-wrong event and the scalar violation that encodes it (paper, section 3.2).

Logits have shape (..., K) with K >= 2; labels are class indices of shape (...).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from reliablenet._checks import check_threshold, is_real, parameter_error
from reliablenet.errors import InvalidDataError


def confidence(logits: Tensor) -> Tensor:
    """Return the largest class probability c(x) of each row.

    Parameters
    ----------
    logits : Tensor of shape (..., K)

    Returns
    -------
    Tensor of shape (...)

    Examples
    --------
    >>> import torch
    >>> from reliablenet.risk import confidence
    >>> confidence(torch.tensor([[0.0, 0.0], [1e4, -1e4]]))
    tensor([0.5000, 1.0000])
    """
    check_classes(logits)
    return _confidence(logits)


def margin(logits: Tensor, y: Tensor) -> Tensor:
    """Return the largest other logit minus the own logit: positive where the row is misclassified.

    Parameters
    ----------
    logits : Tensor of shape (..., K)
    y : integer Tensor of shape (...)

    Returns
    -------
    Tensor of shape (...)

    Examples
    --------
    >>> import torch
    >>> from reliablenet.risk import margin
    >>> margin(torch.tensor([[2.0, 5.0, 1.0]]), torch.tensor([0]))
    tensor([3.])
    """
    check_logits(logits, y)
    check_labels(y, logits.shape[-1])
    return _margin(logits, y)


def violation(logits: Tensor, y: Tensor, threshold: float) -> Tensor:
    """Return g = min(confidence - threshold, margin): positive where a row is confident and wrong.

    Implements equation (g_def) of the paper. Gradients are finite everywhere; at ties of the
    maximum or of the minimum they are the mean of the tied pieces' gradients.

    Parameters
    ----------
    logits : Tensor of shape (..., K)
    y : integer Tensor of shape (...)
        Class indices in 0 ... K-1.
    threshold : float
        The confidence in (1/K, 1] from which the model acts.

    Returns
    -------
    Tensor of shape (...)

    Examples
    --------
    >>> import torch
    >>> from reliablenet import violation
    >>> logits = torch.tensor([[4.0, 0.0], [4.0, 0.0], [0.1, 0.0]])
    >>> violation(logits, torch.tensor([1, 0, 1]), threshold=0.8) > 0
    tensor([ True, False, False])
    """
    check_logits(logits, y)
    check_labels(y, logits.shape[-1])
    threshold = check_threshold("threshold", threshold, "violation", logits.shape[-1])
    if not bool(torch.isfinite(logits).all()):
        raise InvalidDataError(
            "`logits` of violation must be finite; got NaN or an infinity. "
            "Look for a diverged network or an input that is not finite."
        )
    return compute_violation(logits, y, threshold)


def compute_violation(logits: Tensor, y: Tensor, threshold: float) -> Tensor:
    """Compute `violation` without its checks, for use inside a training step."""
    return torch.minimum(_confidence(logits) - threshold, _margin(logits, y))


def confident_wrong(logits: Tensor, y: Tensor, threshold: float) -> Tensor:
    """Tell for each row whether the model acts on it and is wrong (the hard JCW event).

    Parameters
    ----------
    logits : Tensor of shape (..., K)
    y : integer Tensor of shape (...)
    threshold : float

    Returns
    -------
    boolean Tensor of shape (...)

    Examples
    --------
    >>> import torch
    >>> from reliablenet.risk import confident_wrong
    >>> logits = torch.tensor([[4.0, 0.0], [4.0, 0.0], [0.1, 0.0]])
    >>> confident_wrong(logits, torch.tensor([1, 0, 1]), threshold=0.8)
    tensor([ True, False, False])
    """
    check_logits(logits, y)
    if not is_real(threshold) or math.isnan(threshold):
        raise parameter_error("threshold", "confident_wrong", "be a number", threshold)
    return (_confidence(logits) >= float(threshold)) & (logits.argmax(dim=-1) != y)


def check_labels(y: Tensor, n_classes: int) -> None:
    """Raise if a label is not a class index."""
    if y.numel() and not 0 <= int(y.min()) <= int(y.max()) < n_classes:
        raise InvalidDataError(
            f"`y` must hold class indices from 0 to {n_classes - 1}; got values from "
            f"{int(y.min())} to {int(y.max())}. Leave out rows to be ignored."
        )


def check_logits(logits: Tensor, y: Tensor) -> None:
    """Raise unless logits and labels fit together; looks at shapes and types, not at values."""
    check_classes(logits)
    if isinstance(y, Tensor) and (y.is_floating_point() or y.dtype == torch.bool):
        raise InvalidDataError(
            f"`y` must hold class indices of an integer type; got {y.dtype}. Use y.long()."
        )
    check_real("y", y)
    if logits.shape[:-1] != y.shape:
        raise InvalidDataError(
            f"`y` must have the shape of `logits` without its last axis, "
            f"{tuple(logits.shape[:-1])}; got {tuple(y.shape)}."
        )


def check_classes(logits: Tensor) -> None:
    """Raise unless logits have a class axis; looks at shapes and types, not at values."""
    check_real("logits", logits)
    if logits.ndim < 1 or logits.shape[-1] < 2:
        raise InvalidDataError(
            f"`logits` must have shape (..., K) with K >= 2 classes; got {tuple(logits.shape)}. "
            "For one logit a row, stack it with zeros: torch.stack([0 * z, z], dim=-1)."
        )
    if not logits.is_floating_point():
        raise InvalidDataError(
            f"`logits` must be of a floating type; got {logits.dtype}. Use logits.float()."
        )


def check_real(name: str, values: Tensor) -> Tensor:
    """Return the values if they are a dense Tensor of real numbers."""
    if not isinstance(values, Tensor):
        raise InvalidDataError(
            f"`{name}` must be a Tensor; got {type(values).__name__}. Use torch.as_tensor."
        )
    if values.is_complex() or values.dtype == torch.bool or values.layout != torch.strided:
        raise InvalidDataError(
            f"`{name}` must be a dense Tensor of real numbers; got {values.dtype}, {values.layout}."
        )
    return values


def _confidence(logits: Tensor) -> Tensor:
    return torch.log_softmax(logits, dim=-1).amax(dim=-1).exp()


def _margin(logits: Tensor, y: Tensor) -> Tensor:
    own = y.long().unsqueeze(-1)
    others = logits.scatter(-1, own, -torch.inf)
    return others.amax(dim=-1) - logits.gather(-1, own).squeeze(-1)
