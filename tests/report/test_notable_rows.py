"""The rows and groups that a page lists."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import reliablenet as rn
from reliablenet.datasets import SyntheticBand
from reliablenet.report import text
from reliablenet.report.notable_rows import accepted_mistakes, fold_rows, group_table, least_sure


def test_mistakes_are_accepted_wrong_and_the_surest_first(model, rows) -> None:
    table, y = rows
    listed, total = accepted_mistakes(model, fold_rows(model, table, y))
    assert total == model.certificate_.errors > 20
    assert len(listed.rows) == 20
    assert listed.columns[:4] == ("Row", "Predicted", "Truth", "Confidence")
    assert listed.columns[4:] == tuple(table.columns)
    confidences = []
    for number, predicted, truth, confidence, *cells in listed.rows:
        row = table.iloc[[int(number)]]
        assert predicted == model.predict(row)[0] != truth == y[int(number)]
        assert model.accept(row)[0]
        assert confidence == f"{model.predict_proba(row).max():.4f}"
        assert cells == [text.cell(value) for value in row.iloc[0]]
        confidences.append(float(confidence))
    assert confidences == sorted(confidences, reverse=True)


def test_the_least_sure_come_first_and_have_no_columns_without_a_table(model) -> None:
    listed = least_sure(model, fold_rows(model, None, None))
    order = np.sort(model.evidence_.score)[:20]
    assert [row[3] for row in listed.rows] == [f"{score:.4f}" for score in order]
    assert listed.columns == ("Row", "Predicted", "Truth", "Confidence")


def test_a_learned_score_has_a_column() -> None:
    band = SyntheticBand(random_state=0).sample(1500)
    model = rn.SelectiveNetClassifier(epochs=2, alpha=0.2, random_state=0).fit(band.X, band.y)
    listed = least_sure(model, fold_rows(model, band.X, band.y))
    assert listed.columns[3:6] == ("Confidence", "Score", "0")
    assert listed.rows[0][4] == f"{model.evidence_.score.min():.4f}"


def test_a_fold_of_ones_own_is_its_own_table(band) -> None:
    draw = SyntheticBand(random_state=0)
    draw.sample(3000)
    fold = draw.sample(1500)
    found = fold_rows(band, fold.X, fold.y)
    assert found.place.tolist() == list(range(1500))
    with pytest.raises(
        rn.errors.InvalidParameterError, match="the certification fold of 1500 rows"
    ):
        fold_rows(band, fold.X[:-1], None)


def test_another_table_is_noticed(model, rows) -> None:
    table, y = rows
    with pytest.raises(
        rn.errors.InvalidDataError, match="certification rows have another label there"
    ):
        fold_rows(model, table, y[::-1])
    with pytest.raises(
        rn.errors.InvalidParameterError, match=r"be the table given to fit.*got '10 rows'"
    ):
        fold_rows(model, table[:10], None)
    with pytest.raises(rn.errors.InvalidDataError, match="2499 labels and 2500 rows"):
        fold_rows(model, table, y[:-1])


@pytest.mark.parametrize("how", ["column", "array", "series"])
def test_groups_are_counted_on_the_certification_rows(model, rows, how) -> None:
    table, y = rows
    job = table["job"]
    groups = {"column": "job", "array": np.asarray(job), "series": job.set_axis(range(9, 2509))}[
        how
    ]
    listed = group_table(model, fold_rows(model, table, y), groups)
    place = model.evidence_.row
    assert [row[0] for row in listed.rows] == ["a", "b", "c", "nan"]
    assert sum(int(row[1]) for row in listed.rows) == model.certificate_.n
    for name, n, coverage, jcw, bound, accuracy, shown in listed.rows:
        here = place[(job.isna() if name == "nan" else job == name).to_numpy()[place]]
        measured = model.evaluate(table.iloc[here], y[here])
        exact = rn.clopper_pearson_upper(measured.errors, len(here))
        assert int(n) == len(here)
        assert coverage == text.percent(measured.coverage)
        assert jcw == text.percent(measured.jcw, 2)
        assert accuracy == text.percent(measured.accuracy_accepted)
        assert bound == text.percent_up(exact, 0.08)
        assert shown == ("✓ shown" if exact <= 0.08 else "✕ not shown")


def test_fresh_rows_by_group(band) -> None:
    draw = SyntheticBand(random_state=0)
    draw.sample(4500)  # what the model knows
    fresh, elsewhere = draw.sample(300), SyntheticBand(random_state=6).sample(500)
    listed = group_table(
        band,
        fold_rows(band, None, None),
        # in a group the model may be worse than guesses, which is no reason to doubt the labels
        {"first": (fresh.X, fresh.y), "second": elsewhere},
    )
    expected = band.certify(fresh.X, fresh.y)
    assert [row[:2] for row in listed.rows] == [("first", "300"), ("second", "500")]
    assert listed.rows[0][4] == text.percent_up(expected.upper_bound, 0.05)


def test_groups_that_cannot_be(model, rows) -> None:
    table, y = rows
    found = fold_rows(model, table, y)
    with pytest.raises(
        rn.errors.InvalidParameterError, match="`groups` of model_page needs `table`"
    ):
        group_table(model, fold_rows(model, None, None), "job")
    with pytest.raises(
        rn.errors.InvalidParameterError, match=r"be one of \['number', 'job'.*got 'sex'"
    ):
        group_table(model, found, "sex")
    with pytest.raises(
        rn.errors.InvalidParameterError, match=r"1 to 50 groups; got '\d+ groups'.*cut"
    ):
        group_table(model, found, "number")
    with pytest.raises(rn.errors.InvalidDataError, match="got 3 for 2500 rows"):
        group_table(model, found, ["a", "b", "c"])
    with pytest.raises(rn.errors.InvalidParameterError, match="got '0 groups'"):
        group_table(model, found, {})
    ranges = pd.cut(table["number"], [-9, 0, 9])
    assert len(group_table(model, found, ranges).rows) == 3  # and the missing ones
