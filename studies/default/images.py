"""What averaged weights, early stopping and moved images bring.

Certified throughput on scikit-learn's handwritten digits as images of 8 by 8, the paper's small convolutional network, mean over seeds.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

import reliablenet as rn
from reliablenet.training import cnn5
from studies.default.fitting import certified_throughput, quietly
from studies.runner import Block, Study

SEEDS = range(5)
ALPHA = 0.02
# A function of one's own is trained without the average.
METHODS: dict[str, Any] = {
    "default": rn.ReliableClassifier(network="cnn5"),
    "default, augmented": rn.ReliableClassifier(network="cnn5", augment="crops"),
    "without the average": rn.ReliableClassifier(network=cnn5),
    "paper's ReliableNet": rn.ReliableClassifier(network=cnn5, schedule="paper"),
    "ERM, early stop": rn.ERMClassifier(network=cnn5, checkpoint="selection"),
}


def throughput(
    method: Any, images: NDArray[np.float32], labels: NDArray[np.intp]
) -> dict[str, float]:
    """Return the mean and the standard deviation over the seeds."""
    values = []
    with quietly():
        for seed in SEEDS:
            settings = {"alpha": ALPHA, "batch_size": 64, "random_state": seed, "verbose": False}
            fitted = method.set_params(**settings).fit(images, labels)
            values.append(certified_throughput(fitted.certificate_))
    return {"mean": round(float(np.mean(values)), 4), "sd": round(float(np.std(values, ddof=1)), 4)}


def blocks() -> list[Block]:
    """Return the methods."""
    digits = load_digits()
    images = (digits.images[:, None] / 16).astype("float32")
    fixed = {"images": len(images), "alpha": ALPHA, "seeds": len(SEEDS)}
    return [
        Block.once({"method": name} | fixed, partial(throughput, method, images, digits.target))
        for name, method in METHODS.items()
    ]


STUDY = Study(
    "default",
    "images",
    about="What do averaged weights, early stopping and moved images bring?",
    cost="twenty minutes",
    blocks=blocks,
)
