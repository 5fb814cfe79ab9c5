"""`History`: what happened in each epoch, as a frame, a picture, and one line of advice."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from reliablenet._drawing import COLOURS, new_figure
from reliablenet._renamed import renamed_method
from reliablenet.certificate.wording import threshold_text
from reliablenet.errors import InvalidDataError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

NAN = math.nan


@dataclass(frozen=True)
class EpochRecord:
    """One epoch. Values that need a threshold are NaN before there is one.

    Attributes
    ----------
    epoch, stage : int
        From 1; stage 0 is the warm-up.
    tau : float
        Smoothing level.
    loss, psi, phi, gap, jcw_train : float
        Over the training batches as they passed, each with the weights of its moment.
    loss_selection, accuracy, jcw_selection, coverage, throughput : float
        On the selection fold with the weights at the end of the epoch.
    multiplier : float
        At the end of the epoch.
    inner_feasible : bool
        Whether psi is within the budget.
    feasible : bool
        Whether the hard JCW of the selection fold is within the budget.
    at_chance : bool
        Whether the network is right on no more selection rows than the commonest class has.
    attainable : float
        Throughput on the selection fold if the threshold is set anew, where that is what will happen.
    group_jcw, group_multiplier : tuple of float
        Of each group, where there are groups; ``loss_selection``, ``jcw_selection``, ``throughput``,
        ``attainable`` and ``multiplier`` are then those of the worst group.
    """

    epoch: int
    stage: int
    tau: float
    loss: float
    psi: float
    phi: float
    gap: float
    jcw_train: float
    loss_selection: float
    accuracy: float
    jcw_selection: float
    coverage: float
    throughput: float
    multiplier: float
    inner_feasible: bool
    feasible: bool
    at_chance: bool = False
    attainable: float = NAN
    group_jcw: tuple[float, ...] = ()
    group_multiplier: tuple[float, ...] = ()

    def by_budget(self) -> list[tuple[float, float]]:
        """Return the JCW and the multiplier of each budget: one, or one for each group."""
        if self.group_jcw:
            return list(zip(self.group_jcw, self.group_multiplier, strict=True))
        return [(self.jcw_selection, self.multiplier)]

    def __post_init__(self) -> None:
        for name in ("group_jcw", "group_multiplier"):
            if isinstance(value := getattr(self, name), list):  # as JSON has it
                object.__setattr__(self, name, tuple(value))


@dataclass
class History:
    """The course of one fit.

    Attributes
    ----------
    alpha : float
        The budget.
    threshold : float
        Training threshold; NaN if there was none.
    records : list of EpochRecord
    chosen_epoch : int
        The epoch whose weights were kept; 0 until that is decided.
    stopped : str
        Why training ended.
    refitted_rows : int
        Rows of the training and selection folds together, if the network was trained on them anew
        for ``chosen_epoch`` epochs in the end; else 0. The records are of the first fit: a fold that
        was trained on measures nothing.
    groups : list of str
        Names of the groups that were trained for, in the order of their indices.
    way : str
        How: "constraint", "weights", "both" or "plain"; empty without groups.
    ways : dict
        What each way that was tried gives on the selection fold, at the common threshold that keeps every
        budget there: the share of rows acted on rightly, in the worst group and overall.
    """

    alpha: float
    threshold: float = NAN
    records: list[EpochRecord] = field(default_factory=list)
    chosen_epoch: int = 0
    stopped: str = ""
    refitted_rows: int = 0
    groups: list[str] = field(default_factory=list)
    way: str = ""
    ways: dict[str, dict[str, float]] = field(default_factory=dict)

    @property
    def weights_in_use(self) -> str:
        """One sentence on which fit the weights of the model come from."""
        if self.refitted_rows:
            return (
                f"The weights in use come from a second fit of {self.chosen_epoch} epochs on all "
                f"{self.refitted_rows:,} training and selection rows; these records are of the first "
                "fit, which chose the number of epochs."
            )
        return f"The weights in use are those of epoch {self.chosen_epoch}."

    def to_frame(self) -> pd.DataFrame:
        """Return one row an epoch, with the columns of `EpochRecord`, one for each group."""
        import pandas as pd

        rows = []
        for record in self.records:
            values = dict(vars(record))
            for name in ("group_jcw", "group_multiplier"):
                held = dict(zip(self.groups, values.pop(name), strict=False))
                values |= {f"{name}: {group}": held.get(group, NAN) for group in self.groups}
            rows.append(values)
        return pd.DataFrame(rows)

    frame = renamed_method("frame", "to_frame")

    def to_json(self) -> str:
        """Return all of it as strict JSON; NaN becomes null."""
        story = {name: value for name, value in vars(self).items() if name != "records"}
        records = [_without_nan(vars(record)) for record in self.records]
        return json.dumps(_without_nan(story) | {"records": records}, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> History:
        """Read what `to_json` wrote."""
        story = json.loads(text)
        records = [EpochRecord(**_with_nan(record)) for record in story.pop("records")]
        return cls(**_with_nan(story), records=records)

    def chosen(self) -> EpochRecord:
        """Return the record of the epoch whose weights were kept."""
        return self.records[self.chosen_epoch - 1]

    def advice(self) -> str:
        """Return one line on what the constraint did and what to change; empty if all is well."""
        constrained = [record for record in self.records if record.stage > 0]
        if not constrained:
            return ""
        if collapse := self._collapse(constrained):
            return collapse
        if max(record.multiplier for record in constrained) == 0.0:
            return (
                f"The constraint never bound: psi stayed within alpha = {self.alpha:g} in every "
                "epoch, so this is plain training. Lower alpha, or use ERMClassifier."
            )
        if not any(record.feasible for record in constrained):
            best = min(record.jcw_selection for record in constrained)
            return (
                f"The constraint never became feasible: the lowest selection-fold JCW was "
                f"{best:.4f} against alpha = {self.alpha:g}. Give a higher threshold, "
                "or more stages (Schedule(max_stages=...))."
            )
        kept = self.chosen()
        if kept.jcw_selection < self.alpha / 2 and kept.coverage < 1.0 and kept.accuracy < 1.0:
            return (
                f"Training left most of the budget unspent: selection-fold JCW is "
                f"{kept.jcw_selection:.4f} of alpha = {self.alpha:g} at the training threshold "
                f"{threshold_text(self.threshold)}, with coverage {kept.coverage:.2f} and a multiplier of "
                f"{kept.multiplier:.1f}. threshold='certified' spends the rest by lowering the "
                "threshold; to spend it in training, start at a smaller tau (Schedule(tau=0.05))."
            )
        return ""

    def _collapse(self, constrained: list[EpochRecord]) -> str:
        """Say if the constraint was kept by a network that has unlearned what it knew; else nothing."""
        knew = [record for record in self.records if record.stage == 0 and not record.at_chance]
        within = [one for one in constrained if one.inner_feasible or one.feasible]
        lost = [record for record in within if record.at_chance]
        if not lost or (self.records[0].stage == 0 and not knew):
            return ""
        first, kept = lost[0], self.chosen()
        kept_by = f"psi = {first.psi:.4f}"
        if not first.inner_feasible:
            kept_by = f"the selection-fold JCW, {first.jcw_selection:.4f},"
        before = f" from {max(record.accuracy for record in knew):.3f}" if knew else ""
        after = "come from a collapsed epoch" if kept.at_chance else f"come from epoch {kept.epoch}"
        return (
            f"Training collapsed in epoch {first.epoch}: accuracy fell{before} to {first.accuracy:.3f}, "
            f"that of always naming the commonest class, while {kept_by} is within alpha = "
            f"{self.alpha:g}. A multiplier of {first.multiplier:.1f} at tau = {first.tau:.3g} outweighs "
            "the loss, and a network that is sure of nothing is never confident and wrong. The weights "
            f'kept {after}. Use schedule="adaptive", a smaller multiplier_max or dual_rate, or more '
            "warm-up epochs."
        )

    def plot(self) -> Figure:
        """Draw loss, JCW against its budget, coverage, and the multiplier with tau, by epoch."""
        figure = new_figure("History.plot", (9, 6))
        if not self.records:
            raise InvalidDataError("History.plot needs at least one epoch; got none.")
        table = self.to_frame()
        warmup = int((table["stage"] == 0).sum())
        ((top_left, top_right), (bottom_left, bottom_right)) = figure.subplots(2, 2, sharex=True)

        def draw(axes: Any, title: str, **lines: str) -> None:
            for (column, label), colour in zip(lines.items(), COLOURS, strict=False):
                axes.plot(table["epoch"], table[column], label=label, color=colour, linewidth=1.6)
            axes.set_title(title, loc="left", fontsize=10)
            if 0 < warmup < len(table):
                axes.axvspan(0.5, warmup + 0.5, color="0.93", zorder=0)
            if self.chosen_epoch:
                axes.axvline(self.chosen_epoch, color="0.4", linewidth=0.8, linestyle=":")
            axes.margins(x=0.01)
            axes.spines[["top", "right"]].set_visible(False)

        draw(top_left, "Loss", loss="training", loss_selection="selection fold")
        draw(
            top_right,
            "Confident and wrong",
            jcw_selection="JCW, selection fold",
            jcw_train="JCW, training",
            psi="surrogate psi",
        )
        top_right.axhline(self.alpha, color="0.2", linewidth=1, linestyle="--", label="alpha")
        draw(
            bottom_left,
            "Selection fold at the training threshold",
            coverage="coverage",
            throughput="throughput",
            accuracy="accuracy",
        )
        draw(bottom_right, "Multiplier and tau", multiplier="multiplier")
        right = bottom_right.twinx()
        right.plot(table["epoch"], table["tau"], color=COLOURS[1], linewidth=1.6, label="tau")
        right.set_yscale("log")
        right.set_ylabel("tau")
        right.spines["top"].set_visible(False)
        handles = bottom_right.get_lines()[:1] + right.get_lines()
        bottom_right.legend(handles, ["multiplier", "tau"], frameon=False, fontsize=8)
        top_right.set_yscale("symlog", linthresh=self.alpha / 10)
        top_right.set_ylim(bottom=0)
        for axes in (top_left, top_right, bottom_left):
            axes.legend(frameon=False, fontsize=8)
        for axes in (bottom_left, bottom_right):
            axes.set_xlabel("epoch (grey: warm-up; dotted: the one chosen)")
        return figure


@contextmanager
def progress(name: str, epochs: int, verbose: bool | str) -> Iterator[Callable[[History], None]]:
    """Yield a function that shows the latest epoch; ``verbose="auto"`` asks whether a person looks."""
    wanted = sys.stderr.isatty() if verbose == "auto" else bool(verbose)
    if not wanted:
        yield lambda history: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=8),
        TextColumn("{task.completed}/{task.total}"),
        TextColumn("[dim]{task.fields[state]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(name, total=epochs, state="warm-up")

        def show(history: History) -> None:
            latest = history.records[-1]
            state = f"loss {latest.loss_selection:.3f}"
            if latest.stage:  # what fits into 80 columns
                state = (
                    f"JCW {latest.jcw_selection:.4f}/{history.alpha:g} "
                    f"coverage {latest.coverage:.2f} λ {latest.multiplier:.0f}"
                )
            bar.update(task, completed=latest.epoch, state=state)

        yield show


def _without_nan(values: dict[str, Any]) -> dict[str, Any]:
    return {name: None if value != value else value for name, value in values.items()}


def _with_nan(values: dict[str, Any]) -> dict[str, Any]:
    return {name: NAN if value is None else value for name, value in values.items()}
