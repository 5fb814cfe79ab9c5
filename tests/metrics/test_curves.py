from __future__ import annotations

import sys
from dataclasses import FrozenInstanceError

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given, strategies as st
from matplotlib.figure import Figure

from reliablenet._drawing import COLOURS
from reliablenet.certificate import certify
from reliablenet.certificate.scored import ScoredRows, score_rows
from reliablenet.errors import InvalidDataError, InvalidParameterError, MissingExtraError
from reliablenet.metrics import (
    area_under_risk_coverage,
    evaluate,
    excess_area_under_risk_coverage,
    jcw_curve,
    risk_coverage_curve,
)

CURVES = [risk_coverage_curve, jcw_curve]
# Four rows, two of equal score: right; right and wrong; right.
PROBA = np.array([[0.9, 0.1], [0.8, 0.2], [0.8, 0.2], [0.4, 0.6]])
LABELS = np.array([0, 0, 1, 1])


def random_case(seed: int, n: int = 300):
    random = np.random.default_rng(seed)
    return random.dirichlet(np.ones(3), n), random.integers(3, size=n)


few_scores = st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=1, max_size=30)


@given(few_scores)
def test_points_equal_a_loop_over_thresholds(rows):
    score, wrong = (list(column) for column in zip(*rows, strict=True))
    n, y = len(rows), [0] * len(rows)
    risk = risk_coverage_curve(None, y, score=score, predicted=[int(w) for w in wrong])
    jcw = jcw_curve(None, y, score=score, predicted=[int(w) for w in wrong])
    falling = sorted(set(score), reverse=True)
    assert risk.threshold.tolist() == falling
    assert jcw.threshold.tolist() == falling[::-1]
    assert risk.n == jcw.n == n
    for place, threshold in enumerate(falling):
        verdicts = [w for s, w in zip(score, wrong, strict=True) if s >= threshold]
        taken, errors = len(verdicts), sum(verdicts)
        assert risk.coverage[place] == taken / n
        assert risk.risk[place] == errors / taken
        assert risk.errors[place] == errors
        mirrored = len(falling) - 1 - place
        assert jcw.jcw[mirrored] == errors / n
        assert jcw.coverage[mirrored] == taken / n
        assert jcw.throughput[mirrored] == (taken - errors) / n
        assert jcw.errors[mirrored] == errors


@given(few_scores)
def test_the_areas_are_those_of_the_measures(rows):
    score, wrong = (np.array(column) for column in zip(*rows, strict=True))
    curve = risk_coverage_curve(None, np.zeros(len(rows), bool), score=score, predicted=wrong)
    assert curve.aurc == pytest.approx(area_under_risk_coverage(score, wrong))
    assert curve.excess_aurc == pytest.approx(excess_area_under_risk_coverage(score, wrong))


@pytest.mark.parametrize("seed", range(3))
def test_without_ties_the_area_under_the_steps_is_aurc(seed):
    curve = risk_coverage_curve(*random_case(seed))
    assert len(curve.threshold) == curve.n
    area = (curve.risk * np.diff(curve.coverage, prepend=0.0)).sum()
    assert area == pytest.approx(curve.aurc, rel=1e-12)


def test_a_point_is_what_evaluate_and_certify_find_at_its_threshold():
    proba, y = random_case(0)
    proba = np.round(proba, 2)
    proba[:, 0] = 1 - proba[:, 1:].sum(axis=1)
    proba = np.abs(proba)
    curve = jcw_curve(proba, y)
    assert 10 < len(curve.threshold) < curve.n  # there are ties
    for place in range(0, len(curve.threshold), 5):
        threshold = curve.threshold[place]
        result = evaluate(proba, y, accepted=proba.max(axis=1) >= threshold)
        certificate = certify(proba, y, threshold=threshold)
        assert curve.errors[place] == result.errors == certificate.errors
        assert curve.jcw[place] == result.jcw == certificate.jcw
        assert curve.coverage[place] == result.coverage == certificate.coverage
        assert curve.throughput[place] == result.throughput == certificate.throughput


def test_curves_run_in_order_and_end_with_every_row():
    proba, y = random_case(1)
    risk, jcw = risk_coverage_curve(proba, y), jcw_curve(proba, y)
    assert (np.diff(risk.threshold) < 0).all()
    assert (np.diff(risk.coverage) > 0).all()
    assert risk.coverage[-1] == jcw.coverage[0] == 1.0
    for falling in (jcw.jcw, jcw.coverage, jcw.throughput):
        assert (np.diff(falling) <= 0).all()
    assert risk.risk[-1] == jcw.jcw[0] == (proba.argmax(axis=1) != y).mean()


@pytest.mark.parametrize("n", [1, 5])
def test_equal_scores_make_one_point(n):
    proba, y = np.tile([0.9, 0.1], (n, 1)), np.ones(n, int)
    risk, jcw = risk_coverage_curve(proba, y), jcw_curve(proba, y)
    assert risk.to_frame().to_numpy().tolist() == [[0.9, 1.0, 1.0, n]]
    assert jcw.to_frame().to_numpy().tolist() == [[0.9, 1.0, 1.0, 0.0, n]]
    assert (risk.aurc, risk.excess_aurc) == (1.0, 0.0)


def test_without_errors_risk_and_jcw_are_zero_everywhere():
    proba, _ = random_case(2)
    y = proba.argmax(axis=1)
    assert not risk_coverage_curve(proba, y).risk.any()
    assert not jcw_curve(proba, y).jcw.any()
    assert risk_coverage_curve(proba, y).aurc == 0.0


def test_frames_hold_the_arrays():
    risk, jcw = risk_coverage_curve(PROBA, LABELS), jcw_curve(PROBA, LABELS, alpha=0.1)
    assert list(risk.to_frame()) == ["threshold", "coverage", "risk", "errors"]
    assert list(jcw.to_frame()) == ["threshold", "jcw", "coverage", "throughput", "errors"]
    for curve in (risk, jcw):
        for name, column in curve.to_frame().items():
            assert column.tolist() == getattr(curve, name).tolist()
    assert jcw.alpha == 0.1
    assert np.isnan(jcw_curve(PROBA, LABELS).alpha)


@pytest.mark.parametrize("draw", CURVES)
def test_labels_may_be_names_and_scores_ones_own(draw):
    classes = np.array(["wolf", "dog"])
    plain = draw(PROBA, LABELS)
    named = draw(PROBA, classes[LABELS], classes=classes)
    bare = draw(
        None,
        classes[LABELS],
        score=PROBA.max(axis=1),
        predicted=classes[PROBA.argmax(axis=1)],
    )
    assert plain.to_frame().equals(named.to_frame())
    assert plain.to_frame().equals(bare.to_frame())
    assert draw(PROBA, LABELS, score=[1, 2, 3, 4]).threshold.max() == 4


@pytest.mark.parametrize("draw", CURVES)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"proba": PROBA * 2}, r"`proba` of {owner} must lie in \[0, 1\].*softmax"),
        ({"proba": PROBA[:2]}, "`proba` of {owner} must have one entry for each of the 4 rows"),
        ({"y": [0, 1, 2, 0]}, r"`y` of {owner} .* not among the 2 known classes: 2"),
        ({"y": []}, "`y` of {owner} must be a non-empty vector"),
        ({"score": [1, 2, 3, np.inf]}, "`score` of {owner} must be finite; got inf in row 3"),
        ({"classes": ["a"]}, "`classes` of {owner} must name the 2 columns"),
    ],
)
def test_bad_input_is_named_with_what_was_expected(draw, change, message):
    call = {"proba": PROBA, "y": LABELS} | change
    with pytest.raises(InvalidDataError, match=message.replace("{owner}", draw.__name__)):
        draw(call.pop("proba"), call.pop("y"), **call)


@pytest.mark.parametrize("draw", CURVES)
def test_rows_scored_before_are_as_good_as_probabilities_and_labels(draw):
    proba, y = random_case(0)
    rows = score_rows(proba, y, owner="test")
    bare = ScoredRows(rows.score, rows.wrong, rows.lowest)  # no labels, no confidence
    expected = draw(proba, y).to_frame()
    assert draw(rows).to_frame().equals(expected)
    assert draw(bare).to_frame().equals(expected)
    with pytest.raises(InvalidParameterError, match=f"{draw.__name__} takes scored rows alone"):
        draw(rows, y)


@pytest.mark.parametrize("draw", CURVES)
def test_a_curve_needs_probabilities_or_scores_with_predictions(draw):
    with pytest.raises(InvalidParameterError, match=f"{draw.__name__} needs `proba`, or `score`"):
        draw(None, LABELS, score=[1, 2, 3, 4])


def test_a_budget_outside_its_domain_is_named():
    with pytest.raises(InvalidParameterError, match=r"`alpha` of jcw_curve .* Did you mean 0.05"):
        jcw_curve(PROBA, LABELS, alpha=5)


def legend(axes) -> list[str]:
    return [text.get_text() for text in axes.get_legend().get_texts()]


def value_at(line, x: float) -> float:
    """Read a line drawn in steps: y of the first point at or right of x."""
    assert line.get_drawstyle() == "steps-pre"
    return line.get_ydata()[np.searchsorted(line.get_xdata(), x)]


def test_the_risk_coverage_picture_shows_the_curve_in_steps():
    curve = risk_coverage_curve(PROBA, LABELS)
    figure = curve.plot()
    assert isinstance(figure, Figure)
    (axes,) = figure.axes
    (line,) = axes.get_lines()
    assert [value_at(line, x) for x in (0.1, 0.25, 0.3, 0.75, 0.8, 1.0)] == [
        *(0.0, 0.0),
        *(1 / 3, 1 / 3),
        *(0.25, 0.25),
    ]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("coverage", "error rate of accepted rows")
    assert axes.get_xlim() == (0.0, 1.0)
    assert legend(axes) == ["AURC 0.2083"]


def test_the_jcw_picture_shows_the_budget_and_what_is_accepted():
    upper, lower = jcw_curve(PROBA, LABELS, alpha=0.1).plot().axes
    assert legend(upper) == ["JCW", "alpha = 0.1"]
    assert legend(lower) == ["coverage", "throughput"]
    jcw, budget = upper.get_lines()
    coverage, throughput = lower.get_lines()
    places = (0.599, 0.6, 0.7, 0.8, 0.85, 0.9)
    assert [value_at(jcw, x) for x in places] == [0.25, 0.25, 0.25, 0.25, 0.0, 0.0]
    assert [value_at(coverage, x) for x in places] == [1.0, 1.0, 0.75, 0.75, 0.25, 0.25]
    assert [value_at(throughput, x) for x in places] == [0.75, 0.75, 0.5, 0.5, 0.25, 0.25]
    assert coverage.get_ydata()[-1] == 0.0  # above the highest score
    assert budget.get_linestyle() == "--"
    assert set(budget.get_ydata()) == {0.1}
    assert (upper.get_xlabel(), lower.get_xlabel()) == ("", "threshold")
    assert upper.get_ylabel() == lower.get_ylabel() == "share of rows"


def test_without_a_budget_no_line_is_drawn_for_it():
    assert legend(jcw_curve(PROBA, LABELS).plot().axes[0]) == ["JCW"]


@pytest.mark.parametrize("draw", CURVES)
def test_curves_overlay_in_one_panel_in_colours_of_their_own(draw):
    setting = {"alpha": 0.1} if draw is jcw_curve else {}
    figure = draw(PROBA, LABELS, **setting).plot(label="first")
    axes = figure.axes[0]
    xlabel = axes.get_xlabel()
    before = axes.get_ylim()
    worst = draw(PROBA, 1 - PROBA.argmax(axis=1), **setting)
    assert worst.plot(axes=axes, label="second") is figure
    lines = [line for line in axes.get_lines() if line.get_drawstyle() == "steps-pre"]
    assert [line.get_label() for line in lines] == ["first", "second"]
    assert lines[0].get_color() != lines[1].get_color()
    assert [text for text in legend(axes) if "alpha" not in text] == ["first", "second"]
    assert sum("alpha" in text for text in legend(axes)) == len(setting)
    assert axes.get_ylim()[1] > 1.0 > before[1]  # the second curve reaches 1 and is not cut off
    assert axes.get_xlabel() == xlabel


@pytest.mark.parametrize("draw", CURVES)
def test_a_curve_can_be_drawn_into_any_panel_even_a_logarithmic_one(draw, tmp_path):
    figure = Figure()
    left, right = figure.subplots(1, 2)
    right.set_yscale("log")
    curve = draw(*random_case(0))
    assert curve.plot(axes=right) is figure
    assert not left.get_lines()
    assert right.get_xlabel() in ("coverage", "threshold")
    assert right.get_ylim()[0] > 0.0
    figure.savefig(tmp_path / "panels.png")


@pytest.mark.parametrize("draw", CURVES)
def test_a_line_at_zero_can_be_seen_above_the_axis(draw):
    axes = draw(PROBA, PROBA.argmax(axis=1)).plot().axes[0]
    low, high = axes.get_ylim()
    assert low < 0.0 < high
    assert -low < 0.05 * high


@pytest.mark.parametrize("draw", CURVES)
@pytest.mark.parametrize("n", [1, 4])
def test_a_picture_can_be_written_to_a_file(draw, n, tmp_path):
    draw(PROBA[:n], LABELS[:n]).plot().savefig(tmp_path / "curve.png")
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("draw", CURVES)
def test_plot_neither_imports_pyplot_nor_touches_the_back_end(draw, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)  # importing it would now fail
    before = mpl.get_backend(auto_select=False)
    draw(PROBA, LABELS).plot()
    assert mpl.get_backend(auto_select=False) == before


@pytest.mark.parametrize(
    ("draw", "owner"), [(risk_coverage_curve, "RiskCoverageCurve"), (jcw_curve, "JCWCurve")]
)
def test_plot_without_matplotlib_says_how_to_install_it(draw, owner, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    curve = draw(PROBA, LABELS)
    message = rf"^{owner}\.plot needs matplotlib: pip install 'reliablenet\[report\]'$"
    with pytest.raises(MissingExtraError, match=message):
        curve.plot()


@pytest.mark.parametrize("draw", CURVES)
def test_a_curve_cannot_be_changed_and_equals_itself_alone(draw):
    """Arrays have no single truth value, so that curves are told apart by identity."""
    first, second = draw(PROBA, LABELS), draw(PROBA, LABELS)
    with pytest.raises(FrozenInstanceError):
        first.n = 5
    assert first == first
    assert first != second
    assert len({first, second, first}) == 2


@pytest.mark.parametrize(("draw", "height"), [(risk_coverage_curve, 4), (jcw_curve, 6)])
def test_a_new_figure_has_this_look(draw, height):
    figure = draw(PROBA, LABELS).plot()
    assert figure.get_size_inches().tolist() == [6, height]
    assert type(figure.get_layout_engine()).__name__ == "ConstrainedLayoutEngine"
    shared = figure.axes[0].get_shared_x_axes().get_siblings(figure.axes[0])
    assert len(shared) == len(figure.axes)
    for axes in figure.axes:
        assert [axes.spines[side].get_visible() for side in ("top", "right", "left", "bottom")] == [
            *(False, False),
            *(True, True),
        ]
        lines = [line for line in axes.get_lines() if line.get_drawstyle() == "steps-pre"]
        assert [line.get_color() for line in lines] == list(COLOURS[: len(lines)])
        assert {line.get_linewidth() for line in lines} == {1.6}
        assert not axes.get_legend().get_frame_on()
        assert {text.get_fontsize() for text in axes.get_legend().get_texts()} == {8.0}
        low, high = axes.get_ylim()
        assert low == pytest.approx(-0.02 * high)
        assert axes.get_autoscaley_on()
    assert COLOURS == ("#0072b2", "#d55e00", "#009e73")


def test_the_budget_is_a_thin_dark_line():
    budget = jcw_curve(PROBA, LABELS, alpha=0.1).plot().axes[0].get_lines()[1]
    assert (budget.get_color(), budget.get_linewidth(), budget.get_label()) == (
        "0.2",
        1.0,
        "alpha = 0.1",
    )


@pytest.mark.parametrize(
    ("scores", "left"), [([0.9, 0.8, 0.8, 0.6], 0.6 - 0.03 * 0.3), ([0.7] * 4, 0.67)]
)
def test_a_curve_begins_a_little_below_the_lowest_score(scores, left):
    curve = jcw_curve(None, LABELS, score=scores, predicted=LABELS.copy())
    line = curve.plot().axes[0].get_lines()[0]
    assert line.get_xdata()[0] == pytest.approx(left)
    assert line.get_xdata()[-1] == max(scores)
    assert line.get_ydata()[-1] == 0.0


def test_the_steps_begin_at_coverage_nought_with_the_risk_of_the_best_rows():
    curve = risk_coverage_curve(None, [0, 0, 0], score=[3, 2, 1], predicted=[1, 0, 0])
    line = curve.plot(label="mine").axes[0].get_lines()[0]
    assert line.get_xdata().tolist() == pytest.approx([0, 1 / 3, 2 / 3, 1])
    assert line.get_ydata().tolist() == pytest.approx([1, 1, 1 / 2, 1 / 3])
    assert line.get_label() == "mine"


def test_in_a_column_of_panels_the_lowest_alone_names_the_axis():
    figure = Figure()
    upper, lower = figure.subplots(2, 1, sharex=True)
    curve = risk_coverage_curve(PROBA, LABELS)
    curve.plot(axes=upper)
    curve.plot(axes=lower)
    assert (upper.get_xlabel(), lower.get_xlabel()) == ("", "coverage")
    apart, _ = figure.subplots(2, 1)
    assert curve.plot(axes=apart).axes[2].get_xlabel() == "coverage"
    free = figure.add_axes((0, 0, 1, 1))  # has no place in a grid
    curve.plot(axes=free)
    assert free.get_xlabel() == "coverage"


@pytest.mark.parametrize("draw", CURVES)
def test_answers_that_are_right_or_wrong_are_enough(draw):
    score, right = PROBA.max(axis=1), PROBA.argmax(axis=1) == LABELS
    assert draw(score=score, correct=right).to_frame().equals(draw(PROBA, LABELS).to_frame())


@pytest.mark.parametrize("draw", CURVES)
def test_the_old_name_of_the_table_still_works(draw):
    curve = draw(PROBA, LABELS)
    with pytest.warns(DeprecationWarning, match="^`frame` is now called `to_frame`; the old name"):
        assert curve.frame().equals(curve.to_frame())
