"""How rows are best divided: python benchmarks/fold_shares.py.

Certified throughput of our default by the share of the selection fold (certification 15 %) and by that of the certification fold
(selection 15 %), on all rows of a dataset, mean over seeds. Writes fold_shares_results.json after each dataset, and goes on where it was.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import torch

import reliablenet as rn
from reliablenet.data import load_dataset

RESULTS = Path(__file__).with_name("fold_shares_results.json")
SEEDS = {"synthetic_band": range(10), "german_credit": range(10), "adult": range(3)}
ALPHA = 0.05
SHARES = {  # selection, certification
    "selection 5 %": (0.05, 0.15),
    "selection 10 %": (0.10, 0.15),
    "15 % and 15 %": (0.15, 0.15),
    "selection 25 %": (0.25, 0.15),
    "certification 10 %": (0.15, 0.10),
    "certification 20 %": (0.15, 0.20),
    "certification 30 %": (0.15, 0.30),
}


def throughput(name: str, shares: tuple[float, float], seed: int) -> float:
    """Return the certified throughput of one fit on all rows of a dataset."""
    parts = list(vars(load_dataset(name, 0).folds).values())
    frame = isinstance(parts[0].X, pd.DataFrame)
    X = (pd.concat if frame else np.concatenate)([part.X for part in parts])
    sizes = (1.0 - sum(shares), *shares)
    model = rn.ReliableClassifier(ALPHA, fold_sizes=sizes, random_state=seed, verbose=False)
    model.fit(X, np.concatenate([part.y for part in parts]))
    return model.certificate_.throughput if model.certificate_.certified else 0.0


def main() -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    done = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name, seeds in SEEDS.items():
        if name not in done:
            found = {
                label: [throughput(name, shares, seed) for seed in seeds]
                for label, shares in SHARES.items()
            }
            means = {label: round(float(np.mean(values)), 4) for label, values in found.items()}
            done[name] = {"seeds": len(seeds), "throughput": means}
            RESULTS.write_text(json.dumps(done, indent=1) + "\n")
            print(name, means, flush=True)


if __name__ == "__main__":
    main()
