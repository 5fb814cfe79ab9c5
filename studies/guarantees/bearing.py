"""Who bears the mistakes under a certificate for all, and under one by group, on three real tables.

A model is trained on half of the rows, certified on a quarter and watched on the last quarter: what the
certificate says nothing about is seen there. Families of attacks are not known when a flow is decided on, so
that they get one common threshold; the other groups have thresholds of their own.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier

import reliablenet as rn
from reliablenet.datasets import adult, german_credit, unsw_nb15
from reliablenet.metrics import breakdown
from studies.runner import Block, Record, Study

SEEDS = range(5)
RHO = 0.05
MOST_ROWS = 40_000
FEWEST = 0.02  # smaller families of attacks are one group


class Table(NamedTuple):
    """Features, labels, and the group of each row."""

    X: pd.DataFrame
    y: NDArray[Any]
    group: NDArray[Any]
    alpha: float
    common: bool = False


def of_adult() -> Table:
    """Income, by race and sex; both are among the features."""
    X, y = adult.read()
    group = X["race"].astype(str) + ", " + X["sex"].astype(str)
    return Table(X, y, group.to_numpy(), 0.05)


def of_german_credit() -> Table:
    """Bad risks, by age."""
    X, y = german_credit.read()
    group = np.select([X["age"] < 30, X["age"] < 45], ["under 30", "30 to 44"], "45 or more")
    return Table(X, y, group, 0.1)


def of_unsw_nb15() -> Table:
    """Attacks, by their family and normal traffic."""
    table, _ = unsw_nb15.read("small")
    family = table["attack_cat"].astype(str)
    share = family.map(family.value_counts(normalize=True))
    group = family.where(share >= FEWEST, "other families").to_numpy()
    y = (family != "Normal").to_numpy().astype(np.intp)
    return Table(table.drop(columns=list(unsw_nb15.NOT_FEATURES)), y, group, 0.02, common=True)


TABLES = {"adult": of_adult, "german_credit": of_german_credit, "unsw_nb15": of_unsw_nb15}


def bearing(name: str, seed: int) -> list[Record]:
    """Return one record a group, and one for all rows."""
    table = TABLES[name]()
    random = np.random.default_rng(seed)
    order = random.permutation(len(table.y))[:MOST_ROWS]
    train, held, new = np.split(order, [len(order) // 2, 3 * len(order) // 4])
    model = HistGradientBoostingClassifier(random_state=seed, categorical_features="from_dtype")
    model.fit(table.X.iloc[train], table.y[train])
    proba = {
        part: model.predict_proba(table.X.iloc[rows])
        for part, rows in (("held", held), ("new", new))
    }
    overall = rn.certified_threshold(proba["held"], table.y[held], table.alpha, RHO)
    promise = rn.Promise.by_group(table.alpha, by="group", common=table.common)
    parted = rn.certified_rule(
        proba["held"], table.y[held], promise, RHO, by={"group": table.group[held]}
    )
    groups = {"group": table.group[new]}
    accepted = {
        "overall": proba["new"].max(axis=1) >= overall.threshold,
        "by_group": parted.rule.accept(proba["new"], by=groups),
    }
    found = {
        rule: breakdown(proba["new"], table.y[new], accepted=chosen, by=groups).to_frame()
        for rule, chosen in accepted.items()
    }
    records: list[Record] = []
    for place in found["overall"].index:
        first = found["overall"].loc[place]
        if first["column"] not in ("", "group"):
            continue
        record: Record = {"group": str(first["value"]), "rows": int(first["n"])}
        for rule, frame in found.items():
            row = frame.loc[place]
            record[rule] = {
                "acted_on": int(row["accepted"]),
                "wrong": int(row["errors"]),
                "clearly_worse": bool(row["clear"]),
            }
        record["certified"] = [bool(overall.certified), bool(parted.certified)]
        record["alpha"] = table.alpha
        records.append(record)
    return records


def blocks() -> list[Block]:
    """Return the tables and seeds."""
    return [
        Block.once({"table": name, "seed": seed}, partial(bearing, name, seed))
        for name in TABLES
        for seed in SEEDS
    ]


STUDY = Study(
    room="guarantees",
    name="bearing",
    about="who bears the mistakes under a certificate for all, and under one by group?",
    cost="five minutes; needs the files of Adult, German Credit and UNSW-NB15",
    blocks=blocks,
)
