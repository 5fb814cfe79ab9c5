from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest
from study_records import PROFILE, record, small_study

from reliablenet.bench import Store
from reliablenet.bench.tables import (
    agreement,
    in_distribution,
    matched_coverage,
    paper_values,
    ranking,
)
from reliablenet.errors import InvalidDataError


@pytest.fixture
def store(tmp_path) -> Store:
    return small_study(tmp_path)


def test_means_and_deviations_over_seeds(store):
    numbers = in_distribution(store, PROFILE).numbers.set_index("method")
    row = numbers.loc["reliablenet_last@eps"]
    assert row["jcw"] == pytest.approx(0.02)
    assert row["jcw_sd"] == pytest.approx(0.01 * 2**0.5)  # of a sample
    assert row["coverage"] == pytest.approx(0.45)
    assert row["aurc_shift"] == pytest.approx(0.3)
    assert row["share_of_best"] == pytest.approx(np.mean([0.39, 0.47]) / 0.8)
    assert row["counts"] == "1/100 3/100"


def test_within_alpha_and_certified_are_told_apart(store):
    """3 errors in 100 rows are within 0.05 as observed, but prove nothing of the kind."""
    table = in_distribution(store, PROFILE)
    row = table.numbers.set_index("method").loc["reliablenet_last@eps"]
    assert (row["within_alpha"], row["certified"]) == (2, 1)
    cells = table.cells.set_index("method").loc["reliablenet_last@eps"]
    assert (cells["JCW <= alpha"], cells["certified"]) == ("2/2", "1/2")
    assert cells["K of n, by seed"] == "1, 3 of 100"


def test_the_papers_row_follows_ours_where_it_has_one(store):
    cells = in_distribution(store, PROFILE).cells
    place = cells.index[cells["method"] == "reliablenet_last@eps"][0]
    theirs = cells.loc[place + 1]
    assert theirs["method"] == "(paper)"
    assert theirs["Acc"] == "0.821 ± 0.004"
    assert theirs["JCW"] == "0.0271 ± 0.0144"
    assert theirs["certified"] == ""
    after_certified = cells.index[cells["method"] == "erm+certified"][0] + 1
    assert cells.loc[after_certified, "method"] != "(paper)"


def test_ranking_gives_nothing_for_what_was_not_certified(store):
    numbers = ranking(store, PROFILE).numbers.set_index("method")
    assert numbers.loc["erm+certified", "throughput"] == pytest.approx((0.5 + 0.0) / 2)
    assert numbers.loc["reliablenet_last+certified", "throughput"] == pytest.approx(0.5)
    assert numbers.loc["erm+certified", "difference"] == pytest.approx((-0.1 - 0.4) / 2)
    assert numbers.loc["erm+certified", "better"] == 0
    assert list(numbers.index) == ["reliablenet_last+certified", "erm+certified"]


def test_agreement_is_in_standard_deviations_of_the_paper(store):
    table = agreement(store, PROFILE)
    numbers = table.numbers.set_index("measure")
    assert set(table.numbers["dataset"]) == {"adult"}
    mean, sd = paper_values()["adult"]["reliablenet_last@eps"]["jcw"]
    assert numbers.loc["JCW", "distance"] == pytest.approx(abs(0.02 - mean) / sd)
    cells = table.cells.set_index("measure")
    assert cells.loc["JCW", "within two"] == "yes"
    assert cells.loc["Acc", "within two"] == "no"  # 0.8 is five of its deviations away


def test_jcw_at_equal_coverage_comes_from_the_curves_of_the_shift(store):
    for seed, risk in ((0, 0.1), (37, 0.3)):
        curves = np.stack([np.zeros(200), np.full(200, risk)]).astype(np.float32)
        store.write("adult", "erm", seed, record("erm", seed, 20, 100), curves)
        store.write("adult", "selectivenet", seed, record("selectivenet", seed, 20, 100), curves)
    (store.folder / "adult" / "reliablenet_last@eps" / "0.json").unlink()
    (store.folder / "adult" / "reliablenet_last@eps" / "37.json").unlink()
    table = matched_coverage(store, PROFILE)
    assert table.numbers["method"].tolist() == ["erm", "selectivenet"]
    first = table.numbers.iloc[0]
    assert first["jcw_0.5"] == pytest.approx(0.1)
    assert first["jcw_0.75_sd"] == pytest.approx(0.75 * 0.2 / 2**0.5)
    assert table.cells.iloc[0]["JCW at coverage 0.5"] == "0.1000 ± 0.0707"


def test_nothing_to_compare_at_equal_coverage(tmp_path):
    with pytest.raises(InvalidDataError, match="No run of the profile 'mine'"):
        matched_coverage(Store(tmp_path), PROFILE)


def test_every_format_holds_every_row(store):
    table = in_distribution(store, PROFILE)
    assert table.markdown().count("\n|") == len(table.cells) + 2
    assert len(pd.read_csv(io.StringIO(table.csv()))) == len(table.numbers) == 4
    latex = table.latex()
    assert latex.count(r"\\") == len(table.cells) + 1
    assert r"reliablenet\_last@eps" in latex
    assert r"$\pm$" in latex


def test_the_papers_values_hold_six_datasets_and_seven_methods():
    values = paper_values()
    assert len(values) == 6
    assert {len(methods) for methods in values.values()} == {7}
    for methods in values.values():
        for row in methods.values():  # the paper's own arithmetic: JCW = Cov (1 - Acc_HC)
            coverage, right = row["coverage"][0], row["accuracy_accepted"][0]
            assert row["jcw"][0] == pytest.approx(coverage * (1 - right), abs=0.012)
