"""`Settings`: all settings of one training, checked when they are put together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from reliablenet._checks import check_fraction, check_seed, check_threshold, parameter_error
from reliablenet.training.base_schedule import BaseSchedule
from reliablenet.training.batches import check_augment
from reliablenet.training.objective import Objective
from reliablenet.training.optimisation import Optimisation

Keep = Literal["selection", "last"]


@dataclass(frozen=True)
class Settings:
    """The settings of `train`, in one piece; a checkpoint tells runs apart by them."""

    alpha: float
    schedule: BaseSchedule
    objective: Objective
    optimisation: Optimisation
    threshold: float | None
    aim: float
    keep: Keep
    seed: int
    m1: float
    m2: float
    augment: str | None = None
    group_aims: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        check_fraction("alpha", self.alpha, "train")
        check_seed("random_state", self.seed, "train")
        check_augment(self.augment, "train")
        object.__setattr__(self, "aim", check_fraction("aim", self.aim, "train"))
        for aim in self.group_aims:
            check_fraction("group_aims", aim, "train")
        if self.threshold is not None:
            threshold = check_threshold("threshold", self.threshold, "train")
            object.__setattr__(self, "threshold", threshold)
        schedule, objective = self.schedule, self.objective
        if schedule.constrained and type(objective) is not Objective:
            expected = "be left out in constrained training"
            raise parameter_error("objective", "train", expected, objective)
        schedule.check_keep(self.keep, "keep", "train")
        if objective.is_warmup(schedule.epochs):
            expected = f"have fewer warm-up epochs than the schedule has epochs ({schedule.epochs})"
            raise parameter_error("objective", "train", expected, objective)
