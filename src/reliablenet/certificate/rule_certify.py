"""`certified_rule`: the rule that acts on most rows and keeps a promise, and its certificate."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from reliablenet._checks import as_array, check_fraction, check_seed, parameter_error
from reliablenet.certificate.groups import draw_places
from reliablenet.certificate.judgement import Count, warn_of_labels
from reliablenet.certificate.partitions import any_dask, certify_dask
from reliablenet.certificate.promise import Promise
from reliablenet.certificate.record import Certificate, Provenance, Unit
from reliablenet.certificate.rule import Rule, columns_of
from reliablenet.certificate.rule_certificate import FORMAT as RULE_FORMAT, RuleCertificate
from reliablenet.certificate.rule_plan import plan_rule
from reliablenet.certificate.rule_search import certified_rule_batches, certify_rule_batches
from reliablenet.certificate.scored import ScoredRows, score_rows
from reliablenet.errors import InvalidDataError

FEW_SCORES = 20


def certified_rule(
    proba: Any,
    y: Any,
    promise: Promise,
    rho: float = 0.05,
    *,
    selection: Any = None,
    by: Any = None,
    score: Any = None,
    predicted: Any = None,
    correct: Any = None,
    classes: Any = None,
    groups: Any = None,
    random_state: int = 0,
) -> RuleCertificate:
    """Find the rule that acts on most rows and keeps a promise, and certify it.

    Parameters
    ----------
    proba : array-like of shape (n, K), or None
        Class probabilities of certification rows: no part of them may have trained or tuned the model.
    y : array-like of shape (n,)
        True labels: column numbers, or members of ``classes``.
    promise : Promise
    rho : float in (0, 1)
        Allowed probability, over the draw of these rows, that the promise fails.
    selection : pair (proba, y), triple (proba, y, by) or ScoredRows, optional
        Other rows, which neither trained the model nor certify: on them each predicted class learns
        a scale of its own, and the order in which thresholds are tested.
    by : array-like of shape (n,), or mapping or data frame of columns, optional
        Group of each row, where the promise speaks of groups.
    score, predicted, correct, classes
        As for `certified_threshold`.
    groups : array-like of shape (n,), optional
        Whose row each is; one row of each, drawn at random, counts. Not to be confused with ``by``.
    random_state : int
        For that draw.

    Returns
    -------
    RuleCertificate

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet import Promise, certified_rule
    >>> rng = np.random.default_rng(0)
    >>> p, group = rng.uniform(0.5, 1.0, 4000), rng.choice(["A", "B"], 4000)
    >>> y = (rng.random(4000) > p).astype(int)
    >>> proba = np.column_stack([p, 1 - p])
    >>> c = certified_rule(proba, y, Promise.by_group(0.05), by=group)
    >>> c.certified, sorted(c.rule.thresholds)
    (True, ['A', 'B'])
    >>> bool(c.rule.accept(proba, by=group).mean() == c.coverage)
    True
    """
    owner = "certified_rule"
    check_promise(promise, owner)
    rho = check_fraction("rho", rho, owner)
    given: dict[str, Any] = {"score": score, "predicted": predicted, "correct": correct}
    parts = {"proba": proba, "y": y, "groups": groups, "by": by, **given}
    if any_dask(parts):
        chosen = None if selection is None else _selection_rows(selection, promise, classes, owner)
        more = {"classes": classes, "random_state": random_state}
        found: RuleCertificate
        found = certify_dask(parts, promise, rho, owner=owner, selection=chosen, **more)
        if chosen is not None and found.provenance is not None:
            _refuse_same_rows(chosen, found.provenance.model, owner)
        return found
    rows = score_rows(proba, y, classes=classes, owner=owner, **given)
    rows = _with_groups(rows, promise, by, owner)
    chosen = None if selection is None else _selection_rows(selection, promise, classes, owner)
    if chosen is not None:
        _refuse_same_rows(chosen, _mark(rows), owner)
    unit: Unit = "row"
    if groups is not None:
        rows = rows.take(
            draw_places(groups, rows.n, check_seed("random_state", random_state, owner))
        )
        unit = "group"
    warn_of_labels(rows)
    names = classes
    if names is None and proba is not None and not isinstance(proba, ScoredRows):
        names = np.arange(as_array(proba).shape[1])
    return judge_rule(rows, promise, rho, chosen, classes=names, unit=unit)


def judge_rule(
    rows: ScoredRows,
    promise: Promise,
    rho: float,
    selection: ScoredRows | None = None,
    *,
    classes: Any = None,
    unit: Unit = "row",
    provenance: Provenance | None = None,
) -> RuleCertificate:
    """Return what scored rows of a certification fold prove of a promise; see `certified_rule`."""
    plan = plan_rule(promise, rows.lowest, rows.n, selection, classes)
    return certified_rule_batches(lambda: [rows], plan, rho, unit=unit, provenance=provenance)


def judge_fixed_rule(
    rows: ScoredRows,
    rule: Rule,
    promise: Promise,
    rho: float,
    *,
    unit: Unit = "row",
    provenance: Provenance | None = None,
) -> RuleCertificate:
    """Return what scored rows prove of a rule that was fixed before they were seen.

    Every part is tested at rho: the certificate is granted only if all pass, and one whose budget is
    truly exceeded passes with probability rho at most.
    """
    plan = plan_rule(promise, rows.lowest, rows.n, None, rule.classes)
    return certify_rule_batches([rows], rule, plan, rho, unit=unit, provenance=provenance)


def read_certificate(text: str) -> Certificate | RuleCertificate:
    """Read the JSON of a certificate of either kind."""
    kind = RuleCertificate if f'"{RULE_FORMAT}"' in text else Certificate
    return kind.from_json(text)


def check_promise(promise: Any, owner: str) -> Promise:
    """Return a promise; raise for anything else."""
    if not isinstance(promise, Promise):
        hint = "Did you mean Promise.overall(...)?" if isinstance(promise, float) else ""
        raise parameter_error("promise", owner, "be a Promise", promise, hint)
    return promise


def _with_groups(rows: ScoredRows, promise: Promise, by: Any, owner: str) -> ScoredRows:
    if not promise.columns or (by is None and rows.by is not None):
        return rows
    return replace(rows, by=columns_of(by, promise.columns, rows.n, owner, missing=False))


def _refuse_same_rows(selection: ScoredRows, mark: str, owner: str) -> None:
    """Raise if the rows with this mark are the selection rows; few scores may agree by chance."""
    if _mark(selection) == mark and len(np.unique(selection.score)) > FEW_SCORES:
        raise InvalidDataError(
            f"`selection` of {owner} must be other rows than those that certify; got the same ones. A rule "
            "that was learned on them would seem better there than it is."
        )


def _mark(rows: ScoredRows) -> str:
    """Return the mark of what is said of rows, in whatever order."""
    seen = Count()
    seen.look(rows)
    return seen.mark.text()


def _selection_rows(selection: Any, promise: Promise, classes: Any, owner: str) -> ScoredRows:
    if isinstance(selection, ScoredRows):
        return selection
    if not isinstance(selection, tuple | list) or len(selection) not in (2, 3):
        raise parameter_error(
            "selection",
            owner,
            "be (proba, y), (proba, y, by) or ScoredRows",
            type(selection).__name__,
        )
    proba, y, *rest = selection
    rows = score_rows(proba, y, classes=classes, owner=f"the selection rows of {owner}")
    needed = any(part.kind == "by_group" and part.common for part in promise.simple())
    if rest or needed:
        return _with_groups(rows, promise, rest[0] if rest else None, owner)
    return rows
