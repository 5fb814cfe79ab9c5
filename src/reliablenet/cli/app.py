"""The command line: which commands there are."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from reliablenet._version import __version__
from reliablenet.cli.bench import bench
from reliablenet.cli.certify import certify
from reliablenet.cli.compare import compare
from reliablenet.cli.data import data
from reliablenet.cli.demo import demo
from reliablenet.cli.doctor import doctor
from reliablenet.cli.drift import drift
from reliablenet.cli.export import export
from reliablenet.cli.inspect import inspect
from reliablenet.cli.monitor import monitor
from reliablenet.cli.plan import plan
from reliablenet.cli.predict import predict
from reliablenet.cli.recertify import recertify
from reliablenet.cli.report import report
from reliablenet.cli.running import Command, Commands
from reliablenet.cli.serve import serve
from reliablenet.cli.sign import keygen, sign, verify
from reliablenet.cli.signals import signals_that_last
from reliablenet.cli.train import train

app = typer.Typer(
    name="reliablenet",
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
COMMANDS = (
    *(demo, train, predict, certify, compare, inspect, report, plan, export),
    *(serve, monitor, drift, recertify, keygen, sign, verify, doctor),
)
for command in COMMANDS:
    app.command(cls=Command)(command)
app.add_typer(data, name="data")
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
    debug: Annotated[
        bool, typer.Option("--debug", help="Show where in the code an error arose.")
    ] = False,
) -> None:
    """Classifiers that know when to act and when to defer.

    Exit codes: 0 done, 1 a bug in ReliableNet, 2 a mistake in what was typed or in the data, 3 certificate refused, 4 alarm, 5 file or dataset not found.

    Example: reliablenet train loans.csv --target default --alpha 0.02 --out model.rnet
    """


def main() -> None:
    """Run the command line."""
    try:
        with signals_that_last():
            app(prog_name="reliablenet")  # also where it is started by `python -m`
    except KeyboardInterrupt:  # typer catches it once a command runs, and not before
        sys.exit(130)
