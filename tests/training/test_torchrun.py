"""Estimators under a real `torchrun` with two processes: one model, that of a single process."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

WORKER = Path(__file__).with_name("estimator_worker.py")
EXAMPLE = Path(__file__).parents[2] / "examples" / "distributed.py"
TRAINED = (
    "arrays",
    "defaults",
    "groups",
    "statistics",
    "dataset",
    "loader",
    "unequal_loaders",
    "single_row_left",
    "with_own_state",
    "without_seed",
    "stopped_by_one",
    "loader_of_all_rows",
)
REFUSED = ("other_rows", "uneven_loaders", "too_few_rows", "diverging")


def torchrun(*arguments: object, **settings) -> subprocess.CompletedProcess:
    lonely = {"GLOO_SOCKET_IFNAME": "lo"} if sys.platform == "linux" else {}
    command = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    return subprocess.run(
        [sys.executable, *command, *map(str, arguments)],
        env=os.environ | lonely | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=1200,
        **settings,
    )


def held_by(folder: Path, name: str) -> list[dict[str, object]]:
    """What each rank wrote."""
    ranks = []
    for rank in (0, 1):
        held = json.loads((folder / f"{name}{rank}.json").read_text())
        ranks.append(held | {"weights": load_file(folder / f"{name}{rank}.safetensors")})
    return ranks


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("torchrun")
    result = torchrun(WORKER, place, *TRAINED, *REFUSED)
    assert result.returncode == 0, result.stderr
    return place


@pytest.fixture(scope="module")
def alone():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield runpy.run_path(str(WORKER))["run"]
    torch.set_num_threads(threads)


@pytest.mark.parametrize("name", TRAINED)
def test_both_ranks_hold_the_same_model_to_the_bit(folder, name):
    first, second = held_by(folder, name)
    weights, others = first.pop("weights"), second.pop("weights")
    assert weights.keys() == others.keys()
    assert all(torch.equal(tensor, others[key]) for key, tensor in weights.items())
    for key in ("training_threshold", "threshold", "certificate", "fingerprint", "stopped"):
        assert first[key] == second[key], key
    assert json.dumps(first) == json.dumps(second)  # NaN is NaN
    # The schedule of the defaults finds that the constraint is not needed here.
    assert (max(first["multipliers"]) > 0) == (name != "defaults")


@pytest.mark.parametrize("name", ["arrays", "groups", "dataset", "loader", "unequal_loaders"])
def test_two_ranks_train_the_model_of_one_process_fed_the_same_global_batches(
    folder, alone, name, tmp_path
):
    # Ranks add up gradients in another order, and the constraint lets last bits grow: here some 50
    # steps make 1e-7 to 3e-5 of them. Steps are 1e-3 long: a real mistake shows as 1e-2.
    (together, _), one = held_by(folder, name), alone(name, tmp_path)
    assert len(together["losses"]) == len(one["losses"]) == 9
    for key, tensor in together["weights"].items():
        torch.testing.assert_close(tensor, one["weights"][key], rtol=0, atol=1e-3)
    for key, tolerance in {"losses": 1e-4, "psi": 1e-3, "multipliers": 1e-3}.items():
        assert together[key] == pytest.approx(one[key], rel=tolerance), key
    assert together["threshold"] == pytest.approx(one["threshold"], rel=1e-3)
    assert together["fingerprint"] == one["fingerprint"]


def test_each_group_has_one_multiplier_on_all_ranks(folder):
    first, second = (held["group_multipliers"] for held in held_by(folder, "groups"))
    assert first == second
    low, high = sorted(first[-1])
    assert 0.0 <= low < high


def test_rows_that_are_too_few_for_all_ranks_join_the_batch_before(folder, alone, tmp_path):
    (together, _), one = held_by(folder, "single_row_left"), alone("single_row_left", tmp_path)
    assert together["losses"] == pytest.approx(one["losses"], rel=0.05)  # one step less an epoch
    assert together["losses"] != pytest.approx(one["losses"], rel=1e-4)


def test_a_callback_of_any_rank_stops_all(folder):
    for held in held_by(folder, "stopped_by_one"):
        assert held["stopped"] == "a callback asked for it"
        assert len(held["losses"]) == 5


def test_ranks_with_other_data_are_told_so(folder):
    for held in held_by(folder, "other_rows"):
        assert "rank 1 differs from rank 0" in held["error"]
        assert "Set random_state to a number" in held["error"]


def test_loaders_must_give_as_many_batches_to_every_rank(folder):
    for held in held_by(folder, "uneven_loaders"):
        assert "as many batches on every rank" in held["error"]
        assert "got [8, 10]. Use a DistributedSampler" in held["error"]


def test_loaders_that_share_nothing_are_noticed(folder):
    for held in held_by(folder, "loader_of_all_rows"):
        assert len(held["warnings"]) == 1
        assert "the same rows to every rank" in held["warnings"][0]


def test_each_rank_needs_a_row(folder):
    for held in held_by(folder, "too_few_rows"):
        assert "2 processes needs at least as many rows; got 1" in held["error"]


def test_a_training_that_diverges_ends_on_every_rank(folder):
    first, second = held_by(folder, "diverging")
    assert first["error"] == second["error"]
    assert "Training diverged in epoch 1 (in the warm-up)" in first["error"]


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_after_a_kill_of_one_rank_training_goes_on_to_the_same_bits(folder, tmp_path):
    killed, again = (torchrun(WORKER, tmp_path, "killed") for _ in range(2))
    assert killed.returncode != 0
    assert "SIGKILL" in killed.stderr or "Signal 9" in killed.stderr
    assert again.returncode == 0, again.stderr
    epochs = (tmp_path / "epochs.txt").read_text().split()
    assert epochs == ["1", "2", "3", "4", "5", "6", "6", "7", "8", "9"]  # the lost one again
    assert [path.parent.name for path in tmp_path.rglob("*.checkpoint")] == ["rank0"]
    undisturbed = held_by(folder, "with_own_state")
    for resumed, expected in zip(held_by(tmp_path, "killed"), undisturbed, strict=True):
        weights = expected.pop("weights")
        found = resumed.pop("weights")
        assert all(torch.equal(tensor, weights[key]) for key, tensor in found.items())
        assert json.dumps(resumed) == json.dumps(expected)


def test_the_example_runs_on_two_processes(tmp_path):
    result = torchrun(EXAMPLE, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("processes: 2,") == 1  # one of them speaks
    assert "certified: True" in result.stdout
    assert (tmp_path / "model.rnet").exists()
