"""How far a source may move, in words that never claim more than the numbers."""

from __future__ import annotations

from hypothesis import given, strategies as st

from reliablenet.certificate import Certificate, bound_under_shift
from reliablenet.certificate.shift_wording import survival


@given(errors=st.integers(0, 30), n=st.integers(60, 3000), alpha=st.floats(0.01, 0.5))
def test_the_sentence_never_claims_more_than_the_card(errors, n, alpha) -> None:
    certificate = Certificate(min(errors, n), n, n, alpha=alpha, rho=0.05, threshold=0.9)
    text = survival(certificate)
    if not certificate.certified:
        assert text == ""
        return
    assert text.endswith("(sensitivity, not a promise)")
    assert "certif" not in text
    if text.startswith("would survive"):
        elsewhere, times = (float(text.split(word)[1].split()[0]) for word in ("if ", "more than "))
        assert bound_under_shift(certificate.upper_bound, elsewhere / 100) <= alpha + 1e-12
        assert bound_under_shift(certificate.upper_bound, times, "likelihood ratio") <= alpha + 1e-9
