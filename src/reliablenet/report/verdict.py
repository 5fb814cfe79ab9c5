"""The verdict in one sentence, and what would turn a refusal into a certificate."""

from __future__ import annotations

import math

from reliablenet.certificate import Certificate, clopper_pearson_upper
from reliablenet.certificate.planning import largest_certifiable_errors, rows_for_errors
from reliablenet.report import text
from reliablenet.report.operating import OperatingPoints


def verdict(certificate: Certificate, acts: bool) -> str:
    """Return what to do with the model, in one sentence.

    Parameters
    ----------
    certificate : Certificate
    acts : bool
        Whether the model acts on anything, with or without the certificate.

    Returns
    -------
    str

    Examples
    --------
    >>> granted = Certificate(1, 120, 153, alpha=0.05, rho=0.05, threshold=0.9)
    >>> verdict(granted, acts=True).replace(text.NARROW, " ")
    'Act on 78.4 % of rows; at most 5 % of all rows will be acted on wrongly, with 95 % confidence.'
    """
    share, most = text.percent(certificate.coverage), text.budget(certificate.alpha)
    if certificate.certified:
        return (
            f"Act on {share} of rows; at most {most} of all rows will be acted on wrongly, with "
            f"{text.confidence(certificate.rho)} confidence."
        )
    if acts:
        return (
            f"No certificate: the method acts on {share} of rows by a rule of its own, and this "
            f"fold does not confirm it, because {certificate.reason}."
        )
    return f"No certificate: defer every row, because {certificate.reason}."


def remedy(certificate: Certificate, points: OperatingPoints) -> str:
    """Return what would grant a certificate that was refused.

    Parameters
    ----------
    certificate : Certificate
    points : OperatingPoints
        Of the same fold.

    Returns
    -------
    str
        Empty if it was granted.
    """
    if certificate.certified:
        return ""
    n, alpha, rho = certificate.n, certificate.alpha, certificate.rho
    if points.certified_from < math.inf:
        share = points.coverage[points.place(points.certified_from)]
        return (
            f"This fold certifies every threshold from {text.threshold(points.certified_from)} on, "
            f"which acts on {text.percent(float(share))} of rows: fit with a certified threshold."
        )
    larger = "or a larger budget, named before another fold is opened"
    if largest_certifiable_errors(n, alpha, rho) < 0:
        needed = rows_for_errors(0, alpha, rho)
        least = text.percent_up(float(clopper_pearson_upper(0, n, rho)), 1.0)
        return (
            f"At least {needed:,} certification rows, none of them acted on wrongly, where this "
            f"fold has {n:,}; {larger}: {n:,} rows can confirm no less than {least}."
        )
    return (
        "A model that is right where it is surest (more training rows, other features, another "
        f"method: see a comparison); {larger}."
    )
