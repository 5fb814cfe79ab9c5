"""What training for every group is worth: tables whose groups may be mixed anew.

Adult by sex, with women among the training rows, and UNSW-NB15 by the family of the attack, normal traffic among them. Groups are
not inputs, and families are made from the label, so that all share a threshold: `Promise.by_group(..., common=True)`. Each
method is certified for that promise, and once overall for comparison; counts are those of rows that nothing has seen, by
group, from which JCW and throughput follow for every mixture.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import reliablenet as rn
from reliablenet.datasets import adult, unsw_nb15
from reliablenet.tables.folds import cut_rows
from studies.default.fitting import SEEDS, quietly
from studies.runner import Block, Study

RHO, ROWS, TEST_ROWS = 0.05, 12_000, 12_000
ALPHAS = {"adult": 0.05, "unsw_nb15": 0.02}
OVERALL = "overall"  # the certificate that says nothing of groups
WAYS = ("plain", "weights", "constraint", "both", "auto")
RIVALS: dict[str, Any] = {
    "erm": rn.ERMClassifier,
    "selectivenet": rn.SelectiveNetClassifier,
    "deep_gamblers": rn.DeepGamblersClassifier,
}

Table = tuple[pd.DataFrame, NDArray[np.intp], NDArray[Any]]


def read_adult() -> Table:
    """Return the records without sex, their labels, and sex."""
    table, y = adult.read()
    return table.drop(columns="sex"), y, table["sex"].to_numpy(dtype=object)


def read_unsw() -> Table:
    """Return normal flows and those of the families that the paper trains on, and whose they are."""
    table, _ = unsw_nb15.read("small")
    family = table["attack_cat"].to_numpy(dtype=object)
    kept = np.isin(family, ("Normal", *unsw_nb15.SEEN))
    X = table.drop(columns=list(unsw_nb15.NOT_FEATURES))[kept]
    return X, (family[kept] != "Normal").astype(np.intp), family[kept]


READERS = {"adult": read_adult, "unsw_nb15": read_unsw}


def build(method: str, alpha: float, seed: int) -> Any:
    """Return a method, unfitted."""
    settings: dict[str, Any] = {"rho": RHO, "random_state": seed, "verbose": False}
    if method == OVERALL:
        return rn.ReliableClassifier(alpha, **settings)
    promise = rn.Promise.by_group(alpha, by="group", common=True)
    if method in RIVALS:
        return RIVALS[method](promise=promise, **settings)
    return rn.ReliableClassifier(promise=promise, group_training=method, **settings)


def measure(dataset: str, method: str, seed: int) -> list[dict[str, Any]]:
    """Fit and certify one method, and count what it does in each group of fresh rows."""
    X, y, group = READERS[dataset]()
    strata = pd.factorize(pd.Series(group) + pd.Series(y).astype(str))[0]
    counts = (ROWS, TEST_ROWS, len(y) - ROWS - TEST_ROWS)
    fitted, fresh, _ = cut_rows(strata, counts, seed)
    model = build(method, ALPHAS[dataset], seed)
    by = {} if method == OVERALL else {"by": group[fitted]}
    with quietly():
        model.fit(X.iloc[fitted], y[fitted], **by)
        decided = model.decide(X.iloc[fresh])
    accepted, wrong = decided.accepted, decided.label != y[fresh]
    shared = {"certified": bool(model.certificate_.certified), "way": model.history_.way}
    records = []
    for name in sorted(set(group)):
        mine = group[fresh] == name
        sums = {"n": mine, "accepted": mine & accepted, "errors": mine & accepted & wrong}
        counted = {key: int(rows.sum()) for key, rows in sums.items()}
        records.append(shared | {"group": str(name)} | counted)
    return records


def blocks() -> list[Block]:
    """Return the methods of each dataset, seed by seed."""
    return [
        Block.once(
            {"dataset": dataset, "method": method, "seed": seed, "alpha": alpha, "rows": ROWS},
            partial(measure, dataset, method, seed),
        )
        for seed in SEEDS
        for dataset, alpha in ALPHAS.items()
        for method in (OVERALL, *WAYS, *RIVALS)
    ]


STUDY = Study(
    "default",
    "group_ways",
    about="What is training for every group worth, on tables?",
    cost="three hours; needs the source files",
    blocks=blocks,
)
