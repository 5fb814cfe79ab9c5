"""What must not change an answer, and what may change it in one direction only."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st
from sklearn.linear_model import LogisticRegression

import reliablenet as rn
from reliablenet.datasets import SyntheticBand
from reliablenet.tables import Fold

counts = st.integers(1, 5000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
levels = st.floats(0.001, 0.5)
SHORT = rn.training.Schedule(warmup_epochs=3, epochs_per_stage=2, max_stages=1, tau=0.1)


@given(counts, levels)
def test_the_bound_rises_with_errors_and_falls_with_rows_and_with_rho(count, rho):
    errors, n = count
    bound = rn.clopper_pearson_upper(errors, n, rho)
    assert errors / n <= bound <= 1.0
    if errors < n:
        assert rn.clopper_pearson_upper(errors + 1, n, rho) > bound
        assert rn.clopper_pearson_upper(errors, n + 1, rho) < bound
        assert rn.clopper_pearson_upper(errors, n, rho * 0.9) > bound


def rows(seed, n, classes=2):
    """Probabilities and labels, right as often as they say."""
    random = np.random.default_rng(seed)
    proba = random.dirichlet(np.full(classes, 0.5), n)
    y = (random.random((n, 1)) > proba.cumsum(axis=1)).sum(axis=1).clip(max=classes - 1)
    return proba, y


@given(st.integers(0, 999), st.integers(1, 300), levels, levels)
def test_the_certified_threshold_falls_with_alpha_and_with_rho(seed, n, alpha, rho):
    proba, y = rows(seed, n)
    found = rn.certified_threshold(proba, y, alpha, rho).threshold
    assert rn.certified_threshold(proba, y, min(1.3 * alpha, 0.99), rho).threshold <= found
    assert rn.certified_threshold(proba, y, alpha, min(1.3 * rho, 0.99)).threshold <= found
    assert rn.jcw_threshold(proba, y, min(1.3 * alpha, 0.99)) <= rn.jcw_threshold(proba, y, alpha)


@given(st.integers(0, 999), st.integers(2, 6))
def test_order_of_rows_order_of_classes_and_names_of_labels_change_nothing(seed, classes):
    proba, y = rows(seed, 400, classes)
    random = np.random.default_rng(seed)
    shuffled, permuted = random.permutation(400), random.permutation(classes)
    names = np.array([f"class {place}" for place in range(classes)])
    found = rn.certified_threshold(proba, y, 0.1)
    assert rn.certified_threshold(proba[shuffled], y[shuffled], 0.1) == found
    renamed = rn.certified_threshold(proba, names[y], 0.1, classes=names)
    moved = rn.certified_threshold(proba[:, permuted], names[y], 0.1, classes=names[permuted])
    assert renamed == moved == found


@given(st.integers(0, 999))
def test_probabilities_in_float32_and_float16_give_the_same_counts_but_for_rounded_scores(seed):
    proba, y = rows(seed, 300)
    found = rn.certify(proba, y, 0.9, 0.1)
    near = {np.float32: 1e-7, np.float16: 1e-3}  # half a unit in the last place below 1
    for dtype, unit in near.items():
        less = rn.certify(proba.astype(dtype), y, 0.9, 0.1)
        close = int((np.abs(proba.max(axis=1) - 0.9) <= unit).sum())
        assert abs(less.accepted - found.accepted) <= close
        assert abs(less.errors - found.errors) <= close
        assert less == rn.certify(torch.from_numpy(proba.astype(dtype)), y, 0.9, 0.1)
        # Rounding keeps the order of scores, so that the choice accepts the same rows where no two merge.
        chosen = rn.certified_threshold(proba.astype(dtype), y, 0.1)
        exact = rn.certified_threshold(proba, y, 0.1)
        ties = 300 - len(np.unique(proba.astype(dtype).max(axis=1)))
        assert abs(chosen.accepted - exact.accepted) <= ties
        assert chosen.certified == exact.certified


def fold_pair(seed=0):
    band = SyntheticBand(seed)
    return band.sample(1200), band.sample(300), band.sample(400), band.sample(2000)


def fit(train, selection, certification, **settings):
    model = rn.ReliableClassifier(0.1, schedule=SHORT, random_state=0, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rn.errors.ConstraintWarning)
        return model.fit(train.X, train.y, selection=selection, certification=certification)


def test_the_order_of_certification_rows_does_not_matter_to_a_fit() -> None:
    train, selection, certification, new = fold_pair()
    order = np.random.default_rng(0).permutation(len(certification))
    turned = Fold(certification.X[order], certification.y[order])
    one, two = fit(train, selection, certification), fit(train, selection, turned)
    assert one.certificate_ == two.certificate_
    assert np.array_equal(one.predict_proba(new.X), two.predict_proba(new.X))


def test_names_of_labels_do_not_matter_to_a_fit() -> None:
    train, selection, certification, new = fold_pair()
    names = np.array(["no", "yes"])  # in the order of 0 and 1
    renamed = [Fold(fold.X, names[fold.y]) for fold in (train, selection, certification)]
    one, two = fit(train, selection, certification), fit(*renamed)
    assert one.certificate_ == two.certificate_
    assert np.array_equal(names[one.predict(new.X)], two.predict(new.X))


def test_order_of_classes_moves_a_deterministic_model_by_rounding_only() -> None:
    """A network starts from other weights if its outputs change places; a logistic model does not."""
    train, _, certification, new = fold_pair()
    turned = {0: "b", 1: "a"}  # in the opposite order
    found = []
    for names in ({0: "a", 1: "b"}, turned):
        y, held = ([names[label] for label in fold.y] for fold in (train, certification))
        model = LogisticRegression(tol=1e-10, max_iter=1000).fit(train.X, y)
        rule = rn.CertifiedThreshold(model, 0.1).fit(certification.X, np.array(held))
        found.append((rule, names))
    (one, ours), (two, theirs) = found
    assert one.certificate_.errors == two.certificate_.errors
    assert one.threshold_ == pytest.approx(two.threshold_, abs=1e-6)
    back = {name: label for label, name in ours.items()}
    others = {name: label for label, name in theirs.items()}
    labels = [back[name] for name in one.predict(new.X)]
    assert labels == [others[name] for name in two.predict(new.X)]


def test_scaling_and_shifting_features_moves_probabilities_by_rounding_only() -> None:
    """The encoder standardises. Powers of two leave not a bit of difference, other numbers float32's."""
    train, selection, certification, new = fold_pair()
    one = fit(train, selection, certification)
    for factor, shift, tolerance in ((2.0**-9, 0.0, 0.0), (1000.0, 0.0, 1e-4), (3.7, 50.0, 1e-4)):
        moved = [Fold(f.X * factor + shift, f.y) for f in (train, selection, certification)]
        two = fit(*moved)
        difference = np.abs(one.predict_proba(new.X) - two.predict_proba(new.X * factor + shift))
        assert difference.max() <= tolerance
        assert abs(one.certificate_.errors - two.certificate_.errors) <= (tolerance > 0)


SECOND = """
import json, sys
import numpy as np, torch, reliablenet as rn
from reliablenet.datasets import SyntheticBand
for threads in (1, 2):
    torch.set_num_threads(threads)
    decided = rn.load(sys.argv[1]).decide(np.load(sys.argv[2]))
    print(json.dumps([torch.get_num_threads(), decided.accepted.tolist(), decided.label.tolist(),
                      decided.confidence.tolist()]))
"""


def test_a_loaded_model_decides_alike_in_another_process_with_other_threads(tmp_path) -> None:
    train, selection, certification, new = fold_pair()
    model = fit(train, selection, certification)
    model.save(tmp_path / "model.rnet")
    np.save(tmp_path / "new.npy", new.X)
    here = model.decide(new.X)
    command = [
        sys.executable,
        "-c",
        SECOND,
        str(tmp_path / "model.rnet"),
        str(tmp_path / "new.npy"),
    ]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    for threads, line in enumerate(ended.stdout.splitlines(), start=1):
        used, accepted, label, confidence = json.loads(line)
        assert used == threads
        assert accepted == here.accepted.tolist()
        assert label == here.label.tolist()
        # Sums in another order; a threshold lies midway between two scores, far beyond that.
        assert np.allclose(confidence, here.confidence, rtol=0, atol=1e-6)


def test_threads_do_not_change_the_decisions_of_a_fitted_model() -> None:
    train, selection, certification, new = fold_pair()
    model, before = fit(train, selection, certification), torch.get_num_threads()
    try:
        answers = []
        for threads in (1, 2):
            torch.set_num_threads(threads)
            answers.append(model.decide(new.X))
    finally:
        torch.set_num_threads(before)
    assert np.array_equal(answers[0].accepted, answers[1].accepted)
    assert np.array_equal(answers[0].label, answers[1].label)
    assert np.allclose(answers[0].confidence, answers[1].confidence, rtol=0, atol=1e-6)
