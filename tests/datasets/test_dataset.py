from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from reliablenet.datasets.dataset import Dataset, LazyFolds
from reliablenet.errors import InvalidDataError, InvalidParameterError
from reliablenet.tables.folds import Fold

ROWS = 400


@pytest.fixture
def loans() -> pd.DataFrame:
    random = np.random.default_rng(0)
    age = random.integers(18, 80, ROWS)
    return pd.DataFrame(
        {
            "number": np.arange(ROWS),
            "age": age,
            "years employed": random.integers(0, 30, ROWS),
            "region": random.choice(["north", "south", "east"], ROWS),
            "young": age < 30,
            "default": random.choice(["no", "yes"], ROWS, p=[0.8, 0.2]),
        },
        index=[f"loan {i}" for i in range(ROWS)],
    )


def rows_of(fold: Fold) -> set[str]:
    return set(fold.X.index)


def test_folds_hold_every_row_once_and_their_labels(loans):
    dataset = Dataset.from_frame(loans, "default", name="loans")
    folds = list(vars(dataset.folds).values())
    assert dataset.name == "loans"
    assert sorted(row for fold in folds for row in fold.X.index) == sorted(loans.index)
    for fold in folds:
        assert np.array_equal(fold.y, loans.loc[fold.X.index, "default"])
        assert fold.X.columns.tolist() == loans.columns.drop("default").tolist()
    assert dataset.shifts == dataset.groups == {}
    assert dataset.info == {"rows": ROWS, "source_rows": ROWS, "target": "default"}


def test_fold_sizes_budget_and_seed_are_those_asked_for(loans):
    thirds = Dataset.from_frame(loans, "default", fold_sizes=(0.5, 0.25, 0.25)).folds
    assert [len(fold) for fold in vars(thirds).values()] == [200, 100, 100]
    wide, narrow = (
        len(Dataset.from_frame(loans, "default", alpha=alpha).folds.certification)
        for alpha in (0.6, 0.05)
    )
    assert wide < narrow
    first, again, other = (
        Dataset.from_frame(loans, "default", random_state=seed).folds.train.X.index
        for seed in (1, 1, 2)
    )
    assert first.equals(again)
    assert not first.equals(other)


@pytest.mark.parametrize("shift", ["age < 30", "young", "`years employed` < 3 and age < 40"])
def test_rows_of_a_shift_are_in_no_fold(loans, shift):
    dataset = Dataset.from_frame(loans, "default", shift=shift)
    shifted = dataset.shifts[shift]
    assert rows_of(shifted) == set(loans.query(shift).index)
    assert np.array_equal(shifted.y, loans.loc[shifted.X.index, "default"])
    in_folds = [row for fold in vars(dataset.folds).values() for row in fold.X.index]
    assert sorted(in_folds) == sorted(set(loans.index) - rows_of(shifted))


def test_a_boolean_column_that_marks_the_shift_is_no_predictor(loans):
    dataset = Dataset.from_frame(loans, "default", shift={"the young": "young"})
    assert "young" not in dataset.folds.train.X
    assert "young" not in dataset.shifts["the young"].X
    assert "young" in Dataset.from_frame(loans, "default", shift="age < 30").folds.train.X


def test_several_shifts_may_overlap(loans):
    queries = {"young": "age < 30", "south": "region == 'south'"}
    dataset = Dataset.from_frame(loans, "default", shift=queries, drop="young")
    assert {name: rows_of(fold) for name, fold in dataset.shifts.items()} == {
        name: set(loans.query(query).index) for name, query in queries.items()
    }
    train = dataset.folds.train.X
    assert train["age"].min() >= 30
    assert "south" not in set(train["region"])


@pytest.mark.parametrize("dtype", ["Int64", "Float64", float])
def test_a_row_whose_value_is_missing_is_not_in_the_shift(loans, dtype):
    loans["age"] = loans["age"].astype(dtype)
    loans.loc["loan 0", "age"] = None
    dataset = Dataset.from_frame(loans, "default", shift="age < 30")
    assert "loan 0" not in rows_of(dataset.shifts["age < 30"])


def test_dropped_columns_are_no_predictors_but_queries_may_use_them(loans):
    dataset = Dataset.from_frame(
        loans, "default", shift="number < 100", groups="region", drop=["number", "region"]
    )
    assert dataset.folds.train.X.columns.tolist() == ["age", "years employed", "young"]
    assert rows_of(dataset.shifts["number < 100"]) == set(loans.index[:100])
    assert list(dataset.groups) == ["east", "north", "south"]


def test_groups_of_a_column_lie_in_the_shift_and_the_column_stays_a_predictor(loans):
    dataset = Dataset.from_frame(loans, "default", shift="age < 30", groups="region")
    young = loans[loans["age"] < 30]
    for name, fold in dataset.groups.items():
        assert rows_of(fold) == set(young.index[young["region"] == name])
        assert np.array_equal(fold.y, loans.loc[fold.X.index, "default"])
        assert "region" in fold.X


def test_without_a_shift_groups_lie_in_the_certification_fold(loans):
    dataset = Dataset.from_frame(loans, "default", groups="region")
    together = set().union(*map(rows_of, dataset.groups.values()))
    assert together == rows_of(dataset.folds.certification)


def test_groups_by_query_may_overlap(loans):
    queries = {"over 40": "age > 40", "over 60": "age > 60"}
    dataset = Dataset.from_frame(loans, "default", groups=queries)
    certified = loans.loc[dataset.folds.certification.X.index]
    for name, query in queries.items():
        assert rows_of(dataset.groups[name]) == set(certified.query(query).index)


@pytest.mark.parametrize(
    ("values", "names"),
    [
        (pd.Categorical(["low", "high"] * 200, ["low", "middle", "high"]), ["low", "high"]),
        ([10, 9] * 200, ["9", "10"]),
        ([True, False] * 200, ["False", "True"]),
        ([1.5, None] * 200, ["1.5"]),
        (np.array(["b", None] * 200, object), ["b"]),
        (np.array(["b", 7] * 200, object), ["7", "b"]),
    ],
)
def test_groups_come_in_the_order_of_categories_or_sorted_without_missing_values(
    loans, values, names
):
    dataset = Dataset.from_frame(loans.assign(group=values), "default", groups="group")
    assert list(dataset.groups) == names
    for name, fold in dataset.groups.items():
        assert {str(value) for value in fold.X["group"]} == {name}


def test_an_index_that_repeats_makes_no_difference(loans):
    expected = Dataset.from_frame(loans, "default", shift="young", groups="region")
    dataset = Dataset.from_frame(
        loans.set_axis([0] * ROWS), "default", shift="young", groups="region"
    )
    assert np.array_equal(dataset.folds.train.X["number"], expected.folds.train.X["number"])
    assert np.array_equal(dataset.groups["east"].X["number"], expected.groups["east"].X["number"])


def test_the_callers_table_stays_as_it_was(loans):
    copy = loans.copy(deep=True)
    Dataset.from_frame(loans, "default", shift="young", groups="region", drop="number")
    pd.testing.assert_frame_equal(loans, copy)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"target": "defualt"}, r"`target` .* name a column; got 'defualt'. The frame has .*'age'"),
        ({"drop": ["age", "sex"]}, r"`drop` .* name a column; got 'sex'"),
        ({"shift": "age <"}, r"`shift` .* query such as 'age < 30'.*got 'age <'.*pandas says"),
        ({"shift": "salary < 3"}, r"got 'salary < 3'. pandas says: name 'salary' is not defined"),
        ({"shift": "age"}, r"boolean column; got 'age'. It gives int64"),
        ({"shift": "age + 1"}, r"got 'age \+ 1'. It gives int64, not true or false"),
        ({"shift": "age = 1"}, r"got 'age = 1'. It gives DataFrame"),
        ({"shift": "1 == 1"}, r"got '1 == 1'. It gives bool"),
        ({"shift": {"young": 30}}, r"`shift` .* got 30"),
        ({"shift": {"young": ["age"]}}, r"`shift` .* got \['age'\]"),
        ({"shift": "age < 0"}, r"some of the 400 rows .* got 'age < 0'. It takes none"),
        ({"shift": "age > 0"}, r"leave some for the folds; got 'age > 0'. It takes all"),
        ({"shift": {"a": "age < 30", "b": "age >= 30"}}, r"leave some .* got 'b'. It takes all"),
        ({"groups": "job"}, r"`groups` .* a column .* mapping .* got 'job'. The frame has"),
        ({"groups": {"old": "age > 99"}}, r"`groups` .* each take some .* got \['old'\]"),
        ({"groups": {"old": "age >"}}, r"`groups` .* be a query .* got 'age >'"),
        ({"groups": {}}, r"`groups` .* each take some .* got \{\}"),
        ({"random_state": -1}, r"`random_state` of Dataset.from_frame"),
        ({"fold_sizes": (0.5, 0.5)}, r"`fold_sizes`"),
    ],
)
def test_a_wrong_setting_is_refused_with_what_it_may_be(loans, settings, message):
    with pytest.raises(InvalidParameterError, match=message):
        Dataset.from_frame(loans, **{"target": "default", **settings})


def test_groups_of_a_column_without_values_are_refused(loans):
    with pytest.raises(InvalidParameterError, match=r"`groups` .* got 'empty'"):
        Dataset.from_frame(loans.assign(empty=np.nan), "default", groups="empty")


@pytest.mark.parametrize("frame", [np.zeros((9, 2)), {"default": [1]}, "loans.csv", None])
def test_what_is_no_frame_is_refused_by_type(frame):
    with pytest.raises(InvalidDataError, match=f"DataFrame; got {type(frame).__name__}.*read_csv"):
        Dataset.from_frame(frame, "default")


def test_a_target_with_missing_values_is_refused_with_their_number(loans):
    loans.loc[["loan 7", "loan 9"], "default"] = None
    with pytest.raises(InvalidDataError, match=r"missing in 2 of 400 rows, first in row 7.*dropna"):
        Dataset.from_frame(loans, "default")


@pytest.mark.parametrize("names", [["x", "x", "y"], [1, "1", "y"]])
def test_columns_of_the_same_name_are_refused(names):
    table = pd.DataFrame(np.zeros((9, 3)), columns=pd.Index(names, dtype=object))
    with pytest.raises(InvalidDataError, match=f"'{names[1]}' occur more than once"):
        Dataset.from_frame(table, "y")


def test_a_table_without_predictors_is_refused(loans):
    with pytest.raises(InvalidDataError, match="needs a column to predict 'default' from"):
        Dataset.from_frame(
            loans[["young", "number", "default"]], "default", shift="young", drop="number"
        )


def test_lazy_folds_are_made_when_they_are_asked_for_and_not_before():
    made = []

    def make() -> Fold:
        made.append(1)
        return Fold(np.zeros((2, 1)), np.zeros(2))

    folds = LazyFolds({0.1: make, 0.3: make})
    assert list(folds) == [0.1, 0.3]
    assert len(folds) == 2
    assert 0.1 in folds
    assert 0.2 not in folds
    assert made == []
    assert len(folds[0.3]) == 2
    assert made == [1]
