from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from reliablenet.errors import ColumnWarning, InvalidDataError
from reliablenet.tables import TabularEncoder, columns, cut_folds


def mixed_table(n: int, seed: int) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "city": random.choice(["Oslo", "Riga", "Bonn", None], n),
            "age": random.integers(18, 90, n).astype(float),
            "member": random.uniform(size=n) < 0.3,
            "income": random.lognormal(10, 1, n),
        }
    )
    table.loc[random.uniform(size=n) < 0.2, "age"] = np.nan
    return table


def encode_by_hand(train: pd.DataFrame, other: pd.DataFrame) -> np.ndarray:
    """The matrix for `mixed_table`, in plain numpy: numbers first, then one column a city."""
    columns = []
    for name in ("age", "member", "income"):
        seen, new = (table[name].to_numpy(float) for table in (train, other))
        median = np.median(seen[~np.isnan(seen)])
        seen, new = (np.where(np.isnan(values), median, values) for values in (seen, new))
        columns.append((new - seen.mean()) / seen.std())
    cities = [city for city in train["city"] if isinstance(city, str)]
    names, counts = np.unique(cities, return_counts=True)
    filled = [city if isinstance(city, str) else names[counts.argmax()] for city in other["city"]]
    columns += [np.array([city == name for city in filled], float) for name in names]
    return np.column_stack(columns)


def test_matrix_equals_a_computation_in_plain_numpy():
    train, other = mixed_table(200, seed=0), mixed_table(50, seed=1)
    matrix = TabularEncoder().fit(train).transform(other)
    assert matrix.dtype == np.float32
    np.testing.assert_allclose(matrix, encode_by_hand(train, other), rtol=1e-6, atol=1e-6)


def test_missing_numbers_become_the_median_and_missing_categories_the_mode():
    train = pd.DataFrame({"x": [0.0, 1.0, 8.0, np.nan], "c": ["a", "b", "b", None]})
    encoder = TabularEncoder().fit(train)
    filled = pd.DataFrame({"x": [1.0], "c": ["b"]})
    missing = pd.DataFrame({"x": [np.nan], "c": [None]})
    assert np.array_equal(encoder.transform(missing), encoder.transform(filled))


def test_the_training_matrix_does_not_depend_on_any_other_row():
    table, y = mixed_table(300, seed=2), np.arange(300) % 2
    before = cut_folds(table, y, fold_sizes=(0.6, 0.2, 0.2), random_state=0).train.X
    changed = table.copy()
    others = ~table.index.isin(before.index)
    changed.loc[others, "age"] = 1e6
    changed.loc[others, "city"] = "Atlantis"
    after = cut_folds(changed, y, fold_sizes=(0.6, 0.2, 0.2), random_state=0).train.X
    first, second = (TabularEncoder().fit(rows).transform(rows) for rows in (before, after))
    assert first.tobytes() == second.tobytes()


def test_a_category_that_training_never_saw_becomes_all_zeros():
    encoder = TabularEncoder().fit(pd.DataFrame({"c": ["a", "b", "a"]}))
    assert np.array_equal(encoder.transform(pd.DataFrame({"c": ["z", "b"]})), [[0, 0], [0, 1]])


def test_columns_that_do_not_vary_are_dropped_and_may_then_hold_anything():
    train = pd.DataFrame(
        {
            "constant": [3, 3, 3],
            "constant or missing": [1.0, np.nan, 1.0],
            "absent": [np.nan, np.nan, np.nan],
            "one word": ["a", "a", None],
            "x": [1, 2, 3],
        }
    )
    encoder = TabularEncoder().fit(train)
    assert encoder.dropped_ == ["constant", "constant or missing", "absent", "one word"]
    assert encoder.numbers_ == ["x"]
    changed = train.assign(constant=np.inf, absent="text")
    assert np.array_equal(encoder.transform(changed), encoder.transform(train))


@pytest.mark.parametrize("dtype", [bool, "boolean", "int8", "Int64", "Float32", "float64", "uint8"])
def test_booleans_and_numbers_of_every_type_give_the_same_matrix(dtype):
    values = pd.Series([1, 0, 0, 1, 1, 0])
    matrix = TabularEncoder().fit(frame := values.astype(dtype).to_frame("x")).transform(frame)
    assert np.array_equal(matrix[:, 0], [1, -1, -1, 1, 1, -1])


@pytest.mark.parametrize("dtype", ["Int64", "Float64", "boolean"])
def test_missing_values_of_nullable_types_become_the_median(dtype):
    frame = pd.DataFrame({"x": pd.array([0, 1, 1, None], dtype=dtype)})
    matrix = TabularEncoder().fit(frame).transform(frame)
    assert matrix[3] == matrix[1]


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
@pytest.mark.parametrize("dtype", [object, "category", "string", "str"])
def test_text_of_every_type_gives_the_same_matrix(dtype, missing):
    values = pd.Series(["b", "a", "b", missing], dtype=object).astype(dtype)
    matrix = TabularEncoder().fit(frame := values.to_frame("c")).transform(frame)
    assert np.array_equal(matrix, [[0, 1], [1, 0], [0, 1], [0, 1]])


def test_a_categorical_column_of_numbers_is_one_hot_encoded():
    frame = pd.DataFrame({"c": pd.Categorical([10, 20, 10])})
    assert np.array_equal(TabularEncoder().fit(frame).transform(frame), [[1, 0], [0, 1], [1, 0]])


def test_integer_column_labels_are_names_and_not_positions():
    frame = pd.DataFrame({7: [1.0, 1.0, 1.0], 2: [0.0, 1.0, 2.0], 0: ["a", "b", "a"]})
    encoder = TabularEncoder().fit(frame)
    assert (encoder.dropped_, encoder.numbers_, encoder.categories_) == ([7], [2], [0])
    renamed = frame.rename(columns={7: "t", 2: "x", 0: "c"})
    expected = TabularEncoder().fit(renamed).transform(renamed)
    assert np.array_equal(encoder.transform(frame), expected)


def test_an_array_whose_first_column_is_dropped_keeps_the_others_in_place():
    X = np.column_stack([np.ones(4), [0.0, 0.0, 1.0, 1.0], [1.0, 2.0, 3.0, 4.0]])
    encoder = TabularEncoder().fit(X)
    assert encoder.dropped_ == [0]
    kept = TabularEncoder().fit(X[:, 1:]).transform(X[:, 1:])
    assert np.array_equal(encoder.transform(X), kept)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 255, 600])
def test_an_array_gives_the_bits_of_the_same_numbers_in_a_frame(dtype, n):
    """Arrays are standardised in pieces of rows, frames column by column."""
    rows = np.random.default_rng(0).lognormal(0, 3, (600, 4)).astype(dtype)
    rows[:, 2] = 1.0  # dropped
    encoder = TabularEncoder().fit(rows)
    frame = pd.DataFrame(rows[:n])
    np.testing.assert_array_equal(encoder.transform(rows[:n]), encoder.transform(frame))
    assert encoder.transform(rows[:n]).shape == (n, 3)
    gap = rows[:n].copy()
    gap[-1, 1] = np.nan
    np.testing.assert_array_equal(encoder.transform(gap), encoder.transform(pd.DataFrame(gap)))
    assert np.isfinite(encoder.transform(gap)).all()


def test_columns_are_found_by_name_whatever_their_order():
    frame = mixed_table(30, seed=3)
    encoder = TabularEncoder().fit(frame)
    assert np.array_equal(encoder.transform(frame[frame.columns[::-1]]), encoder.transform(frame))


def test_encoding_leaves_the_callers_table_as_it_was():
    frame = mixed_table(30, seed=4)
    copy = frame.copy(deep=True)
    TabularEncoder().fit(frame).transform(frame)
    pd.testing.assert_frame_equal(frame, copy)


def test_a_number_column_that_is_wholly_missing_at_prediction_is_imputed():
    encoder = TabularEncoder().fit(pd.DataFrame({"x": [0.0, 1.0, 5.0]}))
    median = encoder.transform(pd.DataFrame({"x": [1.0]}))
    assert np.array_equal(encoder.transform(pd.DataFrame({"x": [None]})), median)


@pytest.mark.parametrize(
    "values",
    [
        pd.date_range("2024-01-01", periods=3),
        pd.date_range("2024-01-01", periods=3, tz="UTC"),
        pd.to_timedelta([1, 2, 3], unit="D"),
    ],
)
def test_dates_and_durations_are_numbers_unless_they_are_not_asked_for(values):
    table = pd.DataFrame({"x": [1, 3, 2], "when": values})
    encoder = TabularEncoder().fit(table)
    assert (encoder.numbers_, encoder.dates_, encoder.dropped_) == (["x"], ["when"], [])
    days = encoder.transform(table)[:, 1]
    assert np.allclose(days, np.array([-1.0, 0.0, 1.0]) * 1.5**0.5)
    with pytest.warns(ColumnWarning, match=r"'when' is left out: it holds dates or durations"):
        without = TabularEncoder(dates=None).fit(table)
    assert (without.dates_, without.dropped_) == ([], ["when"])
    assert without.transform(table).shape == (3, 1)


@pytest.mark.parametrize(
    "texts",
    [
        ["2024-01-31", "2024-02-01 12:30", "2024-02-01T12:30:05.25Z"],
        ["31.1.2024", "1.2.24", "29.02.2024"],
        ["1/31/2024 1:05 PM", "2/1/2024 11:00 am", "12/24/2024 9:30 PM"],
    ],
)
def test_dates_written_as_text_are_dates_unless_they_are_not_asked_for(texts):
    table = pd.DataFrame({"x": [1, 3, 2], "when": texts})
    assert TabularEncoder().fit(table).dates_ == ["when"]
    with pytest.warns(ColumnWarning, match="'when' is left out: it holds dates"):
        assert TabularEncoder(dates=None).fit(table).dropped_ == ["when"]


def test_texts_of_which_some_are_no_dates_are_categories():
    table = pd.DataFrame({"c": ["2024-01-31", "never", "1.5"]})
    assert TabularEncoder().fit(table).categories_ == ["c"]


@pytest.mark.parametrize("numbers", [range(100), range(500, 400, -1), [i * i for i in range(20)]])
def test_numbers_that_count_the_rows_are_left_out_by_name(numbers):
    table = pd.DataFrame({"x": np.arange(len(numbers)) % 7, "no": numbers})
    with pytest.warns(ColumnWarning, match="'no' is left out: it rises from row to row"):
        encoder = TabularEncoder().fit(table)
    assert encoder.dropped_ == ["no"]
    assert encoder.reasons_ == [columns.ROW_NUMBER]


@pytest.mark.parametrize("name", ["id", "ID", "customer_id", "CustomerId", "row number", "uuid"])
def test_numbers_called_an_id_are_left_out_if_all_differ(name):
    shuffled = np.random.default_rng(0).permutation(100)
    table = pd.DataFrame({"x": np.arange(100) % 7, name: shuffled})
    with pytest.warns(ColumnWarning, match="is left out: it is called an id"):
        assert TabularEncoder().fit(table).dropped_ == [name]
    table[name] = shuffled // 2  # as with an id of a group
    assert TabularEncoder().fit(table).dropped_ == []


@pytest.mark.parametrize("name", ["paid", "grid", "amount", "width"])
def test_shuffled_numbers_under_other_names_are_features(name):
    table = pd.DataFrame({name: np.random.default_rng(0).permutation(100)})
    assert TabularEncoder().fit(table).numbers_ == [name]


def test_rising_numbers_are_features_in_an_array_in_few_rows_and_with_fractions():
    assert TabularEncoder().fit(np.arange(100.0)[:, None]).numbers_ == [0]
    assert TabularEncoder().fit(pd.DataFrame({"x": range(19)})).numbers_ == ["x"]
    assert TabularEncoder().fit(pd.DataFrame({"x": np.arange(100) / 3})).numbers_ == ["x"]


def test_complex_numbers_are_refused_by_name():
    with pytest.raises(InvalidDataError, match="Column 'z' holds complex numbers"):
        TabularEncoder().fit(pd.DataFrame({"z": [1j, 2j, 3j]}))


def test_infinity_is_refused_by_column_and_row_in_training_and_at_prediction():
    good = pd.DataFrame({"x": [1.0, 2.0, 3.0]})
    bad = pd.DataFrame({"x": [1.0, -np.inf, 3.0]})
    message = "Column 'x' must hold finite numbers or missing values; got -inf in row 1"
    with pytest.raises(InvalidDataError, match=message):
        TabularEncoder().fit(bad)
    with pytest.raises(InvalidDataError, match=message):
        TabularEncoder().fit(good).transform(bad)


@pytest.mark.parametrize("dtype", [object, "str", "category"])
def test_a_number_column_that_turns_to_text_is_refused_by_name(dtype):
    encoder = TabularEncoder().fit(pd.DataFrame({"age": [1.0, 2.0, 3.0]}))
    texts = pd.DataFrame({"age": pd.Series(["old", "young"], dtype=dtype)})
    with pytest.raises(InvalidDataError, match=r"Column 'age' held numbers.*'old'.*to_numeric"):
        encoder.transform(texts)


def test_a_number_column_that_turns_to_dates_is_refused_by_name():
    encoder = TabularEncoder().fit(pd.DataFrame({"age": [1.0, 2.0, 3.0]}))
    with pytest.raises(InvalidDataError, match="Column 'age'"):
        encoder.transform(pd.DataFrame({"age": pd.to_datetime(["2024-01-01"])}))


def test_numbers_too_large_to_standardise_are_refused_without_other_warnings():
    encoder = TabularEncoder().fit(pd.DataFrame({"x": [0.0, 1.0, 2.0]}))
    with pytest.raises(InvalidDataError, match="Row 1 holds a number too large"):
        encoder.transform(pd.DataFrame({"x": [1.0, 1e300]}))


def test_training_numbers_too_large_to_standardise_are_refused_without_other_warnings():
    frame = pd.DataFrame({"x": [0.0, 1.0, 1e300]})
    with pytest.raises(InvalidDataError, match="too large"):
        TabularEncoder().fit(frame).transform(frame)


@pytest.mark.parametrize("names", [["a", "a"], [1, "1"]])
def test_column_names_that_read_the_same_are_refused(names):
    table = pd.DataFrame(np.arange(6).reshape(3, 2), columns=pd.Index(names, dtype=object))
    with pytest.raises(InvalidDataError, match=f"'{names[1]}' occur more than once"):
        TabularEncoder().fit(table)


def test_a_table_in_which_nothing_varies_is_refused():
    with pytest.raises(
        InvalidDataError, match=r"None of the columns can be learned from \(3 training rows.*'x'"
    ):
        TabularEncoder().fit(pd.DataFrame({"x": [1, 1, 1]}))


def test_text_that_names_its_row_is_left_out_by_name():
    table = pd.DataFrame({"x": [1, 2, 3] * 10, "who": [f"customer {i}" for i in range(30)]})
    with pytest.warns(
        ColumnWarning, match=r"'who' is left out: it is text with 30 different values"
    ):
        encoder = TabularEncoder().fit(table)
    new = pd.DataFrame({"x": [1], "who": [["anything"]]})
    assert encoder.transform(new).shape == (1, 1)


def test_text_with_many_values_is_left_out_from_a_thousand_on():
    many = pd.DataFrame({"x": [1, 2] * 2002, "town": [f"town {i % 1001}" for i in range(4004)]})
    with pytest.warns(ColumnWarning, match=r"'town' is left out: .*1001 .*group its values"):
        TabularEncoder().fit(many)
    few = many[many["town"] != "town 1000"]
    assert TabularEncoder().fit(few).transform(few.head(2)).shape == (2, 1001)


def test_numbers_with_words_among_them_are_left_out_with_the_remedy():
    table = pd.DataFrame({"x": [1, 2] * 20, "size": ["unknown", *(f"{i}.5" for i in range(39))]})
    with pytest.warns(
        ColumnWarning, match=r"'size' .* are numbers, but 'unknown' is not. To use it"
    ):
        TabularEncoder().fit(table)


def test_numbers_written_as_text_at_prediction_are_numbers():
    encoder = TabularEncoder().fit(pd.DataFrame({"x": [1.0, 2.0, 12.0]}))
    texts = pd.DataFrame({"x": pd.Series(["012", None, "1e0"], dtype="str")})
    expected = encoder.transform(pd.DataFrame({"x": [12.0, np.nan, 1.0]}))
    np.testing.assert_array_equal(encoder.transform(texts), expected)


def test_errors_count_the_rows_of_a_longer_table():
    encoder = TabularEncoder().fit(pd.DataFrame({"x": [1.0, 2.0, 4.0]}))
    batch = pd.DataFrame({"x": ["3", "old"]}, index=pd.RangeIndex(1000, 1002))
    with pytest.raises(InvalidDataError, match="it now holds 'old' in row 1001"):
        encoder.transform(batch)


def test_containers_in_a_column_are_refused_by_name():
    table = pd.DataFrame({"x": [1, 2], "tags": [["a"], ["b", "c"]]})
    with pytest.raises(InvalidDataError, match=r"Column 'tags' holds values .* such as \['a'\]"):
        TabularEncoder().fit(table)


@pytest.mark.parametrize("names", [["a", "b"], [5, 7]])
def test_rows_without_names_are_taken_by_position(names):
    table = pd.DataFrame(np.arange(8.0).reshape(4, 2) ** 2, columns=names)
    encoder = TabularEncoder().fit(table)
    np.testing.assert_array_equal(encoder.transform(table.to_numpy()), encoder.transform(table))


def test_named_rows_are_taken_by_position_if_fit_saw_no_names():
    rows = np.arange(8.0).reshape(4, 2) ** 2
    encoder = TabularEncoder().fit(rows)
    named = pd.DataFrame(rows, columns=["a", "b"])
    np.testing.assert_array_equal(encoder.transform(named), encoder.transform(rows))


def test_named_rows_are_taken_by_name_in_any_order():
    table = pd.DataFrame(np.arange(8.0).reshape(4, 2) ** 2, columns=[5, 7])
    encoder = TabularEncoder().fit(table)
    np.testing.assert_array_equal(encoder.transform(table[[7, 5]]), encoder.transform(table))
    with pytest.raises(InvalidDataError, match="are missing: 7"):
        encoder.transform(table[[5]])
