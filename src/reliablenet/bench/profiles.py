"""Profiles: which datasets, seeds and settings a study consists of. Plain data."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from reliablenet._checks import (
    check_count,
    check_fraction,
    check_positive,
    check_seed,
    parameter_error,
)
from reliablenet._warn import warn_user
from reliablenet.bench.store import Store
from reliablenet.datasets import DATASETS
from reliablenet.errors import InvalidParameterError
from reliablenet.methods.architectures import ARCHITECTURES

SEEDS = (0, 37, 42, 123, 2026)
KINDS = ("table", "images")
DUAL_RATE = 1.1  # the paper's
OURS = "tabular"  # our own network: a training of the study, not the network of a plan
DATASET_TITLES = {
    "synthetic_band": "Synthetic Band",
    "german_credit": "German Credit",
    "adult": "Adult",
    "unsw_nb15": "UNSW-NB15",
    "coloured_mnist": "Coloured MNIST",
    "cifar10": "CIFAR-10",
}
FOLDER = re.compile(r"\w[\w.-]*")  # one that lies in the folder of results, on any system


@dataclass(frozen=True)
class Plan:
    """How the methods are run on one dataset; the defaults are the paper's for tables.

    Parameters
    ----------
    dataset : str
        A name of `load_dataset`.
    alpha : float
    data : mapping
        Settings of the dataset.
    network : {"mlp", "cnn5", "resnet9", "resnet18"}
    width : int or None
        Of the network; None for its default.
    epochs : int
        Of ERM, SelectiveNet and Deep Gamblers.
    warmup_epochs, epochs_per_stage, max_stages : int
        Of ReliableNet, and the warm-up of Deep Gamblers.
    kind : {"table", "images"}
        What the rows are; some methods are for one kind alone.
    dual_rate : float
        Step size of ReliableNet's multiplier: larger than the paper's where there are fewer epochs, so
        that it can travel as far.
    bfloat16 : bool
        Train every network in bfloat16 where the processor is faster so.
    """

    dataset: str
    alpha: float = 0.05
    data: Mapping[str, Any] = field(default_factory=dict)
    network: str = "mlp"
    width: int | None = None
    epochs: int = 100
    warmup_epochs: int = 10
    epochs_per_stage: int = 6
    max_stages: int = 15
    kind: str = "table"
    dual_rate: float = DUAL_RATE
    bfloat16: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.dataset, str) or self.dataset not in DATASETS:
            raise parameter_error("dataset", "Plan", f"be one of {list(DATASETS)}", self.dataset)
        networks = [name for name in ARCHITECTURES if name != OURS]
        if not isinstance(self.network, str) or self.network not in networks:
            raise parameter_error("network", "Plan", f"be one of {networks}", self.network)
        if not isinstance(self.data, Mapping):
            raise parameter_error("data", "Plan", "be settings of the dataset", self.data)
        if not isinstance(self.kind, str) or self.kind not in KINDS:
            raise parameter_error("kind", "Plan", f"be one of {list(KINDS)}", self.kind)
        if self.width is not None:
            check_count("width", self.width, "Plan")
        check_fraction("alpha", self.alpha, "Plan")
        check_positive("dual_rate", self.dual_rate, "Plan")
        if self.bfloat16 not in (True, False):
            raise parameter_error("bfloat16", "Plan", "be True or False", self.bfloat16)
        for name in ("epochs", "warmup_epochs", "epochs_per_stage", "max_stages"):
            check_count(name, getattr(self, name), "Plan")
        if self.epochs < self.warmup_epochs:  # the warmed-up network is a moment of ERM's training
            raise parameter_error(
                "epochs", "Plan", f"be at least warmup_epochs, {self.warmup_epochs}", self.epochs
            )

    @property
    def title(self) -> str:
        """The name of its dataset, for people."""
        return DATASET_TITLES[self.dataset]

    def settings(self) -> dict[str, Any]:
        """Return the settings as records hold them.

        Records say "boosting" where a plan says ``kind="table"``, and nothing of settings that came later
        while these are the paper's; their hashes depend on it.
        """
        settings = asdict(self)
        for name, usual in (("dual_rate", DUAL_RATE), ("bfloat16", False)):
            if settings[name] == usual:
                del settings[name]
        return settings | {"boosting": settings.pop("kind") == "table"}


@dataclass(frozen=True)
class Profile:
    """A whole study.

    Parameters
    ----------
    name : str
        Names the folder of its results.
    plans : mapping of str to Plan
        By a name of their own: a dataset may be run under several budgets.
    seeds : tuple of int
    rho : float
    extends : tuple of str
        Profiles whose runs of the same settings count as its own.
    """

    name: str
    plans: Mapping[str, Plan]
    seeds: tuple[int, ...] = SEEDS
    rho: float = 0.05
    extends: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in (self.name, *self.plans):
            if not isinstance(name, str) or not FOLDER.fullmatch(name):
                raise parameter_error("name", "Profile", "be a name for a folder", name)
        if not self.plans or not self.seeds:
            lacking = "seeds" if self.plans else "plans"
            raise parameter_error(lacking, "Profile", "not be empty", getattr(self, lacking))
        for seed in self.seeds:
            check_seed("seeds", seed, "Profile")
        check_fraction("rho", self.rho, "Profile")

    def open_store(self, results: str | Path) -> Store:
        """Return the store of this profile below a folder of results."""
        folder = Path(results)
        return Store(folder / self.name, tuple(folder / name for name in self.extends))


_TABLES = {
    "synthetic_band": Plan("synthetic_band"),
    "german_credit": Plan("german_credit"),
    "adult": Plan("adult"),
    "unsw_nb15": Plan("unsw_nb15"),
    "unsw_nb15-alpha-0.01": Plan("unsw_nb15", alpha=0.01),  # where the budget binds
}
_CIFAR = Plan(
    "cifar10",
    alpha=0.03,
    network="resnet18",
    epochs=80,
    epochs_per_stage=14,
    max_stages=5,
    kind="images",
)
_MNIST = Plan("coloured_mnist", alpha=0.01, network="cnn5", kind="images")

PROFILES = {
    "paper": Profile("paper", _TABLES | {"coloured_mnist": _MNIST, "cifar10": _CIFAR}),
    # Images as far as two cores can go: fewer of them and a narrower network. Epochs stay, or nearly:
    # the multiplier moves by about one an epoch, so that fewer than fifty after the warm-up would
    # leave it at its cap and show another method.
    "cpu": Profile(
        "cpu",
        _TABLES
        | {
            "coloured_mnist": replace(_MNIST, data={"images": 12_000}, width=16),
            "cifar10": replace(
                _CIFAR, data={"images": 3_000}, width=16, epochs=60, epochs_per_stage=10
            ),
        },
        extends=("paper",),
    ),
    # All images, in hours on two cores: the network is `resnet9`, and epochs are fewer. The multiplier's
    # step is larger by the same factor, so that it can travel as far as in the paper's epochs; with the
    # paper's step it would be cut off on its way up, which is another method.
    "images": Profile(
        "images",
        {
            "coloured_mnist": replace(
                _MNIST,
                epochs=20,
                warmup_epochs=5,
                epochs_per_stage=1,
                dual_rate=DUAL_RATE * 90 / 15,
                bfloat16=True,
            ),
            "cifar10": replace(
                _CIFAR,
                network="resnet9",
                epochs=30,
                warmup_epochs=5,
                epochs_per_stage=5,
                dual_rate=DUAL_RATE * 70 / 25,
                bfloat16=True,
            ),
        },
        extends=("cpu", "paper"),
    ),
    # Seconds, for tests: every part runs, no figure means anything.
    "smoke": Profile(
        "smoke",
        {
            "synthetic_band": Plan(
                "synthetic_band", epochs=3, warmup_epochs=1, epochs_per_stage=1, max_stages=2
            )
        },
        seeds=(0, 37),
    ),
}


def load_profile(name: str) -> Profile:
    """Return a profile by its name, or read one from a TOML file that extends another.

    Parameters
    ----------
    name : str
        "paper", "cpu", "images", "smoke", or the path of a file such as::

            name = "mine"
            extends = "cpu"
            seeds = [0, 1]

            [plans.adult]
            epochs = 20

        Runs that the extended profile has with the same settings are not run again. Plans that it
        lacks need at least a ``dataset``; with ``only = true`` at the top, its other plans are left
        out.

    Returns
    -------
    Profile

    Examples
    --------
    >>> from reliablenet.bench import load_profile
    >>> sorted(load_profile("paper").plans)[:3], load_profile("paper").seeds
    (['adult', 'cifar10', 'coloured_mnist'], (0, 37, 42, 123, 2026))
    """
    if name in PROFILES:
        return PROFILES[name]
    path = Path(name)
    if path.suffix != ".toml" or not path.is_file():
        raise parameter_error(
            "profile", "bench", f"be one of {sorted(PROFILES)} or a TOML file", str(name)
        )
    try:
        text = tomllib.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:  # no TOML, or no text
        raise InvalidParameterError(f"The profile {path} is not TOML: {error}.") from error
    unknown = text.keys() - {"name", "extends", "seeds", "rho", "plans", "only"}
    if unknown:
        raise InvalidParameterError(f"The profile {path} has unknown settings: {sorted(unknown)}.")
    extended, changed, seeds = (text.get(key) for key in ("extends", "plans", "seeds"))
    if not isinstance(extended, str | None) or extended == name:
        raise parameter_error("extends", str(path), "name another profile", extended)
    base = load_profile(extended or "paper")
    known = {item.name for item in fields(Plan)}
    plans = {} if text.get("only") else dict(base.plans)
    if not isinstance(changed, dict | None) or not isinstance(seeds, list | None):
        kind = "seeds" if isinstance(changed, dict | None) else "plans"
        expected = "be a list" if kind == "seeds" else "be tables, as [plans.adult]"
        raise parameter_error(kind, str(path), expected, text[kind])
    for key, changes in (changed or {}).items():
        if not isinstance(changes, dict):
            raise parameter_error("plans", str(path), "be tables, as [plans.adult]", {key: changes})
        changes = _without_boosting(changes)
        strange = changes.keys() - known
        if strange:
            raise InvalidParameterError(
                f"The plan {key!r} in {path} has unknown settings: {sorted(strange)}. "
                f"Known: {sorted(known)}."
            )
        old = base.plans.get(key)
        plans[key] = replace(old, **changes) if old else Plan(**({"dataset": key} | changes))
    if any("boosting" in changes for changes in (changed or {}).values()):
        warn_user(
            f'In the profile {path}, write kind = "table" for boosting = true and kind = "images" for '
            "boosting = false; the old name will be removed in 0.3.",
            FutureWarning,
        )
    return Profile(
        name=text.get("name", path.stem),
        plans=plans,
        seeds=base.seeds if seeds is None else tuple(seeds),
        rho=text.get("rho", base.rho),
        extends=(base.name, *base.extends),
    )


def _without_boosting(changes: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a plan with ``kind`` in place of what version 0.1 called boosting."""
    if "boosting" not in changes:
        return changes
    if not isinstance(changes["boosting"], bool):
        raise parameter_error("boosting", "Plan", "be true or false", changes["boosting"])
    others = {name: value for name, value in changes.items() if name != "boosting"}
    return {"kind": "table" if changes["boosting"] else "images"} | others
