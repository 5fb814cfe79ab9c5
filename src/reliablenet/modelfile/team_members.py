"""A team in a file: the arrays of its trees, its weights, and classifiers of the user's own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load as load_arrays, save as save_arrays
from sklearn.ensemble import VotingClassifier

from reliablenet.errors import InvalidDataError, ModelFileError
from reliablenet.modelfile.allowed_types import estimator_from_bytes, estimator_to_bytes
from reliablenet.training.growing import Grown
from reliablenet.training.team import Member, OwnMember, Team
from reliablenet.training.trees import Trees

TEAM, OWN_MEMBERS = "team.safetensors", "team.skops"
OWN = "own"


def team_to_members(team: Team) -> dict[str, bytes]:
    """Return the members of a file that hold a team."""
    arrays: dict[str, NDArray[Any]] = {}
    kinds: list[str] = []
    own: list[Any] = []
    for number, member in enumerate(team.members):
        if isinstance(member, Grown):
            kinds.append(member.kind)
            parts = member.trees.to_arrays() | {"classes": member.classes}
            arrays |= {f"{number}/{name}": part for name, part in parts.items()}
        elif isinstance(member, OwnMember):
            kinds.append(OWN)
            own.append(member.estimator)
    story = {"kinds": kinds, "weights": [weight.hex() for weight in team.weights]}
    arrays["story"] = np.frombuffer(json.dumps(story).encode(), np.uint8)
    files = {TEAM: bytes(save_arrays(arrays))}
    if own:  # in one box, of a type that files may hold
        box = VotingClassifier([(str(number), one) for number, one in enumerate(own)])
        files[OWN_MEMBERS] = estimator_to_bytes(box)
    return files


def team_from_members(members: Mapping[str, bytes], path: Any) -> Team:
    """Return the team that `team_to_members` wrote; refuse arrays that are not trees."""
    arrays = load_arrays(members[TEAM])
    story = json.loads(arrays.pop("story").tobytes())
    own: list[Any] = []
    if OWN_MEMBERS in members:
        box = estimator_from_bytes(members[OWN_MEMBERS], path)
        own = [one for _, one in box.estimators]
    found: list[Member] = []
    try:
        for number, kind in enumerate(story["kinds"]):
            if kind == OWN:
                found.append(OwnMember(own.pop(0)))
                continue
            start = f"{number}/"
            names = [name for name in arrays if name.startswith(start)]
            parts = {name.removeprefix(start): arrays.pop(name) for name in names}
            classes = parts.pop("classes")
            found.append(Grown(kind, Trees.from_arrays(parts), classes))
        team = Team(tuple(found), tuple(map(float.fromhex, story["weights"])))
    except (InvalidDataError, IndexError, KeyError) as error:
        raise ModelFileError(f"{path} holds a team that does not fit together: {error}") from error
    if arrays or own:
        raise ModelFileError(f"{path} holds a team with parts that belong to no member.")
    return team
