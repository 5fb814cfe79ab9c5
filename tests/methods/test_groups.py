"""`groups=` of every fit, and the warning of copies across folds."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier
from torch.utils.data import DataLoader, TensorDataset

import reliablenet as rn
from reliablenet.datasets import SyntheticBand
from reliablenet.report import model_page
from reliablenet.tables.fold_sizes import fold_counts

pytestmark = pytest.mark.filterwarnings("ignore::reliablenet.errors.ReuseWarning")

SHORT = rn.training.Schedule(warmup_epochs=2, epochs_per_stage=1, max_stages=1, tau=0.1)
PERSONS, EACH = 400, 4


class Watching(DecisionTreeClassifier):
    """Remembers the rows that trained it."""

    def fit(self, X, y):
        self.trained_on_ = set(X[:, 0].tolist())
        return super().fit(X, y)


def table():
    """Rows whose first column is the person, four of each."""
    known = SyntheticBand(0).sample(PERSONS * EACH)
    person = np.random.default_rng(0).permutation(np.repeat(np.arange(PERSONS), EACH))
    return np.column_stack([person, known.X]), known.y, person


def quietly(model, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rn.errors.NotCertifiedWarning)
        warnings.simplefilter("ignore", rn.errors.ConstraintWarning)
        return model.fit(*args, **kwargs)


def test_a_person_is_trained_on_or_certified_on_and_counts_once() -> None:
    X, y, person = table()
    model = quietly(rn.CertifiedThreshold(Watching(), random_state=0), X, y, groups=person)
    certified = person[model.evidence_.row]
    held = fold_counts(PERSONS, selection=False)[2]
    assert model.certificate_.n == len(certified) == len(set(certified)) == held
    assert not set(certified.tolist()) & model.estimator_.trained_on_
    assert len(model.estimator_.trained_on_) == PERSONS - held  # no selection fold


def test_a_fitted_classifier_is_certified_on_one_row_of_each_person() -> None:
    X, y, person = table()
    fitted = LogisticRegression().fit(X[:800, 1:], y[:800])
    model = quietly(
        rn.CertifiedThreshold(fitted, random_state=0), X[800:, 1:], y[800:], groups=person[800:]
    )
    assert model.certificate_.n == len(set(person[800:]))


def test_a_network_takes_groups_of_any_kind_and_the_seed_decides_all() -> None:
    X, y, person = table()
    names = pd.Series(person).map("person {}".format)
    fits = [
        quietly(rn.ReliableClassifier(schedule=SHORT, random_state=3), X, y, groups=given)
        for given in (person, names)
    ]
    assert fits[0].evidence_ == fits[1].evidence_
    assert fits[0].certificate_.n == 153


def test_with_a_certification_fold_of_ones_own_groups_part_training_and_selection() -> None:
    X, y, person = table()
    own = SyntheticBand(0).sample(200)
    held = (np.column_stack([np.full(200, -1.0), own.X]), own.y)
    model = quietly(
        rn.TemperatureScaling(Watching(), random_state=0), X, y, certification=held, groups=person
    )
    assert model.certificate_.n == 200
    assert len(model.estimator_.trained_on_) == PERSONS - 60


def test_compare_cuts_by_group() -> None:
    X, y, person = table()
    found = rn.compare(X, y, methods={"tree": Watching()}, groups=person, resamples=1)
    assert found.results["tree"].certificate.n == 153


def test_groups_that_cannot_be_used_are_refused_before_training() -> None:
    X, y, person = table()
    model, pair = rn.ReliableClassifier(), (X, y)
    with pytest.raises(
        rn.errors.InvalidParameterError, match="`groups` of fit must be None if both folds"
    ):
        model.fit(X, y, selection=pair, certification=pair, groups=person)
    with pytest.raises(rn.errors.InvalidDataError, match="one label for each of the 1600 rows"):
        model.fit(X, y, groups=person[1:])
    with pytest.raises(
        rn.errors.InvalidDataError, match="names 2 groups, too few to cut folds from"
    ):
        model.fit(X, y, groups=y)
    rows = DataLoader(TensorDataset())
    with pytest.raises(
        rn.errors.InvalidParameterError, match="no fold is cut from a DataLoader; got 'list'"
    ):
        model.fit(rows, groups=[1, 2])
    folds = rn.tables.cut_folds(X, y)
    with pytest.raises(rn.errors.InvalidParameterError, match="groups with X and y"):
        rn.compare(folds=folds, groups=person)


def test_copies_across_folds_are_warned_of_once_with_counts_and_remedy() -> None:
    known = SyntheticBand(0).sample(300)
    X, y = np.repeat(known.X, 3, axis=0), np.repeat(known.y, 3)
    model = rn.CertifiedThreshold(LogisticRegression(), alpha=0.2, random_state=0)
    with pytest.warns(rn.errors.FoldWarning) as caught:
        model.fit(X, y)
    (text,) = (str(one.message) for one in caught if "are copies of training" in str(one.message))
    found = re.match(r"(\d+) of (\d+) certification rows \((\d+)%\) are copies of training", text)
    assert found is not None
    copies, n, percent = map(int, found.groups())
    assert copies / n == pytest.approx(percent / 100, abs=0.005)
    assert percent > 80  # all but rows whose two copies are certification rows, too
    assert (
        "may exceed alpha = 0.2. Drop duplicates, or give the copies of a row the same name in"
        in text
    )


def test_the_remedies_silence_the_warning_and_so_does_chance() -> None:
    known = SyntheticBand(0).sample(400)
    X, y = np.repeat(known.X, 3, axis=0), np.repeat(known.y, 3)
    model = rn.CertifiedThreshold(LogisticRegression(), alpha=0.2, random_state=0)
    model.fit(X, y, groups=np.repeat(np.arange(400), 3))
    model.fit(known.X, known.y)
    coarse = (SyntheticBand(0).sample(1200).X[:, :2] > 0).astype(float)  # four different rows
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rn.errors.NotCertifiedWarning)
        warnings.simplefilter("ignore", rn.errors.EmptyCertificateWarning)
        model.fit(coarse, y)


def test_a_model_and_its_file_tell_that_groups_were_counted(tmp_path) -> None:
    X, y, person = table()
    tree = DecisionTreeClassifier(max_depth=3)
    for groups in (None, person):
        model = quietly(rn.CertifiedThreshold(tree, random_state=0), X, y, groups=groups)
        loaded = rn.load(model.save(tmp_path / "model.rnet"))
        assert model.grouped_ == loaded.grouped_ == (groups is not None)
        page = model_page(loaded)
        assert ("a random row of a new group" in page) == (groups is not None)
    compared = rn.compare(X, y, methods={"tree": tree}, groups=person, resamples=10)
    assert compared.results["tree"].model.grouped_
