"""SelectiveNet: its loss against the paper's equation, its network, and what it learns."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from contract_helpers import fit_quietly, quick
from hypothesis import given, settings, strategies as st
from scipy.special import expit, logsumexp
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score
from torch import nn

import reliablenet as rn
from reliablenet.datasets import SyntheticBand
from reliablenet.methods.selectivenet import SelectiveLoss
from reliablenet.training import Network

BAND = SyntheticBand(random_state=0).sample(600)
SETTINGS = st.builds(
    SelectiveLoss,
    st.floats(0.05, 0.95),
    st.sampled_from([0.5, 32.0]),
    st.floats(0.01, 1.0),
)


def draw(n: int, classes: int, seed: int, spread: float = 3.0) -> tuple[torch.Tensor, torch.Tensor]:
    random = np.random.RandomState(seed)
    outputs = spread * random.standard_normal((n, 2 * classes + 1))
    return torch.from_numpy(outputs), torch.from_numpy(random.randint(classes, size=n))


def cross_entropies(logits: np.ndarray, y: np.ndarray) -> np.ndarray:
    return logsumexp(logits, axis=1) - logits[np.arange(len(y)), y]


def equation(objective: SelectiveLoss, outputs: np.ndarray, y: np.ndarray) -> float:
    """The paper's selective risk, coverage penalty and auxiliary loss, written out."""
    classes = (outputs.shape[1] - 1) // 2
    main, selection, auxiliary = np.split(outputs, [classes, classes + 1], axis=1)
    s = expit(selection[:, 0])
    risk = (s * cross_entropies(main, y)).sum() / (s.sum() + 1e-8)  # the paper's epsilon
    penalty = max(0.0, objective.target_coverage - s.mean()) ** 2
    selective = risk + objective.coverage_weight * penalty
    mixed = (1 - objective.mixing) * cross_entropies(auxiliary, y).mean()
    return objective.mixing * selective + mixed


# The loss


@settings(deadline=None)
@given(
    objective=SETTINGS,
    classes=st.integers(2, 6),
    n=st.integers(1, 40),
    seed=st.integers(0, 10_000),
    epoch=st.integers(1, 100),
)
def test_the_loss_is_the_papers_equation(objective, classes, n, seed, epoch) -> None:
    outputs, y = draw(n, classes, seed)
    loss = objective.loss(outputs, y, epoch)
    assert loss.shape == ()
    expected = equation(objective, outputs.numpy(), y.numpy())
    assert float(loss) == pytest.approx(expected, rel=1e-9)


@settings(deadline=None)
@given(objective=SETTINGS, classes=st.integers(2, 6), seed=st.integers(0, 10_000))
def test_its_gradient_is_that_of_finite_differences(objective, classes, seed) -> None:
    outputs, y = draw(6, classes, seed, spread=1.5)
    outputs.requires_grad_()
    assert torch.autograd.gradcheck(lambda o: objective.loss(o, y, 1), outputs)


@settings(deadline=None)
@given(
    classes=st.integers(2, 6),
    seed=st.integers(0, 10_000),
    selection=st.sampled_from([-1e4, 1e4, None]),
)
def test_extreme_outputs_leave_loss_and_gradient_finite(classes, seed, selection) -> None:
    outputs, y = draw(20, classes, seed)
    outputs = (1e4 * outputs.sign()).float()
    if selection is not None:
        outputs[:, classes] = selection
    outputs.requires_grad_()
    loss = SelectiveLoss(0.8, 32.0, 0.5).loss(outputs, y, 1)
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(outputs.grad).all()


def test_the_risk_is_divided_by_the_mass_selected() -> None:
    outputs, y = draw(50, 3, seed=1)
    losses = []
    for share in (0.85, 0.95):  # both beyond the target: only the division makes them equal
        outputs[:, 3] = np.log(share / (1 - share))
        losses.append(float(SelectiveLoss(0.8, 32.0, 1.0).loss(outputs, y, 1)))
    expected = cross_entropies(outputs[:, :3].numpy(), y.numpy()).mean()
    assert losses == pytest.approx([expected, expected], rel=1e-6)


def test_more_coverage_than_the_target_costs_nothing_and_less_costs_its_square() -> None:
    outputs, y = draw(50, 2, seed=2)
    outputs[:, :2] = 0.0  # a risk of log 2 whatever is selected

    def penalty(share: float) -> float:
        outputs[:, 2] = np.log(share / (1 - share))
        return float(SelectiveLoss(0.8, 10.0, 1.0).loss(outputs, y, 1)) - np.log(2)

    assert penalty(0.9) == pytest.approx(0.0, abs=1e-6)
    assert penalty(0.7) == pytest.approx(10 * 0.1**2, rel=1e-5)
    assert penalty(0.5) == pytest.approx(10 * 0.3**2, rel=1e-5)


@settings(deadline=None)
@given(classes=st.integers(2, 6), seed=st.integers(0, 10_000))
def test_logits_and_score_are_the_first_outputs_and_the_one_behind_them(classes, seed) -> None:
    outputs, _ = draw(5, classes, seed)
    objective = SelectiveLoss(0.8, 32.0, 0.5)
    np.testing.assert_array_equal(objective.logits(outputs), outputs[:, :classes])
    np.testing.assert_allclose(objective.score(outputs), expit(outputs[:, classes].numpy()))
    assert not objective.is_warmup(1)


def test_without_mixing_the_auxiliary_head_learns_nothing() -> None:
    outputs, y = draw(20, 3, seed=3)
    for mixing, learns in ((1.0, False), (0.5, True)):
        leaf = outputs.clone().requires_grad_()
        SelectiveLoss(0.8, 32.0, mixing).loss(leaf, y, 1).backward()
        assert bool(leaf.grad[:, 4:].any()) == learns


# The network


def test_three_heads_share_one_body() -> None:
    fitted = fit_quietly(quick(rn.SelectiveNetClassifier, epochs=1), BAND.X, BAND.y)
    network = fitted.network_
    parts = {name.split(".")[0] for name, _ in network.named_parameters()}
    assert parts == {"body", "head", "selection", "auxiliary"}
    x = torch.from_numpy(fitted.encoder_.transform(BAND.X[:5]))
    with torch.no_grad():
        features = network.body(x)
        together = network(x)
    assert together.shape == (5, 5)
    heads = (network.head, network.selection, network.auxiliary)
    with torch.no_grad():
        alone = torch.cat([head(features) for head in heads], dim=1)
    assert torch.equal(together, alone)
    for column in range(5):  # every head reaches the body
        network.zero_grad()
        network(x)[:, column].sum().backward()
        assert network.body[0].weight.grad.abs().sum() > 0


def test_heads_start_from_different_draws_that_the_seed_decides() -> None:
    networks = []
    for seed in (1, 1, 2):
        estimator = rn.SelectiveNetClassifier()
        estimator.classes_, estimator.input_shape_ = np.arange(2), (10,)
        estimator.encoder_ = None
        networks.append(estimator._build_network(seed).state_dict())
    first, again, other = networks
    assert all(torch.equal(value, again[name]) for name, value in first.items())
    assert not torch.equal(first["selection.0.weight"], other["selection.0.weight"])
    assert not torch.equal(first["head.weight"], first["auxiliary.weight"])


def test_probabilities_and_score_are_those_of_the_heads() -> None:
    model = fit_quietly(quick(rn.SelectiveNetClassifier), BAND.X, BAND.y)
    score = model.acceptance_score(BAND.X)
    assert ((score > 0) & (score < 1)).all()
    assert np.ptp(score) > 0.01
    outputs = model.network_(torch.from_numpy(model.encoder_.transform(BAND.X))).detach().double()
    np.testing.assert_allclose(score, expit(outputs[:, 2].numpy()), rtol=1e-5)
    proba = torch.softmax(outputs[:, :2], 1)
    np.testing.assert_allclose(model.predict_proba(BAND.X), proba, rtol=1e-4)


def images(shape, outputs) -> nn.Module:
    body = nn.Sequential(nn.Conv2d(shape[0], 4, 3), nn.ReLU())
    return Network(body, nn.Sequential(nn.Flatten(), nn.Linear(4 * 36, outputs)))


class WithBypass(Network):
    """A network that is more than its head upon its body."""

    def __init__(self, features: int, outputs: int) -> None:
        super().__init__(nn.Linear(features, 8), nn.Linear(8, outputs))
        self.bypass = nn.Linear(features, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) + self.bypass(x)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"target_coverage": 0.0}, r"`target_coverage` of SelectiveNet.* lie in \(0, 1\); got 0.0"),
        ({"target_coverage": 1.0}, r"`target_coverage` .* lie in \(0, 1\); got 1.0"),
        ({"target_coverage": 80}, r"`target_coverage` .* Did you mean 0.8"),
        ({"target_coverage": "high"}, "`target_coverage` .* got 'high'"),
        ({"target_coverage": np.nan}, "`target_coverage` .* got nan"),
        ({"coverage_weight": 0.0}, "`coverage_weight` of SelectiveNet.* finite positive number"),
        ({"coverage_weight": -32}, "`coverage_weight` .* got -32"),
        ({"coverage_weight": np.inf}, "`coverage_weight` .* got inf"),
        ({"mixing": 0.0}, r"`mixing` of SelectiveNetClassifier must lie in \(0, 1\]; got 0.0"),
        ({"mixing": 1.01}, r"`mixing` .* lie in \(0, 1\]; got 1.01"),
        ({"mixing": np.nan}, r"`mixing` .* got nan"),
        ({"mixing": True}, r"`mixing` .* got True"),
        (
            {"network": lambda d, k: nn.Linear(d, k)},
            r"`network` of SelectiveNetClassifier must return a reliablenet.training.Network.*Linear",
        ),
        ({"network": lambda d, k: Network(nn.Identity(), nn.Linear(d, k + 1))}, "2 outputs a row"),
    ],
)
def test_bad_settings(wrong, message) -> None:
    with pytest.raises(rn.errors.ReliableNetError, match=message):
        quick(rn.SelectiveNetClassifier, **wrong).fit(BAND.X, BAND.y)


def test_a_body_that_returns_images_is_told_to_flatten() -> None:
    X = np.random.RandomState(0).uniform(size=(100, 1, 8, 8))
    y = np.arange(100) % 2
    with pytest.raises(
        rn.errors.InvalidDataError, match=r"one vector a row.*\(1, 4, 6, 6\).*nn.Flatten"
    ):
        quick(rn.SelectiveNetClassifier, network=images).fit(X, y)


def test_a_network_that_is_more_than_head_upon_body_is_not_cut_down_in_silence() -> None:
    with pytest.raises(rn.errors.ReliableNetError, match="`network` of SelectiveNetClassifier"):
        quick(rn.SelectiveNetClassifier, network=WithBypass).fit(BAND.X, BAND.y)


def test_mixing_of_1_is_legal_and_leaves_the_auxiliary_head_as_it_was() -> None:
    alone = {"mixing": 1.0, "weight_decay": 0.0}
    short, long = (
        fit_quietly(quick(rn.SelectiveNetClassifier, epochs=epochs, **alone), BAND.X, BAND.y)
        for epochs in (1, 5)
    )
    first, later = short.network_, long.network_
    assert torch.equal(first.auxiliary.weight, later.auxiliary.weight)
    assert not torch.equal(first.head.weight, later.head.weight)
    assert not torch.equal(first.selection[0].weight, later.selection[0].weight)


# What it learns


@pytest.fixture(scope="module")
def by_target() -> dict[float, tuple[np.ndarray, np.ndarray]]:
    """Selection and errors on fresh rows, by target coverage, on the paper's folds of the Band."""
    folds = SyntheticBand(random_state=0).folds()
    fresh = folds.certification
    result = {}
    for target in (0.95, 0.8, 0.6, 0.4):
        model = rn.SelectiveNetClassifier(target_coverage=target, epochs=25, random_state=0)
        fit_quietly(
            model, folds.train.X, folds.train.y, selection=folds.selection, certification=fresh
        )
        result[target] = model.acceptance_score(fresh.X), model.predict(fresh.X) != fresh.y
    return result


def test_the_accepted_error_falls_with_the_target_coverage(by_target) -> None:
    errors = [wrong[selected >= 0.5].mean() for selected, wrong in by_target.values()]
    # Seeds 0 to 4: 0.153 to 0.164, 0.063 to 0.093, 0.002 to 0.013, 0.000.
    assert errors[0] > errors[1] + 0.03 > errors[2] + 0.05 >= errors[3] + 0.05
    assert errors[3] < 0.01


def test_the_mean_selection_lies_near_the_target(by_target) -> None:
    for target, (selected, _) in by_target.items():
        # Seeds 0 to 4: from 0.006 below to 0.103 above; the penalty asks for no less than target.
        assert target - 0.03 < selected.mean() < target + 0.15


def test_the_selection_knows_the_band(by_target) -> None:
    for target in (0.8, 0.6, 0.4):
        selected, wrong = by_target[target]
        assert roc_auc_score(~wrong, selected) > 0.8  # seeds 0 to 4: 0.871 to 0.897


def test_on_noisy_digits_half_the_rows_are_selected_and_they_are_the_better_half() -> None:
    X, y = load_digits(return_X_y=True)
    random = np.random.RandomState(0)
    X, order = X + 6 * random.standard_normal(X.shape), random.permutation(len(y))
    known, fresh = order[:1200], order[1200:]
    model = rn.SelectiveNetClassifier(target_coverage=0.5, epochs=40, random_state=0)
    fit_quietly(model, X[known], y[known])
    selected, wrong = model.acceptance_score(X[fresh]), model.predict(X[fresh]) != y[fresh]
    assert 0.1 < wrong.mean() < 0.4
    assert abs(selected.mean() - 0.5) < 0.1  # seeds 0 to 4: 0.501 to 0.542
    # Seeds 0 to 4: accepted 0.133 to 0.210, overall 0.216 to 0.270, at least 0.028 apart.
    assert wrong[selected >= 0.5].mean() < wrong.mean() - 0.01
    assert roc_auc_score(~wrong, selected) > 0.55  # seeds 0 to 4: 0.591 to 0.632
