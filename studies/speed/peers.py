"""What `ratios.py` holds our loop against: the loops that others write, and the arithmetic alone."""

from __future__ import annotations

import math
from collections.abc import Callable

import cooper
import numpy as np
import torch
from cooper.optim import SimultaneousOptimizer
from mapie.risk_control import BinaryRisk, MultiClassificationLTTController
from numpy.typing import NDArray
from skorch import NeuralNetClassifier
from skorch.callbacks import GradientNormClipping
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

from reliablenet.risk.surrogate import M1, M2
from reliablenet.training import Optimisation, Rows, mlp

PAPER = Optimisation()
ALPHA, THRESHOLD, TAU = 0.05, 0.8, 0.5


def new_network(rows: Rows) -> nn.Module:
    torch.manual_seed(0)
    return mlp(rows.X.shape[1], 2)


def usual_loop(rows: Rows, selection: Rows, epochs: int) -> None:
    """The loop most people write: DataLoader, default Adam, `.item()` every step."""
    network = new_network(rows)
    optimiser = torch.optim.Adam(
        network.parameters(), lr=PAPER.learning_rate, weight_decay=PAPER.weight_decay
    )
    loader = DataLoader(TensorDataset(*rows), batch_size=PAPER.batch_size, shuffle=True)
    for _ in range(epochs):
        total = 0.0
        for X, y in loader:
            optimiser.zero_grad()
            loss = cross_entropy(network(X), y)
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), PAPER.clip_norm)
            optimiser.step()
            total += loss.item() * len(y)
        with torch.no_grad():
            (network(selection.X).argmax(1) == selection.y).float().mean().item()


class Problem(cooper.ConstrainedMinimizationProblem):
    """Cross-entropy subject to psi <= alpha, as tests/oracles/test_cooper.py has it."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network
        multiplier = cooper.multipliers.DenseMultiplier(init=torch.zeros(1))
        self.budget = cooper.Constraint(cooper.ConstraintType.INEQUALITY, multiplier=multiplier)

    def compute_cmp_state(self, X: Tensor, y: Tensor) -> cooper.CMPState:
        logits = self.network(X)
        own = logits.gather(1, y[:, None]).squeeze(1)
        others = logits.masked_fill(nn.functional.one_hot(y, logits.shape[1]).bool(), -math.inf)
        g = torch.minimum(logits.softmax(1).amax(1) - THRESHOLD, others.amax(1) - own)
        psi = ((1 + M1 * TAU) / (1 + M2 * TAU * torch.exp(-g / TAU))).mean()
        state = cooper.ConstraintState(violation=((psi - ALPHA) / ALPHA)[None])
        return cooper.CMPState(cross_entropy(logits, y), {self.budget: state})


def cooper_loop(rows: Rows, selection: Rows, epochs: int) -> None:
    """The same constraint in the usual loop; cooper's roll has no place for clipping, so without."""
    network = new_network(rows)
    problem = Problem(network)
    roller = SimultaneousOptimizer(
        problem,
        torch.optim.Adam(
            network.parameters(), lr=PAPER.learning_rate, weight_decay=PAPER.weight_decay
        ),
        torch.optim.SGD(problem.dual_parameters(), lr=0.01, maximize=True),
    )
    loader = DataLoader(TensorDataset(*rows), batch_size=PAPER.batch_size, shuffle=True)
    for _ in range(epochs):
        total = 0.0
        for X, y in loader:
            total += roller.roll(compute_cmp_state_kwargs={"X": X, "y": y}).loss.item() * len(y)
        with torch.no_grad():
            (network(selection.X).argmax(1) == selection.y).float().mean().item()


def skorch_fit(rows: Rows, epochs: int) -> None:
    NeuralNetClassifier(
        new_network(rows),
        criterion=nn.CrossEntropyLoss,
        optimizer=torch.optim.Adam,
        optimizer__weight_decay=PAPER.weight_decay,
        lr=PAPER.learning_rate,
        batch_size=PAPER.batch_size,
        max_epochs=epochs,
        iterator_train__shuffle=True,
        train_split=None,
        callbacks=[GradientNormClipping(PAPER.clip_norm)],
        verbose=0,
    ).fit(rows.X, rows.y)


def matrix_products(rows: Rows) -> Callable[[], None]:
    """Return an epoch of nothing but the matrix products of a step, forward and backward."""
    weights = [w.detach() for w in new_network(rows).parameters() if w.ndim == 2]
    batches = rows.X.split(PAPER.batch_size)

    def epoch() -> None:
        with torch.inference_mode():
            for X in batches:
                values = [X]
                for weight in weights:
                    values.append(values[-1] @ weight.t())
                gradient = values[-1]
                for layer in reversed(range(len(weights))):
                    gradient.t() @ values[layer]
                    if layer:
                        gradient = gradient @ weights[layer]

    return epoch


ACCEPTED_AND_WRONG = BinaryRisk(
    risk_occurrence=lambda y, predicted: ~np.isnan(predicted) & (predicted != y),
    risk_condition=lambda y, _: np.ones(len(y), bool),
    higher_is_better=False,
)


def mapie_threshold(proba: NDArray[np.float64], y: NDArray[np.intp]) -> None:
    """MAPIE's threshold control over all observed scores, a table of rows times scores."""
    MultiClassificationLTTController(
        lambda rows: proba[rows],
        [ACCEPTED_AND_WRONG],
        [ALPHA],
        0.95,
        list_predict_params=np.unique(proba.max(axis=1)),
        classes=np.arange(proba.shape[1]),
        fwer_method="fixed_sequence",
    ).calibrate(np.arange(len(y)), y)
