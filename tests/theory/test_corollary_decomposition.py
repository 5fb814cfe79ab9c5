"""Corollary decomposition: JCW = Cov (1 - Acc_hc), and JCW <= alpha iff Acc_hc >= 1 - alpha / Cov."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given, strategies as st

from reliablenet.certificate import certify

ROW = st.tuples(st.integers(0, 10), st.booleans())


@given(
    rows=st.lists(ROW, min_size=1, max_size=40),
    threshold=st.integers(0, 10),
    percent=st.integers(1, 99),
)
def test_jcw_is_coverage_times_the_error_rate_of_accepted_rows(rows, threshold, percent):
    scores = [score for score, _ in rows]
    right = [int(is_right) for _, is_right in rows]
    certificate = certify(None, right, threshold, score=scores, predicted=[1] * len(rows))

    accepted = [is_right for score, is_right in rows if score >= threshold]
    coverage = Fraction(len(accepted), len(rows))
    assert certificate.coverage == float(coverage)
    if not accepted:
        assert certificate.jcw == 0
        return
    accuracy = Fraction(sum(accepted), len(accepted))
    jcw = coverage * (1 - accuracy)
    assert certificate.jcw == float(jcw)
    assert certificate.throughput == float(coverage * accuracy)
    alpha = Fraction(percent, 100)
    assert (jcw <= alpha) == (accuracy >= 1 - alpha / coverage)
