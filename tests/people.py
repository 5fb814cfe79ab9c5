"""People with debts, some of whom pay: rows that are learned quickly."""

from __future__ import annotations

import numpy as np
import pandas as pd


def people(n: int, seed: int, noise: float = 0.3) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age, debt = rng.normal(45, 12, n), rng.beta(2, 5, n)
    job = rng.choice(["cook", "clerk", "driver"], n)
    risk = 9 * debt + (job == "cook") + (age - 45) / 30 - 3 + rng.logistic(0, noise, n)
    return pd.DataFrame(
        {
            "id": np.arange(n) + 10**6,
            "age": age.round(1),
            "debt": debt,
            "job": job,
            "race": rng.choice(["A", "B"], n, p=[0.7, 0.3]),
            "y": np.where(risk > 0, "yes", "no"),
        }
    )
