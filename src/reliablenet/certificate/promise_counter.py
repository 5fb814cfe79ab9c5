"""What a promise counts in rows that come in batches: populations, their sizes, and their mistakes."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reliablenet.certificate.cost import ROUNDED, largest_certifiable_cost
from reliablenet.certificate.judgement import first_excess
from reliablenet.certificate.labels import find_places
from reliablenet.certificate.planning import largest_certifiable_errors
from reliablenet.certificate.promise import Promise, plain_label
from reliablenet.certificate.rule import ALL, Thresholds, crossed, factorize
from reliablenet.certificate.scored import ScoredRows
from reliablenet.errors import InvalidDataError, InvalidParameterError

Codes = NDArray[np.intp]


class PromiseCounter:
    """The populations of one simple promise, and what is counted of each.

    Parameters
    ----------
    promise : Promise
        Not several at once.
    classes : sequence, optional
        Labels of the classes, where truth and predictions are given as their places.
    """

    def __init__(self, promise: Promise, classes: Any = None) -> None:
        self.promise = promise
        self.classes = None if classes is None else [plain_label(c) for c in classes]
        self.labels: list[Any] = []  # of the populations
        self.sizes = np.zeros(0, np.int64)
        self.accepted = np.zeros(0, np.int64)
        self.errors = np.zeros(0, np.int64)
        k = len(promise.costs)
        # rows by true and predicted label, those of unknown classes last: counts have no rounding
        self._truths = np.zeros(k + 1, np.int64)
        self._acted = np.zeros((k + 1) * k, np.int64)
        self._code: dict[Any, int] = {}
        self._seen: dict[Any, None] = {}  # predictions, in the order in which they came
        self._sorted: tuple[NDArray[np.float64], NDArray[np.intp]] | None = None
        self._place, self._whose, self._spent = array("d"), array("i"), array("d")
        # One positive cost is a count of mistakes, with a bound that is exact.
        table = np.asarray(promise.costs)
        self.counts = promise.kind != "cost" or len(np.unique(table[table > 0.0])) == 1
        self._costs = table
        if promise.kind in ("overall", "among_accepted", "cost"):
            self._add([ALL])
        elif isinstance(promise.alpha, dict):
            self._add(list(promise.alpha))
        elif promise.kind in ("by_class", "by_predicted") and self.classes is not None:
            self._add(self.classes)
        if promise.kind in ("by_class", "by_predicted") and self.classes is not None:
            strangers = [label for label in self.labels if label not in self.classes]
            if strangers:
                raise InvalidParameterError(
                    f"`alpha` of Promise.{promise.kind} names {strangers}, but the classes of "
                    f"the model are {self.classes}."
                )
        if promise.kind == "cost" and self.classes is not None:
            names = self.classes if promise.classes is None else list(promise.classes)
            if len(table) != len(self.classes) or set(names) != set(self.classes):
                got = f"{len(table)} rows" if promise.classes is None else f"those of {names}"
                raise InvalidParameterError(
                    f"`matrix` of Promise.cost must have a row and a column for each class of the "
                    f"model, {self.classes}; got {got}."
                )
            order = [names.index(label) for label in self.classes]
            self._costs = table[np.ix_(order, order)]
        if promise.kind == "cost":
            # a class that the model does not know costs as much as the worst of the known
            self._costs = np.vstack([self._costs, self._costs.max(axis=0)])

    @property
    def key(self) -> tuple[str, ...]:
        """What thresholds of their own depend on."""
        return self.promise.by if self.promise.kind == "by_group" else ("predicted",)

    def table(self, values: dict[Any, float], lowest: float) -> Thresholds:
        """Return thresholds of their own, given one for each population.

        Predictions that cannot be a mistake of any population are free, unless nothing is acted on.
        """
        found = dict(values)
        if self.promise.kind != "by_group":
            free = lowest if any(v < math.inf for v in values.values()) else math.inf
            # without names the rule knows the predictions that were seen, and those with a budget
            names = self.classes or list(dict.fromkeys(values) | self._seen)
            whose = [self._limits(name) for name in names]
            found = {n: free if w is None else values[w] for n, w in zip(names, whose, strict=True)}
        order = sorted(found, key=lambda label: (str(type(label)), label))
        return Thresholds(self.key, {label: found[label] for label in order})

    def limit_codes(self, rows: ScoredRows) -> Codes:
        """Return whose threshold each row must reach, -1 where none limits it or its group has none."""
        if self.promise.kind != "by_class":
            return self.codes(rows)
        assert self.classes is not None  # noqa: S101
        whose = [self._limits(name) for name in self.classes]
        lookup = np.array([-1 if w is None else self._code[w] for w in whose], np.intp)
        return lookup[rows.predicted]

    def _limits(self, predicted: Any) -> Any:
        """Return the population in which a wrong prediction is a mistake, None if there is none."""
        return limited_by(self.promise.kind, predicted, self.labels)

    @property
    def budgets(self) -> list[float]:
        """The budget of each population as a share, NaN where it has none."""
        if self.promise.kind == "cost":
            return [float(self.promise.alpha) / self.promise.largest_cost]  # type: ignore[arg-type]
        found = (self.promise.budget_of(label) for label in self.labels)
        return [math.nan if budget is None else budget for budget in found]

    def codes(self, rows: ScoredRows) -> Codes:
        """Return the number of each row's population, -1 where it belongs to none."""
        kind = self.promise.kind
        if self.labels == [ALL] and kind != "by_group":
            return np.zeros(rows.n, np.intp)
        if kind == "by_group":
            if rows.by is None:
                raise InvalidParameterError(
                    f"The promise is about the groups of {' and '.join(self.promise.by)}: give the "
                    "group of each row with `by`."
                )
            values = crossed(rows.by, self.promise.by)
        else:
            values = rows.truth if kind == "by_class" else rows.predicted  # type: ignore[assignment]
            if values is None:
                raise InvalidParameterError(
                    f"Promise.{kind} needs true and predicted labels; `correct` alone has none."
                )
            if self.classes is not None:  # values are places among the classes
                lookup = np.array([self._code.get(label, -1) for label in self.classes], np.intp)
                return np.where(values < 0, -1, lookup[values])
        local, names = factorize(values)
        plain = [plain_label(name) for name in names]
        if kind == "by_predicted":
            self._seen.update(dict.fromkeys(plain))
        elif kind == "by_class" and isinstance(self.promise.alpha, dict):
            self._seen.update(
                dict.fromkeys(map(plain_label, factorize(np.asarray(rows.predicted))[1]))
            )
        if not isinstance(self.promise.alpha, dict) or kind == "by_group":
            self._add(plain)
        lookup = np.array([self._code.get(label, -1) for label in plain] + [-1], np.intp)
        return lookup[local]

    def check_labels(self, truth: Iterable[Any]) -> None:
        """Raise if a budget names a label that no row has: a typing error, or the wrong rows."""
        if self.promise.kind not in ("by_class", "by_predicted") or self.classes is not None:
            return
        known = dict.fromkeys(map(plain_label, truth)) | self._seen
        strangers = [label for label in self.labels if label not in known]
        if strangers:
            raise InvalidDataError(
                f"`alpha` of Promise.{self.promise.kind} names {strangers}, but no row has that label "
                f"or prediction; the rows have {sorted(known, key=str)}. Spell it as the rows do, or "
                "give the `classes` of the model."
            )

    def spending(self, rows: ScoredRows, codes: Codes) -> NDArray[np.float64]:
        """Return what acting on each row spends: 1 for a mistake, or its cost as a share of the largest."""
        if self.promise.kind != "cost":
            return (rows.wrong & (codes >= 0)).astype(np.float64)
        truth, predicted = self._cost_places(rows)
        return np.asarray(self._costs[truth, predicted] / self.promise.largest_cost)

    def _cost_places(self, rows: ScoredRows) -> tuple[Codes, Codes]:
        """Return the places of true and predicted labels among those of the costs."""
        truth, predicted = rows.truth, rows.predicted
        if truth is None or predicted is None:
            raise InvalidParameterError(
                "Promise.cost needs true and predicted labels; `correct` alone has none."
            )
        if self.classes is None:
            if self.promise.classes is None and truth.dtype.kind not in "iu":
                raise InvalidParameterError(
                    "Promise.cost must name the classes of its matrix: Promise.cost(matrix, budget, "
                    "classes=[...])."
                )
            names = np.arange(len(self.promise.costs)) if self.promise.classes is None else None
            known = np.array(self.promise.classes, object) if names is None else names
            truth = find_places(truth.astype(known.dtype), known)
            predicted = find_places(predicted.astype(known.dtype), known)
            if (predicted < 0).any() or (truth < 0).any():
                raise InvalidDataError(
                    f"Promise.cost has costs for {known.tolist()} only, but the rows hold other labels."
                )
        return truth, predicted

    def look(self, rows: ScoredRows, place: NDArray[np.float64]) -> None:
        """Take in rows with their places on the path: sizes, and the places of mistakes."""
        codes = self.codes(rows)
        spent = self.spending(rows, codes)
        self.measure(rows, codes)
        hit = spent > 0.0
        self._place.frombytes(np.ascontiguousarray(place[hit]).tobytes())
        self._whose.frombytes(codes[hit].astype(np.int32).tobytes())
        if not self.counts:
            self._spent.frombytes(spent[hit].tobytes())

    def measure(self, rows: ScoredRows, codes: Codes) -> None:
        """Take in the sizes of the populations."""
        if self.promise.kind == "by_predicted":
            self.sizes += rows.n
            return
        if self.promise.kind == "cost":
            truth, _ = self._cost_places(rows)
            self._truths += np.bincount(truth % len(self._truths), minlength=len(self._truths))
        self.sizes += np.bincount(codes[codes >= 0], minlength=len(self.sizes))

    def count(self, rows: ScoredRows, accepted: NDArray[np.bool_], codes: Codes) -> None:
        """Take in which of the rows the rule accepts."""
        spent = self.spending(rows, codes)
        own = accepted & (codes >= 0)
        self.accepted += np.bincount(codes[own], minlength=len(self.sizes))
        hit = own & (spent > 0.0)
        self.errors += np.bincount(codes[hit], minlength=len(self.sizes))
        if self.promise.kind == "cost":
            truth, predicted = self._cost_places(rows)
            cell = (truth % len(self._costs)) * self._costs.shape[1] + predicted
            self._acted += np.bincount(cell[accepted], minlength=len(self._acted))

    def forget_accepted(self) -> None:
        """Count anew which rows the rule accepts."""
        self.accepted[:] = self.errors[:] = self._acted[:] = 0

    def blank(self) -> PromiseCounter:
        """Return a counter of the same populations in which nothing is counted yet."""
        empty = PromiseCounter(self.promise, self.classes)
        empty._add(self.labels)
        return empty

    def merge(self, later: PromiseCounter) -> None:
        """Take in what was counted of later rows."""
        candidates = int(later.sizes.max(initial=0))
        self._add(later.labels)
        self._seen |= later._seen
        code = np.array([self._code[label] for label in later.labels], np.intp)
        if self.promise.kind == "by_predicted":
            self.sizes += candidates
        else:
            self.sizes[code] += later.sizes
        self.accepted[code] += later.accepted
        self.errors[code] += later.errors
        self._truths += later._truths
        self._acted += later._acted
        whose = np.frombuffer(later._whose, np.int32)
        self._whose.frombytes(np.append(code, -1)[whose].astype(np.int32).tobytes())
        self._place.extend(later._place)
        self._spent.extend(later._spent)

    @property
    def cost(self) -> float:
        """Sum of the costs of the rows acted on."""
        return math.fsum((self._acted * self._costs.ravel()).tolist())

    @property
    def guessing(self) -> float:
        """Sum of the costs of all rows if the cheapest label were always the answer."""
        return min(math.fsum(column) for column in (self._truths[:, None] * self._costs).T.tolist())

    def affords_all(self, code: int, level: float) -> bool:
        """Tell whether the rule that accepts every row keeps the budget of a population."""
        return self.excess(code, level) == -math.inf

    def excess(self, code: int, level: float) -> float:
        """Return the place of the highest mistake that a population cannot afford.

        ``-inf`` where it affords all of them, ``inf`` where it cannot be certified at all.
        """
        n, alpha = int(self.sizes[code]), self.budgets[code]
        if n == 0:
            return math.inf
        place, spent = self._mistakes(code)
        if self.counts:
            most = largest_certifiable_errors(n, alpha, level)
            if most < 0:
                return math.inf
            return first_excess(place, most, -math.inf)
        affordable = largest_certifiable_cost(n, alpha, level)
        if affordable < 0.0:
            return math.inf
        order = np.argsort(-place)
        total = np.cumsum(spent[order])
        over = np.flatnonzero(total > affordable * ROUNDED)
        return -math.inf if len(over) == 0 else float(place[order[over[0]]])

    def _mistakes(self, code: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the places of a population's mistakes, and what each spends where it is no count."""
        place, spent = np.frombuffer(self._place), np.frombuffer(self._spent)
        if len(self.labels) == 1:
            return place, spent
        if self._sorted is None:  # once for all populations: there may be many
            whose = np.frombuffer(self._whose, np.int32)
            order = np.argsort(whose)
            ends = np.searchsorted(whose[order], np.arange(len(self.labels) + 1))
            self._sorted = place[order], ends
        places, ends = self._sorted
        return places[ends[code] : ends[code + 1]], spent

    def _add(self, labels: list[Any]) -> None:
        for label in labels:
            if label not in self._code:
                self._code[label] = len(self.labels)
                self.labels.append(label)
        grown = len(self.labels) - len(self.sizes)
        if grown:
            more = np.zeros(grown, np.int64)
            # all rows so far were candidates for a prediction that has only now been seen
            seen = int(self.sizes.max(initial=0)) if self.promise.kind == "by_predicted" else 0
            self.sizes = np.concatenate([self.sizes, more + seen])
            self.accepted = np.concatenate([self.accepted, more])
            self.errors = np.concatenate([self.errors, more])


def limited_by(kind: str, predicted: Any, budgets: Sequence[Any]) -> Any:
    """Return the class, of those with a budget, in which a wrong prediction is a mistake; None if none.

    Where budgets are by true class, there are two classes or only one of them has a budget.
    """
    if kind == "by_predicted":
        return predicted if predicted in budgets else None
    return next((label for label in budgets if label != predicted), None)


@dataclass(frozen=True)
class Level:
    """The level at which populations with thresholds of their own are tested.

    Attributes
    ----------
    tested : list of int
        Numbers of the populations with enough rows.
    each : float
        The level of each of them.
    refused : float
        The level at which the others have too few rows.
    """

    tested: list[int]
    each: float
    refused: float


def share_level(counter: PromiseCounter, rho: float) -> Level:
    """Share the failure probability of a promise among its populations.

    Those with too few rows to be certified at any number of mistakes get no share: that depends
    on sizes alone. The others share alike; whoever may accept every row passes its share on (Holm).
    """
    budgets = counter.budgets
    # the chance of no mistake at all where JCW is alpha; the level must not be below it: 1 without rows,
    # NaN without a budget
    chance = np.array([(1.0 - budgets[code]) ** int(n) for code, n in enumerate(counter.sizes)])
    order = np.argsort(chance, kind="stable")
    within = chance[order] <= rho / np.arange(1, len(budgets) + 1)
    most = int(np.flatnonzero(within)[-1]) + 1 if within.any() else 0
    tested = order[:most].tolist()
    done = 0
    while True:
        level = rho / max(most - done, 1)
        finished = sum(counter.affords_all(code, level) for code in tested)
        if finished <= done:
            return Level(tested, level, rho / (most + 1))
        done = finished
