"""Rows worth a look: accepted mistakes, the least sure, and groups of rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reliablenet._checks import as_array, parameter_error
from reliablenet.certificate import Certificate
from reliablenet.certificate.scored import ScoredRows
from reliablenet.errors import InvalidDataError, InvalidParameterError
from reliablenet.methods import SelectiveEstimator
from reliablenet.report import text
from reliablenet.report.charts import Numbers, marked_numbers
from reliablenet.report.explained import lowered_columns

SHOWN = 20
MOST_GROUPS = 50
MOST_COLUMNS = 40


@dataclass(frozen=True, eq=False)
class FoldRows:
    """The certification rows of a model in the user's own table.

    Attributes
    ----------
    table : DataFrame or None
    place : integer array of shape (n,)
        Where each certification row stands in the table.
    """

    table: pd.DataFrame | None
    place: NDArray[np.int64]


def fold_rows(model: SelectiveEstimator, table: Any, labels: Any) -> FoldRows:
    """Find the certification rows in the table given to `fit`, or in the fold itself.

    Parameters
    ----------
    model : SelectiveEstimator
    table : data frame, array or None
        What `fit` was given as X; or the certification fold, if that was given by itself.
    labels : array-like or None
        Its labels; with them it is checked that it is the same table.

    Returns
    -------
    FoldRows
    """
    evidence = model.evidence_
    given = bool((evidence.row < 0).any())
    place = np.arange(len(evidence)) if given else evidence.row
    if table is None:
        return FoldRows(None, place)
    frame = table if isinstance(table, pd.DataFrame) else pd.DataFrame(as_array(table))
    fits = len(frame) == len(evidence) if given else len(frame) > place.max()
    if not fits:
        wanted = (
            f"be the certification fold of {len(evidence)} rows, which fit was given by itself"
            if given
            else f"be the table given to fit, with at least {place.max() + 1} rows"
        )
        raise parameter_error("table", "model_page", wanted, f"{len(frame)} rows")
    if labels is not None:
        values = as_array(labels)
        if len(values) != len(frame):
            raise InvalidDataError(
                "`labels` of model_page must hold one label for each row of `table`; got "
                f"{len(values)} labels and {len(frame)} rows."
            )
        found = model._target.encode(model, values[place], "model_page")
        different = int((found != evidence.truth).sum())
        if different:
            raise InvalidDataError(
                "`table` and `labels` of model_page must be what fit was given; "
                f"{different} of {len(evidence)} certification rows have another label there."
            )
    return FoldRows(frame, place)


def accepted_mistakes(model: SelectiveEstimator, rows: FoldRows) -> tuple[Numbers, int]:
    """Return the surest rows that are acted on and wrong, and how many there are in all."""
    evidence = model.evidence_
    wrong = np.flatnonzero(evidence.wrong & model.accept_rows(evidence.scored()))
    order = wrong[np.argsort(-evidence.score[wrong], kind="stable")]
    return _listed(model, rows, order[:SHOWN]), len(wrong)


def least_sure(model: SelectiveEstimator, rows: FoldRows, fold: Any = None) -> Numbers:
    """Return the rows with the lowest scores; with the features of the ``fold``, what lowers them."""
    chosen = np.argsort(model.evidence_.score, kind="stable")[:SHOWN]
    listed = _listed(model, rows, chosen)
    if fold is None:
        return listed
    lacking, lowered = lowered_columns(model, fold, chosen)
    at = listed.columns.index("Confidence") + 1
    columns = [*listed.columns[:at], "Lacks", "Lowered by", *listed.columns[at:]]
    explained = zip(listed.rows, lacking, lowered, strict=True)
    cells = [[*row[:at], lacks, by, *row[at:]] for row, lacks, by in explained]
    return marked_numbers(columns, cells)


def _listed(model: SelectiveEstimator, rows: FoldRows, chosen: NDArray[np.intp]) -> Numbers:
    evidence = model.evidence_
    answers, truth = (
        [text.cell(value) for value in model._target.decode(model, places[chosen])]
        for places in (evidence.predicted, evidence.truth)
    )
    learned = not np.array_equal(evidence.score, evidence.top_probability)
    columns = ["Row", "Predicted", "Truth", "Confidence", *(["Score"] if learned else [])]
    names = [] if rows.table is None else list(rows.table.columns[:MOST_COLUMNS])
    cells = []
    for i, answer, true in zip(chosen, answers, truth, strict=True):
        cell = [str(rows.place[i]), answer, true, f"{evidence.top_probability[i]:.4f}"]
        if learned:
            cell.append(f"{evidence.score[i]:.4f}")
        if rows.table is not None:
            cell += [text.cell(value) for value in rows.table.iloc[rows.place[i], : len(names)]]
        cells.append(cell)
    return marked_numbers([*columns, *(str(name) for name in names)], cells)


def group_table(model: SelectiveEstimator, rows: FoldRows, groups: Any) -> Numbers:
    """Return coverage, JCW, accuracy and a bound of each group, each by itself.

    Parameters
    ----------
    model : SelectiveEstimator
    rows : FoldRows
    groups : str, array-like or mapping
        A column of the table, a group for each of its rows, or fresh rows (X, y) by the name of
        their group.

    Returns
    -------
    Numbers
        Whether the budget is shown to hold is told in the last column.
    """
    if isinstance(groups, Mapping):
        found = {
            str(name): _judged(model, model.score_rows(*_parts(pair)))
            for name, pair in groups.items()
        }
    else:
        found = _count_groups(model, _group_of(rows, groups))
    if not 0 < len(found) <= MOST_GROUPS:
        raise parameter_error(
            "groups",
            "model_page",
            f"make 1 to {MOST_GROUPS} groups",
            f"{len(found)} groups",
            "Cut numbers into ranges first, as by pandas.cut.",
        )
    columns = ["Group", "Rows", "Acts on", "Acts and is wrong", "Upper bound"]
    columns += ["Accuracy where it acts", "Within the budget"]
    cells = [_group_cells(name, one) for name, one in found.items()]
    return marked_numbers(columns, cells)


def _group_of(rows: FoldRows, groups: Any) -> pd.Series[Any]:
    """Return the group of each certification row."""
    if rows.table is None:
        raise InvalidParameterError(
            "`groups` of model_page needs `table`, the table given to fit, unless it is a mapping "
            "of name to (X, y)."
        )
    if isinstance(groups, str):
        if groups not in rows.table.columns:
            raise parameter_error(
                "groups", "model_page", f"be one of {[*rows.table.columns]}", groups
            )
        values = rows.table[groups]
    else:
        values = pd.Series(groups if isinstance(groups, pd.Series) else list(groups))
        if len(values) != len(rows.table):
            raise InvalidDataError(
                "`groups` of model_page must name one group for each row of `table`; got "
                f"{len(values)} for {len(rows.table)} rows."
            )
    return values.iloc[rows.place].reset_index(drop=True)


def _count_groups(model: SelectiveEstimator, group: pd.Series[Any]) -> dict[str, Certificate]:
    rows = model.evidence_.scored()
    return {
        str(name): _judged(model, rows.take(members.index.to_numpy()))
        for name, members in group.groupby(group, dropna=False, observed=True)
    }


def _judged(model: SelectiveEstimator, rows: ScoredRows) -> Certificate:
    """Return what rows say about the model's rule under the budget of its certificate."""
    made = model.certificate_
    accepted = model.accept_rows(rows)
    return Certificate(
        errors=int((accepted & rows.wrong).sum()),
        accepted=int(accepted.sum()),
        n=rows.n,
        alpha=made.alpha,
        rho=made.rho,
        threshold=model.threshold_,
        unit=made.unit,
    )


def _parts(pair: Any) -> Any:
    return (pair.X, pair.y) if hasattr(pair, "X") else pair


def _group_cells(name: str, one: Certificate) -> list[str]:
    right = (one.accepted - one.errors) / one.accepted if one.accepted else float("nan")
    return [
        name,
        text.count(one.n),
        text.percent(one.coverage),
        text.percent(one.jcw, 2),
        text.percent_up(one.upper_bound, one.alpha),
        text.percent(right),
        "✕ not shown" if one.upper_bound > one.alpha else "✓ shown",
    ]
