"""The page of a benchmark: its tables and its figures."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from reliablenet.bench import Profile, Store
from reliablenet.bench.figures import FIGURES
from reliablenet.bench.methods import Point
from reliablenet.bench.results import results_frame
from reliablenet.bench.tables import Table, agreement, in_distribution, ranking
from reliablenet.errors import ReliableNetError
from reliablenet.report import text
from reliablenet.report.charts import Numbers, marked_numbers, thin
from reliablenet.report.page import render

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_ROWS = 60  # of the numbers below a figure
RESOLUTION, COLOURS = 110, 64  # dots an inch, and colours of the palette


@dataclass(frozen=True)
class Picture:
    """A figure as a data address, its size, and its numbers; ``thinned`` if not all of them."""

    name: str
    title: str
    source: str
    width: int
    height: int
    numbers: Numbers
    thinned: bool


def benchmark_page(store: Store, profile: Profile) -> str:
    """Return a page on a study: ours beside the paper's, what can be certified, and the figures.

    Parameters
    ----------
    store : Store
    profile : Profile

    Returns
    -------
    str
        HTML that needs no other file and no network.
    """
    runs = results_frame(store, profile)
    compared = agreement(store, profile)
    certified = (runs["point"] == Point.CERTIFIED).any()
    pictures = []
    for name, draw in FIGURES.items():
        try:
            figure = draw(store, profile)
        except ReliableNetError:  # not run yet
            continue
        pictures.append(_picture(name, draw.title, figure.plot(), figure.frame()))
    return render(
        "benchmark.html",
        title=f"Benchmark, profile {profile.name}",
        verdict=_verdict(runs, compared),
        counts=_counts(runs, profile),
        agreement=_numbers(compared),
        ranking=_numbers(ranking(store, profile)) if certified else None,
        everything=_numbers(in_distribution(store, profile)),
        pictures=pictures,
    )


def _verdict(runs: pd.DataFrame, compared: Table) -> str:
    if len(compared.numbers) == 0:
        return f"{len(runs):,} runs; the paper has no figures for them."
    near = int((compared.numbers["distance"] <= 2).sum())
    return (
        f"{near} of {len(compared.numbers)} of our means lie within two of the paper's standard "
        "deviations."
    )


def _counts(runs: pd.DataFrame, profile: Profile) -> Numbers:
    rows = []
    for name, plan in profile.plans.items():
        here = runs[runs["plan"] == name]
        seeds = ", ".join(str(seed) for seed in sorted(here["seed"].unique()))
        rows.append([name, text.budget(plan.alpha), text.count(len(here)), seeds or "none yet"])
    return marked_numbers(["Dataset", "Budget", "Runs", "Seeds"], rows)


def _numbers(table: Table) -> Numbers | None:
    cells = table.cells
    if len(cells) == 0:
        return None
    return marked_numbers(
        [str(name) for name in cells.columns], cells.astype(str).to_numpy().tolist()
    )


def _picture(name: str, title: str, figure: Figure, frame: pd.DataFrame) -> Picture:
    """Return a figure in few colours: a third of the bytes, and no difference to the eye."""
    from PIL import Image

    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=RESOLUTION)
    image = Image.open(buffer).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    small = io.BytesIO()
    image.save(small, format="png", optimize=True)
    shown = frame.iloc[thin(len(frame), MOST_ROWS)]
    cells = [[text.cell(value) for value in row] for row in shown.itertuples(index=False)]
    return Picture(
        name=name,
        title=title,
        source=f"data:image/png;base64,{base64.b64encode(small.getvalue()).decode()}",
        width=image.width,
        height=image.height,
        numbers=marked_numbers([str(column) for column in frame.columns], cells),
        thinned=len(shown) < len(frame),
    )
