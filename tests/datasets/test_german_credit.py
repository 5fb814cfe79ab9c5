from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

import reliablenet as rn
from reliablenet.datasets import german_credit
from reliablenet.datasets.sources import fetch
from reliablenet.tables import Fold, TabularEncoder

PATHS = ("german/german.data",)


@pytest.fixture(scope="module")
def dataset(needs_files):
    needs_files(*PATHS)
    return german_credit.load(random_state=0)


@pytest.fixture(scope="module")
def by_hand(needs_files):
    needs_files(*PATHS)
    return [line.split() for line in fetch(german_credit.FILE).read_text().splitlines()]


def all_folds(dataset) -> list[Fold]:
    return [*vars(dataset.folds).values(), *dataset.shifts.values()]


def test_every_record_is_that_of_the_file(dataset, by_hand):
    X = pd.concat([fold.X for fold in all_folds(dataset)]).sort_index()
    assert X.shape == (1000, 20)
    assert X.index.tolist() == list(range(1000))
    for place, (name, meanings) in enumerate(german_credit.COLUMNS.items()):
        expected = [meanings.get(record[place], record[place]) for record in by_hand]
        assert X[name].astype(str).tolist() == expected, name


def test_no_code_of_the_file_is_left_and_no_two_codes_read_the_same(dataset):
    categories = dataset.folds.train.X.select_dtypes("category")
    assert len(categories.columns) == 13
    for name, meanings in german_credit.COLUMNS.items():
        assert len(set(meanings.values())) == len(meanings), name
        assert not any(re.fullmatch(r"A\d+", meaning) for meaning in meanings.values())
    assert not pd.concat([fold.X for fold in all_folds(dataset)]).isna().any(axis=None)


def test_a_label_of_1_is_a_bad_risk(dataset, by_hand):
    risk = np.array([record[-1] for record in by_hand])
    assert (risk == "1").sum() == 700
    assert sum(fold.y.sum() for fold in all_folds(dataset)) == 300
    for fold in all_folds(dataset):
        assert np.array_equal(fold.y, risk[fold.X.index] == "2")


def test_folds_have_the_papers_sizes_and_share_no_row(dataset):
    assert [len(fold) for fold in all_folds(dataset)] == [440, 94, 95, 371]
    assert len(np.unique(np.concatenate([f.X.index for f in all_folds(dataset)]))) == 1000


def test_folds_are_stratified_and_hold_nobody_under_30(dataset):
    folds = vars(dataset.folds).values()
    bad = sum(fold.y.sum() for fold in folds)
    for fold in folds:
        assert fold.X["age"].min() >= 30
        assert abs(fold.y.sum() - bad * len(fold) / 629) < 2
    assert dataset.shifts["under 30"].X["age"].max() == 29


def test_groups_include_their_lower_end_and_leave_out_those_below_20(dataset):
    ages = {name: set(fold.X["age"]) for name, fold in dataset.groups.items()}
    assert ages == {"20-25": set(range(20, 25)), "25-30": set(range(25, 30))}
    young = dataset.shifts["under 30"].X["age"]
    assert sum(len(fold) for fold in dataset.groups.values()) == (young >= 20).sum() == 369


def test_a_seed_gives_the_same_rows_on_any_machine_and_another_seed_others(dataset, rows_hash):
    expected = "30de53fe16a0e93525811807fe7becef6916576950e58d73374f33e26810d9be"
    assert rows_hash(dataset) == expected
    assert rows_hash(german_credit.load(random_state=0)) == expected
    assert rows_hash(german_credit.load(random_state=37)) != expected


@pytest.fixture
def changed(dataset, monkeypatch):
    """The same data, but with other features in the certification fold and in the shift."""
    table, y = german_credit.read()
    rows = dataset.folds.certification.X.index.append(dataset.shifts["under 30"].X.index)
    table.loc[rows, "credit_amount"] = 99_999_999
    table["purpose"] = table["purpose"].astype(object)
    table.loc[rows, "purpose"] = "moon landing"
    monkeypatch.setattr(german_credit, "read", lambda: (table, y))
    return german_credit.load(random_state=0)


def test_preprocessing_sees_neither_certification_fold_nor_shift(dataset, changed):
    assert (changed.folds.certification.X["purpose"] == "moon landing").all()
    before, after = (
        TabularEncoder().fit(rows).transform(rows)
        for rows in (dataset.folds.train.X, changed.folds.train.X)
    )
    assert before.tobytes() == after.tobytes()


@pytest.mark.filterwarnings("ignore::reliablenet.errors.EmptyCertificateWarning")
@pytest.mark.filterwarnings("ignore::reliablenet.errors.NotCertifiedWarning")
@pytest.mark.filterwarnings("ignore::reliablenet.errors.ReuseWarning")
def test_a_fitted_network_has_seen_neither_certification_fold_nor_shift(dataset, changed):
    fitted = []
    for folds in (dataset.folds, changed.folds):
        model = rn.ERMClassifier(epochs=1, random_state=0)
        fitted.append(
            model.fit(
                folds.train.X,
                folds.train.y,
                selection=folds.selection,
                certification=folds.certification,
            )
        )
    matrices = [model.encoder_.transform(dataset.folds.train.X).tobytes() for model in fitted]
    assert matrices[0] == matrices[1]
    proba = [model.predict_proba(dataset.folds.train.X) for model in fitted]
    assert np.array_equal(*proba)
