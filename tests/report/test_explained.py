"""The page on which columns the decisions rest on, and on what lowers the least sure rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import reliablenet as rn
from reliablenet.metrics import RowAnswers, permutation_importance
from reliablenet.report import fold_importance, model_page, write_page
from reliablenet.report.explained import fold_table, importance_bars, importance_table
from reliablenet.tables import TabularEncoder

EVIL = "<b>income"


@pytest.fixture(scope="module")
def rows() -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"noise": rng.normal(size=2000), EVIL: rng.normal(size=2000)})
    X["job"] = rng.choice(["cook", "clerk"], 2000)
    return X, np.where(X[EVIL] + 0.5 * rng.normal(size=2000) > 0, "yes", "no")


@pytest.fixture(scope="module")
def model(rows) -> rn.CertifiedThreshold:
    inner = make_pipeline(TabularEncoder(), LogisticRegression())
    return rn.CertifiedThreshold(inner, alpha=0.05, random_state=0).fit(*rows)


def test_the_page_ranks_the_columns_and_says_what_that_is_not(model, rows) -> None:
    X, y = rows
    page = model_page(model, table=X, labels=y)
    bars = importance_bars(fold_importance(model, X))
    assert bars[0]["name"] == EVIL
    assert '<section id="columns"' in page
    assert "says nothing about causes; no certificate covers it" in page
    assert "&lt;b&gt;income" in page
    assert EVIL not in page
    assert all(bar["said"] in page for bar in bars)
    assert "Lowered by" in page
    assert page == model_page(model, table=X, labels=y)


def test_without_the_table_there_is_no_section_unless_it_is_given(model, rows) -> None:
    assert '<section id="columns"' not in model_page(model)
    page = model_page(model, importance=fold_importance(model, rows[0]))
    assert '<section id="columns"' in page
    assert "Lowered by" not in page


def test_it_is_measured_on_the_certification_rows_with_their_truth(model, rows) -> None:
    X, y = rows
    found, row = fold_importance(model, X), model.evidence_.row
    by_hand = model.permutation_importance(X.iloc[row], y[row], most_rows=1000)
    for name, values in by_hand.changes.items():
        np.testing.assert_array_equal(found.changes[name], values)
    assert "wrong_change" in found.changes
    more = fold_table(model, X.assign(target=y))
    pd.testing.assert_frame_equal(more, X.iloc[row])


def test_a_table_that_is_read_otherwise_is_not_explained(model, rows) -> None:
    X, _ = rows
    for other in (X.assign(noise=0.5), X.drop(columns="job"), X[:50], X["job"], None):
        assert fold_table(model, other) is None
    assert fold_importance(model, X[::-1]) is None
    page = model_page(model, table=X.assign(**{EVIL: 0.0}))
    assert "do not get the confidences that they had in fit" in page
    assert '<section id="columns"' not in page


def test_groups_and_folds_of_their_own_are_found(rows) -> None:
    X, y = rows
    inner = make_pipeline(TabularEncoder(), LogisticRegression()).fit(X[:800], y[:800])
    fold = (X[1000:], y[1000:])
    promise = rn.Promise.by_group(0.1, by="job")
    clf = rn.CertifiedThreshold(inner, promise=promise)
    clf.fit(X[800:1000], y[800:1000], certification=fold)
    assert fold_importance(clf, X[1000:]).rows == 1000
    assert "Lowered by" in model_page(clf, table=X[1000:])


def test_every_column_is_among_the_numbers(model, rows) -> None:
    found = fold_importance(model, rows[0])
    table = importance_table(found)
    assert [row[0] for row in table.rows] == found.to_frame()["column"].tolist()
    assert len(table.columns) == 8
    assert all("±" in cell and "+-" not in cell for row in table.rows for cell in row[1:])


def test_bars_fit_and_a_model_that_never_acts_has_those_of_its_confidence() -> None:
    def decide(rows, places, shuffled):
        return RowAnswers(rows[:, 0] > 0, np.abs(rows[:, 0]), np.zeros(len(rows), bool))

    rows = np.random.default_rng(0).normal(size=(60, 20))
    bars = importance_bars(permutation_importance(decide, rows))
    assert len(bars) == 12
    assert bars[0]["of"] == "mean change of confidence"
    assert bars[0]["name"] == "0"
    for bar in bars:
        assert 0 <= bar["low"] <= bar["width"] <= bar["high"] <= 100


def test_in_a_browser_the_bars_are_as_long_as_they_say(model, rows, browser, tmp_path) -> None:
    X, y = rows
    path = write_page(model_page(model, table=X, labels=y), tmp_path / "page.html")
    bars = importance_bars(fold_importance(model, X))
    for width in (1000, 360):
        page = browser.new_page(viewport={"width": width, "height": 800})
        page.goto(path.as_uri())
        assert page.get_by_role("link", name="Columns").count() == 1
        items = page.locator("#columns .resting li")
        assert items.count() == len(bars)
        for place, bar in enumerate(bars):
            item = items.nth(place)
            assert item.inner_text().split("\n")[0] == bar["name"]
            track, drawn = (item.locator(part).bounding_box() for part in (".track", ".seen"))
            assert abs(drawn["width"] - track["width"] * bar["width"] / 100) <= 1.5
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.close()
