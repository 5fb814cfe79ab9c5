"""How the figures of the study are drawn; their numbers come from `figures`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from reliablenet._drawing import new_figure
from reliablenet.bench.methods import find_method
from reliablenet.bench.profiles import Plan, Profile
from reliablenet.bench.store import Curves

if TYPE_CHECKING:
    from matplotlib.figure import Figure

GROUPS = {
    "adult": "women by education",
    "german_credit": "young applicants by age",
    "unsw_nb15": "unseen attacks by family",
}
SWEEPS = {
    "synthetic_band": "half-width of the band, gamma",
    "coloured_mnist": "share of images in their label's colour",
    "cifar10": "standard deviation of the noise",
}
FALLING = ("coloured_mnist",)  # sweeps that get harder as the level falls
SUMMARY_METRICS = {
    "budget_spent": "JCW / alpha",
    "coverage": "coverage",
    "accuracy_accepted": "accuracy of accepted rows",
    "ece": "ECE",
    "aurc": "AURC",
}
# Okabe and Ito, told apart by colour-blind readers (their black and yellow as grey and olive, to
# show error bars and stand out on white); as the numbers of colours, dashes and markers
# have no common factor, no two of 56 methods look alike.
COLOURS = (
    "#555555",
    "#e69f00",
    "#56b4e9",
    "#009e73",
    "#cc79a7",
    "#0072b2",
    "#d55e00",
    "#999933",
)
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (3, 1)), "-")
MARKERS = ("o", "s", "^", "v", "P", "X", "D")
NETWORKS = {"ERM": "#555555", "ReliableNet": "#d55e00"}  # of Synthetic Band
HATCHES = ("", "///", "...", "xxx", "|||", "---", "")


@dataclass(frozen=True, eq=False)
class StudyFigure:
    """A picture and its numbers; the picture is drawn from the frame and what ``draw`` was given.

    Parameters
    ----------
    table : DataFrame
    draw : callable
        From the table to a matplotlib Figure.
    """

    table: pd.DataFrame
    draw: Callable[[pd.DataFrame], Figure]

    def to_frame(self) -> pd.DataFrame:
        """Return the numbers."""
        return self.table.copy()

    def plot(self) -> Figure:
        """Return the picture as a matplotlib Figure; needs the extra ``report``."""
        return self.draw(self.table)


def new_panels(
    rows: int, columns: int, size: tuple[float, float], **settings: Any
) -> tuple[Figure, Any]:
    """Return a new figure and its panels, without pyplot and its back ends.

    Parameters
    ----------
    rows, columns : int
    size : tuple of float
        Width and height in inches.
    **settings
        Of ``Figure.subplots``.

    Returns
    -------
    Figure, array of Axes of shape (rows, columns)
    """
    figure = new_figure("A figure of the study", size)
    panels = figure.subplots(rows, columns, squeeze=False, **settings)
    for axes in panels.flat:
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=9)
    return figure, panels


def _styles(table: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """Return how each method's line looks: by its place among all asked for, run or not."""
    return {
        method: {
            "color": COLOURS[number % len(COLOURS)],
            "linestyle": DASHES[number % len(DASHES)],
            "marker": MARKERS[number % len(MARKERS)],
            "label": find_method(method).title,
        }
        for number, method in enumerate(table["method"].unique())
    }


def _title(plan: Plan, table: pd.DataFrame) -> str:
    counts = table.loc[table["seeds"] > 0, "seeds"]
    low, high = counts.min(), counts.max()
    seeds = f"{low} to {high} seeds" if low < high else "1 seed" if high == 1 else f"{high} seeds"
    return f"{plan.title}, alpha = {plan.alpha:g}, mean ± sd of {seeds}"


def _add_legend(figure: Figure, columns: int = 4) -> None:
    """Add below the panels one legend for all of them."""
    entries: dict[str, Any] = {}
    for axes in figure.axes:
        handles, labels = axes.get_legend_handles_labels()
        entries = dict(zip(labels, handles, strict=True)) | entries
    figure.legend(
        entries.values(),
        entries.keys(),
        loc="outside lower center",
        ncols=columns,
        frameon=False,
        fontsize=9,
        handlelength=3.5,
    )


def draw_summary(profile: Profile, metrics: Sequence[str], table: pd.DataFrame) -> Figure:
    """Draw bars by dataset and method, one row of panels a metric."""
    styles, table = _styles(table), table[table["seeds"] > 0]
    plans = list(table["plan"].unique())
    size = (max(9.5, 2.4 * len(plans)), 1.5 + 2.4 * len(metrics))
    figure, panels = new_panels(len(metrics), len(plans), size, sharex=True)
    for column, plan in enumerate(plans):
        part = table[table["plan"] == plan]
        title = _title(profile.plans[plan], part).replace(", ", "\n")
        panels[0, column].set_title(title, fontsize=10)
        for axes, metric in zip(panels[:, column], metrics, strict=True):
            for place, (method, style) in enumerate(styles.items()):
                row = part[part["method"] == method]
                axes.bar(
                    [place] * len(row),
                    row[metric],
                    yerr=row[f"{metric}_sd"],
                    color=style["color"],
                    hatch=HATCHES[place % len(HATCHES)],
                    edgecolor="white",
                    linewidth=0,
                    ecolor="black",
                    capsize=2,
                    label=style["label"],
                )
            if metric == "budget_spent":
                axes.axhline(1, color="0.2", linewidth=1, linestyle="--", label="JCW = alpha")
            if metric in ("coverage", "accuracy_accepted"):
                axes.set_ylim(0, 1.05)
            axes.set_xticks([])
    for axes, metric in zip(panels[:, 0], metrics, strict=True):
        axes.set_ylabel(f"{SUMMARY_METRICS[metric]}\nunder shift")
    _add_legend(figure)
    return figure


def draw_curves(profile: Profile, table: pd.DataFrame) -> Figure:
    """Draw risk by coverage, one panel a dataset."""
    styles, table = _styles(table), table[table["seeds"] > 0]
    _share_alike(table, styles)
    plans = list(table["plan"].unique())
    columns = min(3, len(plans))
    rows = -(-len(plans) // columns)
    figure, panels = new_panels(rows, columns, (max(8.0, 4.4 * columns), 1.5 + 3.2 * rows))
    for axes in panels.flat[len(plans) :]:
        axes.remove()
    for axes, plan in zip(panels.flat, plans, strict=False):
        part = table[table["plan"] == plan]
        axes.set_title(_title(profile.plans[plan], part), fontsize=10)
        for method, style in styles.items():
            _draw_line(
                axes, part[part["method"] == method], "coverage", "risk", style, every=(10, 20)
            )
        shown = part[part["coverage"] >= 0.05]  # of fewer rows than that the error rate is noise
        axes.set(xlim=(0, 1), ylim=(0, 1.15 * (shown["risk"] + shown["risk_sd"].fillna(0)).max()))
        axes.set(xlabel="coverage", ylabel=f"error rate of accepted rows, {part['part'].iloc[0]}")
    _add_legend(figure, min(2, columns))  # names that share a line are long
    return figure


def _share_alike(table: pd.DataFrame, styles: dict[str, dict[str, Any]]) -> None:
    """Leave one line, under all their names, for methods whose curves are the same everywhere."""
    curves = table.pivot(index=["plan", "coverage"], columns="method", values="risk")
    for method in [name for name in styles if name in curves]:
        for first in [name for name in styles if name in curves]:
            if first == method:
                break
            if curves[first].equals(curves[method]):
                styles[first]["label"] += f" = {styles.pop(method)['label']}"
                break


def _draw_line(
    axes: Any, part: pd.DataFrame, x: str, y: str, style: dict[str, Any], every: Any = 1
) -> None:
    if len(part):
        mean, sd = part[y], part[f"{y}_sd"]
        band = {"color": style["color"], "alpha": 0.12, "linewidth": 0}
        axes.fill_between(part[x], (mean - sd).clip(lower=0), mean + sd, **band)
        axes.plot(part[x], mean, markersize=4.5, markevery=every, linewidth=1.5, **style)


def draw_groups(plan: Plan, table: pd.DataFrame) -> Figure:
    """Draw JCW and coverage by group, side by side."""
    styles, table = _styles(table), table[table["seeds"] > 0]
    groups = list(table["group"].unique())
    figure, panels = new_panels(1, 2, (10.5, 1.7 + 0.62 * len(groups)), sharey=True)
    for axes, metric in zip(panels.flat, ("jcw", "coverage"), strict=True):
        for place, (method, style) in enumerate(styles.items()):
            part = table[table["method"] == method]
            offset = 0.8 * ((place + 0.5) / len(styles) - 0.5)
            axes.errorbar(
                part[metric],
                [groups.index(group) + offset for group in part["group"]],
                xerr=part[f"{metric}_sd"],
                markersize=4.5,
                elinewidth=1.2,
                **(style | {"linestyle": ""}),
            )
        for number in range(0, len(groups), 2):
            axes.axhspan(number - 0.5, number + 0.5, color="0.95", zorder=0)
        axes.set_xlim(left=-0.01, right=1.02 if metric == "coverage" else None)
    rows = [table.loc[table["group"] == group, "rows"].mean() for group in groups]
    labels = [f"{group} ({n:,.0f} rows)" for group, n in zip(groups, rows, strict=True)]
    panels[0, 0].set_yticks(range(len(groups)), labels)
    panels[0, 0].set_ylim(len(groups) - 0.5, -0.5)
    figure.suptitle(f"{_title(plan, table)}: {GROUPS[plan.dataset]}", fontsize=11)
    panels[0, 0].axvline(
        plan.alpha, color="0.2", linewidth=1, linestyle="--", label=f"alpha = {plan.alpha:g}"
    )
    for axes, metric in zip(panels.flat, ("JCW", "coverage"), strict=True):
        axes.set_xlabel(metric)
    _add_legend(figure)
    return figure


def draw_sweep(plan: Plan, table: pd.DataFrame) -> Figure:
    """Draw JCW and coverage along the severity of the shift, side by side."""
    styles, table = _styles(table), table[table["seeds"] > 0].sort_values("level", kind="stable")
    figure, panels = new_panels(1, 2, (10.5, 4.6))
    for axes, metric in zip(panels.flat, ("jcw", "coverage"), strict=True):
        for method, style in styles.items():
            _draw_line(axes, table[table["method"] == method], "level", metric, style)
        axes.set_xticks(table["level"].unique())
        axes.set_xlabel(SWEEPS[plan.dataset])
        if plan.dataset in FALLING:
            axes.invert_xaxis()
    panels[0, 0].axhline(
        plan.alpha, color="0.2", linewidth=1, linestyle="--", label=f"alpha = {plan.alpha:g}"
    )
    panels[0, 0].set(ylabel="JCW", ylim=(-0.005, None))
    panels[0, 1].set(ylabel="coverage", ylim=(-0.02, 1.03))
    figure.suptitle(_title(plan, table), fontsize=11)
    _add_legend(figure)
    return figure


def draw_distance(table: pd.DataFrame) -> Figure:
    """Draw the confidence of both networks by distance from the boundary."""
    figure, panels = new_panels(1, 1, (6.4, 4.2))
    axes = panels[0, 0]
    first = table.iloc[0]
    edge = f"edge of the band, gamma = {first['gamma']:g}"
    axes.axvline(first["gamma"], color="0.2", linewidth=1, linestyle="--", label=edge)
    for (name, part), style in zip(
        table.groupby("method", sort=False), (("--", "s"), ("-", "o")), strict=True
    ):
        colour = NETWORKS[str(name)]
        low = part["confidence"] - part["confidence_sd"]
        high = (part["confidence"] + part["confidence_sd"]).clip(upper=1)
        axes.fill_between(part["distance"], low, high, color=colour, alpha=0.15, linewidth=0)
        axes.plot(
            part["distance"],
            part["confidence"],
            linestyle=style[0],
            marker=style[1],
            markersize=4,
            color=colour,
            label=name,
        )
    level = f"eps* = {first['threshold']:.2f}"
    axes.axhline(first["threshold"], color="0.2", linewidth=1, linestyle=":", label=level)
    axes.set(xlim=(0, None), ylim=(0.45, 1.01))
    axes.set_xlabel("distance to the true boundary, |w·x|", fontsize=10)
    axes.set_ylabel("confidence: mean and sd of rows", fontsize=10)
    axes.set_title(f"Confidence by distance, Synthetic Band, seed {first['seed']}", fontsize=10)
    figure.legend(loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    return figure


def draw_plane(
    table: pd.DataFrame, plane: dict[str, Any], backgrounds: Curves, alpha: float
) -> Figure:
    """Draw the confident errors of both networks on their confidence in the plane."""
    reach, direction = plane["reach"], np.array(plane["direction"])
    first = table.iloc[0]
    gamma, threshold = first["gamma"], first["threshold"]
    figure, panels = new_panels(1, 2, (10.5, 5.4), sharey=True)
    rows = table.to_dict("records")
    for axes, row, background in zip(panels.flat, rows, backgrounds, strict=True):
        name = str(row["method"])
        image = axes.imshow(
            background,
            origin="lower",
            extent=(-reach, reach, -reach, reach),
            vmin=0.5,
            vmax=1.0,
            cmap="viridis",
            interpolation="bilinear",
        )
        for side in (-gamma, gamma):
            ends = side * direction, side * direction + (-direction[1], direction[0])
            axes.axline(*ends, color="0.3", linewidth=2.5)  # for the white to show on yellow
            axes.axline(*ends, color="white", linestyle="--")
        errors = np.array(plane["errors"][name], dtype=float).reshape(-1, 2)
        axes.plot(*errors.T, "x", color="#d55e00", markersize=6, markeredgewidth=1.5)
        axes.set_xlim(-reach, reach)
        axes.set_ylim(-reach, reach)
        axes.set_xlabel("$x_1$", fontsize=10)
        axes.set_title(
            f"{name}: {row['errors']} confident errors, JCW {row['jcw']:.4f}, "
            f"coverage {row['coverage']:.2f}",
            fontsize=10,
        )
    panels[0, 0].set_ylabel("$x_2$", fontsize=10)
    bar = figure.colorbar(image, ax=panels, shrink=0.8)
    bar.set_label("confidence", fontsize=10)
    bar.ax.axhline(threshold, color="white", linewidth=2)
    figure.suptitle(
        f"Synthetic Band in the plane, {first['rows']:,} rows, seed {first['seed']}; gamma = {gamma:g} "
        f"(dashed), alpha = {alpha:g}, both at eps* = {threshold:.2f} (line in the scale)",
        fontsize=11,
    )
    return figure
