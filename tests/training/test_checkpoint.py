"""A run that was killed goes on to the same bits, and no file but its own is accepted."""

from __future__ import annotations

import copy
import signal
import subprocess
import sys
import textwrap
from dataclasses import replace

import pytest
import torch
from run_pairs import KilledError, assert_same_run, killer
from safetensors.torch import save, save_file
from torch import nn

from reliablenet.errors import ModelFileError
from reliablenet.training import Optimisation, Rows, Schedule, train
from reliablenet.training.networks import cnn5

SCHEDULE = Schedule(warmup_epochs=3, epochs_per_stage=2, max_stages=3, tau=0.1, tau_decay=0.5)
SETTINGS = {
    "alpha": 0.05,
    "schedule": SCHEDULE,
    "optimisation": Optimisation(batch_size=128, learning_rate=5e-3),
    "random_state": 3,
}


@pytest.fixture
def undisturbed(folds, new_network):
    def run(dropout=0.0, **changes):
        network = new_network(dropout)
        return train(network, *folds, **SETTINGS | changes), network

    return run


@pytest.fixture
def checkpoint_file(tmp_path):
    return tmp_path / "run.checkpoint"


@pytest.fixture
def unfinished(folds, new_network, checkpoint_file):
    """The file of a run that was killed in its fifth epoch."""
    with pytest.raises(KilledError):
        train(
            new_network(),
            *folds,
            **SETTINGS,
            after_epoch=killer(5),
            checkpoint_file=checkpoint_file,
        )
    return checkpoint_file


@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize(
    "epoch",
    [
        pytest.param(1, id="before anything was written"),
        pytest.param(2, id="in the warm-up"),
        pytest.param(4, id="after the last warm-up epoch"),
        pytest.param(5, id="in a stage"),
        pytest.param(6, id="after the last epoch of a stage"),
        pytest.param(9, id="before the last epoch was written"),
    ],
)
def test_a_killed_run_goes_on_to_the_same_bits(
    folds, new_network, undisturbed, checkpoint_file, epoch, dropout
):
    story = {"checkpoint_file": checkpoint_file}
    with pytest.raises(KilledError):
        train(new_network(dropout), *folds, **SETTINGS, **story, after_epoch=killer(epoch))
    assert checkpoint_file.exists() == (epoch > 1)
    torch.manual_seed(99)  # whatever the new process has drawn so far
    seen = []
    network = new_network(dropout)
    history = train(
        network, *folds, **SETTINGS, **story, after_epoch=lambda h: seen.append(len(h.records))
    )
    assert seen == list(range(epoch, SCHEDULE.epochs + 1))  # the lost epoch and no earlier one
    assert_same_run(history, network, *undisturbed(dropout))


@pytest.mark.parametrize("schedule", [Schedule.erm(6), replace(SCHEDULE, warmup_epochs=0)])
def test_a_run_of_another_shape_goes_on_to_the_same_bits(
    folds, new_network, undisturbed, checkpoint_file, schedule
):
    story = {"checkpoint_file": checkpoint_file}
    settings = SETTINGS | {"schedule": schedule, "threshold": 0.7}
    with pytest.raises(KilledError):
        train(new_network(), *folds, **settings, **story, after_epoch=killer(4))
    network = new_network()
    history = train(network, *folds, **settings, **story)
    assert_same_run(history, network, *undisturbed(schedule=schedule, threshold=0.7))


def test_convolutions_with_their_channels_last_go_on_to_the_same_bits(checkpoint_file):
    random = torch.Generator().manual_seed(0)
    X = torch.randn(96, 2, 8, 8, generator=random)
    folds = (
        Rows(X[:64], (X[:64].mean((1, 2, 3)) > 0).long()),
        Rows(X[64:], (X[64:].mean((1, 2, 3)) > 0).long()),
    )
    settings = SETTINGS | {"optimisation": Optimisation(batch_size=16)}

    def network() -> nn.Module:
        torch.manual_seed(0)
        return cnn5((2, 8, 8), 2, width=4).to(memory_format=torch.channels_last)

    whole, resumed = network(), network()
    history = train(whole, *folds, **settings)
    with pytest.raises(KilledError):
        train(
            network(),
            *folds,
            **settings,
            checkpoint_file=checkpoint_file,
            after_epoch=killer(5),
        )
    again = train(resumed, *folds, **settings, checkpoint_file=checkpoint_file)
    assert_same_run(again, resumed, history, whole)


def test_a_run_killed_again_and_again_ends_with_the_same_bits(
    folds, new_network, undisturbed, checkpoint_file
):
    story = {"checkpoint_file": checkpoint_file}
    for epoch in range(2, SCHEDULE.epochs + 1):
        with pytest.raises(KilledError):
            train(new_network(), *folds, **SETTINGS, **story, after_epoch=killer(epoch))
    network = new_network()
    assert_same_run(train(network, *folds, **SETTINGS, **story), network, *undisturbed())


def test_a_finished_run_is_returned_without_training(folds, new_network, checkpoint_file):
    network, twin = new_network(), new_network()
    story = {"checkpoint_file": checkpoint_file}
    first = train(network, *folds, **SETTINGS, **story)
    again = train(twin, *folds, **SETTINGS, **story, after_epoch=killer(SCHEDULE.epochs))
    assert_same_run(first, network, again, twin)


def test_writing_checkpoints_does_not_change_the_run(
    folds, new_network, undisturbed, checkpoint_file
):
    network = new_network(0.3)
    history = train(network, *folds, **SETTINGS, checkpoint_file=checkpoint_file)
    assert_same_run(history, network, *undisturbed(0.3))


class TiedLayers(nn.Module):
    """Two names for one layer, as language models have for their embedding."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(5, 5)
        self.again = self.first
        self.head = nn.Linear(5, 2)

    def forward(self, x):
        return self.head(self.again(torch.relu(self.first(x))))


def normalised() -> nn.Module:
    return nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))


@pytest.mark.parametrize("factory", [normalised, TiedLayers])
def test_networks_with_more_state_than_separate_weights_can_be_continued(
    folds, checkpoint_file, factory
):
    torch.manual_seed(0)
    network = factory()
    killed, twin = copy.deepcopy(network), copy.deepcopy(network)
    history, story = train(network, *folds, **SETTINGS), {"checkpoint_file": checkpoint_file}
    with pytest.raises(KilledError):
        train(killed, *folds, **SETTINGS, **story, after_epoch=killer(5))
    assert_same_run(history, network, train(twin, *folds, **SETTINGS, **story), twin)


def test_nothing_but_the_checkpoint_is_left_behind(unfinished):
    assert list(unfinished.parent.iterdir()) == [unfinished]


def test_the_file_holds_no_pickle(unfinished):
    header = int.from_bytes(unfinished.read_bytes()[:8], "little")
    assert unfinished.read_bytes()[8 : 8 + header].startswith(b'{"__metadata__"')


OTHER_RUN = "belongs to a run with other data, settings or torch version.*name another file"


@pytest.mark.parametrize(
    "change",
    [
        {"random_state": 4},
        {"alpha": 0.06},
        {"keep": "last"},
        {"threshold": 0.8},
        {"m2": 0.2},
        {"schedule": replace(SCHEDULE, max_stages=4)},
        {"optimisation": Optimisation(batch_size=128, learning_rate=1e-3)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_the_file_of_a_run_with_other_settings_is_refused(folds, new_network, unfinished, change):
    with pytest.raises(ModelFileError, match=OTHER_RUN):
        train(new_network(), *folds, **SETTINGS | change, checkpoint_file=unfinished)


@pytest.mark.parametrize("fold", [0, 1])
@pytest.mark.parametrize("part", ["X", "y"])
def test_the_file_of_a_run_with_other_data_is_refused(folds, new_network, unfinished, fold, part):
    changed = [Rows(rows.X.clone(), rows.y.clone()) for rows in folds]
    values = getattr(changed[fold], part)
    values[0] = 1 - values[0]
    with pytest.raises(ModelFileError, match=OTHER_RUN):
        train(new_network(), *changed, **SETTINGS, checkpoint_file=unfinished)


def test_the_file_of_a_run_from_other_first_weights_is_refused(folds, new_network, unfinished):
    network = new_network()
    with torch.no_grad():
        network.head.bias += 1.0
    with pytest.raises(ModelFileError, match=OTHER_RUN):
        train(network, *folds, **SETTINGS, checkpoint_file=unfinished)


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda content: content[: len(content) // 2], id="truncated"),
        pytest.param(lambda content: content[:-1], id="short of one byte"),
        pytest.param(lambda content: content[:5], id="hardly begun"),
        pytest.param(lambda content: b"", id="empty"),
        pytest.param(lambda content: b"PK\x03\x04" + content, id="another format"),
        pytest.param(lambda content: save({"x": torch.zeros(3)}), id="safetensors of others"),
        pytest.param(
            lambda content: content.replace(b"reliablenet-run/2", b"reliablenet-run/9"),
            id="a later version of the format",
        ),
    ],
)
def test_a_damaged_or_foreign_file_is_refused_and_left_alone(
    folds, new_network, unfinished, damage
):
    unfinished.write_bytes(content := damage(unfinished.read_bytes()))
    with pytest.raises(ModelFileError, match=r"is not a complete checkpoint.*Delete it"):
        train(new_network(), *folds, **SETTINGS, checkpoint_file=unfinished)
    assert unfinished.read_bytes() == content


CHILD = """
    import sys, time
    import torch
    from pathlib import Path
    from safetensors.torch import load_file
    from reliablenet.training import Optimisation, Rows, Schedule, mlp, train

    torch.set_num_threads(1)
    given = load_file(sys.argv[1])
    network = mlp(5, 2, width=16)
    network.load_state_dict({name: given.pop(name) for name in network.state_dict()})

    def report(history):
        print(len(history.records), flush=True)
        time.sleep(60 if len(history.records) == 7 else 0)

    train(
        network,
        Rows(given["X"], given["y"]),
        Rows(given["selection_X"], given["selection_y"]),
        after_epoch=report,
        checkpoint_file=Path(sys.argv[2]),
        **SETTINGS,
    )
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_process_killed_by_the_system_can_be_continued_by_another(
    folds, new_network, undisturbed, tmp_path, checkpoint_file
):
    rows, selection = folds
    names = {"X": rows.X, "y": rows.y, "selection_X": selection.X, "selection_y": selection.y}
    save_file(names | new_network().state_dict(), given := tmp_path / "given.safetensors")
    program = textwrap.dedent(CHILD).replace("**SETTINGS", f"**{SETTINGS!r}")
    child = subprocess.Popen(
        [sys.executable, "-c", program, given, checkpoint_file], stdout=subprocess.PIPE, text=True
    )
    with child:
        try:
            while child.stdout.readline().strip() not in ("6", ""):
                pass
        finally:
            child.kill()
    assert child.returncode == -signal.SIGKILL
    seen, network = [], new_network()
    history = train(
        network,
        *folds,
        **SETTINGS,
        after_epoch=lambda h: seen.append(len(h.records)),
        checkpoint_file=checkpoint_file,
    )
    assert seen[0] in (6, 7)  # it had come that far and was not started afresh
    assert_same_run(history, network, *undisturbed())
