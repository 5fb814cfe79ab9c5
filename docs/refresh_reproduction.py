"""Write docs/reproduction.md and its figures from the committed results: make reproduction."""

from __future__ import annotations

import json
from pathlib import Path

from reproduction_account import contradictions, reproduced, what_helps, why_not

from reliablenet.bench import Store, load_profile
from reliablenet.bench.figures import FIGURES
from reliablenet.bench.methods import study_methods
from reliablenet.bench.results import finished_runs, results_frame
from reliablenet.bench.tables import agreement, in_distribution, matched_coverage, ranking
from reliablenet.errors import ReliableNetError

DOCS = Path(__file__).parent
RESULTS = DOCS.parent / "results"
PROFILE = "cpu"  # tables as in the paper; images reduced so that two cores can train them

INTRODUCTION = """\
# The paper, rerun

Everything on this page is made from the records under `results/` by `make reproduction`; no number is typed in. A record is one method on one dataset with one seed:
`reliablenet bench run --profile cpu --jobs 2` writes them, `reliablenet bench table --profile cpu` prints the tables below. Tables of data run exactly as in the paper (they are those of the profile `paper`); images are reduced so that two cores
can train them.

## How to read the tables

* **certified** counts the seeds whose one-sided Clopper-Pearson bound is within alpha. **JCW <= alpha** only compares what was observed. The paper's column "Cert.", starred here, matches the second:
  with 95 certification rows, as on German Credit, alpha = 0.05 affords one error.
* Folds are the paper's: of the source rows 70 % train, 15 % select and 15 % certify, each fold stratified by label (`cut_paper_folds`; Synthetic Band draws each fold anew). A certificate from a stratified fold is not quite exact, which is why `fit` cuts its own folds
  in another way ([decision 19](decisions/0019-the-certification-fold-is-drawn-first.md)).
* `erm` accepts everything, as the paper's table has it; `erm@eps` acts at eps\\*, as its text has it. `temperature` acts at the most permissive threshold of the selection fold,
  `temperature@eps` at eps\\*. `warmup@eps` is the network after its ten warm-up epochs, before any constrained training, at the same eps\\*: what ReliableNet adds is what it adds to that.
* `reliablenet_last@eps` is the paper's method, the last iterate; `reliablenet@eps` keeps the epoch with the lowest selection-fold loss among those within the budget.
* `+certified` is a certified threshold on top of a classifier, chosen on the certification fold itself.
* `tabular` is [our default for tables](explanations/default.md), which is not the paper's: `tabular_free@eps` is it at the paper's eps\\*, `tabular@eps` the same trained for that threshold, constrained where it is needed, and
  `tabular_constrained+certified` that network at a certified threshold. `images` are our settings for images with the paper's networks, `images_augmented` the same on training images moved, and photographs mirrored, at random. `boosting_all` has trained on the selection rows too, as `tabular` has.
* The paper's AURC is that of the shifted set: it lies below what a perfect ranking could reach at its accuracy in distribution. Both are in our table.
"""


def main() -> None:
    """Write the page and its figures."""
    folder = DOCS / "images" / "reproduction"
    folder.mkdir(parents=True, exist_ok=True)
    pictures = []
    profile = load_profile(PROFILE)
    store = profile.open_store(RESULTS)
    for name, draw in FIGURES.items():
        try:
            figure = draw(store, profile).plot()
        except ReliableNetError:  # not run yet
            continue
        figure.savefig(folder / f"{name}.png", dpi=90, metadata={"Software": None})
        pictures.append(f"![{name}](images/reproduction/{name}.png)\n")
    (DOCS / "reproduction.md").write_text(write_page() + "\n" + "\n".join(pictures))


def write_page() -> str:
    """Return the page up to its figures."""
    profile = load_profile(PROFILE)
    store = profile.open_store(RESULTS)
    runs = results_frame(store, profile)
    parts = [INTRODUCTION, coverage_of(store)]
    parts += [reproduced(store, profile), why_not(runs, profile), contradictions(runs)]
    parts += [what_helps(store, runs, profile)]
    parts += ["## Distance to the paper\n", agreement(store, profile).markdown()]
    parts += ["## What can be certified\n", ranking(store, profile).markdown()]
    parts += ["## Under shift, at equal coverage\n", matched_coverage(store, profile).markdown()]
    parts += ["## All methods\n", in_distribution(store, profile).markdown(), "## Figures\n"]
    return "\n".join(parts)


def coverage_of(store: Store) -> str:
    """Say which runs are there, and how long they took."""
    profile = load_profile(PROFILE)
    lines = [
        "## What has been run\n",
        "Seconds are those of the trainings alone, added up, each in one process with one thread beside others.\n",
        "| dataset | alpha | rows: training, selection, certification | runs | seeds | seconds |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
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
        lines.append(
            f"| {name} | {plan.alpha:g} | {rows} | {len(runs)} | {seeds} | {sum(times.values()):,.0f} |"
        )
    jobs = json.loads((DOCS.parent / "benchmarks" / "jobs_results.json").read_text())
    lines.append(
        f"\nTwo processes take {jobs['ratio']:.2f} of the time of one, measured on a part of it (`benchmarks/jobs.py`: `{jobs['part']}`)."
    )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
