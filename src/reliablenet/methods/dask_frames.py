"""Dask data frames as rows of a fitted method: decisions that are one too, and certificates by counts that merge."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from reliablenet._dask import map_frame, map_parts
from reliablenet._warn import without_warnings
from reliablenet.certificate import Certificate, Provenance, RuleCertificate
from reliablenet.certificate.labels import LabelsSeen
from reliablenet.certificate.merging import Look, Part
from reliablenet.certificate.partitions import certify_partitions
from reliablenet.errors import InvalidDataError
from reliablenet.methods.held_out import warn_of_reuse
from reliablenet.methods.inputs import check_labels
from reliablenet.methods.ledger import asked_of, count_uses
from reliablenet.methods.row_watch import RowWatch
from reliablenet.methods.seen import model_hashes
from reliablenet.tables.target import group_names


@dataclass(frozen=True)
class _Deciding:
    """What decides the rows of a partition."""

    model: Any
    defer_odd: bool
    allow_missing: tuple[Any, ...]
    empty: pd.DataFrame

    def __call__(self, rows: pd.DataFrame, by: Any = None) -> pd.DataFrame:
        if len(rows) == 0:
            return self.empty.set_axis(rows.index)
        more = {"defer_odd": self.defer_odd, "allow_missing": self.allow_missing}
        with without_warnings():
            decisions = self.model.decide(rows, by, **more)
        frame: pd.DataFrame = decisions.to_frame(rows.index)
        return frame.assign(odd=decisions.odd) if self.defer_odd else frame


def decide_dask(
    model: Any,
    X: Any,
    by: Any = None,
    *,
    defer_odd: bool = False,
    allow_missing: Collection[Any] = (),
) -> Any:
    """Return what `decide` says about a Dask data frame, as another one, not computed yet.

    Parameters
    ----------
    model : fitted act-or-defer estimator
    X : dask DataFrame
    by : dask Series or DataFrame, optional
        With the same partitions.
    defer_odd, allow_missing
        As for `decide`, of each partition by itself. With ``defer_odd`` a column says which rows are odd.

    Returns
    -------
    dask DataFrame
        With the index of X, and label (or value), confidence and accepted of each row.
    """
    if not hasattr(X, "map_partitions"):
        raise InvalidDataError(f"`X` must be a Dask data frame; got a dask {type(X).__name__}.")
    if by is not None and not hasattr(by, "map_partitions"):
        raise InvalidDataError(
            f"`by` of a Dask data frame must be a column of it or several; got a {type(by).__name__}."
        )
    empty = no_decisions(model, defer_odd)
    deciding = _Deciding(model, defer_odd, tuple(allow_missing), empty)
    return map_frame(X, _decide_part, deciding, empty, *(() if by is None else (by,)))


def no_decisions(model: Any, odd: bool = False) -> pd.DataFrame:
    """Return the frame of decisions on no rows: its columns and their types."""
    answer = getattr(model, "classes_", np.zeros(1))[:1]
    record = model._target.decisions(answer, np.zeros(1), np.zeros(1, bool), None)
    frame: pd.DataFrame = record.to_frame().iloc[:0]
    return frame.assign(odd=np.zeros(0, bool)) if odd else frame


def _decide_part(rows: pd.DataFrame, deciding: _Deciding, by: Any = None) -> pd.DataFrame:
    return deciding(rows, by)


def certify_dask(
    model: Any, X: Any, y: Any, budget: tuple[float, float], *, groups: Any, by: Any, seed: int
) -> Certificate | RuleCertificate:
    """Return what `certify` says about rows that are spread over the partitions of a Dask data frame.

    Parameters
    ----------
    model : fitted act-or-defer estimator
    X : dask DataFrame
    y, groups, by : dask Series
        With the same partitions; ``by`` may also be a data frame.
    budget : pair of float
        alpha and rho.
    seed : int

    Returns
    -------
    Certificate or RuleCertificate
    """
    owner = f"{type(model).__name__}.certify"
    given = {"X": X, "y": y, "groups": groups, "by": by}
    values = {name: value for name, value in given.items() if value is not None}
    watch, labels = RowWatch(model.seen_), LabelsSeen()
    looked = False

    def run(look: Look[Any]) -> list[Part[Any]]:
        nonlocal looked
        found = map_parts(partial(_count_part, model, look, owner), values)
        if not looked:
            for _, part_watch, part_labels in found:
                watch.merge(part_watch)
                labels.merge(part_labels)
            watch.refuse_seen()
            labels.check(getattr(model, "classes_", ()), owner)
            looked = True
        return [part for part, *_ in found]

    alpha, rho = budget
    promised = model.promise is not None
    certificate = certify_partitions(
        run,
        model.promise if promised else alpha,
        rho,
        fixed=model.rule_ if promised else model.threshold_,
        random_state=seed,
    )
    copies = watch.warn_of_copies() if groups is None else 0
    made = certificate.provenance or Provenance()
    uses = count_uses(watch.hashes, made.model, asked_of(certificate))
    warn_of_reuse(uses)
    known = replace(
        made, rows=watch.fingerprint(), copies=copies, uses=uses, compared=watch.compared
    )
    whole: Certificate | RuleCertificate = replace(
        model._target.describe(certificate), provenance=known
    )
    return whole


def _count_part(
    model: Any,
    look: Look[Any],
    owner: str,
    *,
    number: int,
    X: Any,
    y: Any,
    groups: Any = None,
    by: Any = None,
) -> tuple[Part[Any], RowWatch, LabelsSeen]:
    """Score and count the rows of one partition."""
    watch, labels = RowWatch(model.seen_), LabelsSeen()
    if len(X) == 0:
        return look([], number), watch.without_seen(), labels
    with without_warnings():
        outputs = model._checked_outputs(X)
        truth = model._target.encode_fresh(model, check_labels(X, y, "y"), owner, labels)
        watch.add(model_hashes(model, model._check_rows(X, reset=False)), truth)
        rows = outputs.scored(truth)
        if model.promise is not None and model.promise.columns:
            rows = replace(rows, by=model._groups(X, by, owner))
        if groups is not None:
            rows = replace(rows, group=group_names(pd.Series(groups), "groups"))
    return look([rows], number), watch.without_seen(), labels
