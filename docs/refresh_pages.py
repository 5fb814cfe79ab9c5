"""Run every block of the README and of every page, and write down what it prints: make docs-refresh.

A page is run from top to bottom, in one namespace and in one folder of its own, as a reader would do.

* a block marked ``python`` is executed; a block marked ``text`` right below shows what it printed;
* in a block marked ``console``, lines that begin with ``$ `` are commands, the rest is their output;
* a block with a ``title`` is a file of that name.
* Between ``<!-- name -->`` and ``<!-- end -->`` stands what the function of that name in `PARTS` returns.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import textwrap
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from default_tables import DEFAULT
from guarantee_tables import PARTS as GUARANTEES
from robustness_tables import ROBUSTNESS

from reliablenet import errors
from reliablenet.bench import load_profile
from reliablenet.bench.methods import Point
from reliablenet.bench.results import results_frame
from reliablenet.methods import ledger

DOCS = Path(__file__).parent
README = DOCS.parent / "README.md"
BLOCK = re.compile(
    r"^```(?P<language>\w+)(?P<options>[^\n`]*)\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE
)
PART = re.compile(r"(?P<begin><!-- (?P<name>\w+) -->\n).*?(?P<end><!-- end -->)", re.DOTALL)
TITLE = re.compile(r'title="([^"]+)"')
WIDTH = 84  # what fits into a page
# Classifiers of the study in the table of certified throughput, and what they are called there.
SHOWN = {
    "tabular": "default",
    "images": "default",
    "images_augmented": "augmented",
    "boosting": "boosting",
    "erm_early": "erm_early",
    "erm": "erm",
    "reliablenet": "reliablenet",
    "reliablenet_last": "reliablenet_last",
}


def main(names: list[str]) -> None:
    """Refresh the named pages, or all."""
    import torch

    torch.set_num_threads(1)  # as the tests do: sums depend on it
    for path in [Path(name).resolve() for name in names] or pages():
        text = path.read_text()
        with tempfile.TemporaryDirectory() as folder:
            fresh = run_page(fill_parts(text), Path(folder))
        if fresh != text:
            path.write_text(fresh)
            sys.stderr.write(f"{path.relative_to(README.parent)} refreshed\n")


def pages() -> list[Path]:
    """Return the pages with something to run or to fill in."""
    found = [README, *sorted(DOCS.rglob("*.md"))]
    return [path for path in found if runs(text := path.read_text()) or PART.search(text)]


def runs(text: str) -> bool:
    """Tell whether a page has a block to run."""
    return any(block["language"] in ("python", "console") for block in BLOCK.finditer(text))


def run_page(text: str, folder: Path) -> str:
    """Return a page as its blocks, run in a folder, make it."""
    names: dict[str, Any] = {"__name__": "__main__"}
    ledger.clear()  # a page is read in a process of its own
    parts, end, printed, printed_at = [], 0, "", -1
    with inside(folder):
        for block in BLOCK.finditer(text):
            body, title = block["body"], TITLE.search(block["options"])
            follows = not text[printed_at : block.start()].strip()
            if title:
                Path(title[1]).write_text(body)
            elif block["language"] == "python":
                printed, printed_at = execute(body, names), block.end()
            elif block["language"] == "console":
                body = converse(body)
            elif block["language"] == "text" and printed_at >= 0 and follows:
                body = printed
            parts += [text[end : block.start("body")], body]
            end = block.end("body")
    return "".join([*parts, text[end:]])


def execute(code: str, names: dict[str, Any]) -> str:
    """Execute Python code and return what it printed, warnings of ours among it."""
    output = io.StringIO()

    def show(message: Warning | str, category: type[Warning], *rest: Any) -> None:
        text = textwrap.fill(f"{category.__name__}: {message}", WIDTH, break_on_hyphens=False)
        output.write(text + "\n")

    with contextlib.redirect_stdout(output), warnings.catch_warnings():
        warnings.simplefilter("error")
        for category in vars(errors).values():
            if isinstance(category, type) and issubclass(category, Warning):
                warnings.filterwarnings("always", category=category)
        warnings.showwarning = show  # type: ignore[assignment]
        exec(compile(code, "<page>", "exec"), names)  # noqa: S102
    return output.getvalue()


def converse(body: str) -> str:
    """Run the commands of a console block and return the block with what they print."""
    lines = []
    for command in re.findall(r"^\$ ((?:.*\\\n)*.*)$", body, re.MULTILINE):
        settings = {"OMP_NUM_THREADS": "1", "COLUMNS": str(WIDTH), "NO_COLOR": "1", "TERM": "dumb"}
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        ended = subprocess.run(  # noqa: S602 - the pages are ours
            command,
            shell=True,
            env=os.environ | settings | {"PATH": path},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
        )
        if ended.returncode:
            raise RuntimeError(f"`{command}` ended with {ended.returncode}:\n{ended.stdout}")
        output = "\n".join(line.rstrip() for line in ended.stdout.strip("\n").splitlines())
        lines.append(f"$ {command}\n" + (output + "\n" if output else ""))
    return "".join(lines)


@contextlib.contextmanager
def inside(folder: Path) -> Iterator[None]:
    """Work in a folder, without the user's data folder: pages need no files but their own."""
    data = os.environ.pop("RELIABLENET_DATA", None)
    try:
        with contextlib.chdir(folder):
            yield
    finally:
        if data is not None:
            os.environ["RELIABLENET_DATA"] = data


def fill_parts(text: str) -> str:
    """Return a page with its generated parts as they would be made today."""
    return PART.sub(lambda part: part["begin"] + PARTS[part["name"]]() + part["end"], text)


def certified_throughput() -> str:
    """Return certified throughput by dataset and method, of the datasets that have been run."""
    profile = load_profile("cpu")
    runs = results_frame(profile.open_store(DOCS.parent / "results"), profile)
    runs = runs[(runs["point"] == Point.CERTIFIED) & runs["classifier"].isin(SHOWN)]
    runs = runs.assign(shown=runs["classifier"].map(SHOWN))
    table = runs.groupby(["plan", "shown"])["certified_throughput"].agg(["mean", "std"])
    columns = list(dict.fromkeys(SHOWN.values()))
    lines = ["| dataset | " + " | ".join(columns) + " |", "| --- |" + " ---: |" * len(columns)]
    for plan in dict.fromkeys(runs["plan"]):
        found = table.loc[plan]
        cells = {name: f"{mean:.3f} ± {std:.3f}" for name, mean, std in found.itertuples()}
        best = found["mean"].idxmax()
        cells[best] = f"**{cells[best]}**"
        settings = profile.plans[plan]
        name = f"{settings.title}, alpha {settings.alpha:g}"
        if "images" in settings.data:  # fewer than there are
            name += f", {runs.loc[runs['plan'] == plan, 'train_rows'].iloc[0]:,} images"
        lines.append(f"| {name} | " + " | ".join(cells.get(c, "-") for c in columns) + " |")
    return "\n".join(lines) + "\n"


def certified_file() -> str:
    """Return the memory that the certificate of a large file took."""
    found = _measured("stream_results.json")
    return (
        f"Measured with `benchmarks/stream.py`: {found['rows'] / 1e6:.0f} million rows, a Parquet file of "
        f"{found['file_bytes'] / 1e6:.0f} MB, took at most {found['peak_bytes'] / 1e6:.0f} MB of memory, the "
        "interpreter and its libraries included. It grows with the rows that are predicted wrongly, by eight "
        "bytes each.\n"
    )


def two_processes() -> str:
    """Return the time of an epoch on two processes over that on one, by batch and width."""
    lines = ["| rows a process | width | plain epoch | constrained epoch |"]
    lines.append("| --: | --: | --: | --: |")
    ratios: dict[tuple[str, str], list[float]] = {}
    for name, value in _measured("distributed_results.json").items():
        if found := re.search(r"batch (\d+) a process, width (\d+)", name):
            ratios.setdefault((found[1], found[2]), []).append(value)  # plain, then constrained
    for (batch, width), (plain, constrained) in ratios.items():
        lines.append(f"| {int(batch):,} | {width} | {plain:.2f} | {constrained:.2f} |")
    return "\n".join(lines) + "\n"


def speed() -> str:
    """Return the ratios of `make bench-speed`, with what each was to be."""
    figures: dict[tuple[str, str], dict[int, dict[str, Any]]] = {}
    for figure in _measured("results.json")["figures"]:
        by_threads = figures.setdefault((figure["name"], figure["target"]), {})
        by_threads[figure["threads"]] = figure
    lines = ["| what | 1 thread | 2 threads | wanted | |", "| --- | --: | --: | --- | --- |"]
    for (name, target), by_threads in figures.items():
        cells = [f"{by_threads[n]['ratio']:.2f}" if n in by_threads else "" for n in (1, 2)]
        met = [figure["met"] for figure in by_threads.values()]
        verdict = "" if None in met else "met" if all(met) else "**missed**"
        lines.append(f"| {name} | {cells[0]} | {cells[1]} | {target} | {verdict} |")
    return "\n".join(lines) + "\n"


def steps_tried() -> str:
    """Return how fast other ways to run a step are, as multiples of ours."""
    found = _measured("steps_tried_results.json")
    ways = {
        "compiled_passes": "loss, forward and backward pass as one function under `torch.compile`",
        "compiled_loss_and_optimiser": "autograd, with loss and optimiser under `torch.compile`",
        "stacked_seeds": "five seeds stacked into one network (for each seed)",
    }
    lines = ["| instead of our step | 1 thread | 2 threads |", "| --- | --: | --: |"]
    for name, what in ways.items():
        lines.append(f"| {what} | {found['1'][name]:.2f} | {found['2'][name]:.2f} |")
    compiling = f"{found['1']['seconds_to_compile']:.0f} s"
    return "\n".join(lines) + f"\n\nTo compile took {compiling} the first time.\n"


def mutation() -> str:
    """Return how many mutants of each module the tests kill."""
    lines = [
        "| module | mutants | killed | timed out | survived |",
        "| --- | --: | --: | --: | --: |",
    ]
    found = _measured("../results/guarantees/mutation.json")
    total = dict.fromkeys(("mutants", "killed", "timed_out", "survived"), 0)
    for module, result in found.items():
        counts = [result[name] for name in total]
        lines.append(f"| `{module}` | " + " | ".join(f"{count:,}" for count in counts) + " |")
        total = {name: total[name] + result[name] for name in total}
    lines.append("| **all** | " + " | ".join(f"**{count:,}**" for count in total.values()) + " |")
    return "\n".join(lines) + "\n"


def coverage() -> str:
    """Return how many statements and branches of each package the tests reach."""
    lines = [
        "| package | statements | reached | branches | reached |",
        "| --- | --: | --: | --: | --: |",
    ]
    for package, counts in _measured("../results/guarantees/coverage.json").items():
        lines.append(
            f"| `{package}` | {counts['num_statements']:,} | {counts['covered_lines']:,} | "
            f"{counts['num_branches']:,} | {counts['covered_branches']:,} |"
        )
    return "\n".join(lines) + "\n"


def _measured(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((README.parent / "benchmarks" / name).read_text())
    return found


PARTS = (
    DEFAULT
    | GUARANTEES
    | ROBUSTNESS
    | {
        "certified_file": certified_file,
        "certified_throughput": certified_throughput,
        "coverage": coverage,
        "mutation": mutation,
        "speed": speed,
        "steps_tried": steps_tried,
        "two_processes": two_processes,
    }
)


if __name__ == "__main__":
    main(sys.argv[1:])
