from __future__ import annotations

import math

import pytest
import torch

from reliablenet.training.batches import AnnotatedRows, Rows
from reliablenet.training.objective import Objective
from reliablenet.training.selection_fold import attainable_throughput, look_at, parts_of

# Confidence 0.9 for class 0 or 1, 0.6 for class 1; group 0 has the first three rows.
SURE, UNSURE = math.log(9.0), math.log(1.5)
OUTPUTS = torch.tensor([[SURE, 0], [SURE, 0], [0, UNSURE], [0, SURE], [0, SURE], [0, UNSURE]])
Y = torch.tensor([0, 1, 1, 1, 1, 0])
GROUP = torch.tensor([0, 0, 0, 1, 1, 1])


def shown(rows, group_aims=(), **more):
    settings = {"objective": Objective(), "epoch": 1, "threshold": 0.8, "free": True} | more
    return look_at(rows, OUTPUTS.double(), parts=parts_of(rows, 0.2, group_aims), **settings)


def test_without_groups_all_rows_are_one_part():
    found = shown(Rows(torch.zeros(6, 1), Y))
    assert (found.jcw, found.coverage, found.throughput) == (1 / 6, 4 / 6, 3 / 6)
    assert found.accuracy == 4 / 6
    assert found.feasible
    assert found.group_jcw == ()
    assert found.at_chance  # class 1 has four of six rows


def test_with_groups_it_is_the_worst_that_counts():
    rows = AnnotatedRows(torch.zeros(6, 1), Y, group=GROUP)
    found = shown(rows, (0.2, 0.3))
    assert found.group_jcw == (1 / 3, 0.0)
    assert (found.jcw, found.throughput, found.feasible) == (1 / 3, 1 / 3, False)
    parts = [GROUP.eq(number) for number in (0, 1)]
    losses = [torch.nn.functional.cross_entropy(OUTPUTS[part], Y[part]) for part in parts]
    assert found.loss == pytest.approx(float(max(losses)), rel=1e-6)
    assert shown(rows, (0.4, 0.3)).feasible


def test_a_group_without_selection_rows_is_passed_over():
    rows = AnnotatedRows(torch.zeros(6, 1), Y, group=GROUP)
    assert shown(rows, (0.4, 0.3, 0.1)).group_jcw == (1 / 3, 0.0, 0.0)


def test_what_can_be_attained_keeps_every_aim_at_one_threshold():
    rows = AnnotatedRows(torch.zeros(6, 1), Y, group=GROUP)
    # group 0 affords no mistake, and its mistake is among the surest rows
    assert shown(rows, (0.1, 0.4)).attainable == 0.0
    assert shown(rows, (0.4, 0.1)).attainable == 1 / 3
    assert math.isnan(shown(rows, (0.4, 0.1), free=False).attainable)
    top, right = torch.tensor([0.9, 0.8, 0.7]), torch.tensor([True, False, True])
    assert attainable_throughput(top, right, parts_of(Rows(top, top), 0.4, ())) == 2 / 3


def test_without_a_threshold_there_is_loss_and_accuracy_alone():
    found = shown(Rows(torch.zeros(6, 1), Y), threshold=math.nan)
    assert math.isnan(found.jcw)
    assert not found.feasible
