"""What a certificate says, in words: the one place for the command line, the page, `repr` and JSON.

Numbers are never written better than they are: bounds are rounded up, levels down, and a share that
is not 0 or 100 % is not written so.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import TYPE_CHECKING, TypeAlias

from reliablenet.certificate.planning import (
    MOST_ROWS,
    largest_certifiable_errors,
    rows_for_errors,
    rows_needed,
)

if TYPE_CHECKING:
    from reliablenet.certificate.record import Certificate
    from reliablenet.certificate.rule_certificate import RuleCertificate

    AnyCertificate: TypeAlias = Certificate | RuleCertificate


def verdict(certificate: Certificate, subject: str = "the rule", acts: bool | None = None) -> str:
    """Return what to make of a certificate, in one sentence.

    Parameters
    ----------
    certificate : Certificate
    subject : str
        Whose rule it is about.
    acts : bool, optional
        Whether the subject acts without a certificate; None where that is not for us to say.

    Returns
    -------
    str

    Examples
    --------
    >>> from reliablenet.certificate.wording import verdict
    >>> from reliablenet.certificate import Certificate
    >>> granted = Certificate(1, 120, 153, alpha=0.05, rho=0.05, threshold=0.9)
    >>> verdict(granted, "the model")
    'Certified: the model acts on 78.4 % of rows, and wrongly on at most 5 % of all rows from this source (95 % confidence).'
    >>> few = Certificate(0, 40, 40, alpha=0.05, rho=0.05, threshold=0.9)
    >>> verdict(few, "the model", acts=False)
    'Not certified: the model defers every row.'
    >>> lucky = Certificate(14, 15, 1000, alpha=0.05, rho=0.05, threshold=0.9, commonest=500)
    >>> verdict(lucky)
    'Certified, but worth nothing: of 15 rows acted on 14 were wrong; always answering the commonest label would be wrong on 50 % of rows.'
    """
    c = certificate
    if c.empty:
        return f"Certified, but worth nothing: {emptiness(c)}."
    if c.certified:
        return f"Certified: {subject} acts on {percent(c.coverage)} of rows, and {_limit(c)}."
    if acts is None:
        return f"Not certified: {subject} is not shown to keep its budget of {exact(c.alpha)}."
    if acts:
        return (
            f"Not certified: {subject} acts on {percent(c.coverage)} of rows without a certificate."
        )
    return f"Not certified: {subject} defers every row."


def reason(certificate: Certificate) -> str:
    """Return why a certificate was granted or refused, in numbers.

    Examples
    --------
    >>> from reliablenet.certificate.wording import reason
    >>> from reliablenet.certificate import Certificate
    >>> reason(Certificate(1, 153, 153, alpha=0.05, rho=0.05, threshold=0.0, kind="monotone"))
    '1 confident mistake in 153 rows: at most 3.07 % of all rows will be acted on wrongly (95 % confidence)'
    >>> reason(Certificate(0, 40, 40, alpha=0.05, rho=0.05, threshold=0.9))
    '0 confident mistakes in 40 rows: up to 7.22 % of all rows could be acted on wrongly (95 % confidence); alpha = 5 % needs at least 59 rows'
    """
    c = certificate
    level, bound = f"({confidence(c.rho)} confidence)", percent_up(c.upper_bound, c.alpha)
    counted = f"{_mistakes(c, c.errors)} in {_units(c)}"
    if c.certified:
        return f"{counted}: {_claim(c, f'at most {bound}', 'will')} {level}"
    most = largest_certifiable_errors(c.n, c.alpha, c.rho)
    observed = f"{counted}: {_claim(c, f'up to {bound}', 'could')} {level}"
    if most < 0:
        return f"{observed}; alpha = {exact(c.alpha)} needs {_rows_missing(c)}"
    allowed = f"alpha = {exact(c.alpha)} allows {_mistakes(c, most)} in {_units(c)}"
    if c.threshold < math.inf:
        return f"{observed}; {allowed}"
    if c.kind == "monotone":
        return f"the rows with the best scores already hold too many mistakes: {allowed}"
    return "the rule acts on no row, so there is nothing to certify"


def acted_on(certificate: AnyCertificate) -> str:
    """Return how the rows acted on fared, and what always giving one answer would do.

    The interval holds at the level beside it for a rule fixed beforehand. Where the threshold was
    chosen on these rows it describes them; the promise is the bound of `reason`.

    Examples
    --------
    >>> from reliablenet.certificate.wording import acted_on
    >>> from reliablenet.certificate import Certificate
    >>> acted_on(Certificate(1, 120, 153, alpha=0.05, rho=0.05, threshold=0.9, commonest=96))
    'of 120 rows acted on 1 was wrong: 0.83 % (95 % interval 0.02 % to 4.56 %); always answering the commonest label would be wrong on 37.3 % of rows'
    """
    c = certificate
    if c.accepted == 0:
        return f"no row of {c.n:,} was acted on"
    low, high = c.error_accepted_interval
    text = (
        f"{_fate(c)}: {percent(c.error_accepted, 2)} ({confidence(c.rho)} interval {percent_down(low)} to "
        f"{percent_up(high, 1.0)})"
    )
    return f"{text}; {_guessing(c)}" if c.commonest is not None else text


def emptiness(certificate: AnyCertificate) -> str:
    """Return why a granted certificate is worth nothing, "" if it is worth something."""
    c = certificate
    if not c.empty:
        return ""
    if c.accepted == 0:
        return f"the rule acted on none of {_units(c)}"
    return _fate(c) if c.commonest is None else f"{_fate(c)}; {_guessing(c)}"


def remedy(certificate: Certificate, share: float = 1.0, allowed: Certificate | None = None) -> str:
    """Return what would grant a refused certificate, "" if it was granted.

    A larger alpha is never advised: chosen after a look at these rows, it would void the promise.

    Parameters
    ----------
    certificate : Certificate
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
    >>> from reliablenet.certificate.wording import remedy
    >>> from reliablenet.certificate import Certificate
    >>> few = Certificate(errors=0, accepted=40, n=40, alpha=0.05, rho=0.05, threshold=0.9)
    >>> remedy(few, share=0.4)
    'at least 59 rows to certify on, about 148 rows in all'
    >>> near = Certificate(errors=40, accepted=900, n=1000, alpha=0.05, rho=0.05, threshold=0.9)
    >>> remedy(near)
    'about 3,701 fresh rows to certify on, if the rule goes on acting wrongly on 4 % of them'
    """
    c = certificate
    if c.certified:
        return ""
    if allowed is not None and allowed.certified:
        return (
            f"a certified threshold: these rows certify every one from "
            f"{threshold_text(allowed.threshold)} on, which acts on {percent(allowed.coverage)} of rows"
        )
    if largest_certifiable_errors(c.n, c.alpha, c.rho) < 0:
        missing = _rows_missing(c)
        in_all = ""
        if share < 1.0 and isinstance(needed := _needed(c), int):
            in_all = f", about {_count(math.ceil(needed / share), c.unit)} in all"
        return f"{missing}{_whom(c)} to certify on{in_all}"
    if c.threshold == math.inf:
        return (
            "a model that is rarely wrong where it is sure: more training rows, or another method"
        )
    if c.jcw >= c.alpha:
        return "a higher threshold or a better model, certified on fresh rows"
    rows = rows_needed(c.alpha, c.rho, expected_jcw=c.jcw)
    return (
        f"about {_count(rows, f'fresh {c.unit}')}{_whom(c)} to certify on, if the rule goes on acting {wrongly(c.tolerance)} "
        f"on {percent(c.jcw)} of them"
    )


def notes(certificate: AnyCertificate) -> list[str]:
    """Return what else a reader must know: unit, reuse, choice, copies, comparison, classes not known."""
    c, said = certificate, []
    if c.unit == "group":
        said.append(
            "counted: one row of each group, drawn at random; it speaks of a random row of a new "
            "group, and groups with many rows weigh no more than others"
        )
    if c.unknown:
        said.append(
            f"{_count(c.unknown, 'row')} of a class that the model does not know count as wrong"
        )
    p = c.provenance
    if p is not None and p.chosen_among > 1:
        said.append(f"chosen among {p.chosen_among} methods; the confidence allows for that")
    if p is not None and p.uses > 1:
        said.append(
            f"these rows have been used for {p.uses} certificates: keeping the one that passed "
            f"voids it"
        )
    if p is not None and p.copies:
        said.append(f"{_count(p.copies, 'row')} repeat another row of the fold, and count again")
    if p is not None and not p.compared:
        said.append(
            "these rows could not be compared with those that made the model: that they had no part in it "
            "rests on the word of whoever gave them"
        )
    return said


def percent(share: float, digits: int = 1, *, trim: bool = True) -> str:
    """Write a share in percent; neither 0 nor 100 unless it is exactly that.

    ``trim`` drops zeros behind the point, as in a sentence; without it figures in a column align.

    Examples
    --------
    >>> from reliablenet.certificate.wording import percent
    >>> [percent(share) for share in (0.5814, 0.05, 0.9999, 0.00001, 1.0)]
    ['58.1 %', '5 %', '> 99.9 %', '< 0.1 %', '100 %']
    """
    if math.isnan(share):
        return "\u2013"
    if share in (0.0, 1.0):
        return f"{100 * share:.0f} %"
    text, step = f"{100 * share:.{digits}f}", 10.0**-digits
    if float(text) == 100.0:
        return f"> {100 - step:.{digits}f} %"
    if float(text) == 0.0:
        return f"< {step:.{digits}f} %"
    return f"{_short(text) if trim else text} %"


def percent_up(bound: float, limit: float, *, trim: bool = True) -> str:
    """Write a bound in percent, never below it, and never above a limit that it keeps.

    Examples
    --------
    >>> from reliablenet.certificate.wording import percent_up
    >>> percent_up(0.04321, 0.05), percent_up(0.049999, 0.05), percent_up(0.0500001, 0.05)
    ('4.33 %', '5 %', '5.01 %')
    """
    if bound == limit:
        return exact(limit)
    value = 100 * Decimal(bound)
    for digits in range(2, 18):
        rounded = value.quantize(Decimal(1).scaleb(-digits), rounding=ROUND_CEILING)
        if bound > limit or float(rounded / 100) <= limit:
            break
    text = f"{rounded:f}"
    return f"{_short(text) if trim else text} %"


def percent_down(bound: float) -> str:
    """Write a lower bound in percent, never above it.

    Examples
    --------
    >>> from reliablenet.certificate.wording import percent_down
    >>> percent_down(0.04329), percent_down(0.0)
    ('4.32 %', '0 %')
    """
    rounded = (100 * Decimal(bound)).quantize(Decimal("0.01"), rounding=ROUND_FLOOR)
    return f"{_short(f'{rounded:f}')} %"


def confidence(rho: float) -> str:
    """Write 1 - rho in percent, never above it.

    Examples
    --------
    >>> from reliablenet.certificate.wording import confidence
    >>> confidence(0.05), confidence(0.05 / 6)
    ('95 %', '99.16 %')
    """
    level = (100 - 100 * Decimal(repr(rho))).quantize(Decimal("0.01"), rounding=ROUND_FLOOR)
    return f"{_short(f'{level:f}')} %"


def exact(share: float) -> str:
    """Write a share in percent with all its digits, as it was given.

    Examples
    --------
    >>> from reliablenet.certificate.wording import exact
    >>> exact(0.05), exact(0.002), exact(1e-7)
    ('5 %', '0.2 %', '0.00001 %')
    """
    return f"{(100 * Decimal(repr(share))).normalize():f} %"


def threshold_text(value: float) -> str:
    """Write a threshold: whole if it is short, else its first digits and an ellipsis.

    Examples
    --------
    >>> import math
    >>> from reliablenet.certificate.wording import threshold_text
    >>> threshold_text(0.75), threshold_text(2 / 3), threshold_text(0.99999999999)
    ('0.75', '0.666666…', '0.999999…')
    >>> threshold_text(1e-12), threshold_text(3.2123456789e-05), threshold_text(123456789.123)
    ('1e-12', '3.212345…e-05', '123456789.1…')
    >>> threshold_text(math.inf), threshold_text(-math.inf)
    ('none', 'any')
    """
    if math.isinf(value):
        return "none" if value > 0 else "any"
    digits, mark, power = repr(float(value)).partition("e")
    digits = digits.removesuffix(".0")
    most = max(8 + (value < 0), digits.find(".") + 2)  # never cut before the point
    if len(digits) > max(10 + (value < 0), most) and "." in digits:
        digits = f"{digits[:most]}…"
    return digits + mark + power


def wrong(tolerance: str = "") -> str:
    """Say what a mistake is: of a number, to be off by more than the tolerance."""
    return f"off by more than {tolerance}" if tolerance else "wrong"


def wrongly(tolerance: str = "") -> str:
    """Say how a mistake is made: of a number, with an error above the tolerance."""
    return f"with an error above {tolerance}" if tolerance else "wrongly"


def _limit(c: Certificate) -> str:
    """Say what is promised of the source: the budget, and with which confidence."""
    level = f"({confidence(c.rho)} confidence)"
    if c.population != "all":
        return f"{_claim(c, f'at most {exact(c.alpha)}', 'will')} {level}"
    if c.unit == "row":
        return f"{wrongly(c.tolerance)} on at most {exact(c.alpha)} of all rows from this source {level}"
    return (
        f"a row drawn at random from a new group is acted on {wrongly(c.tolerance)} with a chance of at most "
        f"{exact(c.alpha)} {level}"
    )


def _claim(c: Certificate, share: str, will: str) -> str:
    """Say of which rows which share will, or could, be acted on wrongly."""
    if c.population == "accepted":
        return f"{share} of the rows acted on {will} be {wrong(c.tolerance)}"
    as_what = f" as {c.name}" if c.population == "predicted" else ""
    if c.unit == "group":
        return (
            f"a row{_whom(c)} drawn at random from a new group {will} be acted on {wrongly(c.tolerance)}{as_what} "
            f"with a chance of {share}"
        )
    whom = f"rows{_whom(c)}" if _whom(c) else "all rows"
    return f"{share} of {whom} {will} be acted on {wrongly(c.tolerance)}{as_what}"


def _whom(c: AnyCertificate) -> str:
    if c.population == "class":
        return f" that are truly {c.name}"
    return f" of {c.name}" if c.population == "group" else ""


def _mistakes(c: Certificate, number: int) -> str:
    counted = _count(number, "mistake" if c.population == "accepted" else "confident mistake")
    return f"{counted} as {c.name}" if c.population == "predicted" else counted


def _fate(c: AnyCertificate) -> str:
    were = "was" if c.errors == 1 else "were"
    return f"of {_count(c.accepted, 'row')} acted on {c.errors:,} {were} {wrong(c.tolerance)}"


def _guessing(c: AnyCertificate) -> str:
    return f"always answering the commonest label would be wrong on {percent(c.guessing_error)} of rows"


def _units(c: AnyCertificate) -> str:
    counted = _count(c.n, c.unit)
    counted = counted if c.unit == "row" else f"{counted} (one row of each)"
    return f"{counted} acted on" if c.population == "accepted" else f"{counted}{_whom(c)}"


def _needed(c: Certificate) -> int | None:
    """Return the rows that so many mistakes need; None if they are too many to count."""
    countable = c.alpha >= 1.0 / MOST_ROWS and c.errors <= c.alpha * MOST_ROWS
    return int(rows_for_errors(c.errors, c.alpha, c.rho)) if countable else None


def _rows_missing(c: Certificate) -> str:
    if (needed := _needed(c)) is None:
        return f"more {c.unit}s than can be counted"
    return f"at least {_count(needed, c.unit)}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _short(text: str) -> str:
    """Drop zeros behind the point."""
    return text.rstrip("0").rstrip(".") if "." in text else text
