"""How every command ends: one clean line for a mistake, an exit code for a script, no traceback."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer
from typer.core import TyperGroup

from reliablenet.errors import (
    ClusterWarning,
    ColumnWarning,
    ConstraintWarning,
    DataFileError,
    EmptyCertificateWarning,
    FoldWarning,
    LabelWarning,
    LeakWarning,
    NotCertifiedWarning,
    OddInputWarning,
    ReliableNetError,
    ReuseWarning,
)

OUR_BUG, USAGE, REFUSED, ALARM, NO_DATA = 1, 2, 3, 4, 5
NOTES: tuple[type[Warning], ...] = (
    ClusterWarning,
    ColumnWarning,
    ConstraintWarning,
    FoldWarning,
    LabelWarning,
    ReuseWarning,
)
RESULTS: tuple[type[Warning], ...] = (
    EmptyCertificateWarning,
    NotCertifiedWarning,
    OddInputWarning,
)  # commands say it already


class Commands(TyperGroup):
    """The group of all commands: whatever one of them raises becomes a line and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was typed."""
        try:
            with notes_on_stderr():
                return super().invoke(ctx)
        except KeyboardInterrupt:
            typer.echo("Interrupted.", err=True)
            raise
        except (typer.Abort, BrokenPipeError):  # a reader such as `head` has gone
            raise
        except Exception as error:
            if hasattr(error, "exit_code"):  # how typer itself ends a command
                raise
            if ctx.params.get("debug"):
                traceback.print_exception(error)
            raise typer.Exit(complain(error)) from None


def complain(error: Exception) -> int:
    """Print what went wrong, and return the exit code."""
    if not isinstance(error, ReliableNetError | OSError):
        typer.echo(f"error: {type(error).__name__}: {error}", err=True)
        typer.echo(
            "This is a bug in reliablenet. Please report it with the output of this command under "
            "`reliablenet --debug ...`\nand of `reliablenet doctor`.",
            err=True,
        )
        return OUR_BUG
    typer.echo(f"error: {error}", err=True)
    return NO_DATA if isinstance(error, DataFileError | FileNotFoundError) else USAGE


@contextmanager
def notes_on_stderr() -> Iterator[None]:
    """Show our warnings as notes, each once; a refused or empty certificate is the result."""
    shown: set[str] = set()
    with warnings.catch_warnings():
        usual = warnings.showwarning

        def show(message: Any, category: type[Warning], *place: Any, **rest: Any) -> None:
            if not issubclass(category, NOTES):
                usual(message, category, *place, **rest)
            elif str(message) not in shown:
                shown.add(str(message))
                leak = isinstance(message, LeakWarning)
                note(f"{message} (--drop {message.column})" if leak else str(message))

        for category in NOTES:
            warnings.simplefilter("always", category)
        for category in RESULTS:
            warnings.simplefilter("ignore", category)
        warnings.showwarning = show
        yield


def note(text: str) -> None:
    """Print a note on standard error."""
    typer.echo(f"note: {text}", err=True)
