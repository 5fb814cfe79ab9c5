"""`Promise`: what must hold of a rule that acts or defers, as people hold risk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from reliablenet._checks import (
    as_array,
    check_finite,
    check_fraction,
    check_positive,
    parameter_error,
)
from reliablenet.certificate.promise_wording import promise_text
from reliablenet.errors import InvalidDataError, InvalidParameterError

PromiseKind = Literal[
    "overall", "among_accepted", "by_group", "by_predicted", "by_class", "cost", "all_of"
]
Label = str | int | float | bool


@dataclass(frozen=True)
class Promise:
    """What a rule that acts or defers must keep; made by one of the functions below.

    Attributes
    ----------
    kind : str
        The name of the function that makes it.
    alpha : float or dict
        The budget; for classes and groups a number for all of them, or one for each.
    by : tuple of str
        Columns whose values make the groups; several are crossed.
    common : bool
        Whether all groups share one threshold, so that no group is needed to decide.
    costs : tuple of tuples of float
        ``costs[truth][predicted]``, what acting costs.
    classes : tuple, optional
        Labels of the rows and columns of the costs.
    parts : tuple of Promise
        Promises to be kept all at once.

    Examples
    --------
    >>> from reliablenet import Promise
    >>> print(Promise.overall(0.05))
    at most 5 % of all rows are acted on wrongly
    >>> print(Promise.by_group(0.05, by="race"))
    in every group of race, at most 5 % of the rows are acted on wrongly
    >>> print(Promise.all_of(Promise.overall(0.02), Promise.by_class({"malignant": 0.01})))
    at most 2 % of all rows are acted on wrongly; of the rows that are truly malignant, at most 1 % are acted on wrongly
    """

    kind: PromiseKind
    alpha: float | dict[Label, float] = 0.0
    by: tuple[str, ...] = ()
    common: bool = False
    costs: tuple[tuple[float, ...], ...] = ()
    classes: tuple[Label, ...] | None = None
    parts: tuple[Promise, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in get_args(PromiseKind):
            raise parameter_error(
                "kind", "Promise", f"be one of {get_args(PromiseKind)}", self.kind
            )
        owner = f"Promise.{self.kind}"
        {
            "overall": self._check_one_budget,
            "among_accepted": self._check_one_budget,
            "by_group": self._check_groups,
            "by_predicted": self._check_budgets,
            "by_class": self._check_budgets,
            "cost": self._check_costs,
            "all_of": self._check_parts,
        }[self.kind](owner)

    @classmethod
    def overall(cls, alpha: float) -> Promise:
        """Promise P(acted and wrong) <= alpha, over all rows.

        Parameters
        ----------
        alpha : float in (0, 1)

        Returns
        -------
        Promise
        """
        return cls("overall", alpha)

    @classmethod
    def among_accepted(cls, alpha: float) -> Promise:
        """Promise P(wrong | acted) <= alpha: of the rows acted on, at most this share is wrong.

        Parameters
        ----------
        alpha : float in (0, 1)

        Returns
        -------
        Promise
        """
        return cls("among_accepted", alpha)

    @classmethod
    def by_group(
        cls,
        alpha: float | Mapping[Any, float],
        by: str | Sequence[str] = "group",
        common: bool = False,
    ) -> Promise:
        """Promise P(acted and wrong | group) <= alpha in every group of a column.

        It then holds for every mixture of these groups. A group with too few rows, or one that was
        never seen, is deferred; with ``common`` nobody can tell, and the promise speaks of those seen.

        Parameters
        ----------
        alpha : float in (0, 1), or mapping from group to float
            With a mapping, groups that it does not name are deferred; where all share a threshold, they
            are acted on without a promise.
        by : str or sequence of str
            The column; several are crossed.
        common : bool
            One threshold for all groups, so that no group is needed to decide. It is the largest
            of what each group alone would have, and every group needs enough rows.

        Returns
        -------
        Promise
        """
        columns = (by,) if isinstance(by, str) else tuple(by)
        return cls("by_group", _plain_budgets(alpha), by=columns, common=bool(common))

    @classmethod
    def by_predicted(cls, alpha: float | Mapping[Any, float]) -> Promise:
        """Promise P(acted, predicted k, wrong) <= alpha_k for each class k that is named.

        Parameters
        ----------
        alpha : mapping from class to float in (0, 1), or one float for every class
            A class that is not named has no limit of its own.

        Returns
        -------
        Promise
        """
        return cls("by_predicted", _plain_budgets(alpha))

    @classmethod
    def by_class(cls, alpha: float | Mapping[Any, float]) -> Promise:
        """Promise P(acted and wrong | truth k) <= alpha_k for each class k that is named.

        With a budget for every class it holds however often each class occurs.

        Parameters
        ----------
        alpha : mapping from class to float in (0, 1), or one float for every class
            A class that is not named has no limit of its own.

        Returns
        -------
        Promise
        """
        return cls("by_class", _plain_budgets(alpha))

    @classmethod
    def cost(cls, matrix: Any, budget: float, classes: Any = None) -> Promise:
        """Promise E[cost of acting] <= budget, where deferring costs nothing.

        Parameters
        ----------
        matrix : array-like of shape (K, K)
            ``matrix[truth, predicted]``, at least 0.
        budget : float
            Mean cost a row, in the unit of the matrix; below its largest entry.
        classes : array-like of shape (K,), optional
            Labels of rows and columns; by default those of the model, in its order.

        Returns
        -------
        Promise

        Examples
        --------
        >>> from reliablenet import Promise
        >>> print(Promise.cost([[0, 100], [500, 0]], budget=4.0))
        acting costs at most 4 a row on average
        """
        table = as_array(matrix, "matrix")
        if table.ndim != 2 or table.shape[0] != table.shape[1] or len(table) < 2:
            raise parameter_error(
                "matrix", "Promise.cost", "have shape (K, K) with K >= 2", table.shape
            )
        if table.dtype.kind not in "biuf":
            raise parameter_error("matrix", "Promise.cost", "hold numbers", matrix)
        names = (
            None
            if classes is None
            else tuple(map(plain_label, as_array(classes, "classes").tolist()))
        )
        rows = tuple(tuple(float(value) for value in row) for row in table.tolist())
        return cls("cost", budget, costs=rows, classes=names)

    @classmethod
    def all_of(cls, *promises: Promise) -> Promise:
        """Promise several things at once.

        Parameters
        ----------
        *promises : Promise

        Returns
        -------
        Promise
        """
        for promise in promises:
            if not isinstance(promise, Promise):
                raise parameter_error("promises", "Promise.all_of", "be promises", promise)
        flat = [part for promise in promises for part in promise.simple()]
        return flat[0] if len(flat) == 1 else cls("all_of", parts=tuple(flat))

    def simple(self) -> tuple[Promise, ...]:
        """Return the promises that this one is made of; itself, if it is one."""
        return self.parts or (self,)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that name the groups, in all parts."""
        return tuple(dict.fromkeys(name for part in self.simple() for name in part.by))

    @property
    def needs_group(self) -> bool:
        """Whether a row's group must be known when it is decided on."""
        return any(part.kind == "by_group" and not part.common for part in self.simple())

    @property
    def strictest(self) -> float:
        """The smallest budget, as a share; what training aims at."""
        shares: list[float] = []
        for part in self.simple():
            largest = part.largest_cost if part.kind == "cost" else 1.0
            budgets = part.alpha.values() if isinstance(part.alpha, dict) else [part.alpha]
            shares += [budget / largest for budget in budgets]
        return min(shares)

    @property
    def largest_cost(self) -> float:
        """The largest entry of the costs."""
        return max(max(row) for row in self.costs)

    def budget_of(self, label: Any) -> float | None:
        """Return the budget of a class or group, None if it has none."""
        return self.alpha.get(label) if isinstance(self.alpha, dict) else self.alpha

    def to_dict(self) -> dict[str, Any]:
        """Return plain types, from which `from_dict` makes an equal promise."""
        if self.kind == "all_of":
            return {"kind": self.kind, "parts": [part.to_dict() for part in self.parts]}
        values: dict[str, Any] = {"kind": self.kind}
        mapping = isinstance(self.alpha, dict)
        # JSON would turn the keys of a mapping into text
        values["alpha"] = [list(item) for item in self.alpha.items()] if mapping else self.alpha  # type: ignore[union-attr]
        if self.kind == "by_group":
            values |= {"by": list(self.by), "common": self.common}
        if self.kind == "cost":
            names = None if self.classes is None else list(self.classes)
            values |= {"costs": [list(row) for row in self.costs], "classes": names}
        return values

    @classmethod
    def from_dict(cls, values: Any) -> Promise:
        """Make the promise that `to_dict` described, or say what is wrong with it."""
        try:
            if values["kind"] == "all_of":
                return cls("all_of", parts=tuple(cls.from_dict(part) for part in values["parts"]))
            alpha = values["alpha"]
            if isinstance(alpha, list):
                alpha = dict(alpha)
            names = values.get("classes")
            return cls(
                values["kind"],
                alpha,
                by=tuple(values.get("by", ())),
                common=values.get("common", False),
                costs=tuple(map(tuple, values.get("costs", ()))),
                classes=None if names is None else tuple(names),
            )
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, InvalidParameterError):
                raise
            raise InvalidDataError(f"This does not describe a promise: {error!r}.") from error

    def __str__(self) -> str:
        return promise_text(self)

    def _check_one_budget(self, owner: str) -> None:
        object.__setattr__(self, "alpha", check_fraction("alpha", self.alpha, owner))

    def _check_budgets(self, owner: str) -> None:
        if not isinstance(self.alpha, dict):
            self._check_one_budget(owner)
            return
        if not self.alpha:
            raise parameter_error("alpha", owner, "name at least one budget", self.alpha)
        plain = {}
        for label, budget in self.alpha.items():
            if not isinstance(label, Label):
                raise parameter_error("alpha", owner, "have texts or numbers as its keys", label)
            plain[label] = check_fraction(f"alpha[{label!r}]", budget, owner)
        object.__setattr__(self, "alpha", plain)

    def _check_groups(self, owner: str) -> None:
        self._check_budgets(owner)
        if not self.by or not all(isinstance(name, str) and name for name in self.by):
            raise parameter_error("by", owner, "name a column, or several", self.by)
        if not isinstance(self.common, bool):
            raise parameter_error("common", owner, "be True or False", self.common)

    def _check_costs(self, owner: str) -> None:
        square = len(self.costs) >= 2 and all(len(row) == len(self.costs) for row in self.costs)
        if not square:
            raise parameter_error("matrix", owner, "have shape (K, K) with K >= 2", self.costs)
        table = np.asarray(self.costs, float)
        check_finite("matrix", table, owner)
        if table.min() < 0.0 or table.max() == 0.0:
            raise parameter_error(
                "matrix", owner, "hold costs of at least 0, one of them positive", table.tolist()
            )
        budget = check_positive("budget", self.alpha, owner)
        if budget >= table.max():
            raise parameter_error(
                "budget",
                owner,
                f"lie below the largest cost, {table.max():g}: every rule keeps a larger budget",
                self.alpha,
            )
        object.__setattr__(self, "alpha", budget)
        if self.classes is not None and (
            len(self.classes) != len(self.costs) or len(set(self.classes)) != len(self.classes)
        ):
            raise parameter_error(
                "classes", owner, f"be {len(self.costs)} distinct labels", self.classes
            )

    def _check_parts(self, owner: str) -> None:
        if len(self.parts) < 2 or any(part.kind == "all_of" for part in self.parts):
            raise parameter_error("promises", owner, "be two or more promises", self.parts)
        kinds = [part.kind for part in self.parts]
        if "among_accepted" in kinds and self.needs_group:
            raise InvalidParameterError(
                f"{owner} cannot combine `Promise.among_accepted` with separate thresholds for groups: "
                "fewer rows acted on may mean a larger share of mistakes among them. "
                "Use `Promise.by_group(..., common=True)`."
            )
        for place, part in enumerate(self.parts):
            for other in self.parts[:place]:
                twice = part == other if part.kind == "cost" else _same_rows(part, other)
                if twice:
                    raise InvalidParameterError(
                        f"{owner} gives the same rows two budgets: {other}; {part}. Keep the smaller "
                        "budget, or name the budget of each in one mapping."
                    )


def _same_rows(one: Promise, other: Promise) -> bool:
    return one.kind == other.kind and set(one.by) == set(other.by)


def plain_label(label: Any) -> Label:
    """Return a label as Python's own text, number or truth value."""
    value = label.item() if isinstance(label, np.generic) else label
    return value if isinstance(value, Label) else str(value)


def _plain_budgets(alpha: Any) -> Any:
    """Return a budget, or the budgets of labels, with the types of Python."""
    if isinstance(alpha, Mapping) or hasattr(alpha, "items"):  # a pandas Series has them
        return {plain_label(label): budget for label, budget in alpha.items()}
    return alpha
