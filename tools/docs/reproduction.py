"""Write docs/reproduction.md and its figures from the committed results: make reproduction."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reliablenet.bench import Profile, Store, load_profile
from reliablenet.bench.figures import FIGURES
from reliablenet.bench.methods import study_methods
from reliablenet.bench.results import finished_runs, results_frame
from reliablenet.bench.tables import agreement, in_distribution, matched_coverage, ranking
from reliablenet.errors import ReliableNetError
from studies.runner import RESULTS, read_records
from tools.docs import reproduction_account
from tools.docs.markdown import DOCS, TEMPLATES, table

PROFILE = "cpu"  # tables as in the paper; images reduced so that two cores can train them


def main() -> None:
    """Write the page and its figures."""
    profile = load_profile(PROFILE)
    store = profile.open_store(RESULTS)
    pictures = draw_figures(store, profile, DOCS / "images" / "reproduction")
    (DOCS / "reproduction.md").write_text(write_page(store, profile, pictures))


def draw_figures(store: Store, profile: Profile, folder: Path) -> list[str]:
    """Draw the figures whose runs are there into a folder, and return their names."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    for name, draw in FIGURES.items():
        try:
            figure = draw(store, profile).plot()
        except ReliableNetError:  # not run yet
            continue
        figure.savefig(folder / f"{name}.png", dpi=90, metadata={"Software": None})
        drawn.append(name)
    return drawn


def write_page(store: Store, profile: Profile, pictures: list[str]) -> str:
    """Return the page: its template with all figures filled in."""
    tables = {
        "agreement": agreement(store, profile),
        "ranking": ranking(store, profile),
        "matched_coverage": matched_coverage(store, profile),
        "in_distribution": in_distribution(store, profile),
    }
    values: dict[str, Any] = {name: found.markdown().strip("\n") for name, found in tables.items()}
    values["runs"] = finished(store, profile)
    (values["jobs"],) = read_records("speed", "jobs")
    values["figures"] = "\n\n".join(f"![{n}](images/reproduction/{n}.png)" for n in pictures)
    runs = results_frame(store, profile)
    values |= reproduction_account.values(store, runs, profile)
    return (TEMPLATES / "reproduction.md").read_text().format_map(values)


def finished(store: Store, profile: Profile) -> str:
    """Return which runs are there, and how long they took."""
    lines = []
    for name, plan in profile.plans.items():
        runs = {
            (method.name, seed): record
            for method in study_methods()
            for seed, record in finished_runs(store, profile, name, method.name).items()
        }
        # All methods of a training carry its time.
        times = {
            (method.training.name, seed): runs[method.name, seed]["timing"]["fit_seconds"]
            for method in study_methods()
            for seed in profile.seeds
            if (method.name, seed) in runs
        }
        rows = (
            ", ".join(f"{n:,}" for n in next(iter(runs.values()))["rows"].values()) if runs else ""
        )
        seeds = ", ".join(str(seed) for seed in sorted({seed for _, seed in runs})) or "none"
        cells = [f"{plan.alpha:g}", rows, str(len(runs)), seeds, f"{sum(times.values()):,.0f}"]
        lines.append([name, *cells])
    rows_of_folds = "rows: training, selection, certification"
    headings = ["dataset", "alpha", rows_of_folds, "runs", "seeds", "seconds"]
    return table(headings, lines, left=headings)


if __name__ == "__main__":
    main()
