"""The methods of the study, as records. To add one, `register` it: it is run, tabled and drawn.

A *training* is one fit; a *method* is a rule made of it: a classifier and its operating point. All
methods of a training share its fit. A method's name is its key, in files and on pages; no part of
the code reads anything from how it is spelled.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from functools import partial
from typing import Any, Protocol

from reliablenet._checks import parameter_error
from reliablenet.bench.fitting import (
    PARTS,
    Fitted,
    adaptive_schedule,
    fit_ablated,
    fit_boosting,
    fit_deep_gamblers,
    fit_erm,
    fit_images,
    fit_reliablenet,
    fit_selectivenet,
    fit_tabular,
)
from reliablenet.bench.profiles import KINDS, Plan
from reliablenet.bench.store import settings_hash
from reliablenet.datasets import Dataset
from reliablenet.methods import ConformalRiskControl, TemperatureScaling
from reliablenet.methods.architectures import ARCHITECTURES
from reliablenet.methods.wrapping import WrappingClassifier

NAME = re.compile(r"\w[\w@+.-]*")  # a folder has it, on any system
GEOMETRY = "geometry"  # a run that is no method: what the figures of Synthetic Band show


class Point(StrEnum):
    """Where a method acts."""

    EVERYTHING = "everything"  # on every row, as the paper's table has it for ERM
    EPS = "eps"  # at the paper's eps*
    SELECTION = "selection"  # at the threshold that the method itself sets on the selection fold
    CERTIFIED = "certified"  # at a threshold certified on the certification fold itself


class Fit(Protocol):
    """A function that fits a training."""

    def __call__(self, plan: Plan, dataset: Dataset, seed: int, rho: float) -> Fitted:
        """Fit on the folds of a dataset."""


def no_settings(plan: Plan) -> dict[str, Any]:
    """Return the settings of a training that has none but the plan's."""
    return {}


@dataclass(frozen=True)
class Training:
    """One fit, from which methods are made. Two of the same name are equal.

    Parameters
    ----------
    name : str
    fit : callable (plan, dataset, seed, rho) -> Fitted
    needs : {"any", "table", "images"}
        The kind of plans that it can be run on.
    settings : callable (plan) -> dict
        What decides the outcome besides the plan, and may change: it goes into the hash of a run.
    """

    name: str
    fit: Fit = field(compare=False)
    needs: str = field(default="any", compare=False)
    settings: Callable[[Plan], dict[str, Any]] = field(default=no_settings, compare=False)

    def __post_init__(self) -> None:
        if self.needs not in ("any", *KINDS):
            raise parameter_error("needs", "Training", f"be any or one of {KINDS}", self.needs)

    def suits(self, plan: Plan) -> bool:
        """Tell whether it can be run on the rows of a plan."""
        return self.needs in ("any", plan.kind)


@dataclass(frozen=True)
class Method:
    """A rule of the study. Two of the same name are equal.

    Parameters
    ----------
    name : str
        Its key in results and tables.
    training : Training
    point : Point
        Where it acts.
    title : str
        Its name in figures.
    weights : str, optional
        One of the ``others`` that the training has `Fitted`, by name; by default its ``model``.
    wrapper : type, optional
        A method of ours around that classifier.
    in_paper : bool
        Whether the paper's tables have it; figures show these unless others are asked for.
    at_equal_coverage : bool
        Whether the table at equal coverage has a row for it; one that ranks rows as another method
        does needs none.
    ablation : bool
        Whether it is run only when it is named, and left out of tables.
    """

    name: str
    training: Training = field(compare=False)
    point: Point = field(compare=False)
    title: str = field(compare=False)
    weights: str | None = field(default=None, compare=False)
    wrapper: type[WrappingClassifier] | None = field(default=None, compare=False)
    in_paper: bool = field(default=False, compare=False)
    at_equal_coverage: bool = field(default=True, compare=False)
    ablation: bool = field(default=False, compare=False)

    @property
    def classifier(self) -> str:
        """The name of the classifier that it acts with, whatever the operating point."""
        return self.weights or self.training.name

    def settings(self, plan: Plan, seed: int, rho: float) -> dict[str, Any]:
        """Return all that decides the outcome of a run, as JSON can hold it."""
        shared = {"method": self.name, "seed": seed, "rho": rho} | plan.settings()
        return shared | self.training.settings(plan)

    def hash(self, plan: Plan, seed: int, rho: float) -> str:
        """Return the hash of the settings of a run."""
        return settings_hash(self.settings(plan, seed, rho))


METHODS: dict[str, Method] = {}  # by name, in the order of the tables


def register(method: Method) -> Method:
    """Add a method to the study and return it.

    Parameters
    ----------
    method : Method

    Returns
    -------
    Method

    Raises
    ------
    InvalidParameterError
        If its name is taken or no name for a folder, or if its training has the name of another.
    """
    taken = [*METHODS, GEOMETRY]
    if not NAME.fullmatch(method.name) or method.name in taken:
        raise parameter_error(
            "name", "Method", f"be a name for a folder, not one of {taken}", method.name
        )
    for other in METHODS.values():
        if other.training == method.training and other.training is not method.training:
            raise parameter_error(
                "training", "Method", "have a name of its own", method.training.name
            )
    METHODS[method.name] = method
    return method


def find_method(name: str) -> Method:
    """Return the method of a name."""
    if name not in METHODS:
        raise parameter_error("methods", "bench", f"be among {[*METHODS]}", name)
    return METHODS[name]


def study_methods(plan: Plan | None = None) -> list[Method]:
    """Return the methods that are run unless others are named, of a plan if there is one."""
    return [
        method
        for method in METHODS.values()
        if not method.ablation and (plan is None or method.training.suits(plan))
    ]


def paper_methods() -> tuple[str, ...]:
    """Return the names of the methods that the paper's tables have."""
    return tuple(method.name for method in METHODS.values() if method.in_paper)


def _our_settings(plan: Plan, network: str | None = None) -> dict[str, Any]:
    """Return our own settings, for the network of a plan unless another is named.

    Settings of the optimiser that came later are left out while they do nothing: hashes of records depend
    on it.
    """
    optimisation = asdict(ARCHITECTURES[network or plan.network].optimisation)
    later = ("momentum", "one_cycle", "bfloat16")
    return {
        "optimisation": {k: v for k, v in optimisation.items() if v or k not in later},
        "schedule": asdict(adaptive_schedule(plan)),
    }


_FOR_TABLES = partial(_our_settings, network="tabular")
_ERM = Training("erm", fit_erm)
_SELECTIVENET = Training("selectivenet", fit_selectivenet)
_DEEP_GAMBLERS = Training("deep_gamblers", fit_deep_gamblers)
_RELIABLENET = Training("reliablenet", fit_reliablenet)
_BOOSTING = Training("boosting", fit_boosting, "table")
_BOOSTING_ALL = Training("boosting_all", partial(fit_boosting, join=True), "table")
_TABULAR = Training("tabular", fit_tabular, "table", _FOR_TABLES)
_CONSTRAINED = Training(
    "tabular_constrained", partial(fit_tabular, constrained=True), "table", _FOR_TABLES
)
_IMAGES = Training("images", fit_images, "images", _our_settings)
_AUGMENTED = Training(
    "images_augmented", partial(fit_images, augmented=True), "images", _our_settings
)

for _method in (
    Method("erm", _ERM, Point.EVERYTHING, "ERM (accepts all)", in_paper=True),
    Method("erm@eps", _ERM, Point.EPS, "ERM at eps*", at_equal_coverage=False),
    Method("erm+certified", _ERM, Point.CERTIFIED, "ERM, certified", at_equal_coverage=False),
    Method(
        "temperature",
        _ERM,
        Point.SELECTION,
        "Temperature scaling",
        wrapper=TemperatureScaling,
        in_paper=True,
        at_equal_coverage=False,
    ),
    Method(
        "temperature@eps",
        _ERM,
        Point.EPS,
        "Temperature scaling at eps*",
        wrapper=TemperatureScaling,
        at_equal_coverage=False,
    ),
    Method(
        "confidence_threshold",
        _ERM,
        Point.SELECTION,
        "Confidence threshold",
        in_paper=True,
        at_equal_coverage=False,
    ),
    Method(
        "conformal_risk_control",
        _ERM,
        Point.SELECTION,
        "Conformal risk control",
        wrapper=ConformalRiskControl,
        in_paper=True,
        at_equal_coverage=False,
    ),
    Method("warmup@eps", _ERM, Point.EPS, "Warm-up at eps*", weights="warmup"),
    Method(
        "erm_early+certified",
        _ERM,
        Point.CERTIFIED,
        "ERM, early stop, certified",
        weights="erm_early",
    ),
    Method("selectivenet", _SELECTIVENET, Point.SELECTION, "SelectiveNet", in_paper=True),
    Method("deep_gamblers", _DEEP_GAMBLERS, Point.SELECTION, "Deep Gamblers", in_paper=True),
    Method("reliablenet@eps", _RELIABLENET, Point.EPS, "ReliableNet, best epoch, at eps*"),
    Method(
        "reliablenet+certified",
        _RELIABLENET,
        Point.CERTIFIED,
        "ReliableNet, best epoch, certified",
        at_equal_coverage=False,
    ),
    Method(
        "reliablenet_last@eps",
        _RELIABLENET,
        Point.EPS,
        "ReliableNet at eps*",
        weights="reliablenet_last",
        in_paper=True,
    ),
    Method(
        "reliablenet_last+certified",
        _RELIABLENET,
        Point.CERTIFIED,
        "ReliableNet, certified",
        weights="reliablenet_last",
        at_equal_coverage=False,
    ),
    Method("boosting+certified", _BOOSTING, Point.CERTIFIED, "Boosting, certified"),
    Method(
        "boosting_all+certified",
        _BOOSTING_ALL,
        Point.CERTIFIED,
        "Boosting on 85 % of rows, certified",
        at_equal_coverage=False,
    ),
    Method("tabular+certified", _TABULAR, Point.CERTIFIED, "Network for tables, certified"),
    Method(
        "tabular_free@eps",
        _TABULAR,
        Point.EPS,
        "Network for tables at eps*, no constraint",
        at_equal_coverage=False,
    ),
    Method("tabular@eps", _CONSTRAINED, Point.EPS, "Network for tables at eps*"),
    Method(
        "tabular_constrained+certified",
        _CONSTRAINED,
        Point.CERTIFIED,
        "Network for tables, constrained, certified",
        at_equal_coverage=False,
    ),
    Method("images+certified", _IMAGES, Point.CERTIFIED, "Averaged and stopped early, certified"),
    Method(
        "images_augmented+certified",
        _AUGMENTED,
        Point.CERTIFIED,
        "The same on augmented images, certified",
    ),
    *(
        Method(
            f"tabular-{part}+certified",
            Training(f"tabular-{part}", partial(fit_ablated, without=part), "table", _FOR_TABLES),
            Point.CERTIFIED,
            f"Network for tables without its {part}, certified",
            ablation=True,
        )
        for part in PARTS
    ),
):
    register(_method)
