"""What is odd in new rows: counted by column, marked by row, and the same for a row alone or among many."""

import datetime

import numpy as np
import pandas as pd
import pytest

from reliablenet.errors import InvalidDataError
from reliablenet.tables.describing import cut_cells, describe, describe_rows, widen
from reliablenet.tables.odd_rows import find_oddities, with_codes
from reliablenet.tables.oddities import Oddities
from reliablenet.tables.profile import ColumnProfile, InputProfile


def people(n, seed=0):
    random = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": random.integers(18, 80, n),
            "height": random.normal(170.0, 9.0, n),
            "income": random.lognormal(10.0, 0.8, n),
            "job": random.choice(["clerk", "cook", "nurse"], n, p=[0.5, 0.3, 0.2]),
            "phone": np.where(random.random(n) < 0.3, None, "yes"),
            "member": random.random(n) < 0.4,
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(random.integers(0, 900, n), "D"),
        }
    )


@pytest.fixture(scope="module")
def profile():
    return describe_rows(people(2000))


def found(profile, rows):
    return {(one.column, one.what): one for one in find_oddities(profile, rows).found}


def test_fresh_rows_of_the_same_source_are_not_odd(profile):
    batches = [find_oddities(profile, people(n, s)) for s in range(40) for n in (1, 2, 7, 40, 300)]
    seen = Oddities.joined(batches)
    assert seen.odd.mean() < 1e-3, str(seen)  # a long tail may bring one
    assert {one.what for one in seen.found} <= {"outside"}


def test_a_row_is_judged_alone_as_among_many(profile):
    rows = people(300, 3)
    rows.loc[::7, "age"] = 900
    rows.loc[::11, "job"] = "pilot"
    rows.loc[5::13, "height"] = np.nan
    together = find_oddities(profile, rows).odd
    alone = [find_oddities(profile, rows.iloc[i : i + 1]).odd[0] for i in range(len(rows))]
    assert together.tolist() == alone
    assert together.sum() > 60


def test_each_kind_of_oddity_is_counted(profile):
    rows = people(200, 4)
    rows.loc[:9, "age"] = -3
    rows.loc[20:24, "job"] = "pilot"
    rows.loc[30:31, "height"] = np.nan
    seen = found(profile, rows)
    counts = {key: one.rows for key, one in seen.items()}
    assert counts == {("age", "outside"): 10, ("job", "unseen"): 5, ("height", "missing"): 2}
    assert find_oddities(profile, rows).odd.sum() == 17
    text = str(find_oddities(profile, rows))
    assert "17 of 200 rows are odd" in text
    one = Oddities(np.arange(69) == 3, tuple(seen.values()))
    assert str(one).startswith("1 of 69 rows is odd,")
    none = Oddities(np.zeros(69, bool), tuple(seen.values()))
    assert str(none).startswith("No row is odd by itself, but all 69 together are, measured by")
    assert "age: 10 values far outside 0 to 110, such as -3, -3, -3" in text
    assert "'pilot'" in text


@pytest.mark.parametrize("factor", [2.54, 10.0, 100.0, 1000.0, 1 / 2.54, 1 / 10, 1 / 1000])
@pytest.mark.parametrize("column", ["age", "height"])
def test_another_unit_is_seen(profile, factor, column):
    rows = people(100, 5)
    rows[column] = rows[column] * factor
    detail = found(profile, rows)[column, "factor"].detail
    size = max(factor, 1 / factor)
    assert ("large" if factor > 1 else "small") in detail
    said = float(detail.split()[2])
    assert said == pytest.approx(size, rel=0.3 if column == "age" else 1e-9)
    assert not found(profile, people(100, 6)).keys()


def test_a_shift_is_not_called_a_unit(profile):
    rows = people(200, 7)
    rows["height"] += 170.0
    assert ("height", "factor") not in found(profile, rows)


def test_a_column_that_became_constant(profile):
    rows = people(100, 8).assign(age=40, job="cook", member=True)
    assert {("age", "constant"), ("job", "constant"), ("member", "constant")} == found(
        profile, rows
    ).keys()
    assert not found(profile, rows.iloc[:1])
    assert not found(profile, rows.iloc[:2])  # two cooks are no wonder


def test_a_column_that_became_empty_is_refused_unless_allowed(profile):
    rows = people(50, 9).assign(age=np.nan)
    seen = find_oddities(profile, rows)
    assert seen.empty == ["age"]
    with pytest.raises(
        InvalidDataError, match=r"Column 'age' is missing in all 50 rows.*allow_missing"
    ):
        seen.refuse_empty()
    seen.refuse_empty(["age"])
    alone = find_oddities(profile, rows.iloc[:1])
    alone.refuse_empty()
    assert alone.odd.tolist() == [True]
    both = find_oddities(profile, rows.assign(height=None))
    with pytest.raises(InvalidDataError, match=r"Columns 'age', 'height' are.*never were"):
        both.refuse_empty()
    sparse = find_oddities(profile, people(50, 9).assign(phone=None))  # it was missing before
    sparse.refuse_empty()
    assert [(one.column, one.what) for one in sparse.found] == [("phone", "constant")]


def test_types_that_changed(profile):
    rows = people(60, 10)
    texts = found(profile, rows.assign(age=rows["age"].astype(str)))
    assert texts.keys() == {("age", "type")}
    assert "text where training had numbers" in texts["age", "type"].detail
    assert not find_oddities(profile, rows.assign(age=rows["age"].astype(str))).odd.any()
    days = found(profile, rows.assign(age=pd.Timestamp("2020-01-01")))
    assert ("age", "type") in days
    assert find_oddities(profile, rows.assign(age=pd.Timestamp("2020-01-01"))).odd.all()
    numbers = found(profile, rows.assign(job=range(60)))
    assert numbers.keys() == {("job", "type"), ("job", "unseen")}
    assert ("since", "type") in found(profile, rows.assign(since=3.0))
    assert not found(profile, rows.assign(age=rows["age"].astype(float)))  # whole numbers as floats
    assert not found(profile, rows.assign(member=rows["member"].astype(int)))
    assert not found(profile, rows.assign(job=rows["job"].astype("category")))


def test_categories_written_as_numbers():
    codes = pd.DataFrame({"zone": pd.Series(["1", "2"] * 100, dtype=object)})
    profile = describe_rows(codes)
    assert found(profile, pd.DataFrame({"zone": [1, 2, 1]})).keys() == {("zone", "type")}
    floats = found(profile, pd.DataFrame({"zone": [1.0, 2.0]}))
    assert floats["zone", "unseen"].rows == 2


def test_columns_may_come_in_any_order_and_with_others(profile):
    rows = people(40, 11)
    mixed = rows[rows.columns[::-1]].assign(more=1)
    assert not find_oddities(profile, mixed)
    assert find_oddities(profile, mixed).profiled


@pytest.mark.parametrize(
    "rows",
    [
        people(3).assign(
            age=np.nan, height=np.nan, income=np.nan, job=None, member=None, since=None
        ),
        people(3).assign(job=[datetime.date(2020, 1, 1), 3, [1]]),
        people(3).assign(age=["x", None, "3"]),
        people(3).assign(age=[np.inf, -np.inf, 4]),
        people(3).assign(since=["a", "b", None]),
        people(1).drop(columns="phone").assign(phone=pd.NA),
        people(4).astype({"age": "Int64", "job": "string"}),
    ],
)
def test_strange_rows_are_read(profile, rows):
    seen = find_oddities(profile, rows)
    assert len(seen) == len(rows)
    assert seen.to_dict()["odd"] == int(seen.odd.sum())


def test_rows_that_cannot_be_compared_are_said_to_be_so(profile):
    assert not find_oddities(profile, np.zeros((4, 3))).profiled
    assert not find_oddities(None, np.zeros((4, 3))).profiled
    assert describe_rows(["a text", "another"]) is None
    assert describe_rows(np.zeros((0, 3))) is None
    assert describe_rows(np.zeros((5, 3000))) is None


def test_arrays_and_frames_say_the_same():
    random = np.random.default_rng(0)
    rows = random.normal(size=(800, 6)) * [1, 5, 0.01, 100, 1, 1]
    profile = describe_rows(rows)
    new = random.normal(size=(400, 6)) * [1, 5, 0.01, 100, 1, 1]
    new[:5, 1], new[7, 2] = 1e4, np.nan
    new[:, 4] = 0.5
    ours, frame = find_oddities(profile, new), find_oddities(profile, pd.DataFrame(new))
    assert ours.found == frame.found
    assert (ours.odd == frame.odd).all()
    assert {(one.column, one.what) for one in ours.found} == {
        (1, "outside"), (2, "missing"), (4, "constant"),
    }  # fmt: skip


@pytest.mark.parametrize("place", [0, 1_499, 4_096, 6_000, 6_999])
@pytest.mark.parametrize("value", [np.nan, 1e6, -1e6])
def test_one_odd_number_is_found_wherever_it_stands(place, value):
    """Rows of an array are compared in blocks; none falls between two of them."""
    random = np.random.default_rng(0)
    profile = describe_rows(random.normal(size=(500, 11)))
    rows = random.normal(size=(7_000, 11)).clip(-2.0, 2.0)
    assert not find_oddities(profile, rows).odd.any()
    rows[place, 7] = value
    seen = find_oddities(profile, rows)
    assert seen.odd.nonzero()[0].tolist() == [place]
    assert [one.column for one in seen.found] == [7]
    assert find_oddities(profile, rows.astype(np.float32)).odd.tolist() == seen.odd.tolist()


@pytest.mark.parametrize("names", [[0, 1, 2], [1, 2, 0], [2, 3, 1], ["a", "b", "c"]])
def test_one_row_is_taken_by_name_or_by_position_as_many_are(names):
    """Of a frame that lacks a name, all columns go by position; with all names, in any order, by name."""
    random = np.random.default_rng(0)
    profile = describe_rows(random.normal([0.0, 100.0, -100.0], 1.0, (500, 3)))
    row = pd.DataFrame([[0.0, 100.0, -100.0]], columns=names)
    one, two = find_oddities(profile, row), find_oddities(profile, pd.concat([row, row]))
    assert one.odd[0] == two.odd[0] == (names == [1, 2, 0])


def test_no_rows_are_not_odd(profile):
    for rows in (people(5).iloc[:0], people(5)[["job"]].iloc[:0]):
        seen = find_oddities(profile, rows)
        assert (len(seen), seen.found, seen.profiled) == (0, (), True)


@pytest.mark.parametrize("kind", ["str", object])
def test_levels_that_no_row_has_are_nothing_odd(profile, kind):
    """The type of a column may name levels that are not there, and rare ones that are."""
    rows = people(2_000, seed=3)
    levels = pd.Index(["clerk", "cook", "nurse", "pilot", "queen"], dtype=kind)
    rows["job"] = pd.Categorical(rows["job"].astype(object), levels)
    assert not find_oddities(profile, rows).odd.any()
    rows.loc[[4, 900], "job"] = "queen"
    seen = find_oddities(profile, rows)
    assert seen.odd.nonzero()[0].tolist() == [4, 900]
    assert [(one.what, one.rows) for one in seen.found] == [("unseen", 2)]
    assert "'queen'" in seen.found[0].detail
    assert "'pilot'" not in seen.found[0].detail
    rows["job"] = pd.Categorical(["cook"] * 2_000, levels)
    assert [one.what for one in find_oddities(profile, rows).found] == ["constant"]


def test_images_that_came_as_bytes():
    random = np.random.default_rng(0)
    images = random.random((200, 3, 8, 8)).astype(np.float32)
    profile = describe_rows(images)
    assert profile.layout == "image"
    assert len(profile.columns) == 6
    assert not find_oddities(profile, random.random((50, 3, 8, 8)))
    assert find_oddities(profile, 255 * images[:50]).odd.all()


def test_batches_are_joined(profile):
    one = people(30, 12)
    one.loc[0, "job"] = "pilot"
    two = people(20, 13)
    two.loc[:2, "job"] = "smith"
    both = Oddities.joined([find_oddities(profile, rows) for rows in (one, two)])
    assert len(both) == 50
    assert [(o.column, o.what, o.rows) for o in both.found] == [("job", "unseen", 4)]
    assert "4 values" in str(both)


def test_texts_read_once_are_the_same_rows(profile):
    rows = people(1500, 14)
    rows.loc[3, "job"] = "pilot"
    coded = with_codes(profile, rows)
    assert isinstance(coded["job"].dtype, pd.CategoricalDtype)
    assert coded["job"].astype(object).equals(rows["job"].astype(object))
    assert find_oddities(profile, coded).found == find_oddities(profile, rows).found
    assert with_codes(profile, rows[:10]) is not None
    assert with_codes(None, rows) is rows


def test_the_profile_holds_no_value_of_a_single_row():
    rows = people(500).astype({"income": float})
    rows.loc[0, "income"], rows.loc[1, "job"] = 9_876_543.21, "astronaut"
    text = describe_rows(rows).to_json()
    assert "astronaut" not in text
    assert "9876543" not in text
    kept = describe(rows["income"], "income")
    values = set(rows["income"])
    assert not values & {*kept.edges, *kept.fences, *kept.quartiles}


def test_free_text_is_never_unseen():
    names = pd.DataFrame({"name": [f"person {i}" for i in range(300)] + ["Ann"] * 30})
    profile = describe_rows(names)
    assert not find_oddities(profile, pd.DataFrame({"name": ["someone new"]}))


def test_cells_hold_rows_and_no_value_is_cut():
    random = np.random.default_rng(1)
    for values in (random.normal(size=333), random.poisson(1, 500), random.choice([0, 7], 90)):
        column = describe(pd.Series(values), "x")
        assert sum(column.counts) == len(values)
        assert min(column.counts[1:]) >= 10
    assert cut_cells(np.array([1.0]), np.array([50])) == ()
    assert widen(0.0, 0.0) == (0.0, 0.0)


def test_a_profile_survives_json_and_foreign_ones_are_refused(profile):
    assert InputProfile.from_json(profile.to_json()) == profile
    stored = profile.to_dict()
    for change in ({"format": "other"}, {"rows": 3}, {"columns": []}, {"layout": "?"}):
        with pytest.raises(InvalidDataError):
            InputProfile.from_dict(stored | change)
    with pytest.raises(InvalidDataError, match="column 'x'"):
        ColumnProfile("x", "number", (1, 2))
    with pytest.raises(InvalidDataError):
        ColumnProfile("x", "category", (1, 2, 3), levels=("a", "a"))
