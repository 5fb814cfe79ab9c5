"""Write docs/datasets.md and its pictures from the data: python docs/refresh_datasets.py."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from reliablenet.datasets import Dataset, SyntheticBand, load_dataset
from reliablenet.datasets.cifar10 import CLASSES
from reliablenet.metrics.curves import COLOURS
from reliablenet.tables import Fold

PAGE = Path(__file__).with_name("datasets.md")
IMAGES = Path(__file__).with_name("images")
SHOWN = 10  # images in a row of a grid

INTRODUCTION = """\
# Datasets

`rn.load_dataset(name, random_state=0)` gives a `Dataset`: `folds` (training, selection and certification rows of the source domain), `shifts` (other domains), `groups` (subgroups to
look into), `sweeps` (rows by severity of the shift), `test` (where the source has a set of its own) and `info` (files, rows, settings). `Dataset.from_frame` builds the same from
a table of your own.

Folds of the files are the paper's, 70, 15 and 15 % of the source rows, stratified by label; `fit` and `Dataset.from_frame` draw theirs in another way
([decision 19](decisions/0019-the-certification-fold-is-drawn-first.md)).

A file is looked for in the folder that `RELIABLENET_DATA` names, then in the cache folder of the user, and is otherwise downloaded from its publisher and checked against
its SHA-256. This page, its counts and pictures are written by `make datasets`; counts are those of seed 0.
"""

TEXTS = {
    "synthetic_band": """\
Rows x ~ N(0, 1.17² I) in ten dimensions; the label tells on which side of a hyperplane a row lies, but within the band |w·x| ≤ gamma it is a coin toss. No model can do better than
chance there, and the best possible throughput is known. Shift and sweep widen the band and leave the rows as they are. The picture shows two dimensions, gamma = 0.9:
`load_dataset("synthetic_band", dimension=2, gamma=0.9)`.""",
    "adult": """\
Does a person earn more than 50,000 dollars a year? Census records of 1994 (B. Becker and R. Kohavi, doi:10.24432/C5XW20, CC BY 4.0). Men are the source domain, women the shift; sex
is not a predictor. Groups are the women by education.""",
    "german_credit": """\
Is an applicant a bad credit risk? (H. Hofmann, doi:10.24432/C5NC77, CC BY 4.0.) Applicants of 30 years and more are the source domain, younger ones the shift. The certification fold
has 95 rows, so that alpha = 0.05 affords one error.""",
    "unsw_nb15": """\
Is a network flow an attack? (N. Moustafa and J. Slay, 2015; free for research, cite the authors.) Normal flows and four families of attacks are the source domain; five families that
training never saw, with normal flows of their own, are the shift. The groups are those families, attacks alone: there, confident and wrong means an attack waved through.
One or both of the published partitions are used, whichever the data folder holds; `info` tells.""",
    "coloured_mnist": """\
Which digit is it? (MNIST: Y. LeCun, C. Cortes, C. Burges.) Nine times in ten a digit has a colour of its own, so that the colour nearly gives the label away; in the shift that
happens once in ten times. Shapes are weakened by downsampling, noise and occlusion. The rows of the picture are the same digits at correlations 0.9, 0.5 and 0.1.""",
    "cifar10": """\
Which of ten objects is it? (A. Krizhevsky, 2009.) Folds come from the official training split; `test` is the official test split. The shift is grayscale, then noise, then less light; the
sweep is over noise alone. The rows of the picture are test images as they are, shifted, and at two severities of the sweep.""",
}


def main() -> None:
    """Load each dataset, draw it, count it, and write the page."""
    IMAGES.mkdir(exist_ok=True)
    parts = [INTRODUCTION]
    for name, text in TEXTS.items():
        dataset = load_dataset(name)
        figure = DRAWINGS[name](dataset)
        figure.savefig(IMAGES / f"{name}.png", dpi=100, metadata={"Software": None})
        parts.append(f"## {name}\n\n{text}\n\n![{name}](images/{name}.png)\n\n{counts(dataset)}")
    PAGE.write_text("\n".join(parts))


def counts(dataset: Dataset) -> str:
    """Return a table of rows and classes of every part of a dataset."""
    labels = sorted(set(dataset.folds.train.y.tolist()))
    parts: dict[str, Fold] = {f"{name} fold": fold for name, fold in vars(dataset.folds).items()}
    if dataset.test is not None:
        parts["test"] = dataset.test
    parts |= {f"shift: {name}": fold for name, fold in dataset.shifts.items()}
    parts |= {f"group: {name}": fold for name, fold in dataset.groups.items()}
    lines = ["| part | rows | " + " | ".join(f"label {label}" for label in labels) + " |"]
    lines.append("| --- |" + " ---: |" * (len(labels) + 1))
    for name, fold in parts.items():
        cells = [f"{int((fold.y == label).sum()):,}" for label in labels]
        lines.append(f"| {name} | {len(fold):,} | " + " | ".join(cells) + " |")
    levels = ", ".join(f"{level:g}" for level in dataset.sweeps)
    if levels:
        rows = len(next(iter(dataset.sweeps.values())))
        lines.append(f"\nSweep: {levels}; {rows:,} rows each.")
    return "\n".join(lines) + "\n"


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
        axes.scatter(*rows.T, s=6, color=colour, alpha=0.6, linewidths=0, label=f"label {label}")
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
