"""The command line: which commands there are."""

from __future__ import annotations

from typing import Annotated

import typer

from reliablenet._version import __version__
from reliablenet.cli.bench import bench
from reliablenet.cli.demo import demo

app = typer.Typer(
    name="reliablenet",
    help="Classifiers that know when to act and when to defer.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(demo)
app.add_typer(bench, name="bench")


def show_version(wanted: bool) -> None:
    """Print the version and stop."""
    if wanted:
        typer.echo(f"reliablenet {__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool,
        typer.Option("--version", callback=show_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Classifiers that know when to act and when to defer."""


def main() -> None:
    """Run the command line."""
    app()
