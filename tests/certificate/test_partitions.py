"""Partitions give the certificate of one machine, to the bit: every promise, any cut, any order, any process."""

from __future__ import annotations

import pickle
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from rule_examples import draw

from reliablenet import Promise, certified_rule, certified_threshold, certify
from reliablenet.certificate import Provenance, certify_partitions
from reliablenet.certificate.groups import draw_places
from reliablenet.certificate.merging import count_all
from reliablenet.certificate.partitions import _Sizes
from reliablenet.certificate.rule_certify import judge_fixed_rule
from reliablenet.certificate.scored import ScoredRows, score_rows
from reliablenet.errors import InvalidDataError, InvalidParameterError, LabelWarning

dd = pytest.importorskip("dask.dataframe")
da = pytest.importorskip("dask.array")

SEEDS = st.integers(0, 2**32 - 1)
COSTS = [[0, 1, 2], [5, 0, 1], [1, 3.3, 0]]
PROMISES = {
    "overall": Promise.overall(0.1),
    "among accepted": Promise.among_accepted(0.2),
    "by group": Promise.by_group(0.2, by="race"),
    "by group, named": Promise.by_group({"A": 0.2, "B": 0.3}, by="race"),
    "by group, common": Promise.by_group({"A": 0.2, "B": 0.2}, by="race", common=True),
    "by predicted": Promise.by_predicted(0.1),
    "by class": Promise.by_class({0: 0.2, 2: 0.1}),
    "cost": Promise.cost(COSTS, 0.5),
    "one cost": Promise.cost([[0, 1, 1], [1, 0, 1], [1, 1, 0]], 0.2),
    "two": Promise.all_of(Promise.overall(0.2), Promise.by_group(0.2, by="race")),
    "three": Promise.all_of(
        Promise.among_accepted(0.3), Promise.by_class(0.3), Promise.cost(COSTS, 1.0)
    ),
}


def cut(rows: ScoredRows, seed: int) -> list[ScoredRows]:
    """Return the rows in partitions of any size, none and one among them."""
    rng = np.random.default_rng(seed)
    places = np.sort(rng.integers(0, rows.n + 1, rng.integers(1, 8)))
    ends = [0, 0, *places, *(places[-1:] + 1).clip(max=rows.n), rows.n]
    return [rows.take(slice(a, b)) for a, b in pairwise(ends)]


def spread(parts: list[ScoredRows], seed: int = 0):
    """Return a run over partitions in other processes, as far as what is sent goes; answers come in any order."""

    def run(look):
        order = np.random.default_rng(seed).permutation(len(parts)).tolist()
        sent = pickle.loads(pickle.dumps(look))  # noqa: S301
        return pickle.loads(  # noqa: S301
            pickle.dumps([sent(cut(parts[number], seed), number) for number in order])
        )

    return run


def check_same(found, expected) -> None:
    assert found == expected
    assert found.provenance == expected.provenance
    assert found.to_json() == expected.to_json()


@pytest.mark.parametrize("name", PROMISES)
@settings(max_examples=12, deadline=None)
@given(seed=SEEDS, learned=st.booleans())
def test_every_promise_is_that_of_one_machine(name, seed, learned) -> None:
    promise = PROMISES[name]
    proba, y, by = draw(seed, 400, classes=3)
    other, truth, of = draw(seed + 1, 200, classes=3)
    selection = (other, truth, {"race": of}) if learned else None
    expected = certified_rule(proba, y, promise, 0.1, by={"race": by}, selection=selection)
    rows = replace(score_rows(proba, y, owner="test"), by={"race": by})
    chosen = replace(score_rows(other, truth, owner="test"), by={"race": of}) if learned else None
    found = certify_partitions(
        spread(cut(rows, seed), seed), promise, 0.1, selection=chosen, classes=[0, 1, 2]
    )
    check_same(found, expected)
    again = certify_partitions(spread(cut(rows, seed), seed), promise, 0.1, fixed=found.rule)
    check_same(again, judge_fixed_rule(rows, found.rule, promise, 0.1))


@pytest.mark.parametrize("kind", [Promise.by_predicted, Promise.by_class])
def test_a_label_that_one_partition_alone_predicts_is_known_to_the_rule(kind) -> None:
    rng = np.random.default_rng(0)
    score, predicted = rng.uniform(0.3, 1.0, 400), rng.choice(["maybe", "no", "yes"], 400)
    truth = np.where(rng.uniform(size=400) < score, predicted, "no")
    order = np.argsort(predicted, kind="stable")
    score, predicted, truth = score[order], predicted[order], truth[order]
    promise, given = kind({"yes": 0.3}), {"score": score, "predicted": predicted}
    expected = certified_rule(None, truth, promise, 0.1, **given)
    rows = score_rows(None, truth, owner="test", **given)
    ends = [0, *np.flatnonzero(predicted[1:] != predicted[:-1]) + 1, 400]
    parts = [rows.take(slice(a, b)) for a, b in pairwise(ends)]
    check_same(certify_partitions(spread(parts, 1), promise, 0.1), expected)


@settings(max_examples=40, deadline=None)
@given(seed=SEEDS, fixed=st.booleans(), grouped=st.booleans())
def test_one_threshold_is_that_of_one_machine(seed, fixed, grouped) -> None:
    proba, y, _ = draw(seed, 300, classes=3)
    whose = np.random.default_rng(seed).integers(0, 120, 300) if grouped else None
    threshold = 0.7 if fixed else None
    more = {"groups": whose, "random_state": 3}
    if fixed:
        expected = certify(proba, y, threshold, 0.2, 0.1, **more)
    else:
        expected = certified_threshold(proba, y, 0.2, 0.1, **more)
    rows = replace(score_rows(proba, y, owner="test"), group=whose)
    run = spread(cut(rows, seed), seed)
    check_same(certify_partitions(run, 0.2, 0.1, fixed=threshold, random_state=3), expected)


@pytest.mark.parametrize("name", ["among accepted", "by class", "two"])
@settings(max_examples=5, deadline=None)
@given(seed=SEEDS)
def test_one_row_of_each_group_counts_in_promises_too(name, seed) -> None:
    proba, y, by = draw(seed, 400, classes=3)
    whose = np.random.default_rng(seed).integers(0, 250, 400)
    other, truth, of = draw(seed + 1, 200, classes=3)
    expected = certified_rule(
        *(proba, y, PROMISES[name], 0.1),
        by={"race": by},
        groups=whose,
        selection=(other, truth, {"race": of}),
    )
    rows = replace(score_rows(proba, y, owner="test"), by={"race": by}, group=whose)
    chosen = replace(score_rows(other, truth, owner="test"), by={"race": of})
    run = spread(cut(rows, seed), seed)
    found = certify_partitions(run, PROMISES[name], 0.1, selection=chosen, classes=[0, 1, 2])
    assert found.unit == "group"
    check_same(found, expected)


@pytest.mark.parametrize("promise", [0.2, Promise.overall(0.2)], ids=["number", "promise"])
def test_provenance_is_kept(promise) -> None:
    rows = score_rows(*draw(0)[:2], owner="test")
    found = certify_partitions(spread([rows]), promise, provenance=Provenance(table="abc"))
    assert found.provenance.table == "abc"


@pytest.mark.parametrize("promise", [0.2, Promise.overall(0.2)], ids=["number", "promise"])
def test_the_seed_decides_which_rows_of_groups_count(promise) -> None:
    proba, y, _ = draw(0, 400)
    whose = np.arange(400) // 2
    rows = replace(score_rows(proba, y, owner="test"), group=whose)
    found = certify_partitions(spread(cut(rows, 2)), promise, 0.1, random_state=7)
    other = certify_partitions(spread(cut(rows, 2)), promise, 0.1, random_state=8)
    places = draw_places(whose, 400, 7)
    alone = certified_threshold(proba[places], y[places], 0.2, 0.1)
    assert found.provenance == alone.provenance  # of the very rows
    assert found.provenance != other.provenance
    usual = certify_partitions(spread(cut(rows, 2)), promise, 0.1)
    check_same(usual, certify_partitions(spread(cut(rows, 2)), promise, 0.1, random_state=0))


@pytest.mark.parametrize(
    ("promise", "learned", "looks"),
    [
        (0.1, False, 2),
        (PROMISES["overall"], False, 2),
        (Promise.cost([[0, 1], [4, 0]], 0.3), True, 3),  # on a learned path the rule must be known
        (PROMISES["among accepted"], False, 2),
        (PROMISES["among accepted"], True, 4),  # rows are counted before the order is learned
    ],
)  # fmt: skip
def test_rows_are_looked_at_no_more_often_than_needed(promise, learned, looks) -> None:
    proba, y, by = draw(5, 600)
    rows = replace(score_rows(proba, y, owner="test"), by={"race": by})
    chosen, rest = rows.take(slice(0, 200)), rows.take(slice(200, 600))
    run, calls = spread(cut(rest, 1)), []

    def counted(look):
        calls.append(look)
        return run(look)

    certify_partitions(counted, promise, 0.1, selection=chosen if learned else None, classes=[0, 1])
    assert len(calls) == looks


def test_a_fixed_rule_brings_the_names_of_its_classes() -> None:
    proba, y, _ = draw(2, 400, classes=3)
    names = np.array(["cat", "cow", "dog"])
    promise = Promise.by_class({"cow": 0.2})
    rule = certified_rule(proba, names[y], promise, 0.1, classes=names).rule
    rows = score_rows(proba, names[y], classes=names, owner="test")
    found = certify_partitions(spread(cut(rows, 1)), promise, 0.1, fixed=rule)
    check_same(found, judge_fixed_rule(rows, rule, promise, 0.1))


def test_the_rows_of_all_batches_of_all_partitions_are_counted() -> None:
    rows = score_rows(*draw(0, 400)[:2], owner="test")
    assert count_all(spread(cut(rows, 4), 4), lambda _: _Sizes(), "test").count.n == 400


ROWS = score_rows(*draw(1, 200)[:2], owner="test")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"promise": 5}, "`promise` of certify_partitions must lie in"),
        ({"rho": 0}, "`rho` of certify_partitions must lie in"),
        ({"random_state": -1}, "`random_state` of certify_partitions must be a whole number"),
        ({"fixed": "all"}, "`threshold` of certify_partitions must be a number"),
        (
            {"promise": Promise.overall(0.1), "fixed": 0.5},
            "`fixed` of certify_partitions must be a Rule where a promise is given; got 0.5",
        ),
    ],
)
def test_bad_settings_are_refused(changes, message) -> None:
    with pytest.raises(InvalidParameterError, match=message):
        certify_partitions(spread([ROWS]), **({"promise": 0.1} | changes))


def test_no_rows_are_refused() -> None:
    with pytest.raises(InvalidDataError, match=r"certify_partitions needs rows; got 0\."):
        certify_partitions(lambda look: [look([], n) for n in range(3)], 0.2)
    with pytest.raises(InvalidDataError, match=r"certify_partitions needs rows; got 0\."):
        certify_partitions(lambda look: [], Promise.overall(0.2))
    with pytest.raises(InvalidDataError, match=r"certify_partitions needs rows; got 0\."):
        certify_partitions(lambda look: [], Promise.among_accepted(0.2), selection=ROWS)


# Dask: its collections in place of arrays.


def table(seed: int = 0, n: int = 600) -> pd.DataFrame:
    proba, y, by = draw(seed, n, classes=3)
    frame = pd.DataFrame(proba, columns=["p0", "p1", "p2"])
    names = np.array(["cat", "cow", "dog"])
    return frame.assign(
        y=y,
        label=names[y],
        guess=names[proba.argmax(1)],
        score=proba.max(1),
        right=proba.argmax(1) == y,
        race=by,
        whose=np.random.default_rng(seed).integers(0, 400, n),
    )


TABLE = table()
CHOSEN = table(1, 300)
PROBA = ["p0", "p1", "p2"]
CLASSES = ["cat", "cow", "dog"]


@pytest.fixture(scope="module")
def spread_table():
    """The table in partitions of unequal size, one of them empty and one of a single row."""
    ends = [0, 200, 200, 201, 450, 600]
    pieces = [TABLE.iloc[a:b] for a, b in pairwise(ends)]
    meta = TABLE.iloc[:0]
    return dd.from_map(lambda place: pieces[place], range(len(pieces)), meta=meta)


@pytest.mark.parametrize("name", PROMISES)
@pytest.mark.parametrize("learned", [False, True])
def test_dask_frames_give_the_rule_of_pandas(name, learned, spread_table) -> None:
    selection = (CHOSEN[PROBA], CHOSEN["y"], CHOSEN[["race"]]) if learned else None
    more = {"promise": PROMISES[name], "rho": 0.1, "selection": selection}
    expected = certified_rule(TABLE[PROBA], TABLE["y"], by=TABLE[["race"]], **more)
    parts = spread_table
    check_same(certified_rule(parts[PROBA], parts["y"], by=parts[["race"]], **more), expected)


@pytest.mark.parametrize(
    "ask",
    [
        lambda t: certified_threshold(t[PROBA], t["y"], 0.2),
        lambda t: certified_threshold(t[PROBA], t["label"], 0.2, classes=CLASSES),
        lambda t: certified_threshold(
            None, t["label"], 0.2, score=t["score"], predicted=t["guess"]
        ),
        lambda t: certified_threshold(score=t["score"], correct=t["right"], alpha=0.2),
        lambda t: certified_threshold(t[PROBA], t["y"], 0.2, groups=t["whose"], random_state=5),
        lambda t: certify(t[PROBA], t["y"], 0.9, 0.2),
        lambda t: certify(None, t["label"], 0.9, 0.2, score=t["score"], predicted=t["guess"]),
        lambda t: certified_rule(
            t[PROBA], t["label"], Promise.by_class({"cow": 0.2}), classes=CLASSES
        ),
        lambda t: certified_rule(t[PROBA], t["y"], Promise.by_group(0.3), by=t["race"]),
        lambda t: certified_rule(
            t[PROBA], t["y"], Promise.by_group(0.3, by=["race", "guess"]), by=t[["race", "guess"]]
        ),
        lambda t: certified_rule(t[PROBA], t["y"], Promise.among_accepted(0.3), groups=t["whose"]),
    ],
)
def test_every_way_of_giving_predictions_is_that_of_pandas(ask, spread_table) -> None:
    check_same(ask(spread_table), ask(TABLE))


def test_dask_arrays_in_chunks_of_rows_are_taken(spread_table) -> None:
    expected = certified_threshold(TABLE[PROBA].to_numpy(), TABLE["y"].to_numpy(), 0.2)
    proba = da.from_array(TABLE[PROBA].to_numpy(), chunks=(150, 3))
    y = da.from_array(TABLE["y"].to_numpy(), chunks=150)
    check_same(certified_threshold(proba, y, 0.2), expected)
    with pytest.raises(
        InvalidDataError, match=r"must have the same partitions; got \{'proba': 4, "
    ):
        certified_threshold(proba, y.rechunk(200), 0.2)
    with pytest.raises(InvalidDataError, match="`y` must be a Dask collection, as the others"):
        certified_threshold(proba, TABLE["y"], 0.2)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (
            lambda t: certified_rule(t[PROBA], t["y"], Promise.by_group(0.3, by="race")),
            "must have the columns 'race'|`by` of certified_rule",
        ),
        (
            lambda t: certified_rule(
                t[PROBA],
                t["y"],
                Promise.by_group(0.3, by="race"),
                by=t[["race"]].mask(t["race"] == "C"),
            ),
            "`by` of certified_rule must name a group for every row; 'race' is missing in row",
        ),
        (lambda t: certify(t[PROBA] * 2, t["y"], 0.9), r"`proba` of certify must lie in \[0, 1\]"),
    ],
)
def test_what_is_wrong_in_a_partition_is_told_in_the_name_of_who_was_asked(
    ask, message, spread_table
) -> None:
    for rows in (TABLE, spread_table):
        with pytest.raises((InvalidDataError, InvalidParameterError), match=message):
            ask(rows)


def test_unknown_labels_of_all_partitions_are_told_once() -> None:
    frame = TABLE.assign(label=TABLE["label"].where(TABLE.index != 599, "emu"))
    # the last partition holds one row, of a class that is not known
    parts = dd.from_map(lambda a, b: frame.iloc[a:b], [0, 300, 599], [300, 599, 600])
    with pytest.warns(LabelWarning, match=r"^1 of 600 rows have a label .* \('emu'\)") as told:
        found = certified_threshold(parts[PROBA], parts["label"], 0.2, classes=CLASSES)
    assert len(told) == 1
    assert found.unknown == 1
    with pytest.warns(LabelWarning):
        check_same(found, certified_threshold(frame[PROBA], frame["label"], 0.2, classes=CLASSES))
    strange = parts.assign(label="emu")
    with pytest.raises(InvalidDataError, match="None of the labels in `y` of certified_threshold"):
        certified_threshold(strange[PROBA], strange["label"], 0.2, classes=CLASSES)


def test_spelling_is_judged_by_all_partitions() -> None:
    frame = pd.DataFrame(
        {"y": ["Cat", "cat"] * 50, "said": ["cat", "Cat", "Cat", "cat"] * 25, "score": 0.9}
    )
    ends = range(0, 101, 10)
    parts = dd.from_map(lambda a, b: frame.iloc[a:b], ends[:-1], ends[1:])
    expected = certify(None, frame["y"], 0.5, 0.2, score=frame["score"], predicted=frame["said"])
    one_each = dd.from_map(lambda a: frame.iloc[[a]], range(100))
    for spread_out in (parts, one_each):
        found = certify(
            None, spread_out["y"], 0.5, 0.2, score=spread_out["score"], predicted=spread_out["said"]
        )
        check_same(found, expected)
    wrong = parts.assign(said="cat ")
    with pytest.raises(InvalidDataError, match="they differ in case or spaces alone"):
        certify(None, wrong["y"], 0.5, score=wrong["score"], predicted=wrong["said"])


def test_types_may_differ_between_partitions() -> None:
    pieces = [
        TABLE.iloc[:300].astype({"y": "int8", "score": "float32"}),
        TABLE.iloc[300:].astype({"y": "float64", "race": "category"}),
    ]
    parts = dd.from_map(lambda place: pieces[place], range(2), meta=TABLE.iloc[:0])
    whole = pd.concat([piece.astype({"y": "int64", "race": "str"}) for piece in pieces])
    promise = Promise.by_group(0.3)
    found = certified_rule(parts[PROBA], parts["y"], promise, by=parts["race"])
    check_same(found, certified_rule(whole[PROBA], whole["y"], promise, by=whole["race"]))
