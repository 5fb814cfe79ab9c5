"""Who bears the mistakes: counts by hand, intervals and tests by scipy, cuts of every kind of column."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest, fisher_exact

from reliablenet.certificate.scored import ScoredRows
from reliablenet.errors import InvalidDataError, InvalidParameterError
from reliablenet.metrics import Breakdown, breakdown
from reliablenet.metrics.breakdowns import Cell, count_cells
from reliablenet.metrics.cells import MISSING, Cut, learn_cut, learn_cuts


@pytest.fixture(scope="module")
def loans():
    """A rule that is worse for women, and a table with every kind of column."""
    rng = np.random.default_rng(0)
    n = 1500
    table = pd.DataFrame(
        {
            "sex": rng.choice(["female", "male"], n),
            "age": rng.integers(18, 80, n).astype(float),
            "since": pd.date_range("2021-01-01", periods=n, freq="20h"),
            "id": [f"row {i}" for i in range(n)],
            "same": 1,
        }
    )
    table.loc[::50, "age"] = np.nan
    truth = rng.choice(["good", "bad", "late"], n)
    miss = rng.random(n) < np.where(table["sex"] == "female", 0.2, 0.05)
    predicted = np.where(miss, "late", truth)
    score = rng.random(n)
    return table, truth, predicted, score, score > 0.3


def found_in(loans, **more) -> Breakdown:
    table, truth, predicted, score, accepted = loans
    return breakdown(y=truth, predicted=predicted, score=score, accepted=accepted, by=table, **more)


def test_counts_are_those_of_a_group_by(loans) -> None:
    table, truth, predicted, _, accepted = loans
    frame = found_in(loans).to_frame().set_index(["column", "value"])
    counted = pd.DataFrame(
        {"n": 1, "accepted": accepted, "errors": accepted & (truth != predicted)}
    )
    for column, key in (
        ("true class", truth),
        ("predicted class", predicted),
        ("sex", table["sex"]),
        ("since", table["since"].dt.year.astype(str)),
    ):
        expected = counted.groupby(np.asarray(key)).sum()
        assert frame.loc[column].index.tolist() == expected.index.tolist()
        assert (frame.loc[column, ["n", "accepted", "errors"]] == expected).all(axis=None)
    age = frame.loc["age"]
    edges = learn_cut(table["age"]).edges
    low, missing = table["age"] < edges[0], table["age"].isna()
    assert age["n"].tolist()[0] == low.sum()
    assert age.loc[MISSING, "n"] == missing.sum() == 30
    assert age.loc[MISSING, "errors"] == counted.loc[missing, "errors"].sum()
    assert len(age) == 5
    assert "id" not in frame.index
    assert "same" not in frame.index
    assert frame.iloc[0].name == ("", "all rows")
    assert frame.iloc[0]["n"] == 1500


def test_intervals_share_the_level_and_tests_allow_for_the_search(loans) -> None:
    found = found_in(loans, level=0.9)
    frame = found.to_frame()
    each = 1 - 0.1 / (3 * len(frame))
    for row in frame.itertuples():
        for name, (part, of) in {
            "jcw": (row.errors, row.n),
            "error_accepted": (row.errors, row.accepted),
            "coverage": (row.accepted, row.n),
        }.items():
            ends = binomtest(part, of).proportion_ci(each, "exact")
            low, high = getattr(row, f"{name}_low"), getattr(row, f"{name}_high")
            assert (low, high) == pytest.approx((ends.low, ends.high), abs=1e-12)
            assert low <= getattr(row, name) <= high
    whole = found.whole
    for cell, chance in zip(found.cells, found.chance, strict=True):
        rest = (whole.errors - cell.errors, whole.n - cell.n - whole.errors + cell.errors)
        table = [[cell.errors, cell.n - cell.errors], rest]
        expected = min(1.0, len(found.cells) * fisher_exact(table, "greater").pvalue)
        assert chance == pytest.approx(expected, rel=1e-9, abs=1e-300)


def test_those_who_bear_more_come_first_and_are_named(loans) -> None:
    found = found_in(loans)
    worst = found.worst(2)
    assert worst[0].column == "predicted class"  # all mistakes say late
    women = next(cell for cell in found.cells if cell.value == "female")
    assert women in found.worst(5)
    assert found.is_clear(women)
    assert not any(found.is_clear(cell) for cell in found.cells if cell.column == "since")
    named = next(text for text in found.summary(5) if text.startswith("sex = female"))
    assert f"{women.errors} of {women.n} rows acted on wrongly" in named
    assert "bear" in named


def test_where_chance_explains_all_nobody_is_named() -> None:
    rng = np.random.default_rng(1)
    found = breakdown(
        score=np.zeros(400),
        correct=rng.random(400) > 0.1,
        accepted=np.ones(400, bool),
        by={"letter": rng.choice(list("abcde"), 400)},
    )
    assert found.summary() == ["no difference beyond chance in 5 parts of 1 columns"]


def test_a_rule_that_never_errs_or_never_acts_has_a_breakdown() -> None:
    for accepted in (np.ones(50, bool), np.zeros(50, bool)):
        found = breakdown(
            score=np.zeros(50), correct=np.ones(50), accepted=accepted, by={"x": np.arange(50) % 2}
        )
        assert found.worst() == []
        assert found.to_frame()["share_of_mistakes"].tolist() == [0, 0, 0]
        assert "no difference beyond chance" in found.summary()[0]


def test_batches_add_up_to_the_whole(loans) -> None:
    table, truth, predicted, score, accepted = loans
    rows = found_in(loans)
    cuts = learn_cuts(table)
    parts = []
    for start in range(0, 1500, 400):
        part = slice(start, start + 400)
        from reliablenet.certificate.scored import score_rows

        scored = score_rows(
            None, truth[part], predicted=predicted[part], score=score[part], owner="test"
        )
        parts.append(count_cells(scored, accepted[part], table.iloc[part], cuts))
    added = parts[0] + parts[1] + parts[2] + parts[3]
    assert added == rows
    with pytest.raises(InvalidDataError, match="only if their columns were cut alike"):
        added + breakdown(score=[1], correct=[1], accepted=np.array([True]))


def test_a_breakdown_survives_json_and_a_forged_one_is_refused(loans) -> None:
    found = found_in(loans)
    stored = json.loads(json.dumps(found.to_dict()))
    assert Breakdown.from_dict(stored) == found
    stored["cells"][0][4] += 1
    with pytest.raises(InvalidDataError, match="must add up to the whole; `errors` does not"):
        Breakdown.from_dict(stored)
    with pytest.raises(InvalidDataError, match="not a breakdown of the format"):
        Breakdown.from_dict({"format": "x"})
    with pytest.raises(InvalidDataError, match="errors <= accepted <= n"):
        Cell("a", "b", 3, 4, 5)


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"accepted": [1, 0]}, "`accepted` of breakdown must hold booleans; got int64"),
        ({"accepted": [True]}, r"`accepted` of breakdown .* each of the 2 rows; got shape \(1,\)"),
        ({"by": {"x": [1, 2, 3]}}, r"`x` of breakdown .* each of the 2 rows; got shape \(3,\)"),
        ({"by": {"x": np.zeros((2, 2))}}, r"must be a vector; got shape \(2, 2\)"),
    ],
)
def test_what_does_not_fit_is_refused(more, text) -> None:
    given = {"score": [1, 2], "correct": [1, 0], "accepted": [True, False]} | more
    with pytest.raises(InvalidDataError, match=text):
        breakdown(**given)


def test_lists_in_a_column_are_told_apart_by_their_texts() -> None:
    lists = [[1, 2], [1, 2], {"a": 1}, None]
    cut = learn_cut(lists)
    assert cut is not None
    assert cut.names()[:2] == ["[1, 2]", "{'a': 1}"]
    assert cut.places(lists).tolist() == [0, 0, 1, 3]


def test_a_batch_with_too_many_labels_makes_them_a_quantity_in_all(monkeypatch) -> None:
    monkeypatch.setattr("reliablenet.metrics.breakdowns.MOST_CLASSES", 3)

    def batch(labels: int):
        truth = np.arange(60) % labels
        return breakdown(
            score=np.ones(60), predicted=np.zeros(60, int), y=truth, accepted=np.ones(60, bool)
        )

    both = batch(2) + batch(6)
    assert {cell.column for cell in both.cells} == {"predicted class"}
    assert both.whole.errors == 30 + 50


def test_rows_of_a_class_that_the_model_does_not_know_are_a_cell_of_their_own() -> None:
    truth = np.array([0, 1, -1, -1, 0, 1])
    rows = ScoredRows(np.ones(6), truth != 0, 0.0, truth=truth, predicted=np.zeros(6, int))
    found = count_cells(rows, np.ones(6, bool), None, {}, classes=["no", "yes"])
    cells = {(cell.column, cell.value): (cell.n, cell.errors) for cell in found.cells}
    assert cells == {
        ("true class", "not known to the model"): (2, 2),
        ("true class", "no"): (2, 0),
        ("true class", "yes"): (2, 2),
        ("predicted class", "no"): (6, 4),
    }


def test_whether_any_cell_is_clearly_worse(loans) -> None:
    assert found_in(loans).is_clear_anywhere
    same = breakdown(
        score=np.ones(40),
        correct=np.arange(40) % 4 > 0,
        accepted=np.ones(40, bool),
        by={"side": np.repeat(["l", "r"], 20)},
    )
    assert not same.is_clear_anywhere


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Cell("", "", -1, 0, 0), "`n` of Cell must be a whole number of at least 0; got -1."),
        (lambda: Cell("", "", 3, 0.5, 0), "`accepted` of Cell must be a whole number of at least 0; got 0.5."),
        (lambda: Cell("", "", 3, 2, -1), "`errors` of Cell must be a whole number of at least 0; got -1."),
        (lambda: Cell("", "", 3, 1, 2), "A cell needs errors <= accepted <= n; got 2, 1, 3."),
        (lambda: Breakdown(Cell("", "", 3, 1, 1), (), 1.0, {}), "`level` of Breakdown must lie in (0, 1); got 1.0. Did you mean 0.01?"),
        (lambda: Breakdown(Cell("", "", 3, 1, 1), (Cell("sex", "f", 3, 1, 0),), 0.9, {}), "The cells of 'sex' must add up to the whole; `errors` does not."),
        (lambda: breakdown(score=[1.0], correct=[True], accepted=[1]), "`accepted` of breakdown must hold booleans; got int64. Compare the score with the threshold first."),
        (lambda: breakdown(score=[1.0], correct=[True], accepted=[True, False]), "`accepted` of breakdown must have one entry for each of the 1 rows; got shape (2,)."),
        (lambda: breakdown([[0.5, 0.9]], [0], accepted=[True]), "Each row of `proba` of breakdown must sum to 1; row 0 sums to 1.4. Normalise the rows, or pass `score` and `predicted`."),
        (lambda: Breakdown.from_dict({}), "This is not a breakdown of the format 'reliablenet-breakdown/1'."),
        (lambda: small() + small(level=0.9), "Breakdowns can be added only if their columns were cut alike."),
    ],
)  # fmt: skip
def test_what_is_no_breakdown_is_refused_in_these_words(call, message):
    with pytest.raises((InvalidDataError, InvalidParameterError)) as caught:
        call()
    assert str(caught.value) == message


@pytest.mark.parametrize("name", ["accepted", "classes"])
def test_what_is_no_array_is_named(name):
    given = {"accepted": [True], "classes": ["a", "b"]} | {name: [[1], [2, 3]]}
    with pytest.raises(InvalidDataError, match=f"^`{name}` must be an array; got a list"):
        breakdown(None, ["a"], score=[1.0], predicted=["a"], **given)


def small(level=0.95) -> Breakdown:
    """Of 1 row in A and 4 in B, of which one was acted on and wrong, and none of C."""
    cells = (Cell("x", "A", 1, 1, 0), Cell("x", "B", 4, 0, 0), Cell("y", "C", 5, 1, 0))
    return Breakdown(Cell("", "all rows", 5, 1, 0), cells, level, {})


def test_the_table_of_a_small_breakdown_is_this():
    frame = small().to_frame()
    assert list(frame.columns) == [
        "column", "value", "n", "accepted", "errors",
        "jcw", "jcw_low", "jcw_high", "error_accepted", "error_accepted_low", "error_accepted_high",
        "coverage", "coverage_low", "coverage_high",
        "share_of_rows", "share_of_mistakes", "chance", "clear",
    ]  # fmt: skip
    assert frame["share_of_rows"].tolist() == [1.0, 0.2, 0.8, 1.0]
    assert frame["share_of_mistakes"].tolist() == [0.0] * 4
    assert frame["coverage"].tolist() == [0.2, 1.0, 0.0, 0.2]
    assert frame["error_accepted"].isna().tolist() == [False, False, True, False]
    assert frame["chance"].tolist() == [1.0] * 4
    assert frame["jcw"].dtype == frame["error_accepted"].dtype == float
    one = Breakdown(Cell("", "", 2, 2, 1), (Cell("x", "A", 1, 1, 1), Cell("x", "B", 1, 1, 0)), 0.5, {})  # fmt: skip
    assert one.to_frame()["share_of_mistakes"].tolist() == [1.0, 1.0, 0.0]
    # a chance of one half, times two cells: no more than 1
    assert one.chance.tolist() == [1.0, 1.0]


def test_a_chance_at_the_level_is_clear():
    whole, cells = Cell("", "", 4, 4, 2), (Cell("x", "A", 2, 2, 2), Cell("x", "B", 2, 2, 0))
    found = Breakdown(whole, cells, 0.5, {})
    assert found.chance[0] == pytest.approx(2 / 6)  # both mistakes in these 2 of 4 rows; two cells
    edge = Breakdown(whole, cells, 0.5, {})
    vars(edge)["chance"] = np.array([0.5, 1.0])
    assert edge.to_frame()["clear"].tolist() == [False, True, False]
    assert edge.is_clear(cells[0])


def test_at_most_three_cells_are_named_unless_more_are_wanted():
    cells = [Cell("x", name, 100, 100, 60) for name in "ABCDE"] + [Cell("x", "F", 500, 500, 0)]
    found = Breakdown(Cell("", "all rows", 1000, 1000, 300), tuple(cells), 0.95, {})
    assert [cell.value for cell in found.worst()] == ["A", "B", "C"]
    assert len(found.summary()) == 3
    assert len(found.worst(4)) == len(found.summary(4)) == 4
    assert found.is_clear_anywhere
    with pytest.raises(FrozenInstanceError):
        found.level = 0.5
    with pytest.raises(FrozenInstanceError):
        cells[0].n = 0
    assert found.to_dict()["format"] == "reliablenet-breakdown/1"


def test_classes_have_their_names_and_quantities_are_left_out():
    names = ["no", "yes"]
    proba, y = np.array([[0.9, 0.1], [0.2, 0.8], [0.7, 0.3]]), np.array(["no", "yes", "yes"])
    found = breakdown(proba, y, accepted=np.ones(3, bool), classes=names)
    assert [(c.column, c.value, c.n, c.errors) for c in found.cells] == [
        ("true class", "no", 1, 0), ("true class", "yes", 2, 1),
        ("predicted class", "no", 2, 1), ("predicted class", "yes", 1, 0),
    ]  # fmt: skip
    for kinds, columns in ((1000, {"true class", "predicted class"}), (1001, {"predicted class"})):
        truth = np.arange(kinds)
        rows = ScoredRows(np.ones(kinds), truth > 0, 0.0, truth=truth, predicted=np.zeros(kinds, int))  # fmt: skip
        counted = count_cells(rows, np.ones(kinds, bool), None, {})
        assert {cell.column for cell in counted.cells} == columns
    blind = ScoredRows(np.ones(2), np.zeros(2, bool), 0.0, predicted=np.zeros(2, int))
    counted = count_cells(blind, np.ones(2, bool), {"a": ["x", "y"], "b": ["x", "y"]}, {"b": Cut("value", values="xy")})  # fmt: skip
    assert [(c.column, c.value) for c in counted.cells] == [
        ("predicted class", "0"), ("b", "x"), ("b", "y"),
    ]  # fmt: skip


def test_of_cells_that_chance_alone_explains_the_one_with_the_larger_share_comes_first() -> None:
    cells = (Cell("x", "A", 50, 50, 6), Cell("x", "B", 50, 50, 4))
    cells += (Cell("y", "A", 10, 10, 2), Cell("y", "B", 90, 90, 8))
    found = Breakdown(Cell("", "all rows", 100, 100, 10), cells, 0.95, {})
    assert found.chance[0] == found.chance[2] == 1.0
    assert found.worst() == [cells[2], cells[0]]  # 20 % and 12 % of their rows
