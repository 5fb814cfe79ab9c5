"""What would grant a refused certificate, in words; it never names what would void the promise."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from reliablenet.certificate.planning import largest_certifiable_errors, rows_needed
from reliablenet.certificate.promise_wording import names, some, too_few, unseen
from reliablenet.certificate.record import Certificate
from reliablenet.certificate.wording import (
    acts_on,
    counted,
    needed,
    percent,
    rows_missing,
    threshold_text,
    whom,
    wrongly,
)

if TYPE_CHECKING:
    from reliablenet.certificate.rule_certificate import RuleCertificate


def remedy(
    certificate: Certificate | RuleCertificate,
    share: float = 1.0,
    allowed: Certificate | None = None,
) -> str:
    """Return what would grant a refused certificate, "" if it was granted.

    A larger alpha is never advised: chosen after a look at these rows, it would void the promise. Nor
    is it to add rows to these: they were looked at, and fresh ones must do alone.

    Parameters
    ----------
    certificate : Certificate or RuleCertificate
    share : float
        Which part of a user's rows certify, to say how many are needed in all.
    allowed : Certificate, optional
        What the same rows say of the lowest threshold that they allow. To use it after a threshold
        fixed beforehand has failed is no second look: whatever is certified there lies above it.

    Returns
    -------
    str

    Examples
    --------
    >>> from reliablenet.certificate.remedies import remedy
    >>> from reliablenet.certificate import Certificate
    >>> few = Certificate(errors=0, accepted=40, n=40, alpha=0.05, rho=0.05, threshold=0.9)
    >>> remedy(few, share=0.4)
    'at least 59 fresh rows to certify on, about 148 fresh rows in all'
    >>> near = Certificate(errors=40, accepted=900, n=1000, alpha=0.05, rho=0.05, threshold=0.9)
    >>> remedy(near)
    'about 3,701 fresh rows to certify on, if the rule goes on acting wrongly on 4 % of them'
    """
    c = certificate
    if c.certified:
        return ""
    if not isinstance(c, Certificate):
        return _rule_remedy(c)
    if allowed is not None and allowed.certified:
        return (
            f"a certified threshold: these rows certify every one from "
            f"{threshold_text(allowed.threshold)} on, which {acts_on(allowed)}"
        )
    if largest_certifiable_errors(c.n, c.alpha, c.rho) < 0:
        in_all = ""
        if share < 1.0 and isinstance(rows := needed(c), int):
            in_all = f", about {counted(math.ceil(rows / share), f'fresh {c.unit}')} in all"
        return f"{rows_missing(c)}{whom(c)} to certify on{in_all}"
    if c.threshold == math.inf:
        return (
            "a model that is rarely wrong where it is sure (more training rows, or another method), certified on "
            f"fresh {c.unit}s"
        )
    if c.jcw >= c.alpha:
        return f"a higher threshold or a better model, certified on fresh {c.unit}s"
    rows = rows_needed(c.alpha, c.rho, expected_jcw=c.jcw)
    return (
        f"about {counted(rows, f'fresh {c.unit}')}{whom(c)} to certify on, if the rule goes on acting "
        f"{wrongly(c.tolerance)} on {'the row drawn from ' * (c.unit == 'group')}{percent(c.jcw)} of them"
    )


def _rule_remedy(c: RuleCertificate) -> str:
    few = too_few(c)
    failed = [part for part in c.parts if not part.certified]
    wanting = few or [part for part in failed if part.threshold < math.inf] or failed
    absent = unseen(c)
    if absent or not wanting:
        return f"fresh {c.unit}s to certify on, with rows of {names(absent or list(c.deferred))} among them"
    # with groups, the share of each in all rows is not known: rows of the group are named alone
    return "; ".join(some([remedy(part) for part in wanting]))
