"""A network in a file: its weights, the encoder before it, and the course of its training."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import torch
from safetensors.numpy import load as load_arrays, save as save_arrays
from safetensors.torch import load as load_tensors, save as save_tensors
from torch import Tensor, nn

from reliablenet.errors import InvalidParameterError, ModelFileError
from reliablenet.modelfile.manifest import to_plain
from reliablenet.modelfile.team_members import TEAM, team_from_members, team_to_members
from reliablenet.tables.free_text import Embedding
from reliablenet.tables.piecewise import PiecewiseEncoder
from reliablenet.tables.tabular import TabularEncoder
from reliablenet.training.forward import chunk_rows
from reliablenet.training.history import History
from reliablenet.training.team import Team

TEXTS = "texts.safetensors"  # where columns of free text are read
ENCODERS: dict[str, type[TabularEncoder]] = {
    "PiecewiseEncoder": PiecewiseEncoder,
    "TabularEncoder": TabularEncoder,
}


@dataclass(frozen=True)
class NetworkParts:
    """What a file holds of a network; how it is built the method knows.

    Attributes
    ----------
    weights : mapping of str to Tensor
        The state of the network.
    encoder : TabularEncoder or None
        None where rows go to the network as they are.
    history : History
    input_shape : tuple of int
        Shape of one encoded row.
    team : Team or None
        Who answers beside the network.
    """

    weights: Mapping[str, Tensor]
    encoder: TabularEncoder | None
    history: History
    input_shape: tuple[int, ...]
    team: Team | None = None

    def shape(self) -> dict[str, Any]:
        """Return what the manifest says about the network."""
        shape = list(self.input_shape)
        return {"input_shape": shape, "chunk": chunk_rows(1 + len(shape))}

    def to_members(self) -> dict[str, bytes]:
        """Return the members of the file."""
        plain = torch.contiguous_format
        state = {
            name: tensor.detach().cpu().clone(memory_format=plain)
            for name, tensor in self.weights.items()
        }
        learned = None
        if self.encoder is not None:
            learned = to_plain({"encoder": type(self.encoder).__name__} | self.encoder.to_dict())
        members = {
            "weights.safetensors": bytes(save_tensors(state)),
            "preprocessing.json": json.dumps(learned, allow_nan=False).encode(),
            "history.json": self.history.to_json().encode(),
        }
        if self.encoder is not None and (arrays := self.encoder.to_arrays()):
            members[TEXTS] = bytes(save_arrays(arrays))
        return members if self.team is None else members | team_to_members(self.team)

    @classmethod
    def from_members(
        cls,
        shape: dict[str, Any],
        members: Mapping[str, bytes],
        path: Any,
        embedding: Embedding | None = None,
    ) -> Self:
        """Read what `shape` and `to_members` wrote; an embedding of the user's own has to be given."""
        history = History.from_json(members["history.json"].decode())
        learned, encoder = json.loads(members["preprocessing.json"]), None
        if learned is not None:
            kind = learned.pop("encoder", "TabularEncoder")  # files of 0.1 knew one alone
            arrays = load_arrays(members[TEXTS]) if TEXTS in members else {}
            encoder = ENCODERS[kind].from_dict(learned, arrays, embedding)
        if embedding is not None and (encoder is None or encoder.embedding is None):
            raise InvalidParameterError(
                "`embedding` of load is only for models that read text with one of your own; this one "
                "does not."
            )
        weights = load_tensors(members["weights.safetensors"])
        team = team_from_members(members, path) if TEAM in members else None
        return cls(weights, encoder, history, tuple(shape["input_shape"]), team)


def network_setting(stored: Any, factory: Callable[[Any, int], nn.Module] | None) -> Any:
    """Return the setting `network` of a stored method: its name, or the factory that was passed."""
    if not isinstance(stored, dict):
        if factory is not None:
            raise InvalidParameterError(
                f"`network` of load is only for models with a network of your own; this one has "
                f"{stored!r}."
            )
        return stored
    if factory is None:
        raise ModelFileError(
            f"This model has a network of your own, built by {stored['custom']!r}; a file cannot "
            "hold code. Pass the factory: load(path, network=...)."
        )
    return factory
