"""`Monitor`: whether a rule in use still keeps its promise, from the outcomes of its decisions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from reliablenet._checks import (
    as_array,
    check_fraction,
    check_probability,
    is_real,
    parameter_error,
)
from reliablenet.certificate import Certificate, RuleCertificate
from reliablenet.certificate.cost import CostCertificate
from reliablenet.errors import InvalidDataError, InvalidParameterError
from reliablenet.monitor import monitor_json
from reliablenet.monitor.outcomes import Outcomes, check_outcomes, flags
from reliablenet.monitor.population import Population, PopulationKind
from reliablenet.tables.target import label_texts


class Monitor:
    """Watch a rule in use: raise an alarm when it acts wrongly on more rows than promised.

    While the promise is kept, the alarm is ever raised with probability at most ``level``, however
    often and whenever one looks, and however long (an e-process; Ville's inequality). An alarm says: in the
    mean over the rows since the start, or since some later row, more than alpha of them were acted on wrongly.

    Parameters
    ----------
    alpha : float in (0, 1), Certificate, RuleCertificate, or mapping from name to float
        The budget: a number, or that of a certificate. Several budgets, one for each group of rows, are
        a mapping; then `update` needs ``by``, and ``level`` is shared alike among them.
    level : float in (0, 1)
        Allowed probability of a false alarm, ever.
    audit : float in (0, 1]
        Probability with which a row is picked for audit, by a coin that knows nothing of the row; the
        smallest where it varies. With 1 the truth of every row acted on gets known.

    Attributes
    ----------
    parts : dict of Population
        What is known of each population; without a mapping there is one, "".

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet import Monitor
    >>> rng = np.random.default_rng(0)
    >>> monitor = Monitor(alpha=0.05)
    >>> accepted = rng.random(2000) < 0.8
    >>> monitor.update(accepted, wrong=rng.random(2000) < 0.04)       # JCW 0.032: all is well
    >>> monitor.alarm, round(monitor.upper_bound, 3)
    (False, 0.047)
    >>> monitor.update(accepted, wrong=rng.random(2000) < 0.2)        # the source changed: JCW 0.16
    >>> monitor.alarm, monitor.rows
    (True, 4000)
    >>> print(monitor)
    Alarm at row 2,213: the rule acts wrongly on more than 5 % of rows (a false alarm has a chance of 5 %).
    """

    def __init__(self, alpha: Any, level: float = 0.05, audit: float = 1.0) -> None:
        owner = "Monitor"
        self.level = check_fraction("level", level, owner)
        self.audit = check_probability("audit", audit, owner)
        self.parts = _populations(alpha, self.level, self.audit)

    # What comes in.

    def update(
        self,
        accepted: Any,
        wrong: Any,
        audited: Any = None,
        *,
        pending: Any = None,
        by: Any = None,
        predicted: Any = None,
        truth: Any = None,
        probability: Any = None,
    ) -> None:
        """Take in the next rows, in the order in which they were decided.

        Parameters
        ----------
        accepted : array-like of bool, shape (n,)
            Which rows were acted on. Deferred rows belong here too: they are known to be no mistakes.
        wrong : array-like of bool, shape (n,)
            Which predictions were wrong. Counts only where a row was accepted and audited and its truth
            is there; elsewhere it may be missing.
        audited : array-like of bool, shape (n,), optional
            Which rows the coin picked. Needed unless ``audit`` is 1.
        pending : array-like of bool, shape (n,), optional
            Rows whose truth is still to come; `resolve` takes it later. Until then the alarm counts them
            as not wrong, and the upper bound as wrong, so that both hold whatever made them late.
        by : array-like of shape (n,), optional
            The group of each row, where budgets are by group.
        predicted, truth : array-like of shape (n,), optional
            Where budgets are by predicted or by true class.
        probability : array-like of float, shape (n,), optional
            With which each row was audited, where that varies; at least ``audit``.
        """
        rows = check_outcomes(accepted, wrong, audited, pending, probability, self.audit)
        labels = {"by": by, "predicted": predicted, "truth": truth}
        parts = dict(self.parts)
        for name, part, chosen, counts in self._routes(rows, labels):
            waits = (rows.waits & counts)[chosen]
            parts[name] = part.update(
                rows.accepted[chosen],
                (rows.known & counts)[chosen],
                (rows.wrong & counts)[chosen],
                waits,
                rows.probability[chosen] if part.kind != "class" else np.ones(int(chosen.sum())),
            )
        self.parts = parts

    def resolve(self, wrong: Any, *, probability: Any = None, name: str = "") -> None:
        """Take in the truth of rows that were pending, in any order.

        Parameters
        ----------
        wrong : array-like of bool
            One entry for each row whose truth has come.
        probability : float, optional
            With which they were audited; by default ``audit``.
        name : str
            Of their group, where budgets are by group.
        """
        part = self.parts.get(name)
        if part is None:
            raise parameter_error("name", "resolve", f"be one of {[*self.parts]}", name)
        found, missing = flags("wrong", wrong, None, "resolve")
        if missing.any():
            raise InvalidDataError(
                f"`wrong` of resolve must tell the truth of every row; entry {int(missing.argmax())} is missing."
            )
        share = part.audit
        if probability is not None:
            share = check_probability("probability", probability, "resolve")
        waiting = part.pending.get(share, 0)
        if len(found) > waiting:
            raise InvalidDataError(
                f"resolve got the truth of {len(found)} rows, and {waiting} are pending that were audited "
                f"with probability {share:g}. Give rows to `update` with `pending` first."
            )
        if len(found):
            self.parts = self.parts | {name: part.resolve(found, share)}

    def merge(self, other: Monitor) -> Monitor:
        """Return the monitor of the rows of both, as of two servers that follow one rule.

        The evidence of the whole stream is that of all rows together, in whatever order they came.
        Lost is what depends on the order: bets that were restarted on one server go on as half of
        the sum of both, so that a late change is seen later; and an alarm that one server raised alone stays there, lest
        many servers raise many false alarms. Merge counts that are disjoint: no row twice.

        Parameters
        ----------
        other : Monitor
            With the same budgets, level and audit.
        """
        settings = [(m.level, m.audit, m._budgets()) for m in (self, other)]
        if settings[0] != settings[1]:
            raise InvalidParameterError(
                f"merge needs monitors of the same budgets, level and audit; got {settings[0]} and {settings[1]}."
            )
        both = type(self).__new__(type(self))
        both.level, both.audit = self.level, self.audit
        both.parts = {name: part.merge(other.parts[name]) for name, part in self.parts.items()}
        return both

    # What comes out.

    @property
    def alarm(self) -> bool:
        """Whether the alarm was ever raised, for any population."""
        return any(part.alarm for part in self.parts.values())

    @property
    def e_value(self) -> float:
        """Evidence that the promise is broken; the alarm was raised if it ever reached 1 / level.

        With several populations the largest of theirs, divided by their number.
        """
        return _exp(self._shared(max(part.log_e_value for part in self.parts.values())))

    @property
    def worst_e_value(self) -> float:
        """What the evidence would be at most if every pending row turned out wrong."""
        return _exp(self._shared(max(part.worst_log_e_value for part in self.parts.values())))

    @property
    def upper_bound(self) -> float:
        """Bound of the mean JCW over the rows so far; holds at all times at once, at 1 - level.

        Pending rows count as wrong. With several populations the largest of theirs.
        """
        return max(part.upper_bound for part in self.parts.values())

    @property
    def best_upper_bound(self) -> float:
        """What the bound would be if every pending row turned out right."""
        return max(part.best_upper_bound for part in self.parts.values())

    @property
    def rows(self) -> int:
        """Rows so far, deferred ones included; with groups, those of groups that have a budget."""
        return self._count("rows")

    @property
    def labels(self) -> int:
        """Rows acted on and audited whose truth is known."""
        return self._count("labels")

    @property
    def pending(self) -> int:
        """Rows acted on and audited whose truth is still to come."""
        return self._count("waiting")

    def __str__(self) -> str:
        return monitor_json.sentence(self)

    def __repr__(self) -> str:
        return f"<Monitor: {self}>"

    def to_dict(self) -> dict[str, Any]:
        """Return what is known as plain types, for a program or a page."""
        return monitor_json.summary(self)

    def to_json(self) -> str:
        """Return the whole state as strict JSON, to go on another day.

        Examples
        --------
        >>> from reliablenet import Monitor
        >>> monitor = Monitor(0.05)
        >>> monitor.update([True, True, False], [False, True, False])
        >>> Monitor.from_json(monitor.to_json()).e_value == monitor.e_value
        True
        """
        return monitor_json.to_json(self)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote; refuse a text that was altered."""
        level, audit, parts = monitor_json.from_json(text)
        monitor = cls.__new__(cls)
        monitor.level, monitor.audit, monitor.parts = level, audit, parts
        return monitor

    # How rows find their population.

    def _routes(
        self, rows: Outcomes, labels: dict[str, Any]
    ) -> Iterator[tuple[str, Population, NDArray[np.bool_], NDArray[np.bool_]]]:
        """Yield each population with its rows, and which of them may count as mistakes."""
        every = np.ones(len(rows.accepted), bool)
        texts = {name: _texts(name, values, rows) for name, values in labels.items()}
        self._refuse_strangers(rows, texts["by"])
        for name, part in self.parts.items():
            if part.kind == "all":
                yield name, part, every, every
            elif part.kind == "accepted":
                yield name, part, rows.accepted, every
            elif part.kind == "group":
                yield name, part, _needed(texts, "by", name) == part.value, every
            elif part.kind == "predicted":
                yield name, part, every, _needed(texts, "predicted", name) == part.value
            else:  # rows of one true class: of these only audited ones are a fair sample
                yield (
                    name,
                    part,
                    rows.audited & (_needed(texts, "truth", name) == part.value),
                    every,
                )

    def _refuse_strangers(self, rows: Outcomes, groups: NDArray[Any] | None) -> None:
        """Raise if a row of a group without a budget was acted on."""
        named = {part.value for part in self.parts.values() if part.kind == "group"}
        if groups is None or not named:
            return
        strange = rows.accepted & ~np.isin(groups, [*named])
        if strange.any():
            place = int(strange.argmax())
            raise InvalidDataError(
                f"Row {place} was acted on, but its group {groups[place]!r} in `by` has no budget; there are "
                f"budgets for {sorted(named)}."
            )

    def _budgets(self) -> dict[str, tuple[float, str]]:
        return {name: (part.alpha, part.kind) for name, part in self.parts.items()}

    def _count(self, name: str) -> int:
        """Return a count over all rows: groups and classes have rows of their own, other parts share them."""
        apart = all(part.kind in ("group", "class") for part in self.parts.values())
        counts = [int(getattr(part, name)) for part in self.parts.values()]
        return sum(counts) if apart else max(counts)

    def _shared(self, log_value: float) -> float:
        return log_value - math.log(len(self.parts))


def _populations(alpha: Any, level: float, audit: float) -> dict[str, Population]:
    """Return a population for each budget, before its first row."""
    found = list(_budgets(alpha))
    names = [name for name, *_ in found]
    parts = {}
    for name, value, kind, budget in found:
        title = name if names.count(name) == 1 else f"{kind} {name}"
        share = 1.0 if kind == "class" else audit
        parts[title] = Population(budget, level / len(found), share, kind, value)
    return parts


def _budgets(alpha: Any) -> Iterator[tuple[str, str, PopulationKind, float]]:
    """Yield the name of each population, the label of its rows, which rows it holds, and its budget."""
    if isinstance(alpha, Certificate):
        yield "", "", "all", alpha.alpha
    elif isinstance(alpha, RuleCertificate):
        for part in alpha.parts:
            if isinstance(part, CostCertificate):
                raise InvalidParameterError(
                    f"Monitor cannot watch the part {part.name!r} of this certificate: it watches shares of wrong "
                    "rows; promises about cost are not supported."
                )
            label = part.name.split("=", 1)[1] if part.population == "group" else part.name
            alone = part.population == "all" and len(alpha.parts) == 1
            yield "" if alone else part.name, _text(label), part.population, part.alpha
    elif isinstance(alpha, Mapping):
        if not alpha:
            raise parameter_error("alpha", "Monitor", "name at least one group", alpha)
        for name, budget in alpha.items():
            budget = check_fraction(f"alpha[{name!r}]", budget, "Monitor")
            yield str(name), _text(name), "group", budget
    elif is_real(alpha):
        yield "", "", "all", check_fraction("alpha", alpha, "Monitor")
    else:
        expected = "be a number in (0, 1), a certificate, or a mapping from groups to numbers"
        raise parameter_error("alpha", "Monitor", expected, alpha)


def _text(label: Any) -> str:
    return str(label_texts([label])[0])


def _texts(name: str, values: Any, rows: Outcomes) -> NDArray[Any] | None:
    if values is None:
        return None
    array = as_array(values, name)
    if array.shape != rows.accepted.shape:
        raise InvalidDataError(
            f"`{name}` of update must have one entry for each of {len(rows.accepted)} rows; got shape {array.shape}."
        )
    return label_texts(array)


def _needed(texts: dict[str, NDArray[Any] | None], name: str, part: str) -> NDArray[Any]:
    found = texts[name]
    if found is None:
        raise InvalidParameterError(f"update needs `{name}`: the budget of {part!r} depends on it.")
    return found


def _exp(log_value: float) -> float:
    return math.exp(log_value) if log_value < 709.0 else math.inf
