"""What a certificate says, in words: the one place for the command line, the page, `repr` and JSON.

Numbers are never written better than they are: bounds are rounded up, levels down, and a share that
is not 0 or 100 % is not written so.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from itertools import count
from typing import TYPE_CHECKING, TypeAlias

from reliablenet.certificate.planning import (
    MOST_ROWS,
    largest_certifiable_errors,
    rows_for_errors,
)

if TYPE_CHECKING:
    from reliablenet.certificate.record import Certificate, Unit
    from reliablenet.certificate.rule_certificate import RuleCertificate

    AnyCertificate: TypeAlias = Certificate | RuleCertificate

DRAWN = "a row drawn at random from a new group"  # what a count of groups speaks of


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
        return (
            f"Certified: {subject} {acts_on(c)}, and {_limit(c)} ({confidence(c.rho)} confidence)."
        )
    if acts is None:
        return f"Not certified: {subject} is not shown to keep its budget of {exact(c.alpha)}."
    if acts:
        return f"Not certified: {subject} {acts_on(c)} without a certificate."
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
    '0 confident mistakes in 40 rows: up to 7.22 % of all rows could be acted on wrongly (95 % confidence); alpha = 5 % needs at least 59 fresh rows'
    """
    c = certificate
    level, bound = f"({confidence(c.rho)} confidence)", percent_up(c.upper_bound, c.alpha)
    seen = f"{_mistakes(c, c.errors)} in {units(c)}"
    if c.certified:
        return f"{seen}: {_claim(c, f'at most {bound}', 'will')} {level}"
    most = largest_certifiable_errors(c.n, c.alpha, c.rho)
    observed = f"{seen}: {_claim(c, f'up to {bound}', 'could')} {level}"
    if most < 0:
        return f"{observed}; alpha = {exact(c.alpha)} needs {rows_missing(c)}"
    allowed = f"alpha = {exact(c.alpha)} allows {_mistakes(c, most)} in {units(c)}"
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
        of = f"of {units(c)} no row" if c.unit == "group" else f"no row of {c.n:,}"
        return f"{of} was acted on"
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
        return f"the rule acted on none of {units(c)}"
    return _fate(c) if c.commonest is None else f"{_fate(c)}; {_guessing(c)}"


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
            f"{counted(c.unknown, 'row')} of a class that the model does not know count as wrong"
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
        said.append(f"{counted(p.copies, 'row')} repeat another row of the fold, and count again")
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
    written = (value.quantize(Decimal(1).scaleb(-n), rounding=ROUND_CEILING) for n in count(2))
    rounded = next(one for one in written if bound > limit or float(one / 100) <= limit)
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


def acts_on(c: AnyCertificate) -> str:
    """Say on how much a rule acts: on a share of rows, or of the rows drawn from groups."""
    return f"acts on {rows_share(percent(c.coverage), c.unit)}"


def rows_share(share: str, unit: Unit) -> str:
    """Say of what something is a share: of rows, or of groups, of each of which one row was drawn.

    Examples
    --------
    >>> from reliablenet.certificate.wording import rows_share
    >>> rows_share("5 %", "row"), rows_share("5 %", "group")
    ('5 % of rows', 'the row drawn from 5 % of groups')
    """
    return f"{share} of rows" if unit == "row" else f"the row drawn from {share} of groups"


def _limit(c: Certificate) -> str:
    """Say what is promised of the source: the budget."""
    at_most = f"at most {exact(c.alpha)}"
    if c.population != "all":
        return _claim(c, at_most, "will")
    if c.unit == "row":
        return f"{wrongly(c.tolerance)} on {at_most} of all rows from this source"
    return f"{DRAWN} is acted on {wrongly(c.tolerance)} with a chance of {at_most}"


def cost_limit(budget: float, unit: Unit) -> str:
    """Say what is promised of a mean cost."""
    if unit == "row":
        return f"acting costs at most {budget:.12g} a row on average"
    return f"acting on {DRAWN} costs at most {budget:.12g} on average"


def _claim(c: Certificate, share: str, will: str) -> str:
    """Say of which rows which share will, or could, be acted on wrongly."""
    acted = f"acted on {wrongly(c.tolerance)}"
    acted += f" as {c.name}" if c.population == "predicted" else ""
    if c.unit == "row":
        if c.population == "accepted":
            return f"{share} of the rows acted on {will} be {wrong(c.tolerance)}"
        return f"{share} of {f'rows{whom(c)}' if whom(c) else 'all rows'} {will} be {acted}"
    if c.population == "accepted":
        acted = wrong(c.tolerance)
    known = {"accepted": "acted on", "class": f"truly {c.name}", "group": f"of {c.name}"}
    given = f"if it is {known[c.population]}, " if c.population in known else ""
    return f"{given}{DRAWN} {will} be {acted} with a chance of {share}"


def whom(c: AnyCertificate) -> str:
    """Say of which rows, or of which groups by the row drawn, a certificate speaks; "" if of all."""
    if c.population not in ("class", "group"):
        return ""
    known = f"truly {c.name}" if c.population == "class" else f"of {c.name}"
    if c.unit == "group":
        return f" whose row is {known}"
    return f" that are {known}" if c.population == "class" else f" {known}"


def _mistakes(c: Certificate, number: int) -> str:
    made = counted(number, "mistake" if c.population == "accepted" else "confident mistake")
    return f"{made} as {c.name}" if c.population == "predicted" else made


def _fate(c: AnyCertificate) -> str:
    were = "was" if c.errors == 1 else "were"
    each = ", one of each group," if c.unit == "group" else ""
    return (
        f"of {counted(c.accepted, 'row')} acted on{each} {c.errors:,} {were} {wrong(c.tolerance)}"
    )


def _guessing(c: AnyCertificate) -> str:
    share = rows_share(percent(c.guessing_error), c.unit)
    return f"always answering the commonest label would be wrong on {share}"


def units(c: AnyCertificate) -> str:
    """Say of how many rows, or of how many groups, a certificate speaks."""
    if c.unit == "row":
        return f"{counted(c.n, 'row')}{' acted on' if c.population == 'accepted' else whom(c)}"
    whose = " whose row was acted on" if c.population == "accepted" else whom(c)
    return f"{counted(c.n, 'group')} (one row of each){whose}"


def needed(c: Certificate) -> int | None:
    """Return how many rows, or groups, so many mistakes need; None if they are too many to count."""
    countable = c.alpha >= 1.0 / MOST_ROWS and c.errors <= c.alpha * MOST_ROWS
    return int(rows_for_errors(c.errors, c.alpha, c.rho)) if countable else None


def rows_missing(c: Certificate) -> str:
    """Say how many rows are needed: fresh ones, unless a look at any time was planned.

    To add some to rows that were looked at, and look again, would void the promise.
    """
    noun = c.unit if c.kind == "anytime" else f"fresh {c.unit}"
    rows = needed(c)
    return (
        f"more {noun}s than can be counted" if rows is None else f"at least {counted(rows, noun)}"
    )


def counted(number: int, noun: str) -> str:
    """Write a number of things, one or several."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _short(text: str) -> str:
    """Drop zeros behind the point."""
    return text.rstrip("0").rstrip(".") if "." in text else text
