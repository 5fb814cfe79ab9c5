"""Do the intervals of a breakdown hold all at once, and is nobody named who fares like the rest?

A source with a known truth in every cell: three columns, classes, a rule fixed beforehand. A draw fails
if any interval of any cell misses its truth; where all parts fare alike it also counts as false if anyone is
called clearly worse. The fault variant is what a reader would do by hand: each interval and each test
at the level by itself.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.stats import hypergeom

from reliablenet.certificate.bounds import clopper_pearson_interval
from reliablenet.certificate.scored import ScoredRows
from reliablenet.metrics.breakdowns import RATES, Breakdown, count_cells
from reliablenet.metrics.cells import Cut
from studies.guarantees.intervals import interval, keeps
from studies.runner import Block, Record, Study

DRAWS = 20_000
LEVEL = 0.9
ENDS = ("low", "high")
# Rows of a draw, and whether parts differ; few rows are the edge, where cells are nearly empty.
SETTINGS = [(60, True), (400, True), (400, False)]
CUTS = {
    "letter": Cut("value", values=tuple("abcdef")),
    "age": Cut("number", edges=(0.25, 0.5, 0.75)),
    "rare": Cut("value", values=("no", "yes")),
}
GRID = 2000  # ages at which the truth is averaged


def chances(
    letter: NDArray[np.intp], age: NDArray[np.float64], unequal: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the chance that a row is acted on, and that it is wrong if so."""
    acted = np.where(unequal, 0.4 + 0.4 * age, 0.6)
    wrong = np.where(unequal, 0.02 + 0.03 * letter + 0.1 * (age > 0.75), 0.06)
    return acted, wrong


def truth(unequal: bool) -> dict[tuple[str, str], NDArray[np.float64]]:
    """Return the true rates of each cell, in the order of `RATES`."""
    letter, place = np.meshgrid(np.arange(6), np.arange(GRID), indexing="ij")
    age = (place + 0.5) / GRID
    acted, wrong = chances(letter, age, unequal)
    both = acted * wrong
    parts = {("", "all rows"): np.ones_like(age, bool)}
    parts |= {("letter", name): letter == k for k, name in enumerate("abcdef")}
    quarter = np.minimum((age * 4).astype(int), 3)
    parts |= {("age", name): quarter == k for k, name in enumerate(CUTS["age"].names()[:4])}
    parts |= {("rare", name): parts["", "all rows"] for name in ("no", "yes")}
    return {
        key: np.array(
            [both[cell].mean(), both[cell].mean() / acted[cell].mean(), acted[cell].mean()]
        )
        for key, cell in parts.items()
    }


def draw(random: np.random.Generator, n: int, unequal: bool) -> Breakdown:
    """Return the breakdown of rows from the source."""
    letter, age = random.integers(6, size=n), random.random(n)
    rare = random.random(n) < 0.02
    acted, wrong = chances(letter, age, unequal)
    rows = ScoredRows(np.zeros(n), random.random(n) < wrong, -np.inf)
    table = {
        "letter": np.array(list("abcdef"))[letter],
        "age": age,
        "rare": np.where(rare, "yes", "no"),
    }
    return count_cells(rows, random.random(n) < acted, table, CUTS, level=LEVEL)


def failures(n: int, unequal: bool, draws: int = DRAWS) -> Record:
    """Return in how many draws some interval missed, and in how many someone was named falsely."""
    random, known = np.random.default_rng([n, unequal]), truth(unequal)
    missed = pointwise = named = named_pointwise = 0
    for _ in range(draws):
        found = draw(random, n, unequal)
        cells = [found.whole, *found.cells]
        true = np.array([known[cell.column, cell.value] for cell in cells]).T
        low, high = (np.array([found.rates[f"{name}_{end}"] for name in RATES]) for end in ENDS)
        missed += bool(((true < low) | (true > high)).any())
        counts = np.array([(cell.n, cell.accepted, cell.errors) for cell in cells]).T
        low, high = clopper_pearson_interval(counts[[2, 2, 1]], counts[[0, 1, 0]], LEVEL)
        pointwise += bool(((true < low) | (true > high)).any())
        if not unequal:
            named += bool((found.chance <= 1 - LEVEL).any())
            alone = hypergeom.sf(counts[2, 1:] - 1, n, found.whole.errors, counts[0, 1:])
            named_pointwise += bool((alone <= 1 - LEVEL).any())
    return {
        "draws": draws,
        "missed": missed,
        "missed_interval": [round(end, 5) for end in interval(missed, draws)],
        "missed_pointwise": pointwise,
        "named_falsely": None if unequal else named,
        "named_falsely_pointwise": None if unequal else named_pointwise,
    }


def blocks(draws: int = DRAWS, settings: list[tuple[int, bool]] = SETTINGS) -> list[Block]:
    """Return the settings."""
    return [
        Block.once(
            {"rows": n, "parts_differ": unequal, "level": LEVEL},
            partial(failures, n, unequal, draws),
        )
        for n, unequal in settings
    ]


def complaints(records: list[Record]) -> list[str]:
    """Say which promise broke, and which fault was not seen."""
    told = []
    for record in records:
        draws, rest = record["draws"], 1 - record["level"]
        if not keeps(record["missed"], draws, rest):
            told.append(f"intervals miss too often: {record}")
        if keeps(record["missed_pointwise"], draws, rest):
            told.append(f"pointwise intervals pass unseen: {record}")
        if record["named_falsely"] is not None:
            if not keeps(record["named_falsely"], draws, rest):
                told.append(f"someone is named falsely too often: {record}")
            if keeps(record["named_falsely_pointwise"], draws, rest):
                told.append(f"pointwise tests pass unseen: {record}")
    return told


STUDY = Study(
    room="guarantees",
    name="breakdowns",
    about="do the intervals of a breakdown hold all at once, and is nobody named by chance?",
    cost="five minutes",
    blocks=blocks,
    parallel=True,
    complaints=complaints,
)
