"""Tables: our results beside the paper's, and methods by what they can be certified to do.

Standard deviations are those of a sample, as the paper's are.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np
import pandas as pd

from reliablenet.bench.methods import Point, study_methods
from reliablenet.bench.profiles import Profile
from reliablenet.bench.results import (
    MEASURES,
    NoRunsError,
    finished_curves,
    results_frame,
    stack_curves,
)
from reliablenet.bench.store import GRID, Store

TITLES = {
    "accuracy": "Acc",
    "coverage": "Cov",
    "accuracy_accepted": "Acc_HC",
    "jcw": "JCW",
    "budget_spent": "JCW/alpha",
    "throughput": "T",
    "aurc": "AURC (cert.)",
    "aurc_shift": "AURC (shift)",
    "jcw_shift": "JCW (shift)",
    "coverage_shift": "Cov (shift)",
    "ece": "ECE",
}
DIGITS = {"jcw": 4, "aurc": 4, "aurc_shift": 4, "jcw_shift": 4, "budget_spent": 2}
REFERENCE = "reliablenet_last+certified"
EQUAL_COVERAGES = (0.5, 0.75)  # of those at which curves are stored


@dataclass(frozen=True)
class Table:
    """A table of text cells under column titles, for people; ``numbers`` holds what it is made of."""

    caption: str
    cells: pd.DataFrame
    numbers: pd.DataFrame

    def markdown(self) -> str:
        """Return the table in Markdown."""
        lines = [
            f"**{self.caption}**\n",
            "| " + " | ".join(self.cells.columns) + " |",
            "|" + " --- |" * len(self.cells.columns),
        ]
        lines += ["| " + " | ".join(row) + " |" for row in self.cells.itertuples(index=False)]
        return "\n".join(lines) + "\n"

    def csv(self) -> str:
        """Return the numbers as CSV."""
        return self.numbers.to_csv(index=False)

    def latex(self) -> str:
        """Return the table as a LaTeX tabular."""
        cells = self.cells.rename(columns=_escape).map(_escape)
        width = "l" * 2 + "r" * (cells.shape[1] - 2)
        lines = [f"\\begin{{tabular}}{{{width}}}", "\\toprule"]
        lines += [" & ".join(cells.columns) + " \\\\", "\\midrule"]
        lines += [" & ".join(row) + " \\\\" for row in cells.itertuples(index=False)]
        return "\n".join([*lines, "\\bottomrule", "\\end{tabular}"]) + "\n"


def paper_values() -> dict[str, dict[str, dict[str, Any]]]:
    """Return the paper's in-distribution tables: dataset, method, measure to (mean, sd)."""
    text = files("reliablenet.bench").joinpath("paper_values.json").read_text()
    values: dict[str, dict[str, dict[str, Any]]] = json.loads(text)["values"]
    return values


def in_distribution(store: Store, profile: Profile, methods: Sequence[str] | None = None) -> Table:
    """Return the paper's main table with ours: each method's row, and below it the paper's own.

    Parameters
    ----------
    store : Store
    profile : Profile
    methods : sequence of str, optional
        By default all.

    Returns
    -------
    Table
        "JCW <= alpha" compares what was observed; "certified" is the Clopper-Pearson certificate.
        They are different things, and K of n shows why. The paper's count of certified seeds
        stands, starred, under the first, which is what its numbers match.
    """
    runs = results_frame(store, profile)
    published = paper_values()
    cells, numbers = [], []
    for plan in profile.plans:
        for method in methods or [one.name for one in study_methods()]:
            group = runs[(runs["plan"] == plan) & (runs["method"] == method)]
            if len(group) == 0:
                continue
            cells.append({"dataset": plan, "method": method} | _our_cells(group))
            numbers.append({"dataset": plan, "method": method} | _our_numbers(group))
            theirs = published.get(plan, {}).get(method)
            if theirs is not None and profile.plans[plan].dataset == plan:
                cells.append({"dataset": "", "method": "(paper)"} | _paper_cells(theirs))
    return Table(
        f"In distribution, profile {profile.name}: mean ± sd over seeds",
        pd.DataFrame(cells).fillna(""),
        pd.DataFrame(numbers),
    )


def _our_numbers(group: pd.DataFrame) -> dict[str, Any]:
    row: dict[str, Any] = {"seeds": len(group), "alpha": group["alpha"].iloc[0]}
    for name in MEASURES:
        row[name], row[f"{name}_sd"] = group[name].mean(), group[name].std(ddof=1)
    row["within_alpha"] = int(group["within_alpha"].sum())
    row["certified"] = int(group["certified"].sum())
    row["share_of_best"] = (group["throughput"] / group["best_throughput"]).mean()
    row["counts"] = " ".join(
        f"{errors}/{n}" for errors, n in zip(group["errors"], group["n"], strict=True)
    )
    return row


def _our_cells(group: pd.DataFrame) -> dict[str, str]:
    row = {
        TITLES[name]: _mean_sd(group[name].mean(), group[name].std(ddof=1), name)
        for name in MEASURES
    }
    seeds = len(group)
    row["JCW <= alpha"] = f"{int(group['within_alpha'].sum())}/{seeds}"
    row["certified"] = f"{int(group['certified'].sum())}/{seeds}"
    share = (group["throughput"] / group["best_throughput"]).mean()
    row["T / best"] = "" if np.isnan(share) else f"{share:.3f}"
    row["K of n, by seed"] = (
        f"{', '.join(str(errors) for errors in group['errors'])} of {group['n'].iloc[0]}"
    )
    return row


def _paper_cells(values: dict[str, Any]) -> dict[str, str]:
    row = {
        title: _mean_sd(values[name][0], values[name][1], name)
        for name, title in TITLES.items()
        if name in values
    }
    return row | {"JCW <= alpha": f"{values['claimed_certified']}/5 *"}


def _mean_sd(mean: float, sd: float, name: str) -> str:
    digits = DIGITS.get(name, 3)
    if np.isnan(mean):
        return ""
    return f"{mean:.{digits}f}" if np.isnan(sd) else f"{mean:.{digits}f} ± {sd:.{digits}f}"


def agreement(store: Store, profile: Profile) -> Table:
    """Return how far our means of the paper's own method lie from its, in its standard deviations over seeds.

    Parameters
    ----------
    store : Store
    profile : Profile

    Returns
    -------
    Table
    """
    method = "reliablenet_last@eps"
    runs = results_frame(store, profile)
    published = paper_values()
    rows = []
    for plan, settings in profile.plans.items():
        group = runs[(runs["plan"] == plan) & (runs["method"] == method)]
        theirs = published.get(plan, {}).get(method)
        if len(group) == 0 or theirs is None or settings.dataset != plan:
            continue
        for name in ("accuracy", "coverage", "accuracy_accepted", "jcw", "aurc_shift", "ece"):
            mean, sd = theirs[name]
            ours = group[name].mean()
            distance = abs(ours - mean) / sd if sd else np.nan
            rows.append(
                {
                    "dataset": plan,
                    "measure": TITLES[name],
                    "ours": ours,
                    "ours_sd": group[name].std(ddof=1),
                    "paper": mean,
                    "paper_sd": sd,
                    "distance": distance,
                }
            )
    numbers = pd.DataFrame(rows)
    names = {title: name for name, title in TITLES.items()}
    cells = [
        {
            "dataset": row["dataset"],
            "measure": row["measure"],
            "ours": _mean_sd(row["ours"], row["ours_sd"], names[row["measure"]]),
            "paper": _mean_sd(row["paper"], row["paper_sd"], names[row["measure"]]),
            "distance in the paper's sd": f"{row['distance']:.1f}",
            "within two": "yes" if row["distance"] <= 2 else "no",
        }
        for row in rows
    ]
    return Table(f"{method}: ours and the paper's", pd.DataFrame(cells), numbers)


def ranking(store: Store, profile: Profile, reference: str = REFERENCE) -> Table:
    """Return methods by certified throughput, with paired differences to ReliableNet.

    Parameters
    ----------
    store : Store
    profile : Profile
    reference : str
        What to compare with, seed by seed.

    Returns
    -------
    Table
    """
    runs = results_frame(store, profile)
    runs = runs[runs["point"] == Point.CERTIFIED]
    rows = []
    for plan in profile.plans:
        table = runs[runs["plan"] == plan].pivot(
            index="seed", columns="method", values="certified_throughput"
        )
        for method in table.mean().sort_values(ascending=False, kind="stable").index:
            row: dict[str, Any] = {
                "dataset": plan,
                "method": method,
                "seeds": int(table[method].count()),
                "throughput": table[method].mean(),
                "throughput_sd": table[method].std(ddof=1),
            }
            if reference in table:
                difference = (table[method] - table[reference]).dropna()
                row["difference"], row["difference_sd"] = difference.mean(), difference.std(ddof=1)
                row["better"] = int((difference > 0).sum())
            rows.append(row)
    if not rows:
        raise NoRunsError(store, profile)
    numbers = pd.DataFrame(rows)
    cells = pd.DataFrame(
        {
            "dataset": numbers["dataset"],
            "method": numbers["method"],
            "certified throughput": [
                f"{mean:.3f} ± {sd:.3f}"
                for mean, sd in zip(numbers["throughput"], numbers["throughput_sd"], strict=True)
            ],
        }
    )
    if "difference" in numbers:
        cells[f"less {reference}"] = [
            "" if np.isnan(mean) else f"{mean:+.3f} ± {sd:.3f}"
            for mean, sd in zip(numbers["difference"], numbers["difference_sd"], strict=True)
        ]
        cells["better in"] = [
            "" if np.isnan(better) else f"{better:.0f}/{seeds}"
            for better, seeds in zip(numbers["better"], numbers["seeds"], strict=True)
        ]
    return Table(f"Certified throughput, profile {profile.name}", cells, numbers)


def matched_coverage(store: Store, profile: Profile) -> Table:
    """Return JCW under the first shift where every method accepts the same share of rows.

    A rule that defers more makes fewer mistakes; at one coverage only the ranking of rows counts.

    Parameters
    ----------
    store : Store
    profile : Profile

    Returns
    -------
    Table
    """
    rows, cells = [], []
    methods = [method.name for method in study_methods() if method.at_equal_coverage]
    for plan in profile.plans:
        for method in methods:
            risk = stack_curves(finished_curves(store, profile, plan, method, "shift"))
            if len(risk) == 0:
                continue
            row: dict[str, Any] = {"dataset": plan, "method": method, "seeds": len(risk)}
            cell = {"dataset": plan, "method": method}
            for coverage in EQUAL_COVERAGES:
                jcw = coverage * risk[:, int(np.abs(GRID - coverage).argmin())]
                sd = float(jcw.std(ddof=1)) if len(jcw) > 1 else np.nan
                row[f"jcw_{coverage:g}"], row[f"jcw_{coverage:g}_sd"] = float(jcw.mean()), sd
                cell[f"JCW at coverage {coverage:g}"] = _mean_sd(float(jcw.mean()), sd, "jcw")
            rows.append(row)
            cells.append(cell)
    if not rows:
        raise NoRunsError(store, profile)
    caption = f"JCW under shift at equal coverage, profile {profile.name}: mean ± sd over seeds"
    return Table(caption, pd.DataFrame(cells), pd.DataFrame(rows))


def _escape(text: str) -> str:
    for plain, latex in (("_", "\\_"), ("%", "\\%"), ("±", "$\\pm$"), ("<=", "$\\leq$")):
        text = text.replace(plain, latex)
    return text
