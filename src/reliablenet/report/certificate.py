"""A certificate on a page: its facts, its budget as a bar, and the parts of a promise as a table."""

from __future__ import annotations

import math

from reliablenet.certificate import Certificate, RuleCertificate
from reliablenet.certificate.cost import CostCertificate
from reliablenet.certificate.record import Unit
from reliablenet.certificate.rule_checks import Others
from reliablenet.report import text
from reliablenet.report.charts import Numbers, marked_numbers

KINDS = {
    "fixed": "the rule was set before the fold was opened",
    "monotone": "the threshold was chosen on the fold itself, which costs nothing because a higher "
    "threshold never acts on more rows",
    "sequence": "thresholds were tested in an order that was fixed before, up to the first that failed",
    "anytime": "rows were looked at as they came, and the bound holds at every look",
}
UNITS = {
    "row": "it is about a random new row from the same source",
    "group": "it is about a random row of a random new group, whatever the number of its rows",
}


COUNTED = {
    "row": "rows of the certification fold, seen once",
    "group": "groups of the certification fold, one row of each, drawn at random",
}
OBSERVED = {
    "row": "observed share of all rows",
    "group": "observed share of all groups, by the row drawn",
}


VOIDS = (
    (
        "Another source.",
        "It is about rows drawn as the certification fold was drawn. Other people, years or sensors are "
        "another source: certify again on rows from there.",
    ),
    (
        "Rows used twice.",
        "A certification row that also trained the model, chose its settings, or is a copy of one that "
        "did, proves nothing.",
    ),
    (
        "Rows that belong together.",
        "Several rows of one person are not independent. Keep each person in one fold and count persons.",
    ),
    (
        "Looking, then looking again.",
        "Trying ten models, seeds or budgets on the same fold and keeping the one that passed is not "
        "covered.",
    ),
)
PARTS_OF_THE_WHOLE = (
    "Parts of the whole.",
    "The promise is about all rows together. A group can fare worse than the whole.",
)


def counted_rows(unit: Unit) -> str:
    """Say what is counted on a page: rows, or groups by one row of each."""
    return "rows" if unit == "row" else "groups, one row of each"


def voids(certificate: Certificate | RuleCertificate) -> list[tuple[str, str]]:
    """Return what voids a certificate, each in a few words and in a sentence."""
    whole = not isinstance(certificate, RuleCertificate)
    return [*VOIDS, *([PARTS_OF_THE_WHOLE] if whole else [])]


def certificate_facts(certificate: Certificate | RuleCertificate) -> list[tuple[str, str, str]]:
    """Return name, value and meaning of what a certificate holds."""
    if isinstance(certificate, RuleCertificate):
        return _rule_facts(certificate)
    c, made = certificate, certificate.provenance
    whole = c.accepted == c.n or c.kind == "fixed"
    facts = [
        ("K", text.count(c.errors), "rows acted on and wrong"),
        ("n", text.count(c.n), COUNTED[c.unit]),
        ("JCW", text.percent(c.jcw, 2), "observed share acted on and wrong, K / n"),
        (
            "Upper bound",
            text.percent_up(c.upper_bound, c.alpha),
            "one-sided Clopper-Pearson bound of the true share"
            + ("" if whole else ", at the most mistakes that alpha affords"),
        ),
        (
            "Wrong where it acts",
            text.percent(c.error_accepted, 2),
            "observed share of the rows acted on",
        ),
        ("alpha", text.budget(c.alpha), "the budget that was named beforehand"),
        ("rho", text.budget(c.rho), "allowed probability that the certificate fails"),
        (
            "Threshold",
            text.threshold(c.threshold),
            f"rows with a score at or above it are acted on; exactly {c.threshold!r}"
            if math.isfinite(c.threshold)
            else "every row is deferred"
            if c.threshold > 0
            else "every row is acted on",
        ),
        ("Kind", c.kind, KINDS[c.kind]),
        ("Unit", c.unit, UNITS[c.unit]),
    ]
    if made is not None:
        facts.append(
            (
                "Certificates on these rows",
                text.count(made.uses),
                "this one included; keeping the one that passed voids it",
            )
        )
    return facts


def _rule_facts(certificate: RuleCertificate) -> list[tuple[str, str, str]]:
    c = certificate
    facts = [
        ("K", text.count(c.errors), "rows acted on and wrong, of all"),
        ("n", text.count(c.n), COUNTED[c.unit]),
        ("Acts on", text.percent(c.coverage), OBSERVED[c.unit]),
        (
            "Wrong where it acts",
            text.percent(c.error_accepted, 2),
            "observed share of the rows acted on",
        ),
        ("rho", text.budget(c.rho), "allowed probability that any part of the promise fails"),
        ("Unit", c.unit, UNITS[c.unit]),
    ]
    if c.provenance is not None:
        uses = "this one included; keeping the one that passed voids it"
        facts.append(("Certificates on these rows", text.count(c.provenance.uses), uses))
    return facts


def budget_scale(certificate: Certificate | RuleCertificate) -> dict[str, float] | None:
    """Return where observed JCW, bound and budget lie on one bar, in percent of it; None for several."""
    if isinstance(certificate, RuleCertificate):
        return None
    full = 1.15 * max(certificate.upper_bound, certificate.alpha)
    values = {"jcw": certificate.jcw, "bound": certificate.upper_bound, "alpha": certificate.alpha}
    return {name: 100 * value / full for name, value in values.items()}


def parts_table(certificate: Certificate | RuleCertificate) -> Numbers | None:
    """Return the parts of a promise, one row each; None where there is only one budget."""
    if not isinstance(certificate, RuleCertificate):
        return None
    counted = "Rows" if certificate.unit == "row" else "Groups, one row of each"
    columns = ["Of", counted, "Acts on", "Acts and is wrong", "Upper bound", "Budget", "Confidence"]
    columns += ["Acts from", "Kept"]
    rows = [_part_cells(part) for part in certificate.parts]
    rows += [_others_cells(others) for others in certificate.others if others.n]
    return marked_numbers(columns, rows)


def _others_cells(others: Others) -> list[str]:
    """Return what was counted of groups that share the threshold and have no budget."""
    return [
        f"other groups of {' and '.join(others.promise.by)}",
        text.count(others.n),
        text.count(others.accepted),
        text.percent(others.errors / others.n, 2),
        *["-"] * 4,
        "✕ nothing promised",
    ]


def _part_cells(part: Certificate) -> list[str]:
    deferred = part.threshold == math.inf
    kept = "✓ nothing is acted on" if deferred else "✓ shown" if part.certified else "✕ not shown"
    names = {
        "all": f"all {part.unit}s",
        "accepted": "rows acted on",
        "cost": f"cost of a {part.unit}",
    }
    name = names.get(part.name, part.name)
    if part.population == "predicted":
        name = f"predicted {part.name}"
    if part.population == "class":
        name = f"truly {part.name}"
    if isinstance(part, CostCertificate):
        wrong, bound = f"{part.mean_cost:.4g}", f"{part.upper_bound * part.largest:.4g}"
        budget = f"{part.budget:g}"
    else:
        wrong = text.percent(part.jcw, 2)
        bound, budget = text.percent_up(part.upper_bound, part.alpha), text.budget(part.alpha)
    return [
        name,
        text.count(part.n),
        text.count(part.accepted),
        wrong,
        "-" if deferred else bound,
        budget,
        text.percent(1.0 - part.rho, 2),
        "never" if deferred else text.threshold(part.threshold),
        kept,
    ]
