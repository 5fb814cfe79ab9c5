"""From a CSV file to a certified model: python table_to_certificate.py FILE.csv TARGET [ALPHA].

Without arguments it makes a small loan table of its own, with categories and missing values.
"""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd

import reliablenet as rn


def loans(n: int = 4000, seed: int = 0) -> pd.DataFrame:
    random = np.random.RandomState(seed)
    income = random.lognormal(10.3, 0.5, n).round(2)
    job = random.choice(["office", "trade", "none"], n, p=[0.5, 0.4, 0.1])
    debt = income * random.beta(2, 5, n)
    risk = 3 * debt / income + 1.5 * (job == "none") - 1.5 + random.logistic(0, 0.35, n)
    table = pd.DataFrame({"income": income, "debt": debt, "job": job})
    table.loc[random.uniform(size=n) < 0.05, "income"] = np.nan
    table["default"] = np.where(risk > 0, "yes", "no")
    return table


def main(arguments: list[str]) -> None:
    if arguments:
        table, target = pd.read_csv(arguments[0]), arguments[1]
    else:
        table, target = loans(), "default"
    alpha = float(arguments[2]) if len(arguments) > 2 else 0.05

    clf = rn.ReliableClassifier(alpha=alpha, random_state=0)
    clf.fit(table.drop(columns=target), table[target])

    certificate = clf.certificate_
    print("certified:", certificate.certified)
    print("because:  ", certificate.reason)
    print("acts on:  ", f"{certificate.coverage:.1%} of rows, at confidence {clf.threshold_:.3f}")
    print("saved to: ", clf.save("model.rnet"))
    print(rn.load("model.rnet").decide(table.drop(columns=target).head()).to_frame())


if __name__ == "__main__":
    main(sys.argv[1:])
