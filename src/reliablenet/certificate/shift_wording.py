"""How far a source may move, in words: sensitivity, and never a promise."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from reliablenet.certificate.shift import sensitivities
from reliablenet.certificate.wording import percent_down

if TYPE_CHECKING:
    from reliablenet.certificate.wording import AnyCertificate


def survival(certificate: AnyCertificate) -> str:
    """Return how far the source may move before the budget could be exceeded, "" without a certificate.

    Sensitivity and no promise: nothing in the rows says how far their source will move. Sizes are
    rounded down. Of a certificate with several parts, the one that bears least is named.

    Examples
    --------
    >>> from reliablenet.certificate.shift_wording import survival
    >>> from reliablenet.certificate import Certificate
    >>> survival(Certificate(1, 120, 153, alpha=0.05, rho=0.05, threshold=0.9))
    'would survive if 1.93 % of rows came from anywhere else, or if no kind of row became more than 1.63 times as common or rare (sensitivity, not a promise)'
    >>> survival(Certificate(3, 120, 153, alpha=0.05, rho=0.05, threshold=0.9, kind="monotone"))
    'the budget is spent: it would survive hardly any change of the source (sensitivity, not a promise)'
    """
    cards = sensitivities(certificate)
    if not cards:
        return ""
    name = min(cards, key=lambda name: cards[name].reach["likelihood ratio"])
    # a sentence must not begin with the name of a column, which would be written large
    card, weakest = cards[name], f"the weakest part, {name}, " * (len(cards) > 1)
    elsewhere = percent_down(card.reach["total variation"])
    unit = certificate.unit
    times = math.floor(100 * card.reach["likelihood ratio"]) / 100
    if times == 1.0:
        return (
            f"{'of ' * bool(weakest)}{weakest}the budget is spent: it would survive hardly any change of the source "
            "(sensitivity, not a promise)"
        )
    return (
        f"{weakest}would survive if {elsewhere} of {unit}s came from anywhere else, or if no kind of {unit} became more "
        f"than {times:g} times as common or rare (sensitivity, not a promise)"
    )
