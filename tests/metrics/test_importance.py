"""Which columns decisions rest on, against closed forms, a count over all pairs, and scikit-learn."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import numpy as np
import pandas as pd
import pytest
from sklearn import inspection

from reliablenet.errors import InvalidDataError, InvalidParameterError
from reliablenet.metrics import Importance, RowAnswers, permutation_importance
from reliablenet.metrics.importance import MEASURES

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(300, 3))
TRUTH = ROWS[:, 0] + 0.5 * ROWS[:, 2] > 0


def score(rows):
    return 1 / (1 + np.exp(-2 * rows[:, 0] - 0.3 * rows[:, 2]))


def decide(rows, places, shuffled):
    """Rests on column 0, a little on column 2 and not at all on column 1."""
    chance = score(np.asarray(rows, float))
    label, confidence = chance > 0.5, np.maximum(chance, 1 - chance)
    return RowAnswers(label, confidence, confidence >= 0.7, wrong=label != TRUTH[places])


def all_pairs(measure) -> np.ndarray:
    """The mean of a measure over every way to put another row's value in: what shuffles estimate."""
    n, d = ROWS.shape
    found = np.zeros(d)
    for column in range(d):
        places = np.repeat(np.arange(n), n)
        rows = ROWS[places]
        rows[:, column] = np.tile(ROWS[:, column], n)
        found[column] = measure(decide(ROWS, np.arange(n), {}), decide(rows, places, {}), places)
    return found


EXACT = {
    "decisions": lambda a, b, at: (
        (a.accepted[at] != b.accepted) | (b.accepted & (a.answer[at] != b.answer))
    ).mean(),
    "answers": lambda a, b, at: (a.answer[at] != b.answer).mean(),
    "acceptance": lambda a, b, at: (a.accepted[at] != b.accepted).mean(),
    "confidence": lambda a, b, at: np.abs(a.confidence[at] - b.confidence).mean(),
    "confidence_change": lambda a, b, at: (b.confidence - a.confidence[at]).mean(),
    "coverage_change": lambda a, b, at: b.accepted.mean() - a.accepted.mean(),
    "right_change": lambda a, b, at: (
        (b.accepted & ~b.wrong).mean() - (a.accepted & ~a.wrong).mean()
    ),
    "wrong_change": lambda a, b, at: (b.accepted & b.wrong).mean() - (a.accepted & a.wrong).mean(),
}


def test_shuffles_estimate_the_mean_over_all_pairs() -> None:
    assert set(EXACT) == set(MEASURES)
    repeats = 60
    found = permutation_importance(decide, ROWS, repeats=repeats, random_state=3)
    for name, measure in EXACT.items():
        exact = all_pairs(measure)
        # seven standard errors: none of the 24 numbers leaves them on any seed
        room = 7 * found.spread[name] / np.sqrt(repeats) + 1e-12
        assert (np.abs(found.mean[name] - exact) <= room).all(), name
        assert exact[1] == found.mean[name][1] == found.spread[name][1] == 0.0


def test_scikit_learn_finds_the_same_loss() -> None:
    class Model:
        def fit(self, X, y):
            return self

    def rightly(model, X, y):
        found = decide(X, np.arange(len(X)), {})
        return (found.accepted & (found.answer == y)).mean()

    repeats = 60
    theirs = inspection.permutation_importance(
        Model(), ROWS, TRUTH, scoring=rightly, n_repeats=repeats, random_state=0
    )
    ours = permutation_importance(decide, ROWS, repeats=repeats, random_state=1)
    error = np.hypot(theirs.importances_std, ours.spread["right_change"]) / np.sqrt(repeats)
    assert (np.abs(theirs.importances_mean + ours.mean["right_change"]) <= 7 * error + 1e-12).all()


def test_the_same_shuffles_give_the_same_numbers_one_by_one() -> None:
    """Stacked repeats are what one would compute shuffle by shuffle."""
    shuffles: dict[int, np.ndarray] = {}

    def watched(rows, places, shuffled):
        shuffles.update({name: source.reshape(4, -1) for name, source in shuffled.items()})
        return decide(rows, places, shuffled)

    found = permutation_importance(watched, ROWS, repeats=4, random_state=5)
    before = score(ROWS)
    for column, orders in shuffles.items():
        for repeat, order in enumerate(orders):
            assert sorted(order) == list(range(len(ROWS)))
            rows = ROWS.copy()
            rows[:, column] = ROWS[order, column]
            after = score(rows)
            change = np.maximum(after, 1 - after) - np.maximum(before, 1 - before)
            measured = found.changes["confidence"][column, repeat]
            np.testing.assert_allclose(measured, np.abs(change).mean(), rtol=1e-9)


def test_the_column_that_decides_ranks_first_in_frames_too() -> None:
    frame = pd.DataFrame(ROWS, columns=["decides", "noise", "some"], index=RNG.permutation(300))
    found = permutation_importance(decide, frame, random_state=0)
    assert found.to_frame()["column"].tolist() == ["decides", "some", "noise"]
    assert found.summary(2).startswith("decisions rest most on decides (")
    assert "some (" in found.summary(2)
    assert "noise" not in found.summary()
    same = permutation_importance(decide, ROWS, random_state=0)
    for name, values in same.changes.items():
        np.testing.assert_array_equal(values, found.changes[name])


def test_the_same_seed_gives_the_same_numbers_and_columns_draw_their_own() -> None:
    first, again = (permutation_importance(decide, ROWS, random_state=7) for _ in range(2))
    other = permutation_importance(decide, ROWS, random_state=8)
    fewer = permutation_importance(decide, ROWS, random_state=7, unused={0})
    for name in MEASURES:
        np.testing.assert_array_equal(first.changes[name], again.changes[name])
        np.testing.assert_array_equal(first.changes[name][1:], fewer.changes[name][1:])
        assert (fewer.changes[name][0] == 0.0).all()
    assert (first.changes["confidence"] != other.changes["confidence"]).any()


def test_of_many_rows_some_are_drawn_and_it_is_said() -> None:
    seen = []

    def watched(rows, places, shuffled):
        seen.append(len(rows))
        assert (np.asarray(rows)[:, 1] == ROWS[places, 1]).all() or 1 in shuffled
        return decide(rows, places, shuffled)

    found = permutation_importance(watched, ROWS, most_rows=40, repeats=3)
    assert (found.rows, found.of_rows, found.repeats) == (40, 300, 3)
    assert seen == [40, 120, 120, 120]


def test_columns_of_every_kind_keep_their_kind() -> None:
    frame = pd.DataFrame(
        {
            "flag": [True, False, True, False],
            "job": pd.Categorical(["a", "b", None, "a"]),
            "paid": pd.to_datetime(["2024-01-01", None, "2024-03-01", "2024-04-01"]),
            "text": ["x", "y", None, "z"],
        }
    )

    def typed(rows, places, shuffled):
        assert rows.dtypes.tolist() == frame.dtypes.tolist()
        assert rows.index.is_unique
        return RowAnswers(np.zeros(len(rows)), np.ones(len(rows)), np.ones(len(rows), bool))

    found = permutation_importance(typed, frame)
    assert found.summary() == "no decision changes, whichever column is shuffled"
    assert set(found.changes) == set(MEASURES[:-2])


def test_numbers_change_when_they_move_beyond_the_tolerance() -> None:
    def number(rows, places, shuffled):
        n = len(rows)
        return RowAnswers(rows[:, 0], np.ones(n), np.ones(n, bool), tolerance=np.full(n, 0.5))

    found = permutation_importance(number, ROWS, repeats=40)
    values = ROWS[:, 0]
    exact = (np.abs(values[:, None] - values[None, :]) > 0.5).mean()
    room = 7 * found.spread["answers"][0] / np.sqrt(40)
    assert abs(found.mean["answers"][0] - exact) <= room
    assert found.order[0] == 0


def test_one_repeat_has_no_spread() -> None:
    found = permutation_importance(decide, ROWS, repeats=1)
    assert np.isnan(found.spread["decisions"]).all()
    assert found.to_frame()["decisions_spread"].isna().all()


@pytest.mark.parametrize(
    ("rows", "settings", "kind", "said"),
    [
        (ROWS, {"repeats": 0}, InvalidParameterError, "`repeats` of permutation_importance must"),
        (ROWS, {"most_rows": 1}, InvalidParameterError, "whole number of at least 2; got 1"),
        (ROWS, {"random_state": -1}, InvalidParameterError, "`random_state` of permutation"),
        (ROWS, {"unused": "a"}, InvalidParameterError, "`unused` of permutation_importance must"),
        (ROWS[:1], {}, InvalidDataError, "needs two rows to shuffle; got 1"),
        (ROWS[:, 0], {}, InvalidDataError, r"data frame or an array .* got an array of shape"),
        (["a", "b"], {}, InvalidDataError, "none to shuffle; got list"),
    ],
)
def test_bad_input_is_told_of(rows, settings, kind, said) -> None:
    with pytest.raises(kind, match=said):
        permutation_importance(decide, rows, **settings)


def test_answers_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InvalidDataError, match="must return RowAnswers for each of the 300 rows"):
        permutation_importance(lambda *_: decide(ROWS[:5], np.arange(5), {}), ROWS)
    with pytest.raises(InvalidParameterError, match=r"`decide` of .* must be a function; got"):
        permutation_importance(ROWS, ROWS)
    with pytest.raises(InvalidDataError, match="got ndarray"):
        permutation_importance(lambda *_: ROWS, ROWS)
    with pytest.raises(InvalidDataError, match="vectors of one length"):
        RowAnswers(np.zeros(3), np.zeros(2), np.zeros(3, bool))
    with pytest.raises(InvalidDataError, match="An importance needs"):
        Importance(("a",), {"decisions": np.zeros((1, 2))}, 3, 3)


def plain(rows, places, shuffled):
    return RowAnswers(rows[:, 0] > 0, np.abs(rows[:, 0]), rows[:, 0] > 0.5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: permutation_importance(plain, ROWS, repeats=0), "`repeats` of permutation_importance must be a whole number of at least 1; got 0."),
        (lambda: permutation_importance(plain, ROWS, most_rows=1), "`most_rows` of permutation_importance must be a whole number of at least 2; got 1."),
        (lambda: permutation_importance(plain, ROWS, random_state=-1), "`random_state` of permutation_importance must be a whole number from 0 to 2**32 - 1; got -1."),
        (lambda: permutation_importance("plain", ROWS), "`decide` of permutation_importance must be a function; got 'plain'."),
        (lambda: permutation_importance(plain, ROWS, unused="age"), "`unused` of permutation_importance must be a list, tuple or set of columns; got 'age'."),
        (lambda: permutation_importance(plain, ROWS[:1]), "`X` of permutation_importance needs two rows to shuffle; got 1."),
        (lambda: permutation_importance(lambda *_: plain(ROWS[:7], 0, 0), ROWS), "`decide` of permutation_importance must return RowAnswers for each of the 300 rows; got 7."),
        (lambda: permutation_importance(lambda *_: 3, ROWS), "`decide` of permutation_importance must return RowAnswers for each of the 300 rows; got int."),
    ],
)  # fmt: skip
def test_what_cannot_be_shuffled_is_refused_in_these_words(call, message) -> None:
    with pytest.raises((InvalidDataError, InvalidParameterError)) as caught:
        call()
    assert str(caught.value) == message


def test_two_rows_and_one_column_are_enough() -> None:
    found = permutation_importance(plain, ROWS[:2, :1], repeats=2)
    assert (found.columns, found.rows, found.of_rows, found.repeats) == ((0,), 2, 2, 2)


def test_rows_are_drawn_once_each_and_again_for_the_same_seed() -> None:
    seen = []

    def look(rows, places, shuffled):
        seen.append(places)
        np.testing.assert_array_equal(rows[:, 1], ROWS[places, 1])
        return plain(rows, places, shuffled)

    for most in (50, 50, 300):
        permutation_importance(look, ROWS[:, :2], most_rows=most, unused=[1], random_state=4)
    first, again, whole = seen[0], seen[2], seen[4]
    assert len(set(first.tolist())) == 50
    assert (np.diff(first) > 0).all()
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(whole, np.arange(300))
    many = np.zeros((2001, 1))
    assert permutation_importance(plain, many, repeats=1).rows == 2000


def test_where_the_truth_is_known_only_before_or_after_nothing_is_said_of_it() -> None:
    def half(rows, places, shuffled):
        found = plain(rows, places, shuffled)
        wrong = np.zeros(len(places), bool)
        return RowAnswers(found.answer, found.confidence, found.accepted, None if shuffled else wrong)  # fmt: skip

    found = permutation_importance(half, ROWS[:, :1])
    assert set(found.changes) == set(MEASURES[:-2])
    assert {values.dtype for values in found.changes.values()} == {np.dtype(np.float64)}


def test_a_number_that_moves_by_its_tolerance_is_the_same() -> None:
    def near(rows, places, shuffled):
        n = len(places)
        answer = np.where(places % 2 == 0, 1.0, 1.5) if shuffled else np.ones(n)
        return RowAnswers(answer, np.ones(n), np.ones(n, bool), tolerance=np.full(n, 0.5))

    assert permutation_importance(near, ROWS[:, :1]).mean["answers"].tolist() == [0.0]


def made(decisions, confidence, columns=("a", "b", "c", "d")) -> Importance:
    shape = np.shape(decisions)
    changes = {name: np.zeros(shape) for name in MEASURES[:-2]}
    changes |= {"decisions": np.array(decisions, float), "confidence": np.array(confidence, float)}
    return Importance(columns, changes, 10, 20)


def test_columns_are_ranked_by_decisions_and_then_by_confidence() -> None:
    found = made([[0.1, 0.3], [0.2, 0.2], [0.5, 0.7], [0.1, 0.1]], [[1, 1], [2, 2], [0, 0], [9, 9]])
    assert found.order == [2, 1, 0, 3]
    frame = found.to_frame()
    assert frame["column"].tolist() == ["c", "b", "a", "d"]
    assert list(frame.columns)[:3] == ["column", "decisions", "decisions_spread"]
    assert frame.index.tolist() == [0, 1, 2, 3]
    assert frame["decisions_spread"].tolist() == pytest.approx(
        [np.sqrt(0.02), 0.0, np.sqrt(0.02), 0.0]
    )
    assert found.summary() == (
        "decisions rest most on c (60 % of them change if it is shuffled), b (20 %), a (20 %)"
    )
    assert found.summary(4).endswith(", a (20 %), d (10 %)")


def test_records_stay_and_are_not_compared() -> None:
    answers = plain(ROWS, None, None)
    importance = made([[0.1]], [[0.1]], ("a",))
    with pytest.raises(FrozenInstanceError):
        answers.answer = None
    with pytest.raises(FrozenInstanceError):
        importance.rows = 3
    assert len({answers, plain(ROWS, None, None)}) == 2
    assert len({importance, made([[0.1]], [[0.1]], ("a",))}) == 2


def test_measures_are_of_double_precision_whatever_the_confidence_is() -> None:
    def single(rows, places, shuffled):
        found = plain(rows, places, shuffled)
        return RowAnswers(found.answer, found.confidence.astype(np.float32), found.accepted)

    found = permutation_importance(single, ROWS)
    assert {values.dtype for values in found.changes.values()} == {np.dtype(np.float64)}
