from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from reliablenet.datasets import adult
from reliablenet.datasets.sources import fetch
from reliablenet.tables import Fold, TabularEncoder

PATHS = ("adult/adult.data", "adult/adult.test")
EDUCATION = (
    "Preschool 1st-4th 5th-6th 7th-8th 9th 10th 11th 12th HS-grad Some-college Assoc-voc Assoc-acdm "
    "Bachelors Masters Prof-school Doctorate"
)


@pytest.fixture(scope="module")
def dataset(needs_files):
    needs_files(*PATHS)
    return adult.load(random_state=0)


@pytest.fixture(scope="module")
def by_hand(needs_files):
    """Both files, line by line, without pandas."""
    needs_files(*PATHS)
    lines = [
        line
        for file in adult.FILES
        for line in fetch(file).read_text().splitlines()
        if line and not line.startswith("|")
    ]
    return [line.rstrip(".").split(", ") for line in lines]


def all_folds(dataset) -> list[Fold]:
    return [*vars(dataset.folds).values(), *dataset.shifts.values()]


def test_every_record_is_that_of_the_files(dataset, by_hand):
    X = pd.concat([fold.X for fold in all_folds(dataset)]).sort_index()
    names = [name for name in adult.COLUMNS if name not in ("sex", "income")]
    assert X.columns.tolist() == names
    assert X.index.tolist() == list(range(48_842))
    places = [list(adult.COLUMNS).index(name) for name in names]
    for name, place in zip(names, places, strict=True):
        found = X[name].astype(object).where(X[name].notna(), "?").astype(str)
        assert found.tolist() == [record[place] for record in by_hand], name


def test_labels_and_domains_are_those_of_the_files(dataset, by_hand):
    income = np.array([record[-1] for record in by_hand])
    male = np.array([record[9] for record in by_hand]) == "Male"
    assert (income == "<=50K").sum() == 37_155
    assert (income == ">50K").sum() == 11_687
    for fold in all_folds(dataset):
        assert np.array_equal(fold.y, income[fold.X.index] == ">50K")
    for fold in vars(dataset.folds).values():
        assert male[fold.X.index].all()
    women = dataset.shifts["women"].X.index
    assert np.array_equal(np.flatnonzero(~male), women)


def test_folds_have_the_papers_sizes_and_share_no_row(dataset):
    assert [len(fold) for fold in all_folds(dataset)] == [22_855, 4897, 4898, 16_192]
    rows = np.concatenate([fold.X.index for fold in all_folds(dataset)])
    assert len(np.unique(rows)) == 48_842 == dataset.info["rows"]


def test_folds_are_stratified(dataset):
    positive = sum(fold.y.sum() for fold in vars(dataset.folds).values())
    for fold in vars(dataset.folds).values():
        assert abs(fold.y.sum() - positive * len(fold) / 32_650) < 2


def test_sex_is_no_predictor_and_question_marks_are_missing_values(dataset):
    X = pd.concat([fold.X for fold in all_folds(dataset)])
    assert X.shape == (48_842, 13)
    missing = X.isna().sum()
    assert missing[missing > 0].to_dict() == {
        "workclass": 2799,
        "occupation": 2809,
        "native-country": 857,
    }


def test_groups_are_the_women_by_rising_education(dataset):
    assert list(dataset.groups) == EDUCATION.split()
    ranks = [set(fold.X["education-num"]) for fold in dataset.groups.values()]
    assert ranks == [{rank} for rank in range(1, 17)]
    rows = np.concatenate([fold.X.index for fold in dataset.groups.values()])
    assert sorted(rows) == dataset.shifts["women"].X.index.tolist()
    for fold in dataset.groups.values():
        women = pd.Series(dataset.shifts["women"].y, dataset.shifts["women"].X.index)
        assert np.array_equal(women[fold.X.index], fold.y)


def test_a_seed_gives_the_same_rows_on_any_machine_and_another_seed_others(dataset, rows_hash):
    expected = "4f95bc0bc5c1dcace658f6ab6c226f8e0ee166a0edb1c75a1dcaa847e2c119a5"
    assert rows_hash(dataset) == expected
    assert rows_hash(adult.load(random_state=0)) == expected
    other = adult.load(random_state=37)
    assert not np.array_equal(other.folds.train.X.index, dataset.folds.train.X.index)


def test_nothing_outside_the_training_fold_touches_preprocessing(dataset, monkeypatch):
    table, y = adult.read()
    others = table.index.difference(dataset.folds.train.X.index)
    for name in table.columns.drop("sex"):
        text = isinstance(table[name].dtype, pd.CategoricalDtype)
        table[name] = table[name].astype(object) if text else table[name]
        table.loc[others, name] = "unheard of" if text else 99_999_999
    monkeypatch.setattr(adult, "read", lambda: (table, y))
    monkeypatch.setattr(adult, "_by_education", lambda women: {})
    changed = adult.load(random_state=0)
    assert (changed.folds.certification.X["age"] == 99_999_999).all()
    before, after = (
        TabularEncoder().fit(rows).transform(rows)
        for rows in (dataset.folds.train.X, changed.folds.train.X)
    )
    assert before.tobytes() == after.tobytes()
