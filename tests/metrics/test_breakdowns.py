"""Who bears the mistakes: counts by hand, intervals and tests by scipy, cuts of every kind of column."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest, fisher_exact

from reliablenet.certificate.scored import ScoredRows
from reliablenet.errors import InvalidDataError
from reliablenet.metrics import Breakdown, breakdown
from reliablenet.metrics.breakdowns import Cell, count_cells
from reliablenet.metrics.cells import MISSING, learn_cut, learn_cuts


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
