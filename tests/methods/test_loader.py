"""`fit` and `decide` on rows that are read batch by batch."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import torch
from contract_helpers import fit_quietly
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset

import reliablenet as rn
from reliablenet.datasets import SyntheticBand
from reliablenet.errors import FoldWarning, InvalidDataError, InvalidParameterError

SHORT = rn.training.Schedule(warmup_epochs=3, epochs_per_stage=2, max_stages=2, tau=0.05)
METHODS = [
    rn.ReliableClassifier(network="mlp", schedule=SHORT, random_state=0),
    rn.ERMClassifier(epochs=5, random_state=0),
    rn.SelectiveNetClassifier(epochs=5, random_state=0),
    rn.DeepGamblersClassifier(epochs=5, warmup_epochs=2, random_state=0),
]


def as_dataset(fold) -> TensorDataset:
    return TensorDataset(torch.from_numpy(fold.X).float(), torch.from_numpy(fold.y))


@pytest.fixture(scope="module")
def folds():
    return SyntheticBand(random_state=0, dimension=6).folds()


@pytest.fixture(scope="module")
def data(folds) -> dict[str, TensorDataset]:
    return {name: as_dataset(fold) for name, fold in vars(folds).items()}


@pytest.fixture(scope="module")
def fitted(data) -> rn.ReliableClassifier:
    clf = rn.ReliableClassifier(network="mlp", schedule=SHORT, random_state=0)
    return clf.fit(data["train"], selection=data["selection"], certification=data["certification"])


def weights(clf) -> list[torch.Tensor]:
    return list(clf.network_.state_dict().values())


def assert_same(one, other):
    assert all(map(torch.equal, weights(one), weights(other)))
    assert (one.threshold_, one.certificate_) == (other.threshold_, other.certificate_)
    assert one.evidence_ == other.evidence_


# The contract


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
def test_every_network_is_trained_and_certified_on_datasets(method, data, folds):
    clf = method.fit(
        data["train"], selection=data["selection"], certification=data["certification"]
    )
    assert clf.classes_.tolist() == [0, 1]
    assert (clf.n_features_in_, clf.input_shape_, clf.encoder_) == (6, (6,), None)
    assert clf.certificate_.certified
    assert clf.certificate_.n == len(folds.certification) == len(clf.evidence_)
    assert clf.evidence_.truth.tolist() == folds.certification.y.tolist()
    assert set(clf.evidence_.row) == {-1}
    assert clf.evaluate(folds.certification.X, folds.certification.y).accuracy > 0.7


def test_training_through_a_dataset_is_training_on_the_same_tensors(fitted, data):
    """The estimator's own training, repeated by hand on tensors in memory."""
    from reliablenet.training import Optimisation, Rows, mlp, train

    seed = np.random.RandomState(0).randint(2**31 - 1)
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        network = mlp(6, 2)
    history = train(
        network,
        *(Rows(*data[name].tensors) for name in ("train", "selection")),
        alpha=0.05,
        schedule=SHORT,
        optimisation=Optimisation(),
        random_state=seed,
    )
    assert all(map(torch.equal, network.state_dict().values(), weights(fitted)))
    assert history.to_frame().equals(fitted.history_.to_frame())


def test_folds_may_be_arrays_datasets_or_loaders(fitted, data, folds):
    chosen, held = folds.selection, folds.certification
    for selection, certification in (
        ((chosen.X, chosen.y), held),
        (DataLoader(data["selection"], 100), DataLoader(data["certification"], 999)),
    ):
        clf = rn.ReliableClassifier(network="mlp", schedule=SHORT, random_state=0)
        assert_same(
            clf.fit(data["train"], selection=selection, certification=certification), fitted
        )


def test_a_loader_brings_its_own_batches(data):
    given = {"selection": data["selection"], "certification": data["certification"]}
    clf = rn.ERMClassifier(epochs=2, random_state=0)
    sizes = []

    class Watched(nn.Linear):
        def forward(self, x):
            if self.training:
                sizes.append(len(x))
            return super().forward(x)

    clf.set_params(network=lambda d, k: Watched(d, k))
    fit_quietly(clf, DataLoader(data["train"], batch_size=1999, shuffle=True), **given)
    assert sizes == [1999, 1999, 1002] * 2


def test_a_shuffling_loader_is_reproducible_by_random_state_alone(data):
    given = {"selection": data["selection"], "certification": data["certification"]}
    models = []
    for state in (0, 0, 1):
        torch.manual_seed(len(models))  # the caller's state decides nothing
        loader = DataLoader(data["train"], batch_size=256, shuffle=True)
        clf = rn.ERMClassifier(epochs=2, random_state=state)
        models.append(clf.fit(loader, None, **given))
    assert_same(models[0], models[1])
    assert not torch.equal(weights(models[0])[0], weights(models[2])[0])


def test_a_killed_fit_goes_on(data, fitted, tmp_path):
    class Killed:
        def setup(self, estimator, context): ...
        def teardown(self, estimator, context): ...
        def on_fit_task_begin(self, estimator, context): ...
        def on_fit_task_end(self, estimator, context, *, metadata):
            if context.task_name == "epoch" and metadata["epoch"]["epoch"] == 5:
                raise KeyboardInterrupt

    given = {"selection": data["selection"], "certification": data["certification"]}
    settings = {
        "network": "mlp",
        "schedule": SHORT,
        "random_state": 0,
        "checkpoint_file": tmp_path / "run.safetensors",
    }
    with pytest.raises(KeyboardInterrupt):
        rn.ReliableClassifier(**settings).set_callbacks(Killed()).fit(data["train"], **given)
    epochs = []

    class Watch(Killed):
        def on_fit_task_end(self, estimator, context, *, metadata):
            if context.task_name == "epoch":
                epochs.append(metadata["epoch"]["epoch"])

    resumed = rn.ReliableClassifier(**settings).set_callbacks(Watch()).fit(data["train"], **given)
    assert epochs == [5, 6, 7]
    assert_same(resumed, fitted)


def test_images_are_read_batch_by_batch():
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(900, 1, 8, 8, generator=generator)
    y = (X.mean((1, 2, 3)) > 0).long()
    parts = [TensorDataset(X[i::3], y[i::3]) for i in range(3)]
    clf = rn.ERMClassifier(network="cnn5", epochs=3, random_state=0)
    clf.fit(parts[0], selection=parts[1], certification=DataLoader(parts[2], 40))
    assert clf.input_shape_ == (1, 8, 8)
    assert np.array_equal(clf.predict_proba(parts[2]), clf.predict_proba(X[2::3].numpy()))


# Deciding


def test_decisions_are_those_of_the_rows_in_memory(fitted, data, folds):
    whole = fitted.decide(folds.certification.X.astype(np.float32))
    rows = data["certification"]
    for source in (rows, DataLoader(rows, 700), DataLoader(rows.tensors[0], 3000)):
        read = fitted.decide(source)
        for name in ("label", "confidence", "accepted"):
            assert np.array_equal(getattr(read, name), getattr(whole, name)), name
    assert np.array_equal(fitted.accept(rows), whole.accepted)
    assert fitted.predict_proba(rows).shape == (len(rows), 2)
    assert 0 < whole.accepted.mean() < 1


def test_a_model_with_an_encoder_encodes_what_a_loader_gives(folds):
    clf = rn.ERMClassifier(epochs=2, random_state=0).fit(folds.train.X, folds.train.y)
    X = folds.certification.X.astype(np.float32)
    loader = DataLoader(torch.from_numpy(X), 700)
    assert np.array_equal(clf.predict_proba(loader), clf.predict_proba(X))


def test_a_saved_model_decides_the_same(fitted, data, tmp_path):
    loaded = rn.load(fitted.save(tmp_path / "model.rnet"))
    rows = data["certification"]
    assert np.array_equal(loaded.predict_proba(rows), fitted.predict_proba(rows))
    assert loaded.fingerprint_ == fitted.fingerprint_
    assert re.fullmatch("[0-9a-f]{64}", fitted.fingerprint_)


def test_rows_to_decide_on_must_have_an_order_and_the_shape_of_training(fitted, data):
    with pytest.raises(InvalidDataError, match=r"`X` must give its rows in one order"):
        fitted.decide(DataLoader(data["certification"], 10, shuffle=True))
    with pytest.raises(InvalidDataError, match=r"all have the shape \(6,\); got \(5,\)"):
        fitted.decide(DataLoader(torch.zeros(10, 5), 10))


# Errors, before anything long


def refused(error, match, X, **given):
    with pytest.raises(error, match=match):
        rn.ReliableClassifier(network="mlp", schedule=SHORT, random_state=0).fit(X, **given)


def test_labels_come_with_the_rows(data, folds):
    both = {"selection": data["selection"], "certification": data["certification"]}
    refused(
        InvalidParameterError, "`y` of fit must be None", data["train"], y=folds.train.y, **both
    )


@pytest.mark.parametrize("name", ["selection", "certification"])
def test_folds_cannot_be_cut_from_a_source(data, name):
    given = {"selection": data["selection"], "certification": data["certification"], name: None}
    message = f"`{name}` of fit must be given: no fold can be cut from a TensorDataset"
    refused(InvalidParameterError, message, data["train"], **given)


def test_a_source_cannot_stand_beside_arrays(data, folds):
    message = r"`certification` of fit must be a pair \(X, y\) if `X` is an array"
    refused(
        InvalidParameterError,
        message,
        folds.train.X,
        y=folds.train.y,
        certification=data["certification"],
    )


@pytest.mark.parametrize("name", ["selection", "certification"])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: (X[:, :4], y), r"shape of the training rows, \(6,\); got \(4,\)"),
        (lambda X, y: (X, y + 1), "class indices from 0 to 1, as in training; got 2"),
        (lambda X, y: (X.double(), y), "must be float32"),
        (lambda X, y: (X[:0], y[:0]), "at least one row; got none"),
    ],
)
def test_a_bad_fold_is_named(data, name, change, message):
    bad = TensorDataset(*change(*data["selection"].tensors))
    given = {"selection": data["selection"], "certification": data["certification"], name: bad}
    refused(InvalidDataError, f"`{name}`.*{message}", data["train"], **given)


def test_one_class_and_unnumbered_classes_are_refused(data):
    both = {"selection": data["selection"], "certification": data["certification"]}
    X, y = data["train"].tensors
    refused(InvalidDataError, "at least two classes", TensorDataset(X, 0 * y), **both)
    refused(InvalidDataError, "class indices 0 to K-1", TensorDataset(X, 2 * y), **both)


def test_a_class_that_a_fold_lacks_is_named(data):
    ones = Subset(data["selection"], torch.nonzero(data["selection"].tensors[1]).flatten().tolist())
    with pytest.warns(FoldWarning, match=r"selection fold: \[0\]"):
        rn.ERMClassifier(epochs=1, random_state=0).fit(
            data["train"], selection=ones, certification=data["certification"]
        )


# Memory

PROGRAM = """
    import resource, sys, warnings
    import torch
    from torch.utils.data import DataLoader, IterableDataset
    import reliablenet as rn

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)

    class Generated(IterableDataset):
        def __init__(self, batches):
            self.batches = batches

        def __iter__(self):
            for number in range(self.batches):
                generator = torch.Generator().manual_seed(number)
                X = torch.randn(1000, 200, generator=generator)
                yield X, (X[:, 0] + 0.3 * X[:, 1] > 0).long()

    def fit(batches):
        schedule = rn.training.Schedule(warmup_epochs=1, epochs_per_stage=1, max_stages=1, tau=0.05)
        clf = rn.ReliableClassifier(schedule=schedule, random_state=0)
        held_out = DataLoader(Generated(3), batch_size=None)
        clf.fit(
            DataLoader(Generated(batches), batch_size=None),
            selection=held_out,
            certification=held_out,
        )
        return clf

    def peak():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024  # in MiB, on Linux

    fit(10)
    before = peak()
    clf = fit(250)
    after_fit = peak()
    accepted = clf.accept(DataLoader(Generated(250), batch_size=None))
    print(len(clf.history_.records), len(accepted), after_fit - before, peak() - after_fit)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss has other units elsewhere")
def test_memory_does_not_grow_with_the_rows():
    """250,000 rows of 200 numbers are 191 MiB; what is kept of them is a few numbers a row at most."""
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM)], capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    epochs, decided, fitting, deciding = map(int, result.stdout.split())
    assert (epochs, decided) == (2, 250_000)
    assert fitting < 95  # some 40 in truth, however many the rows: the allocator's habits
    assert deciding < 95  # two probabilities a row in double precision, and copies on the way
