"""Which columns the decisions rest on, and what lowers the confidence of the least sure rows of the certification fold."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils import _safe_indexing

from reliablenet.errors import OddInputWarning
from reliablenet.methods import SelectiveEstimator
from reliablenet.metrics import Importance
from reliablenet.report import text
from reliablenet.report.charts import Numbers, marked_numbers
from reliablenet.tables.frames import pandas_of

SHOWN = 12
MOST_COLUMNS = 100
MOST_ROWS = 1000  # five shuffles of 13 columns took a team of network and trees some 3 s
CLOSE = 1e-6  # of confidences: float32 on another processor


def fold_table(model: SelectiveEstimator, table: Any) -> Any:
    """Return the features of the certification fold, None if the model answers otherwise on them.

    Parameters
    ----------
    model : SelectiveEstimator
    table : data frame, array or None
        What `fit` was given as X; or the certification fold, if that was given by itself. It may have more
        columns than the model knows. Read otherwise than for `fit`, rows get other confidences; what is
        then explained would be another model's decisions.
    """
    given = pandas_of(table)
    if not isinstance(given, pd.DataFrame | np.ndarray) or given.ndim != 2:
        return None
    names = getattr(model, "feature_names_in_", None)
    if names is not None and isinstance(given, pd.DataFrame):
        if not set(names) <= set(given.columns):
            return None
        given = given[list(names)]
    evidence = model.evidence_
    alone = bool((evidence.row < 0).any())
    known = getattr(model, "n_features_in_", given.shape[1])
    enough = len(given) == len(evidence) if alone else len(given) > evidence.row.max()
    if given.shape[1] != known or not enough:
        return None
    X = given if alone else _safe_indexing(given, evidence.row)
    same = np.allclose(model.acceptance_score(X), evidence.score, rtol=0.0, atol=CLOSE)
    return X if same else None


def fold_importance(model: SelectiveEstimator, table: Any) -> Importance | None:
    """Measure which columns the decisions on the certification fold rest on.

    Of more than 1,000 rows that many are drawn, five shuffles a column.

    Parameters
    ----------
    model : SelectiveEstimator
    table : data frame or array
        As for `fold_table`.

    Returns
    -------
    Importance or None
        None where `fold_table` is, and for tables of more than 100 columns.
    """
    X = fold_table(model, table)
    if X is None or X.shape[1] > MOST_COLUMNS or len(X) < 2:
        return None
    evidence = model.evidence_
    known = evidence.truth
    named = not hasattr(model, "classes_") or bool((known >= 0).all())
    y = model._target.decode(model, known) if named else None
    return model.permutation_importance(X, y, by=evidence.by or None, most_rows=MOST_ROWS)


def importance_bars(found: Importance) -> list[dict[str, Any]]:
    """Return the columns that the decisions rest on most, with bars in percent of the longest.

    Where no decision changes at all, as of a model that defers every row, bars are of the confidence.

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet.metrics import RowAnswers, permutation_importance
    >>> from reliablenet.report.explained import importance_bars
    >>> def decide(rows, places, shuffled):
    ...     return RowAnswers(rows[:, 0] > 0, np.ones(len(rows)), np.ones(len(rows), bool))
    >>> rows = np.random.default_rng(0).normal(size=(99, 2))
    >>> found = permutation_importance(decide, rows, repeats=1)
    >>> [(bar["name"], bar["width"], bar["of"]) for bar in importance_bars(found)]
    [('0', 100.0, 'of decisions change'), ('1', 0.0, 'of decisions change')]
    """
    changed = bool(found.mean["decisions"].any())
    name = "decisions" if changed else "confidence"
    mean, spread = found.mean[name], np.nan_to_num(found.spread[name])
    longest = float((mean + spread).max()) or 1.0
    bars = []
    for place in found.order[:SHOWN]:
        value, room = float(mean[place]), float(spread[place])
        bars.append(
            {
                "name": str(found.columns[place]),
                "said": text.percent(value) if changed else f"{value:.4f}",
                "of": "of decisions change" if changed else "mean change of confidence",
                "width": 100 * value / longest,
                "low": 100 * max(value - room, 0.0) / longest,
                "high": 100 * (value + room) / longest,
            }
        )
    return bars


def importance_table(found: Importance) -> Numbers:
    """Return every column with what changes if it is shuffled, and the spread over the shuffles."""
    frame = found.to_frame()
    shown = {
        "decisions": "Decisions that change",
        "answers": "Answers that change",
        "confidence": "Confidence moves by",
        "confidence_change": "Mean confidence",
        "coverage_change": "Acted on",
        "right_change": "Acted on rightly",
        "wrong_change": "Acted on wrongly",
    }
    names = [name for name in shown if name in found.changes]
    rows = [
        [str(row["column"]), *(_cell(name, row[name], row[f"{name}_spread"]) for name in names)]
        for row in frame.to_dict("records")
    ]
    return marked_numbers(["Column", *(shown[name] for name in names)], rows)


def _cell(name: str, mean: float, spread: float) -> str:
    sign = "+" if name.endswith("change") else ""
    scale, digits, unit = (1, 4, "") if name.startswith("confidence") else (100, 1, " %")
    value = round(scale * mean, digits) + 0.0  # no minus before a zero
    ends = "" if math.isnan(spread) else f" ± {scale * spread:.{digits}f}"
    return text.typeset(f"{value:{sign}.{digits}f}{ends}{unit}")


def lowered_columns(
    model: SelectiveEstimator, fold: Any, chosen: Any
) -> tuple[list[str], list[str]]:
    """Return of some rows of the fold what confidence they lack, and the columns that lower it."""
    by = {name: values[chosen] for name, values in model.evidence_.by.items()} or None
    rows = _safe_indexing(fold, chosen)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OddInputWarning)  # the fold is what it is
        columns = getattr(rows, "columns", range(rows.shape[1]))
        found = model.explain(rows, by, allow_missing=list(columns))
    frame = found.to_frame()
    lacking = [f"{value:.4f}" if math.isfinite(value) else text.NONE for value in frame["lacking"]]
    return lacking, [line or text.NONE for line in frame["lowered_by"]]
