from __future__ import annotations

import ast
import copy
import math
import re
import runpy
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from import_graph import MODULES
from reliablenet.training import Rows, Schedule, kernels, mlp, train
from reliablenet.training.kernels import (
    HOOKS_OF_MODULES,
    HOOKS_OF_WEIGHTS,
    ClippedAdam,
    are_flushed,
    blend,
    flushed_denormals,
    scale,
)

supported = pytest.mark.skipif(
    not torch.set_flush_denormal(False), reason="this processor cannot flush denormal numbers"
)


def test_this_version_of_torch_has_all_that_we_look_for():
    """Else the fallbacks do the work, more slowly; then this test says so."""
    found = (kernels.FUSED_ADAM, kernels.ADD_TO_ALL, kernels.NORM_OF_ALL, kernels.SCALE_ALL)
    assert None not in (*found, kernels.BLEND_ALL)
    backward = (kernels.RELU_BACKWARD, kernels.RELU_BACKWARD_INTO)
    assert None not in (*backward, kernels.LOG_SOFTMAX_BACKWARD)
    layer = nn.Linear(1, 1)
    assert all(hasattr(layer, name) for name in HOOKS_OF_MODULES)
    assert all(hasattr(layer.weight, name) for name in HOOKS_OF_WEIGHTS)


def test_private_torch_is_looked_up_here_alone() -> None:
    """Else a torch that lacks a name would break whatever imports that module."""
    private = re.compile(r"(getattr\()?torch(\.ops\b|(\.\w+)*(\.|, ')_(?!_))")
    asked = {
        name
        for name, text in MODULES.items()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute | ast.Call) and private.match(ast.unparse(node))
    }
    assert asked == {"reliablenet.training.kernels"}


def test_a_torch_without_the_operators_of_chains_can_be_imported(monkeypatch) -> None:
    monkeypatch.setattr(torch.ops, "aten", SimpleNamespace())
    found = runpy.run_path(kernels.__file__)
    names = ("RELU_BACKWARD", "RELU_BACKWARD_INTO", "LOG_SOFTMAX_BACKWARD")
    assert [found[name] for name in names] == [None, None, None]


# Clipped Adam


def gradients(network: nn.Module, step: int, size: float) -> None:
    generator = torch.Generator().manual_seed(step)
    for weight in network.parameters():
        weight.grad = size * torch.randn(weight.shape, generator=generator)


def same_bits(one: nn.Module, other: nn.Module) -> bool:
    pairs = zip(one.parameters(), other.parameters(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


@pytest.mark.parametrize("absent", [None, "FUSED_ADAM", "ADD_TO_ALL", "NORM_OF_ALL", "SCALE_ALL"])
def test_steps_have_the_bits_of_clipping_and_fused_adam(monkeypatch, absent):
    """Norms far below the limit, near it and above it, also where moments are loaded in between."""
    if absent is not None:
        assert getattr(kernels, absent) is not None
        monkeypatch.setattr(kernels, absent, None)
    network = mlp(7, 3, width=16)
    twin = copy.deepcopy(network)
    count = sum(weight.numel() for weight in network.parameters())
    ours = ClippedAdam(network.parameters(), 1e-2, 1e-3, clip_norm=0.3)
    plain = torch.optim.Adam(twin.parameters(), lr=1e-2, weight_decay=1e-3, fused=True)
    for step in range(12):
        size = (0.01, 0.2998, 0.3, 0.3002, 5.0)[step % 5] / math.sqrt(count)
        gradients(network, step, size)
        gradients(twin, step, size)
        ours.descend()
        nn.utils.clip_grad_norm_(twin.parameters(), 0.3)
        plain.step()
        assert same_bits(network, twin)
        if step == 6:
            ours.load_state_dict(copy.deepcopy(ours.state_dict()))
    for mine, theirs in zip(
        ours.state_dict()["state"].values(), plain.state_dict()["state"].values(), strict=True
    ):
        assert all(torch.equal(mine[name], theirs[name]) for name in theirs)


def test_a_weight_without_a_gradient_stays_as_it_is():
    network = mlp(7, 3, width=16)
    before = network.head.bias.detach().clone()
    optimiser = ClippedAdam(network.parameters(), 1e-2, 0.0, clip_norm=1.0)
    for step in range(3):
        gradients(network, step, 1.0)
        network.head.bias.grad = None
        optimiser.descend()
    assert torch.equal(network.head.bias, before)
    assert float(optimiser.state[network.head.weight]["step"]) == 3


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_gradient_that_is_not_finite_spoils_the_weights_as_in_torch(bad):
    """The loop finds the loss not finite and stops."""
    network = mlp(7, 3, width=16)
    optimiser = ClippedAdam(network.parameters(), 1e-2, 0.0, clip_norm=1.0)
    for step in range(2):
        gradients(network, step, 1.0)
        if step:
            network.head.bias.grad[0] = bad
        optimiser.descend()
    assert not torch.isfinite(network.head.bias[0])


# Many tensors at once


@pytest.mark.parametrize("absent", [False, True])
@pytest.mark.parametrize("factor", [0.3, torch.tensor(0.3)])
def test_scaling_has_the_bits_of_one_tensor_at_a_time(monkeypatch, absent, factor):
    if absent:
        monkeypatch.setattr(kernels, "SCALE_ALL", None)
    tensors = [torch.randn(7, 5), torch.randn(3)]
    expected = [tensor * factor for tensor in tensors]
    scale(tensors, factor)
    assert all(torch.equal(one, other) for one, other in zip(tensors, expected, strict=True))


@pytest.mark.parametrize("absent", [False, True])
def test_blending_has_the_bits_of_one_tensor_at_a_time(monkeypatch, absent):
    if absent:
        monkeypatch.setattr(kernels, "BLEND_ALL", None)
    targets, sources = ([torch.randn(70, 5), torch.randn(3)] for _ in range(2))
    expected = [torch.lerp(a, b, 0.1) for a, b in zip(targets, sources, strict=True)]
    blend(targets, sources, 0.1)
    assert all(torch.equal(one, other) for one, other in zip(targets, expected, strict=True))


# Denormal numbers


@supported
def test_denormals_are_zero_inside_and_as_before_outside():
    tiny = torch.tensor(1e-40)
    assert float(tiny * 1.0) > 0
    with flushed_denormals():
        assert float(tiny * 1.0) == 0
        with flushed_denormals():
            pass
        assert are_flushed()  # an inner one leaves the outer one's setting
    assert not are_flushed()


@supported
def test_training_flushes_them_and_leaves_the_setting_alone_even_if_it_fails():
    seen = []
    rows = Rows(torch.randn(8, 2), torch.arange(8) % 2)

    def look(history):
        seen.append(are_flushed())
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(nn.Linear(2, 2), rows, rows, alpha=0.05, schedule=Schedule.erm(2), after_epoch=look)
    assert seen == [True]
    assert not are_flushed()


def test_a_step_calls_nothing_that_imports_the_compiler(monkeypatch) -> None:
    """The first call of these methods in a process imports torch._dynamo, for seconds."""

    def refuse(*given: object, **more: object) -> None:
        raise AssertionError("torch's own method was called")

    for owner, name in (
        (torch.optim.Optimizer, "add_param_group"),
        (torch.optim.Optimizer, "zero_grad"),
        (torch.optim.Adam, "step"),
    ):
        monkeypatch.setattr(owner, name, refuse)
    layer = nn.Linear(3, 2)
    optimiser = ClippedAdam(layer.parameters(), 0.1, 0.0, 5.0)
    before = layer.weight.detach().clone()
    for _ in range(2):
        optimiser.zero_grad()
        layer(torch.ones(4, 3)).sum().backward()
        optimiser.descend()
    assert not torch.equal(layer.weight, before)
