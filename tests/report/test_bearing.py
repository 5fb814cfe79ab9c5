"""The page on who bears the mistakes and how far the source may move, against the records."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import reliablenet as rn
from reliablenet.report import model_page, text
from reliablenet.report.bearing import bearing_parts, bearing_table, moves_table


@pytest.fixture(scope="module")
def model():
    """A rule whose mistakes fall on the second half of a column."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 2))
    noise = np.where(X[:, 1] > 0, 2.0, 0.1) * rng.normal(size=3000)
    y = np.where(X[:, 0] + noise > 0, "<b>yes", "no")
    return rn.CertifiedThreshold(LogisticRegression(), alpha=0.1, random_state=0).fit(X, y)


def test_the_page_names_who_bears_the_mistakes(model) -> None:
    page = model_page(model)
    parts = bearing_parts(model.breakdown_)
    assert parts[0]["clear"]
    assert parts[0]["name"].startswith("1 = ")
    assert '<section id="bearing"' in page
    for part in parts:
        assert part["counts"] in page
        assert part["mistakes"] > part["rows"]
    assert "&lt;b&gt;yes" in page
    assert "<b>yes" not in page
    assert "exploratory" in page


def test_the_page_of_a_promise_by_group_names_them_too(model) -> None:
    X = np.random.default_rng(1).normal(size=(3000, 2))
    y = np.where(X[:, 0] + np.random.default_rng(2).normal(size=3000) > 0, "yes", "no")
    promise = rn.Promise.by_group(0.1, by="side")
    rule = rn.CertifiedThreshold(LogisticRegression(), promise=promise, random_state=0)
    page = model_page(rule.fit(X, y, by=np.where(X[:, 1] > 0, "left", "right")))
    assert rule.breakdown_.whole.errors
    assert '<section id="bearing"' in page
    assert '<a href="#bearing">' in page


def test_the_table_has_every_part_and_marks_the_clear_ones(model) -> None:
    table, frame = bearing_table(model.breakdown_), model.breakdown_.to_frame()
    assert len(table.rows) == len(frame)
    assert sorted(table.marked) == frame.index[frame["clear"]].tolist()
    assert table.rows[0][:4] == (
        "All rows",
        *(text.count(frame[name].iloc[0]) for name in ("n", "accepted", "errors")),
    )


def test_moves_are_said_to_be_sensitivity(model) -> None:
    page, table = model_page(model), moves_table(model.certificate_)
    assert "sensitivity, not a promise" in page
    assert {row[1] for row in table.rows} == {
        "total variation",
        "chi-square",
        "KL divergence",
        "likelihood ratio",
    }
    kept = {row[4] == "yes": [] for row in table.rows}
    for row in table.rows:
        kept[row[4] == "yes"].append(float(row[3].rstrip(" %")) / 100)
    assert max(kept.get(True, [0])) <= model.certificate_.alpha < min(kept.get(False, [1]))
    refused = rn.Certificate(9, 120, 153, alpha=0.05, rho=0.05, threshold=0.9)
    assert moves_table(refused) is None


def test_without_mistakes_there_is_nobody_to_name() -> None:
    X = np.random.default_rng(0).normal(size=(600, 1))
    fitted = rn.CertifiedThreshold(LogisticRegression(), alpha=0.1, random_state=0).fit(
        X, X[:, 0] > 0
    )
    found = model_page(fitted)
    assert ('<section id="bearing"' in found) == (fitted.breakdown_.whole.errors > 0)
