"""What a user types of a promise, and what comes of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import typer

from reliablenet.certificate.promise import Promise
from reliablenet.cli.promises import (
    make_promise,
    note_small_groups,
    refuse_target,
    spell_labels,
)
from reliablenet.errors import InvalidDataError, InvalidParameterError


@pytest.mark.parametrize(
    ("typed", "made"),
    [
        ({}, None),
        ({"names": ["overall"]}, Promise.overall(0.05)),
        ({"names": ["among-accepted"]}, Promise.among_accepted(0.05)),
        ({"names": ["among_accepted=0.1"]}, Promise.among_accepted(0.1)),
        ({"by": ["race"]}, Promise.by_group(0.05, by="race")),
        ({"by": ["race", "sex"], "common": True}, Promise.by_group(0.05, ["race", "sex"], common=True)),
        ({"by": ["race"], "budget": ["A=0.1", "a=b=0.2"]}, Promise.by_group({"A": 0.1, "a=b": 0.2}, "race")),
        ({"names": ["by-class"], "budget": ["1.0=0.1"]}, Promise.by_class({"1": 0.1})),
        ({"names": ["by-predicted"]}, Promise.by_predicted(0.05)),
        (
            {"names": ["overall=0.02", "by-class=0.1"]},
            Promise.all_of(Promise.overall(0.02), Promise.by_class(0.1)),
        ),
        (
            {"names": ["by-class"], "by": ["race"], "budget": ["by-class:yes=0.1", "by-group:A=0.2"]},
            Promise.all_of(Promise.by_class({"yes": 0.1}), Promise.by_group({"A": 0.2}, "race")),
        ),
        (
            {"names": ["by-class"], "by": ["race"], "budget": ["by-class:yes=0.1"]},
            Promise.all_of(Promise.by_class({"yes": 0.1}), Promise.by_group(0.05, "race")),
        ),
        (
            {"names": ["overall"], "by": ["race"]},
            Promise.all_of(Promise.overall(0.05), Promise.by_group(0.05, "race")),
        ),
    ],
)  # fmt: skip
def test_options_make_a_promise(typed: dict[str, object], made: Promise | None) -> None:
    assert make_promise(0.05, **typed) == made  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ({"names": ["everyone"]}, "--promise must be one of overall, among-accepted, by-group"),
        ({"names": ["overall", "overall=0.1"]}, "--promise names the same promise twice"),
        ({"names": ["overall=much"]}, "--promise overall needs a number as its budget; got 'much'"),
        ({"names": ["by-group"]}, "--promise by-group needs --by COLUMN"),
        ({"common": True}, "--common needs --by COLUMN"),
        ({"budget": ["A=0.1"]}, "to say what LABEL is; got none of them"),
        (
            {"names": ["by-class"], "by": ["race"], "budget": ["A=0.1"]},
            "got by-class, by-group. With several, say which: --budget by-class:A=0.1",
        ),
        (
            {"names": ["by-class=0.1"], "budget": ["A=0.1"]},
            "--promise by-class gets a budget for all labels and, with --budget, one for some",
        ),
        ({"budget": ["0.1"]}, "--budget without a label is for --costs; .* use --alpha 0.1"),
        ({"names": ["by-class"], "budget": ["A=0.1", "A=0.2"]}, "--budget names 'A' twice"),
        ({"names": ["by-class"], "budget": ["yes"]}, "--budget needs LABEL=NUMBER, .*; got 'yes'"),
        ({"names": ["among-accepted"], "by": ["race"]}, "--promise among-accepted with --by needs --common"),
        ({"budget": ["1", "2"]}, "two budgets without a label"),
        ({"names": ["cost"], "budget": ["4"]}, "--promise cost needs --costs FILE"),
        ({"costs": Path("costs.csv")}, "and --budget with the highest mean cost"),
    ],
)  # fmt: skip
def test_options_that_do_not_fit_are_refused(typed: dict[str, object], message: str) -> None:
    with pytest.raises(typer.BadParameter, match=message):
        make_promise(0.05, **typed)  # type: ignore[arg-type]


def test_a_budget_outside_its_range_is_refused() -> None:
    with pytest.raises(InvalidParameterError, match=r"`alpha\['A'\]` of Promise.by_class must lie"):
        make_promise(0.05, ["by-class"], budget=["A=0"])


def test_costs_come_from_a_table_whatever_its_order(tmp_path: Path) -> None:
    file = tmp_path / "costs.csv"
    file.write_text("truth,yes,no\nno,100,0\nyes,0,500\n")
    made = make_promise(0.05, costs=file, budget=["4"])
    assert made == Promise.cost([[0, 500], [100, 0]], 4.0, classes=["yes", "no"])
    assert make_promise(0.05, ["cost=4"], costs=file) == made


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("truth,yes,no\nno,100,0\n", "must have a row for each true label"),
        ("truth,no\nno,0\n", r"a row and a column for each class, two at least; it has \['no'\]"),
        ("truth,no,yes\nno,0,\nyes,5,0\n", "no cost where the truth is 'no' and the prediction 'yes'"),
    ],
)  # fmt: skip
def test_a_table_of_costs_must_be_square_and_full(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "costs.csv"
    file.write_text(text)
    with pytest.raises(InvalidDataError, match=rf"costs\.csv .*{message}"):
        make_promise(0.05, costs=file, budget=["4"])


@pytest.mark.parametrize(
    ("promise", "message"),
    [
        (Promise.by_class({"Yes": 0.1}), "--budget names 'Yes', which is not a class. Did you mean 'yes'"),
        (Promise.by_predicted({"?": 0.1}), r"which is not a class. There are \['no', 'yes'\]"),
        (Promise.by_group({"soth": 0.1}, by="region"), "not a group of 'region'. Did you mean 'south'"),
    ],
)  # fmt: skip
def test_a_budget_for_a_label_that_is_not_there_is_refused(promise: Promise, message: str) -> None:
    with pytest.raises(typer.BadParameter, match=message):
        spell_labels(promise, ["no", "yes"], {"region": ["north", "south"]})


def test_groups_that_are_the_truth_cannot_have_thresholds() -> None:
    with pytest.raises(
        typer.BadParameter, match=r"--by names the target 'late'.* --promise by-class"
    ):
        refuse_target(Promise.by_group(0.1, by=["site", "late"]), "late")
    refuse_target(Promise.by_group(0.1, by="late", common=True), "late")


def test_labels_are_spelled_as_in_the_table() -> None:
    promise = Promise.all_of(
        Promise.by_class({"1": 0.01, "0": 0.1}),
        Promise.by_group({"2": 0.1}, by="site"),
        Promise.cost([[0, 1], [2, 0]], 0.5, classes=["0", "1"]),
    )
    spelled = spell_labels(promise, classes=[0, 1], groups={"site": [2.0, 3.0]})
    by_class, by_group, cost = spelled.parts
    assert by_class.alpha == {1: 0.01, 0: 0.1}
    assert by_group.alpha == {2.0: 0.1}
    assert cost.classes == (0, 1)


def test_groups_that_are_mostly_too_small_are_noted_before_the_training(
    capsys: pytest.CaptureFixture[str],
) -> None:
    age = np.array([*["40"] * 100, *map(str, range(50))], object)
    note_small_groups(Promise.by_group(0.05, by="age"), {"age": age}, 0.05)
    said = capsys.readouterr().err
    assert "49 of 50 groups of age have fewer than 59 rows" in said
    assert "these groups will be deferred" in said
    halves = np.repeat(["old", "young"], 75)
    note_small_groups(Promise.by_group(0.05, by="age"), {"age": halves}, 0.05)
    note_small_groups(Promise.by_group({"40": 0.05}, by="age"), {"age": age}, 0.05)
    note_small_groups(Promise.overall(0.05), {}, 0.05)
    assert capsys.readouterr().err == ""
