"""Figures hold the means and sds of the runs that are there, and say what is not."""

from __future__ import annotations

import math
import sys
from dataclasses import replace

import numpy as np
import pytest

from reliablenet.bench import Plan, Profile, Store
from reliablenet.bench.figures import (
    FIGURES,
    by_group,
    by_severity,
    risk_coverage,
    shift_summary,
)
from reliablenet.bench.methods import METHODS, paper_methods, study_methods
from reliablenet.bench.plots import SUMMARY_METRICS
from reliablenet.bench.results import NoRunsError
from reliablenet.bench.store import GRID
from reliablenet.errors import InvalidDataError, InvalidParameterError, MissingExtraError

PROFILE = Profile(
    "mine",
    {
        "adult": Plan("adult"),
        "synthetic_band": Plan("synthetic_band"),
        "coloured_mnist": Plan("coloured_mnist", alpha=0.01),
    },
    seeds=(0, 37),
)
TWO = ("erm", "reliablenet_last@eps")


def measures(jcw: float, **changes: object) -> dict[str, object]:
    values = {
        "n": 100,
        "jcw": jcw,
        "budget_spent": jcw / 0.05,
        "coverage": 0.5 + jcw,
        "accuracy_accepted": 0.9,
        "ece": 0.1,
        "aurc": 0.2,
    }
    return values | changes


def write(
    store: Store,
    plan: str,
    method: str,
    seed: int,
    jcw: float,
    profile: Profile = PROFILE,
    **changes: object,
) -> None:
    """Write a run whose every number follows from one."""
    parts = {
        "shifts": {"first": measures(jcw, **changes), "second": measures(0.99)},
        "groups": {"Preschool": measures(jcw, n=24), "10th": measures(jcw / 2)},
        "sweeps": {"0.9": measures(jcw), "0.1": measures(2 * jcw)},
    }
    wanted = METHODS[method].hash(profile.plans[plan], seed, profile.rho)
    record = {"method": method, "seed": seed, "hash": wanted, "measured": parts}
    curves = np.stack([np.full(200, jcw), GRID * jcw]).astype(np.float32)
    store.write(plan, method, seed, record, curves)


@pytest.fixture
def store(tmp_path) -> Store:
    """Adult: ERM with both seeds, ReliableNet with one; nothing else."""
    store = Store(tmp_path / "mine")
    write(store, "adult", "erm", 0, 0.10)
    write(store, "adult", "erm", 37, 0.20)
    write(store, "adult", "reliablenet_last@eps", 0, 0.02)
    return store


def row(figure, **place):
    table = figure.to_frame()
    for column, value in place.items():
        table = table[table[column] == value]
    assert len(table) == 1
    return table.iloc[0]


def labels(figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_a_summary_holds_mean_and_sample_sd_on_the_first_shift(store):
    found = row(shift_summary(store, PROFILE), plan="adult", method="erm")
    assert found["budget_spent"] == pytest.approx(3.0)
    assert found["budget_spent_sd"] == pytest.approx(math.sqrt(2.0))
    assert found["coverage"] == pytest.approx(0.65)
    assert found["coverage_sd"] == pytest.approx(0.1 / math.sqrt(2.0))
    assert (found["shift"], found["rows"], found["seeds"], found["missing"]) == (
        "first",
        100,
        2,
        "",
    )


@pytest.mark.parametrize("metric", SUMMARY_METRICS)
def test_jcw_comes_with_coverage_and_other_metrics_alone(store, metric):
    figure = shift_summary(store, PROFILE, metric, methods=TWO)
    together = {"budget_spent", "coverage"}
    expected = together if metric in together else {metric}
    assert set(SUMMARY_METRICS) & set(figure.to_frame().columns) == expected
    assert len(figure.plot().axes) == len(expected)


def test_what_is_missing_is_said_in_the_frame_and_left_out_of_the_picture(store):
    figure = shift_summary(store, PROFILE, "ece", methods=(*TWO, "selectivenet"))
    one = row(figure, plan="adult", method="reliablenet_last@eps")
    assert (one["seeds"], one["missing"], one["ece"]) == (1, "seeds 37", 0.1)
    assert math.isnan(one["ece_sd"])
    none = row(figure, plan="adult", method="selectivenet")
    assert (none["seeds"], none["missing"]) == (0, "seeds 0, 37")
    assert math.isnan(none["ece"])
    assert row(figure, plan="synthetic_band", method="erm")["seeds"] == 0
    assert len(figure.to_frame()) == 9
    picture = figure.plot()
    assert len(picture.axes) == 1
    assert picture.axes[0].get_title() == "Adult\nalpha = 0.05\nmean ± sd of 1 to 2 seeds"


def test_failed_runs_and_runs_of_other_settings_are_not_there(store):
    store.write("adult", "erm", 37, {"hash": "h", "error": "ValueError: no"}, None)
    assert row(shift_summary(store, PROFILE), plan="adult", method="erm")["seeds"] == 1
    changed = replace(PROFILE, plans=PROFILE.plans | {"adult": Plan("adult", epochs=70)})
    with pytest.raises(InvalidDataError):
        shift_summary(store, changed)


def test_a_value_undefined_in_some_runs_is_averaged_over_the_others(store):
    write(store, "adult", "erm", 37, 0.2, accuracy_accepted=None)
    figure = shift_summary(store, PROFILE, "accuracy_accepted")
    found = row(figure, plan="adult", method="erm")
    assert (found["accuracy_accepted"], found["seeds"]) == (0.9, 2)
    assert found["missing"] == "accuracy_accepted undefined in 1 of them"
    figure.plot()


@pytest.mark.parametrize(
    ("part", "expected", "sd"), [("shift", 0.15 * GRID, 0.1 * GRID), ("certification", 0.15, 0.1)]
)
def test_curves_are_means_over_seeds_at_each_coverage(store, part, expected, sd):
    table = risk_coverage(store, PROFILE, "adult", part, methods=TWO).to_frame()
    erm, ours = (table[table["method"] == method] for method in TWO)
    np.testing.assert_allclose(erm["coverage"], GRID)
    np.testing.assert_allclose(erm["risk"], np.broadcast_to(expected, 200), rtol=1e-6)
    np.testing.assert_allclose(erm["risk_sd"], np.broadcast_to(sd / math.sqrt(2.0), 200), rtol=1e-6)
    assert ours["risk_sd"].isna().all()
    assert set(ours["missing"]) == {"seeds 37"}


def test_methods_that_rank_rows_alike_share_a_line(store):
    for seed, jcw in ((0, 0.1), (37, 0.2)):
        write(store, "adult", "confidence_threshold", seed, jcw)
    picture = risk_coverage(store, PROFILE, "adult").plot()
    assert labels(picture) == ["ERM (accepts all) = Confidence threshold", "ReliableNet at eps*"]
    assert len(picture.axes[0].lines) == 2


def test_all_plans_with_results_get_a_panel(store):
    write(store, "synthetic_band", "erm", 0, 0.1)
    figure = risk_coverage(store, PROFILE)
    assert set(figure.to_frame()["plan"]) == set(PROFILE.plans)
    assert len(figure.plot().axes) == 2


def test_groups_keep_the_order_of_the_data(store):
    figure = by_group(store, PROFILE, "adult", methods=TWO)
    assert list(figure.to_frame()["group"].unique()) == ["Preschool", "10th"]
    found = row(figure, group="10th", method="erm")
    assert found["jcw"] == pytest.approx(0.075)
    assert found["jcw_sd"] == pytest.approx(0.05 / math.sqrt(2.0))
    assert found["coverage"] == pytest.approx(0.575)
    jcw, coverage = figure.plot().axes
    assert (jcw.get_xlabel(), coverage.get_xlabel()) == ("JCW", "coverage")
    ticks = [text.get_text() for text in jcw.get_yticklabels()]
    assert ticks == ["Preschool (24 rows)", "10th (100 rows)"]
    assert jcw.yaxis_inverted()  # the first on top


@pytest.mark.parametrize(("plan", "falls"), [("synthetic_band", False), ("coloured_mnist", True)])
def test_severity_rises_from_left_to_right(store, plan, falls):
    write(store, plan, "erm", 0, 0.1)
    write(store, plan, "erm", 37, 0.2)
    figure = by_severity(store, PROFILE, plan, methods=TWO)
    found = row(figure, level=0.1, method="erm")
    assert found["jcw"] == pytest.approx(0.3)
    assert found["jcw_sd"] == pytest.approx(0.2 / math.sqrt(2.0))
    assert row(figure, level=0.9, method=TWO[1])["seeds"] == 0
    picture = figure.plot()
    jcw, coverage = picture.axes
    assert [jcw.get_ylabel(), coverage.get_ylabel()] == ["JCW", "coverage"]
    assert jcw.xaxis_inverted() == coverage.xaxis_inverted() == falls
    assert labels(picture) == ["ERM (accepts all)", f"alpha = {PROFILE.plans[plan].alpha:g}"]


def test_one_seed_is_drawn_without_a_band(tmp_path):
    profile, store = replace(PROFILE, seeds=(0,)), Store(tmp_path / "mine")
    write(store, "adult", "erm", 0, 0.1, profile)
    for figure in (
        shift_summary(store, profile),
        risk_coverage(store, profile),
        by_group(store, profile, "adult"),
    ):
        assert figure.to_frame().filter(like="_sd").isna().all(axis=None)
        picture = figure.plot()
        picture.savefig(tmp_path / "figure.png")
        titles = picture.get_suptitle() + picture.axes[0].get_title()
        assert "mean ± sd of 1 seed" in titles
        assert "seeds" not in titles


@pytest.mark.parametrize(
    ("draw", "plans"),
    [
        (shift_summary, "adult,synthetic_band,coloured_mnist"),
        (risk_coverage, "adult,synthetic_band,coloured_mnist"),
        (FIGURES["groups_adult"], "adult"),
        (FIGURES["severity_synthetic_band"], "synthetic_band"),
    ],
)
def test_nothing_at_all_tells_of_which_plans_there_is_nothing(tmp_path, draw, plans):
    store = Store(tmp_path / "mine")
    with pytest.raises(NoRunsError) as caught:
        draw(store, PROFILE)
    error = caught.value
    assert (error.store, error.profile, error.method) == (store, PROFILE, "")
    assert ",".join(error.plans) == plans


def test_wrong_settings_are_named(store):
    with pytest.raises(InvalidParameterError, match="`metric` of shift_summary must be one of"):
        shift_summary(store, PROFILE, "jcw")
    with pytest.raises(InvalidParameterError, match="`part` of risk_coverage must be one of"):
        risk_coverage(store, PROFILE, "adult", "test")
    with pytest.raises(InvalidParameterError, match=r"must be one of \['adult'\] in mine; got"):
        by_group(store, PROFILE, "synthetic_band")
    with pytest.raises(InvalidParameterError, match="`plan` of by_severity"):
        by_severity(store, PROFILE, "adult")
    for methods in (("erm", "mine"), ()):
        with pytest.raises(InvalidParameterError, match="`methods` of figures must be among"):
            shift_summary(store, PROFILE, methods=methods)


def test_every_method_has_a_name_and_the_frame_is_a_copy(store):
    assert set(paper_methods()) < {method.name for method in study_methods()} < set(METHODS)
    assert all(method.title for method in METHODS.values())
    assert len({method.title for method in METHODS.values()}) == len(METHODS)
    figure = shift_summary(store, PROFILE)
    table = figure.to_frame()
    table["seeds"] = 99
    assert figure.to_frame()["seeds"].max() == 2


def test_all_methods_at_once_look_different(store):
    for method in METHODS:
        write(store, "synthetic_band", method, 0, 0.1)
    axes = by_severity(store, PROFILE, "synthetic_band", methods=[*METHODS]).plot().axes[1]
    looks = {(line.get_color(), line.get_marker()) for line in axes.lines}
    assert len(looks) == len(METHODS)


def test_pictures_need_no_pyplot_and_say_how_to_install_matplotlib(store, monkeypatch):
    figure = shift_summary(store, PROFILE)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    figure.plot()
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'reliablenet\[report\]'$"):
        figure.plot()
