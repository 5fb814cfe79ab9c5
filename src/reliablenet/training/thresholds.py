"""The threshold of training, from what a warmed-up network says of the selection fold."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from reliablenet.certificate.threshold import jcw_threshold


def training_threshold(logits: Tensor, y: Tensor, quantile: float) -> float:
    """Return the quantile of the confidences of the wrong rows (the paper's epsilon*).

    Without a wrong row even accepting everything keeps the budget, so the answer is then the
    smallest legal threshold, the first number above 1/K.
    """
    top, predicted = torch.softmax(logits.double(), -1).max(-1)
    wrong = top[predicted != y].cpu().numpy()
    lowest = float(np.nextafter(1.0 / logits.shape[-1], 1.0))
    return max(float(np.quantile(wrong, quantile)), lowest) if len(wrong) else lowest


def affordable_threshold(logits: Tensor, y: Tensor, aim: float) -> float:
    """Return the most permissive legal threshold whose JCW on these rows is within the aim; else 1."""
    proba = torch.softmax(logits.double(), -1).cpu().numpy()
    lowest = float(np.nextafter(1.0 / logits.shape[-1], 1.0))
    return min(max(jcw_threshold(proba, y.cpu().numpy(), aim), lowest), 1.0)
