"""Rows of a request as columns: quick for usual values, and the same for any others."""

import warnings

import numpy as np
import pandas as pd
import pytest
from contract_helpers import fit_quietly
from serving import make_rows, records

import reliablenet as rn
from reliablenet.serve.columns import Columns, _Levels
from reliablenet.serve.errors import RequestError
from reliablenet.serve.request_rows import join
from reliablenet.tables.column_arrays import ColumnArrays


@pytest.fixture(scope="module")
def columns(model):
    return Columns(model)


def changed(n=6, **values):
    rows = records(make_rows(n, seed=3)[0])
    for name, some in values.items():
        for row, value in zip(rows, some, strict=False):
            row[name] = value
    return rows


@pytest.mark.parametrize(
    "numbers",
    [[1.5, 2], [1.5, True, 0], [None, 2.5], [2**63, -(2**70)], [1e308, 1], [-0.0, 5e-324]],
)
def test_numbers_are_read_to_the_bit(columns, numbers):
    found = columns.from_records(changed(x0=numbers)).arrays["x0"][: len(numbers)]
    expected = np.array([np.nan if value is None else float(value) for value in numbers])
    assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("1.5", "got text in row 4"),
        ([1.0], "got a list in row 4"),
        ({"a": 1}, "got an object in row 4"),
        (10**400, "too large a number in row 4"),
        (-1.75e308, "too large a number in row 4"),
    ],
)
@pytest.mark.parametrize("first", [0.0, None])
def test_what_is_no_number_is_named_whatever_stands_before_it(columns, value, words, first):
    with pytest.raises(RequestError, match=words) as caught:
        columns.from_records(changed(x0=[first, 0.0, 0.0, 0.0, value]))
    assert caught.value.column == "x0"


@pytest.mark.parametrize(
    ("value", "words"), [([1], "got a list in row 2"), (10**400, "too large a number in row 2")]
)
def test_what_is_no_category_is_named(columns, value, words):
    with pytest.raises(RequestError, match=words) as caught:
        columns.from_records(changed(colour=["red", None, value]))
    assert caught.value.column == "colour"


@pytest.mark.parametrize(
    "colours",
    [["red", "blue"], ["red", None], ["red", "mauve"], ["red", "mauve", None], ["red", 1, 1.0]],
)
def test_categories_are_decided_as_those_of_a_table(columns, model, colours):
    rows = changed(len(colours), colour=colours)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = model.decide(columns.table(columns.from_records(rows)))
        expected = model.decide(pd.DataFrame(rows).astype({"colour": object}))
    assert found.confidence.tobytes() == expected.confidence.tobytes()
    assert found.odd.tolist() == expected.odd.tolist()


@pytest.mark.parametrize("rows", [1, 2, 40, 1200])
@pytest.mark.parametrize("oddity", ["none", "gap", "far", "unit", "gone"])
def test_rows_as_they_were_read_are_decided_as_those_of_a_table(columns, model, rows, oddity):
    """Without a data frame: the same bits, and the same is odd."""
    table = make_rows(rows, seed=4)[0]
    if oddity in ("gap", "gone"):
        for name in ("x1", "colour"):
            table.loc[slice(0, 0 if oddity == "gap" else rows), name] = np.nan
    table["x2"] *= {"far": 1e6, "unit": 100.0}.get(oddity, 1.0)
    lenient = Columns(model, allow_missing=["x1", "colour"])
    read = lenient.table(lenient.from_records(records(table)))
    assert isinstance(read, ColumnArrays)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = model.decide(read, allow_missing=["x1", "colour"])
        expected = model.decide(table, allow_missing=["x1", "colour"])
    assert found.confidence.tobytes() == expected.confidence.tobytes()
    assert found.label.tolist() == expected.label.tolist()
    assert found.oddities == expected.oddities


def test_what_needs_a_table_gets_one(columns, model):
    """A category that the model does not know; a rule around the model, which hands rows on."""
    assert isinstance(columns.table(columns.from_records(changed())), ColumnArrays)
    unknown = columns.table(columns.from_records(changed(colour=["mauve"])))
    assert isinstance(unknown, pd.DataFrame)
    rule = rn.CertifiedThreshold(model, alpha=0.1)
    around = Columns(fit_quietly(rule, *make_rows(400, seed=5)))
    assert isinstance(around.table(around.from_records(changed())), pd.DataFrame)


def test_requests_with_known_and_unknown_categories_are_joined(columns, model):
    """What one request has as places among the levels, another may have as texts."""
    parts = [changed(colour=["red", "blue"]), changed(colour=["mauve"]), changed(colour=[None])]
    read = [columns.from_records(rows) for rows in parts]
    joined = columns.table(join(read))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        alone = [model.decide(columns.table(rows)).confidence for rows in read]
        assert model.decide(joined).confidence.tobytes() == np.concatenate(alone).tobytes()


def test_many_levels_have_places_of_their_own():
    """Places among more than 127 levels need more than a byte."""
    names = [f"level {i}" for i in range(300)]
    levels = _Levels(names)
    asked = [*names[::-1], None]
    found = levels.column(levels.codes(asked))
    assert [None if value is np.nan else value for value in found.tolist()] == asked
    assert levels.codes([*asked, "other"]) is None


def test_a_gap_is_refused_where_it_is_in_every_row(columns, model):
    for name in ("x1", "colour"):
        with pytest.raises(RequestError, match="null in every row") as caught:
            columns.from_records(changed(**{name: [None] * 6}))
        assert caught.value.column == name
        columns.from_records(changed(**{name: [None] * 5}))
        Columns(model, allow_missing=[name]).from_records(changed(**{name: [None] * 6}))
