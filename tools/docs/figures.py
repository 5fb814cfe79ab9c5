"""Draw the pictures of the pages: make docs-refresh."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from sklearn.ensemble import HistGradientBoostingClassifier

import reliablenet as rn
from reliablenet._drawing import COLOURS
from reliablenet.bench import Store, load_profile
from reliablenet.bench.methods import METHODS, Point
from reliablenet.bench.results import results_frame
from reliablenet.datasets import SyntheticBand
from studies.runner import RESULTS, read_records
from tools.docs.markdown import DOCS

BLUE, ORANGE, GREEN = COLOURS
OURS = ("reliablenet", "tabular", "tabular_constrained")  # trainings of ReliableClassifier


def main(folder: Path = DOCS / "images") -> None:
    """Draw all pictures into a folder."""
    for name, draw in DRAWINGS.items():
        draw().savefig(folder / f"{name}.png", dpi=120, metadata={"Software": None})


def draw_decisions() -> Figure:
    """Draw how often a model is right and wrong by confidence, and where it may act."""
    band = SyntheticBand(random_state=0)
    past, held_out = band.sample(5000), band.sample(3000)
    model = HistGradientBoostingClassifier(random_state=0).fit(past.X, past.y)
    proba = model.predict_proba(held_out.X)
    found = rn.certified_threshold(proba, held_out.y, alpha=0.05)
    confidence, wrong = proba.max(axis=1), proba.argmax(axis=1) != held_out.y
    axes = _axes(7.2, 3.4)
    bins = np.linspace(0.5, 1.0, 41)
    parts = [confidence[wrong], confidence[~wrong]]
    axes.hist(parts, bins, stacked=True, color=[ORANGE, BLUE], label=["wrong", "right"])
    axes.axvspan(0.5, found.threshold, color="0.88", zorder=0)
    axes.axvline(found.threshold, color="0.2", linewidth=1.2)
    top = axes.get_ylim()[1]
    middle = (0.5 + found.threshold) / 2
    axes.text(middle, 0.92 * top, f"defer {1 - found.coverage:.0%}", ha="center", fontsize=11)
    axes.text(
        found.threshold + 0.008,
        0.92 * top,
        f"act on {found.coverage:.0%}:\n{found.jcw:.1%} of all rows\nare acted on wrongly;\ncertified: at most {found.alpha:.0%}",
        va="top",
        fontsize=10,
    )
    axes.set(xlim=(0.5, 1.0), xlabel="confidence", ylabel="rows of the certification fold")
    axes.legend(frameon=False, loc="center left")
    return axes.figure


def draw_guarantee() -> Figure:
    """Draw the true JCW of both rules of the page's own simulation."""
    text = (DOCS / "explanations" / "guarantee.md").read_text()
    names: dict[str, Any] = {"print": lambda *_: None}
    exec(text.split("```python\n")[1].split("```")[0], names)  # noqa: S102 - the page is ours
    axes = _axes(7.2, 3.2)
    bins = np.linspace(0.025, 0.075, 61)
    for (rule, jcw), colour in zip(names["truth"].items(), (BLUE, ORANGE), strict=True):
        above = np.mean(np.array(jcw) > names["alpha"])
        label = f"{rule} threshold: above alpha in {above:.1%}"
        axes.hist(jcw, bins, color=colour, alpha=0.65, label=label)
    axes.axvline(names["alpha"], color="0.2", linewidth=1.2, linestyle="--")
    axes.text(names["alpha"] + 0.0004, 0.97 * axes.get_ylim()[1], "alpha", va="top")
    axes.set(xlabel="true JCW of the chosen threshold", ylabel="draws of 2,000")
    axes.legend(frameon=False, loc="upper left", fontsize=9)
    axes.set_ylim(top=1.25 * axes.get_ylim()[1])
    return axes.figure


def draw_power() -> Figure:
    """Draw how likely a certificate is, by rows and true JCW."""
    axes = _axes(7.2, 3.2)
    rows = np.arange(20, 1001)
    for jcw, colour in zip((0.0, 0.01, 0.02, 0.03), (GREEN, BLUE, ORANGE, "0.5"), strict=True):
        power = rn.certificate.certification_power(rows, 0.05, expected_jcw=jcw)
        axes.plot(rows, power, color=colour, linewidth=1.4, label=f"true JCW {jcw:g}")
    axes.axhline(0.9, color="0.6", linewidth=0.8, linestyle=":")
    axes.set(
        xlim=(0, 1000),
        ylim=(0, 1.02),
        xlabel="rows of the certification fold (alpha 0.05, rho 0.05)",
        ylabel="P(certificate)",
    )
    axes.legend(frameon=False, loc="lower right", fontsize=9)
    return axes.figure


def draw_certified_throughput() -> Figure:
    """Draw certified throughput by method, one panel a dataset, a dot a seed."""
    runs = results_frame(Store(RESULTS / "paper"), load_profile("paper"))
    runs = runs[runs["point"] == Point.CERTIFIED]
    figure = Figure(figsize=(7.2, 2.5), layout="constrained")
    for axes, name in zip(
        figure.subplots(1, 3), ("synthetic_band", "german_credit", "adult"), strict=True
    ):
        table = runs[runs["plan"] == name].pivot(
            index="seed", columns="method", values="certified_throughput"
        )
        order = table.mean().sort_values().index
        for place, method in enumerate(order):
            colour = ORANGE if METHODS[method].training.name in OURS else BLUE
            axes.plot(table[method], [place] * len(table), ".", color=colour, alpha=0.5)
            axes.plot(table[method].mean(), place, "|", color=colour, markersize=14)
        axes.set_yticks(range(len(order)), [METHODS[m].classifier for m in order])
        axes.tick_params(labelsize=8)
        axes.set_title(name, loc="left", fontsize=9)
        axes.spines[["top", "right"]].set_visible(False)
    figure.supxlabel(
        "certified throughput, alpha 0.05: five seeds and their mean (orange: ReliableClassifier)",
        fontsize=9,
    )
    return figure


def draw_cost_by_size() -> Figure:
    """Draw what a row costs, by how many there are, in units of the smallest size."""
    found = [record for record in read_records("speed", "ratios") if "cost" in record]
    axes = _axes(7.2, 3.2)
    axes.axhspan(1 / 1.2, 1.2, color="0.93", zorder=0, label="within 20 %")
    styles = zip((BLUE, ORANGE, GREEN, "0.4"), "os^D", strict=True)
    for record, (colour, marker) in zip(found, styles, strict=True):
        style = {"color": colour, "marker": marker, "label": record["name"].split(":")[0]}
        axes.plot(record["rows"], record["cost"], linewidth=1.4, **style)
    axes.set(xscale="log", xlabel="rows", ylabel="cost of a row, 10,000 rows = 1")
    axes.set_ylim(0, max(2.0, 1.1 * axes.get_ylim()[1]))
    axes.legend(frameon=False, fontsize=8, ncols=2, loc="upper left")
    return axes.figure


def draw_remixing() -> Figure:
    """Draw JCW and throughput along the sweep of Coloured MNIST, a thin line a seed."""
    records = read_records("guarantees", "remixing")
    figure = Figure(figsize=(7.2, 3.4), layout="constrained")
    wrongly, rightly = figure.subplots(1, 2)
    cases = dict.fromkeys(record["case"] for record in records)
    for case, colour in zip(cases, (ORANGE, BLUE, GREEN), strict=True):
        lines: dict[int, list[dict[str, Any]]] = {}
        for record in records:
            if record["case"] == case:
                lines.setdefault(record["seed"], []).append(record)
        place = [record["correlation"] for record in next(iter(lines.values()))]
        errors, acted = (
            np.array([[r[name] / r["n"] for r in line] for line in lines.values()])
            for name in ("errors", "accepted")
        )
        for axes, values in ((wrongly, errors), (rightly, acted - errors)):
            axes.plot(place, values.T, color=colour, linewidth=0.6, alpha=0.5)
            axes.plot(place, values.mean(axis=0), color=colour, linewidth=2.0, label=case)
    wrongly.axhline(records[0]["alpha"], color="0.2", linewidth=1.2, linestyle="--")
    wrongly.text(0.3, records[0]["alpha"] + 0.005, "alpha")
    wrongly.axvline(0.9, color="0.7", linewidth=0.8, linestyle=":")
    for axes, what in ((wrongly, "wrongly"), (rightly, "rightly")):
        axes.set(xlim=(0.92, 0.08), xlabel="correlation of colour and digit")
        axes.set_title(f"share of digits acted on {what}", loc="left", fontsize=9)
        axes.set_ylim(bottom=0.0)
        axes.spines[["top", "right"]].set_visible(False)
    wrongly.legend(frameon=False, fontsize=8, loc="upper left", title="certified at 0.9:")
    return figure


def draw_collapse() -> Figure:
    """Draw one run under the paper's schedule that unlearns what it knew, beside the adaptive one."""
    records = read_records("default", "collapse")
    noisiest = max(record["noise"] for record in records)
    runs: dict[str, list[dict[str, Any]]] = {}
    for record in records:
        if record["noise"] == noisiest:
            runs.setdefault(record["schedule"], []).append(record)
    paper = runs["paper"]
    figure = Figure(figsize=(7.2, 4.4), layout="constrained")
    (known, acted), (price, psi) = figure.subplots(2, 2, sharex=True)
    for (schedule, run), colour in zip(runs.items(), (ORANGE, BLUE), strict=True):
        epochs = [record["epoch"] for record in run]
        label = f'schedule="{schedule}"'
        known.plot(epochs, [record["accuracy"] for record in run], color=colour, label=label)
        covered = [np.nan if r["coverage"] is None else r["coverage"] for r in run]
        acted.plot(epochs, covered, color=colour)
        kept = next(record for record in run if record["epoch"] == record["chosen_epoch"])
        known.plot(kept["epoch"], kept["accuracy"], "o", color=colour)
    epochs = [record["epoch"] for record in paper]
    for axes, name in ((price, "multiplier"), (psi, "psi"), (psi, "tau")):
        values = [np.nan if record[name] is None else record[name] for record in paper]
        style = {"linestyle": ":"} if name == "tau" else {}
        axes.plot(epochs, values, color="0.4" if name == "tau" else ORANGE, label=name, **style)
    psi.axhline(paper[0]["alpha"], color="0.2", linewidth=1.2, linestyle="--")
    psi.text(1, 1.1 * paper[0]["alpha"], "alpha", fontsize=8)
    psi.set_yscale("log")
    for axes, title in (
        (known, "accuracy on the selection fold (dot: epoch kept)"),
        (acted, "share acted on at the training threshold"),
        (price, "paper: multiplier"),
        (psi, "paper: surrogate psi and tau"),
    ):
        axes.set_title(title, loc="left", fontsize=9)
        axes.spines[["top", "right"]].set_visible(False)
    known.set_ylim(bottom=0.0)
    price.set_xlabel("epoch")
    psi.set_xlabel("epoch")
    known.legend(frameon=False, fontsize=8, loc="upper right")
    psi.legend(frameon=False, fontsize=8, loc="center left")
    return figure


def _axes(width: float, height: float) -> Any:
    axes = Figure(figsize=(width, height), layout="constrained").subplots()
    axes.spines[["top", "right"]].set_visible(False)
    return axes


DRAWINGS = {
    "decisions": draw_decisions,
    "guarantee": draw_guarantee,
    "power": draw_power,
    "certified_throughput": draw_certified_throughput,
    "cost_by_size": draw_cost_by_size,
    "remixing": draw_remixing,
    "collapse": draw_collapse,
}


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
