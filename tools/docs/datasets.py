"""Count the rows of docs/datasets.md and draw its pictures from the data: make datasets."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
from matplotlib.figure import Figure

from reliablenet._drawing import COLOURS
from reliablenet.datasets import Dataset, SyntheticBand, load_dataset
from reliablenet.datasets.cifar10 import CLASSES
from reliablenet.tables import Fold
from tools.docs.markdown import DOCS, fill, table

SHOWN = 10  # images in a row of a grid


def main() -> None:
    """Load each dataset, draw it, count it, and write the counts into the page."""
    tables = {}
    for name, draw in DRAWINGS.items():
        dataset = load_dataset(name)
        path = DOCS / "images" / f"{name}.png"
        draw(dataset).savefig(path, dpi=100, metadata={"Software": None})
        tables[name] = counts(dataset)
    page = DOCS / "datasets.md"
    page.write_text(fill(page.read_text(), {name: partial(str, tables[name]) for name in tables}))


def counts(dataset: Dataset) -> str:
    """Return a table of rows and classes of every part of a dataset, and the sweep if it has one."""
    labels = sorted(set(dataset.folds.train.y.tolist()))
    parts: dict[str, Fold] = {f"{name} fold": fold for name, fold in vars(dataset.folds).items()}
    if dataset.test is not None:
        parts["test"] = dataset.test
    parts |= {f"shift: {name}": fold for name, fold in dataset.shifts.items()}
    parts |= {f"group: {name}": fold for name, fold in dataset.groups.items()}
    found = table(
        ["part", "rows", *(f"label {label}" for label in labels)],
        (
            [name, f"{len(fold):,}", *(f"{int((fold.y == label).sum()):,}" for label in labels)]
            for name, fold in parts.items()
        ),
    )
    if not dataset.sweeps:
        return found
    levels = ", ".join(f"{level:g}" for level in dataset.sweeps)
    rows = len(next(iter(dataset.sweeps.values())))
    return found + f"\n\nSweep: {levels}; {rows:,} rows each."


def draw_band(dataset: Dataset) -> Figure:
    """Draw two dimensions of the band, with the coin tosses in it."""
    band = SyntheticBand(random_state=0, dimension=2, gamma=0.9)
    fold = band.sample(3000)
    figure = Figure(figsize=(6, 5), layout="constrained")
    axes = figure.subplots()
    w = band.direction
    along = np.array([-w[1], w[0]])
    ends = np.array([-6.0, 6.0])
    for side in (-0.9, 0.9):
        line = side * w[:, None] + along[:, None] * ends
        axes.plot(*line, color="0.3", linewidth=1, linestyle="--")
    for label, colour in zip((0, 1), COLOURS, strict=False):
        rows = fold.X[fold.y == label]
        axes.scatter(
            rows[:, 0],
            rows[:, 1],
            s=6,
            color=colour,
            alpha=0.6,
            linewidths=0,
            label=f"label {label}",
        )
    axes.set(xlim=(-4, 4), ylim=(-4, 4), aspect="equal", xlabel="x₁", ylabel="x₂")
    axes.set_title("Between the dashed lines labels are coin tosses", loc="left", fontsize=10)
    axes.legend(frameon=False, loc="upper right")
    return figure


def draw_balance(dataset: Dataset) -> Figure:
    """Draw the share of label 1 in the source domain, the shift and each group."""
    folds = vars(dataset.folds).values()
    source = np.concatenate([fold.y for fold in folds])
    bars = {"source domain": source}
    bars |= {f"shift: {name}": fold.y for name, fold in dataset.shifts.items()}
    bars |= {name: fold.y for name, fold in dataset.groups.items()}
    figure = Figure(figsize=(7.5, 0.9 + 0.27 * len(bars)), layout="constrained")
    axes = figure.subplots()
    places = np.arange(len(bars))[::-1]
    colours = [COLOURS[0], *[COLOURS[1]] * len(dataset.shifts), *["0.6"] * len(dataset.groups)]
    axes.barh(places, [float(y.mean()) for y in bars.values()], color=colours, height=0.7)
    axes.set_yticks(places, [f"{name} ({len(y):,})" for name, y in bars.items()], fontsize=9)
    axes.set(xlim=(0, 1), xlabel="share of label 1")
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def draw_coloured_mnist(dataset: Dataset) -> Figure:
    """Draw the same digits at three correlations of colour and label."""
    first = [int(np.flatnonzero(dataset.test.y == digit)[0]) for digit in range(SHOWN)]
    rows = {f"{level:g}": dataset.sweeps[level].X[first] for level in (0.9, 0.5, 0.1)}
    return grid(rows, [str(digit) for digit in range(SHOWN)])


def draw_cifar(dataset: Dataset) -> Figure:
    """Draw test images, shifted and with noise, in their own colours."""
    mean, sd = (np.reshape(dataset.info[key], (1, 3, 1, 1)) for key in ("mean", "deviation"))
    first = [int(np.flatnonzero(dataset.test.y == label)[0]) for label in range(SHOWN)]
    (shift,) = dataset.shifts.values()
    rows: dict[str, np.ndarray] = {"test": dataset.test.X[first], "shift": shift.X[first]}
    rows |= {f"noise {level:g}": dataset.sweeps[level].X[first] for level in (0.1, 0.25)}
    return grid({name: images * sd + mean for name, images in rows.items()}, list(CLASSES))


def grid(rows: Mapping[str, np.ndarray], columns: list[str]) -> Figure:
    """Draw rows of images of shape (n, 3, height, width)."""
    figure = Figure(figsize=(SHOWN, 1.05 * len(rows) + 0.3), layout="constrained")
    panels = figure.subplots(len(rows), SHOWN)
    for line, (name, images) in zip(panels, rows.items(), strict=True):
        for axes, image in zip(line, images, strict=True):
            axes.imshow(image.transpose(1, 2, 0).clip(0, 1), interpolation="nearest")
            axes.set(xticks=[], yticks=[])
        line[0].set_ylabel(name, fontsize=9)
    for axes, column in zip(panels[0], columns, strict=True):
        axes.set_title(column, fontsize=9)
    return figure


DRAWINGS = {
    "synthetic_band": draw_band,
    "adult": draw_balance,
    "german_credit": draw_balance,
    "unsw_nb15": draw_balance,
    "coloured_mnist": draw_coloured_mnist,
    "cifar10": draw_cifar,
}


if __name__ == "__main__":
    main()
