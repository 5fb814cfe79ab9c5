"""`class_weight`: it shapes the model; budget, threshold and certificate count every row once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import TensorDataset

import reliablenet as rn
from reliablenet.errors import InvalidParameterError
from reliablenet.training import AdaptiveSchedule

pytestmark = [
    pytest.mark.filterwarnings(f"ignore::reliablenet.errors.{name}")
    for name in ("ReuseWarning", "NotCertifiedWarning", "EmptyCertificateWarning", "LabelWarning")
]
SHORT = AdaptiveSchedule(warmup_epochs=6, epochs_per_stage=2, patience=2)


def rows(n: int = 600) -> tuple[np.ndarray, np.ndarray]:
    """One label in ten is rare, and only half told by the column."""
    draw = np.random.default_rng(0)
    y = np.where(draw.random(n) < 0.1, "rare", "usual")
    return draw.normal(size=(n, 2)) + np.where(y == "rare", 1.0, 0.0)[:, None], y


def fit(weight: Any, members: Any = ("network",)) -> rn.ReliableClassifier:
    clf = rn.ReliableClassifier(
        alpha=0.2,
        class_weight=weight,
        members=members,
        schedule=SHORT,
        random_state=0,
        verbose=False,
    )
    return clf.fit(*rows())


@pytest.mark.parametrize("members", [("network",), ("network", "boosting", "forest")])
def test_a_class_that_counts_more_is_predicted_more_often(members) -> None:
    X, _ = rows()
    plain, balanced, named = (
        np.mean(fit(weight, members).predict_proba(X)[:, 0])
        for weight in (None, "balanced", {"rare": 9.0})
    )
    assert plain < 0.2
    assert balanced > plain + 0.1
    assert named > plain + 0.1


def test_the_certificate_counts_every_row_once() -> None:
    plain, weighted = fit(None), fit("balanced")
    assert weighted.certificate_.n == plain.certificate_.n
    kept = weighted.evidence_.scored()
    certificate = weighted.certificate_
    accepted = kept.score >= certificate.threshold
    assert certificate.errors == np.count_nonzero(accepted & kept.wrong)


@pytest.mark.parametrize(
    "weight", ["heavy", {"rare": -1.0}, {"rare": float("nan")}, {"other": 2.0}, 3.0]
)
def test_other_weights_are_refused(weight) -> None:
    with pytest.raises(InvalidParameterError, match="`class_weight` of ReliableClassifier must"):
        fit(weight)


def test_no_weight_at_all_is_refused() -> None:
    with pytest.raises(InvalidParameterError, match="leave some rows with a weight"):
        fit({"rare": 0.0, "usual": 0.0})


def test_rows_that_are_read_batch_by_batch_have_no_weight() -> None:
    X, y = rows(90)
    data = TensorDataset(torch.tensor(X, dtype=torch.float32), torch.tensor(y == "rare").long())
    clf = rn.ReliableClassifier(class_weight="balanced", network="mlp", verbose=False)
    with pytest.raises(InvalidParameterError, match="batch by batch"):
        clf.fit(data, selection=data, certification=data)
