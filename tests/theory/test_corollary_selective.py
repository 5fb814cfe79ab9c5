"""Corollary selective: if JCW <= alpha, the error rate of accepted rows is at most alpha / Cov."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import assume, given, strategies as st

from reliablenet.certificate import certify, jcw_threshold

ROW = st.tuples(st.integers(0, 10), st.booleans())


@given(rows=st.lists(ROW, min_size=1, max_size=40), alpha=st.sampled_from([0.05, 0.1, 0.3, 0.5]))
def test_a_rule_within_budget_errs_on_accepted_rows_at_most_alpha_over_coverage(rows, alpha):
    right = [int(is_right) for _, is_right in rows]
    given_rows = {"score": [score for score, _ in rows], "predicted": [1] * len(rows)}
    threshold = jcw_threshold(None, right, alpha, **given_rows)
    certificate = certify(None, right, threshold, alpha, **given_rows)
    assert certificate.jcw <= alpha

    accepted = [is_right for score, is_right in rows if score >= threshold]
    assume(accepted)
    error_rate = Fraction(accepted.count(False), len(accepted))
    # The budget in whole rows, so that the decimal alpha is not at the mercy of binary rounding.
    budget = Fraction(alpha).limit_denominator(100)
    assert error_rate <= budget / Fraction(len(accepted), len(rows))
