"""A model and what it is made of: rules around rules, pipelines, and the encoder at the core."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from reliablenet.tables.tabular import TabularEncoder


def layers(model: Any) -> Iterator[Any]:
    """Yield a model and what it wraps, from the outside in, as far as that is fitted."""
    yield model
    inner = getattr(model, "estimator_", None)
    if (
        getattr(inner, "classes_", None) is not None
    ):  # bagging has a pattern there, not fitted itself
        yield from layers(inner)


def find_encoder(model: Any) -> TabularEncoder | None:
    """Return the encoder inside a model, through rules and pipelines, if it has one of ours."""
    *_, core = layers(model)
    steps = getattr(core, "steps", None)  # of a pipeline
    encoder = steps[0][1] if steps else getattr(core, "encoder_", None)
    return encoder if isinstance(encoder, TabularEncoder) else None
