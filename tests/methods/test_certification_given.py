"""A certification fold of one's own is held against what the same fit trains and chooses on."""

from __future__ import annotations

import warnings
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from contract_helpers import fit_quietly, quick
from scipy import sparse
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

import reliablenet as rn
from reliablenet.datasets import SyntheticBand
from reliablenet.tables import TabularEncoder, cut_folds
from reliablenet.tables.digest import fingerprint

BAND = SyntheticBand(random_state=0)
PAST, FRESH = BAND.sample(1000), BAND.sample(400)
REFUSED = "rows of `certification` are rows that this fit trains or chooses on"


class NeverTrained(DecisionTreeClassifier):
    def fit(self, X, y):
        raise AssertionError("it was trained before the rows were refused")


def tree() -> rn.CertifiedThreshold:
    return rn.CertifiedThreshold(NeverTrained(), alpha=0.05, random_state=0)


class TestRowsOfTheTable:
    def test_are_refused_before_the_training_starts(self) -> None:
        with pytest.raises(rn.errors.InvalidDataError, match="200 of 200 " + REFUSED) as caught:
            tree().fit(PAST.X, PAST.y, certification=(PAST.X[:200], PAST.y[:200]))
        assert "Leave `certification` out" in str(caught.value)

    def test_a_few_among_fresh_ones_too(self) -> None:
        rows = [
            np.concatenate([new[:290], old[:10]])
            for new, old in ((FRESH.X, PAST.X), (FRESH.y, PAST.y))
        ]
        with pytest.raises(rn.errors.InvalidDataError, match=r"10 of 300 .*, row 290 among them"):
            tree().fit(PAST.X, PAST.y, certification=rows)

    def test_one_may_be_chance_and_a_warning_tells(self) -> None:
        model = rn.CertifiedThreshold(DecisionTreeClassifier(max_depth=3), random_state=0)
        rows = [
            np.concatenate([new, old[:1]]) for new, old in ((FRESH.X, PAST.X), (FRESH.y, PAST.y))
        ]
        with (
            warnings.catch_warnings(action="ignore", category=rn.errors.NotCertifiedWarning),
            pytest.warns(rn.errors.ReuseWarning, match="1 of 401 " + REFUSED),
        ):
            model.fit(PAST.X, PAST.y, certification=rows)

    @pytest.mark.parametrize(
        "kind", [np.float32, pd.DataFrame, sparse.csr_array, sparse.coo_matrix]
    )
    def test_in_any_container(self, kind) -> None:
        with pytest.raises(rn.errors.InvalidDataError, match=REFUSED):
            tree().fit(kind(PAST.X), PAST.y, certification=(kind(PAST.X[300:500]), PAST.y[300:500]))

    def test_a_network_refuses_them_too(self) -> None:
        with pytest.raises(rn.errors.InvalidDataError, match=REFUSED):
            quick(rn.ERMClassifier).fit(PAST.X, PAST.y, certification=(PAST.X[:200], PAST.y[:200]))

    def test_one_fold_for_both_choices(self) -> None:
        held = (FRESH.X, FRESH.y)
        with pytest.raises(rn.errors.InvalidDataError, match="400 of 400 " + REFUSED):
            tree().fit(PAST.X, PAST.y, selection=held, certification=held)
        assert tree()._reached == "settings"

    def test_a_coarse_table_is_recognised_as_a_whole(self) -> None:
        rng = np.random.default_rng(0)
        X, y = rng.integers(0, 3, (1000, 3)).astype(float), rng.integers(0, 2, 1000)
        with pytest.raises(rn.errors.InvalidDataError, match=REFUSED + ", as a whole"):
            tree().fit(X, y, certification=(X[::-1], y[::-1]))
        fresh = rng.integers(0, 3, (1000, 3)).astype(float)
        rule = rn.CertifiedThreshold(LogisticRegression(), alpha=0.4)
        assert fit_quietly(rule, X, y, certification=(fresh, y)).certificate_.n == 1000

    def test_columns_that_a_model_leaves_out_hide_nothing(self) -> None:
        """What it leaves out is known when it is trained."""
        table = pd.DataFrame(PAST.X, columns=list("abcdefghij")[: PAST.X.shape[1]])
        names = [f"person {number}" for number in range(1200)]
        inner = make_pipeline(TabularEncoder(), HistGradientBoostingClassifier(max_iter=5))
        rule = rn.CertifiedThreshold(inner, random_state=0)
        held = (table[:200].assign(name=names[1000:]), PAST.y[:200])
        with (
            warnings.catch_warnings(action="ignore", category=rn.errors.ColumnWarning),
            pytest.raises(rn.errors.InvalidDataError, match="200 of 200 " + REFUSED),
        ):
            rule.fit(table.assign(name=names[:1000]), PAST.y, certification=held)


class TestCopiesOfTheSource:
    """Where a source repeats its rows, rows of one's own do so as well."""

    def test_rows_that_recur_by_nature_are_taken(self) -> None:
        rng = np.random.default_rng(0)
        kinds = rng.normal(size=(300, 4))
        X, fresh = kinds[rng.integers(0, 300, 1000)], kinds[rng.integers(0, 300, 400)]
        rule = rn.CertifiedThreshold(LogisticRegression(), alpha=0.4)
        model = fit_quietly(
            rule, X, (X[:, 0] > 0).astype(int), certification=(fresh, (fresh[:, 0] > 0).astype(int))
        )
        assert model.certificate_.n == 400


class TestCompare:
    METHODS: ClassVar = {
        "logistic": LogisticRegression(),
        "tree": DecisionTreeClassifier(max_depth=3),
    }

    def test_the_table_that_it_cuts_is_in_the_certificate(self) -> None:
        found = rn.compare(PAST.X, PAST.y, alpha=0.1, methods=self.METHODS, resamples=10)
        table = fingerprint(PAST.X, PAST.y)
        assert found.best().certificate.provenance.table == table
        for result in found.results.values():
            assert result.certificate.provenance.table == table
            assert result.model.certificate_.provenance.table == table
            assert result.model._cut_from == ""
            assert result.certificate.provenance.compared

    def test_folds_that_were_given_name_none(self) -> None:
        folds = cut_folds(PAST.X, PAST.y, random_state=0)
        found = rn.compare(folds=folds, alpha=0.1, methods=self.METHODS, resamples=10)
        assert found.best().certificate.provenance.table == ""

    def test_given_folds_that_overlap_are_refused(self) -> None:
        folds = cut_folds(PAST.X, PAST.y, random_state=0)
        folds = type(folds)(folds.train, folds.selection, folds.train)
        with pytest.raises(rn.errors.InvalidDataError, match=REFUSED):
            rn.compare(folds=folds, alpha=0.1, methods=self.METHODS, resamples=10)


class TestSearch:
    def search(self) -> GridSearchCV:
        rule = rn.CertifiedThreshold(LogisticRegression(), random_state=0)
        return GridSearchCV(rule, {"estimator__C": [1.0]}, cv=2)

    def test_a_record_as_long_as_the_table_is_refused_in_words(self) -> None:
        """scikit-learn takes it for one value a row, and cuts it; numpy's complaint said nothing."""
        with pytest.raises(rn.errors.InvalidDataError, match=r"certification=\(fold\.X, fold\.y\)"):
            self.search().fit(PAST.X[:400], PAST.y[:400], certification=FRESH)

    @pytest.mark.filterwarnings("ignore::reliablenet.errors.ReuseWarning")
    def test_other_records_and_pairs_pass(self) -> None:
        for X, held in ((PAST.X, FRESH), (PAST.X[:400], (FRESH.X, FRESH.y))):
            search = self.search().fit(X, PAST.y[: len(X)], certification=held)
            assert search.best_estimator_.certificate_.n == 400
