"""`Counts`: what follows from the numbers of rows, of rows acted on and of mistakes."""

from __future__ import annotations

import math
from functools import cached_property

from reliablenet.certificate.bounds import clopper_pearson_interval
from reliablenet.errors import InvalidDataError


class Counts:
    """The shares that every certificate reports, computed from its counts alone."""

    errors: int
    accepted: int
    n: int
    rho: float
    commonest: int | None

    def check_counts(self) -> None:
        """Refuse counts that no rows can have."""
        if not self.errors <= self.accepted <= self.n:
            raise InvalidDataError(
                "A certificate needs errors <= accepted <= n; "
                f"got {self.errors}, {self.accepted}, {self.n}."
            )

    @property
    def coverage(self) -> float:
        """Share of rows accepted."""
        return self.accepted / self.n

    @property
    def jcw(self) -> float:
        """Observed share of rows accepted and wrong; not a bound."""
        return self.errors / self.n

    @property
    def throughput(self) -> float:
        """Observed share of rows accepted and right."""
        return (self.accepted - self.errors) / self.n

    @property
    def error_accepted(self) -> float:
        """Observed share of wrong rows among those accepted; NaN if none is."""
        return self.errors / self.accepted if self.accepted else math.nan

    @cached_property
    def error_accepted_interval(self) -> tuple[float, float]:
        """Two-sided Clopper-Pearson interval of the error rate among rows accepted, level 1 - rho.

        Exact for a fixed rule. For a threshold chosen on the fold it describes these rows.
        """
        low, high = clopper_pearson_interval(self.errors, self.accepted, 1.0 - self.rho)
        return low, high

    @property
    def guessing_error(self) -> float:
        """Share of rows that always answering the commonest label gets wrong; NaN if not known."""
        return math.nan if self.commonest is None else (self.n - self.commonest) / self.n

    @property
    def no_better_than_guessing(self) -> bool:
        """Whether no row acted on was right, or always answering the commonest label would do as well."""
        if self.errors == self.accepted:
            return True
        guessed = self.n if self.commonest is None else self.n - self.commonest
        return self.errors * self.n >= self.accepted * guessed
