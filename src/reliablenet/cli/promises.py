"""What must hold, as a user types it: the options of a promise, and the promise that they make."""

from __future__ import annotations

import difflib
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reliablenet.cli.running import note

if TYPE_CHECKING:
    from reliablenet.certificate.promise import Promise

KINDS = ("overall", "among-accepted", "by-group", "by-predicted", "by-class", "cost")
LABELLED = ("by-group", "by-predicted", "by-class")  # those whose budget may differ by label

Names = Annotated[
    list[str] | None,
    typer.Option(
        "--promise",
        help=f"What must hold: {', '.join(KINDS[:-1])} or {KINDS[-1]}. Give it again for several at once, "
        "each with a budget of its own if you like: overall=0.05.",
    ),
]
By = Annotated[
    str,
    typer.Option(
        help="Column whose groups must each keep the budget; several, separated by commas, are crossed."
    ),
]
Budget = Annotated[
    list[str] | None,
    typer.Option(
        help="LABEL=BUDGET, the budget of one class or group; give it again for others. Where several promises "
        "have labels say which: by-class:LABEL=BUDGET. For costs the mean cost of a row."
    ),
]
Costs = Annotated[
    Path | None,
    typer.Option(
        help="A table of what acting costs: a row for each true label, named in the first column, and a "
        "column for each predicted one."
    ),
]
Common = Annotated[
    bool,
    typer.Option(
        "--common", help="One threshold for all groups, so that no group is needed to decide."
    ),
]


def make_promise(
    alpha: float,
    names: Sequence[str] | None = None,
    by: Sequence[str] = (),
    budget: Sequence[str] | None = None,
    costs: Path | None = None,
    common: bool = False,
) -> Promise | None:
    """Return the promise that the options make, with labels as texts; None if only ``alpha`` was given.

    Parameters
    ----------
    alpha : float
        The budget wherever no other is given.
    names, by, budget, costs, common
        As the options of the same names.

    Returns
    -------
    Promise or None

    Examples
    --------
    >>> from reliablenet.cli.promises import make_promise
    >>> print(make_promise(0.05, by=["race"]))
    in every group of race, at most 5 % of the rows are acted on wrongly
    >>> print(make_promise(0.05, ["overall=0.02", "by-class"], budget=["malignant=0.01"]))
    at most 2 % of all rows are acted on wrongly; of the rows that are truly malignant, at most 1 % are acted on wrongly
    """
    from reliablenet.certificate.promise import Promise

    asked = dict(_kind_and_budget(name) for name in names or ())
    if len(asked) < len(names or ()):
        raise typer.BadParameter("--promise names the same promise twice.")
    columns = list(by)
    # a column of groups and a table of costs say by themselves what is meant
    if columns and "by-group" not in asked:
        asked["by-group"] = None
    if costs is not None and "cost" not in asked:
        asked["cost"] = None
    labels, plain = _budgets(budget or (), [kind for kind in asked if kind in LABELLED])
    _check_fit(asked, columns, labels, plain, costs, common)
    if not asked:
        return None
    parts = []
    for kind, own in asked.items():
        share = alpha if own is None else own
        known = labels.get(kind) or share
        if kind == "by-group":
            parts.append(Promise.by_group(known, by=columns, common=common))
        elif kind == "cost":
            parts.append(_cost_promise(costs, plain if own is None else own))
        else:
            make = getattr(Promise, kind.replace("-", "_"))
            parts.append(make(known))
    return Promise.all_of(*parts)


def spell_labels(
    promise: Promise, classes: Iterable[Any] = (), groups: Mapping[str, Iterable[Any]] | None = None
) -> Promise:
    """Return the promise with the labels as a table spells them, where the options have texts.

    Parameters
    ----------
    promise : Promise
        As `make_promise` returns it.
    classes : iterable
        The classes of the model.
    groups : mapping from column to iterable, optional
        Values of the columns of groups.

    Returns
    -------
    Promise

    Examples
    --------
    >>> from reliablenet.certificate.promise import Promise
    >>> from reliablenet.cli.promises import spell_labels
    >>> spell_labels(Promise.by_class({"1": 0.01}), classes=[0, 1]).alpha
    {1: 0.01}
    """
    from reliablenet.certificate.promise import plain_label
    from reliablenet.tables.target import label_texts

    def spelled(values: Iterable[Any]) -> dict[str, Any]:
        known = list(values)
        return dict(zip(label_texts(known).tolist(), map(plain_label, known), strict=True))

    def changed(part: Promise) -> Promise:
        only = part.by[0] if len(part.by) == 1 else ""
        known = spelled((groups or {}).get(only, ()) if part.kind == "by_group" else classes)
        if isinstance(part.alpha, dict):
            if known:
                what = f"group of {only!r}" if part.kind == "by_group" else "class"
                _check_labels([str(label) for label in part.alpha], list(known), what)
            part = replace(part, alpha={known.get(str(k), k): v for k, v in part.alpha.items()})
        if part.classes is not None:
            part = replace(part, classes=tuple(known.get(str(k), k) for k in part.classes))
        return part

    if promise.parts:
        return replace(promise, parts=tuple(map(changed, promise.parts)))
    return changed(promise)


def refuse_target(promise: Promise, target: str) -> None:
    """Raise if thresholds of their own depend on the truth, which nobody knows when a row is decided."""
    for part in promise.simple():
        if target in part.by and not part.common:
            raise typer.BadParameter(
                f"--by names the target {target!r}, which is not known when a row is decided. For a budget in "
                "each true class use --promise by-class."
            )


def note_small_groups(promise: Promise, groups: Mapping[str, Any], rho: float) -> None:
    """Say before the training if most groups have too few rows to be certified, however folds are cut."""
    from reliablenet.certificate.planning import rows_needed
    from reliablenet.certificate.rule import crossed

    for part in promise.simple():
        if part.kind != "by_group" or isinstance(part.alpha, dict):
            continue
        counts = Counter(crossed(groups, part.by).tolist())
        least = rows_needed(part.alpha, rho)
        small = sum(count < least for count in counts.values())
        if small > len(counts) / 2:
            then = "no row can be acted on" if part.common else "these groups will be deferred"
            note(
                f"{small:,} of {len(counts):,} groups of {' and '.join(part.by)} have fewer than {least:,} rows, "
                f"too few for a certificate: {then}. Join groups; numbers, such as an age, are cut into "
                "ranges first."
            )


def _check_labels(names: list[str], known: list[str], what: str) -> None:
    """Raise if a budget is given to a label that the table does not have."""
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"Did you mean {near[0]!r}?" if near else f"There are {sorted(known)[:20]}."
            raise typer.BadParameter(f"--budget names {name!r}, which is not a {what}. {hint}")


def _kind_and_budget(text: str) -> tuple[str, float | None]:
    kind, equals, budget = text.partition("=")
    kind = kind.strip().replace("_", "-")
    if kind not in KINDS:
        raise typer.BadParameter(f"--promise must be one of {', '.join(KINDS)}; got {kind!r}.")
    return kind, _number(budget, f"--promise {kind}") if equals else None


def _budgets(
    texts: Sequence[str], asked: Sequence[str]
) -> tuple[dict[str, dict[str, float]], float | None]:
    """Return the budgets of labels for each promise that is asked for, and the one without a label."""
    from reliablenet.tables.target import label_texts

    labels: dict[str, dict[str, float]] = {}
    plain = None
    for text in texts:
        label, equals, budget = text.rpartition("=")
        value = _number(
            budget, "--budget", "LABEL=NUMBER, such as malignant=0.01, or for costs a NUMBER alone"
        )
        if not equals:
            if plain is not None:
                raise typer.BadParameter("--budget gives two budgets without a label.")
            plain = value
            continue
        kind = next((kind for kind in LABELLED if label.startswith(f"{kind}:")), "")
        label = label.removeprefix(f"{kind}:") if kind else label
        if not kind and len(asked) == 1:
            kind = asked[0]
        if kind not in asked:
            typed = ", ".join(asked) or "none of them"
            several = f" With several, say which: --budget {asked[0]}:{text}." if asked else ""
            raise typer.BadParameter(
                "--budget LABEL=BUDGET needs one of --promise by-class, --promise by-predicted and --by "
                f"COLUMN, to say what LABEL is; got {typed}.{several}"
            )
        name = str(label_texts([label])[0])
        if name in labels.setdefault(kind, {}):
            raise typer.BadParameter(f"--budget names {name!r} twice.")
        labels[kind][name] = value
    return labels, plain


def _number(text: str, option: str, expected: str = "a number as its budget") -> float:
    try:
        value = float(text.strip().removesuffix("%")) / (
            100.0 if text.strip().endswith("%") else 1.0
        )
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise typer.BadParameter(f"{option} needs {expected}; got {text!r}.")
    return value


def _check_fit(
    asked: Mapping[str, float | None],
    columns: Sequence[str],
    labels: Mapping[str, Any],
    plain: float | None,
    costs: Path | None,
    common: bool,
) -> None:
    """Raise unless the options fit together."""
    if "by-group" in asked and not columns:
        raise typer.BadParameter("--promise by-group needs --by COLUMN.")
    if common and "by-group" not in asked:
        raise typer.BadParameter("--common needs --by COLUMN: it gives all groups one threshold.")
    if {"among-accepted", "by-group"} <= set(asked) and not common:
        raise typer.BadParameter(
            "--promise among-accepted with --by needs --common: if one group were deferred on its own, "
            "the share of mistakes among the rows acted on would change."
        )
    for kind in labels:
        if asked[kind] is not None:
            raise typer.BadParameter(
                f"--promise {kind} gets a budget for all labels and, with --budget, one for some. Give one of the two."
            )
    if "cost" in asked and (costs is None or (plain is None) == (asked["cost"] is None)):
        raise typer.BadParameter(
            "--promise cost needs --costs FILE, and --budget with the highest mean cost of a row."
        )
    if "cost" not in asked and plain is not None:
        raise typer.BadParameter(
            f"--budget without a label is for --costs; for a share of rows use --alpha {plain:g}."
        )


def _cost_promise(path: Path | None, budget: float | None) -> Promise:
    from reliablenet.certificate.promise import Promise
    from reliablenet.errors import InvalidDataError
    from reliablenet.tables.files import read_table
    from reliablenet.tables.target import label_texts

    assert path is not None and budget is not None  # noqa: S101, PT018
    table = read_table(path)
    truth = label_texts(table.iloc[:, 0]).tolist()
    predicted = label_texts(list(table.columns[1:])).tolist()
    if sorted(map(str, truth)) != sorted(predicted) or len(set(predicted)) < len(predicted):
        raise InvalidDataError(
            f"{path.name} must have a row for each true label, named in its first column, and a column for "
            f"each predicted one; its rows are {truth} and its columns {predicted}."
        )
    if len(predicted) < 2:
        raise InvalidDataError(
            f"{path.name} must have a row and a column for each class, two at least; it has {predicted}."
        )
    gaps = table.iloc[:, 1:].isna().to_numpy()
    if gaps.any():
        row, column = (int(places[0]) for places in gaps.nonzero())
        raise InvalidDataError(
            f"{path.name} has no cost where the truth is {truth[row]!r} and the prediction "
            f"{predicted[column]!r}. A right answer may cost 0."
        )
    costs = table.iloc[:, 1:].set_axis(predicted, axis=1).set_axis(truth, axis=0)
    return Promise.cost(costs.loc[predicted].to_numpy(), budget, classes=predicted)
