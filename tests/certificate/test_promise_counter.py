"""What a promise counts, batch by batch, against a plain count of all rows at once."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.stats import binom

from reliablenet import Promise
from reliablenet.certificate.cost import largest_certifiable_cost
from reliablenet.certificate.promise_counter import Level, PromiseCounter, share_level
from reliablenet.certificate.scored import ScoredRows
from reliablenet.errors import InvalidDataError, InvalidParameterError

NAMES = np.array(["cat", "dog", "cow"])
COSTS = np.array([[0.0, 1.0, 2.0], [4.0, 0.0, 0.5], [3.0, 8.0, 0.0]])


def make_rows(n=60, seed=0, unknown=False, by=True) -> ScoredRows:
    """Return rows whose truth and prediction are places among three classes."""
    rng = np.random.default_rng(seed)
    truth, predicted = rng.integers(-1 if unknown else 0, 3, n), rng.integers(0, 3, n)
    groups = {"race": rng.choice(["A", "B", "C"], n), "sex": rng.choice(["f", "m"], n)}
    return ScoredRows(
        rng.random(n).round(1), truth != predicted, 0.0,
        truth=truth, predicted=predicted, by=groups if by else None,
    )  # fmt: skip


def with_names(rows: ScoredRows) -> ScoredRows:
    """Return the same rows with labels in place of their places."""
    changed = {"truth": NAMES[rows.truth], "predicted": NAMES[rows.predicted]}
    return ScoredRows(**vars(rows) | changed)


def counted(promise: Promise, classes=None, batches=None) -> PromiseCounter:
    counter = PromiseCounter(promise, classes)
    for rows in batches or [make_rows()]:
        counter.look(rows, rows.score)
        counter.count(rows, rows.score >= 0.5, counter.codes(rows))
    return counter


def merged(promise: Promise, classes, batches) -> PromiseCounter:
    """Count each batch by itself, and put the counts together."""
    counter = PromiseCounter(promise, classes)
    for rows in batches:
        counter.merge(counted(promise, classes, [rows]))
    return counter


def by_hand(promise: Promise, rows: ScoredRows) -> dict:
    """Return rows, rows accepted and mistakes accepted of each population, row by row."""
    truth, predicted = NAMES[rows.truth], NAMES[rows.predicted]
    found: dict = {}
    for i in range(rows.n):
        label = {
            "overall": "all", "among_accepted": "all", "cost": "all",
            "by_group": ", ".join(str(rows.by[name][i]) for name in promise.by) if promise.by else "",
            "by_class": str(truth[i]), "by_predicted": str(predicted[i]),
        }[promise.kind]  # fmt: skip
        own = found.setdefault(label, [0, 0, 0])
        own[0] += 1
        own[1] += rows.score[i] >= 0.5
        own[2] += rows.score[i] >= 0.5 and bool(rows.wrong[i])
    if promise.kind == "by_predicted":
        found = {label: [rows.n, *own[1:]] for label, own in found.items()}
    return found


@pytest.mark.parametrize(
    "promise",
    [
        Promise.overall(0.1),
        Promise.among_accepted(0.1),
        Promise.by_group(0.1, by="race"),
        Promise.by_group(0.1, by=["race", "sex"]),
        Promise.by_class(0.1),
        Promise.by_predicted(0.1),
    ],
    ids=lambda promise: f"{promise.kind} {promise.by}",
)
@pytest.mark.parametrize("named", [False, True])
def test_populations_are_counted_as_by_hand_in_one_batch_or_in_many(promise, named):
    rows = make_rows()
    if named:
        given, classes = with_names(rows), None
    else:
        given, classes = rows, NAMES
    whole = counted(promise, classes, [given])
    batches = [given.take(slice(a, a + 7)) for a in range(0, 60, 7)]
    expected = by_hand(promise, rows)
    for counter in (whole, counted(promise, classes, batches), merged(promise, classes, batches)):
        found = zip(counter.sizes, counter.accepted, counter.errors, strict=True)
        assert dict(zip(counter.labels, map(list, found), strict=True)) == expected
        kinds = {array.dtype for array in (counter.sizes, counter.accepted, counter.errors)}
        assert kinds == {np.dtype(np.int64)}  # counts have no rounding
        for code, label in enumerate(counter.labels):
            assert sorted(counter._mistakes(code)[0]) == sorted(mistakes_of(promise, rows, label))


def mistakes_of(promise: Promise, rows: ScoredRows, label: str) -> list[float]:
    groups = [
        ", ".join(values) for values in zip(*(rows.by[name] for name in promise.by), strict=True)
    ]
    of = {
        "by_class": NAMES[rows.truth],
        "by_predicted": NAMES[rows.predicted],
        "by_group": np.array(groups),
    }
    own = of[promise.kind] == label if promise.kind in of else np.ones(rows.n, bool)
    return rows.score[own & rows.wrong].tolist()


@pytest.mark.parametrize("kind", ["by_class", "by_predicted"])
def test_only_classes_with_a_budget_are_populations(kind):
    promise = getattr(Promise, kind)({"dog": 0.1})
    rows = make_rows()
    for counter in (counted(promise, NAMES, [rows]), counted(promise, None, [with_names(rows)])):
        assert counter.labels == ["dog"]
        assert counter.budgets == [0.1]
        assert list(counter.errors) == [by_hand(promise, rows)["dog"][2]]


def test_groups_without_a_budget_are_counted_and_have_none():
    counter = counted(Promise.by_group({"B": 0.2, "Z": 0.1}, by="race"))
    assert counter.labels[:2] == ["B", "Z"]
    assert set(counter.labels) == {"A", "B", "C", "Z"}
    assert counter.budgets[:2] == [0.2, 0.1]
    assert all(math.isnan(budget) for budget in counter.budgets[2:])
    assert counter.sizes[1] == 0
    assert counter.sizes.sum() == 60


def test_a_prediction_seen_late_was_possible_in_every_row():
    early = ScoredRows(
        np.ones(5), np.zeros(5, bool), 0.0, truth=np.zeros(5, int), predicted=np.zeros(5, int)
    )
    late = ScoredRows(
        np.ones(2), np.ones(2, bool), 0.0, truth=np.zeros(2, int), predicted=np.full(2, 9)
    )
    counter = counted(Promise.by_predicted(0.1), None, [early, late])
    assert (counter.labels, counter.sizes.tolist()) == ([0, 9], [7, 7])
    assert (counter.accepted.tolist(), counter.errors.tolist()) == ([5, 2], [0, 2])


@pytest.mark.parametrize("unknown", [False, True])
@pytest.mark.parametrize("count", [counted, merged])
def test_costs_are_sums_of_the_table_row_by_row(count, unknown):
    """A class that the model does not know costs as much as the worst of the known."""
    rows = make_rows(200, unknown=unknown)
    table = np.vstack([COSTS, COSTS.max(axis=0)])
    acted = rows.score >= 0.5
    halves = [rows.take(slice(0, 90)), rows.take(slice(90, 200))]
    counter = count(Promise.cost(COSTS, 1.0, classes=NAMES), NAMES, halves)
    spent = [table[t, p] for t, p in zip(rows.truth, rows.predicted, strict=True)]
    assert counter.cost == pytest.approx(sum(np.array(spent)[acted]))
    assert counter.guessing == pytest.approx(min(table[rows.truth].sum(axis=0)))
    assert counter.errors.tolist() == [np.count_nonzero(acted & (np.array(spent) > 0))]
    np.testing.assert_allclose(counter.spending(rows, counter.codes(rows)), np.array(spent) / 8.0)
    assert not counter.counts
    assert counter.budgets == [1.0 / 8.0]
    assert (counter._truths.dtype, counter._acted.dtype) == (np.int64, np.int64)
    places, costs = counter._mistakes(0)
    assert sorted(places) == sorted(rows.score[np.array(spent) > 0])
    assert sorted(costs) == pytest.approx(sorted(s / 8.0 for s in spent if s > 0))


def test_costs_follow_the_order_of_the_model():
    rows = make_rows()
    turned = [2, 0, 1]
    promise = Promise.cost(COSTS[np.ix_(turned, turned)], 1.0, classes=NAMES[turned])
    assert counted(promise, NAMES).cost == counted(Promise.cost(COSTS, 1.0), NAMES).cost
    by_name = counted(promise, None, [with_names(rows)])
    assert by_name.cost == counted(Promise.cost(COSTS, 1.0), NAMES).cost
    numbers = counted(Promise.cost(COSTS, 1.0), None, [rows])
    assert numbers.cost == by_name.cost


def test_one_positive_cost_is_a_count():
    assert PromiseCounter(Promise.cost([[0, 7], [7, 0]], 1.0)).counts
    assert PromiseCounter(Promise.cost([[0, 7], [0, 0]], 1.0)).counts
    assert not PromiseCounter(Promise.cost([[0, 7], [6, 0]], 1.0)).counts
    assert PromiseCounter(Promise.overall(0.1)).counts


@pytest.mark.parametrize(
    ("promise", "classes", "rows", "message"),
    [
        (Promise.by_class({"cat": 0.1, "eel": 0.1, "elk": 0.1}), NAMES, None, "`alpha` of Promise.by_class names ['eel', 'elk'], but the classes of the model are ['cat', 'dog', 'cow']."),
        (Promise.by_predicted({"eel": 0.1}), NAMES, None, "`alpha` of Promise.by_predicted names ['eel'], but the classes of the model are ['cat', 'dog', 'cow']."),
        (Promise.cost(COSTS, 1.0), NAMES[:2], None, "`matrix` of Promise.cost must have a row and a column for each class of the model, ['cat', 'dog']; got 3 rows."),
        (Promise.cost(COSTS, 1.0, classes=["cat", "dog", "elk"]), NAMES, None, "`matrix` of Promise.cost must have a row and a column for each class of the model, ['cat', 'dog', 'cow']; got those of ['cat', 'dog', 'elk']."),
        (Promise.by_group(0.1, by=["race", "sex"]), None, make_rows(by=False), "The promise is about the groups of race and sex: give the group of each row with `by`."),
        (Promise.by_class(0.1), None, ScoredRows(np.ones(3), np.zeros(3, bool), 0.0), "Promise.by_class needs true and predicted labels; `correct` alone has none."),
        (Promise.by_predicted(0.1), None, ScoredRows(np.ones(3), np.zeros(3, bool), 0.0), "Promise.by_predicted needs true and predicted labels; `correct` alone has none."),
        (Promise.cost(COSTS, 1.0), None, ScoredRows(np.ones(3), np.zeros(3, bool), 0.0), "Promise.cost needs true and predicted labels; `correct` alone has none."),
        (Promise.cost(COSTS, 1.0, classes=["cat", "dog", "elk"]), None, with_names(make_rows()), "Promise.cost has costs for ['cat', 'dog', 'elk'] only, but the rows hold other labels."),
        (Promise.cost(COSTS, 1.0), None, with_names(make_rows()), "Promise.cost must name the classes of its matrix: Promise.cost(matrix, budget, classes=[...])."),
    ],
)  # fmt: skip
def test_what_a_promise_cannot_count_is_said(promise, classes, rows, message):
    with pytest.raises((InvalidParameterError, InvalidDataError)) as caught:
        counted(promise, classes, [rows])
    assert str(caught.value) == message


@pytest.mark.parametrize("known", ["truth", "predicted"])
def test_costs_need_the_truth_and_the_prediction(known):
    rows = ScoredRows(np.ones(3), np.zeros(3, bool), 0.0, **{known: np.zeros(3, int)})
    with pytest.raises(InvalidParameterError, match=r"^Promise\.cost needs true and predicted"):
        counted(Promise.cost(COSTS, 1.0), None, [rows])


@pytest.mark.parametrize("strange", ["truth", "predicted"])
def test_a_label_that_only_begins_like_a_known_one_has_no_cost(strange):
    labels = {"truth": NAMES.copy(), "predicted": NAMES.copy()}
    labels[strange] = np.array(["cat", "dogs", "cow"])
    rows = ScoredRows(np.ones(3), labels["truth"] != labels["predicted"], 0.0, **labels)
    with pytest.raises(InvalidDataError, match="the rows hold other labels"):
        counted(Promise.cost(COSTS, 1.0, classes=NAMES), None, [rows])


@pytest.mark.parametrize(
    ("promise", "classes", "expected"),
    [
        (Promise.by_class(0.1), NAMES, [0, 1, 2, -1]),
        (Promise.by_class({"dog": 0.1}), NAMES, [-1, 0, -1, -1]),
        (Promise.by_class({2: 0.1, 0: 0.1}), None, [1, -1, 0, -1]),
        (Promise.by_group(0.1, by="race"), None, [0, 1, 0, -1]),
        (Promise.overall(0.1), None, [0, 0, 0, 0]),
    ],
)  # fmt: skip
def test_a_row_of_no_population_has_the_number_minus_one(promise, classes, expected):
    by = {"race": np.array(["A", "B", "A", None], object)}
    truth = np.array([0, 1, 2, -1])
    rows = ScoredRows(np.ones(4), np.ones(4, bool), 0.0, truth=truth, predicted=np.zeros(4, int), by=by)  # fmt: skip
    assert PromiseCounter(promise, classes).codes(rows).tolist() == expected


def test_a_group_may_be_called_all():
    counter = PromiseCounter(Promise.by_group(0.1, by="race"))
    for names, codes in ((["all", "all"], [0, 0]), (["all", "B"], [0, 1])):
        rows = ScoredRows(np.ones(2), np.zeros(2, bool), 0.0, by={"race": np.array(names)})
        assert counter.codes(rows).tolist() == codes


@pytest.mark.parametrize(
    "promise",
    [
        Promise.by_group(0.3, by="race"),
        Promise.by_group(0.3, by="sex"),
        Promise.by_class(0.3),
        Promise.by_predicted(0.15),
    ],
    ids=str,
)
def test_each_population_affords_mistakes_of_its_own(promise):
    for seed in range(5):
        rows = make_rows(300, seed)
        counter = counted(promise, NAMES, [rows])
        for code, label in enumerate(counter.labels):
            n, alpha = int(counter.sizes[code]), counter.budgets[code]
            places = sorted(mistakes_of(promise, rows, label), reverse=True)
            most = sum(binom.cdf(np.arange(n + 1), n, alpha) <= 0.1) - 1
            expected = places[most] if len(places) > most else -math.inf
            assert counter.excess(code, 0.1) == expected


def test_a_cost_at_the_limit_is_afforded():
    """One row of ten that costs what the bound affords to the last bit, and one that costs a bit more."""
    most = largest_certifiable_cost(10, 0.1, 0.9) * (1 + 1e-12)
    for cost, excess in ((most, -math.inf), (math.nextafter(most, 1), 0.5)):
        truth = np.arange(10) % 2
        predicted = np.where(np.arange(10) == 0, 1, truth)
        rows = ScoredRows(np.full(10, 0.5), truth != predicted, 0.0, truth=truth, predicted=predicted)  # fmt: skip
        counter = counted(Promise.cost([[0, cost], [1, 0]], 0.1), [0, 1], [rows])
        assert counter.excess(0, 0.9) == excess


@pytest.mark.parametrize(
    ("promise", "expected"),
    [
        (Promise.by_predicted({"cat": 0.1}), [0, -1, -1]),
        (
            Promise.by_class({"dog": 0.1}),
            [0, -1, 0],
        ),  # whatever is not predicted dog may be a mistake in it
        (Promise.by_group(0.1, by="race"), None),
    ],
    ids=["predicted", "class", "group"],
)
def test_each_row_must_reach_the_threshold_of_whom_it_may_wrong(promise, expected):
    rows = make_rows()
    counter = counted(promise, NAMES, [rows])
    found = counter.limit_codes(rows)
    if expected is None:
        assert [counter.labels[code] for code in found] == rows.by["race"].tolist()
    else:
        assert found.tolist() == [expected[place] for place in rows.predicted]


def test_tables_of_thresholds_name_predictions_or_groups():
    one = PromiseCounter(Promise.by_class({"dog": 0.1}), NAMES)
    assert one.table({"dog": 0.7}, 0.0).values == {"cat": 0.7, "cow": 0.7, "dog": 0.0}
    assert one.table({"dog": math.inf}, 0.0).values == dict.fromkeys(
        ["cat", "cow", "dog"], math.inf
    )
    assert (one.key, one.table({"dog": 0.7}, 0.0).key) == (("predicted",), ("predicted",))
    two = PromiseCounter(Promise.by_class(0.1), ["no", "yes"])
    assert two.table({"no": 0.6, "yes": 0.8}, 0.0).values == {"no": 0.8, "yes": 0.6}
    free = PromiseCounter(Promise.by_predicted({"cat": 0.1}), NAMES)
    assert free.table({"cat": 0.9}, 0.3).values == {"cat": 0.9, "cow": 0.3, "dog": 0.3}
    unnamed = counted(Promise.by_predicted(0.1), None, [with_names(make_rows())])
    assert unnamed.table({"dog": 0.9, "cat": 0.8, "cow": 0.7}, 0.3).values == {
        "cat": 0.8, "cow": 0.7, "dog": 0.9
    }  # fmt: skip
    one_named = counted(Promise.by_predicted({"cat": 0.1}), None, [with_names(make_rows())])
    assert one_named.table({"cat": 0.9}, 0.3).values == {"cat": 0.9, "cow": 0.3, "dog": 0.3}
    groups = PromiseCounter(Promise.by_group(0.1, by=["race", "sex"]))
    made = groups.table({"B, f": 0.9, "A, m": 0.8, 3: 0.5}, 0.0)
    assert made.key == ("race", "sex")
    assert list(made.values.items()) == [(3, 0.5), ("A, m", 0.8), ("B, f", 0.9)]


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.05, 0.2, 0.5]), st.integers(1, 120))
def test_the_first_mistake_that_cannot_be_afforded(seed, alpha, n):
    rng = np.random.default_rng(seed)
    rows = ScoredRows(rng.random(n).round(1), rng.random(n) < rng.random(), 0.0)
    counter = counted(Promise.overall(alpha), None, [rows])
    places = np.sort(rows.score[rows.wrong])[::-1]
    most = sum(binom.cdf(np.arange(n + 1), n, alpha) <= 0.1) - 1
    places = np.append(places, np.full(n + 1, -math.inf))
    expected = places[most] if most >= 0 else math.inf
    assert counter.excess(0, 0.1) == expected
    assert counter.affords_all(0, 0.1) == (expected == -math.inf)


@pytest.mark.parametrize(("mistakes", "excess"), [(1, -math.inf), (2, 0.5), (3, 0.6)])
def test_of_sixty_rows_one_mistake_in_ten_affords_one(mistakes, excess):
    """The second-best of two cannot be afforded, the best of one can."""
    score = np.r_[[0.5, 0.6, 0.7][:mistakes], np.ones(60 - mistakes)]
    rows = ScoredRows(score, score < 1.0, 0.0)
    assert counted(Promise.overall(0.1), None, [rows]).excess(0, 0.02) == excess


def test_a_population_without_rows_is_never_certified():
    assert PromiseCounter(Promise.by_group({"A": 0.1}, by="race")).excess(0, 0.1) == math.inf


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 300))
def test_the_first_cost_that_cannot_be_afforded(seed, n):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, n)
    predicted = np.where(rng.random(n) < rng.random(), rng.integers(0, 3, n), truth)
    rows = ScoredRows(
        rng.permutation(n) / n, truth != predicted, 0.0, truth=truth, predicted=predicted
    )
    counter = counted(
        Promise.cost(COSTS, 0.8), None, [rows.take(slice(0, n // 2)), rows.take(slice(n // 2, n))]
    )
    most, total, expected = largest_certifiable_cost(n, 0.1, 0.1), 0.0, -math.inf
    for i in np.argsort(-rows.score):
        total += COSTS[truth[i], predicted[i]] / 8.0
        if total > most * (1 + 1e-12):
            expected = rows.score[i]
            break
    assert counter.excess(0, 0.1) == (math.inf if most < 0 else expected)


class Sizes:
    """A counter of which only sizes, budgets and who affords all are known."""

    def __init__(self, sizes, budgets, affords=lambda code, level: False) -> None:
        self.sizes, self.budgets, self.affords_all = np.array(sizes), budgets, affords


@pytest.mark.parametrize(
    ("sizes", "tested", "each", "refused"),
    [
        ([100, 100], [0, 1], 0.05, 0.1 / 3),
        ([100, 10], [0], 0.1, 0.05),  # 0.9 ** 10 is above a level of 0.05
        ([22, 22], [0], 0.1, 0.05),  # one alone has enough rows, two have not
        ([29, 29], [0, 1], 0.05, 0.1 / 3),
        ([28, 29], [1], 0.1, 0.05),
        ([5, 5], [], 0.1, 0.1),
        ([0, 100], [1], 0.1, 0.05),
        ([10, 300, 200, 100], [1, 2, 3], 0.1 / 3, 0.025),
    ],
)  # fmt: skip
def test_those_with_enough_rows_share_the_level_alike(sizes, tested, each, refused):
    found = share_level(Sizes(sizes, [0.1] * len(sizes)), 0.1)
    assert found.tested == tested
    assert (found.each, found.refused) == pytest.approx((each, refused))


def test_of_equal_ones_the_first_are_tested():
    """0.9 ** 60 is 0.1 / 55.6: 55 can share a level of 0.1, all of 300 rows and the first of 60."""
    found = share_level(Sizes([60, 300] * 35, [0.1] * 70), 0.1)
    assert found == Level([*range(1, 70, 2), *range(0, 40, 2)], 0.1 / 55, 0.1 / 56)
    with pytest.raises(FrozenInstanceError):
        found.each = 1.0


def test_a_chance_that_is_the_level_is_enough():
    assert share_level(Sizes([10], [0.5]), 2.0**-10).tested == [0]
    assert share_level(Sizes([10], [0.5]), math.nextafter(2.0**-10, 0)).tested == []


def test_without_a_budget_there_is_no_share():
    assert share_level(Sizes([100, 100], [math.nan, 0.1]), 0.1) == Level([1], 0.1, 0.05)


def test_whoever_affords_all_passes_its_share_on():
    """The first at any level, the second at a third of it and above, the third never."""

    def affords(code, level):
        return code == 0 or (code == 1 and level >= 0.03)

    found = share_level(Sizes([100, 100, 100], [0.2] * 3, affords), 0.08)
    assert found == Level([0, 1, 2], 0.08, 0.02)
    stuck = share_level(Sizes([100, 100, 100], [0.2] * 3, affords), 0.05)
    assert stuck == Level([0, 1, 2], 0.025, 0.0125)
    alone = share_level(Sizes([100, 100], [0.2] * 2, lambda code, level: True), 0.06)
    assert alone == Level([0, 1], 0.06, 0.02)


def test_populations_are_put_together_by_their_labels_and_not_by_their_places():
    """The second part meets the groups in another order, and one that the first has not seen."""
    promise, rows = Promise.by_group(0.1, by="race"), make_rows(3)
    first = replace(rows, by={"race": np.array(["A", "B", "B"])}, wrong=np.array([1, 0, 1], bool))
    second = replace(rows, by={"race": np.array(["C", "B", "A"])}, wrong=np.array([0, 1, 1], bool))
    first, second = (replace(r, score=np.array([0.9, 0.8, 0.7])) for r in (first, second))
    counter = merged(promise, None, [first, second])
    assert counter.labels == ["A", "B", "C"]
    assert counter.sizes.tolist() == counter.accepted.tolist() == [2, 3, 1]
    assert counter.errors.tolist() == [2, 2, 0]
    assert [sorted(counter._mistakes(code)[0]) for code in range(3)] == [[0.7, 0.9], [0.7, 0.8], []]


def test_mistakes_of_no_population_stay_there_when_parts_are_put_together():
    promise, rows = Promise.by_class({"dog": 0.1}), with_names(make_rows())
    counter = merged(promise, None, [rows, rows])
    expected = rows.score[(rows.truth == "dog") & rows.wrong].tolist()
    assert counter.sizes.tolist() == [2 * np.count_nonzero(rows.truth == "dog")]
    assert sum(whose == 0 for whose in counter._whose) == 2 * len(expected)


@pytest.mark.parametrize("classes", [None, NAMES])
def test_a_blank_tally_has_the_same_populations_and_no_counts(classes):
    rows = make_rows() if classes is not None else with_names(make_rows())
    counter = counted(Promise.by_class(0.1), classes, [rows])
    blank = counter.blank()
    assert blank.labels == counter.labels
    assert not any(array.any() for array in (blank.sizes, blank.accepted, blank.errors))
    assert len(blank._place) == 0 < len(counter._place)
    np.testing.assert_array_equal(blank.codes(rows), counter.codes(rows))
    counter.merge(blank)
    assert counter.sizes.sum() == rows.n


def test_a_prediction_of_any_part_is_known_to_the_rule():
    rows = with_names(make_rows())
    parts = [replace(rows, predicted=np.full(60, name)) for name in ("cow", "cat")]
    counter = merged(Promise.by_class({"dog": 0.1}), None, parts)
    assert list(counter.table({"dog": 0.7}, 0.0).values) == ["cat", "cow", "dog"]


@pytest.mark.parametrize("kind", ["by_class", "by_predicted"])
def test_a_budget_for_a_label_that_no_row_has_is_refused(kind):
    rows = with_names(make_rows())
    rows = replace(rows, predicted=np.full(60, "cow"))
    for alpha, known in (({"dgo": 0.1}, False), ({"cow": 0.1}, True), ({"cat": 0.1}, True)):
        counter = merged(getattr(Promise, kind)(alpha), None, [rows])
        if known:
            counter.check_labels(rows.truth.tolist())
            continue
        with pytest.raises(InvalidDataError) as refusal:
            counter.check_labels(["dog", "cat"])
        assert str(refusal.value) == (
            f"`alpha` of Promise.{kind} names ['dgo'], but no row has that label or prediction; the rows "
            "have ['cat', 'cow', 'dog']. Spell it as the rows do, or give the `classes` of the model."
        )


@pytest.mark.parametrize(
    ("promise", "classes"),
    [(Promise.by_group({"E": 0.1}), None), (Promise.overall(0.1), None), (Promise.by_class({"cat": 0.1}), NAMES)],
)  # fmt: skip
def test_labels_of_groups_and_of_known_classes_are_not_looked_for(promise, classes):
    PromiseCounter(promise, classes).check_labels([])


def test_a_part_without_a_row_adds_nothing() -> None:
    for promise in (Promise.by_predicted(0.1), Promise.by_class(0.1)):
        counter = counted(promise)
        sizes = counter.sizes.copy()
        counter.merge(counter.blank())  # knows the populations
        counter.merge(PromiseCounter(promise))  # knows none
        assert counter.sizes.tolist() == sizes.tolist()
        nobody = PromiseCounter(promise)
        nobody.merge(PromiseCounter(promise))
        assert nobody.labels == []


def test_what_the_rule_accepts_is_counted_anew() -> None:
    counter = counted(Promise.cost([[0, 7, 1], [7, 0, 1], [1, 1, 0]], 1.0))
    assert counter.accepted.sum() > 0
    counter.forget_accepted()
    assert counter.accepted.tolist() == counter.errors.tolist() == [0]
    assert counter.cost == 0.0


def test_groups_with_budgets_need_no_predictions() -> None:
    rows = ScoredRows(np.full(4, 0.9), np.zeros(4, bool), 0.0, by={"race": np.array(list("ABCA"))})
    counter = PromiseCounter(Promise.by_group({"A": 0.1, "C": 0.1}, by="race"))
    assert [counter.labels[code] if code >= 0 else None for code in counter.codes(rows)[:1]] == [
        "A"
    ]


def test_labels_of_several_kinds_are_told_in_order() -> None:
    counter = PromiseCounter(Promise.by_class({"ill": 0.1}))
    with pytest.raises(InvalidDataError, match=r"the rows have \[1, 'well'\]"):
        counter.check_labels(["well", 1])
