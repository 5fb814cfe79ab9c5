"""The target of a table: taken out, checked to be a class, written alike, looked for among the features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reliablenet._warn import warn_user
from reliablenet.errors import InvalidDataError, LeakWarning
from reliablenet.tables.columns import check_columns, check_known, row_number
from reliablenet.tables.leaks import FEW_ROWS, column_leak, tells_number

MOST_FRACTIONS = 20  # a target with more different fractions is a quantity
MOST_CLASSES = 200


def take_target(
    table: pd.DataFrame,
    target: str,
    drop: Sequence[str] = (),
    *,
    name: str = "The table",
    numbers: bool = False,
) -> tuple[pd.DataFrame, NDArray[Any]]:
    """Return the features and the labels of a table.

    Parameters
    ----------
    table : DataFrame
    target : str
        The column to predict.
    drop : sequence of str
        Columns that are no features.
    name : str
        What to call the table in errors.
    numbers : bool
        Whether the target is a number and not a class.

    Returns
    -------
    features : DataFrame
    labels : array of shape (n,)

    Warns
    -----
    LeakWarning
        If a feature alone tells the target, or nearly so: it may hold the answer.

    Examples
    --------
    >>> import pandas as pd
    >>> from reliablenet.tables.target import take_target
    >>> table = pd.DataFrame({"age": [30, 41], "name": ["x", "y"], "late": ["no", "yes"]})
    >>> features, labels = take_target(table, "late", drop=["name"])
    >>> features.columns.tolist(), labels.tolist()
    (['age'], ['no', 'yes'])
    """
    check_columns([target, *drop], table.columns.tolist(), name)
    labels = (take_numbers if numbers else take_labels)(table[target], target)
    features = table.drop(columns=[target, *drop])
    if features.shape[1] == 0:
        raise InvalidDataError(f"{name} has no column to predict {target!r} from.")
    codes = pd.factorize(labels)[0]
    for column in features.columns:
        found = _leak(features[column], codes, target, labels if numbers else None)
        if found:
            remedy = "If it is not known when you decide, leave it out."
            warn_user(LeakWarning(f"Column {column!r} {found}. {remedy}", column))
    return features, labels


def take_labels(values: pd.Series[Any], target: str) -> NDArray[Any]:
    """Return a column as labels, or say why it cannot be a target."""
    check_known(
        values,
        f"The target {target!r}",
        "Empty, NA, None, ? and the like count as missing. Drop those rows, or write another word "
        "for that class.",
    )
    labels = values.to_numpy(dtype=bool) if pd.api.types.is_bool_dtype(values) else np.array(values)
    if labels.dtype.kind == "f" and np.all(labels == np.floor(labels)):
        labels = labels.astype(np.int64)
    try:
        classes = pd.unique(labels)
    except TypeError:
        raise InvalidDataError(f"The target {target!r} holds lists and not labels.") from None
    if len(classes) < 2:
        raise InvalidDataError(
            f"The target {target!r} holds a single value, {classes[0]!s}, in all {len(labels)} rows: "
            "there is nothing to tell apart."
        )
    if labels.dtype.kind == "f" and len(classes) > MOST_FRACTIONS:
        raise InvalidDataError(
            f"The target {target!r} is a quantity ({len(classes)} different numbers such as "
            f"{labels[0]:g}) and not a class. Predict it as a number, with a tolerance "
            "(ReliableRegressor), or cut it into classes first, such as above or below a "
            "limit."
        )
    if len(classes) > MOST_CLASSES or (len(classes) > 2 and len(classes) > len(labels) / 2):
        raise InvalidDataError(
            f"The target {target!r} holds {len(classes)} different values in {len(labels)} rows, too "
            "many to learn a class for each. Group them, or cut a quantity into classes first."
        )
    if labels.dtype.kind == "O":
        labels = labels.astype(str)
    return labels


def take_numbers(values: pd.Series[Any], target: str) -> NDArray[np.float64]:
    """Return a column as numbers, or say which row holds none.

    Examples
    --------
    >>> import pandas as pd
    >>> from reliablenet.tables.target import take_numbers
    >>> take_numbers(pd.Series(["1.5", "20"]), "price").tolist()
    [1.5, 20.0]
    """
    check_known(values, f"The target {target!r}", "Drop those rows.")
    numbers = pd.to_numeric(values, errors="coerce").to_numpy(np.float64)
    bad = ~np.isfinite(numbers)
    if bad.any():
        row = int(bad.argmax())
        raise InvalidDataError(
            f"The target {target!r} must hold finite numbers; row {row} has {values.iloc[row]!r} "
            f"({int(bad.sum())} such rows in all). Drop those rows, or leave out the tolerance if these "
            "are classes."
        )
    return numbers


def true_labels(values: pd.Series[Any], column: str) -> NDArray[Any]:
    """Return the truth of rows to certify on, as texts."""
    check_known(
        values,
        f"The label {column!r}",
        "A certificate needs the truth of every row. Rows may be left out only if chance alone "
        "decided which of them lack it.",
    )
    return label_texts(values)


def verdicts(values: pd.Series[Any], column: str) -> NDArray[np.bool_]:
    """Return which answers a column calls right: true and false, or 1 and 0.

    Examples
    --------
    >>> import pandas as pd
    >>> from reliablenet.tables.target import verdicts
    >>> verdicts(pd.Series(["1.0", "0", "TRUE", "false"]), "correct").tolist()
    [True, False, True, False]
    """
    check_known(
        values,
        f"The verdict {column!r}",
        "A certificate needs to know of every answer whether it is right.",
    )
    texts = label_texts(values)
    right = np.isin(texts, ["True", "1"])
    plain = right | np.isin(texts, ["False", "0"])
    if not plain.all():
        place = int(plain.argmin())
        raise InvalidDataError(
            f"The verdict {column!r} must be true or false (or 1 and 0) in every row; got "
            f"{texts[place]!r} in row {row_number(values, place)}. Decide for each row whether its "
            "answer counts as right."
        )
    return right


def group_names(values: pd.Series[Any], column: str) -> NDArray[Any]:
    """Return the group of each row, as texts."""
    check_known(
        values, f"The group {column!r}", "Give each such row a group of its own if it has none."
    )
    return label_texts(values)


def promised_groups(values: pd.Series[Any], column: str) -> NDArray[Any]:
    """Return the group of each row for the promise, as texts."""
    remedy = (
        'Write there what is to be a group of its own, such as "unknown", or leave these rows out.'
    )
    check_known(values, f"The group {column!r}", remedy)
    return label_texts(values)


def label_texts(values: Any) -> NDArray[Any]:
    """Return labels as texts that are equal where a person would call them equal.

    A batch of a file may hold 1, 1.0, "1" or True where another holds "1.0" or "true".

    Examples
    --------
    >>> from reliablenet.tables.target import label_texts
    >>> label_texts([1.0, 0.5]).tolist(), label_texts(["01", "true", "no"]).tolist()
    (['1', '0.5'], ['1', 'True', 'no'])
    """
    codes, distinct = pd.factorize(pd.Series(values, dtype=None if len(values) else object))
    texts = np.array([*(_label_text(value) for value in distinct), None], dtype=object)
    return texts[codes]


def _label_text(value: Any) -> str:
    text = str(value).strip()
    if text.lower() in ("true", "false"):
        return text.capitalize()
    try:
        number = float(text)
    except ValueError:
        return text
    if not np.isfinite(number):
        return text
    return str(int(number)) if number.is_integer() and abs(number) < 2**53 else text


def _leak(
    values: pd.Series[Any],
    codes: NDArray[np.intp],
    target: str,
    numbers: NDArray[np.float64] | None,
) -> str:
    """Say how a feature tells the target by itself, or nothing; a missing value is a value."""
    try:
        kinds, distinct = pd.factorize(values, use_na_sentinel=False)
    except TypeError:  # lists and the like, which the encoder refuses
        return ""
    if 2 <= len(distinct) <= len(codes) / 10:
        pairs = np.unique(kinds.astype(np.int64) * (int(codes.max()) + 1) + codes)
        if len(pairs) == len(distinct):
            return f"gives the target away: each of its values goes with one value of {target!r}"
    if numbers is not None:
        same = tells_number(values, numbers)
        return f"gives the target away: it is {target!r} in another unit, or nearly so" * same
    if len(codes) >= FEW_ROWS and len(distinct) > 1:
        leak = column_leak(values, codes)
        if leak.nearly_decides:
            return (
                f"nearly gives the target away: alone, it tells {100 * leak.right:.1f} % of the labels "
                f"right, where the commonest gets {100 * leak.guessed:.1f} %"
            )
    return ""
