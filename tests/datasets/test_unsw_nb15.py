from __future__ import annotations

import gzip

import numpy as np
import pandas as pd
import pytest

from reliablenet.datasets import unsw_nb15
from reliablenet.errors import DataFileError, InvalidParameterError
from reliablenet.tables import Fold, TabularEncoder

PATHS = ("unsw_nb15/UNSW_NB15_testing-set.csv.gz",)
FAMILIES = ("Normal", *unsw_nb15.SEEN, *unsw_nb15.UNSEEN)
SMALL, LARGE = 82_332, 175_341


@pytest.fixture(scope="module")
def dataset(needs_files):
    needs_files(*PATHS)
    return unsw_nb15.load(random_state=0, partitions="small")


@pytest.fixture(scope="module")
def table(needs_files):
    needs_files(*PATHS)
    return unsw_nb15.read("small")[0]


def all_folds(dataset) -> list[Fold]:
    return [*vars(dataset.folds).values(), *dataset.shifts.values()]


def test_rows_columns_and_families_are_the_publishers(table):
    assert table.shape == (SMALL, 45)
    assert table["id"].tolist() == list(range(1, SMALL + 1))
    assert table["attack_cat"].value_counts().to_dict() == {
        "Normal": 37_000,
        "Generic": 18_871,
        "Exploits": 11_132,
        "Fuzzers": 6_062,
        "DoS": 4_089,
        "Reconnaissance": 3_496,
        "Analysis": 677,
        "Backdoor": 583,
        "Shellcode": 378,
        "Worms": 44,
    }
    assert not table.isna().any(axis=None)


def test_features_are_3_categories_and_39_numbers_and_the_label_is_the_files(dataset, table):
    X = pd.concat([fold.X for fold in all_folds(dataset)]).sort_index()
    assert X.select_dtypes("category").columns.tolist() == ["proto", "service", "state"]
    assert X.select_dtypes("number").shape == (SMALL, 39)
    pd.testing.assert_frame_equal(X, table.drop(columns=["id", "attack_cat", "label"]))
    for fold in all_folds(dataset):
        assert np.array_equal(fold.y, table["label"].to_numpy()[fold.X.index])


def test_folds_and_shift_make_up_all_rows_once(dataset):
    assert [len(fold) for fold in all_folds(dataset)] == [48_827, 10_463, 10_464, 12_578]
    assert len(np.unique(np.concatenate([f.X.index for f in all_folds(dataset)]))) == SMALL
    assert dataset.info["rows"] == SMALL
    assert dataset.info["partitions"] == [SMALL]
    digest = "734fe6642edf758f7c94d7d9149426b49d202fe8e7bf0bef47392489c3c0a559"
    assert dataset.info["files"] == {PATHS[0]: digest}


def test_folds_are_stratified_and_hold_no_unseen_family(dataset, table):
    folds = vars(dataset.folds).values()
    attacks = sum(fold.y.sum() for fold in folds)
    rows = sum(len(fold) for fold in folds)
    for fold in folds:
        families = set(table["attack_cat"].iloc[fold.X.index])
        assert families == {"Normal", "Generic", "Exploits", "Fuzzers", "DoS"}
        assert abs(fold.y.sum() - attacks * len(fold) / rows) < 2


def test_the_shift_is_a_fifth_of_normal_traffic_and_the_unseen_families(dataset, table):
    counts = table["attack_cat"].iloc[dataset.shifts["unseen attacks"].X.index].value_counts()
    assert counts[counts > 0].to_dict() == {
        "Normal": 7400,
        "Reconnaissance": 3_496,
        "Analysis": 677,
        "Backdoor": 583,
        "Shellcode": 378,
        "Worms": 44,
    }


def test_groups_are_the_attacks_of_each_unseen_family_alone(dataset, table):
    assert tuple(dataset.groups) == unsw_nb15.UNSEEN
    for name, fold in dataset.groups.items():
        assert set(table["attack_cat"].iloc[fold.X.index]) == {name}
        assert len(fold) == (table["attack_cat"] == name).sum()
        assert (fold.y == 1).all()


def test_a_seed_gives_the_same_rows_on_any_machine_and_another_seed_others(dataset, rows_hash):
    expected = "68fbfb4063c74edabd130d9879c3f5ddf528b7b4f2d6715663eb55fe2ccb7333"
    assert rows_hash(dataset) == expected
    assert rows_hash(unsw_nb15.load(random_state=0, partitions="small")) == expected
    other = unsw_nb15.load(random_state=37, partitions="small")
    assert not np.array_equal(other.folds.train.X.index, dataset.folds.train.X.index)
    assert not np.array_equal(
        other.shifts["unseen attacks"].X.index, dataset.shifts["unseen attacks"].X.index
    )


def test_nothing_outside_the_training_fold_touches_preprocessing(dataset, table, monkeypatch):
    others = table.index.difference(dataset.folds.train.X.index)
    altered = table.astype({"dur": float, "proto": object})
    altered.loc[others, "dur"] = 1e9
    altered.loc[others, "proto"] = "pigeon"
    monkeypatch.setattr(unsw_nb15, "read", lambda partitions: (altered, {}))
    changed = unsw_nb15.load(random_state=0)
    assert (changed.folds.certification.X["proto"] == "pigeon").all()
    before, after = (
        TabularEncoder().fit(rows).transform(rows)
        for rows in (dataset.folds.train.X, changed.folds.train.X)
    )
    assert before.tobytes() == after.tobytes()


def fake_partition(rows: int, ending: bytes = b"\r\n", mark: bytes = b"\xef\xbb\xbf") -> bytes:
    """A file with the row and family counts of a partition, all features alike but `dur`."""
    features = b",tcp,-,FIN" + b",1" * 38 + b","
    lines = [mark + unsw_nb15.HEADER]
    for family, count in zip(FAMILIES, unsw_nb15.FAMILY_ROWS[rows], strict=True):
        tail = features + family.encode() + (b",0" if family == "Normal" else b",1")
        lines += [b"1,%d" % rows + tail] * count
    return ending.join([*lines, b""])


@pytest.fixture
def data_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("RELIABLENET_DATA", str(tmp_path))
    monkeypatch.setattr("reliablenet.datasets.sources._cache_folder", lambda: tmp_path / "cache")
    (tmp_path / "unsw_nb15").mkdir()
    return tmp_path / "unsw_nb15"


TESTING, TRAINING = "UNSW_NB15_testing-set.csv", "UNSW_NB15_training-set.csv"


@pytest.mark.parametrize(("small", "large"), [(TESTING, TRAINING), (TRAINING, TESTING)])
def test_partitions_are_told_apart_by_their_rows_whatever_their_names(data_folder, small, large):
    (data_folder / small).write_bytes(fake_partition(SMALL))
    (data_folder / f"{large}.gz").write_bytes(gzip.compress(fake_partition(LARGE), 1))
    both = unsw_nb15.load(random_state=0)
    assert both.info["partitions"] == [SMALL, LARGE]
    assert list(both.info["files"]) == [f"unsw_nb15/{small}", f"unsw_nb15/{large}.gz"]
    assert both.info["rows"] == sum(len(fold) for fold in all_folds(both)) == 257_673
    assert len(both.shifts["unseen attacks"]) == 18_600 + 5_178 + 15_500
    joined = pd.concat([fold.X["dur"] for fold in all_folds(both)]).sort_index()
    assert np.array_equal(joined, np.repeat([SMALL, LARGE], [SMALL, LARGE]))
    alone = unsw_nb15.load(random_state=0, partitions="small")
    assert alone.info["partitions"] == [SMALL]
    assert set(alone.folds.train.X["dur"]) == {SMALL}


def test_line_endings_byte_order_mark_and_last_line_make_no_difference(data_folder):
    frames = []
    for content in (fake_partition(SMALL), fake_partition(SMALL, b"\n", b"").rstrip()):
        (data_folder / TESTING).write_bytes(content)
        frames.append(unsw_nb15.read()[0])
    pd.testing.assert_frame_equal(*frames)


def test_a_missing_partition_is_named_by_its_rows_with_page_and_folder(data_folder):
    with pytest.raises(DataFileError, match=r"82,332 rows; found none.*research\.unsw\.edu\.au"):
        unsw_nb15.load()
    (data_folder / TESTING).write_bytes(fake_partition(LARGE))
    with pytest.raises(DataFileError, match=r"82,332 rows; found .*testing-set.csv \(175,341 rows"):
        unsw_nb15.load()
    (data_folder / TESTING).write_bytes(fake_partition(SMALL))
    with pytest.raises(DataFileError, match=r"175,341 rows; found .*testing-set.csv \(82,332 rows"):
        unsw_nb15.load(partitions="both")
    assert unsw_nb15.load(partitions="auto").info["partitions"] == [SMALL]


def test_a_file_with_other_columns_or_families_is_refused(data_folder):
    content = fake_partition(SMALL)
    (data_folder / TESTING).write_bytes(content.replace(b"id,dur", b"dur,id", 1))
    with pytest.raises(DataFileError, match=r"must name the 45 columns.*got 'dur,id"):
        unsw_nb15.load()
    (data_folder / TESTING).write_bytes(content.replace(b"Worms", b"Worm"))
    with pytest.raises(DataFileError, match=r"378, 44\) rows of normal .* got .*378, 0\)"):
        unsw_nb15.load()


def test_a_damaged_archive_is_refused_by_name(data_folder):
    packed = gzip.compress(fake_partition(SMALL), 1)
    (data_folder / f"{TESTING}.gz").write_bytes(packed[: len(packed) // 2])
    with pytest.raises(DataFileError, match=r"testing-set.csv.gz is damaged"):
        unsw_nb15.load()


def test_an_unknown_choice_of_partitions_is_refused():
    with pytest.raises(InvalidParameterError, match=r"`partitions` .* 'small', 'both'.*got 'all'"):
        unsw_nb15.load(partitions="all")
