"""Columns that were read already give what a data frame of them gives, to the bit."""

import numpy as np
import pandas as pd
import pytest

from reliablenet.tables import PiecewiseEncoder
from reliablenet.tables.column_arrays import CodedTexts, ColumnArrays
from reliablenet.tables.describing import describe_rows
from reliablenet.tables.odd_rows import find_oddities

LEVELS = ["ash", "elm", "oak"]


def make_table(n, seed):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"bent": rng.normal(size=n), "straight": rng.normal(size=n)})
    table["price"] = rng.choice([0.0, 0.0, 9.5, 20.0, 31.0], n)
    table["tree"] = rng.choice(LEVELS, n)
    table["often"] = rng.choice([*LEVELS, None], n)
    table.loc[rng.random(n) < 0.1, "straight"] = np.nan
    return table


def as_arrays(table):
    columns = {}
    for name in table:
        if name in ("tree", "often"):
            codes = pd.Categorical(table[name], categories=LEVELS).codes
            columns[name] = CodedTexts(codes, LEVELS)
        else:
            columns[name] = table[name].to_numpy(np.float64)
    return ColumnArrays(len(table), columns)


@pytest.fixture(scope="module")
def learned():
    table = make_table(1500, seed=0)
    y = np.abs(table.bent) + (table.tree == "oak") > 1.0
    return PiecewiseEncoder().fit(table, y), describe_rows(table)


@pytest.mark.parametrize("n", [1, 2, 300, 1500])
@pytest.mark.parametrize("change", ["none", "far", "unit", "constant", "gaps", "empty"])
def test_arrays_are_read_as_a_frame(learned, n, change):
    encoder, profile = learned
    table = make_table(n, seed=n)
    if change == "far":
        table.loc[0, ["bent", "price"]] = [1e9, -1e9]
    elif change == "unit":
        table["price"] *= 1000.0
    elif change == "constant":
        table["bent"], table["tree"] = 0.25, "elm"
    elif change != "none":
        table.loc[slice(0, 0 if change == "gaps" else n), ["bent", "tree"]] = np.nan
    arrays = as_arrays(table)
    before = {name: arrays[name].copy() for name in ("bent", "straight", "price")}
    assert encoder.compact(arrays).tobytes() == encoder.compact(table).tobytes()
    assert find_oddities(profile, arrays) == find_oddities(profile, table)
    assert all(arrays[name].tobytes() == kept.tobytes() for name, kept in before.items())
