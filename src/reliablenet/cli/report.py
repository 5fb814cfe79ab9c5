"""`reliablenet report`: a page to look at, from a model, a comparison, or results of the benchmark."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reliablenet.cli import options
from reliablenet.errors import DataFileError


def report(
    source: Annotated[
        Path,
        typer.Argument(
            help="A model, a comparison (JSON), or a folder of results such as results/paper.",
            metavar="MODEL|COMPARISON|RESULTS",
        ),
    ],
    out: Annotated[Path, typer.Option(callback=options.page, help="The HTML file to write.")],
    data: Annotated[
        str,
        typer.Option(
            help="The table that the model was trained on, to show the rows of its mistakes, and which "
            "columns its decisions rest on."
        ),
    ] = "",
    target: Annotated[str, typer.Option(help="The column of --data with the true label.")] = "",
) -> None:
    """Write one self-contained HTML page.

    Example: reliablenet report model.rnet --out page.html

    Example: reliablenet report model.rnet --data loans.csv --target default --out page.html
    """
    from reliablenet.report import benchmark_page, comparison_page, model_page, write_page

    if bool(data) != bool(target):
        raise typer.BadParameter("--data and --target go together.")
    if not source.exists():
        raise DataFileError(f"There is no file or folder {source}.")
    if source.is_dir():
        from reliablenet.bench import load_profile
        from reliablenet.cli.bench import naming_the_command

        profile = load_profile(source.resolve().name)
        with naming_the_command():
            text = benchmark_page(profile.open_store(source.resolve().parent), profile)
    elif source.suffix == ".json":
        from reliablenet.methods import Comparison

        text = comparison_page(Comparison.from_json(source.read_text(encoding="utf-8")))
    else:
        from reliablenet.cli.model_rows import load_model, training_rows

        model = load_model(source)
        table, labels = training_rows(model, data, target) if data else (None, None)
        text = model_page(model, table=table, labels=labels)
    write_page(text, out)
    typer.echo(f"The page is in {out}.")
