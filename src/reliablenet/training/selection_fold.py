"""What the selection fold shows of a network: its losses and mistakes, of the worst group if there are any."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from reliablenet.certificate.threshold import jcw_threshold
from reliablenet.training.batches import Rows
from reliablenet.training.history import NAN
from reliablenet.training.objective import Objective
from reliablenet.training.stream import Stream


class Part(NamedTuple):
    """Rows of the selection fold that a budget is about: all, or those of a group."""

    rows: Any  # an index: a slice or a mask
    aim: float
    n: int


def parts_of(selection: Rows | Stream, aim: float, group_aims: Sequence[float]) -> list[Part]:
    """Return the rows and the aim of every budget; without groups there is one, of all rows."""
    if not group_aims or selection.group is None:
        return [Part(slice(None), aim, len(selection.y))]
    masks = [selection.group.cpu() == number for number in range(len(group_aims))]
    return [Part(mask, one, int(mask.sum())) for mask, one in zip(masks, group_aims, strict=True)]


class Shown(NamedTuple):
    """What the selection fold shows; values that need a threshold are NaN without one.

    With groups, loss, JCW and throughput are those of the group that does worst in each.
    """

    loss: float
    accuracy: float
    at_chance: bool
    jcw: float
    coverage: float
    throughput: float
    feasible: bool
    attainable: float
    group_jcw: tuple[float, ...]


def look_at(
    selection: Rows | Stream,
    outputs: Tensor,
    objective: Objective,
    epoch: int,
    threshold: float,
    parts: list[Part],
    *,
    free: bool,
) -> Shown:
    """Measure outputs for the selection fold.

    Parameters
    ----------
    selection : Rows or Stream
    outputs : Tensor of shape (n, ...)
    objective : Objective
    epoch : int
        Whose loss counts, where it changes in the course of training.
    threshold : float
        NaN where there is none.
    parts : list of Part
    free : bool
        Whether the threshold is set anew when training is over, so that what matters is what can then
        be attained.
    """
    y, weight = selection.y.to(outputs.device), selection.weight
    weight = None if weight is None else weight.to(outputs.device)
    top, predicted = torch.softmax(objective.logits(outputs), -1).max(-1)
    right = predicted == y
    counted = [part for part in parts if part.n]
    loss = max(
        objective.held_out_loss(
            outputs[rows], y[rows], epoch, None if weight is None else weight[rows]
        )
        for rows, *_ in counted
        if weight is None or bool(weight[rows].any())
    )
    accuracy = float(right.double().mean())
    at_chance = int(right.sum()) <= int(torch.bincount(y).max())
    if math.isnan(threshold):
        return Shown(loss, accuracy, at_chance, NAN, NAN, NAN, False, NAN, ())
    accepted = top >= threshold
    acted_wrongly, acted_rightly = accepted & ~right, accepted & right
    jcws = [_mean(acted_wrongly[part.rows]) for part in parts]
    worst = max(range(len(parts)), key=lambda number: jcws[number] / parts[number].aim)
    return Shown(
        loss=loss,
        accuracy=accuracy,
        at_chance=at_chance,
        jcw=jcws[worst],
        coverage=_mean(accepted),
        throughput=min(_mean(acted_rightly[part.rows]) for part in counted),
        feasible=all(jcw <= part.aim for jcw, part in zip(jcws, parts, strict=True)),
        attainable=attainable_throughput(top, right, counted) if free else NAN,
        group_jcw=tuple(jcws) if len(parts) > 1 else (),
    )


def attainable_throughput(top: Tensor, right: Tensor, parts: list[Part]) -> float:
    """Return the throughput at the most permissive threshold that keeps every aim, of the worst part.

    Examples
    --------
    >>> import torch
    >>> from reliablenet.training.selection_fold import Part, attainable_throughput
    >>> top, right = torch.tensor([0.9, 0.8, 0.7, 0.6]), torch.tensor([True, True, False, True])
    >>> attainable_throughput(top, right, [Part(slice(None), 0.1, 4)])
    0.5
    """
    score, correct = top.double().cpu().numpy(), right.cpu().numpy()
    rows = [
        part.rows if isinstance(part.rows, slice) else part.rows.cpu().numpy() for part in parts
    ]
    threshold = max(
        jcw_threshold(score=score[index], correct=correct[index], alpha=part.aim)
        for index, part in zip(rows, parts, strict=True)
    )
    acted_rightly = (score >= threshold) & correct
    return min(float(acted_rightly[index].mean()) for index in rows)


def _mean(values: Tensor) -> float:
    return float(values.double().mean()) if len(values) else 0.0
