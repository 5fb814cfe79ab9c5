"""Axes, lines and bins: the places that a chart draws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from reliablenet.metrics import evaluate, risk_coverage_curve
from reliablenet.report import text
from reliablenet.report.calibration import calibration_charts, reliability_bins
from reliablenet.report.charts import MOST_POINTS, axis, line, marked_numbers, percent_axis, thin
from reliablenet.report.curves import distinct_curves, risk_coverage_chart

UNIT = axis("", 0, 1)


@given(st.floats(-1e3, 1e3), st.floats(1e-3, 1e3), st.integers(3, 8))
def test_ticks_are_few_rising_and_within_the_axis(low, span, wanted) -> None:
    made = axis("", low, low + span, ticks=wanted)
    places = [place for place, _ in made.ticks]
    assert wanted / 2 <= len(places) <= 2 * wanted + 1
    assert places == sorted(places)
    assert min(places) >= -1e-6
    assert max(places) <= 100 + 1e-6


def test_an_axis_without_extent_still_has_one() -> None:
    made = axis("", 2.0, 2.0)
    assert (made.low, made.high) == (1.5, 2.5)


def test_percent_axis_is_written_in_percent() -> None:
    assert [label[:-2] for _, label in percent_axis("").ticks] == [
        "0",
        "20",
        "40",
        "60",
        "80",
        "100",
    ]


def test_lines_leave_undefined_points_out_and_thin_long_ones() -> None:
    assert line("", 1, UNIT, UNIT, [0, 0.5, 1], [0, np.nan, 1]).path == "M0 1000L1000 0"
    assert line("", 1, UNIT, UNIT, [0.5], [np.nan]).path == ""
    assert line("", 1, UNIT, UNIT, [0.5], [0.25]).path == "M500 750"
    x = np.linspace(0, 1, 10_000)
    path = line("", 9, UNIT, UNIT, x, x)
    assert len(path.path.split()) == 2 * MOST_POINTS - 1
    assert path.style == 2  # seven styles, then again


def test_thin_keeps_both_ends() -> None:
    assert thin(3, 5) == [0, 1, 2]
    assert thin(1000, 5) == [0, 250, 500, 749, 999]


def test_words_stand_left_and_numbers_right() -> None:
    table = marked_numbers(
        ["a", "b", "c", "d"], [["1", "2", "x", "✓ yes"], ["1", text.NONE, "3", "4"]]
    )
    assert table.words == {0, 2, 3}


@given(st.integers(0, 1000), st.integers(1, 400))
def test_bins_hold_all_rows_and_give_our_ece(seed, n) -> None:
    random = np.random.default_rng(seed)
    p = random.uniform(0.5, 1.0, n).round(random.integers(1, 17))
    y = (random.random(n) > p).astype(int)
    proba = np.column_stack([p, 1 - p])
    right = proba.argmax(axis=1) == y
    bins = reliability_bins(proba.max(axis=1), right)
    expected = evaluate(proba, y, accepted=np.ones(n, bool)).ece
    assert bins.ece == pytest.approx(expected, rel=1e-12, abs=1e-15)
    by_hand = np.abs(bins.confidence - bins.accuracy) @ bins.rows / n
    assert by_hand == pytest.approx(expected)
    assert bins.rows.sum() == n
    assert np.all((bins.low < bins.confidence + 1e-12) & (bins.confidence <= bins.high + 1e-12))


def test_calibration_charts_show_every_bin() -> None:
    bins = reliability_bins(np.array([0.55, 0.97, 0.98, 0.99]), np.array([True, True, False, True]))
    accuracy, held = calibration_charts(bins)
    assert len(accuracy.dots) == len(held.bars) == len(accuracy.numbers.rows) == 2
    assert [row[1] for row in accuracy.numbers.rows] == ["1", "3"]
    assert all(dot.low <= dot.y <= dot.high for dot in accuracy.dots)


def test_curves_that_are_alike_are_drawn_once() -> None:
    random = np.random.default_rng(0)
    score, y = random.random(300), np.zeros(300, int)
    wrong = (random.random(300) > score).astype(int)
    one = risk_coverage_curve(None, y, score=score, predicted=wrong)
    same = risk_coverage_curve(None, y, score=score**2, predicted=wrong)
    other = risk_coverage_curve(None, y, score=random.random(300), predicted=wrong)
    assert list(distinct_curves({"one": one, "same": same, "other": other})) == ["one", "other"]
    chart = risk_coverage_chart({"one": one, "other": other}, {"here": 0.5})
    assert chart.rules[0].place == 50
    assert chart.numbers.columns == ("Coverage", "one", "other")
    last = chart.numbers.rows[-2]
    assert (last[0][:3], float(last[1][:-2])) == (
        "100",
        pytest.approx(100 * wrong.mean(), abs=0.01),
    )
    assert chart.numbers.rows[-1][1] == f"{one.aurc:.4f}"
