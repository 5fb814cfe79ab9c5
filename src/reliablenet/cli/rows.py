"""Tables of any size as a fitted model takes them: the columns it knows, some rows at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reliablenet.certificate.scored import ScoredRows
from reliablenet.data import TabularEncoder
from reliablenet.data.tables import (
    check_columns,
    column_names,
    label_texts,
    local_file,
    read_batches,
    read_table,
)
from reliablenet.data.target import take_labels
from reliablenet.errors import DataFileError, InvalidDataError

if TYPE_CHECKING:
    from reliablenet.methods import Decisions


def load_model(path: Path) -> Any:
    """Load a model; a file that is not there is missing data, and not a damaged model."""
    import reliablenet as rn

    if not path.exists():
        raise DataFileError(f"There is no model file {path}.")
    return rn.load(path)


def find_encoder(model: Any) -> TabularEncoder | None:
    """Return the encoder inside a model, through rules and pipelines, if it has one of ours."""
    while model is not None and not isinstance(model, TabularEncoder):
        steps = getattr(model, "steps", None)  # of a pipeline
        inner = getattr(model, "encoder_", None) or getattr(model, "estimator_", None)
        model = steps[0][1] if steps else inner
    return model


def feature_batches(
    model: Any, path: Path, also: Sequence[str] = ()
) -> Iterator[tuple[Any, pd.DataFrame]]:
    """Yield the features of each batch, and the columns in ``also`` as texts.

    What was left out in training may be absent. Columns that were categories stay as they are
    written: in a batch alone, some look like numbers.
    """
    names, encoder = getattr(model, "feature_names_in_", None), find_encoder(model)
    present = column_names(path)
    if names is None:  # fitted on an array: by position
        wanted = [name for name in present if name not in also]
    elif used := [name for name in also if name in names]:
        raise InvalidDataError(
            f"The model predicts from {used[0]!r}, so that it is not the target."
        )
    else:
        idle = set() if encoder is None else set(encoder.dropped_)
        wanted = [name for name in names if name in present or name not in idle]
    texts = {*also, *([] if encoder is None else encoder.categories_)}
    empty = True
    for frame in read_batches(path, [*wanted, *also], text=texts):
        empty = False
        X = frame[wanted].to_numpy() if names is None else frame.reindex(columns=names)
        yield X, frame[list(also)]
    if empty:
        raise InvalidDataError(f"{path.name} has a header and no rows.")


def decide_batches(model: Any, path: Path) -> Iterator[Decisions]:
    """Yield what is decided, batch by batch."""
    for X, _ in feature_batches(model, path):
        yield model.decide(X)


def score_batches(model: Any, path: Path, target: str) -> Iterator[ScoredRows]:
    """Yield scores and verdicts of a model on labelled rows."""
    for X, truth in feature_batches(model, path, [target]):
        decisions = model.decide(X)
        wrong = decisions.label != known_labels(model, truth[target], target)
        yield ScoredRows(decisions.confidence, wrong, -math.inf)


def training_rows(model: Any, data: str, target: str) -> tuple[pd.DataFrame, NDArray[Any]]:
    """Return features and labels of the table that a model was trained on, as `train` read them."""
    with local_file(data) as path:
        table = read_table(path)
    check_columns([target], table.columns.tolist(), path.name)
    features = list(getattr(model, "feature_names_in_", table.columns.drop(target)))
    check_columns(features, table.columns.tolist(), path.name)
    return table[features], take_labels(table[target], target)


def known_labels(model: Any, values: pd.Series[Any], target: str) -> NDArray[Any]:
    """Return labels as the model spells them, or name those that it does not know."""
    known = dict(zip(label_texts(model.classes_), model.classes_.tolist(), strict=True))
    texts = true_labels(values, target)
    strangers = sorted(set(texts) - known.keys())
    if strangers:
        raise InvalidDataError(
            f"{target!r} holds labels that the model does not know: {strangers[:5]}. It knows "
            f"{list(known)[:10]}."
        )
    return np.array([known[text] for text in texts], dtype=model.classes_.dtype)


def true_labels(values: pd.Series[Any], column: str) -> NDArray[Any]:
    """Return true labels as texts, or say how many are missing."""
    missing = values.isna().to_numpy()
    if missing.any():
        raise InvalidDataError(
            f"The label {column!r} is missing in {int(missing.sum())} of {len(values)} rows, the first "
            f"of them row {int(values.index[int(missing.argmax())])}. A certificate needs the truth of "
            "every row; to leave rows out is right only if pure chance decided which."
        )
    return label_texts(values)
