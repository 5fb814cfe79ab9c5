"""What a user should know of the folds before anything is learned from them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reliablenet._warn import warn_user
from reliablenet.certificate import Certificate
from reliablenet.certificate.wording import emptiness, threshold_text
from reliablenet.errors import (
    EmptyCertificateWarning,
    FoldWarning,
    NotCertifiedWarning,
    ReuseWarning,
)
from reliablenet.tables.copies import Copies, count_copies
from reliablenet.tables.folds import Folds


def warn_of_missing_classes(folds: Folds, classes: NDArray[Any]) -> None:
    """Warn of classes that a fold lacks; labels are class indices."""
    gaps = []
    for name, fold in vars(folds).items():
        known = fold.y[fold.y >= 0]
        missing = classes[np.bincount(known, minlength=len(classes)) == 0]
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
            "on the copies alone, so that the share of other rows acted on wrongly may exceed alpha = "
            f"{alpha:g}. Drop duplicates, or give the copies of a row the same name in `groups`. "
            "If the source itself repeats its rows this often, the certificate holds for it.",
            FoldWarning,
        )


def warn_of_repeats(found: Copies) -> None:
    """Warn of certification rows that repeat each other."""
    if found.suspicious:
        warn_user(
            f"{found.copies} of {found.n} certification rows ({found.share:.0%}) repeat another one, "
            "label included. Copies are not independent, and the bound counts each: it is too small. "
            f"There are {found.distinct} different rows. Drop duplicates, or give the copies of a row "
            "the same name in `groups`, so that each counts once.",
            FoldWarning,
        )


def warn_of_reuse(uses: int) -> None:
    """Warn if certification rows have served other certificates before."""
    if uses > 1:
        warn_user(
            f"These certification rows have now been used for {uses} certificates. Each may fail with "
            "probability rho; whoever keeps the one that passed has a larger risk. Certify once, on "
            "rows that nothing else has looked at, or let `compare` choose: it allows for the choice.",
            ReuseWarning,
        )


def warn_of_pipeline(model: Any) -> None:
    """Warn if the certification rows are about to be cut from what a pipeline has learned from."""
    context: Any = getattr(model, "_parent_callback_ctx", None)  # scikit-learn says who calls `fit`
    if context is None or context.estimator_name != "Pipeline" or context.task_id == 0:
        return  # the first step of a pipeline has none before it
    name = type(model).__name__
    warn_user(
        f"{name} is the last step of a Pipeline: the steps before it have seen the rows that it is "
        "going to certify on, so that the certificate may be false. Put the pipeline inside, "
        "CertifiedThreshold(make_pipeline(...)), or give rows that no step has seen as "
        "`certification=`.",
        ReuseWarning,
    )


def warn_of_verdict(name: str, certificate: Certificate, threshold: float) -> None:
    """Warn if there is no certificate, or one that is worth nothing."""
    if certificate.empty:
        warn_user(
            f"The certificate of {name} is worth nothing: {emptiness(certificate)}.",
            EmptyCertificateWarning,
        )
    if not certificate.certified:
        acts = threshold < math.inf
        action = (
            f"acts from {threshold_text(threshold)} on without it" if acts else "defers every row"
        )
        warn_user(
            f"{name} got no certificate and {action}: {certificate.reason}.", NotCertifiedWarning
        )
