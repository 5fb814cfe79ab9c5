"""Models, pages and a browser for the tests of reports."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from contract_helpers import fit_quietly, frame_of, quick
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

import reliablenet as rn
from reliablenet.bench import Plan, Profile, Store, pending_jobs, run_jobs
from reliablenet.datasets import SyntheticBand

EVIL = "<script>alert(1)</script>"


@pytest.fixture(scope="session")
def rows() -> tuple[pd.DataFrame, np.ndarray]:
    """A table whose class, column and values try to run a script."""
    table, y = frame_of(2500)
    table = table.rename(columns={"flag": EVIL})
    table["note"] = np.where(np.arange(2500) % 2, EVIL, "\u2028<img src=x onerror=alert(1)>&amp;")
    return table, np.where(y == "yes", EVIL, y)


@pytest.fixture(scope="session")
def model(rows) -> rn.ReliableClassifier:
    return fit_quietly(quick(rn.ReliableClassifier, alpha=0.09), *rows)


@pytest.fixture(scope="session")
def refused(rows) -> rn.ReliableClassifier:
    table, y = rows
    return fit_quietly(quick(rn.ReliableClassifier, alpha=0.002), table[:400], y[:400])


@pytest.fixture(scope="session")
def band() -> rn.CertifiedThreshold:
    """A rule around a classifier, with a fold of its own."""
    draw = SyntheticBand(random_state=0)
    past, fold = draw.sample(3000), draw.sample(1500)
    model = LogisticRegression().fit(past.X, past.y)
    return rn.CertifiedThreshold(model).fit(
        past.X, past.y, selection=(past.X, past.y), certification=(fold.X, fold.y)
    )


@pytest.fixture(scope="session")
def comparison() -> rn.methods.Comparison:
    rows = SyntheticBand(random_state=0).sample(4000)
    methods = {
        "logistic": LogisticRegression(),
        EVIL: GaussianNB(),
        "conformal": rn.ConformalRiskControl(GaussianNB()),
        "broken": object(),
    }
    return rn.compare(rows.X, rows.y, methods=methods, resamples=50, random_state=0)


@pytest.fixture(scope="session")
def study(tmp_path_factory) -> tuple[Store, Profile]:
    plan = Plan("synthetic_band", epochs=2, warmup_epochs=1, epochs_per_stage=1, max_stages=1)
    profile = Profile("tiny", {"synthetic_band": plan}, seeds=(0, 1))
    store = Store(tmp_path_factory.mktemp("results"))
    assert run_jobs(pending_jobs(profile, store), store) == []
    return store, profile
