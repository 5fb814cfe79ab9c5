"""How many directions do words need, and what does their decomposition cost? On a development split of Banking77.

Rows of the training file alone; accuracy of logistic regression on the features, which is quick and shows what they hold.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

from reliablenet.tables.free_text import TextFeatures
from reliablenet.tables.ngrams import count_ngrams
from studies.default.banking77 import requests
from studies.runner import Block, Study

FITTED = 7000
DIRECTIONS = (64, 128, 256, 512, "all cells")


def measure(directions: Any) -> dict[str, Any]:
    """Return the accuracy on rows that features and classifier have not seen."""
    table = requests().iloc[:9900]  # the training file comes first
    order = np.random.RandomState(0).permutation(len(table))
    texts, labels = table["text"].tolist(), pd.factorize(table["category"])[0][order]
    texts = [texts[place] for place in order]
    start = time.perf_counter()
    whole = directions == "all cells"
    found = TextFeatures.fit(texts[:FITTED], 64 if whole else directions)
    assert found is not None
    X = found.weigh(count_ngrams(texts)) if whole else found.transform(texts)
    seconds = time.perf_counter() - start
    model = LogisticRegression(C=20.0 if whole else 1.0, max_iter=200)
    model.fit(X[:FITTED], labels[:FITTED])
    return {
        "accuracy": round(model.score(X[FITTED:], labels[FITTED:]), 4),
        "cells": len(found.cells),
        "rows": len(texts) - FITTED,
        "seconds": round(seconds, 1),
    }


STUDY = Study(
    "default",
    "text_tried",
    about="How many directions do words need?",
    cost="five minutes; needs the source files",
    blocks=lambda: [Block.once({"directions": one}, partial(measure, one)) for one in DIRECTIONS],
)
