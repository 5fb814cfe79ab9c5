"""One process of `test_torchrun.py`: torchrun ... estimator_worker.py FOLDER EXPERIMENT ...

Fits estimators in a group of processes and writes what this rank holds at the end to FOLDER. In a
process alone, `run` does the same without a group; batches are then as large as those of two ranks.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch
import torch.distributed as dist
from safetensors.torch import save_file
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

import reliablenet as rn
from reliablenet.datasets import SyntheticBand
from reliablenet.errors import (
    ConstraintWarning,
    EmptyCertificateWarning,
    FoldWarning,
    InvalidDataError,
    NotCertifiedWarning,
    ReuseWarning,
    TrainingDivergedError,
)
from reliablenet.training import Optimisation, ranks
from reliablenet.training.batches import index_batches

BATCH = 128  # of all ranks together
SCHEDULE = rn.training.Schedule(warmup_epochs=3, epochs_per_stage=2, max_stages=3, tau=0.05)
KILLED_IN = 6


def rows(n: int) -> TensorDataset:
    sample = SyntheticBand(random_state=0, dimension=5).sample(n)
    return TensorDataset(torch.from_numpy(sample.X).float(), torch.from_numpy(sample.y))


def folds() -> dict[str, TensorDataset]:
    band = SyntheticBand(random_state=1, dimension=5)
    names = ("selection", "certification")
    samples = {name: band.sample(400) for name in names}
    return {
        name: TensorDataset(torch.from_numpy(one.X).float(), torch.from_numpy(one.y))
        for name, one in samples.items()
    }


def classifier(**settings) -> rn.ReliableClassifier:
    given = {
        "network": "mlp",
        "batch_size": BATCH // ranks.world(),
        "schedule": SCHEDULE,
        "random_state": 0,
    }
    return rn.ReliableClassifier(**given | settings)


def fit_arrays(folder: Path) -> rn.ReliableClassifier:
    X, y = rows(1001).tensors
    return classifier().fit(X.numpy(), y.numpy())


def fit_defaults(folder: Path) -> rn.ReliableClassifier:
    """An ensemble with dropout and averaged weights, stopped early and fitted anew."""
    X, y = rows(1001).tensors
    return rn.ReliableClassifier(random_state=0).fit(X.numpy(), y.numpy())


class Averaged(rn.ReliableClassifier):
    """A network with running statistics, averaged with its weights."""

    def _optimisation(self) -> Optimisation:
        return replace(super()._optimisation(), averaging=0.9)


def fit_statistics(folder: Path) -> rn.ReliableClassifier:
    X, y = rows(1001).tensors

    def normalised(n_features: int, n_classes: int) -> nn.Module:
        layers = nn.Linear(n_features, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, n_classes)
        return nn.Sequential(*layers)

    model = Averaged(network=normalised, schedule=SCHEDULE, random_state=0)
    return model.fit(X.numpy(), y.numpy())


def fit_groups(folder: Path) -> rn.ReliableClassifier:
    """A constraint for each of two groups, of which the ranks hold unequal parts."""
    X, y = (part.numpy() for part in rows(1001).tensors)
    promise = rn.Promise.by_group(0.05, by="side", common=True)
    return classifier(promise=promise).fit(X, y, by=(X[:, 0] > 0.5).astype(int))


def fit_dataset(folder: Path) -> rn.ReliableClassifier:
    """The last batch of 89 rows is cut into 45 and 44."""
    return classifier().fit(rows(601), **folds())


def fit_single_row_left(folder: Path) -> rn.ReliableClassifier:
    """The last of 513 rows would be a batch of its own, with nothing for the second rank."""
    return classifier().fit(rows(513), **folds())


def fit_loader(folder: Path) -> rn.ReliableClassifier:
    """The batches of both ranks together are those of one process, in each epoch's order."""
    data = rows(640)
    sampler = DistributedSampler(data, ranks.world(), ranks.rank())
    return classifier().fit(DataLoader(data, BATCH // ranks.world(), sampler=sampler), **folds())


def fit_unequal_loaders(folder: Path) -> rn.ReliableClassifier:
    """Of every 128 rows the first rank has 100."""
    cut = {"1 of 1": (0, BATCH), "1 of 2": (0, 100), "2 of 2": (100, BATCH)}
    start, stop = cut[f"{ranks.rank() + 1} of {ranks.world()}"]
    batches = [range(first + start, first + stop) for first in range(0, 640, BATCH)]
    return classifier().fit(DataLoader(rows(640), batch_sampler=batches), **folds())


def normalised(n_features, n_classes) -> nn.Module:
    return nn.Sequential(
        nn.Linear(n_features, 16),
        nn.BatchNorm1d(16),
        nn.ReLU(),
        nn.Dropout(0.3),
        nn.Linear(16, n_classes),
    )


def fit_with_own_state(folder: Path) -> rn.ReliableClassifier:
    """Running statistics and dropout, which differ from rank to rank while training."""
    return classifier(network=normalised).fit(rows(601), **folds())


class KillSecondRank:
    """Kills rank 1, once, in an epoch that rank 0 has begun as well."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def setup(self, estimator, context): ...
    def teardown(self, estimator, context): ...
    def on_fit_task_begin(self, estimator, context): ...

    def on_fit_task_end(self, estimator, context, *, metadata):
        if context.task_name != "epoch":
            return
        epoch = metadata["epoch"]["epoch"]
        if ranks.rank() == 1:
            with (self.marker.parent / "epochs.txt").open("a") as file:
                file.write(f"{epoch} ")
            if epoch == KILLED_IN and not self.marker.exists():
                self.marker.touch()
                os.kill(os.getpid(), signal.SIGKILL)


def fit_killed(folder: Path) -> rn.ReliableClassifier:
    """As `fit_with_own_state`, but killed on the way the first time."""
    path = folder / f"rank{ranks.rank()}" / "run.checkpoint"  # each rank has a disk of its own
    path.parent.mkdir(exist_ok=True)
    clf = classifier(network=normalised, checkpoint_file=path)
    return clf.set_callbacks(KillSecondRank(folder / "killed")).fit(rows(601), **folds())


def fit_without_seed(folder: Path) -> rn.ReliableClassifier:
    X, y = rows(601).tensors
    return classifier(random_state=None).fit(X.numpy(), y.numpy())


class StopOnSecondRank(KillSecondRank):
    def on_fit_task_end(self, estimator, context, *, metadata):
        return ranks.rank() == 1 and context.task_name == "epoch" and metadata["epoch"]["epoch"] > 4


def fit_stopped_by_one(folder: Path) -> rn.ReliableClassifier:
    return classifier().set_callbacks(StopOnSecondRank(folder)).fit(rows(601), **folds())


def fit_other_rows(folder: Path) -> rn.ReliableClassifier:
    X, y = rows(601).tensors
    return classifier().fit(X.numpy() + ranks.rank(), y.numpy())


def fit_diverging(folder: Path) -> rn.ReliableClassifier:
    return classifier(learning_rate=1e30).fit(rows(601), **folds())


def fit_uneven_loaders(folder: Path) -> rn.ReliableClassifier:
    return classifier().fit(DataLoader(rows(400 + 100 * ranks.rank()), 50), **folds())


def fit_loader_of_all_rows(folder: Path) -> rn.ReliableClassifier:
    return classifier().fit(DataLoader(rows(256), 64), **folds())


def fit_too_few_rows(folder: Path) -> rn.ReliableClassifier:
    index = index_batches(1, BATCH, torch.Generator())
    raise AssertionError(f"a batch of {next(index)}")


EXPERIMENTS: dict[str, Callable[[Path], rn.ReliableClassifier]] = {
    name.removeprefix("fit_"): function
    for name, function in list(globals().items())
    if name.startswith("fit_")
}


def run(name: str, folder: Path) -> dict[str, object]:
    """Return what a rank holds at the end, or the error that it met."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("error")
        for ordinary in (
            NotCertifiedWarning,
            EmptyCertificateWarning,
            ConstraintWarning,
            ReuseWarning,
        ):
            warnings.simplefilter("ignore", ordinary)
        warnings.simplefilter("always", FoldWarning)
        try:
            clf = EXPERIMENTS[name](folder)
        except (InvalidDataError, TrainingDivergedError) as error:
            return {"error": str(error), "weights": {}}
    return {
        "weights": {key: value.clone() for key, value in clf.network_.state_dict().items()},
        "multipliers": [record.multiplier for record in clf.history_.records],
        "group_multipliers": [record.group_multiplier for record in clf.history_.records],
        "losses": [record.loss for record in clf.history_.records],
        "psi": [record.psi for record in clf.history_.records[SCHEDULE.warmup_epochs :]],
        "stopped": clf.history_.stopped,
        "training_threshold": clf.training_threshold_,
        "threshold": clf.threshold_,
        "certificate": clf.certificate_.to_json(),
        "fingerprint": clf.fingerprint_,
        "warnings": [str(warning.message) for warning in caught],
    }


def main(folder: Path, names: list[str]) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    for name in names:
        held = run(name, folder)
        save_file(held.pop("weights"), folder / f"{name}{dist.get_rank()}.safetensors")
        (folder / f"{name}{dist.get_rank()}.json").write_text(json.dumps(held))
    dist.barrier()
    dist.destroy_process_group()
    # Gloo's threads may outlive the interpreter and abort it (pytorch#179291); all is written.
    os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
