from __future__ import annotations

import math
import sys
from dataclasses import fields, replace

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure

from reliablenet.errors import InvalidDataError, MissingExtraError
from reliablenet.training import EpochRecord, History
from reliablenet.training.history import progress

WELL = EpochRecord(
    epoch=1,
    stage=1,
    tau=0.1,
    loss=0.4,
    psi=0.05,
    phi=0.97,
    gap=0.02,
    jcw_train=0.04,
    loss_selection=0.5,
    accuracy=0.8,
    jcw_selection=0.04,
    coverage=0.6,
    throughput=0.56,
    multiplier=2.0,
    inner_feasible=True,
    feasible=True,
)
WARM_UP = replace(
    WELL,
    stage=0,
    multiplier=0.0,
    feasible=False,
    **dict.fromkeys(
        ("tau", "psi", "phi", "gap", "jcw_train", "jcw_selection", "coverage"), math.nan
    ),
)


def history(*changes: dict, alpha: float = 0.05) -> History:
    """A warm-up epoch, then `WELL` with each of the changes; the last epoch's weights were kept."""
    records = [WARM_UP] + [
        replace(WELL, epoch=number, **change) for number, change in enumerate(changes, start=2)
    ]
    return History(alpha, threshold=0.8, records=records, chosen_epoch=len(records))


def test_all_well_needs_no_advice():
    assert history({}).advice() == ""


def test_plain_training_needs_no_advice():
    assert History(0.05, records=[WARM_UP], chosen_epoch=1).advice() == ""


def test_a_network_that_unlearned_what_it_knew_is_told_of_with_the_cause():
    lost = {"at_chance": True, "accuracy": 0.5, "psi": 0.01, "multiplier": 50.0, "tau": 0.01}
    advice = history({}, lost).advice()
    assert "Training collapsed in epoch 3: accuracy fell from 0.800 to 0.500" in advice
    assert "psi = 0.0100 is within alpha = 0.05" in advice
    assert "A multiplier of 50.0 at tau = 0.01 outweighs the loss" in advice
    assert "come from a collapsed epoch" in advice
    assert "kept come from epoch 3" in history(lost, {}).advice()  # a later epoch was kept


def test_a_collapse_that_psi_is_too_blunt_to_see_is_told_of_too():
    lost = {"at_chance": True, "accuracy": 0.5, "inner_feasible": False, "jcw_selection": 0.0}
    assert "the selection-fold JCW, 0.0000, is within alpha" in history({}, lost).advice()


@pytest.mark.parametrize(
    "change", [{"inner_feasible": False, "feasible": False}, {"at_chance": False}]
)
def test_without_collapse_there_is_no_word_of_it(change):
    lost = {"at_chance": True, "accuracy": 0.5, "psi": 0.01}
    assert "collapsed" not in history({}, lost | change).advice()


def test_a_warm_up_that_knew_nothing_cannot_lose_it():
    found = history({"at_chance": True})
    found.records[0] = replace(WARM_UP, at_chance=True)
    assert "collapsed" not in found.advice()


def test_groups_have_columns_of_their_own_and_survive_json():
    found = history({"group_jcw": (0.1, 0.02), "group_multiplier": (3.0, 0.0)})
    found.groups, found.way = ["women", "men"], "both"
    found.ways = {"both": {"worst": 0.3, "overall": 0.6}}
    table = found.to_frame()
    assert table["group_jcw: women"].tolist()[1:] == [0.1]
    assert table["group_multiplier: men"].tolist()[1:] == [0.0]
    again = History.from_json(found.to_json())
    assert repr(again) == repr(found)
    assert again.records[1].by_budget() == [(0.1, 3.0), (0.02, 0.0)]


def test_a_constraint_that_never_bound_is_told_with_what_to_change():
    advice = history({"multiplier": 0.0}, {"multiplier": 0.0}).advice()
    assert advice.startswith("The constraint never bound: psi stayed within alpha = 0.05")
    assert "Lower alpha, or use ERMClassifier" in advice


def test_a_constraint_that_bound_once_is_not_said_never_to_have_bound():
    assert history({"multiplier": 0.1}, {"multiplier": 0.0}).advice() == ""


def test_a_constraint_that_was_never_feasible_is_told_with_the_lowest_jcw():
    missed = {"feasible": False, "jcw_selection": 0.09}
    advice = history(missed, missed | {"jcw_selection": 0.07}, missed).advice()
    assert "never became feasible" in advice
    assert "0.0700 against alpha = 0.05" in advice
    assert "Give a higher threshold" in advice


def test_a_warm_up_epoch_does_not_count_as_feasible():
    story = history({"feasible": False, "jcw_selection": 0.09})
    story.records[0] = replace(story.records[0], feasible=True)
    assert "never became feasible" in story.advice()


def test_a_budget_left_unspent_is_told_with_the_numbers_of_the_epoch_kept():
    advice = history({}, {"jcw_selection": 0.02, "coverage": 0.31, "multiplier": 49.5}).advice()
    assert "left most of the budget unspent" in advice
    assert "0.0200 of alpha = 0.05 at the training threshold 0.8," in advice
    assert "coverage 0.31 and a multiplier of 49.5" in advice
    assert "threshold='certified'" in advice


@pytest.mark.parametrize(
    "nothing_to_gain", [{"coverage": 1.0}, {"accuracy": 1.0}, {"jcw_selection": 0.025}]
)
def test_a_budget_that_could_not_buy_anything_is_not_said_to_be_unspent(nothing_to_gain):
    assert history({"jcw_selection": 0.01} | nothing_to_gain).advice() == ""


def test_advice_is_one_line():
    for change in ({"multiplier": 0.0}, {"feasible": False}, {"jcw_selection": 0.0}):
        advice = history(change).advice()
        assert advice
        assert "\n" not in advice


def test_frame_has_one_row_an_epoch_and_the_columns_of_a_record():
    frame = history({}, {"loss": 0.3}).to_frame()
    names = [field.name for field in fields(EpochRecord)]
    assert list(frame.columns) == [name for name in names if not name.startswith("group_")]
    assert frame["epoch"].tolist() == [1, 2, 3]
    assert frame["loss"].tolist() == [0.4, 0.4, 0.3]


def test_chosen_is_the_record_of_the_epoch_kept():
    story = history({}, {"loss": 0.3}, {})
    story.chosen_epoch = 3
    assert story.chosen().loss == 0.3


def test_plot_draws_four_labelled_panels_with_the_budget():
    figure = history({}, {}).plot()
    assert isinstance(figure, Figure)
    panels = figure.axes
    titles = [panel.get_title(loc="left") for panel in panels]
    assert [title for title in titles if title] == [
        "Loss",
        "Confident and wrong",
        "Selection fold at the training threshold",
        "Multiplier and tau",
    ]
    assert sum(panel.get_xlabel().startswith("epoch") for panel in panels) == 2
    labels = {
        text.get_text()
        for panel in panels
        if panel.get_legend()
        for text in panel.get_legend().get_texts()
    }
    assert {
        "alpha",
        "JCW, selection fold",
        "surrogate psi",
        "coverage",
        "multiplier",
        "tau",
    } <= labels
    budget = next(line for line in panels[1].get_lines() if line.get_label() == "alpha")
    assert set(budget.get_ydata()) == {0.05}


def test_plot_shows_the_numbers_of_the_frame():
    story = history({"coverage": 0.3}, {"coverage": 0.4})
    (line,) = (
        line
        for axes in story.plot().axes
        for line in axes.get_lines()
        if line.get_label() == "coverage"
    )
    assert line.get_ydata()[1:].tolist() == [0.3, 0.4]


def test_a_plot_can_be_written_to_a_file(tmp_path):
    history({}, {}).plot().savefig(tmp_path / "history.png")
    assert (tmp_path / "history.png").read_bytes().startswith(b"\x89PNG")


def test_a_plot_of_plain_training_can_be_drawn(tmp_path):
    History(0.05, records=[WARM_UP], chosen_epoch=1).plot().savefig(tmp_path / "erm.png")
    assert (tmp_path / "erm.png").stat().st_size > 1000


def test_plot_neither_imports_pyplot_nor_touches_the_back_end(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)  # importing it would now fail
    before = mpl.get_backend(auto_select=False)
    history({}).plot()
    assert mpl.get_backend(auto_select=False) == before


def test_plot_without_matplotlib_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'reliablenet\[report\]'"):
        history({}).plot()


def test_an_empty_history_cannot_be_drawn():
    with pytest.raises(InvalidDataError, match="at least one epoch"):
        History(0.05).plot()


def test_a_copy_through_json_is_equal_and_strict():
    warm = replace(WELL, stage=0, tau=math.nan, psi=math.nan)
    history = History(0.05, math.nan, [warm, WELL], 2, "it was over", 7)
    text = history.to_json()
    assert "NaN" not in text
    copy = History.from_json(text)
    assert copy.records[1] == WELL
    assert math.isnan(copy.threshold)
    assert math.isnan(copy.records[0].psi)
    assert repr(copy) == repr(history)


# The progress bar


def record(epoch: int, stage: int) -> EpochRecord:
    numbers = dict.fromkeys(EpochRecord.__dataclass_fields__, math.nan)
    return EpochRecord(
        **numbers | {"epoch": epoch, "stage": stage, "jcw_selection": 0.0123, "feasible": True}
    )


@pytest.mark.parametrize("verbose", ["auto", False])
def test_nothing_is_printed_when_nobody_watches(capfd, verbose):
    with progress("ERMClassifier", 2, verbose) as show:
        show(History(0.05, records=[record(1, 0)]))
    assert capfd.readouterr() == ("", "")


def test_a_bar_on_standard_error_shows_epoch_and_jcw_against_its_budget(capfd, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    with progress("ReliableClassifier", 2, True) as show:
        show(History(0.05, records=[record(1, 0)]))
        show(History(0.05, records=[record(1, 0), record(2, 1)]))
    out, err = capfd.readouterr()
    assert out == ""
    assert "ReliableClassifier" in err
    assert "2/2" in err
    assert "JCW 0.0123/0.05" in err


# Which weights are in use


def test_it_says_which_epoch_the_weights_come_from():
    history = History(0.05, records=[WELL, WELL], chosen_epoch=2)
    assert history.weights_in_use == "The weights in use are those of epoch 2."


def test_it_says_that_the_weights_come_from_a_second_fit_and_the_records_do_not():
    history = History(0.05, records=[WELL, WELL], chosen_epoch=2, refitted_rows=1234)
    assert "a second fit of 2 epochs on all 1,234 training and selection" in history.weights_in_use
    assert "these records are of the first fit" in history.weights_in_use
    assert History.from_json(history.to_json()).weights_in_use == history.weights_in_use
