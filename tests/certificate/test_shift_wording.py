"""How far a source may move, in words that never claim more than the numbers."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given, strategies as st
from rule_examples import make

from reliablenet.certificate import Certificate, bound_under_shift
from reliablenet.certificate.shift import sensitivities
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


def test_of_several_parts_the_one_that_bears_least_is_named():
    text = survival(make("groups"))
    cards = sensitivities(make("groups"))
    assert set(cards) == {"race=A", "race=B"}
    weakest = min(cards, key=lambda name: cards[name].reach["likelihood ratio"])
    assert text.startswith(
        (f"the weakest part, {weakest}, would", f"of the weakest part, {weakest}, the budget")
    )
    few, many = (
        Certificate(1, 120, n, alpha=0.05, rho=0.05, threshold=0.9, name=name)
        for n, name in ((153, "z"), (900, "a"))
    )
    for parts in ((few, many), (many, few)):
        assert survival(SimpleNamespace(parts=parts, unit="row")).startswith(
            "the weakest part, z, would survive if 1.93 %"
        )
    assert not survival(make("overall")).startswith("all")


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (
            Certificate(0, 120, 153, alpha=0.05, rho=0.05, threshold=0.9),
            "would survive if 3.06 % of rows came from anywhere else, or if no kind of row became more "
            "than 2.57 times as common or rare (sensitivity, not a promise)",
        ),
        (
            Certificate(3, 120, 153, alpha=0.05, rho=0.05, threshold=0.9, kind="monotone"),
            "the budget is spent: it would survive hardly any change of the source "
            "(sensitivity, not a promise)",
        ),
        (Certificate(9, 120, 153, alpha=0.05, rho=0.05, threshold=0.9), ""),
    ],
)
def test_the_sentence_is_this(made, text):
    assert survival(made) == text


def test_what_survives_is_told_of_groups() -> None:
    assert survival(
        Certificate(1, 120, 153, alpha=0.05, rho=0.05, threshold=0.9, unit="group")
    ) == (
        "would survive if 1.93 % of groups came from anywhere else, or if no kind of group became more than "
        "1.63 times as common or rare (sensitivity, not a promise)"
    )
