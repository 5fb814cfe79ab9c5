from __future__ import annotations

import numpy as np
import pytest
import torch
from contract_helpers import fit_quietly
from torch import nn
from torch.utils.data import TensorDataset

import reliablenet as rn
from reliablenet.methods.architectures import ARCHITECTURES, build_network, find_architecture
from reliablenet.tables import PiecewiseEncoder, TabularEncoder
from reliablenet.training import AdaptiveSchedule, Optimisation, mlp

SHORT = AdaptiveSchedule(warmup_epochs=3, epochs_per_stage=2, patience=1)


def images_of(n, seed=0):
    random = np.random.default_rng(seed)
    y = random.integers(0, 2, n)
    X = random.normal(0, 0.3, (n, 1, 8, 8)).astype(np.float32)
    X[:, 0, 2:6, 2:6] += y[:, None, None]
    return X, y


def test_each_name_brings_its_encoder_and_optimisation():
    named = ARCHITECTURES
    assert sorted(named) == ["cnn5", "mlp", "resnet18", "resnet9", "tabular"]
    assert named["tabular"].encoder is PiecewiseEncoder
    plain = ("cnn5", "mlp", "resnet9", "resnet18")
    assert {named[name].encoder for name in plain} == {TabularEncoder}
    assert named["tabular"].optimisation == Optimisation.tabular()
    assert named["mlp"].optimisation == Optimisation()
    assert named["cnn5"].optimisation == named["resnet18"].optimisation == Optimisation.images()
    assert named["resnet9"].optimisation == Optimisation.fast_images()
    # a cycle of the learning rate is never cut short
    assert named["resnet9"].schedule.patience >= named["resnet9"].schedule.warmup_epochs


def test_a_factory_of_ones_own_is_trained_as_the_paper_does():
    found = find_architecture(mlp, "Owner")
    assert (found.factory, found.encoder, found.optimisation) == (
        mlp,
        TabularEncoder,
        Optimisation(),
    )


@pytest.mark.parametrize("network", ["forest", None, 3, ["mlp"]])
def test_an_unknown_network(network):
    with pytest.raises(
        rn.errors.InvalidParameterError, match=r"`network` of Owner must be one of \['cnn5'"
    ):
        find_architecture(network, "Owner")


def test_the_first_weights_are_a_function_of_the_seed_and_leave_the_callers_state():
    before = torch.get_rng_state()
    one, same, other = (build_network(mlp, (3,), [], 2, 2, seed, "Owner") for seed in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), before)
    first, again, different = (next(net.parameters()) for net in (one, same, other))
    assert torch.equal(first, again)
    assert not torch.equal(first, different)


def test_bins_are_spread_in_front_of_the_network():
    network = build_network(mlp, (2,), [0, 4], 2, 2, 0, "Owner")
    assert network[1].body[0].in_features == 5


@pytest.mark.parametrize("network", ["tabular", "mlp"])
def test_images_need_a_network_for_images(network):
    X, y = images_of(300)
    message = r'take inputs of shape \(1, 8, 8\); got .* Use "resnet9", "cnn5" or "resnet18" for'
    with pytest.raises(rn.errors.InvalidParameterError, match=message):
        rn.ReliableClassifier(network=network).fit(X, y)
    rows = TensorDataset(torch.from_numpy(X), torch.from_numpy(y))
    with pytest.raises(rn.errors.InvalidParameterError, match=message):
        rn.ReliableClassifier(network=network).fit(rows, selection=rows, certification=rows)


def test_images_are_trained_with_averaged_weights_stopped_early_and_refitted():
    X, y = images_of(400)
    model = rn.ReliableClassifier(
        0.2, network="cnn5", schedule=SHORT, augment="crops", batch_size=32, random_state=0
    )
    fit_quietly(model, X, y)
    assert len(model.history_.records) <= SHORT.epochs
    assert model.history_.refitted_rows == 400 - model.certificate_.n
    assert model.evaluate(*images_of(500, seed=1)).accuracy > 0.9


def test_an_augmentation_survives_the_file(tmp_path):
    X, y = images_of(300)
    model = rn.ReliableClassifier(
        0.2, network="cnn5", schedule=SHORT, augment="flips+crops", random_state=0
    )
    loaded = rn.load(fit_quietly(model, X, y).save(tmp_path / "model.rnet"))
    assert loaded.get_params() == model.get_params()
    assert loaded.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()


def test_an_augmentation_changes_the_fit():
    X, y = images_of(300)
    settings = {"network": "cnn5", "schedule": SHORT, "random_state": 0}
    plain, moved = (
        fit_quietly(rn.ReliableClassifier(0.2, augment=augment, **settings), X, y)
        for augment in (None, "crops")
    )
    assert not np.array_equal(plain.predict_proba(X), moved.predict_proba(X))


def test_only_images_can_be_augmented():
    X, y = images_of(300)
    table = X.reshape(300, -1)
    with pytest.raises(
        rn.errors.InvalidParameterError, match=r"`augment` of ReliableClassifier must be"
    ):
        rn.ReliableClassifier(augment="crops").fit(table, y)
    with pytest.raises(
        rn.errors.InvalidParameterError, match=r"must be None or one of .*got 'spins'"
    ):
        rn.ReliableClassifier(augment="spins").fit(table, y)


def test_a_schedule_that_adapts_cannot_keep_the_last_epoch():
    X, y = images_of(300)
    with pytest.raises(rn.errors.InvalidParameterError, match=r'`checkpoint` .*schedule="paper"'):
        rn.ReliableClassifier(checkpoint="last").fit(X.reshape(300, -1), y)


def test_what_is_no_module_or_has_other_outputs():
    with pytest.raises(rn.errors.InvalidParameterError, match=r"return an nn\.Module; got 'str'"):
        build_network(lambda d, k: "net", (3,), [], 2, 2, 0, "Owner")
    with pytest.raises(
        rn.errors.InvalidDataError, match=r"3 outputs a row \(2 classes\).*\(1, 5\)"
    ):
        build_network(lambda d, k: nn.Linear(d, 5), (3,), [], 3, 2, 0, "Owner")


def test_the_fast_network_is_trained_in_bfloat16_where_that_is_fast_and_answers_in_float32(
    monkeypatch,
):
    X, y = images_of(160)
    settings = {
        "alpha": 0.3,
        "network": "resnet9",
        "schedule": AdaptiveSchedule(warmup_epochs=2, epochs_per_stage=1, max_stages=1, patience=2),
        "augment": "flips+crops",
        "device": "cpu",
        "batch_size": 64,
        "random_state": 0,
        "verbose": False,
    }
    monkeypatch.setattr("reliablenet.training.loop.has_fast_bfloat16", lambda device: False)
    plain = fit_quietly(rn.ReliableClassifier(**settings), X, y)
    monkeypatch.setattr("reliablenet.training.loop.has_fast_bfloat16", lambda device: True)
    first, again = (fit_quietly(rn.ReliableClassifier(**settings), X, y) for _ in range(2))
    assert {weight.dtype for weight in first.network_.parameters()} == {torch.float32}
    proba = first.predict_proba(X)
    np.testing.assert_array_equal(proba, again.predict_proba(X))  # reproducible
    np.testing.assert_array_equal(proba[:1], first.predict_proba(X[:1]))  # in any company
    assert not np.array_equal(proba, plain.predict_proba(X))  # it was another arithmetic
    np.testing.assert_allclose(proba, plain.predict_proba(X), atol=0.25)
