"""What is proved: counts in, bounds out. Never imports torch."""

from reliablenet.certificate.anytime import anytime_upper
from reliablenet.certificate.bounds import clopper_pearson_upper, hoeffding_upper, uniform_slack
from reliablenet.certificate.partitions import certify_partitions
from reliablenet.certificate.planning import (
    certification_power,
    certification_rows,
    largest_certifiable_errors,
    rows_for_errors,
    rows_needed,
)
from reliablenet.certificate.promise import Promise
from reliablenet.certificate.record import Certificate, Provenance
from reliablenet.certificate.rule import Rule
from reliablenet.certificate.rule_certificate import RuleCertificate
from reliablenet.certificate.rule_certify import certified_rule
from reliablenet.certificate.shift import (
    Sensitivity,
    bound_under_shift,
    keep_by_weight,
    sensitivity,
    shift_to_reach,
)
from reliablenet.certificate.threshold import (
    certified_threshold,
    certify,
    conformal_threshold,
    jcw_threshold,
)

__all__ = [
    "Certificate",
    "Promise",
    "Provenance",
    "Rule",
    "RuleCertificate",
    "Sensitivity",
    "anytime_upper",
    "bound_under_shift",
    "certification_power",
    "certification_rows",
    "certified_rule",
    "certified_threshold",
    "certify",
    "certify_partitions",
    "clopper_pearson_upper",
    "conformal_threshold",
    "hoeffding_upper",
    "jcw_threshold",
    "keep_by_weight",
    "largest_certifiable_errors",
    "rows_for_errors",
    "rows_needed",
    "sensitivity",
    "shift_to_reach",
    "uniform_slack",
]
