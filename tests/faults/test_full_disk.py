"""A disk that is full: the old file stays, nothing half-written is left, the message names the file."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import reliablenet as rn
from reliablenet._files import open_atomically
from reliablenet.bench import Plan, Profile, Store, pending_jobs, run_jobs
from reliablenet.report import write_page
from reliablenet.training import Rows, mlp, train

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="mounts a disk")
FULL = r"No space left on device: '{}'"


def fill(disk: Path, left: int = 4096) -> None:
    """Fill a disk up to some bytes."""
    status = os.statvfs(disk)
    (disk / "ballast").write_bytes(b"x" * (status.f_bavail * status.f_frsize - left))


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_saving_a_model(small_disk, model) -> None:
    fitted = rn.load(model)
    target = small_disk / "m.rnet"
    target.write_bytes(b"old")
    fill(small_disk)
    with pytest.raises(OSError, match=FULL.format(target)):
        fitted.save(target)
    assert target.read_bytes() == b"old"
    assert names(small_disk) == ["ballast", "m.rnet"]
    (small_disk / "ballast").unlink()
    assert rn.load(fitted.save(target)).threshold_ == fitted.threshold_


def test_a_checkpoint_of_a_run_that_outgrows_the_disk(small_disk) -> None:
    X, y = torch.randn(64, 4), torch.arange(64) % 2
    schedule = rn.training.Schedule(warmup_epochs=2, epochs_per_stage=2, max_stages=1)
    target = small_disk / "run.ckpt"

    def run(**more: object) -> object:
        torch.manual_seed(0)
        rows = Rows(X, y)
        return train(
            mlp(4, 2), rows, rows, schedule=schedule, alpha=0.2, checkpoint_file=target, **more
        )

    fill(small_disk)
    with pytest.raises(OSError, match=FULL.format(target)):
        run()
    assert names(small_disk) == ["ballast"]


def test_a_page(small_disk) -> None:
    target = small_disk / "page.html"
    fill(small_disk)
    with pytest.raises(OSError, match=FULL.format(target)):
        write_page("<p>" + "x" * 10_000, target)
    assert names(small_disk) == ["ballast"]


def test_what_is_not_about_the_disk_keeps_its_own_name(tmp_path) -> None:
    with (
        pytest.raises(FileNotFoundError, match=r"other\.csv"),
        open_atomically(tmp_path / "out.csv"),
    ):
        (tmp_path / "other.csv").read_text()
    assert names(tmp_path) == []


def test_results_of_bench(small_disk) -> None:
    """The runs that were finished stay, and the rest is done when there is room."""
    plan = Plan("synthetic_band", epochs=1, warmup_epochs=1, epochs_per_stage=1, max_stages=1)
    profile = Profile("tiny", {"band": plan}, seeds=(0,))
    store = Store(small_disk / "tiny")
    jobs = pending_jobs(profile, store, methods=["erm", "boosting+certified"])
    store.check_writable()
    fill(small_disk, 12 * 1024)
    with pytest.raises(OSError, match=r"No space left on device: '.*boosting"):
        run_jobs(jobs, store)
    assert [record["method"] for record in store.records()] == ["erm"]
    assert [path.suffix for path in store.folder.glob("*/*/.*")] == []
    (small_disk / "ballast").unlink()
    assert run_jobs(pending_jobs(profile, store, methods=["boosting+certified"]), store) == []
    np.testing.assert_array_equal(
        [record["method"] for record in store.records()], ["boosting+certified", "erm"]
    )


def test_no_room_for_a_single_record_is_said_before_the_work(small_disk) -> None:
    fill(small_disk, 0)
    with pytest.raises(
        rn.errors.DataFileError, match=r"Results cannot be written to .*No space left"
    ):
        run_jobs([], Store(small_disk / "tiny"))


def test_decisions_by_the_command(small_disk, model, tables, start) -> None:
    target = small_disk / "decisions.csv"
    target.write_text("old")
    command = start("predict", model, tables / "large-rows.csv", "--out", target)
    code, out, err = command.end()
    assert (code, out) == (2, "")
    assert f"No space left on device: '{target}'" in err
    assert "Traceback" not in err
    assert "bug" not in err
    assert target.read_text() == "old"
    assert names(small_disk) == ["decisions.csv"]


def test_a_quota(model, tables, start, tmp_path) -> None:
    """RLIMIT_FSIZE: the kernel takes the first bytes and refuses the rest."""
    program = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "from reliablenet.cli.app import main; main()"
    )
    arguments = ("predict", model, tables / "large-rows.csv", "--out", "d.csv")
    code, _, err = start(*arguments, program=program).end()
    assert code == 2
    assert "File too large: 'd.csv'" in err
    assert names(tmp_path) == []


def test_standard_output_that_is_full(model, tables) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "reliablenet",
                "predict",
                model,
                tables / "small-rows.csv",
                "--out",
                "-",
            ],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == 2
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
