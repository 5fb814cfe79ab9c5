from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, asdict, fields

import numpy as np
import pytest

from reliablenet.errors import InvalidParameterError
from reliablenet.training import AdaptiveSchedule, Schedule
from reliablenet.training.schedule import schedule_from_dict


def test_the_papers_schedule_has_the_papers_numbers():
    paper = Schedule.paper()
    assert (paper.warmup_epochs, paper.epochs_per_stage, paper.max_stages) == (10, 6, 15)
    assert (paper.tau, paper.tau_min, paper.tau_decay) == (0.5, 0.01, 0.65)
    assert (paper.dual_rate, paper.ema, paper.multiplier_max) == (1.1, 0.75, 50.0)
    assert (paper.tolerance, paper.threshold_quantile) == (1e-4, 0.8)
    assert paper.epochs == 100


def test_only_the_papers_schedule_compares_the_gap_without_its_floor():
    assert not Schedule.paper().above_floor
    assert Schedule().above_floor


def test_erm_is_a_warm_up_without_stages():
    erm = Schedule.erm(25)
    assert erm.epochs == 25
    assert {erm.stage_of(epoch) for epoch in range(1, 26)} == {0}
    assert not any(erm.ends_stage(epoch) for epoch in range(1, 26))


def test_epochs_fall_into_the_warm_up_and_then_into_stages():
    schedule = Schedule(warmup_epochs=2, epochs_per_stage=3, max_stages=2)
    epochs = range(1, schedule.epochs + 1)
    assert [schedule.stage_of(epoch) for epoch in epochs] == [0, 0, 1, 1, 1, 2, 2, 2]
    assert [epoch for epoch in epochs if schedule.ends_stage(epoch)] == [5, 8]


def test_without_a_warm_up_the_first_epoch_is_constrained():
    schedule = Schedule(warmup_epochs=0, epochs_per_stage=1, max_stages=2)
    assert [schedule.stage_of(epoch) for epoch in (1, 2)] == [1, 2]


def test_a_schedule_cannot_be_changed_after_its_checks():
    with pytest.raises(FrozenInstanceError):
        Schedule().tau = 2.0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"warmup_epochs": -1}, "`warmup_epochs` of Schedule must be a whole number of at least 0"),
        ({"warmup_epochs": 2.5}, "`warmup_epochs` of Schedule"),
        ({"epochs_per_stage": 0}, "`epochs_per_stage` of Schedule"),
        ({"max_stages": -1}, "`max_stages` of Schedule"),
        ({"tau": 1.0}, "`tau` of Schedule"),
        ({"tau_min": 0.0}, "`tau_min` of Schedule"),
        ({"tau": 0.1, "tau_min": 0.2}, "`tau_min` of Schedule must not exceed tau = 0.1; got 0.2"),
        ({"tau_decay": 1.0}, "`tau_decay` of Schedule"),
        ({"threshold_quantile": 80}, "`threshold_quantile` of Schedule.*Did you mean 0.8"),
        ({"tolerance": -1e-9}, "`tolerance` of Schedule"),
        ({"warmup_epochs": 0, "max_stages": 0}, "`warmup_epochs` .* at least 1 without stages"),
    ],
)
def test_settings_outside_their_domain_are_refused(settings, message):
    with pytest.raises(InvalidParameterError, match=message):
        Schedule(**settings)


@pytest.mark.parametrize(
    "settings", [{"dual_rate": 0.0}, {"ema": 1.0}, {"ema": -0.5}, {"multiplier_max": -1.0}]
)
def test_settings_of_the_multiplier_are_refused_here_and_not_after_the_warm_up(settings):
    with pytest.raises(InvalidParameterError, match=f"`{next(iter(settings))}`"):
        Schedule(**settings)


def test_numpys_small_integers_do_not_overflow():
    schedule = Schedule(np.int8(100), np.int8(50), np.int8(100))
    assert schedule.epochs == 5100


# What loop and estimators ask


def test_without_the_constraint_there_are_as_many_epochs_of_plain_training():
    plain = Schedule(warmup_epochs=3, epochs_per_stage=2, max_stages=4).without_constraint()
    assert (plain.epochs, plain.warmup_epochs, plain.constrained) == (11, 11, False)
    assert Schedule.erm(7).without_constraint() == Schedule.erm(7)


def test_a_cycle_of_the_learning_rate_is_all_epochs():
    schedule = Schedule(warmup_epochs=2, epochs_per_stage=2, max_stages=1)
    assert schedule.cycle_done(1.0, constrained=False) == 0.25
    assert schedule.cycle_done(3.0, constrained=True) == 0.75


def test_weights_of_a_warm_up_are_kept_only_where_no_stages_follow():
    assert not Schedule().keeps_warmup
    assert Schedule.erm(5).keeps_warmup


@pytest.mark.parametrize("given", [None, 0.8])
def test_epochs_are_judged_at_the_training_threshold(given):
    assert not Schedule().leaves_threshold_open(given)


@pytest.mark.parametrize("keep", ["selection", "last"])
def test_either_weights_may_be_kept(keep):
    Schedule().check_keep(keep, "keep", "train")


# Schedules of version 0.1, in which patience made one adapt


def test_patience_gives_the_adaptive_schedule_and_says_its_new_name():
    with pytest.warns(DeprecationWarning, match=r"AdaptiveSchedule\(patience=...\)"):
        schedule = Schedule(warmup_epochs=4, patience=2)
    assert type(schedule) is AdaptiveSchedule
    assert (schedule.warmup_epochs, schedule.patience) == (4, 2)
    # all else is what 0.1 made of it
    assert (schedule.epochs_per_stage, schedule.max_stages, schedule.tolerance) == (6, 15, 1e-4)


@pytest.mark.parametrize("patience", [0, "soon"])
def test_a_bad_patience_is_refused(patience):
    with (
        pytest.warns(DeprecationWarning, match="AdaptiveSchedule"),
        pytest.raises(InvalidParameterError, match="`patience` of AdaptiveSchedule"),
    ):
        Schedule(patience=patience)


@pytest.mark.parametrize(
    "schedule", [Schedule(tau=0.1), Schedule.paper(), Schedule.adaptive(), Schedule.erm(7)]
)
def test_a_schedule_comes_back_from_its_settings(schedule):
    assert schedule_from_dict(asdict(schedule)) == schedule
    assert pickle.loads(pickle.dumps(schedule)) == copy.deepcopy(schedule) == schedule  # noqa: S301


def test_settings_that_version_0_1_wrote_are_read_without_a_warning():
    written = vars(Schedule(tau=0.1))
    assert schedule_from_dict(written | {"patience": None}) == Schedule(tau=0.1)
    assert schedule_from_dict(vars(Schedule.adaptive())) == Schedule.adaptive()
    with pytest.raises(TypeError, match="unheard"):
        schedule_from_dict(written | {"unheard": 1})


def test_both_schedules_have_their_settings_in_one_order():
    """Stored results of the benchmark hold them."""
    names = [field.name for field in fields(AdaptiveSchedule)]
    assert names == [*(field.name for field in fields(Schedule)), "patience"]
