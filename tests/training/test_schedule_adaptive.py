"""The schedule that adapts: when its warm-up ends, when it constrains, when it stops."""

from __future__ import annotations

import math
from dataclasses import replace

import pandas as pd
import pytest
import torch

from reliablenet.errors import InvalidParameterError
from reliablenet.risk import psi, violation
from reliablenet.training import AdaptiveSchedule, Optimisation, Rows, Schedule, tabular, train
from reliablenet.training.forward import evaluate_logits
from reliablenet.training.schedule import steered_multiplier, training_threshold

ADAPTIVE = replace(Schedule.adaptive(), patience=3)
FAST = Optimisation(batch_size=128, learning_rate=5e-3, averaging=0.9)


@pytest.fixture
def run(folds, new_network):
    def go(threshold=None, schedule=ADAPTIVE, **settings):
        network = new_network()
        chosen = {"alpha": 0.05, "optimisation": FAST, "seed": 0} | settings
        history = train(network, *folds, schedule=schedule, threshold=threshold, **chosen)
        return history, network

    return go


def measure(network, rows, threshold):
    proba = torch.softmax(evaluate_logits(network, rows.X).double(), -1)
    top, predicted = proba.max(-1)
    wrong = predicted != rows.y
    return ((top >= threshold) & wrong).double().mean().item(), top


def test_the_warm_up_ends_when_the_selection_loss_no_longer_falls(run):
    history, _ = run(schedule=Schedule.erm(60, patience=3))
    losses = [record.loss_selection for record in history.records]
    assert history.chosen_epoch == losses.index(min(losses)) + 1
    assert len(losses) == history.chosen_epoch + 3 < 60
    assert history.stopped == "the selection-fold loss has not fallen for 3 epochs"


def test_a_warm_up_that_still_learns_runs_to_its_end(run):
    history, _ = run(schedule=Schedule.erm(3, patience=3))
    assert len(history.records) == 3
    assert history.stopped == "all epochs of the schedule are done"


def test_without_a_threshold_it_takes_the_most_permissive_and_needs_no_constraint(run, folds):
    history, network = run(aim=0.04)
    jcw, top = measure(network, folds[1], history.threshold)
    assert history.chosen().jcw_selection == jcw <= 0.04
    below = top[top < history.threshold].max().item()
    assert measure(network, folds[1], below)[0] > 0.04
    assert history.stopped.startswith("the budget holds without the constraint")
    assert all(record.stage == 0 for record in history.records)


def test_where_the_budget_breaks_the_constraint_brings_jcw_to_the_aim(run, folds):
    history, network = run(threshold=0.7, aim=0.05)
    warm = [record for record in history.records if record.stage == 0]
    best = min(warm, key=lambda record: record.loss_selection)
    assert best.jcw_selection > 0.07  # what the warmed-up network would do
    jcw, _ = measure(network, folds[1], 0.7)
    assert history.chosen().stage == 1
    assert jcw == history.chosen().jcw_selection <= 0.05
    assert jcw > 0.025  # the budget is spent, not saved
    within = [r for r in history.records if r.stage == 1 and r.jcw_selection <= 0.05]
    assert history.chosen().throughput == max(record.throughput for record in within)


def test_the_hard_jcw_moves_the_multiplier_once_an_epoch(run):
    history, _ = run(threshold=0.7, aim=0.05)
    jcws = [record.jcw_selection for record in history.records if record.stage == 1]
    used = [record.multiplier for record in history.records if record.stage == 1]
    expected = [steered_multiplier(jcws[:epoch], 0.05) for epoch in range(len(jcws))]
    assert used == pytest.approx(expected, rel=1e-6)


def test_the_multiplier_closes_in_where_jcw_swings_around_the_aim():
    start = steered_multiplier([], 0.05)
    assert steered_multiplier([0.1], 0.05) == pytest.approx(start * math.exp(0.7))
    assert steered_multiplier([1.0], 0.05) == steered_multiplier([0.1], 0.05)  # bounded
    assert steered_multiplier([0.0], 0.05) == pytest.approx(start * math.exp(-0.7))
    assert steered_multiplier([0.1, 0.0], 0.05) == pytest.approx(start * math.exp(0.7 - 0.35))
    assert steered_multiplier([0.05] * 9, 0.05) == start
    swings = [steered_multiplier([0.1, 0.0] * n, 0.05) for n in (10, 11)]
    assert abs(math.log(swings[1] / swings[0])) < 0.11


def test_it_stops_when_jcw_has_settled_and_says_so(run):
    history, _ = run(threshold=0.7, aim=0.05, schedule=replace(ADAPTIVE, tolerance=0.6))
    last = [record for record in history.records if record.stage == 1][-3:]
    assert all(abs(record.jcw_selection - 0.05) <= 0.03 + 1e-12 for record in last)
    assert history.stopped.startswith("JCW has settled at")


def test_it_stops_when_it_finds_nothing_better(run):
    schedule = replace(ADAPTIVE, tolerance=0.0, patience=1)
    # No share of 300 rows is 0.0501, so that JCW cannot settle there.
    history, _ = run(threshold=0.7, aim=0.0501, schedule=schedule)
    assert history.stopped == "no epoch within the aim was better for 2 epochs"
    assert len(history.records) == history.chosen_epoch + 2


def test_tau_is_the_first_whose_surrogate_is_about_the_event(run, folds, new_network):
    history, _ = run(threshold=0.7, aim=0.05)
    tau = next(record.tau for record in history.records if record.stage == 1)
    warm = sum(record.stage == 0 for record in history.records)
    twin = new_network()
    train(
        twin,
        *folds,
        alpha=0.05,
        optimisation=FAST,
        seed=0,
        schedule=Schedule.erm(warm, patience=3),
    )
    g = violation(evaluate_logits(twin, folds[1].X).double(), folds[1].y, 0.7)
    hard = (g > 0).double().mean()
    taus = [0.5]
    while taus[-1] > 0.01:
        taus.append(max(0.01, taus[-1] * 0.65))
    fits = [t for t in taus if psi(g, t) - hard <= 0.025] or [0.01]
    assert tau == pytest.approx(fits[0])


def test_the_constraint_acts_on_the_average_of_an_ensemble(folds):
    torch.manual_seed(0)
    network = tabular(5, 2, width=16, members=3)
    history = train(
        network,
        *folds,
        alpha=0.05,
        seed=0,
        optimisation=FAST,
        schedule=ADAPTIVE,
        threshold=0.7,
        aim=0.015,
    )
    assert history.chosen().stage == 1
    assert measure(network, folds[1], 0.7)[0] == history.chosen().jcw_selection <= 0.015


def test_a_killed_run_goes_on_to_the_same_bits_in_warm_up_and_under_the_constraint(
    folds, new_network, tmp_path
):
    settings = {
        "alpha": 0.05,
        "optimisation": FAST,
        "seed": 0,
        "schedule": replace(ADAPTIVE, epochs_per_stage=8),
        "threshold": 0.7,
        "aim": 0.05,
    }
    whole = new_network()
    expected = train(whole, *folds, **settings)
    warm = sum(record.stage == 0 for record in expected.records)
    for number, epoch in enumerate((2, warm, warm + 1, warm + 3)):
        file = tmp_path / f"{number}.safetensors"

        def stop(history, epoch=epoch):
            if len(history.records) == epoch + 1:
                raise KeyboardInterrupt
            return False

        with pytest.raises(KeyboardInterrupt):
            train(new_network(), *folds, **settings, checkpoint_file=file, after_epoch=stop)
        network = new_network()
        history = train(network, *folds, **settings, checkpoint_file=file)
        pd.testing.assert_frame_equal(history.frame(), expected.frame(), check_exact=True)
        assert (history.chosen_epoch, history.stopped) == (expected.chosen_epoch, expected.stopped)
        for name, value in network.state_dict().items():
            assert torch.equal(value, whole.state_dict()[name]), name


def test_a_network_that_is_never_wrong_needs_nothing():
    X = torch.linspace(-1, 1, 200)[:, None]
    rows = Rows(X, (X[:, 0] > 0).long())
    torch.manual_seed(0)
    network = tabular(1, 2, width=8, members=2, dropout=0.0)
    history = train(network, rows, rows, alpha=0.05, schedule=ADAPTIVE, optimisation=FAST)
    assert history.chosen().coverage == 1.0
    assert history.stopped.startswith("the budget holds without the constraint")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"patience": 0}, "`patience` of AdaptiveSchedule must be a whole number of at least 1"),
        ({"patience": None}, "`patience` of AdaptiveSchedule"),
        ({"warmup_epochs": 0}, "`warmup_epochs` of AdaptiveSchedule must be .* at least 1"),
        ({"tau": 2.0}, "`tau` of AdaptiveSchedule"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(InvalidParameterError, match=message):
        AdaptiveSchedule(**settings)


def test_the_last_weights_cannot_be_kept(run):
    with pytest.raises(InvalidParameterError, match=r'`keep` of train must be "selection"'):
        run(keep="last")


def test_a_callback_that_ends_the_warm_up_leaves_the_best_weights_and_their_threshold(run, folds):
    history, network = run(aim=0.04, after_epoch=lambda history: len(history.records) == 4)
    losses = [record.loss_selection for record in history.records]
    assert history.chosen_epoch == losses.index(min(losses)) + 1
    jcw, top = measure(network, folds[1], history.threshold)
    assert jcw <= 0.04
    assert measure(network, folds[1], top[top < history.threshold].max().item())[0] > 0.04


def test_a_callback_at_the_end_of_the_warm_up_leaves_its_best_weights(run):
    whole, _ = run(threshold=0.7, aim=0.05)
    warm = sum(record.stage == 0 for record in whole.records)
    history, _ = run(
        threshold=0.7, aim=0.05, after_epoch=lambda history: len(history.records) == warm
    )
    assert history.stopped == "a callback asked for it"
    losses = [record.loss_selection for record in history.records]
    assert history.chosen_epoch == losses.index(min(losses)) + 1


def test_the_papers_schedule_takes_its_threshold_from_the_averaged_weights(folds, new_network):
    schedule = Schedule(warmup_epochs=4, epochs_per_stage=1, max_stages=1)
    settings = {"alpha": 0.05, "optimisation": FAST, "seed": 0}
    history = train(new_network(), *folds, schedule=schedule, **settings)
    warm = new_network()
    train(warm, *folds, schedule=Schedule.erm(4), keep="last", **settings)
    logits = evaluate_logits(warm, folds[1].X)
    assert history.threshold == training_threshold(logits, folds[1].y, 0.8)
