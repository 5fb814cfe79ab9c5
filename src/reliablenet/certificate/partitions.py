"""Certificates of rows in partitions: of Dask, of Spark, or of anything that calls a function on each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from reliablenet._checks import as_array, check_fraction, check_seed, parameter_error
from reliablenet._dask import is_dask, map_parts
from reliablenet.certificate.groups import check_groups
from reliablenet.certificate.judgement import Count, check_threshold_value
from reliablenet.certificate.labels import LabelsSeen
from reliablenet.certificate.merging import Look, Part, Run, count_all
from reliablenet.certificate.promise import Promise
from reliablenet.certificate.record import Certificate, Provenance
from reliablenet.certificate.rule import Rule, columns_of
from reliablenet.certificate.rule_certificate import RuleCertificate
from reliablenet.certificate.rule_plan import plan_rule
from reliablenet.certificate.rule_search import Search
from reliablenet.certificate.scored import ScoredRows, score_rows
from reliablenet.certificate.streaming import ThresholdCounts

COLUMN = "by "  # before the name of a column of groups, among the values of a partition


def certify_partitions(
    run: Run[Any],
    promise: Promise | float,
    rho: float = 0.05,
    *,
    fixed: Rule | float | None = None,
    selection: ScoredRows | None = None,
    classes: Any = None,
    random_state: int = 0,
    provenance: Provenance | None = None,
) -> Certificate | RuleCertificate:
    """Certify rows that are spread over partitions, by counts that merge.

    The certificate is that of the same rows on one machine, to the last count: `certified_rule` for a
    promise, `certified_threshold` for a number, `certify` for a threshold that is fixed.

    Parameters
    ----------
    run : callable
        Is given a function, calls it as ``look(rows, number)`` once for each partition, wherever that lies,
        and returns all that it returned, in any order. ``rows`` is an iterable of `ScoredRows`, all rows of
        the partition; ``number`` is its place among the partitions, from 0. It is called up to four times
        and must find the same rows each time; what it sends and gets back are small objects that can be
        pickled.
    promise : Promise or float
        What must hold; a number is the share of all rows that may be acted on wrongly.
    rho : float in (0, 1)
        Allowed probability, over the draw of these rows, that the promise fails.
    fixed : Rule or float, optional
        A rule, or with a number as promise a threshold, that was fixed before these rows were seen; by
        default the one that acts on most rows.
    selection : ScoredRows, optional
        Other rows, on which the order of thresholds is learned; as for `certified_rule`.
    classes : sequence, optional
        Labels of the classes, where rows hold their places.
    random_state : int
        For the draw of one row of each group, where rows say whose they are.
    provenance : Provenance, optional

    Returns
    -------
    Certificate or RuleCertificate
        The first where the promise is a number.

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet.certificate import Promise, certify_partitions
    >>> from reliablenet.certificate.scored import ScoredRows
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(0.5, 1.0, 2000)
    >>> rows = ScoredRows(p, rng.random(2000) > p, lowest=0.0)
    >>> parts = [rows.take(slice(i, i + 500)) for i in range(0, 2000, 500)]
    >>> def run(look):
    ...     return [look([part], number) for number, part in enumerate(parts)]
    >>> c = certify_partitions(run, 0.05)
    >>> c.certified, c.errors, round(c.threshold, 3)
    (True, 83, 0.795)
    """
    owner = "certify_partitions"
    rho = check_fraction("rho", rho, owner)
    seed = check_seed("random_state", random_state, owner)
    if not isinstance(promise, Promise):
        alpha = check_fraction("promise", promise, owner)
        if fixed is not None:
            fixed = check_threshold_value(fixed, owner)
        found: ThresholdCounts
        found = count_all(run, lambda _: ThresholdCounts(alpha, rho, fixed), owner, seed)
        return found.certificate(provenance)
    if fixed is not None and not isinstance(fixed, Rule):
        raise parameter_error("fixed", owner, "be a Rule where a promise is given", fixed)
    names = classes if fixed is None else fixed.classes
    n, kinds = 0, {part.kind for part in promise.simple()}
    if selection is not None and "among_accepted" in kinds:  # the order of tests depends on it
        n = count_all(run, lambda _: _Sizes(), owner, seed).count.n

    def start(drawn: int) -> Search:
        plan = plan_rule(promise, 0.0, drawn or n, selection, names)
        return Search(plan, rho, rule=fixed)

    search: Search = count_all(run, start, owner, seed)
    search.count.warn_of_labels()
    return search.certificate(provenance)


def certify_dask(
    given: Mapping[str, Any],
    promise: Promise | float,
    rho: float,
    *,
    owner: str,
    classes: Any,
    random_state: int,
    fixed: float | None = None,
    selection: ScoredRows | None = None,
) -> Any:
    """Certify predictions that are Dask collections with the same partitions.

    Parameters
    ----------
    given : mapping from str
        ``proba``, ``y``, ``score``, ``predicted``, ``correct``, ``groups`` and ``by``, as `certified_rule`
        takes them; None where there is none.
    promise, rho, fixed, selection, classes, random_state
        As for `certify_partitions`.
    owner : str

    Returns
    -------
    Certificate or RuleCertificate
    """
    values = {name: value for name, value in given.items() if value is not None and name != "by"}
    columns = promise.columns if isinstance(promise, Promise) else ()
    by = given.get("by")
    if columns and by is not None:
        tabular = isinstance(by, Mapping) or by.ndim == 2
        values |= {COLUMN + name: by[name] if tabular else by for name in columns}
    names, proba = classes, given.get("proba")
    if names is None and proba is not None:
        names = np.arange(proba.shape[1])
    labels = LabelsSeen()

    def run(look: Look[Any]) -> list[Part[Any]]:
        count = partial(_count_part, look, classes=classes, columns=columns, owner=owner)
        found = map_parts(count, values)
        if labels.n == 0:
            for _, seen in found:
                labels.merge(seen)
            labels.check(names, owner)
        return [part for part, _ in found]

    return certify_partitions(
        run,
        promise,
        rho,
        fixed=fixed,
        selection=selection,
        classes=names,
        random_state=random_state,
    )


def any_dask(given: Mapping[str, Any]) -> bool:
    """Tell whether any of the predictions is a Dask collection."""
    return any(map(is_dask, given.values()))


def _count_part(
    look: Look[Any],
    *,
    number: int,
    classes: Any,
    columns: tuple[str, ...],
    owner: str,
    **values: Any,
) -> tuple[Part[Any], LabelsSeen]:
    """Score and count the predictions of one partition; empty ones have nothing to be scored."""
    seen = LabelsSeen()
    groups = values.pop("groups", None)
    by = {name: values.pop(COLUMN + name) for name in columns if COLUMN + name in values}
    if not any(map(len, values.values())):
        return look([], number), seen
    rows = score_rows(values.pop("proba", None), classes=classes, owner=owner, seen=seen, **values)
    if columns:
        rows = replace(rows, by=columns_of(by or None, columns, rows.n, owner, missing=False))
    if groups is not None:
        check_groups(groups, rows.n)
        rows = replace(rows, group=as_array(groups))
    return look([rows], number), seen


class _Sizes:
    """Counts rows alone."""

    def __init__(self) -> None:
        self.count = Count()

    def blank(self) -> _Sizes:
        return _Sizes()

    def add(self, rows: ScoredRows) -> None:
        self.count.n += rows.n

    def merge(self, later: _Sizes) -> None:
        self.count.merge(later.count)

    def look_again(self) -> bool:
        return False
