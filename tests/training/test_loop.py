from __future__ import annotations

import copy
import math
import random
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from reliablenet.errors import InvalidParameterError, TrainingDivergedError
from reliablenet.risk import gap, violation
from reliablenet.training import (
    JCWConstraint,
    Optimisation,
    Rows,
    Schedule,
    loop as loop_module,
    mlp,
    schedule as schedule_module,
    train,
)
from reliablenet.training.forward import evaluate_logits

SHORT = Schedule(warmup_epochs=5, epochs_per_stage=2, max_stages=4, tau=0.05, tau_decay=0.5)
FAST = Optimisation(batch_size=128, learning_rate=5e-3)


@pytest.fixture
def run(folds, new_network):
    """Train a fresh network; returns history, the network, and its weights after every epoch."""

    def go(schedule=SHORT, dropout=0.0, **settings):
        network, weights = new_network(dropout), []
        chosen = {"alpha": 0.05, "optimisation": FAST} | settings

        def after_epoch(history):
            weights.append(copy.deepcopy(network.state_dict()))
            return False

        settings = {"after_epoch": after_epoch} | chosen
        return train(network, *folds, schedule=schedule, **settings), network, weights

    return go


def same_bits(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return all(torch.equal(tensor, other[name]) for name, tensor in one.items())


# Reproducibility


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_the_same_seed_gives_the_same_bits_and_another_seed_others(run, dropout):
    first, network, _ = run(random_state=3, dropout=dropout)
    again, twin, _ = run(random_state=3, dropout=dropout)
    other, stranger, _ = run(random_state=4, dropout=dropout)
    assert same_bits(network.state_dict(), twin.state_dict())
    pd.testing.assert_frame_equal(first.to_frame(), again.to_frame(), check_exact=True)
    assert not same_bits(network.state_dict(), stranger.state_dict())
    assert first.records[-1].loss != other.records[-1].loss


def test_no_global_random_state_is_touched(run):
    states = (torch.get_rng_state(), np.random.get_state()[1].copy(), random.getstate())  # noqa: NPY002
    run(dropout=0.5)
    assert torch.equal(torch.get_rng_state(), states[0])
    assert np.array_equal(np.random.get_state()[1], states[1])  # noqa: NPY002
    assert random.getstate() == states[2]


def test_the_callers_random_state_does_not_change_the_run(run):
    torch.manual_seed(1)
    _, network, _ = run(dropout=0.5)
    torch.manual_seed(2)
    _, twin, _ = run(dropout=0.5)
    assert same_bits(network.state_dict(), twin.state_dict())


def test_every_epoch_visits_every_row_once_in_a_new_order():
    rows = Rows(torch.arange(10.0)[:, None], torch.arange(10))
    generator = torch.Generator().manual_seed(0)
    first, second = (list(rows.batches(epoch, 4, generator)) for epoch in (1, 2))
    assert [len(y) for _, y in first] == [4, 4, 2]
    orders = [torch.cat([y for _, y in epoch]) for epoch in (first, second)]
    assert all(sorted(order.tolist()) == list(range(10)) for order in orders)
    assert not torch.equal(*orders)
    assert all(torch.equal(X[:, 0].long(), y) for X, y in first)


# The algorithm, against loops written by hand


def test_seed_is_the_old_name_of_random_state(run):
    first, network, _ = run(SHORT, random_state=3)
    with pytest.warns(DeprecationWarning, match="`seed` is now called `random_state`"):
        again, twin, _ = run(SHORT, seed=3)
    assert again.to_json() == first.to_json()
    assert same_bits(network.state_dict(), twin.state_dict())


@pytest.mark.parametrize("bad", [-1, 2**32, 0.5, None])
def test_a_random_state_that_is_no_seed_is_refused_by_its_name(run, bad):
    with pytest.raises(InvalidParameterError, match="`random_state` of train"):
        run(SHORT, random_state=bad)


def batches_of(rows, seed, epochs, size=128):
    generator = torch.Generator().manual_seed(seed)
    for _ in range(epochs):
        order = torch.randperm(len(rows.y), generator=generator)
        yield [(rows.X[index], rows.y[index]) for index in order.split(size)]


CLIPPED = replace(FAST, clip_norm=0.1)  # so low that every step is clipped


def adam(network):
    return torch.optim.Adam(network.parameters(), lr=5e-3, weight_decay=1e-4, fused=True)


def test_plain_training_is_adam_with_clipping_to_the_bit(run, folds, new_network):
    history, network, _ = run(Schedule.erm(4), random_state=11, keep="last", optimisation=CLIPPED)
    twin = new_network()
    optimiser, losses = adam(twin), []
    for epoch in batches_of(folds[0], seed=11, epochs=4):
        total = 0.0
        for X, y in epoch:
            optimiser.zero_grad()
            loss = cross_entropy(twin(X), y)
            loss.backward()
            nn.utils.clip_grad_norm_(twin.parameters(), 0.1)
            optimiser.step()
            total += loss.item() * len(y)
        losses.append(total / len(folds[0].y))
    assert same_bits(network.state_dict(), twin.state_dict())
    assert [record.loss for record in history.records] == pytest.approx(losses, rel=1e-6)


def test_constrained_training_is_algorithm_1(run, folds, new_network):
    history, network, _ = run(random_state=11, keep="last", optimisation=CLIPPED)
    rows, selection = folds
    twin = new_network()
    optimiser, constraint, multipliers, taus = adam(twin), None, [], []
    for number, epoch in enumerate(batches_of(rows, seed=11, epochs=SHORT.epochs)):
        if number == SHORT.warmup_epochs:
            proba = torch.softmax(twin(selection.X), -1).detach()
            wrong = proba.argmax(-1) != selection.y
            threshold = np.quantile(proba.amax(-1)[wrong].double().numpy(), 0.8)
            constraint = JCWConstraint(0.05, float(threshold), rows=600, tau=0.05, tau_decay=0.5)
        for X, y in epoch:
            logits = twin(X)
            loss = cross_entropy(logits, y)
            if constraint is not None:
                loss = loss + constraint.penalty(logits, y)
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(twin.parameters(), 0.1)
            optimiser.step()
            if constraint is not None:
                constraint.step()
        if constraint is not None:
            multipliers.append(float(constraint.multiplier))
            taus.append(constraint.tau)
            if len(taus) % SHORT.epochs_per_stage == 0:
                constraint.tighten()
    # The loop adds up loss and penalty in the logits, this one in the graph: other last bits of a
    # gradient, which 40 steps of 5e-3 turn into 5e-7. A wrong step would show as 1e-3 and more.
    for name, tensor in network.state_dict().items():
        torch.testing.assert_close(tensor, twin.state_dict()[name], rtol=0, atol=1e-5)
    constrained = history.to_frame().query("stage > 0")
    assert history.threshold == pytest.approx(float(threshold), rel=1e-6)
    assert constrained["multiplier"].tolist() == pytest.approx(multipliers, rel=1e-5)
    assert multipliers[-1] > 1.0
    assert constrained["tau"].tolist() == pytest.approx(taus)


@pytest.mark.parametrize("schedule", [SHORT, Schedule.erm(4)])
def test_training_without_a_graph_has_the_bits_of_training_with_one(run, monkeypatch, schedule):
    history, network, _ = run(schedule, random_state=11, optimisation=CLIPPED)
    monkeypatch.setattr(loop_module, "find_chain", lambda network: None)
    with_graph, twin, _ = run(schedule, random_state=11, optimisation=CLIPPED)
    assert same_bits(network.state_dict(), twin.state_dict())
    pd.testing.assert_frame_equal(history.to_frame(), with_graph.to_frame(), check_exact=True)


# The threshold


def test_the_threshold_is_the_80th_percentile_of_wrong_confidences_after_the_warm_up(
    run, folds, new_network
):
    history, _, weights = run()
    warm = new_network()
    warm.load_state_dict(weights[SHORT.warmup_epochs - 1])
    selection = folds[1]
    proba = torch.softmax(warm(selection.X).double(), -1).detach().numpy()
    confidence, wrong = proba.max(1), proba.argmax(1) != selection.y.numpy()
    assert 20 < wrong.sum() < len(wrong)
    assert history.threshold == pytest.approx(np.quantile(confidence[wrong], 0.8), rel=1e-6)


def separable(n: int, classes: int) -> Rows:
    y = torch.arange(n) % classes
    return Rows(10.0 * nn.functional.one_hot(y, 5).float(), y)


@pytest.mark.parametrize("classes", [2, 3])
def test_without_a_wrong_row_the_threshold_is_the_smallest_legal_one(classes):
    rows = separable(200, classes)
    network = mlp(5, classes, width=16)
    schedule = Schedule(warmup_epochs=30, epochs_per_stage=1, max_stages=1)
    history = train(network, rows, rows, alpha=0.05, schedule=schedule, optimisation=FAST)
    assert history.records[29].accuracy == 1.0
    assert history.threshold == np.nextafter(1 / classes, 1)
    assert history.records[-1].coverage == 1.0


def test_a_given_threshold_is_kept_and_used_from_the_first_epoch(run):
    history, _, _ = run(threshold=0.7)
    assert history.threshold == 0.7
    assert not history.to_frame()["coverage"].isna().any()


def test_plain_training_sets_no_threshold(run):
    history, _, _ = run(Schedule.erm(2))
    assert math.isnan(history.threshold)
    assert history.to_frame()[["tau", "psi", "coverage", "jcw_selection"]].isna().all(axis=None)


# Which weights are kept


def expected_choice(history) -> int:
    """The rule of PAPER-NOTES, from the table alone."""
    table = history.to_frame().query("stage > 0")
    feasible = table[table["jcw_selection"] <= history.alpha]
    if len(feasible):
        return int(feasible.sort_values("loss_selection")["epoch"].iloc[0])
    return int(table.sort_values(["jcw_selection", "loss_selection"])["epoch"].iloc[0])


@pytest.mark.parametrize(
    ("settings", "some_feasible"),
    [
        ({"alpha": 0.05, "random_state": 5}, True),
        (
            {"alpha": 0.03, "threshold": 0.8, "optimisation": replace(FAST, learning_rate=1e-2)},
            True,
        ),
        ({"alpha": 1e-3, "threshold": 0.501}, False),
    ],
)
def test_the_lowest_loss_among_feasible_epochs_is_kept_or_else_the_smallest_jcw(
    run, settings, some_feasible
):
    history, network, weights = run(**settings)
    assert history.to_frame().query("stage > 0")["feasible"].any() == some_feasible
    assert history.chosen_epoch == expected_choice(history)
    assert same_bits(network.state_dict(), weights[history.chosen_epoch - 1])


def test_the_choice_is_not_simply_the_first_the_last_or_the_lowest_loss(run):
    def is_another(seed: int) -> bool:
        history, _, _ = run(random_state=seed)
        lowest = int(history.to_frame()["loss_selection"].idxmin()) + 1
        return history.chosen_epoch not in (len(history.records), lowest, SHORT.warmup_epochs + 1)

    assert any(is_another(seed) for seed in range(20))  # every other seed, more or less


def test_plain_training_keeps_the_lowest_selection_loss(run):
    history, network, weights = run(Schedule.erm(30), optimisation=Optimisation(learning_rate=0.05))
    best = int(history.to_frame()["loss_selection"].idxmin())
    assert best < 29  # it overfits, so that there is something to choose
    assert history.chosen_epoch == best + 1
    assert same_bits(network.state_dict(), weights[best])


def test_last_keeps_the_last_epoch(run):
    history, network, weights = run(keep="last")
    assert history.chosen_epoch == len(history.records) == SHORT.epochs
    assert same_bits(network.state_dict(), weights[-1])


def test_the_network_is_left_in_evaluation_mode(run):
    _, network, _ = run(dropout=0.5)
    assert not any(module.training for module in network.modules())


# What the history says


def test_columns_of_the_history_are_consistent(run):
    history, _, _ = run()
    table = history.to_frame()
    warm, constrained = table.query("stage == 0"), table.query("stage > 0")
    assert len(warm) == SHORT.warmup_epochs
    assert (warm["multiplier"] == 0).all()
    assert not warm["feasible"].any()
    np.testing.assert_allclose(
        constrained["gap"], constrained["phi"] + constrained["psi"] - 1, atol=1e-12
    )
    np.testing.assert_allclose(
        constrained["coverage"],
        constrained["throughput"] + constrained["jcw_selection"],
        atol=1e-12,
    )
    assert (constrained["psi"] >= constrained["jcw_train"]).all()  # a surrogate from above
    assert (constrained["gap"] > 0.5 * constrained["tau"]).all()  # its floor, m1 tau
    assert (constrained["feasible"] == (constrained["jcw_selection"] <= 0.05)).all()
    assert (constrained["inner_feasible"] == (constrained["psi"] <= 0.05)).all()
    assert constrained["tau"].tolist() == pytest.approx(
        [0.05] * 2 + [0.025] * 2 + [0.0125] * 2 + [0.01] * 2
    )


def test_selection_columns_are_those_of_the_weights_at_the_end_of_the_epoch(
    run, folds, new_network
):
    history, _, weights = run()
    X, y = folds[1]
    network = new_network()
    for record, state in zip(history.records, weights, strict=True):
        network.load_state_dict(state)
        logits = network(X).detach()
        confidence, predicted = torch.softmax(logits, -1).max(-1)
        wrong = predicted != y
        assert record.loss_selection == pytest.approx(float(cross_entropy(logits, y)), rel=1e-5)
        assert record.accuracy == pytest.approx(1 - float(wrong.float().mean()))
        if record.stage:
            accepted = confidence >= history.threshold
            assert record.coverage == pytest.approx(float(accepted.float().mean()), abs=1e-6)
            assert record.jcw_selection == pytest.approx(float((accepted & wrong).float().mean()))


# When it ends


def test_the_papers_stopping_rule_runs_all_15_stages(folds, new_network):
    rows = Rows(folds[0].X[:256], folds[0].y[:256])
    history = train(new_network(), rows, folds[1], alpha=0.05, schedule=Schedule.paper())
    assert len(history.records) == 100
    assert history.records[-1].stage == 15
    assert history.records[-1].tau == 0.01
    assert history.stopped == "all epochs of the schedule are done"


@pytest.mark.parametrize("above_floor", [True, False])
def test_training_ends_with_the_first_stage_whose_gap_is_within_the_tolerance(
    run, folds, new_network, above_floor
):
    full, _, weights = run()
    network, rows, ends = new_network(), folds[0], [7, 9, 11, 13]  # the last epochs of four stages
    taus = np.array([full.records[end - 1].tau for end in ends])
    gaps = []
    for end, tau in zip(ends, taus, strict=True):
        network.load_state_dict(weights[end - 1])
        g = violation(evaluate_logits(network, rows.X), rows.y, full.threshold)
        gaps.append(float(gap(g, tau)))
    above = np.array(gaps) - 0.5 * taus  # floor: m1 tau
    # What is just enough for stage 2 above its floor is too little for its whole gap.
    tolerance = above[1] + 1e-6
    tight = (above if above_floor else np.array(gaps)) <= tolerance
    assert tight[1] == above_floor
    history, _, _ = run(replace(SHORT, tolerance=tolerance, above_floor=above_floor))
    if tight.any():
        assert len(history.records) == ends[tight.argmax()]
        assert history.stopped.startswith("the bracket is tight at tau = 0.0")
    else:
        assert len(history.records) == SHORT.epochs


def test_a_tolerance_below_the_floor_cannot_end_training_as_the_paper_writes_it(run):
    tolerance = 0.5 * SHORT.tau_min  # m1 tau_min, the floor of the last stages
    history, _, _ = run(replace(SHORT, tolerance=tolerance, above_floor=False))
    assert len(history.records) == SHORT.epochs


def test_a_callback_can_end_training(run):
    history, _, _ = run(after_epoch=lambda history: len(history.records) == 7)
    assert len(history.records) == 7
    assert history.stopped == "a callback asked for it"
    assert history.chosen_epoch in (6, 7)


def test_a_callback_can_end_training_in_the_warm_up(run, new_network):
    history, network, _ = run(after_epoch=lambda history: len(history.records) == 2)
    assert len(history.records) == 2
    assert history.chosen_epoch == 2
    assert not same_bits(network.state_dict(), new_network().state_dict())


def test_a_callback_sees_every_epoch_as_it_ends(run):
    seen = []
    run(after_epoch=lambda history: seen.append(len(history.records)))
    assert seen == list(range(1, SHORT.epochs + 1))


# When it fails


@pytest.mark.parametrize(
    ("schedule", "where"),
    [
        (Schedule.erm(5), "in the warm-up"),
        (Schedule(warmup_epochs=0, epochs_per_stage=5, max_stages=1), "in constrained stage 1"),
    ],
)
def test_a_learning_rate_far_too_high_stops_with_epoch_and_cause(run, schedule, where):
    settings = {"optimisation": Optimisation(learning_rate=1e30), "threshold": 0.8}
    message = rf"diverged in epoch 1 \({where}\).*learning rate of 1e\+30.*Lower learning_rate"
    with pytest.raises(TrainingDivergedError, match=message):
        run(schedule, **settings)


@pytest.mark.parametrize("warmup_epochs", [0, 2])
def test_inputs_far_too_large_stop_with_epoch_and_cause(folds, new_network, warmup_epochs):
    huge = Rows(folds[0].X * 1e38, folds[0].y)
    schedule = Schedule(warmup_epochs=warmup_epochs, epochs_per_stage=1, max_stages=1)
    with pytest.raises(
        TrainingDivergedError, match=r"epoch 1 .*inputs of up to .*scale the inputs"
    ):
        train(new_network(), huge, folds[1], alpha=0.05, schedule=schedule, threshold=0.8)


@pytest.mark.parametrize(
    "settings",
    [{"batch_size": 0}, {"learning_rate": 0.0}, {"weight_decay": -1.0}, {"clip_norm": math.inf}],
)
def test_settings_of_the_optimiser_outside_their_domain_are_refused(settings):
    with pytest.raises(InvalidParameterError, match=f"`{next(iter(settings))}` of Optimisation"):
        Optimisation(**settings)


def test_the_defaults_of_the_optimiser_are_the_papers():
    paper = Optimisation(batch_size=256, learning_rate=1e-3, weight_decay=1e-4, clip_norm=5.0)
    assert Optimisation() == paper


def test_the_stopping_rule_looks_at_the_weights_at_the_end_of_the_stage(run, monkeypatch):
    """Algorithm 1 measures the bracket at the incumbent, not over the epoch that led to it."""
    seen = []
    measure = schedule_module.bracket_width

    def spy(state, tau):
        logits = evaluate_logits(state.network, state.rows.X)
        g = violation(logits, state.rows.y, state.history.threshold)
        seen.append((measure(state, tau), float(gap(g, tau)), state.history.records[-1].gap))
        return seen[-1][0]

    monkeypatch.setattr(schedule_module, "bracket_width", spy)
    run(replace(SHORT, max_stages=2))
    assert len(seen) == 2
    for used, at_the_end, running in seen:
        assert used == at_the_end
        assert used != running
