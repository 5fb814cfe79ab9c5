"""What averaged weights, early stopping and moved images bring: python benchmarks/images.py.

Certified throughput on scikit-learn's handwritten digits as images of 8 by 8, the paper's small convolutional network, mean over seeds.
Writes images_results.json.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_digits

import reliablenet as rn
from reliablenet.training import cnn5

RESULTS = Path(__file__).with_name("images_results.json")
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


def main() -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    digits = load_digits()
    images = (digits.images[:, None] / 16).astype("float32")
    found = {}
    for name, method in METHODS.items():
        values = []
        for seed in SEEDS:
            settings = {"alpha": ALPHA, "batch_size": 64, "random_state": seed, "verbose": False}
            certificate = method.set_params(**settings).fit(images, digits.target).certificate_
            values.append(certificate.throughput if certificate.certified else 0.0)
        found[name] = {
            "mean": round(float(np.mean(values)), 4),
            "sd": round(float(np.std(values, ddof=1)), 4),
        }
        print(name, found[name], flush=True)
    result = {"images": len(images), "alpha": ALPHA, "seeds": len(SEEDS), "throughput": found}
    RESULTS.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
