from __future__ import annotations

import itertools
import json

import numpy as np
import pandas as pd
import pytest

from reliablenet.errors import ColumnWarning, InvalidDataError, InvalidParameterError
from reliablenet.tables import PiecewiseEncoder
from reliablenet.tables.piecewise import _quantile_edges, spread


def table(n=400, seed=0):
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "straight": random.normal(size=n),
            "humped": random.normal(size=n),
            "gain": np.where(random.random(n) < 0.6, 0.0, random.lognormal(8, 1, n)),
            "town": random.choice(["Oslo", "Riga", "Bonn", None], n),
        }
    )
    frame.loc[random.random(n) < 0.1, "humped"] = np.nan
    frame.loc[0, "town"] = "Ulm"  # once alone
    logit = frame["straight"] + 3 * (frame["humped"].fillna(0).abs() - 1) + (frame["gain"] > 0)
    return frame, np.where(logit + random.logistic(size=n) > 0, "yes", "no")


def test_only_numbers_that_bend_are_cut_into_pieces():
    X, y = table(3000)
    encoder = PiecewiseEncoder(bins=8).fit(X, y)
    assert [len(edges) for edges in encoder.edges_] == [0, 9, 9]
    assert encoder.dominant_ == [None, None, 0.0]
    assert encoder.number_gaps_ == [False, True, False]
    # straight, eight pieces and a gap, as many and a mark, three towns, a gap and the rare one
    assert encoder.transform(X).shape == (3000, 1 + 9 + 9 + 5)


def test_values_that_recur_have_more_bins():
    """Of 3,000 rows, 300 values have ten each; one value more has fewer."""
    random = np.random.default_rng(0)
    for values, bins in ((300, 50), (301, 6)):
        numbers = random.permutation(np.arange(3000) % values)
        encoder = PiecewiseEncoder(bins=6, value_bins=50).fit(pd.DataFrame({"n": numbers}))
        assert encoder.bins_ == [bins]
    few = PiecewiseEncoder().fit(pd.DataFrame({"n": np.arange(3000) % 40}))
    assert few.edges_ == [list(range(40))]  # one for each value


def test_the_bins_do_not_decide_whether_a_number_bends():
    X, y = table(3000)
    marked = [
        [bool(edges) for edges in PiecewiseEncoder(bins, value_bins).fit(X, y).edges_]
        for bins, value_bins in ((1, 1), (8, 128), (64, 64))
    ]
    assert marked == [[False, True, True]] * 3


def test_matrix_equals_a_computation_in_plain_numpy():
    X, _ = table()
    encoder = PiecewiseEncoder(bins=4).fit(X)  # without labels, all in pieces
    new = table(50, seed=1)[0]
    matrix = encoder.transform(new)
    marks, expected = [new["humped"].isna(), new["gain"] == 0], []
    for place, name in enumerate(["straight", "humped", "gain"]):
        values = new[name].fillna(X[name].median()).to_numpy()
        edges = encoder.edges_[place]
        for low, high in itertools.pairwise(edges):
            expected.append(np.interp(values, [low, high], [0, 1]))
    marks += [new["town"] == name for name in ("Bonn", "Oslo", "Riga")]
    marks += [new["town"].isna(), new["town"] == "Ulm"]
    np.testing.assert_allclose(
        matrix, np.column_stack([*marks, *expected]).astype(float), atol=4e-6
    )


def test_compact_rows_have_one_column_a_number():
    X, y = table(3000)
    encoder = PiecewiseEncoder(bins=8).fit(X, y)
    compact = encoder.compact(X)
    assert encoder.bins_ == [0, 8, 0, 8, 0, *[0] * 5]  # with a gap and a mark
    assert compact.shape == (3000, len(encoder.bins_))
    assert encoder.transform(X).tobytes() == spread(compact, encoder.bins_).tobytes()


def test_bins_hold_about_equally_many_rows_that_are_not_dominant():
    X, _ = table(4000)
    encoder = PiecewiseEncoder(bins=5).fit(X)
    spread = X["gain"][X["gain"] > 0]
    counts = np.histogram(spread, encoder.edges_[2])[0]
    assert counts.min() > 0.9 * len(spread) / 5
    assert encoder.edges_[2][0] == spread.min()


@pytest.mark.parametrize(
    ("values", "counts", "edges"),
    [
        ([1.0, 2.0, 3.0], [1, 1, 1], [1.0, 2.0, 3.0]),
        ([1.0, 2.0, 3.0], [1, 9, 1], [1.0, 2.0, 3.0]),
        ([1.0, 2.0], [5, 5], [1.0, 2.0]),
        ([7.0], [5], []),
    ],
)
def test_edges_of_few_values(values, counts, edges):
    assert _quantile_edges(np.array(values), np.array(counts), 4) == edges


def test_what_lies_beyond_the_training_rows_does_not_extrapolate():
    X, y = table(2000)
    encoder = PiecewiseEncoder().fit(X, y)
    far = pd.DataFrame(
        {"straight": [1e300], "humped": [-1e300], "gain": [np.nan], "town": ["Atlantis"]}
    )
    near = pd.DataFrame(
        {
            "straight": [X["straight"].max()],
            "humped": [X["humped"].min()],
            "gain": [np.nan],
            "town": ["Ulm"],
        }
    )
    assert np.array_equal(encoder.transform(far), encoder.transform(near))


def test_a_new_category_is_none_where_training_had_no_rare_ones():
    encoder = PiecewiseEncoder().fit(pd.DataFrame({"c": ["a", "b"] * 5}))
    new = pd.DataFrame({"c": ["a", "z", None]})
    assert np.array_equal(encoder.transform(new), [[1, 0], [0, 0], [0, 0]])


def test_missing_values_alone_tell_rows_apart():
    encoder = PiecewiseEncoder().fit(pd.DataFrame({"c": ["a", None] * 5}))
    assert np.array_equal(encoder.transform(pd.DataFrame({"c": [None, "a"]})), [[0, 1], [1, 0]])


def test_columns_that_cannot_be_learned_from_are_left_out_as_ever():
    X, y = table()
    X["id"] = np.arange(len(X))
    X["same"] = "x"
    with pytest.warns(ColumnWarning, match="'id' is left out"):
        encoder = PiecewiseEncoder().fit(X, y)
    assert encoder.dropped_ == ["id", "same"]


def test_a_copy_through_json_gives_the_same_bits():
    X, y = table()
    encoder = PiecewiseEncoder(bins=7).fit(X, y)
    copy = PiecewiseEncoder.from_dict(json.loads(json.dumps(encoder.to_dict())))
    assert copy.transform(X).tobytes() == encoder.transform(X).tobytes()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("edges_", [[1.0]]),
        ("edges_", [[], [2.0, 1.0], []]),
        ("edges_", [[], [1.0, float("inf")], []]),
        ("ranges_", [[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]),
        ("dominant_", [None, float("nan"), None]),
        ("number_gaps_", [True]),
        ("rare_", [1]),
        ("category_gaps_", []),
    ],
)
def test_what_no_fit_can_have_learned_is_refused(name, value):
    X, y = table()
    learned = PiecewiseEncoder().fit(X, y).to_dict() | {name: value}
    with pytest.raises(InvalidDataError, match="do not fit together"):
        PiecewiseEncoder.from_dict(learned)


@pytest.mark.parametrize("name", ["bins", "value_bins"])
def test_bins_are_checked(name):
    with pytest.raises(InvalidParameterError, match=f"`{name}` of PiecewiseEncoder"):
        PiecewiseEncoder(**{name: 0}).fit(table()[0])


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (["a", "b"], r"one label for each of the 400 rows; got shape \(2,\)"),
        ([None, *"ab" * 199, "a"], "no missing labels; row 0 has one"),
    ],
)
def test_labels_are_checked(y, message):
    with pytest.raises(InvalidDataError, match=message):
        PiecewiseEncoder().fit(table()[0], y)
