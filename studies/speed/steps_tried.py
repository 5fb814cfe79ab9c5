"""Other ways to run a step of the paper's tabular network, against ours.

Whole-step `torch.compile` in two forms, and five seeds stacked into one network; the page on speed says what came of it.
Rows are random: only their shape, Adult's, matters.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

from reliablenet.training.chains import cross_entropy_gradient, find_chain
from reliablenet.training.kernels import ClippedAdam
from reliablenet.training.networks import mlp
from studies.runner import Block, Study
from studies.speed.timing import times_in_turns

N, FEATURES, BATCH, SEEDS, REPEATS = 22_855, 101, 256, 5, 9
GENERATOR = torch.Generator().manual_seed(0)
X = torch.randn(N, FEATURES, generator=GENERATOR)
Y = (X[:, 0] > 0).long()
Epoch = Callable[[], None]


def batches() -> list[tuple[Tensor, Tensor]]:
    orders = torch.randperm(N, generator=GENERATOR).split(BATCH)[:-1]  # one shape: compiled once
    return [(X.index_select(0, rows), Y.index_select(0, rows)) for rows in orders]


def ours() -> Epoch:
    """Return an epoch as the loop runs it: no graph, one call for clipping and Adam."""
    network = mlp(FEATURES, 2)
    chain, optimiser = find_chain(network), ClippedAdam(network.parameters(), 1e-3, 1e-4, 5.0)

    def epoch() -> None:
        for x, y in batches():
            _, gradient = cross_entropy_gradient(chain.forward(x), y)
            chain.backward(gradient)
            optimiser.descend()

    return epoch


def compiled_passes() -> Epoch:
    """Return an epoch whose loss, forward and backward pass are one compiled function."""
    network = mlp(FEATURES, 2)
    optimiser = ClippedAdam(network.parameters(), 1e-3, 1e-4, 5.0)
    parameters = list(network.parameters())

    @torch.compile
    def gradients(x: Tensor, y: Tensor, *weights: Tensor) -> list[Tensor]:
        w1, b1, w2, b2, w3, b3 = weights
        h1 = torch.relu(torch.addmm(b1, x, w1.t()))
        h2 = torch.relu(torch.addmm(b2, h1, w2.t()))
        proba = torch.softmax(torch.addmm(b3, h2, w3.t()), -1)
        d3 = (proba - functional.one_hot(y, 2)) / len(x)
        d2 = d3.mm(w3) * (h2 > 0)
        d1 = d2.mm(w2) * (h1 > 0)
        pairs = ((d1, x), (d2, h1), (d3, h2))
        return [part for d, h in pairs for part in (d.t().mm(h), d.sum(0))]

    def epoch() -> None:
        with torch.no_grad():
            for x, y in batches():
                found = gradients(x, y, *(weight.detach() for weight in parameters))
                for weight, gradient in zip(parameters, found, strict=True):
                    weight.grad = gradient
                optimiser.descend()

    return epoch


def compiled_loss_and_optimiser() -> Epoch:
    """Return an epoch with autograd, its loss and its optimiser compiled."""
    network = mlp(FEATURES, 2)
    optimiser = torch.optim.Adam(network.parameters(), 1e-3, weight_decay=1e-4, foreach=True)

    @torch.compile
    def loss(x: Tensor, y: Tensor) -> Tensor:
        return functional.cross_entropy(network(x), y)

    @torch.compile
    def descend() -> None:
        nn.utils.clip_grad_norm_(network.parameters(), 5.0, foreach=True)
        optimiser.step()

    def epoch() -> None:
        for x, y in batches():
            optimiser.zero_grad()
            loss(x, y).backward()
            descend()

    return epoch


def stacked_seeds() -> Epoch:
    """Return an epoch of five seeds in one network, by batched products."""
    sizes = ((FEATURES, 128), (1, 128), (128, 128), (1, 128), (128, 2), (1, 2))
    parameters = [nn.Parameter(torch.randn(SEEDS, *size) / math.sqrt(128)) for size in sizes]
    optimiser = torch.optim.Adam(parameters, 1e-3, weight_decay=1e-4, fused=True)

    def epoch() -> None:
        w1, b1, w2, b2, w3, b3 = parameters
        for x, y in batches():
            optimiser.zero_grad()
            hidden = torch.relu(torch.baddbmm(b1, x.expand(SEEDS, -1, -1), w1))
            hidden = torch.relu(torch.baddbmm(b2, hidden, w2))
            logits = torch.baddbmm(b3, hidden, w3)
            functional.cross_entropy(logits.flatten(0, 1), y.repeat(SEEDS)).backward()
            optimiser.step()

    return epoch


def measure(threads: int) -> dict[str, float]:
    """Return how many times as fast as ours each way is, and how long the compiled ones took to begin."""
    torch.set_num_threads(threads)
    ways = {
        "ours": ours(),
        "compiled_passes": compiled_passes(),
        "compiled_loss_and_optimiser": compiled_loss_and_optimiser(),
        "stacked_seeds": stacked_seeds(),
    }
    times = dict(zip(ways, times_in_turns(list(ways.values()), REPEATS), strict=True))
    best = {name: min(taken[1:]) for name, taken in times.items()}  # the first compiles
    shares = {name: SEEDS if name == "stacked_seeds" else 1 for name in ways}
    ratios = {name: round(shares[name] * best["ours"] / best[name], 2) for name in ways}
    return ratios | {"seconds_to_compile": round(times["compiled_passes"][0], 1)}


def blocks() -> list[Block]:
    """Return the numbers of threads."""
    return [Block.once({"threads": threads}, partial(measure, threads)) for threads in (1, 2)]


STUDY = Study(
    "speed",
    "steps_tried",
    about="Would another way to run a step be faster than ours?",
    cost="two minutes, and a compiler",
    blocks=blocks,
)
