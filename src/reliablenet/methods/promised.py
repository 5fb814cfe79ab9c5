"""A promise on its way through an estimator: whose rows are whose, and which rule keeps it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _num_samples

from reliablenet._checks import parameter_error
from reliablenet.certificate import Promise, RuleCertificate
from reliablenet.certificate.record import Certificate
from reliablenet.certificate.rule import ALL, Rule, Thresholds, columns_of
from reliablenet.certificate.rule_plan import plan_rule
from reliablenet.errors import InvalidParameterError
from reliablenet.methods.inputs import FitFolds
from reliablenet.tables.frames import pandas_of

Columns = dict[str, NDArray[Any]]

# Promises whose rules are learned: in which order thresholds are tested, or a scale for each class.
LEARNED = ("among_accepted", "cost", "by_class")


def check_setting(promise: Any, threshold: Any, owner: str) -> None:
    """Raise on a promise that an estimator cannot take."""
    if promise is None:
        return
    if not isinstance(promise, Promise):
        hint = "A number is `alpha`." if isinstance(promise, float) else ""
        raise parameter_error("promise", owner, "be a Promise or None", promise, hint)
    if threshold != "certified":
        raise parameter_error(
            "threshold", owner, 'be "certified" where a promise is given', threshold
        )


def check_classes(promise: Promise | None, classes: Any) -> None:
    """Raise, before anything is trained, on a promise about classes that are not there."""
    if promise is not None:
        plan_rule(promise, 0.0, 0, None, classes).counters()


def learns_rule(promise: Promise | None, n_classes: int | None = None) -> bool:
    """Tell whether the rule of a promise is learned on a selection fold.

    With two classes, thresholds by prediction keep a promise by true class as well as it can be.
    """
    if promise is None or promise.needs_group:
        return False
    kinds = {part.kind for part in promise.simple()}
    if n_classes == 2:
        kinds -= {"by_class"}
    return any(kind in LEARNED for kind in kinds)


def group_columns(
    promise: Promise | None,
    X: Any,
    by: Any,
    owner: str,
    *,
    missing: bool,
    needed: bool = True,
    own: bool = True,
) -> Columns:
    """Return the columns of a promise's groups, from ``by`` or from the table itself.

    Parameters
    ----------
    promise : Promise or None
    X : rows
    by : array-like, mapping, data frame or None
        None for the columns of X.
    owner : str
    missing : bool
        Whether values may be missing.
    needed : bool
        Whether a rule cannot do without them; else what is not there is left out.
    own : bool
        Whether the owner has a parameter ``by``.

    Returns
    -------
    dict of arrays
    """
    if promise is None or not promise.columns:
        if by is not None:
            raise InvalidParameterError(
                f"`by` of {owner} names groups, but the promise is about none. Use "
                "promise=Promise.by_group(...)."
            )
        return {}
    names, source = promise.columns, pandas_of(by)
    if by is None:
        X = pandas_of(X)
        has = hasattr(X, "columns") and all(name in X.columns for name in names)
        if not has and not needed:
            return {}
        if not has:
            raise InvalidParameterError(
                f"{owner} needs the group of each row ({', '.join(names)}): a data frame with that "
                f"column{', or `by`' if own else ''}."
            )
        source = X
    return columns_of(source, names, _num_samples(X), owner, missing=missing)


def fold_columns(
    promise: Promise | None,
    table: Columns,
    numbers: NDArray[np.intp],
    X: Any,
    owner: str,
    *,
    needed: bool = True,
) -> Columns | None:
    """Return the groups of a fold's rows: cut from the table, or of a fold given by itself."""
    if promise is None or not promise.columns:
        return None
    if len(numbers) and numbers.min() >= 0:
        return {name: values[numbers] for name, values in table.items()}
    return group_columns(promise, X, None, owner, missing=False, needed=needed) or None


def columns_by_fold(
    promise: Promise | None, table: Columns, cut: FitFolds
) -> tuple[Columns | None, Columns | None, Columns | None]:
    """Return the groups of the certification, the selection and the training rows.

    Only the first are needed: a path may be learned, and a network trained, without groups.
    """
    folds = cut.folds
    held = fold_columns(
        promise, table, cut.numbers, folds.certification.X, "the certification fold"
    )
    chosen = fold_columns(
        promise, table, cut.selected, folds.selection.X, "selection", needed=False
    )
    trained = fold_columns(promise, table, cut.trained, folds.train.X, "X", needed=False)
    return held, chosen, trained


def rule_of(certificate: Certificate | RuleCertificate, threshold: float) -> Rule:
    """Return the rule that an estimator acts by."""
    if isinstance(certificate, RuleCertificate):
        return certificate.rule
    return Rule((Thresholds((ALL,), {ALL: threshold}),))
