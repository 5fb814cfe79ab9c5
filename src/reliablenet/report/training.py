"""Training: what each epoch did, from the history of a fit."""

from __future__ import annotations

import numpy as np
import pandas as pd

from reliablenet.report import text
from reliablenet.report.charts import (
    Axis,
    Band,
    Chart,
    Rule,
    axis,
    line,
    marked_numbers,
    percent_axis,
    thin,
)
from reliablenet.training.history import History

PANELS: tuple[tuple[str, str, dict[str, str]], ...] = (
    ("Loss", "", {"loss_selection": "selection fold", "loss": "training"}),
    (
        "Confident and wrong",
        "",
        {"jcw_selection": "selection fold", "jcw_train": "training", "psi": "surrogate"},
    ),
    ("Multiplier", "", {"multiplier": "multiplier"}),
    ("Gap of the surrogate", "", {"gap": "gap"}),
)
SHARES = ("Confident and wrong", "Gap of the surrogate")


def history_charts(history: History) -> list[Chart]:
    """Return a chart of each aspect that has values; plain training has a loss alone."""
    table = history.frame()
    constrained = bool((table["stage"] > 0).any())
    charts = []
    for title, unit, lines in PANELS:
        columns = [name for name in lines if table[name].notna().any()]
        if columns and (constrained or title == "Loss"):
            charts.append(_panel(history, table, title, unit, {c: lines[c] for c in columns}))
    return charts


def _panel(
    history: History, table: pd.DataFrame, title: str, unit: str, lines: dict[str, str]
) -> Chart:
    epochs = table["epoch"].to_numpy()
    x = axis("epoch", 0.5, len(table) + 0.5)
    top = float(np.nanmax(table[list(lines)].to_numpy(float)))
    budgeted = title == "Confident and wrong"
    if budgeted:  # what matters lies near the budget, not where the surrogate starts
        top = max(float(table[["jcw_selection", "jcw_train"]].max().max()), 2.0 * history.alpha)
    make = percent_axis if title in SHARES else axis
    y: Axis = make(unit, 0.0, 1.08 * top or 1.0)
    rules = []
    if budgeted:
        label = f"budget {text.budget(history.alpha)}"
        rules.append(Rule(float(y.place(history.alpha)), label))
    if history.chosen_epoch:
        rules.append(Rule(float(x.place(history.chosen_epoch)), "chosen", upright=True))
    shown = thin(len(table), 60)
    cells = [
        [str(epochs[i]), str(table["stage"][i]), *(text.cell(float(table[c][i])) for c in lines)]
        for i in shown
    ]
    return Chart(
        title=title,
        description=f"By epoch, {len(table)} epochs. {history.weights_in_use}",
        x=x,
        y=y,
        lines=tuple(
            line(label, number, x, y, epochs, table[name])
            for number, (name, label) in enumerate(lines.items(), 1)
        ),
        bands=tuple(_stages(table, x)),
        rules=tuple(rules),
        numbers=marked_numbers(["Epoch", "Stage", *lines.values()], cells),
    )


def _stages(table: pd.DataFrame, x: Axis) -> list[Band]:
    """Return a background for the warm-up and for every other stage."""
    bands = []
    for stage, epochs in table.groupby("stage")["epoch"]:
        start, stop = x.place([epochs.min() - 0.5, epochs.max() + 0.5]).tolist()
        if len(epochs) == len(table):
            continue
        if stage == 0:
            bands.append(Band(start, stop, "dim", "warm-up" if stop - start > 15 else ""))
        elif int(str(stage)) % 2 == 0:
            bands.append(Band(start, stop, "faint"))
    return bands
