"""A method is a record; one that is registered is run, tabled and drawn, with nothing else to change."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sklearn.linear_model import LogisticRegression

import reliablenet as rn
from reliablenet.bench import (
    METHODS,
    Method,
    Plan,
    Point,
    Profile,
    Store,
    Training,
    count_runs,
    load_profile,
    pending_jobs,
    register,
    run_jobs,
)
from reliablenet.bench.figures import FIGURES
from reliablenet.bench.fitting import Fitted, fit_on
from reliablenet.bench.methods import find_method, paper_methods, study_methods
from reliablenet.bench.results import results_frame
from reliablenet.bench.tables import in_distribution, matched_coverage, ranking
from reliablenet.errors import InvalidParameterError

ROOT = Path(__file__).parents[2]


def fit_logistic(plan, dataset, seed, rho) -> Fitted:
    model = rn.CertifiedThreshold(LogisticRegression(), plan.alpha, rho, random_state=seed)
    fit_on(model, dataset)
    return Fitted(model)


LOGISTIC = Training("logistic", fit_logistic, "table")
NEW = Method("my.way", LOGISTIC, Point.CERTIFIED, "Logistic, certified")


@pytest.fixture
def registry() -> Iterator[None]:
    """Let what a test registers be forgotten."""
    before = dict(METHODS)
    yield
    METHODS.clear()
    METHODS.update(before)


@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_new_method_is_added_in_one_place(tmp_path, n_jobs) -> None:
    register(NEW)
    profile = load_profile("smoke")
    store = profile.open_store(tmp_path)
    jobs = pending_jobs(profile, store, methods=["my.way", "erm"])
    assert [str(job) for job in jobs] == [
        f"synthetic_band {training} {seed}" for seed in (0, 37) for training in ("erm", "logistic")
    ]
    left = count_runs(profile, store)["synthetic_band"][2]
    assert run_jobs(jobs, store, n_jobs=n_jobs) == []
    assert count_runs(profile, store)["synthetic_band"] == (4, 0, left - 4)
    frame = results_frame(store, profile).set_index("method")
    assert set(frame.loc["my.way", "classifier"]) == {"logistic"}
    for table in (in_distribution, ranking, matched_coverage):
        assert "my.way" in set(table(store, profile).numbers["method"])
    figure = FIGURES["severity_synthetic_band"](store, profile, ["erm", "my.way"])
    assert set(figure.frame()["method"]) == {"erm", "my.way"}
    legend = [text.get_text() for text in figure.plot().legends[0].get_texts()]
    assert "Logistic, certified" in legend
    images = Profile("mine", {"cifar10": Plan("cifar10", kind="images")})
    assert pending_jobs(images, Store(tmp_path / "images"), methods=["my.way"]) == []


@pytest.mark.usefixtures("registry")
def test_names_are_checked() -> None:
    with pytest.raises(InvalidParameterError, match="`name` of Method must be a name for a folder"):
        register(replace(NEW, name="../mine"))
    with pytest.raises(InvalidParameterError, match="`name` of Method"):
        register(replace(NEW, name="erm"))
    with pytest.raises(InvalidParameterError, match="`name` of Method"):
        register(replace(NEW, name="geometry"))  # a run that is no method
    with pytest.raises(InvalidParameterError, match="`training` of Method must have a name of its"):
        register(replace(NEW, training=Training("erm", fit_logistic)))
    with pytest.raises(InvalidParameterError, match="`needs` of Training must be any or one of"):
        Training("mine", fit_logistic, "text")
    with pytest.raises(InvalidParameterError, match="`methods` of bench must be among"):
        find_method("my.way")
    assert "my.way" not in METHODS


@pytest.mark.usefixtures("registry")
def test_a_training_without_eps_has_no_method_that_acts_there(tmp_path) -> None:
    register(replace(NEW, point=Point.EPS))
    profile, store = load_profile("smoke"), Store(tmp_path)
    [failure] = run_jobs(pending_jobs(profile, store, methods=["my.way"], seeds=[0]), store)
    assert "acts at eps*, and the training logistic sets none" in failure


def test_the_papers_methods_are_among_those_of_the_study() -> None:
    assert paper_methods() == (
        "erm",
        "temperature",
        "confidence_threshold",
        "conformal_risk_control",
        "selectivenet",
        "deep_gamblers",
        "reliablenet_last@eps",
    )
    assert len(study_methods()) == 23
    assert [method.name for method in METHODS.values() if method.ablation] == [
        f"tabular-{part}+certified" for part in ("encoding", "ensemble", "average", "folds")
    ]


def test_no_name_of_a_method_is_parsed() -> None:
    """Neither in the room nor by those who show its results."""
    parsing = re.compile(r"(?:split|startswith|endswith|(?:r?partition)|remove(?:suf|pre)fix)\(")
    files = [*(ROOT / "src/reliablenet/bench").glob("*.py")]
    files.append(ROOT / "src/reliablenet/report/benchmark.py")
    assert len(files) > 10
    for file in files:
        assert not parsing.search(file.read_text()), file.name


@pytest.mark.parametrize("profile", ["paper", "cpu"])
def test_every_committed_run_counts_as_done(profile) -> None:
    study = load_profile(profile)
    store = study.open_store(ROOT / "results")
    counts = count_runs(study, store)
    for name, plan in study.plans.items():
        done, failed, left = counts[name]
        expected = len(study_methods(plan)) * len(study.seeds) + (name == "synthetic_band")
        assert (done + left, failed) == (expected, 0)
        assert left == 0 or plan.kind == "images"
    assert len(store.records()) == {"paper": 606, "cpu": 136}[profile]
