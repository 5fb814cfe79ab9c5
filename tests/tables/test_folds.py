from __future__ import annotations

import hashlib
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from scipy.stats import hypergeom

from reliablenet.certificate import largest_certifiable_errors
from reliablenet.certificate.planning import certification_rows
from reliablenet.errors import InvalidDataError, InvalidParameterError
from reliablenet.tables import Fold, cut_folds, cut_groups, cut_rows, fold_counts
from reliablenet.tables.fold_sizes import holdout_counts
from reliablenet.tables.folds import cut_paper_folds, cut_parts

PAPER = (0.70, 0.15, 0.15)


@pytest.mark.parametrize(
    ("n", "shares", "expected"),
    [
        (629, PAPER, (440, 94, 95)),  # the paper's German Credit
        (32_650, PAPER, (22_855, 4897, 4898)),  # and its Adult
        (100, (0.42, 0.29, 0.29), (42, 29, 29)),  # although 0.29 * 100 < 29 in floating point
        (10, (0.2, 0.2, 0.6), (2, 2, 6)),
        (101, (1 / 3, 1 / 3, 1 / 3), (33, 33, 35)),
    ],
)
def test_given_shares_are_rounded_down_and_certification_takes_the_rest(n, shares, expected):
    assert fold_counts(n, shares) == expected


def test_four_rows_are_enough_for_three_folds_as_the_error_message_says():
    assert fold_counts(4) == (2, 1, 1)
    assert fold_counts(4, PAPER) == (2, 1, 1)


def test_a_selection_fold_of_less_than_one_row_is_not_filled_from_the_training_fold():
    assert fold_counts(5, PAPER) == (3, 1, 1)  # 3.5 rows rounded down, not one fewer


@pytest.mark.parametrize("n", [100, 382, 569, 2000, 50_000])
def test_auto_takes_the_planner_s_certification_rows_and_15_percent_to_select(n):
    certified, chosen = certification_rows(n, 0.05), n * 15 // 100
    assert fold_counts(n) == (n - chosen - certified, chosen, certified)
    assert fold_counts(n, selection=False) == (n - certified, 0, certified)


@given(st.integers(4, 10**7), st.floats(1e-4, 0.5), st.floats(1e-3, 0.5))
def test_auto_leaves_training_at_least_a_quarter(n, alpha, rho):
    train, selection, certification = counts = fold_counts(n, alpha=alpha, rho=rho)
    assert sum(counts) == n
    assert certification <= max(0.6 * n, 1)
    assert train >= max(2, 0.25 * n - 1)
    assert selection >= 1


@pytest.mark.parametrize("n", [10, 100, 629, 32_650])
@pytest.mark.parametrize("sizes", ["auto", PAPER, (0.2, 0.5, 0.3)])
def test_without_a_selection_fold_its_rows_train_and_as_many_certify(n, sizes):
    train, selection, certification = fold_counts(n, sizes)
    assert fold_counts(n, sizes, selection=False) == (train + selection, 0, certification)


def test_three_rows_are_enough_for_two_folds_as_the_error_message_says():
    assert fold_counts(3, selection=False) == (2, 0, 1)
    assert fold_counts(3, PAPER, selection=False) == (2, 0, 1)
    with pytest.raises(InvalidDataError, match=r"Two folds need at least 3 rows.*n_samples = 2"):
        fold_counts(2, selection=False)


@pytest.mark.parametrize(("alpha", "rho"), [(0.05, 0.05), (0.01, 0.05), (0.2, 0.1)])
@pytest.mark.parametrize("n", [2, 101, 382, 2000])
def test_nothing_to_train_halves_the_rows_down_to_what_the_errors_need(n, alpha, rho):
    train, selection, certification = holdout_counts(n, "auto", alpha, rho)
    half = n - n // 2
    assert (train, selection + certification) == (0, n)
    assert certification <= half
    most = largest_certifiable_errors(half, alpha, rho)
    assert largest_certifiable_errors(certification, alpha, rho) == most
    if most < 0:  # no size will do
        assert certification == half
    else:
        assert largest_certifiable_errors(certification - 1, alpha, rho) < most


@pytest.mark.parametrize("sizes", ["auto", PAPER])
def test_nothing_to_train_and_nothing_to_select_lets_every_row_certify(sizes):
    assert holdout_counts(1, sizes, selection=False) == (0, 0, 1)
    assert holdout_counts(1000, sizes, selection=False) == (0, 0, 1000)
    with pytest.raises(InvalidDataError, match="n_samples = 0"):
        holdout_counts(0, sizes, selection=False)


@st.composite
def labels_and_counts(draw):
    y = np.repeat(np.arange(5), draw(st.lists(st.integers(0, 40), min_size=5, max_size=5)))
    cuts = sorted(draw(st.lists(st.integers(0, len(y)), min_size=2, max_size=2)))
    counts = (cuts[0], cuts[1] - cuts[0], len(y) - cuts[1])
    return np.random.default_rng(draw(st.integers(0, 99))).permutation(y), counts


@given(labels_and_counts(), st.integers(0, 2**32 - 1))
def test_parts_are_disjoint_exhaustive_and_of_exactly_the_sizes_asked_for(case, seed):
    y, counts = case
    parts = cut_rows(y, counts, seed)
    assert tuple(len(part) for part in parts) == counts
    assert sorted(np.concatenate(parts)) == list(range(len(y)))


@given(labels_and_counts(), st.integers(0, 2**32 - 1))
def test_every_class_gets_its_share_of_a_part_to_within_one_row_for_each_cut(case, seed):
    y, counts = case
    cuts_before = (2, 2, 1)  # parts are cut off from the last to the first, which is the rest
    for part, count, cuts in zip(cut_rows(y, counts, seed), counts, cuts_before, strict=True):
        found = Counter(y[part].tolist())
        for label, size in Counter(y.tolist()).items():
            assert abs(found[label] - size * count / len(y)) < cuts + 1e-9


def test_every_row_lands_in_a_part_with_the_probability_of_its_share():
    y = np.repeat(["singleton", "pair", "few", "many"], [1, 2, 8, 29])
    counts, seeds = (23, 10, 7), 4000
    landed = np.zeros((3, len(y)))
    for seed in range(seeds):
        for place, part in enumerate(cut_rows(y, counts, seed)):
            landed[place, part] += 1
    share = np.array(counts)[:, None] / len(y)
    standard_error = np.sqrt(share * (1 - share) / seeds)
    # 120 comparisons: 4.5 standard errors are exceeded once in 1,200 such tests.
    assert (np.abs(landed / seeds - share) < 4.5 * standard_error).all()


def test_the_same_seed_cuts_the_same_parts_and_another_seed_others():
    y = np.arange(200) % 3
    first, again, other = (cut_rows(y, (100, 50, 50), seed) for seed in (5, 5, 6))
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not np.array_equal(first[0], other[0])


def test_cutting_with_a_seed_leaves_the_global_random_state_alone():
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    cut_rows(np.arange(50) % 2, (30, 10, 10), 0)
    assert np.array_equal(before, np.random.get_state()[1])  # noqa: NPY002


@pytest.mark.parametrize("container", [np.asarray, pd.DataFrame, list])
def test_rows_keep_their_labels_in_every_kind_of_table(container):
    values = np.arange(300).reshape(100, 3)
    folds = cut_folds(container(values), values[:, 0] % 7, fold_sizes=PAPER, random_state=0)
    seen = []
    for fold in (folds.train, folds.selection, folds.certification):
        rows = np.asarray(fold.X)
        assert np.array_equal(rows[:, 0] % 7, fold.y)
        seen += rows[:, 0].tolist()
    assert sorted(seen) == values[:, 0].tolist()


def test_a_frame_stays_a_frame_with_its_index_and_types():
    table = pd.DataFrame({"a": ["x", "y"] * 20, "b": range(40)}, index=range(100, 140))
    train = cut_folds(table, np.arange(40) % 2, fold_sizes=PAPER, random_state=0).train
    pd.testing.assert_frame_equal(train.X, table.loc[train.X.index])


@pytest.mark.parametrize(
    "sizes",
    ["thirds", (0.5, 0.5), (0.7, 0.2, 0.2), (0.0, 0.5, 0.5), (1.2, -0.1, -0.1), ("a", "b", "c")],
)
def test_shares_that_are_not_three_parts_of_one_are_refused(sizes):
    with pytest.raises(
        InvalidParameterError, match=r"`fold_sizes` .* three shares .* sum to 1.*got"
    ):
        fold_counts(100, sizes)


@pytest.mark.parametrize("sizes", [0.3, None])
def test_a_single_share_is_refused_like_any_other_wrong_size(sizes):
    with pytest.raises(InvalidParameterError, match=r"`fold_sizes` .* three shares"):
        fold_counts(100, sizes)


@pytest.mark.parametrize("n", [0, 1, 3])
@pytest.mark.parametrize("sizes", ["auto", PAPER])
def test_too_few_rows_are_refused_with_the_number_needed(n, sizes):
    with pytest.raises(InvalidDataError, match=f"at least 4 rows.*n_samples = {n}"):
        fold_counts(n, sizes)


@pytest.mark.parametrize(("rows", "labels"), [(3, 2), (0, 1)])
def test_a_fold_needs_one_label_a_row(rows, labels):
    with pytest.raises(InvalidDataError, match=f"one label for each.*{rows} rows and {labels} lab"):
        Fold(np.zeros((rows, 2)), np.zeros(labels))


@given(labels_and_counts(), st.integers(0, 2**32 - 1), st.booleans())
def test_cut_parts_are_disjoint_exhaustive_and_of_the_sizes_asked_for(case, seed, stratified):
    y, counts = case
    parts = cut_parts(y, None, lambda n: counts, seed, stratified=stratified)
    assert tuple(len(part) for part in parts) == counts
    assert sorted(np.concatenate(parts)) == list(range(len(y)))


@given(labels_and_counts(), st.integers(0, 2**32 - 1), st.integers(0, 99))
def test_labels_of_certification_rows_decide_nothing_about_the_folds(case, seed, other):
    """So whatever is learned from the other folds is independent of them, given their number."""
    y, counts = case
    parts = cut_parts(y, None, lambda n: counts, seed)
    changed = y.copy()
    changed[parts[2]] = np.random.default_rng(other).integers(0, 9, counts[2])
    again = cut_parts(changed, None, lambda n: counts, seed)
    assert all(np.array_equal(a, b) for a, b in zip(parts, again, strict=True))


@given(labels_and_counts(), st.integers(0, 2**32 - 1))
def test_training_and_selection_share_every_class_of_what_certification_leaves(case, seed):
    y, counts = case
    train, selection, _ = cut_parts(y, None, lambda n: counts, seed)
    left = Counter(y[np.concatenate([train, selection])].tolist())
    found = Counter(y[selection].tolist())
    for label, size in left.items():
        assert abs(found[label] - size * counts[1] / (counts[0] + counts[1])) < 1 + 1e-9


def shares_of_a_class(place, seeds=2000, **settings):
    """How often a part of 20 rows holds 0, 1, ... of a class of 40 rows in 100."""
    y = np.repeat([0, 1], [60, 40])
    found = [
        int(y[cut_parts(y, None, lambda n: (60, 20, 20), seed, **settings)[place]].sum())
        for seed in range(seeds)
    ]
    return np.bincount(found, minlength=21) / seeds


@pytest.mark.parametrize(("place", "settings"), [(2, {}), (1, {"stratified": False})])
def test_the_certification_fold_is_a_simple_random_sample(place, settings):
    """The selection fold is one too, if it is not to be stratified."""
    seen, expected = shares_of_a_class(place, **settings), hypergeom.pmf(range(21), 100, 40, 20)
    standard_error = np.sqrt(expected * (1 - expected) / 2000)
    assert (np.abs(seen - expected) < 4.5 * standard_error + 1 / 2000).all()


def test_the_papers_folds_are_stratified_and_those_of_its_first_version():
    y = np.arange(1003) ** 2 % 7
    folds = vars(cut_paper_folds(np.arange(1003), y, 5)).values()
    rows = b"".join(fold.X.astype("<i8").tobytes() for fold in folds)
    digest = hashlib.sha256(rows).hexdigest()
    assert digest == "8b16e3a78173de9c81f0cd2a4defe2da821f5571c37db3c4dcf0365a8d0fb0d3"
    for fold, cuts in zip(folds, (2, 2, 1), strict=True):
        assert np.abs(np.bincount(fold.y) - np.bincount(y) * len(fold) / 1003).max() < cuts


@st.composite
def grouped_labels(draw):
    sizes = draw(st.lists(st.integers(1, 12), min_size=3, max_size=40))
    groups = np.repeat(np.arange(len(sizes)), sizes)
    random = np.random.default_rng(draw(st.integers(0, 99)))
    cuts = sorted(draw(st.lists(st.integers(0, len(sizes)), min_size=2, max_size=2)))
    counts = (cuts[0], cuts[1] - cuts[0], len(sizes) - cuts[1])
    return random.integers(0, 4, len(groups)), random.permutation(groups), counts


@given(grouped_labels(), st.integers(0, 2**32 - 1))
def test_no_group_is_in_two_parts_and_the_last_part_has_one_row_of_each_of_its_groups(case, seed):
    y, groups, counts = case
    parts = cut_groups(y, groups, counts, seed)
    inside = [set(groups[part].tolist()) for part in parts]
    assert [len(found) for found in inside] == list(counts)
    assert sum(counts) == len(set.union(*inside))
    assert len(parts[2]) == counts[2]
    for part, found in zip(parts[:2], inside, strict=False):  # all rows of their groups
        assert sorted(part.tolist()) == np.flatnonzero(np.isin(groups, list(found))).tolist()


@given(grouped_labels(), st.integers(0, 2**32 - 1), st.integers(0, 99))
def test_labels_of_certification_groups_decide_nothing_about_the_folds(case, seed, other):
    y, groups, counts = case
    parts = cut_groups(y, groups, counts, seed)
    opened = ~np.isin(np.arange(len(y)), np.concatenate(parts[:2]))
    changed = np.where(opened, np.random.default_rng(other).integers(0, 9, len(y)), y)
    again = cut_groups(changed, groups, counts, seed)
    assert all(np.array_equal(a, b) for a, b in zip(parts, again, strict=True))


@pytest.mark.parametrize(("place", "stratified"), [(2, True), (1, False)])
def test_certification_groups_are_a_simple_random_sample(place, stratified):
    groups = np.repeat(np.arange(60), 2)
    y = groups % 3 == 0  # 20 of 60 groups
    found = [
        len(set(groups[part][y[part]].tolist()))
        for part in (
            cut_groups(y, groups, (36, 12, 12), seed, stratified=stratified)[place]
            for seed in range(2000)
        )
    ]
    expected = hypergeom.pmf(range(13), 60, 20, 12)
    error = np.sqrt(expected * (1 - expected) / 2000)
    seen = np.bincount(found, minlength=13) / 2000
    assert (np.abs(seen - expected) < 4.5 * error + 1 / 2000).all()


@pytest.mark.parametrize("counts", [(), (40, 10), (30, 20, 11), (60.0, 0.0), None, "abc"])
def test_numbers_of_groups_that_do_not_add_up_are_refused(counts):
    y, groups = np.arange(120) % 2, np.repeat(np.arange(60), 2)
    with pytest.raises(InvalidParameterError, match=r"`counts` .* sum to 60"):
        cut_groups(y, groups, counts)


def test_all_groups_can_be_one_part():
    (part,) = cut_groups(np.arange(120) % 2, np.repeat(np.arange(60), 2), (60,), 0)
    assert len(part) == 60


def test_every_group_has_the_same_chance_and_within_it_every_row():
    groups = np.repeat(np.arange(12), [1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 8, 8])
    y = np.arange(len(groups)) % 2
    counts, seeds = (6, 3, 3), 4000
    landed = np.zeros(len(groups))
    for seed in range(seeds):
        landed[cut_groups(y, groups, counts, seed)[2]] += 1
    share = 3 / 12 / np.bincount(groups)[groups]
    standard_error = np.sqrt(share * (1 - share) / seeds)
    assert (np.abs(landed / seeds - share) < 4.5 * standard_error).all()


def test_groups_of_unequal_size_and_label_give_parts_near_their_shares():
    random = np.random.default_rng(0)
    groups = np.repeat(np.arange(400), random.geometric(0.1, 400))
    y = (random.random(len(groups)) < random.beta(0.3, 3, 400)[groups]).astype(int)
    parts = [cut_groups(y, groups, (280, 60, 60), seed)[1] for seed in range(100)]
    sizes = np.array([len(part) for part in parts]) / len(y)
    rates = np.array([y[part].mean() for part in parts])
    assert sizes.mean() == pytest.approx(0.15, abs=0.005)
    assert sizes.std() < 0.012  # 0.016 without strata
    assert rates.std() < 0.022  # 0.026


def test_groups_are_cut_alike_with_the_same_seed_whatever_they_are_called():
    y, numbers = np.arange(300) % 3, np.repeat(np.arange(60), 5)
    names = [f"person {number}" for number in numbers]
    first, again, other = (
        cut_groups(y, given, (40, 10, 10), seed)
        for given, seed in ((numbers, 1), (names, 1), (numbers, 2))
    )
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not np.array_equal(first[2], other[2])


def test_folds_are_cut_by_groups_and_their_sizes_count_groups():
    groups = np.repeat(np.arange(1000), 3)
    folds = cut_folds(groups[:, None], groups % 2, groups=groups, random_state=0)
    sizes = len(folds.train), len(folds.selection), len(folds.certification)
    assert sizes == (3 * 464, 3 * 150, 386)
    seen = [set(np.ravel(fold.X).tolist()) for fold in vars(folds).values()]
    assert sum(len(found) for found in seen) == len(set.union(*seen)) == 1000


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (np.arange(9), r"`groups` must hold one label for each of the 10 rows; got shape \(9,\)"),
        (np.zeros((10, 2)), r"one label for each of the 10 rows; got shape \(10, 2\)"),
        ([None, *"abcdefghi"], r"missing in row 0 \(1 in all\)"),
        ([*"aabbccdde", np.nan], "missing in row 9"),
        (np.full(10, np.nan), r"missing in row 0 \(10 in all\)"),
        (["a"] * 10, "`groups` names 1 group, too few to cut folds from.* at least 4"),
        ([*"aaabbbccc", "c"], "`groups` names 3 groups, too few"),
    ],
)
def test_groups_that_cannot_be_used_are_refused(groups, message):
    with pytest.raises(InvalidDataError, match=message):
        cut_folds(np.zeros((10, 1)), np.arange(10) % 2, groups=groups)
