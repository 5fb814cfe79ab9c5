"""How every command ends: one clean line for a mistake, an exit code for a script, no traceback."""

from __future__ import annotations

import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

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


class Command(TyperCommand):
    """A command that takes an option once, unless it collects: of two values the first would be lost."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read what was typed, or refuse an option that was typed twice."""
        typed = Counter(one.name for one in self.make_parser(ctx).parse_args(list(args))[2])
        for option in self.params:
            single = not (
                getattr(option, "multiple", False)
                or getattr(option, "is_flag", False)
                or option.nargs != 1
            )
            if isinstance(option, TyperOption) and single and typed[option.name] > 1:
                raise typer.BadParameter(
                    f"given {typed[option.name]} times, of which only the last would count. Give it "
                    "once; where it takes several, separate them by commas.",
                    ctx,
                    option,
                )
        return super().parse_args(ctx, args)


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
