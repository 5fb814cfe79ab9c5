"""A promise by group with one threshold for all is trained for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import reliablenet as rn
from reliablenet.errors import InvalidParameterError
from reliablenet.methods.group_training import (
    NO_BUDGET,
    Served,
    choose_way,
    find_groups,
    serve,
    ways_to_try,
)
from reliablenet.training import AdaptiveSchedule, Schedule

pytestmark = pytest.mark.filterwarnings(
    "ignore::reliablenet.errors.ReuseWarning",
    "ignore::reliablenet.errors.NotCertifiedWarning",
    "ignore::reliablenet.errors.EmptyCertificateWarning",
    "ignore::reliablenet.errors.ConstraintWarning",
)

PROMISE = rn.Promise.by_group(0.1, by="side", common=True)
QUICK = AdaptiveSchedule(warmup_epochs=6, epochs_per_stage=6, patience=2)


def confounded(n: int = 2400, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows whose surest feature misleads in one group of ten; the other is right in both, and noisy."""
    random = np.random.default_rng(seed)
    y, side = random.integers(2, size=n), random.random(n) < 0.1
    X = random.normal(size=(n, 3))
    X[:, 0] += 1.5 * (2 * y - 1)
    X[:, 1] = (2 * y - 1) * np.where(side, -1, 1) + 0.3 * X[:, 1]
    return X, y, np.where(side, "few", "many")


def fit(**settings) -> rn.ReliableClassifier:
    given = {"promise": PROMISE, "schedule": QUICK, "network": "mlp", "random_state": 0}
    X, y, side = confounded()
    return rn.ReliableClassifier(**given | settings).fit(X, y, by=side)


def test_the_way_is_chosen_on_the_selection_fold_and_no_group_is_needed_to_decide(tmp_path):
    clf = fit()
    history = clf.history_
    assert set(history.groups) == {"few", "many"}
    assert set(history.ways) == {"constraint", "both"}
    assert history.way in ("plain", "constraint", "weights", "both")
    assert (history.way in ("constraint", "both")) == (history.chosen().stage == 1)
    assert {part.name.split("=")[1] for part in clf.certificate_.parts} == {"few", "many"}
    X, _, _ = confounded(50, seed=1)
    accepted = clf.decide(X).accepted  # nobody says whose rows these are
    assert accepted.shape == (50,)
    again = rn.load(clf.save(tmp_path / "model.rnet"))
    assert again.history_.ways == history.ways
    np.testing.assert_array_equal(again.decide(X).accepted, accepted)


@pytest.mark.parametrize("way", ["plain", "weights"])
def test_a_way_can_be_named(way):
    clf = fit(group_training=way)
    assert (clf.history_.way, list(clf.history_.ways)) == (way, [way])
    assert all(record.stage == 0 for record in clf.history_.records)
    assert clf.history_.threshold == clf.selection_threshold_ <= 1.0


def test_the_papers_schedule_has_a_constraint_for_each_group():
    schedule = Schedule(warmup_epochs=2, epochs_per_stage=1, max_stages=2, tau=0.1)
    clf = fit(schedule=schedule)
    constrained = [record for record in clf.history_.records if record.stage]
    assert all(len(record.group_multiplier) == 2 for record in constrained)
    assert len(set(constrained[-1].group_multiplier)) == 2


def test_a_training_for_groups_goes_on_from_its_checkpoints(tmp_path):
    file = tmp_path / "run"
    first, second = (fit(checkpoint_file=file) for _ in range(2))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.both", "run.constraint"]
    X, *_ = confounded(20, seed=2)
    np.testing.assert_array_equal(first.predict_proba(X), second.predict_proba(X))


def test_groups_from_a_column_are_those_of_by():
    X, y, side = confounded()
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(side=side)
    settings = {"promise": PROMISE, "network": "mlp", "random_state": 0}
    schedule = replace(QUICK, warmup_epochs=2, epochs_per_stage=1)
    clf = rn.ReliableClassifier(**settings, schedule=schedule, group_training="plain")
    assert set(clf.fit(frame, y).history_.groups) == {"few", "many"}


def test_without_a_common_threshold_training_is_as_before():
    by = {"g": np.array(["a", "b", "a"])}
    assert find_groups(rn.Promise.by_group(0.1, by="g"), by, by) is None
    assert find_groups(rn.Promise.overall(0.1), by, by) is None
    assert find_groups(PROMISE, None, None) is None
    assert find_groups(PROMISE, {"side": np.array(["a"])}, {"side": np.array(["a"])}) is None


def test_groups_get_the_budgets_that_the_promise_names():
    promise = rn.Promise.by_group({"a": 0.1, "b": 0.2}, by="g", common=True)
    promise = rn.Promise.all_of(promise, rn.Promise.overall(0.05))
    found = find_groups(promise, {"g": np.array(["b", "c"])}, {"g": np.array(["a", "b"])})
    assert dict(zip(found.names, found.budgets, strict=True)) == {
        "b": 0.2,
        "c": NO_BUDGET,
        "a": 0.1,
    }
    assert [found.names[code] for code in [*found.train, *found.selection]] == list("bcab")


def test_the_common_threshold_keeps_every_budget():
    random = np.random.default_rng(0)
    score, group = random.random(4000), random.integers(3, size=4000)
    right = random.random(4000) < score
    served = serve(score, right, group, [0.1, 0.05, 0.2])
    shares = [((score >= served.threshold) & ~right)[group == g].mean() for g in range(3)]
    assert all(share <= aim for share, aim in zip(shares, [0.1, 0.05, 0.2], strict=True))
    below = score[score < served.threshold].max()
    shares = [((score >= below) & ~right)[group == g].mean() for g in range(3)]
    assert shares[1] > 0.05 or not right[score == below]


def test_a_tie_goes_to_the_way_that_was_tried_first():
    assert choose_way({"constraint": Served(0.9, 0.3, 0.6), "both": Served(0.9, 0.3, 0.6)}) == (
        "constraint"
    )


@pytest.mark.parametrize("way", ["groupdro", None, 3])
def test_an_unknown_way_is_refused(way):
    with pytest.raises(InvalidParameterError, match='`group_training` of X must be "auto" or one'):
        ways_to_try(way, QUICK, "X")
