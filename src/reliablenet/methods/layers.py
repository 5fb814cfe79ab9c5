"""A model and what it is made of: rules around rules, pipelines, and the encoder at the core."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

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


def find_core(model: Any) -> Any:
    """Return the estimator of another library at the core of a model; None if it is one of ours."""
    *_, core = layers(model)
    return None if hasattr(type(core), "_target") else core


def methods_inside(estimator: Any, X: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the fitted methods of ours inside an estimator that know their rows, and X as it reaches them.

    It looks through frozen estimators, the steps of fitted pipelines, calibrated classifiers, and what
    other estimators of scikit-learn keep in ``best_estimator_``, ``estimator_`` and ``estimators_``.

    Examples
    --------
    >>> from reliablenet import CertifiedThreshold
    >>> from reliablenet.datasets import SyntheticBand
    >>> from reliablenet.methods.layers import methods_inside
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> rows = SyntheticBand(random_state=0).sample(1000)
    >>> scaler = StandardScaler().fit(rows.X)
    >>> ours = CertifiedThreshold(LogisticRegression()).fit(scaler.transform(rows.X), rows.y)
    >>> [(method, reaching)] = methods_inside(make_pipeline(scaler, ours), rows.X)
    >>> method is ours, bool((reaching == scaler.transform(rows.X)).all())
    (True, True)
    """
    if getattr(estimator, "seen_", None) is not None and hasattr(type(estimator), "_target"):
        yield estimator, X
        return
    if isinstance(estimator, Pipeline):
        steps = [step for _, step in estimator.steps]
        if next(methods_inside(steps[-1], X), None) is None:
            return
        with suppress(NotFittedError):  # what is not fitted yet is looked through when it is
            for step in steps[:-1]:
                X = X if step in (None, "passthrough") else step.transform(X)
            yield from methods_inside(steps[-1], X)
        return
    known: set[int] = set()
    for inner in _kept_inside(estimator):
        for method, rows in () if inner is None else methods_inside(inner, X):
            if id(method) not in known:
                known.add(id(method))
                yield method, rows


def _kept_inside(estimator: Any) -> Iterator[Any]:
    """Yield what an estimator wraps: fitted by itself, or frozen before."""
    given = getattr(estimator, "estimator", None)
    ours = hasattr(type(estimator), "_target")
    if ours or isinstance(estimator, FrozenEstimator) or isinstance(given, FrozenEstimator):
        yield given
    for name in ("best_estimator_", "estimator_"):
        yield getattr(estimator, name, None)
    for name in ("estimators_", "calibrated_classifiers_"):
        several = getattr(estimator, name, None)
        yield from several if isinstance(several, list) else ()


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
