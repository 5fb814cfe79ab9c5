"""`load_dataset`: the paper's six datasets by name."""

from __future__ import annotations

from importlib import import_module
from inspect import signature
from typing import Any

from reliablenet._checks import check_seed, parameter_error
from reliablenet._renamed import renamed_parameter
from reliablenet.datasets.dataset import Dataset

DATASETS = ("adult", "cifar10", "coloured_mnist", "german_credit", "synthetic_band", "unsw_nb15")


@renamed_parameter("seed", "random_state")
def load_dataset(name: str, random_state: int = 0, **settings: Any) -> Dataset:
    """Load one of the paper's datasets in the paper's folds.

    Parameters
    ----------
    name : str
        One of "adult", "cifar10", "coloured_mnist", "german_credit", "synthetic_band", "unsw_nb15".
    random_state : int
        Decides the folds, and all that is random in generated data.
    **settings
        What a dataset lets one change: the parameters of ``load`` in its module.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> from reliablenet import load_dataset
    >>> dataset = load_dataset("synthetic_band", random_state=0)
    >>> len(dataset.folds.train), list(dataset.shifts), list(dataset.sweeps)[:3]
    (5000, ['gamma 0.7'], [0.1, 0.3, 0.5])
    """
    if not isinstance(name, str) or name not in DATASETS:
        raise parameter_error("name", "load_dataset", f"be one of {list(DATASETS)}", name)
    check_seed("random_state", random_state, "load_dataset")
    load = import_module(f"reliablenet.datasets.{name}").load
    known = list(signature(load).parameters)[1:]
    unknown = sorted(settings.keys() - known)
    if unknown:
        allowed = f"be among {known}" if known else f"be left out: {name} has no settings"
        raise parameter_error("settings", f"load_dataset({name!r})", allowed, unknown)
    dataset: Dataset = load(random_state, **settings)
    return dataset
