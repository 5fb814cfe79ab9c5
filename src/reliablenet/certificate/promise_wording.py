"""What a promise and the certificate of a rule say, in words; `wording` has those of one certificate."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from reliablenet.certificate import wording
from reliablenet.certificate.bounds import clopper_pearson_upper
from reliablenet.certificate.cost import CostCertificate
from reliablenet.certificate.planning import largest_certifiable_errors
from reliablenet.certificate.record import Certificate, Unit
from reliablenet.certificate.wording import confidence, exact

if TYPE_CHECKING:
    from reliablenet.certificate.promise import Promise
    from reliablenet.certificate.rule_certificate import RuleCertificate
    from reliablenet.certificate.rule_checks import Others

NO_ROW = "no certification row"  # why a group or class is deferred
MOST_NAMED = 5  # groups and classes that a sentence names one by one


def promise_text(promise: Promise, tolerance: str = "", unit: Unit = "row") -> str:
    """Return what a promise says, as a sentence without its full stop; of numbers with their tolerance.

    Where one row of each group is counted, the unit, it speaks of such a row and not of a share of rows.

    Examples
    --------
    >>> from reliablenet.certificate.promise import Promise
    >>> from reliablenet.certificate.promise_wording import promise_text
    >>> promise_text(Promise.among_accepted(0.05))
    'of the rows acted on, at most 5 % are wrong'
    >>> promise_text(Promise.by_predicted({"benign": 0.002}))
    'at most 0.2 % of all rows are acted on wrongly as benign'
    >>> promise_text(Promise.by_group(0.05, by="ward"), "10 % of the truth")
    'in every group of ward, at most 5 % of the rows are acted on with an error above 10 % of the truth'
    >>> promise_text(Promise.by_class({"ill": 0.01}), unit="group")
    'if it is truly ill, a row drawn at random from a new group is acted on wrongly with a chance of at most 1 %'
    """
    if promise.kind == "all_of":
        return "; ".join(promise_text(part, tolerance, unit) for part in promise.parts)
    if promise.kind == "cost":
        return wording.cost_limit(_number(promise), unit)
    if unit == "group":
        return _drawn_text(promise, tolerance)
    acted = f"are acted on {wording.wrongly(tolerance)}"
    if promise.kind == "overall":
        return f"at most {exact(_number(promise))} of all rows {acted}"
    if promise.kind == "among_accepted":
        wrong = wording.wrong(tolerance)
        return f"of the rows acted on, at most {exact(_number(promise))} are {wrong}"
    one = {
        "by_group": "of the rows of {where}{label}, at most {share} {acted}",
        "by_class": "of the rows that are truly {label}, at most {share} {acted}",
        "by_predicted": "at most {share} of all rows {acted} as {label}",
    }[promise.kind]
    where = f"{', '.join(promise.by)}="
    if isinstance(promise.alpha, dict):
        named = [
            one.format(label=label, share=exact(budget), where=where, acted=acted)
            for label, budget in promise.alpha.items()
        ]
        return "; ".join(some(named))
    share = exact(promise.alpha)
    return {
        "by_group": f"in every {_groups(promise, 'group')}, at most {share} of the rows {acted}",
        "by_class": f"of the rows of every true class, at most {share} {acted}",
        "by_predicted": f"for every predicted class, at most {share} of all rows {acted} as that class",
    }[promise.kind]


def _drawn_text(promise: Promise, tolerance: str) -> str:
    """Return what a promise says of a row drawn at random from a new group."""
    acted = f"acted on {wording.wrongly(tolerance)}"
    if promise.kind == "among_accepted":
        acted = wording.wrong(tolerance)

    def drawn(given: str, as_what: str, budget: float) -> str:
        chance = f"with a chance of at most {exact(budget)}"
        return f"{given}{wording.DRAWN} is {acted}{as_what} {chance}"

    if isinstance(promise.alpha, dict):
        where, told = f"{', '.join(promise.by)}=", []
        for label, budget in promise.alpha.items():
            given = {
                "by_group": f"if it is of {where}{label}, ",
                "by_class": f"if it is truly {label}, ",
            }
            as_what = f" as {label}" if promise.kind == "by_predicted" else ""
            told.append(drawn(given.get(promise.kind, ""), as_what, budget))
        return "; ".join(some(told))
    given = {
        "among_accepted": "if it is acted on, ",
        "by_group": f"whatever its value of {' and '.join(promise.by)}, ",
        "by_class": "whatever its true class, ",
        "by_predicted": "for every predicted class, ",
    }
    as_what = " as that class" if promise.kind == "by_predicted" else ""
    return drawn(given.get(promise.kind, ""), as_what, promise.alpha)


def odd_deferred(promise: Promise | None) -> str:
    """Return what a certificate says of a rule that also defers rows unlike those of training.

    Parameters
    ----------
    promise : Promise or None
        None is that of a budget for all rows.

    Examples
    --------
    >>> from reliablenet.certificate.promise import Promise
    >>> from reliablenet.certificate.promise_wording import odd_deferred
    >>> odd_deferred(None)
    'deferring odd rows acts on fewer rows and never on more, so the promise still holds'
    >>> odd_deferred(Promise.among_accepted(0.05))
    'the promise is about the rows acted on, and does not cover deferring odd ones: certify the rule as it is used'
    """
    parts = () if promise is None else (promise, *promise.parts)
    if any(part.kind == "among_accepted" for part in parts):
        return "the promise is about the rows acted on, and does not cover deferring odd ones: certify the rule as it is used"
    return "deferring odd rows acts on fewer rows and never on more, so the promise still holds"


def rule_verdict(
    certificate: RuleCertificate, subject: str = "the rule", acts: bool | None = None
) -> str:
    """Return what to make of the certificate of a rule, in one sentence.

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet import Promise, certified_rule
    >>> from reliablenet.certificate.promise_wording import rule_verdict
    >>> group, y = np.repeat(["A", "B"], 200), np.tile([0, 1], 200)
    >>> proba = np.eye(2)[y]
    >>> rule_verdict(certified_rule(proba, y, Promise.by_group(0.05), by=group))
    'Certified: the rule acts on 100 % of rows, and in every group, at most 5 % of the rows are acted on wrongly (95 % confidence).'
    """
    c = certificate
    if c.empty:
        return f"Certified, but worth nothing: {_emptiness(c)}."
    if not c.certified and acts is None and c.threshold < math.inf:
        return f"Not certified: {subject} is not shown to keep its promise ({_promised(c)})."
    if not c.certified:
        share = f"{wording.acts_on(c)} without a certificate"
        return f"Not certified: {subject} {share if acts else 'defers every row'}."
    text = f"Certified: {subject} {wording.acts_on(c)}, and "
    text += f"{_promised(c)} ({confidence(c.rho)} confidence)"
    text += f"; deferred: {names(list(c.deferred))}" if c.deferred else ""
    return (
        "; ".join([text, *(others_text(others, c.tolerance, c.unit) for others in c.others)]) + "."
    )


def others_text(others: Others, tolerance: str = "", unit: Unit = "row") -> str:
    """Say that groups which a promise does not name are acted on all the same.

    Examples
    --------
    >>> from reliablenet.certificate.promise import Promise
    >>> from reliablenet.certificate.promise_wording import others_text
    >>> from reliablenet.certificate.rule_checks import Others
    >>> promise = Promise.by_group({"A": 0.05}, by="race", common=True)
    >>> others_text(Others(promise, n=40, accepted=25, errors=3, of=4000))
    'other groups of race are acted on without a promise of their own (40 of 4,000 rows: acted on 25, 3 wrong)'
    """
    seen = "no such row was seen"
    if others.n:
        counts = f"acted on {others.accepted:,}, {others.errors:,} {wording.wrong(tolerance)}"
        counted = "rows" if unit == "row" else "groups, one row of each"
        seen = f"{others.n:,} of {others.of:,} {counted}: {counts}"
    whose = _groups(others.promise, "groups")
    return f"other {whose} are acted on without a promise of their own ({seen})"


def rule_reason(certificate: RuleCertificate) -> str:
    """Return why the certificate of a rule was granted or refused: its weakest parts, in numbers."""
    c = certificate
    if c.certified:
        acting = [part for part in c.parts if part.certified]
        closest = max(acting, key=_closeness)
        more = f" (the closest of {len(acting)})" if len(acting) > 1 else ""
        said = [f"{closest.reason}{more}"]
    else:
        failed = [part for part in c.parts if not part.certified]
        acting = [part for part in failed if part.threshold < math.inf]
        refused = too_few(c) or acting or failed
        said = [f"no certification row of {name}" for name in (*c.unproved, *unseen(c))]
        refused = [] if unseen(c) else refused  # whatever the others show
        said = some(said + [part.reason for part in refused]) or ["nothing could be certified"]
    named = [f"{name} ({why})" for name, why in c.deferred.items() if name not in unseen(c)]
    if named:
        said.append(f"deferred: {names(named)}")
    return "; ".join(said)


def verdict(
    certificate: Certificate | RuleCertificate, subject: str = "the rule", acts: bool | None = None
) -> str:
    """Return what to make of a certificate of either kind; see `wording.verdict`."""
    if isinstance(certificate, Certificate):
        return wording.verdict(certificate, subject, acts)
    return rule_verdict(certificate, subject, acts)


def notes(certificate: Certificate | RuleCertificate) -> list[str]:
    """Return what else a reader must know of a certificate of either kind."""
    if isinstance(certificate, Certificate):
        return wording.notes(certificate)
    return wording.notes(certificate) + rule_notes(certificate)


def rule_notes(certificate: RuleCertificate) -> list[str]:
    """Return what a reader must know of the certificate of a rule besides what all have in common."""
    c = certificate
    said = []
    if c.mixtures and c.certified:
        said.append(f"holds for every mixture of {c.mixtures}: it is about each of them by itself")
    shared = [p for p in c.promise.simple() if p.common and not isinstance(p.alpha, dict)]
    if c.certified:
        said += [f"new {_groups(p, 'groups')} would be acted on without a promise" for p in shared]
    if not isinstance(c.promise.alpha, dict):
        return said
    classes = c.rule.classes or [name for name, t in c.rule.thresholds.items() if t < math.inf]
    unlimited = [str(label) for label in classes if label not in c.promise.alpha]
    if c.promise.kind == "by_predicted" and unlimited:
        said.append(f"no budget limits what is predicted as {names(unlimited)}")
    if c.promise.kind == "by_class" and c.rule.classes is None:  # whose names are not known
        others = c.n - sum(part.n for part in c.parts)
        unlimited = ["something else"] if others else []
    if c.promise.kind == "by_class" and unlimited:
        said.append(f"no budget limits mistakes on rows that are truly {names(unlimited)}")
    return said


def unseen(certificate: RuleCertificate) -> list[str]:
    """Return the groups and classes whose lack of certification rows holds the whole rule back.

    A group with a threshold of its own is deferred by itself.
    """
    if certificate.certified:
        return []
    tables = certificate.rule.tables
    own = [", ".join(t.key) + f"={label}" for t in tables for label in t.values]
    absent = [name for name, why in certificate.deferred.items() if why == NO_ROW]
    return [name for name in absent if name not in own]


def _closeness(part: Certificate) -> float:
    """Return how near the mistakes counted of a part bring it to its budget.

    Its bound would not tell: that of a chosen threshold speaks of the most mistakes it could have had.
    """
    counted = part.upper_bound
    if not isinstance(part, CostCertificate):
        counted = float(clopper_pearson_upper(part.errors, part.n, part.rho))
    return counted / part.alpha


def too_few(certificate: RuleCertificate) -> list[Certificate]:
    """Return the parts that no count of mistakes could grant: they have too few rows."""
    # a rule that was fixed beforehand may defer a group for good
    asked = [p for p in certificate.parts if p.kind != "fixed" or p.threshold < math.inf]
    return [p for p in asked if largest_certifiable_errors(p.n, p.alpha, p.rho) < 0]


def _emptiness(c: RuleCertificate) -> str:
    """Return why a granted certificate is worth nothing; of costs, in costs."""
    costs = [part for part in c.parts if isinstance(part, CostCertificate)]
    if len(costs) < len(c.parts) or costs[0].guessing is None:
        return wording.emptiness(c)
    part = costs[0]
    return (
        f"the {c.accepted:,} rows acted on cost {part.cost / max(c.accepted, 1):.4g} each; always "
        f"answering the cheapest label would cost {costs[0].guessing / c.n:.4g} a row"
    )


def _promised(c: RuleCertificate) -> str:
    return promise_text(c.promise, c.tolerance, c.unit)


def _groups(promise: Promise, noun: str) -> str:
    return noun if promise.by == ("group",) else f"{noun} of {' and '.join(promise.by)}"


def _number(promise: Promise) -> float:
    assert not isinstance(promise.alpha, dict)  # noqa: S101
    return promise.alpha


def some(sentences: list[str]) -> list[str]:
    """Return the first sentences, and how many more there are."""
    shown = sentences[:MOST_NAMED]
    more = len(sentences) - len(shown)
    return [*shown, f"and {more} more"] if more else shown


def names(known: list[str]) -> str:
    """Return the first names in one text, and how many more there are."""
    texts = [str(name) for name in known]
    between = "; " if any(", " in text for text in texts) else ", "  # crossed groups have commas
    return between.join(some(texts))
