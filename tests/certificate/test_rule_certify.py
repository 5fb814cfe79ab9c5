"""`certified_rule`: several promises at once, what it is given, and what it refuses in which words."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from rule_examples import BY, COSTS, EASY, FLIP, PROBA, TRUTH, Y, draw, make

from reliablenet import Certificate, Promise, RuleCertificate, certified_rule
from reliablenet.certificate import Provenance
from reliablenet.certificate.remedies import remedy
from reliablenet.certificate.rule_certify import judge_fixed_rule, judge_rule, read_certificate
from reliablenet.certificate.scored import ScoredRows, score_rows
from reliablenet.errors import InvalidDataError, InvalidParameterError, LabelWarning

RHO = 0.1


SEVERAL = {
    "overall": Promise.overall(0.06),
    "among": Promise.among_accepted(0.1),
    "groups": Promise.by_group({"A": 0.08, "B": 0.1, "Z": 0.1}, by="race"),
    "common": Promise.by_group({"A": 0.1, "B": 0.1}, by="race", common=True),
    "sides": Promise.by_group(0.1, by="side"),
    "all predicted": Promise.by_predicted(0.04),
    "predicted": Promise.by_predicted({1: 0.03}),
    "all classes": Promise.by_class(0.1),
    "class": Promise.by_class({1: 0.08}),
    "cost": Promise.cost(COSTS, 0.2),
    "delay": Promise.cost([[0, 50], [50, 0]], 2.0),  # the same share of its largest cost
}


def possible(names: tuple[str, ...]) -> bool:
    kinds = [(SEVERAL[name].kind, SEVERAL[name].by) for name in names]
    once = len(set(kinds)) == len(kinds) or names == ("cost", "delay")
    return once and not ("among" in names and {"groups", "sides"} & set(names))


@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize(
    "names",
    [
        *filter(possible, itertools.combinations(SEVERAL, 2)),
        ("overall", "common", "all predicted", "all classes"),
        ("overall", "groups", "predicted", "class", "cost"),
        ("among", "common", "class", "cost"),
    ],
    ids=" and ".join,
)
def test_several_promises_are_certified_and_read_again(names, learned):
    promise = Promise.all_of(*(SEVERAL[name] for name in names))
    by = {"race": BY, "side": np.where(FLIP, "left", "right")}
    half = {name: values[2000:] for name, values in by.items()}
    rest = {name: values[:2000] for name, values in by.items()}
    selection = (PROBA[:2000], Y[:2000], rest) if learned else None
    c = certified_rule(PROBA[2000:], Y[2000:], promise, by=half, selection=selection)
    assert c.certified
    assert RuleCertificate.from_json(c.to_json()) == c
    assert c.rule.accept(PROBA[2000:], by=half).sum() == c.accepted > 0


@pytest.mark.parametrize("name", SEVERAL)
@pytest.mark.parametrize("classes", [None, [0, 1]], ids=["labels", "classes"])
def test_a_rule_acts_on_what_its_certificate_counts_with_or_without_the_classes(name, classes):
    """Of predicted labels alone, those without a budget are not limited, and so they are acted on."""
    by = {"race": BY, "side": np.where(FLIP, "left", "right")}
    predicted, score = PROBA.argmax(1), PROBA.max(1)
    c = certified_rule(
        None, Y, SEVERAL[name], by=by, score=score, predicted=predicted, classes=classes
    )
    assert c.certified
    assert c.rule.accept(by=by, score=score, predicted=predicted).sum() == c.accepted > 0
    assert RuleCertificate.from_json(c.to_json()) == c


def test_a_budget_of_a_label_that_no_row_knows_is_refused():
    """A predicted label that is mistyped would leave all predictions without a limit."""
    labels = np.array(["no", "yes"])
    given = {"score": PROBA.max(1), "predicted": labels[PROBA.argmax(1)]}
    for make_promise in (Promise.by_predicted, Promise.by_class):
        promise = make_promise({"Yes": 0.01, "no": 0.05})
        with pytest.raises(InvalidDataError) as caught:
            certified_rule(None, labels[Y], promise, **given)
        assert str(caught.value) == (
            f"`alpha` of Promise.{promise.kind} names ['Yes'], but no row has that label or prediction; "
            "the rows have ['no', 'yes']. Spell it as the rows do, or give the `classes` of the model."
        )
    truth = np.where(np.arange(len(Y)) < 5, "maybe", labels[Y])  # never predicted, but a label
    found = certified_rule(None, truth, Promise.by_predicted({"maybe": 0.01}), **given)
    assert set(found.rule.thresholds) == {"maybe", "no", "yes"}


def test_a_class_without_a_certification_row_is_named_with_what_is_needed():
    """It is predicted, so that it exists; nobody knows how often its rows would be acted on wrongly."""
    never = {"score": EASY.max(1), "predicted": np.where(np.arange(200) < 3, 2, EASY.argmax(1))}
    found = certified_rule(None, TRUTH, Promise.by_class({2: 0.1}), **never)
    assert not found.certified
    assert found.deferred == {"2": "no certification row"}
    assert remedy(found) == "fresh rows to certify on, with rows of 2 among them"


@pytest.mark.parametrize("absent", [None, np.nan, pd.NA, pd.NaT])
def test_a_group_that_is_missing_is_refused_where_it_counts(absent):
    by = np.where(np.arange(200) % 2, "A", "B").astype(object)
    by[[7, 9]] = absent
    with pytest.raises(InvalidDataError) as caught:
        certified_rule(EASY, TRUTH, Promise.by_group(0.1, by="race"), by={"race": by})
    assert str(caught.value) == (
        "`by` of certified_rule must name a group for every row; 'race' is missing in row 7 (2 in all). "
        "Give such rows a group of their own, such as 'unknown'."
    )


def test_a_group_of_the_selection_fold_alone_is_deferred():
    by = np.repeat(["A", "B"], 100)
    found = certified_rule(
        EASY,
        TRUTH,
        Promise.by_group(0.1),
        by=by,
        selection=(EASY, TRUTH, np.repeat(["A", "Z"], 100)),
    )
    assert set(found.rule.thresholds) == {"A", "B"}
    assert not found.rule.accept(EASY, by=np.full(200, "Z")).any()


def test_rows_that_certify_cannot_teach_the_rule():
    with pytest.raises(InvalidDataError, match="must be other rows than those that certify; got"):
        certified_rule(PROBA, Y, Promise.among_accepted(0.1), selection=(PROBA, Y))
    certified_rule(EASY, TRUTH, Promise.among_accepted(0.1), selection=(EASY, TRUTH))  # two scores


def test_correct_alone_serves_groups():
    *_, by = draw(2, n=2000)
    rng = np.random.default_rng(0)
    score = rng.random(2000)
    correct = rng.random(2000) < 0.7 + 0.3 * score
    found = certified_rule(
        None, None, Promise.by_group(0.1), RHO, by=by, score=score, correct=correct
    )
    assert found.certified
    assert found.rule.accept(by=by, score=score).sum() == found.accepted


def test_rows_of_unknown_classes_count_as_wrong():
    proba, y, by = draw(4, n=600)
    labels = np.array(["no", "yes", "new"], object)[np.where(np.arange(600) % 20 == 0, 2, y)]
    with pytest.warns(LabelWarning, match="30 of 600 rows have a label"):
        found = certified_rule(
            proba, labels, Promise.by_group(0.2), RHO, by=by, classes=["no", "yes"]
        )
    wrong = labels != np.array(["no", "yes"], object)[proba.argmax(1)]
    accepted = found.rule.accept(proba, by=by)
    assert found.unknown == 30
    assert found.errors == (accepted & wrong).sum()


def test_with_units_one_row_of_each_counts():
    proba, y, by = draw(6, n=900)
    units = np.arange(900) // 3
    found = certified_rule(proba, y, Promise.by_group(0.2), RHO, by=by, groups=units)
    assert (found.n, found.unit) == (300, "group")
    assert sum(part.n for part in found.parts) == 300


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: certified_rule(EASY, TRUTH, 0.05), "`promise` of certified_rule must be a Promise; got 0.05. Did you mean Promise.overall(...)?"),
        (lambda: certified_rule(EASY, TRUTH, Promise.by_class({2: 0.1})), "`alpha` of Promise.by_class names [2], but the classes of the model are [0, 1]."),
        (lambda: certified_rule(EASY, TRUTH, Promise.cost(np.eye(3), 0.1)), "`matrix` of Promise.cost must have a row and a column for each class of the model, [0, 1]; got 3 rows."),
        (lambda: certified_rule(EASY, TRUTH, Promise.by_group(0.1)), "`by` of certified_rule must give the group of each row (group); got None."),
        (lambda: certified_rule(EASY, TRUTH, Promise.by_group(0.1), by=["A"]), "`by` of certified_rule must give one group for each of the 200 rows; got shape (1,) for 'group'."),
        (lambda: certified_rule(EASY, TRUTH, Promise.by_group(0.1, by=["a", "b"]), by=TRUTH), "`by` of certified_rule must hold the columns ['a', 'b'], as a mapping or a data frame; got a ndarray."),
        (lambda: certified_rule(EASY, TRUTH, Promise.by_group(0.1, by="sex"), by={"race": TRUTH}), "`by` of certified_rule must hold the column 'sex'; got ['race']."),
        (lambda: certified_rule(EASY, TRUTH, Promise.overall(0.1), selection=EASY), "`selection` of certified_rule must be (proba, y), (proba, y, by) or ScoredRows; got 'ndarray'."),
        (lambda: certified_rule(None, None, Promise.by_class(0.1), score=TRUTH * 1.0, correct=TRUTH > 0), "Promise.by_class needs true and predicted labels; `correct` alone has none."),
        (lambda: certified_rule(None, None, Promise.cost([[0, 1], [2, 0]], 0.1), score=TRUTH * 1.0, correct=TRUTH > 0), "Promise.cost needs true and predicted labels; `correct` alone has none."),
    ],
)  # fmt: skip
def test_what_does_not_fit_the_promise_is_refused_in_these_words(call, message):
    with pytest.raises((InvalidParameterError, InvalidDataError)) as caught:
        call()
    assert str(caught.value) == message


def test_either_kind_of_certificate_is_read():
    rule = make("groups")
    assert read_certificate(rule.to_json()) == rule
    one = Certificate(1, 120, 153, alpha=0.05, rho=0.05, threshold=0.9)
    assert read_certificate(one.to_json()) == one
    with pytest.raises(InvalidDataError, match="not the JSON of a certificate"):
        read_certificate("nonsense")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: certified_rule(EASY, TRUTH, "overall"), "`promise` of certified_rule must be a Promise; got 'overall'.\n"),
        (lambda: certified_rule(EASY, TRUTH, Promise.overall(0.1), 0.0), "`rho` of certified_rule must lie in (0, 1); got 0.0."),
        (lambda: certified_rule(EASY, TRUTH, Promise.overall(0.1), selection=(EASY,)), "`selection` of certified_rule must be (proba, y), (proba, y, by) or ScoredRows; got 'tuple'."),
        (lambda: certified_rule(EASY, TRUTH, Promise.overall(0.1), selection=(EASY, TRUTH[:3])), "`proba` of the selection rows of certified_rule must have one entry"),
        (lambda: certified_rule(EASY, TRUTH, Promise.by_group(0.1, common=True), by=TRUTH, selection=(EASY, TRUTH)), "`by` of certified_rule must give the group of each row (group); got None."),
        (lambda: certified_rule(EASY, TRUTH, Promise.overall(0.1), groups=TRUTH, random_state=-1), "`random_state` of certified_rule must"),
        (lambda: certified_rule(score_rows(EASY, TRUTH, owner="test"), TRUTH, Promise.overall(0.1)), "certified_rule takes scored rows alone, without `y`: they already hold the truth."),
        (lambda: certified_rule(EASY, TRUTH, Promise.by_class(0.1), classes=["a", "b"]), "None of the labels in `y` of certified_rule is among the 2 known classes"),
    ],
)  # fmt: skip
def test_what_is_no_promise_or_no_selection_is_refused_in_these_words(call, message):
    with pytest.raises((InvalidParameterError, InvalidDataError)) as caught:
        call()
    assert f"{caught.value}\n".startswith(message)


def test_rows_scored_before_are_as_good_as_probabilities():
    proba, y, by = draw(3, n=1200)
    promise = Promise.by_group(0.2, common=True)
    rows = ScoredRows(**vars(score_rows(proba, y, owner="test")) | {"by": {"group": by}})
    chosen, rest = rows.take(slice(0, 400)), rows.take(slice(400, 1200))
    given = certified_rule(
        proba[400:], y[400:], promise, RHO, by=by[400:], selection=[proba[:400], y[:400], by[:400]]
    )
    assert judge_rule(rest, promise, RHO, chosen, classes=[0, 1]).to_json() == given.to_json()
    found = certified_rule(rest, None, promise, RHO, selection=chosen)
    assert found.parts == given.parts
    assert (found.rule.classes, given.rule.classes) == (None, (0, 1))
    # groups given beside scored rows take the place of theirs
    other = certified_rule(rest, None, promise, RHO, by=np.full(800, "Z"))
    assert [part.name for part in other.parts] == ["group=Z"]


def test_what_is_not_asked_for_is_not_looked_at():
    """Groups without a promise about them, and a selection fold without groups that need none."""
    by_nobody = certified_rule(EASY, TRUTH, Promise.overall(0.1), by=["one"])
    assert by_nobody.certified
    own = certified_rule(EASY, TRUTH, Promise.by_group(0.1), by=TRUTH, selection=(EASY, TRUTH))
    assert own.certified


def test_rows_whose_labels_look_swapped_are_warned_of():
    with pytest.warns(LabelWarning, match="Only 0 of 200 predictions are right"):
        certified_rule(EASY, 1 - TRUTH, Promise.overall(0.1))


def test_another_seed_draws_other_rows():
    proba, y, _ = draw(6, n=900)
    units = np.arange(900) // 3
    marks = [
        certified_rule(proba, y, Promise.overall(0.2), groups=units, **seed).provenance.model
        for seed in ({}, {"random_state": 0}, {"random_state": 1})
    ]
    assert marks[0] == marks[1] != marks[2]


def test_provenance_is_kept_and_the_fingerprint_added():
    rows = score_rows(EASY, TRUTH, owner="test")
    known = Provenance(table="ab", uses=3)
    found = judge_rule(
        rows, Promise.overall(0.1), 0.2, classes=[0, 1], unit="group", provenance=known
    )
    assert (found.rho, found.parts[0].rho) == (0.2, 0.2)
    assert (found.provenance.table, found.provenance.uses, found.unit) == ("ab", 3, "group")
    fixed = judge_fixed_rule(
        rows, found.rule, Promise.overall(0.1), 0.15, unit="group", provenance=known
    )
    assert fixed.provenance == found.provenance
    assert (fixed.unit, fixed.accepted, fixed.rho) == ("group", 200, 0.15)
    assert [part.kind for part in fixed.parts] == ["fixed"]


def test_classes_have_their_names_in_both_folds():
    """A selection fold with names teaches what the same fold with numbers does."""
    names = np.array(["no", "yes"])
    promise = {"numbers": Promise.by_class({0: 0.1, 1: 0.2}), "names": Promise.by_class({"no": 0.1, "yes": 0.2})}  # fmt: skip
    common = Promise.cost([[0, 1], [5, 0]], 0.3)  # by places, under whatever names
    for numbers, named in (promise.values(), (common, common)):
        plain = certified_rule(PROBA[2000:], Y[2000:], numbers, selection=(PROBA[:2000], Y[:2000]))
        told = certified_rule(
            PROBA[2000:], names[Y[2000:]], named, selection=(PROBA[:2000], names[Y[:2000]]), classes=names
        )  # fmt: skip
        assert (plain.rule.classes, told.rule.classes) == ((0, 1), ("no", "yes"))
        assert set(plain.rule.thresholds) == {0, 1}  # each predicted class has learned its own
        assert list(told.rule.thresholds.values()) == list(plain.rule.thresholds.values())
        fixed = judge_fixed_rule(
            score_rows(PROBA[2000:], names[Y[2000:]], classes=names, owner="test"), told.rule, named, 0.05
        )  # fmt: skip
        assert (fixed.accepted, fixed.errors) == (told.accepted, told.errors)
        assert [part.name for part in fixed.parts] == [part.name for part in told.parts]


@pytest.mark.parametrize("learned", [False, True])
def test_predictions_in_partitions_give_the_same_rule(learned):
    da = pytest.importorskip("dask.array")
    rows, fresh = slice(0, 600), slice(600, 1800)
    selection = (PROBA[rows], Y[rows], BY[rows]) if learned else None
    whose = np.arange(1200) // 2
    more = {"selection": selection, "classes": [0, 1], "random_state": 3}
    promise = Promise.all_of(Promise.overall(0.3), Promise.by_group(0.4, by="race", common=True))
    expected = certified_rule(
        PROBA[fresh], Y[fresh], promise, 0.1, by=BY[fresh], groups=whose, **more
    )
    proba, y, by, groups = (
        da.from_array(one, chunks=(500, *one.shape[1:]))
        for one in (PROBA[fresh], Y[fresh], BY[fresh], whose)
    )
    found = certified_rule(proba, y, promise, 0.1, by=by, groups=groups, **more)
    assert found.n == 600
    assert found.to_json() == expected.to_json()
    with pytest.raises(InvalidParameterError, match="`rho` of certified_rule"):
        certified_rule(proba, y, promise, 2.0, by=by)


def test_few_scores_may_agree_by_chance():
    for scores, same in ((20, False), (21, True)):
        rows = ScoredRows(np.resize(np.linspace(0.5, 1.0, scores), 100), np.zeros(100, bool), 0.0)
        more = {"score": rows.score, "correct": ~rows.wrong, "selection": rows}
        if same:
            with pytest.raises(InvalidDataError) as caught:
                certified_rule(None, None, Promise.overall(0.1), **more)
            assert "A rule that was learned on them would seem better there" in str(caught.value)
        else:
            assert certified_rule(None, None, Promise.overall(0.1), **more).n == 100


def test_the_rows_of_the_selection_fold_are_known_in_another_order_and_in_partitions():
    da = pytest.importorskip("dask.array")
    order = np.random.default_rng(0).permutation(600)
    known = {"selection": (PROBA[:600], Y[:600])}
    with pytest.raises(InvalidDataError, match="got the same ones"):
        certified_rule(PROBA[:600][order], Y[:600][order], Promise.overall(0.1), **known)
    proba, y = da.from_array(PROBA[:600], chunks=(200, 2)), da.from_array(Y[:600], chunks=200)
    with pytest.raises(InvalidDataError, match="got the same ones"):
        certified_rule(proba, y, Promise.overall(0.1), **known)


def test_selection_rows_have_the_labels_of_the_model() -> None:
    da = pytest.importorskip("dask.array")
    words = np.where(Y == 1, "yes", "no")
    selection, promise = (PROBA[:600], words[:600]), Promise.overall(0.3)
    proba, y = da.from_array(PROBA[600:1200]), da.from_array(words[600:1200])
    more = {"classes": ["no", "yes"], "selection": selection}
    expected = certified_rule(PROBA[600:1200], words[600:1200], promise, **more)
    assert certified_rule(proba, y, promise, **more).to_json() == expected.to_json()
    for wrong in (PROBA, (PROBA, words, BY, BY)):
        with pytest.raises(InvalidParameterError, match="`selection` of certified_rule must be"):
            certified_rule(proba, y, promise, **more | {"selection": wrong})
    with pytest.raises(InvalidDataError, match="`selection` of certified_rule must be other rows"):
        certified_rule(*selection, promise, **more)
    with pytest.raises(InvalidDataError, match="`selection` of certified_rule must be other rows"):
        certified_rule(*map(da.from_array, selection), promise, **more)
    with pytest.raises(InvalidDataError, match="of certified_rule"):
        certified_rule(proba, da.from_array(np.full(600, 7)), promise, classes=["no", "yes"])
