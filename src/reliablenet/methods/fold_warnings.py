"""What a user should know of the folds before anything is learned from them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from reliablenet._warn import warn_user
from reliablenet.data.copies import count_copies
from reliablenet.data.folds import Folds
from reliablenet.errors import FoldWarning


def warn_of_missing_classes(folds: Folds, classes: NDArray[Any]) -> None:
    """Warn of classes that a fold lacks; labels are class indices."""
    gaps = []
    for name, fold in vars(folds).items():
        missing = classes[np.bincount(fold.y, minlength=len(classes)) == 0]
        if len(missing) and len(fold):  # a method that trains nothing has no training fold
            gaps.append(f"{name} fold: {missing[:10].tolist()}")
    if gaps:
        where = "; ".join(gaps)
        warn_user(
            f"Some classes are missing from a fold ({where}). A class that training never sees "
            "cannot be predicted, and a certificate says little about one that the "
            "certification fold lacks. Merge rare classes or give more rows.",
            FoldWarning,
        )


def warn_of_copies(folds: Folds, alpha: float) -> None:
    """Warn of certification rows that training or selection has seen."""
    found = count_copies(folds.certification, (folds.train, folds.selection))
    if found.suspicious:
        warn_user(
            f"{found.copies} of {found.n} certification rows ({found.share:.0%}) are copies of "
            "training or selection rows, label included. A model that knows them by heart is right "
            f"on the copies alone, so that JCW on other rows may exceed alpha = {alpha:g}. Drop "
            "duplicates, or name the copies of a row alike in `groups`; only if new rows will "
            "repeat these just as often, all is well.",
            FoldWarning,
        )
