"""The schedule that adapts: when its warm-up ends, when it constrains, when it stops."""

from __future__ import annotations

import math
from dataclasses import replace

import pandas as pd
import pytest
import torch

from reliablenet.errors import InvalidParameterError
from reliablenet.risk import psi, violation
from reliablenet.training import (
    AdaptiveSchedule,
    EpochRecord,
    Optimisation,
    Rows,
    Schedule,
    tabular,
    train,
)
from reliablenet.training.adaptive import steered_multiplier
from reliablenet.training.batches import AnnotatedRows
from reliablenet.training.forward import evaluate_logits
from reliablenet.training.schedule import training_threshold

ADAPTIVE = replace(Schedule.adaptive(), patience=3)
FAST = Optimisation(batch_size=128, learning_rate=5e-3, averaging=0.9)


@pytest.fixture
def run(folds, new_network):
    def go(threshold=None, schedule=ADAPTIVE, **settings):
        network = new_network()
        chosen = {"alpha": 0.05, "optimisation": FAST, "random_state": 0} | settings
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
        random_state=0,
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
        random_state=0,
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
        "random_state": 0,
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
        pd.testing.assert_frame_equal(history.to_frame(), expected.to_frame(), check_exact=True)
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
    settings = {"alpha": 0.05, "optimisation": FAST, "random_state": 0}
    history = train(new_network(), *folds, schedule=schedule, **settings)
    warm = new_network()
    train(warm, *folds, schedule=Schedule.erm(4), keep="last", **settings)
    logits = evaluate_logits(warm, folds[1].X)
    assert history.threshold == training_threshold(logits, folds[1].y, 0.8)


# What loop and estimators ask


def test_without_the_constraint_the_warm_up_is_left():
    plain = ADAPTIVE.without_constraint()
    assert plain == replace(ADAPTIVE, max_stages=0)
    assert plain.epochs == ADAPTIVE.warmup_epochs


def test_a_cycle_of_the_learning_rate_is_the_longest_warm_up():
    schedule = AdaptiveSchedule(warmup_epochs=4)
    assert schedule.cycle_done(1.0, constrained=False) == 0.25
    assert schedule.cycle_done(1.0, constrained=True) == 1.0


@pytest.mark.parametrize("stages", [0, 1])
def test_weights_of_the_warm_up_may_always_be_kept(stages):
    assert replace(ADAPTIVE, max_stages=stages).keeps_warmup


def test_a_threshold_that_nobody_gave_is_chosen_when_training_is_over():
    assert ADAPTIVE.leaves_threshold_open(None)
    assert not ADAPTIVE.leaves_threshold_open(0.8)


def test_the_refusal_of_the_last_weights_names_who_asked_and_what_else_to_do():
    ADAPTIVE.check_keep("selection", "checkpoint", "Anyone")
    message = "`checkpoint` of Anyone must be \"selection\", because .* got 'last'. Or do without."
    with pytest.raises(InvalidParameterError, match=message):
        ADAPTIVE.check_keep("last", "checkpoint", "Anyone", "Or do without.")


# Groups, and what a constrained epoch must be worth


def confounded(n, seed, width=6):
    """Rows whose surest feature misleads in one group of ten; the other is right in both, and noisy."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.randint(2, (n,), generator=generator)
    group = (torch.rand(n, generator=generator) < 0.1).long()
    X = torch.randn(n, width, generator=generator)
    X[:, 0] += 1.2 * (2 * y - 1)
    X[:, 1] = (2 * y - 1) * (1 - 2 * group) + 0.3 * X[:, 1]
    return AnnotatedRows(X, y, group=group)


def with_groups(new_rows=confounded, **settings):
    rows, selection = new_rows(1200, 0), new_rows(800, 1)
    torch.manual_seed(3)
    network = tabular(6, 2, width=16, members=2, dropout=0.0)
    schedule = replace(ADAPTIVE, warmup_epochs=12, epochs_per_stage=12)
    chosen = {
        "alpha": 0.1,
        "schedule": schedule,
        "optimisation": FAST,
        "random_state": 0,
    } | settings
    return train(network, rows, selection, group_aims=(0.1, 0.1), **chosen), network, selection


def test_each_group_has_a_multiplier_that_follows_its_own_jcw():
    history, _, _ = with_groups()
    constrained = [record for record in history.records if record.stage == 1]
    assert constrained
    for group in (0, 1):
        jcws = [record.group_jcw[group] for record in constrained]
        used = [record.group_multiplier[group] for record in constrained]
        expected = [steered_multiplier(jcws[:epoch], 0.1) for epoch in range(len(jcws))]
        assert used == pytest.approx([min(one, 50.0) for one in expected], rel=1e-5)
    last = constrained[-1]
    assert last.group_multiplier[1] > last.group_multiplier[0]  # the misled group needs it
    assert last.multiplier == max(last.group_multiplier)
    assert last.group_jcw[1] < constrained[0].group_jcw[1]


@pytest.mark.parametrize("settings", [{}, {"alpha": 0.01, "aim": 0.01}, {"threshold": 0.55}])
def test_training_never_ends_worse_than_its_warm_up(settings):
    history, network, selection = with_groups(**settings)
    warm = [record for record in history.records if record.stage == 0]
    best, chosen = min(warm, key=lambda record: record.loss_selection), history.chosen()
    if "threshold" in settings:
        assert chosen.stage == 0 or chosen.feasible or not chosen.at_chance
    else:
        constrained = [r.attainable for r in history.records if r.stage > 0]
        assert chosen.attainable == max([best.attainable, *constrained])
    jcws = [
        measure(network, Rows(selection.X[mask], selection.y[mask]), history.threshold)[0]
        for mask in (selection.group == 0, selection.group == 1)
    ]
    assert chosen.group_jcw == pytest.approx(jcws)


def test_nor_does_it_for_images():
    def images(n, seed):
        rows = confounded(n, seed, width=36)
        return AnnotatedRows(rows.X.reshape(n, 1, 6, 6), rows.y, group=rows.group)

    rows, selection = images(600, 0), images(400, 1)
    torch.manual_seed(0)
    network = torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(64, 2)
    )
    schedule = replace(ADAPTIVE, warmup_epochs=6, epochs_per_stage=8)
    history = train(
        network,
        rows,
        selection,
        alpha=0.05,
        group_aims=(0.05, 0.05),
        schedule=schedule,
        optimisation=FAST,
    )
    best = min((r for r in history.records if r.stage == 0), key=lambda r: r.loss_selection)
    assert history.chosen().attainable >= best.attainable


WARM = EpochRecord(
    **dict.fromkeys(EpochRecord.__dataclass_fields__, 0.0)
    | {"epoch": 1, "stage": 0, "jcw_selection": 0.1, "throughput": 0.5, "feasible": False}
    | {"at_chance": False, "attainable": math.nan, "group_jcw": (), "group_multiplier": ()}
)


@pytest.mark.parametrize(
    ("change", "replaces"),
    [
        ({"feasible": True, "throughput": 0.3}, True),
        ({"feasible": True, "throughput": 0.0}, False),  # it acts on nothing: it has collapsed
        ({"jcw_selection": 0.07}, True),
        ({"jcw_selection": 0.07, "at_chance": True}, False),
        ({"jcw_selection": 0.2}, False),
    ],
)
def test_at_a_given_threshold_a_collapsed_epoch_never_replaces_the_warm_up(change, replaces):
    record = replace(WARM, epoch=2, stage=1, **change)
    assert AdaptiveSchedule().is_better(record, WARM) is replaces


def test_groups_must_be_known_to_both_folds(folds, new_network):
    with pytest.raises(InvalidParameterError, match="because the rows have no groups"):
        train(new_network(), *folds, alpha=0.05, schedule=ADAPTIVE, group_aims=(0.05, 0.05))
