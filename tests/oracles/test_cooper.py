"""Oracles: cooper's dual optimisers and two closed forms, for the multiplier of `JCWConstraint`.

`penalty`, `backward`, an optimiser's step and `step` are one roll of cooper's SimultaneousOptimizer:
both players move from the same iterate. Where conventions differ:

* Smoothing. Our ascent along the running mean e_t of the violation is cooper's nuPI controller with
  nu = ema, K_I = 1, K_P = -ema / (1 - ema), started at zero; its authors advise against a negative
  K_P and warn of it. Plain SGD does the same if the smoothed violation is given to it as the
  "strict" one. Both are run.
* Cap. Cooper projects onto [0, inf); the cap is put into `post_step_`, its place for projections.
* Step size. Ours is dual_rate * batch / rows; cooper's learning rate is set to that at each roll.
"""

from __future__ import annotations

import math

import cooper
import pytest
import torch
from cooper.optim import SimultaneousOptimizer, nuPI
from cooper.optim.torch_optimizers.nupi_optimizer import nuPIInitType
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from reliablenet.training import JCWConstraint

ALPHA, THRESHOLD, TAU, M1, M2 = 0.2, 0.7, 0.1, 0.5, 0.3
ROWS, DUAL_RATE, RATE = 90, 0.1, 0.05  # larger steps make the path chaotic: 1e-16 grows to 1


def plain_zeta(g: Tensor) -> Tensor:
    return (1 + M1 * TAU) / (1 + M2 * TAU * torch.exp(-g / TAU))


def plain_violation(logits: Tensor, y: Tensor) -> Tensor:
    """Return (psi - alpha) / max(alpha, 0.01) as the paper writes it."""
    own = logits.gather(1, y[:, None]).squeeze(1)
    rival = logits.masked_fill(nn.functional.one_hot(y, logits.shape[1]).bool(), -math.inf).amax(1)
    g = torch.minimum(logits.softmax(1).amax(1) - THRESHOLD, rival - own)
    return (plain_zeta(g).mean() - ALPHA) / max(ALPHA, 0.01)


class CappedMultiplier(cooper.multipliers.DenseMultiplier):
    def __init__(self, cap: float) -> None:
        super().__init__(init=torch.zeros(1), dtype=torch.float64)
        self.cap = cap

    @torch.no_grad()
    def post_step_(self) -> None:
        super().post_step_()
        self.weight.clamp_(max=self.cap)


class Problem(cooper.ConstrainedMinimizationProblem):
    """Logistic regression subject to v <= 0."""

    def __init__(self, network: nn.Module, cap: float, smoothing: float) -> None:
        super().__init__()
        self.network, self.smoothing, self.smoothed = network, smoothing, torch.zeros(())
        self.budget = cooper.Constraint(
            cooper.ConstraintType.INEQUALITY, multiplier=CappedMultiplier(cap)
        )

    def compute_cmp_state(self, X: Tensor, y: Tensor) -> cooper.CMPState:
        logits = self.network(X)
        v = plain_violation(logits, y)
        self.smoothed = self.smoothing * self.smoothed + (1 - self.smoothing) * v.detach()
        state = cooper.ConstraintState(violation=v[None], strict_violation=self.smoothed[None])
        return cooper.CMPState(cross_entropy(logits, y), {self.budget: state})


def plain_ascent(problem: Problem, ema: float) -> torch.optim.Optimizer:
    problem.smoothing = ema
    return torch.optim.SGD(problem.dual_parameters(), lr=1.0, maximize=True)


def controller(problem: Problem, ema: float) -> torch.optim.Optimizer:
    gain = torch.tensor(-ema / (1 - ema), dtype=torch.float64)
    return nuPI(
        problem.dual_parameters(),
        lr=1.0,
        Kp=gain,
        Ki=torch.ones((), dtype=torch.float64),
        ema_nu=ema,
        init_type=nuPIInitType.ZEROS,
        maximize=True,
    )


def linear() -> nn.Module:
    with torch.random.fork_rng([]):
        torch.manual_seed(3)
        return nn.Linear(2, 2).double()


def batches(steps: int):
    """Yield batches of changing size; at first the labels are noise, then they can be learnt."""
    generator = torch.Generator().manual_seed(0)
    for step in range(steps):
        size = 26 if step % 3 == 2 else 32
        X = torch.randn(size, 2, generator=generator, dtype=torch.float64)
        side = (X[:, 0] + X[:, 1] > 0).long()
        noise = torch.randint(2, (size,), generator=generator)
        yield X, noise if step < steps // 3 else side


@pytest.mark.filterwarnings("ignore:Using a negative Kp coefficient:UserWarning")
@pytest.mark.parametrize("dual", [plain_ascent, controller])
@pytest.mark.parametrize("ema", [0.0, 0.75, 0.9])
@pytest.mark.parametrize("precision", [1e-12, 1e-5], ids=["float64", "float32"])
def test_weights_and_multiplier_follow_cooper_step_for_step(dual, ema, precision):
    cap, steps = 0.5, 150
    dtype = torch.float64 if precision < 1e-6 else torch.float32
    network, twin = linear().to(dtype), linear()
    optimiser = torch.optim.SGD(network.parameters(), lr=RATE)
    constraint = JCWConstraint(
        ALPHA,
        THRESHOLD,
        rows=ROWS,
        tau=TAU,
        dual_rate=DUAL_RATE,
        ema=ema,
        multiplier_max=cap,
    ).to(dtype)
    problem = Problem(twin, cap, smoothing=0.0)
    ascent = dual(problem, ema)
    roller = SimultaneousOptimizer(problem, torch.optim.SGD(twin.parameters(), lr=RATE), ascent)
    path = []
    for X, y in batches(steps):
        logits = network(X.to(dtype))
        optimiser.zero_grad()
        (cross_entropy(logits, y) + constraint.penalty(logits, y)).backward()
        optimiser.step()
        constraint.step()

        ascent.param_groups[0]["lr"] = DUAL_RATE * len(y) / ROWS
        roller.roll(compute_cmp_state_kwargs={"X": X, "y": y})
        path.append(problem.budget.multiplier.weight.item())
        assert float(constraint.multiplier) == pytest.approx(path[-1], abs=precision)
        for ours, theirs in zip(network.parameters(), twin.parameters(), strict=True):
            torch.testing.assert_close(ours.double(), theirs, rtol=0, atol=precision)
    # Without cap, interior and floor on the way the path would prove little.
    assert max(path) == cap
    assert min(path[steps // 3 :]) == 0.0
    assert sum(0 < value < cap for value in path) > 20


@pytest.mark.parametrize("ema", [0.0, 0.75, 0.99])
@pytest.mark.parametrize("size", [4, 16])
def test_a_constant_violation_gives_the_geometric_sum(ema, size):
    """v_bar_t = v (1 - ema^t); the multiplier after T steps is rate * v times the sum of 1 - ema^t."""
    logits = torch.tensor([[2.0, 0.0], [1.0, 0.0]], dtype=torch.float64).repeat(size // 2, 1)
    y = torch.tensor([1, 0]).repeat(size // 2)  # half of the rows are confident and wrong
    v = float(plain_violation(logits, y))
    assert v > 1
    rate, cap = 0.8 * size / 64, 10.0
    constraint = JCWConstraint(
        ALPHA, THRESHOLD, rows=64, tau=TAU, dual_rate=0.8, ema=ema, multiplier_max=cap
    ).double()
    below_cap = 0
    for step in range(1, 301):
        constraint.penalty(logits, y)
        constraint.step()
        total = rate * v * (step - ema * (1 - ema**step) / (1 - ema))
        below_cap += total < cap
        assert float(constraint.violation_ema) == pytest.approx(v * (1 - ema**step), rel=1e-10)
        assert float(constraint.multiplier) == pytest.approx(min(total, cap), rel=1e-10)
    assert 20 <= below_cap < 300


# One wrong row with logits (x, 0): near the solution its psi rises with x, so that the feasible set
# of psi(x) <= alpha is an interval, and minimising (x - wish)^2 / 2 over it a convex problem.
BUDGET, ACT, FINE = 0.2, 0.9, 0.05
HEIGHT = 1 + M1 * FINE
CERTAINTY = ACT - FINE * math.log((HEIGHT / BUDGET - 1) / (M2 * FINE))  # zeta = alpha there
END = math.log(CERTAINTY / (1 - CERTAINTY))


def descend_and_ascend(wish: float, ema: float, x: float, multiplier: float):
    constraint = JCWConstraint(BUDGET, ACT, rows=1, tau=FINE, dual_rate=0.02, ema=ema).double()
    constraint.multiplier.fill_(multiplier)
    point = torch.tensor([[x, 0.0]], dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.SGD([point], lr=0.1)
    for _ in range(400):
        optimiser.zero_grad()
        loss = (point[0, 0] - wish) ** 2 / 2
        logits = point * torch.tensor([1.0, 0.0])  # the second logit stays 0
        (loss + constraint.penalty(logits, torch.tensor([1]))).backward()
        optimiser.step()
        constraint.step()
    return point[0, 0].item(), constraint.multiplier.item()


@pytest.mark.parametrize("ema", [0.0, 0.75])
@pytest.mark.parametrize("wish", [2.0, 1.0])
@pytest.mark.parametrize("start", [(0.1, 0.0), (1.5, 2.0)])
def test_descent_and_ascent_meet_at_the_kkt_point(wish, ema, start):
    """At the end of the interval the multiplier is -loss' / v'."""
    assert 0 < END < wish
    slope = (1 - BUDGET / HEIGHT) / FINE * CERTAINTY * (1 - CERTAINTY)
    x, multiplier = descend_and_ascend(wish, ema, *start)
    assert x == pytest.approx(END, abs=1e-6)
    assert multiplier == pytest.approx((wish - END) / slope, abs=1e-6)


def test_a_constraint_that_does_not_bind_has_the_multiplier_0():
    """Complementary slackness: the wish itself is feasible."""
    assert END > 0.4
    x, multiplier = descend_and_ascend(wish=0.4, ema=0.75, x=1.5, multiplier=1.0)
    assert multiplier == 0.0
    assert x == pytest.approx(0.4, abs=1e-9)
