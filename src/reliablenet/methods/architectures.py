"""Architectures: the networks that have a name, each with its encoder and its optimisation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from reliablenet._checks import parameter_error
from reliablenet.errors import InvalidDataError
from reliablenet.tables.piecewise import PiecewiseEncoder
from reliablenet.tables.tabular import TabularEncoder
from reliablenet.training.adaptive import AdaptiveSchedule
from reliablenet.training.forward import evaluate_logits
from reliablenet.training.networks import PiecewiseLayer, cnn5, mlp, resnet9, resnet18, tabular
from reliablenet.training.optimisation import Optimisation

NetworkFactory = Callable[[Any, int], nn.Module]


@dataclass(frozen=True)
class Architecture:
    """A network, its encoder for tables, and how it is optimised unless the user says otherwise.

    Parameters
    ----------
    factory : callable (n_features or shape, n_classes) -> nn.Module
    encoder : type
        `TabularEncoder`, or one with its interface.
    optimisation : Optimisation
    schedule : AdaptiveSchedule
        What "adaptive" stands for with this network.
    """

    factory: NetworkFactory
    encoder: type[TabularEncoder] = TabularEncoder
    optimisation: Optimisation = field(default_factory=Optimisation)
    schedule: AdaptiveSchedule = field(default_factory=AdaptiveSchedule)


ARCHITECTURES = {
    "cnn5": Architecture(cnn5, optimisation=Optimisation.images()),
    "mlp": Architecture(mlp),
    "resnet18": Architecture(resnet18, optimisation=Optimisation.images()),
    "resnet9": Architecture(
        resnet9,
        optimisation=Optimisation.fast_images(),
        # The loss falls at the end of a cycle of the learning rate, so that no warm-up may end before.
        schedule=AdaptiveSchedule(warmup_epochs=20, epochs_per_stage=20, patience=20),
    ),
    "tabular": Architecture(tabular, PiecewiseEncoder, Optimisation.tabular()),
}
FOR_TABLES = ("mlp", "tabular")


def find_architecture(network: str | NetworkFactory | Architecture, owner: str) -> Architecture:
    """Return the architecture of a name, or the one around a factory of the user's own."""
    if isinstance(network, Architecture):  # the studies' own, with settings that no name has
        return network
    if isinstance(network, str) and network in ARCHITECTURES:
        return ARCHITECTURES[network]
    if not callable(network):
        raise parameter_error(
            "network",
            owner,
            f"be one of {sorted(ARCHITECTURES)} or a function (n_features, n_classes) -> nn.Module",
            network,
        )
    return Architecture(network)


def check_inputs(network: str | NetworkFactory, shape: Sequence[int], owner: str) -> None:
    """Raise if rows of a shape are images and the network is one for tables."""
    if len(shape) > 1 and network in FOR_TABLES:
        raise parameter_error(
            "network",
            owner,
            f"take inputs of shape {tuple(shape)}",
            network,
            'Use "resnet9", "cnn5" or "resnet18" for images of shape (channels, height, width), or a '
            "function of your own.",
        )


def build_network(
    factory: NetworkFactory,
    shape: tuple[int, ...],
    bins: Sequence[int],
    outputs: int,
    n_classes: int,
    seed: int,
    owner: str,
) -> nn.Module:
    """Return a network with its first weights, checked with one row of zeros.

    Parameters
    ----------
    factory : callable
    shape : tuple of int
        Of one encoded row.
    bins : sequence of int
        Bins of each encoded column, 0 where it goes in as it is (`TabularEncoder.bins_`).
    outputs, n_classes : int
        Numbers that the network must return for a row, and the classes they are for.
    seed : int
    owner : str
        Whom an error names.
    """
    with torch.random.fork_rng([]):  # initialisation draws from torch's global generator
        torch.manual_seed(seed)
        pieces = PiecewiseLayer(bins) if any(bins) else None
        features = pieces.width if pieces else shape[0] if len(shape) == 1 else shape
        network = factory(features, outputs)
        if not isinstance(network, nn.Module):
            raise parameter_error("network", owner, "return an nn.Module", type(network).__name__)
        if pieces:
            network = nn.Sequential(pieces, network)
        # Convolutions take 0.6 to 0.8 of the time with the channels last; rows stay as they are.
        network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        returned = tuple(evaluate_logits(network, torch.zeros(1, *shape)).shape)
    if returned != (1, outputs):
        raise InvalidDataError(
            f"`network` of {owner} must return {outputs} outputs a row ({n_classes} classes); for 1 "
            f"row it returned shape {returned}."
        )
    return network
