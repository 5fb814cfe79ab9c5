"""Write docs/reproduction.md and its figures from the committed results: make reproduction."""

from __future__ import annotations

from pathlib import Path

from reliablenet.bench import Store, load_profile
from reliablenet.bench.figures import FIGURES
from reliablenet.bench.protocol import METHODS
from reliablenet.bench.runner import finished_runs
from reliablenet.bench.tables import agreement, in_distribution, ranking
from reliablenet.errors import ReliableNetError

DOCS = Path(__file__).parent
RESULTS = DOCS.parent / "results"
PROFILE = "paper"

INTRODUCTION = """\
# The paper, rerun

Everything on this page is made from the records under `results/` by `make reproduction`; no number is typed in. A record is one method on one dataset with one seed:
`reliablenet bench run --profile paper` writes them, `bench table` prints the tables below.

## How to read the tables

* **certified** counts the seeds whose one-sided Clopper-Pearson bound is within alpha. **JCW <= alpha** only compares what was observed. The paper's column "Cert.", starred here, matches the second:
  with 95 certification rows, as on German Credit, alpha = 0.05 affords one error.
* `erm` accepts everything, as the paper's table has it; `erm@eps` acts at eps*, as its text has it. `temperature` acts at the most permissive threshold of the selection fold,
  `temperature@eps` at eps*. `warmup@eps` is the network after its ten warm-up epochs, before any constrained training, at the same eps*: what ReliableNet adds is what it adds to that.
* `reliablenet_last@eps` is the paper's method, the last iterate; `reliablenet@eps` keeps the epoch with the lowest selection-fold loss among those within the budget.
* `+certified` is a certified threshold on top of a classifier, chosen on the certification fold itself.
* The paper's AURC is that of the shifted set: it lies below what a perfect ranking could reach at its accuracy in distribution. Both are in our table.
"""


def main() -> None:
    """Write the page and its figures."""
    profile, store = load_profile(PROFILE), Store(RESULTS / PROFILE)
    folder = DOCS / "images" / "reproduction"
    folder.mkdir(parents=True, exist_ok=True)
    parts = [INTRODUCTION, coverage_of(store)]
    parts += ["## Does it agree with the paper?\n", agreement(store, profile).markdown()]
    parts += ["## What can be certified\n", ranking(store, profile).markdown()]
    parts += ["## All methods\n", in_distribution(store, profile).markdown(), "## Figures\n"]
    for name, draw in FIGURES.items():
        try:
            figure = draw(store, profile).plot()
        except ReliableNetError:  # not run yet
            continue
        figure.savefig(folder / f"{name}.png", dpi=90, metadata={"Software": None})
        parts.append(f"![{name}](images/reproduction/{name}.png)\n")
    (DOCS / "reproduction.md").write_text("\n".join(parts))


def coverage_of(store: Store) -> str:
    """Say which runs are there."""
    profile = load_profile(PROFILE)
    lines = [
        "## What has been run\n",
        "| dataset | alpha | runs | seeds |",
        "| --- | --- | --- | --- |",
    ]
    for name, plan in profile.plans.items():
        runs = [seed for m in METHODS for seed in finished_runs(store, profile, name, m)]
        lines.append(f"| {name} | {plan.alpha:g} | {len(runs)} | {sorted(set(runs)) or 'none'} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
