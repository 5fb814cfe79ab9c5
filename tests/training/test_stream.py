"""Rows that are read batch by batch: the same bits as in memory, no trace, and clear errors."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from run_pairs import KilledError, assert_same_run, killer
from torch.utils.data import (
    DataLoader,
    Dataset,
    IterableDataset,
    SubsetRandomSampler,
    TensorDataset,
)

from reliablenet.errors import InvalidDataError
from reliablenet.training import Optimisation, Rows, Schedule, Stream, objective, train
from reliablenet.training.stream import Inputs

SCHEDULE = Schedule(warmup_epochs=2, epochs_per_stage=2, max_stages=2, tau=0.1, tau_decay=0.5)
SETTINGS = {
    "alpha": 0.05,
    "schedule": SCHEDULE,
    "optimisation": Optimisation(batch_size=128, learning_rate=5e-3),
    "random_state": 3,
}


class InTheOrderOfRows:
    """Batches of row numbers, epoch by epoch those that `Rows` draws from its generator."""

    def __init__(self, n: int, size: int, seed: int) -> None:
        self.n, self.size, self.seed, self.epoch = n, size, seed, 1

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __iter__(self):
        generator = torch.Generator().manual_seed(self.seed)
        for _ in range(self.epoch):
            order = torch.randperm(self.n, generator=generator)
        yield from (part.tolist() for part in order.split(self.size))


# The same training


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_a_dataset_gives_the_bits_of_the_same_rows_in_memory(folds, new_network, dropout):
    network, twin = new_network(dropout), new_network(dropout)
    history = train(network, *folds, **SETTINGS)
    rows, selection = (TensorDataset(*fold) for fold in folds)
    streamed = train(twin, Stream(rows), Stream(selection, ordered=True), **SETTINGS)
    assert_same_run(history, network, streamed, twin)
    assert history.to_frame()["multiplier"].max() > 0  # the constraint did something


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("workers", [0, 2])
def test_a_loader_in_the_same_order_gives_the_same_bits(folds, new_network, workers):
    network, twin = new_network(), new_network()
    history = train(network, *folds, **SETTINGS)
    sampler = InTheOrderOfRows(len(folds[0].y), 128, seed=3)
    loader = DataLoader(TensorDataset(*folds[0]), batch_sampler=sampler, num_workers=workers)
    chosen = DataLoader(TensorDataset(*folds[1]), batch_size=77)
    streamed = train(twin, Stream(loader), Stream(chosen, ordered=True), **SETTINGS)
    assert_same_run(history, network, streamed, twin)


@pytest.mark.parametrize(("rows", "batches"), [(150, 10**6), (10**6, 2)])
def test_sums_of_a_few_batches_at_a_time_are_the_means_of_the_epoch(
    folds, new_network, monkeypatch, rows, batches
):
    network, twin = new_network(), new_network()
    history = train(network, *folds, **SETTINGS)
    monkeypatch.setattr(objective, "ROWS_HELD", rows)
    monkeypatch.setattr(objective, "BATCHES_HELD", batches)
    bounded = train(twin, *folds, **SETTINGS)
    sums = ("loss", "psi", "phi", "gap", "jcw_train")
    assert_same_run(history, network, bounded, twin, but_for=sums)
    assert not history.to_frame()["phi"].equals(bounded.to_frame()["phi"])  # it did matter


def test_the_bracket_is_measured_over_all_rows_in_pieces(folds, new_network):
    """A tolerance between two widths ends a streamed training at the stage that it ends in memory."""
    history = train(new_network(), *folds, **SETTINGS | {"keep": "last"})
    widths = history.to_frame().query("stage > 0")["gap"]
    assert widths.iloc[1] > widths.iloc[-1]
    loose = Schedule(**vars(SCHEDULE) | {"tolerance": float(widths.iloc[1]) * 2})
    loader = DataLoader(TensorDataset(*folds[0]), batch_size=50)
    for rows in (folds[0], Stream(loader)):
        stopped = train(new_network(), rows, folds[1], **SETTINGS | {"schedule": loose})
        assert stopped.stopped == "the bracket is tight at tau = 0.1"


# Resuming


def shuffling(rows, kind: str) -> DataLoader:
    """A fresh loader, as a new process would build it."""
    data = TensorDataset(*rows)
    if kind == "set_epoch":
        return DataLoader(data, batch_sampler=InTheOrderOfRows(len(data), 100, seed=9))
    generator = {"torch": None, "own": torch.Generator().manual_seed(5)}
    if kind == "sampler":
        sampler = SubsetRandomSampler(range(500), torch.Generator().manual_seed(5))
        return DataLoader(data, batch_size=100, sampler=sampler)
    return DataLoader(data, batch_size=100, shuffle=True, generator=generator[kind])


@pytest.mark.parametrize("epoch", [2, 4, 5])
@pytest.mark.parametrize("kind", ["torch", "own", "sampler", "set_epoch"])
def test_a_killed_run_goes_on_with_the_order_that_its_loader_would_have_drawn(
    folds, new_network, tmp_path, kind, epoch
):
    network, resumed = new_network(0.3), new_network(0.3)
    history = train(network, Stream(shuffling(folds[0], kind)), folds[1], **SETTINGS)
    story = {"checkpoint_file": tmp_path / "run.checkpoint"}
    rows = Stream(shuffling(folds[0], kind))
    with pytest.raises(KilledError):
        train(new_network(0.3), rows, folds[1], **SETTINGS, **story, after_epoch=killer(epoch))
    torch.manual_seed(99)  # whatever the new process has drawn so far
    rows = Stream(shuffling(folds[0], kind))
    again = train(resumed, rows, folds[1], **SETTINGS, **story)
    assert_same_run(history, network, again, resumed)


def test_epochs_differ_in_their_order_and_looking_leaves_no_trace(folds):
    generator = torch.Generator().manual_seed(5)
    loader = DataLoader(TensorDataset(*folds[0]), batch_size=100, shuffle=True, generator=generator)
    torch.manual_seed(1)
    states = generator.get_state(), torch.get_rng_state()
    stream = Stream(loader)
    list(stream.parts())
    assert torch.equal(generator.get_state(), states[0])
    assert torch.equal(torch.get_rng_state(), states[1])
    first, second = (torch.cat([X for X, _ in stream.batches(epoch, 1, None)]) for epoch in (1, 2))
    assert not torch.equal(first, second)
    assert torch.equal(first.sort(0).values, second.sort(0).values)


@pytest.mark.parametrize("change", ["row", "label", "one row less"])
def test_the_fingerprint_depends_on_the_rows_but_not_on_their_order(folds, change):
    X, y = folds[0].X.clone(), folds[0].y.clone()
    prints = {Stream(TensorDataset(X, y)).fingerprint}
    order = torch.randperm(len(y))
    prints.add(Stream(DataLoader(TensorDataset(X[order], y[order]), 7)).fingerprint)
    assert len(prints) == 1
    if change == "row":
        X[5, 2] += 1e-3
    elif change == "label":
        y[5] = 1 - y[5]
    else:
        X, y = X[1:], y[1:]
    assert Stream(TensorDataset(X, y)).fingerprint not in prints


# What is read


def test_a_stream_knows_its_rows_and_classes():
    stream = Stream(DataLoader(TensorDataset(-9 * torch.eye(5), torch.tensor([0, 2, 1, 2, 2])), 2))
    assert (stream.total, stream.shape, stream.largest()) == (5, (5,), 9.0)
    assert stream.counts == {0: 1, 1: 1, 2: 3}
    assert stream.count_classes() == 3


class Numbers(IterableDataset):
    def __iter__(self):
        yield from ((torch.tensor([float(i)]), i % 2) for i in range(10))


def test_an_endless_kind_of_dataset_is_read_through_a_loader():
    assert Stream(DataLoader(Numbers(), batch_size=4)).counts == {0: 5, 1: 5}
    with pytest.raises(InvalidDataError, match=r"`X`.*got Numbers\. Put it into a DataLoader\("):
        Stream(Numbers())


def test_an_ordered_stream_keeps_labels_and_notices_another_order():
    X, y = torch.eye(6), torch.tensor([0, 1, 0, 0, 1, 1])
    stream = Stream(DataLoader(TensorDataset(X, y), 4), "selection", ordered=True)
    assert torch.equal(stream.y, y)
    assert torch.equal(torch.cat(list(stream.X)), X)
    assert stream.X.shape == (6, 6)
    y[1], y[2] = 0, 1
    with pytest.raises(InvalidDataError, match=r"same order in every pass.*from row 0 on"):
        list(stream.X)


@pytest.mark.parametrize("shuffle", ["shuffle", "sampler"])
def test_an_ordered_stream_must_not_shuffle(folds, shuffle):
    data = TensorDataset(*folds[0])
    loader = (
        DataLoader(data, 50, shuffle=True)
        if shuffle == "shuffle"
        else DataLoader(data, 50, sampler=SubsetRandomSampler(range(5)))
    )
    with pytest.raises(InvalidDataError, match=r"`selection`.*one order.*shuffle=False"):
        Stream(loader, "selection", ordered=True)


def test_inputs_may_come_with_or_without_labels():
    X = torch.randn(10, 3)
    for source in (DataLoader(X, 4), DataLoader(TensorDataset(X, torch.zeros(10)), 4)):
        assert torch.equal(torch.cat(list(Inputs(source, (3,)))), X)
    with pytest.raises(InvalidDataError, match=r"all have the shape \(4,\); got \(3,\)"):
        list(Inputs(DataLoader(X, 4), (4,)))
    with pytest.raises(InvalidDataError, match="`X` must give at least 1 rows; got 0"):
        list(Inputs(DataLoader(TensorDataset(X[:0]), 4), (3,)))


# What is refused


class Uneven(Dataset):
    """Rows whose width changes at the tenth."""

    def __len__(self):
        return 20

    def __getitem__(self, place):
        return torch.zeros(3 if place < 10 else 4), place % 2


def good(n=20):
    return torch.randn(n, 3), torch.arange(n) % 2


BAD = {
    "float64 rows": (lambda X, y: (X.double(), y), "must be float32.*got torch.float64"),
    "rows without axis": (lambda X, y: (X[:, 0], y), r"feature axis; got .* of shape \(20,\)"),
    "float labels": (lambda X, y: (X, y.float()), "class indices of an integer type.*float32"),
    "boolean labels": (lambda X, y: (X, y.bool()), "class indices of an integer type.*bool"),
    "labels in a column": (lambda X, y: (X, y[:, None]), r"one a row.*of shape \(20, 1\)"),
    "no labels": (lambda X, y: (X,), r"must yield pairs \(rows, labels\).*got \['Tensor'\]"),
    "negative label": (lambda X, y: (X, y - 1), "class indices from 0 on; got -1 in batch 0"),
    "NaN": (lambda X, y: (X / (X[3] != X), y), "finite rows; got NaN or an infinity in batch 0"),
    "no rows": (lambda X, y: (X[:0], y[:0]), "`X` must hold at least one row; got none"),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_source_is_refused_with_its_reason(kind):
    spoil, message = BAD[kind]
    with pytest.raises(InvalidDataError, match=message):
        Stream(DataLoader(TensorDataset(*spoil(*good())), batch_size=20))


def test_batches_of_other_things_than_tensors_are_refused():
    rows = [{"x": torch.zeros(3), "y": 0}] * 4
    with pytest.raises(
        InvalidDataError, match=r"pairs \(rows, labels\) of tensors; got dict.*collate"
    ):
        Stream(DataLoader(rows, batch_size=2))


def test_rows_of_unequal_width_are_refused():
    with pytest.raises(InvalidDataError, match=r"all have the shape \(3,\); got \(4,\)"):
        Stream(DataLoader(Uneven(), batch_size=10))


def test_a_bad_batch_in_a_later_epoch_is_not_called_a_divergence(folds, new_network):
    X, y = folds[0].X.clone(), folds[0].y
    stream = Stream(TensorDataset(X, y))
    dataset = stream.source

    def spoil(history):
        dataset.tensors = (X.double(), y)
        return False

    with pytest.raises(InvalidDataError, match="must be float32"):
        train(new_network(), stream, folds[1], **SETTINGS, after_epoch=spoil)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([1, 1, 1], r"at least two classes; got 1 class: \[1\]"),
        ([1, 2, 2], "0 to K-1, each of which occurs; got 2 different ones from 1 to 2"),
        ([0, 1, 7], "got 3 different ones from 0 to 7"),
    ],
)
def test_labels_must_number_the_classes(labels, message):
    stream = Stream(TensorDataset(torch.zeros(3, 2), torch.tensor(labels)))
    with pytest.raises(InvalidDataError, match=message):
        stream.count_classes()


@pytest.mark.parametrize("size", [1, 599])
def test_batches_of_one_row_and_a_last_batch_of_one_row_are_trained_on(folds, new_network, size):
    rows = Rows(folds[0].X[:600], folds[0].y[:600])
    loader = DataLoader(TensorDataset(*rows), batch_size=size)
    history = train(new_network(), Stream(loader), folds[1], **SETTINGS | {"threshold": 0.7})
    assert np.isfinite(history.to_frame()["loss"]).all()
    assert len(history.records) == SCHEDULE.epochs
