"""Our default on tables that nobody tuned it on: python benchmarks/untuned.py.

Every method of `compare` with its defaults, on the same folds, on tables that come with scikit-learn and statsmodels; certified
throughput, mean over seeds. Writes untuned_results.json after each table, and goes on where it was.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import statsmodels.api as sm
import torch
from sklearn.datasets import load_breast_cancer, load_digits

import reliablenet as rn

RESULTS = Path(__file__).with_name("untuned_results.json")
SEEDS = (0, 1, 2)
Table = tuple[pd.DataFrame, pd.Series, float]  # with the budget


def affairs() -> Table:
    """6,366 answers to a magazine's survey: any affair?"""
    table = sm.datasets.fair.load_pandas().data
    return table.drop(columns="affairs"), table["affairs"] > 0, 0.1


def doctors() -> Table:
    """20,190 years of the RAND health insurance experiment: any visit to a doctor?"""
    table = sm.datasets.randhie.load_pandas().data
    return table.drop(columns="mdvis"), table["mdvis"] > 0, 0.1


def tumours() -> Table:
    """569 patients of Wisconsin: malignant or benign?"""
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    return X, y, 0.05


def digits() -> Table:
    """1,797 digits of 64 pixels, as a table."""
    X, y = load_digits(return_X_y=True, as_frame=True)
    return X, y, 0.02


TABLES: dict[str, Callable[[], Table]] = {
    "affairs": affairs,
    "doctors": doctors,
    "tumours": tumours,
    "digits": digits,
}


def throughputs(name: str) -> dict[str, float]:
    """Return the certified throughput of each method, mean over the seeds."""
    X, y, alpha = TABLES[name]()
    runs = []
    for seed in SEEDS:
        found = rn.compare(X, y, alpha=alpha, random_state=seed, resamples=1, verbose=False)
        runs.append({r.name: r.certified_throughput for r in found.results.values()})
    return pd.DataFrame(runs).mean().round(4).sort_values(ascending=False).to_dict()


def main() -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    done = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name in TABLES:
        if name not in done:
            X, _, alpha = TABLES[name]()
            done[name] = {"rows": len(X), "alpha": alpha, "seeds": len(SEEDS)}
            done[name]["throughput"] = throughputs(name)
            RESULTS.write_text(json.dumps(done, indent=1) + "\n")
        best = max(done[name]["throughput"].values())
        ours = done[name]["throughput"]["reliablenet"]
        print(f"{name}: {ours:.4f}, {ours / best:.3f} of the best", flush=True)


if __name__ == "__main__":
    main()
