"""What the tests of commands share: a table of loans, a model trained on it, and a way to call."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from reliablenet.cli.app import app

Call = Callable[..., Any]


def make_loans(n: int = 1500, seed: int = 0) -> pd.DataFrame:
    """A table as it comes: an id, dates, a note, codes, gaps, and columns that say nothing."""
    rng = np.random.default_rng(seed)
    debt, job = rng.beta(2, 5, n), rng.choice(["office", "trade", "none at all"], n)
    table = pd.DataFrame(
        {
            "customer_id": rng.permutation(n) + 10**6,
            "debt": debt.round(4),
            "job": job,
            "code": rng.choice(["007", "012", "A1"], n),
            "member": pd.array(rng.random(n) < 0.5, "boolean"),
            "opened": pd.date_range("2020-01-01", periods=n, freq="3h").strftime("%Y-%m-%d %H:%M"),
            "note": [f'said "{number}", and left' for number in rng.integers(1e9, size=n)],
            "empty": np.nan,
            "same": "x",
        }
    )
    risk = 9 * debt + 2.0 * (job == "none at all") - 3.5 + rng.logistic(0, 0.4, n)
    table.loc[rng.random(n) < 0.1, ["debt", "member"]] = None
    return table.assign(default=np.where(risk > 0, "yes", "no"))


@pytest.fixture(scope="session")
def call() -> Call:
    """A function that runs a command line in this process."""

    def call(*arguments: object, **settings: Any) -> Any:
        return CliRunner().invoke(app, [str(argument) for argument in arguments], **settings)

    return call


@pytest.fixture(scope="session")
def loans(tmp_path_factory) -> Path:
    """A folder with loans.csv, fresh.csv, and new.csv without what was left out or is not known."""
    folder = tmp_path_factory.mktemp("loans")
    table = make_loans()
    table.to_csv(folder / "loans.csv", index=False)
    make_loans(800, seed=1).to_csv(folder / "fresh.csv", index=False)
    known = make_loans(300, seed=2).drop(columns=["default", "customer_id", "note", "same"])
    known.to_csv(folder / "new.csv", index=False)
    return folder


@pytest.fixture(scope="session")
def trained(loans, call) -> Any:
    """What `train` printed; its model is in the folder."""
    result = call(
        *("train", loans / "loans.csv", "--target", "default", "--alpha", "0.1"),
        *("--out", loans / "model.rnet", "--report", loans / "page.html"),
    )
    assert result.exit_code == 0, result.output
    return result
