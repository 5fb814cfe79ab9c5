"""A training run on disk, so that a killed one goes on to the same bits. No pickle: safetensors."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn

from reliablenet._files import write_atomically
from reliablenet.errors import InvalidParameterError, ModelFileError
from reliablenet.training import ranks
from reliablenet.training.batches import Rows
from reliablenet.training.history import EpochRecord
from reliablenet.training.stream import Stream

if TYPE_CHECKING:
    from reliablenet.training.loop import Run

FORMAT = "reliablenet-run/2"


def fingerprint(network: nn.Module, folds: list[Rows | Stream], settings: object) -> str:
    """Return a hash of everything that decides how a run goes."""
    digest = hashlib.sha256(repr((torch.__version__, ranks.world(), settings)).encode())
    tensors = list(network.state_dict().values())
    for fold in folds:
        if isinstance(fold, Rows):
            tensors += [*fold, *(one for one in (fold.weight, fold.group) if one is not None)]
        else:
            digest.update(fold.fingerprint.encode())
    for tensor in tensors:
        digest.update(f"{tensor.dtype}{tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def write(path: Path, run: Run, key: str) -> None:
    """Replace the file by the state of the run; a kill leaves the old file or the new one.

    All ranks call this, because each has a random state of its own; rank 0 writes.
    """
    tensors = ranks.gather_states(_random_states(run)) | {"generator": run.generator.get_state()}
    if ranks.rank() > 0:
        return
    groups = {
        "network": run.network.state_dict(),
        "kept": run.kept,
        "constraint": {} if run.constraint is None else run.constraint.state_dict(),
        "average": {} if run.average is None else dict(_numbered(run.average.average)),
    }
    for number, state in run.optimiser.state_dict()["state"].items():
        groups[f"optimiser.{number}"] = state
    for group, state in groups.items():
        # Clones: safetensors refuses tied weights, which share memory, and any order but rows first.
        tensors |= {
            f"{group}/{name}": value.detach().clone(memory_format=torch.contiguous_format)
            for name, value in state.items()
        }
    history = run.history
    story = {
        "format": FORMAT,
        "fingerprint": key,
        "threshold": history.threshold.hex(),
        "warmup_epochs": run.schedule.warmup_epochs,
        "averaged_steps": 0 if run.average is None else run.average.steps,
        "chosen_epoch": history.chosen_epoch,
        "stopped": history.stopped,
        "records": [vars(record) for record in history.records],
    }
    write_atomically(path, save(tensors, {"story": json.dumps(story)}))


def restore(path: Path, run: Run, key: str) -> None:
    """Continue the run from the file if there is one; refuse the file of another run.

    Rank 0 reads for all, so that the others need not see its disk.
    """
    content = ranks.from_first(_read(path) if ranks.rank() == 0 else None)
    if content is None:
        return
    try:
        tensors = load(content)
        header = int.from_bytes(content[:8], "little")
        story = json.loads(json.loads(content[8 : 8 + header])["__metadata__"]["story"])
        if story["format"] != FORMAT:
            raise ValueError(f"its format is {story['format']!r}, not {FORMAT!r}")
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise ModelFileError(
            f"`checkpoint_file` {path} is not a complete checkpoint ({error}). "
            "Delete it to start afresh."
        ) from error
    if story["fingerprint"] != key:
        raise ModelFileError(
            f"`checkpoint_file` {path} belongs to a run with other data, settings or torch version. "
            "Repeat that run's settings, or name another file."
        )

    def group(name: str) -> dict[str, Tensor]:
        start = f"{name}/"
        return {n.removeprefix(start): t for n, t in tensors.items() if n.startswith(start)}

    history = run.history
    history.threshold = float.fromhex(story["threshold"])
    history.chosen_epoch, history.stopped = story["chosen_epoch"], story["stopped"]
    history.records = [EpochRecord(**record) for record in story["records"]]
    run.network.load_state_dict(group("network"))
    run.kept = group("kept")
    run.schedule = replace(run.schedule, warmup_epochs=story["warmup_epochs"])
    if run.average is not None:
        run.average.steps = story["averaged_steps"]
        saved = group("average")
        for name, tensor in _numbered(run.average.average):
            tensor.copy_(saved[name])
    if group("constraint"):
        run.constraint = run.build_constraint()
        run.constraint.load_state_dict(group("constraint"))
    state = run.optimiser.state_dict()
    # The fused optimiser reads moments in the order in which their weights lie in memory.
    state["state"] = {
        number: {
            name: torch.empty_like(weights).copy_(value) if value.shape == weights.shape else value
            for name, value in moments.items()
        }
        for number, weights in enumerate(run.network.parameters())
        if (moments := group(f"optimiser.{number}"))
    }
    run.optimiser.load_state_dict(state)
    run.generator.set_state(tensors["generator"])
    torch.set_rng_state(ranks.own_state(tensors["torch_rng"]))
    for number, generator in enumerate(run.rows.generators()):
        generator.set_state(ranks.own_state(tensors[f"loader_rng.{number}"]))


def _numbered(tensors: list[Tensor]) -> Iterator[tuple[str, Tensor]]:
    return ((str(number), tensor) for number, tensor in enumerate(tensors))


def _random_states(run: Run) -> dict[str, Tensor]:
    """Return the random states of this rank; the order of rows in memory is common to all."""
    own = {f"loader_rng.{n}": one.get_state() for n, one in enumerate(run.rows.generators())}
    return {"torch_rng": torch.get_rng_state()} | own


def _read(path: Path) -> bytes | None:
    if not path.parent.is_dir():
        raise InvalidParameterError(
            f"`checkpoint_file` must lie in an existing folder; got {str(path)!r}. Create it first."
        )
    return path.read_bytes() if path.exists() else None
