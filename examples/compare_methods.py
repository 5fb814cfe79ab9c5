"""Which method is best on my table: python examples/compare_methods.py [FILE.csv TARGET [ALPHA]]

Without arguments: digits 3 and 8 of scikit-learn's handwritten digits, as noisy as a bad scan.
"""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

import reliablenet as rn
from reliablenet.tables import TabularEncoder


def table() -> tuple[pd.DataFrame, pd.Series, float]:
    if len(sys.argv) > 2:
        frame = pd.read_csv(sys.argv[1])
        alpha = float(sys.argv[3]) if len(sys.argv) > 3 else 0.05
        return frame.drop(columns=sys.argv[2]), frame[sys.argv[2]], alpha
    X, y = load_digits(return_X_y=True, as_frame=True)
    chosen = y.isin([3, 8])
    noise = np.random.default_rng(0).normal(0, 8, (int(chosen.sum()), X.shape[1]))
    return X[chosen] + noise, y[chosen], 0.1


def main() -> None:
    X, y, alpha = table()
    mine = make_pipeline(TabularEncoder(), KNeighborsClassifier(15))
    methods = {"neighbours": mine} | {
        name: method
        for name, method in rn.methods.default_methods().items()
        if name in ("reliablenet", "erm_early_stopped", "boosting")
    }
    comparison = rn.compare(X, y, alpha=alpha, methods=methods)
    columns = ["throughput", "throughput_low", "throughput_high", "certified", "errors", "n"]
    print(comparison.to_frame()[columns].round(3).to_string())
    best = comparison.best()
    print(f"\n{best}")
    if best.certificate is not None:
        print(f"Its certificate, for the best of {len(methods)}: {best.certificate.reason}.")


if __name__ == "__main__":
    main()
