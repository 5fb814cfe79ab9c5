"""A model and what it is made of: rules around rules, pipelines, and the encoder at the core."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from reliablenet.tables.folds import Folds
from reliablenet.tables.source import Source, count_rows
from reliablenet.tables.tabular import TabularEncoder


def layers(model: Any) -> Iterator[Any]:
    """Yield a model and what it wraps, from the outside in, as far as that is fitted."""
    yield model
    inner = getattr(model, "estimator_", None)
    ours = hasattr(type(model), "_target")  # bagging has a pattern there, not fitted itself
    if inner is not None and (ours or getattr(inner, "classes_", None) is not None):
        yield from layers(inner)


def find_encoder(model: Any) -> TabularEncoder | None:
    """Return the encoder inside a model, through rules and pipelines, if it has one of ours."""
    *_, core = layers(model)
    steps = getattr(core, "steps", None)  # of a pipeline
    encoder = steps[0][1] if steps else getattr(core, "encoder_", None)
    return encoder if isinstance(encoder, TabularEncoder) else None


def find_source(model: Any, folds: Folds) -> Source:
    """Describe the rows that trained a model, and count those that certify it.

    Around a model of ours that was fitted before, its own profile stays in force; around a foreign one
    the selection rows stand for those that trained it, or half of the certification rows.
    """
    encoder = find_encoder(model)
    unused: Any = ()
    read_as: dict[str, Any] = {}
    if encoder is not None:
        unused, dates = encoder.dropped_, encoder.date_columns_
        first = dict(zip(dates.columns, dates.day_first, strict=True))
        read_as = {"dates": first, "texts": encoder.texts_}
    train, held = folds.train.X, folds.certification.X
    known = next((m.profile_ for m in layers(model) if getattr(m, "profile_", None)), None)
    if len(folds.train) == 0 and known is not None:
        return Source(known, count_rows(known, held))
    if len(folds.train) == 0 and len(folds.selection):
        train = folds.selection.X
    return Source.of(train, held, unused, **read_as)
