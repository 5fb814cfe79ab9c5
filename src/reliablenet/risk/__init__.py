"""What is controlled: the confident-wrong event and its smooth surrogates, on tensors."""

from reliablenet.risk.event import confidence, confident_wrong, margin, violation
from reliablenet.risk.surrogate import Bracket, bracket, gap, phi, psi, zeta, zeta_reflected

__all__ = [
    "Bracket",
    "bracket",
    "confidence",
    "confident_wrong",
    "gap",
    "margin",
    "phi",
    "psi",
    "violation",
    "zeta",
    "zeta_reflected",
]
