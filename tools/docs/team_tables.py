"""Tables of docs/explanations/default.md about the team, from committed results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from reliablenet.bench.profiles import DATASET_TITLES
from studies.runner import read_records
from tools.docs.markdown import bold, sentence, table

# What the team is compared with on tables that nobody tuned on.
RIVALS = {
    "boosting": "boosting",
    "boosting, slow and shallow": "slow, shallow",
    "boosting, tuned": "tuned",
    "random forest": "forest",
    "logistic regression": "logistic",
}


def draws_of(half: str) -> pd.DataFrame:
    """Return certified throughput and AURC by table, seed and method, of one half of the tables."""
    return pd.DataFrame(
        [
            {
                "table": one["table"],
                "seed": one["seed"],
                "method": name,
                "T": found[0],
                "A": found[1],
            }
            for one in read_records("default", "team")
            if one["half"] == half
            for name, found in one["found"].items()
        ]
    )


def team() -> str:
    """Return the team against its rivals on the tables that are reported."""
    draws = draws_of("reporting")
    means = draws.pivot_table(index="table", columns="method", values="T", sort=False)
    seeds = draws.groupby("table")["seed"].nunique()
    rows: list[list[str]] = []
    for name in map(str, means.index):
        found: Any = means.loc[name]
        best = found[list(RIVALS)].max()
        cells = [
            _best_bold(found[one], found[["team", *RIVALS]].max()) for one in ("team", *RIVALS)
        ]
        share = f"{found['team'] / best:.3f}" if best > 0 else "-"
        rows.append([name, str(seeds[name]), *cells, share])
    total: Any = means.mean()
    cells = [_best_bold(total[one], total[["team", *RIVALS]].max()) for one in ("team", *RIVALS)]
    rows.append(["mean", "", *cells, f"{total['team'] / total[list(RIVALS)].max():.3f}"])
    return table(["table", "seeds", "team", *RIVALS.values(), "team / best rival"], rows)


def team_parts() -> str:
    """Return what each member adds, over those of the sixteen tables that have been run.

    On a table where the team ranks without a fault its area is 0, hence the median of the ratios.
    """
    draws = pd.concat([draws_of(half) for half in ("reporting", "development")])
    by_table = draws.pivot_table(index="table", columns="method", values=["T", "A"])
    rows = []
    for part in by_table["T"].columns.drop(list(RIVALS)):
        areas = (by_table["A"][part] / by_table["A"]["team"]).fillna(1.0)
        rows.append([part, f"{by_table['T'][part].mean():.3f}", f"{areas.median():.3f}"])
    rows.sort(key=lambda row: -float(row[1]))
    return table(["who answers", "certified throughput, mean", "AURC, median, team = 1"], rows)


def scores() -> str:
    """Return what ranking by another number than the highest probability gives, by table."""
    draws = pd.DataFrame(
        [
            {"table": one["table"], "score": name, "T": found[0], "A": found[1]}
            for one in read_records("default", "scores")
            for name, found in one["found"].items()
        ]
    )
    means = draws.groupby(["score", "table"], sort=False).mean().unstack("table")
    rows = [
        [str(score), *(f"{found['T', name]:.3f} / {found['A', name]:.4f}" for name in means["T"])]
        for score, found in means.iterrows()
    ]
    return table(["score", *map(str, means["T"])], rows)


def team_paper() -> str:
    """Return the team beside its network on the tables of the paper."""
    draws = pd.DataFrame(read_records("default", "team_paper"))
    rows = []
    for (name, alpha), found in draws.groupby(["dataset", "alpha"], sort=False):
        both = [f"{found[who].mean():.3f}" for who in ("team", "network")]
        rows.append([f"{DATASET_TITLES[str(name)]}, alpha {alpha:g}", str(len(found)), *both])
    return table(["dataset", "seeds", "team", "its network alone"], rows)


def team_costs() -> str:
    """Return what a fit of the team costs beside boosting, and the size of its file."""
    draws = read_records("default", "team")
    seconds = [one["seconds"] for one in draws]
    sizes = sorted(one["megabytes"] for one in draws)
    return sentence(
        "team_costs",
        draws=len(draws),
        plain=f"{np.median([one['team'] / one['boosting'] for one in seconds]):.0f}",
        tuned=f"{np.median([one['team'] / one['boosting, tuned'] for one in seconds]):.1f}",
        least=f"{sizes[0]:.1f}",
        middle=f"{np.median(sizes):.1f}",
        most=f"{sizes[-1]:.1f}",
    )


def _best_bold(value: float, best: float) -> str:
    text = f"{value:.3f}"
    return bold(text) if text == f"{best:.3f}" else text


PARTS = {
    "scores": scores,
    "team": team,
    "team_costs": team_costs,
    "team_paper": team_paper,
    "team_parts": team_parts,
}
