"""`reliablenet bench`: rerun the paper's study, see its progress, and show the results."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reliablenet.cli import options

if TYPE_CHECKING:
    from reliablenet.bench import Profile, Store

bench = typer.Typer(help="Rerun the paper's study.", no_args_is_help=True)

ProfileOption = Annotated[
    str, typer.Option(help="paper, cpu, smoke, or a TOML file that extends one of them.")
]
ResultsOption = Annotated[Path, typer.Option(help="Folder with the results.")]
DatasetsOption = Annotated[str, typer.Option(help="Only these datasets, separated by commas.")]
MethodsOption = Annotated[str, typer.Option(help="Only these methods, separated by commas.")]
SeedsOption = Annotated[str, typer.Option(help="Only these seeds, separated by commas.")]


@bench.command()
def run(
    profile: ProfileOption = "smoke",
    results: ResultsOption = Path("results"),
    datasets: DatasetsOption = "",
    methods: MethodsOption = "",
    seeds: SeedsOption = "",
    jobs: Annotated[int, typer.Option(help="Processes, each with one thread.")] = 1,
    dask: Annotated[
        str, typer.Option(help="Address of a Dask scheduler, or 'local' for one made here.")
    ] = "",
    as_json: options.AsJson = False,
) -> None:
    """Run what is not done yet; a run that was stopped or failed is run again.

    Example: reliablenet bench run --profile paper --datasets adult --jobs 2
    """
    from reliablenet.bench import pending_jobs, run_jobs
    from reliablenet.cli.printing import show_json

    study, store = _open(profile, results)
    todo = pending_jobs(
        study,
        store,
        _names(datasets),
        _names(methods),
        _numbers(seeds),
    )
    if not todo and not as_json:
        typer.echo("Nothing to do: every run is done.")
        return
    typer.echo(f"{len(todo)} trainings to do; results go to {store.folder}.", err=True)
    failures = run_jobs(todo, store, n_jobs=jobs, dask=dask or None)
    for line in failures:
        typer.echo(f"failed: {line}", err=True)
    if as_json:
        show_json({"trainings": len(todo), "failures": failures})
    else:
        typer.echo(f"{len(todo)} trainings done, {len(failures)} runs failed.")
    if failures:
        raise typer.Exit(1)


@bench.command()
def status(
    profile: ProfileOption = "smoke",
    results: ResultsOption = Path("results"),
    as_json: options.AsJson = False,
) -> None:
    """Show for each dataset how many runs are done, have failed, and are left.

    Example: reliablenet bench status --profile paper
    """
    from reliablenet.bench import count_runs
    from reliablenet.cli.printing import show_json

    counts = count_runs(*_open(profile, results))
    if as_json:
        kinds = ("runs", "failed", "left")
        show_json({name: dict(zip(kinds, n, strict=True)) for name, n in counts.items()})
        return
    typer.echo(f"{'dataset':24s}{'runs':>6s}{'failed':>8s}{'left':>6s}")
    for name, (done, failed, left) in counts.items():
        typer.echo(f"{name:24s}{done:6d}{failed:8d}{left:6d}")


@bench.command()
def table(
    profile: ProfileOption = "paper",
    results: ResultsOption = Path("results"),
    methods: MethodsOption = "",
    style: Annotated[str, typer.Option("--format", help="markdown, csv or latex.")] = "markdown",
    out: Annotated[
        Path | None, typer.Option(help="Folder to write all three formats to, besides printing.")
    ] = None,
) -> None:
    """Print the paper's table with ours, and methods by certified throughput.

    Example: reliablenet bench table --profile paper --methods erm,reliablenet_last@eps
    """
    from reliablenet._files import write_atomically
    from reliablenet.bench.results import NoRunsError
    from reliablenet.bench.tables import agreement, in_distribution, matched_coverage, ranking

    if style not in ("markdown", "csv", "latex"):
        raise typer.BadParameter("--format must be markdown, csv or latex")
    study, store = _open(profile, results)
    with naming_the_command():
        tables = {"in_distribution": in_distribution(store, study, _names(methods))}
    left_out = []
    for make in (ranking, matched_coverage, agreement):
        try:
            tables[make.__name__] = make(store, study)
        except NoRunsError:
            left_out.append(make.__name__)
    if left_out:
        typer.echo(f"note: left out for want of runs: {', '.join(left_out)}", err=True)
    for made in tables.values():
        typer.echo(getattr(made, style)())
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        for name, made in tables.items():
            for kind, suffix in (("markdown", "md"), ("csv", "csv"), ("latex", "tex")):
                write_atomically(out / f"{name}.{suffix}", getattr(made, kind)().encode())


@bench.command()
def figure(
    name: Annotated[
        str, typer.Argument(help="A figure, or 'all'.", metavar="NAME|all", show_default=False)
    ],
    profile: ProfileOption = "paper",
    results: ResultsOption = Path("results"),
    methods: MethodsOption = "",
    out: Annotated[Path, typer.Option(help="Folder to write to.")] = Path("figures"),
) -> None:
    """Draw a figure as PNG and SVG, and write its numbers as CSV; nothing is trained.

    Example: reliablenet bench figure geometry --profile paper --out figures
    """
    from reliablenet.bench.figures import FIGURES, write_figure
    from reliablenet.bench.methods import find_method
    from reliablenet.errors import InvalidDataError, InvalidParameterError

    if name != "all" and name not in FIGURES:
        raise typer.BadParameter(f"NAME must be 'all' or one of: {', '.join(FIGURES)}.")
    study, store = _open(profile, results)
    chosen = _names(methods)
    for method in chosen or ():
        find_method(method)
    drawn = 0
    for one in FIGURES if name == "all" else (name,):
        try:
            with naming_the_command():
                made = FIGURES[one](store, study, chosen)
        except (InvalidDataError, InvalidParameterError) as error:  # no such plan, or not run yet
            if name != "all":
                raise
            typer.echo(f"{one}: {error}", err=True)
            continue
        files = ", ".join(str(path) for path in write_figure(made, out, one))
        typer.echo(f"{one}: {files}")
        drawn += 1
    if not drawn:
        raise typer.Exit(1)


@bench.command()
def pack(
    profile: ProfileOption = "smoke",
    results: ResultsOption = Path("results"),
) -> None:
    """Pack finished runs, one file a dataset and one line a run, to keep or to commit.

    A packed run counts as done. The same runs give the same file; the files of single runs stay.

    Example: reliablenet bench pack --profile paper
    """
    _, store = _open(profile, results)
    packed = store.pack()
    for plan, runs in packed.items():
        typer.echo(f"{store.pack_path(plan)}: {runs} runs")
    if not packed:
        typer.echo(f"Nothing to pack: no finished run lies in {store.folder}.")


@contextmanager
def naming_the_command() -> Iterator[None]:
    """Let the error that no run is there name the command that makes it."""
    from reliablenet.bench.results import NoRunsError
    from reliablenet.errors import InvalidDataError

    try:
        yield
    except NoRunsError as error:
        results = error.store.folder.parent
        command = f"reliablenet bench run --profile {error.profile.name} --results {results}"
        if error.plans:
            command += f" --datasets {','.join(error.plans)}"
        if error.method:
            command += f" --methods {error.method}"
        raise InvalidDataError(f"{error.fact} Run: {command}") from None


def _open(profile: str, results: Path) -> tuple[Profile, Store]:
    from reliablenet.bench import load_profile

    study = load_profile(profile)
    return study, study.open_store(results)


def _numbers(text: str) -> list[int] | None:
    try:
        return [int(name) for name in _names(text) or ()] or None
    except ValueError:
        raise typer.BadParameter(f"--seeds must be whole numbers; got {text}.") from None


def _names(text: str) -> list[str] | None:
    return [name.strip() for name in text.split(",") if name.strip()] or None
