"""What a certificate is worth when the groups are mixed anew: Coloured MNIST along its sweep.

Nine digits in ten have their own colour where the network is trained and certified, and fewer and fewer where it is
used. Nothing else changes, so the groups "own colour" and "another colour" are only mixed anew. A certificate overall
says nothing of that; one for each group holds for every mixture. The group is known for labelled rows alone, because
it is made from the label, so both groups share a threshold. What such a certificate is worth is for training to
decide, so a network to which both groups weigh alike is tried too.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.neural_network import MLPClassifier

from reliablenet import Promise, certified_rule
from reliablenet.certificate import RuleCertificate
from reliablenet.datasets.coloured_mnist import CORRELATIONS, TEST_STREAM, WEAKENING, load
from reliablenet.datasets.colouring import draw_colours
from reliablenet.tables.folds import Fold
from studies.default.fitting import SEEDS, quietly
from studies.runner import Block, Study

IMAGES, ALPHA, RHO, CORRELATION = 12_000, 0.05, 0.05, 0.9
HIDDEN, EPOCHS = 128, 30
OWN, OTHER = "own colour", "another colour"
BY_GROUP = Promise.by_group(ALPHA, by="colour", common=True)
CASES = {  # what is promised, and whether both groups weigh alike in training
    "overall": (Promise.overall(ALPHA), False),
    "by group": (BY_GROUP, False),
    "by group, trained alike": (BY_GROUP, True),
}


def colour_groups(fold: Fold, correlation: float, seed: int, stream: int) -> NDArray[np.str_]:
    """Return for each digit whether it has its own colour: the dataset's first draw from its stream."""
    random = np.random.default_rng([seed, stream])
    return np.where(draw_colours(fold.y, correlation, random) == fold.y, OWN, OTHER)


def flatten(fold: Fold) -> NDArray[np.float32]:
    """Return one value of each square of pixels that the weakening made alike: nothing is lost."""
    step = WEAKENING.downsampling
    return fold.X[:, :, ::step, ::step].reshape(len(fold.X), -1)


def sweep(seed: int) -> list[dict[str, Any]]:
    """Return, for each certificate and correlation, what its rule does on MNIST's test images."""
    data = load(seed, CORRELATION, images=IMAGES)
    networks = {alike: _trained(data.folds.train, seed, alike) for alike in (False, True)}
    # nothing was selected, so both other folds certify
    held_out = [(1, data.folds.selection), (2, data.folds.certification)]
    X, y = (
        np.vstack([flatten(fold) for _, fold in held_out]),
        np.concatenate([fold.y for _, fold in held_out]),
    )
    colour = np.concatenate(
        [colour_groups(fold, CORRELATION, seed, stream) for stream, fold in held_out]
    )
    certificates = {
        name: certified_rule(
            networks[alike].predict_proba(X), y, promise, RHO, by={"colour": colour}
        )
        for name, (promise, alike) in CASES.items()
    }
    records = []
    for correlation in CORRELATIONS:
        fold = data.sweeps[correlation]
        colours = colour_groups(fold, correlation, seed, TEST_STREAM)
        found = {alike: net.predict_proba(flatten(fold)) for alike, net in networks.items()}
        records += [
            {"case": name, "correlation": correlation}
            | _certified(certificate)
            | _counts(certificate, found[CASES[name][1]], fold.y, colours)
            for name, certificate in certificates.items()
        ]
    return records


def _trained(fold: Fold, seed: int, alike: bool) -> MLPClassifier:
    """Return a network, trained with all digits alike or with both groups alike."""
    network = MLPClassifier(HIDDEN, max_iter=EPOCHS, alpha=1e-3, random_state=seed)
    own = colour_groups(fold, CORRELATION, seed, 0) == OWN
    weight = np.where(own, 0.5 / own.mean(), 0.5 / (1.0 - own.mean()))
    with quietly():
        return network.fit(flatten(fold), fold.y, weight if alike else None)


def _certified(certificate: RuleCertificate) -> dict[str, Any]:
    return {
        "certified": certificate.certified,
        "rows": certificate.n,
        "threshold": round(float(next(iter(certificate.rule.thresholds.values()))), 6),
    }


def _counts(
    certificate: RuleCertificate,
    proba: NDArray[np.float64],
    y: NDArray[np.intp],
    colours: NDArray[np.str_],
) -> dict[str, int]:
    accepted = certificate.rule.accept(proba)
    wrong = proba.argmax(axis=1) != y
    own = colours == OWN
    counts = {
        "n": len(y),
        "accepted": accepted.sum(),
        "errors": (accepted & wrong).sum(),
        "own": own.sum(),
        "own_errors": (own & accepted & wrong).sum(),
    }
    return {name: int(count) for name, count in counts.items()}


def blocks() -> list[Block]:
    """Return the seeds."""
    fixed = {"images": IMAGES, "alpha": ALPHA, "rho": RHO, "hidden": HIDDEN, "epochs": EPOCHS}
    return [Block.once({"seed": seed} | fixed, partial(sweep, seed)) for seed in SEEDS]


STUDY = Study(
    "guarantees",
    "remixing",
    about="Which certificate holds when groups are mixed anew (Coloured MNIST)?",
    cost="three minutes; needs the source files",
    blocks=blocks,
)
