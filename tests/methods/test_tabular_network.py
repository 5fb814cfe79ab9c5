"""`ReliableClassifier` with the network for tables and the schedule that adapts."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

import reliablenet as rn
from reliablenet.datasets import SyntheticBand
from reliablenet.errors import InvalidParameterError
from reliablenet.tables import PiecewiseEncoder, TabularEncoder
from reliablenet.training import BatchEnsemble, Optimisation


def table(n, seed):
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": random.integers(18, 90, n).astype(float),
            "gain": np.where(random.random(n) < 0.7, 0.0, random.lognormal(8, 1, n)),
            "job": random.choice(["clerk", "nurse", "smith"], n),
        }
    )
    frame.loc[random.random(n) < 0.05, "age"] = np.nan
    logit = 3 - (frame["age"].fillna(50) - 45).abs() / 6 + 2 * (frame["gain"] > 3000)
    return frame, np.where(logit + random.logistic(size=n) > 0, "rich", "poor")


def tabular(**settings):
    return rn.ReliableClassifier(0.1, **{"random_state": 0, "verbose": False} | settings)


@pytest.fixture(scope="module")
def fitted():
    X, y = table(3000, 0)
    return tabular().fit(X, y)


@pytest.mark.filterwarnings("ignore::reliablenet.errors.ConstraintWarning")
def test_it_learns_what_bends_and_certifies_more_than_the_papers_network(fitted):
    X, y = table(3000, 0)
    new, truth = table(20_000, 1)
    paper = rn.ReliableClassifier(
        0.1,
        network="mlp",
        schedule=rn.training.Schedule(max_stages=3),
        random_state=0,
        verbose=False,
    )
    paper.fit(X, y)
    assert isinstance(fitted.network_[1], BatchEnsemble)
    assert isinstance(fitted.encoder_, PiecewiseEncoder)
    assert len(fitted.encoder_.edges_[0]) > 2
    assert type(paper.encoder_) is TabularEncoder
    ours, theirs = (model.evaluate(new, truth) for model in (fitted, paper))
    assert ours.throughput > theirs.throughput
    assert ours.jcw <= 0.1


def test_it_is_trained_on_the_selection_rows_too_in_the_end(fitted):
    history = fitted.history_
    held = fitted.certificate_.n
    assert history.refitted_rows == 3000 - held
    assert history.stopped.startswith("the budget holds without the constraint")
    assert len(history.records) < 60
    rows = f"{history.chosen_epoch} epochs on all {3000 - held:,} training and selection rows"
    assert rows in history.weights_in_use


@pytest.mark.filterwarnings("ignore::reliablenet.errors.ReuseWarning")
def test_the_history_is_that_of_the_first_fit_and_the_weights_are_those_of_the_second():
    X, y = table(900, 0)
    again = tabular().fit(X, y)
    once = tabular()
    once._shares_selection = True  # as inside a rule that still needs the selection fold
    once.fit(X, y)
    assert again.history_.refitted_rows == 900 - again.certificate_.n
    assert once.history_.weights_in_use == (
        f"The weights in use are those of epoch {once.history_.chosen_epoch}."
    )
    assert again.history_.frame().equals(once.history_.frame())
    assert not np.array_equal(again.predict_proba(X), once.predict_proba(X))


@pytest.mark.filterwarnings("ignore::reliablenet.errors.ConstraintWarning")
@pytest.mark.filterwarnings("ignore::reliablenet.errors.ReuseWarning")
def test_nothing_is_refitted_where_the_selection_fold_decides_the_rule():
    X, y = table(1500, 0)
    assert tabular(threshold="selection").fit(X, y).history_.refitted_rows == 0
    fixed = tabular(threshold=0.7).fit(X, y)
    assert fixed.history_.refitted_rows == 0
    assert fixed.threshold_ in (0.7, np.inf)


def test_a_row_gets_the_same_answer_alone_and_in_company(fitted):
    new, _ = table(700, 2)
    together = fitted.predict_proba(new)
    for row in (0, 311, 699):
        alone = fitted.predict_proba(new.iloc[[row]])
        assert alone.tobytes() == together[[row]].tobytes()


def test_a_saved_model_decides_alike(fitted, tmp_path):
    new, _ = table(500, 2)
    loaded = rn.load(fitted.save(tmp_path / "model.rnet"))
    assert loaded.predict_proba(new).tobytes() == fitted.predict_proba(new).tobytes()
    assert loaded.history_.refitted_rows == fitted.history_.refitted_rows
    assert loaded.encoder_.to_dict() == fitted.encoder_.to_dict()
    assert loaded.get_params() == fitted.get_params()


def test_the_same_seed_gives_the_same_bits():
    X, y = table(800, 3)
    first, second = (tabular().fit(X, y).predict_proba(X) for _ in range(2))
    assert first.tobytes() == second.tobytes()


def test_several_classes_and_a_plain_array():
    random = np.random.default_rng(0)
    X = random.normal(size=(1500, 4))
    y = np.digitize(X[:, 0] + 0.3 * random.normal(size=1500), [-0.5, 0.5])
    model = tabular().fit(X, y)
    assert model.predict_proba(X).shape == (1500, 3)
    assert model.certificate_.certified


def test_settings_of_the_optimiser_are_the_networks_own_unless_given():
    assert tabular()._optimisation() == Optimisation.tabular()
    assert rn.ReliableClassifier()._optimisation() == Optimisation.tabular()
    assert rn.ReliableClassifier(network="mlp")._optimisation() == Optimisation()
    assert rn.ReliableClassifier(network="cnn5")._optimisation() == Optimisation.images()
    given = tabular(learning_rate=0.5, batch_size=32)._optimisation()
    assert (given.learning_rate, given.batch_size, given.averaging) == (0.5, 32, 0.99)


def test_a_dataset_is_trained_on_without_the_refit():
    rows = SyntheticBand(random_state=0).sample(1200)
    X, y = torch.from_numpy(rows.X).float(), torch.from_numpy(rows.y)
    cuts = [slice(0, 800), slice(800, 1000), slice(1000, 1200)]
    parts = [torch.utils.data.TensorDataset(X[cut], y[cut]) for cut in cuts]
    model = tabular().fit(parts[0], selection=parts[1], certification=parts[2])
    assert model.history_.refitted_rows == 0
    assert model.certificate_.n == 200


@pytest.mark.parametrize("name", ["fast", None])
def test_an_unknown_schedule_is_refused(name):
    with pytest.raises(InvalidParameterError, match='be "paper", "adaptive" or a Schedule'):
        tabular(schedule=name).fit(*table(100, 0))
