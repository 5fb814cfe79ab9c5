"""A progress bar on standard error while a person is watching, and silence otherwise."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from reliablenet.training.history import History


@contextmanager
def progress(name: str, epochs: int, verbose: bool | str) -> Iterator[Callable[[History], None]]:
    """Yield a function that shows the latest epoch; ``verbose="auto"`` asks whether a person looks."""
    wanted = sys.stderr.isatty() if verbose == "auto" else bool(verbose)
    if not wanted:
        yield lambda history: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=8),
        TextColumn("{task.completed}/{task.total}"),
        TextColumn("[dim]{task.fields[state]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(name, total=epochs, state="warm-up")

        def show(history: History) -> None:
            latest = history.records[-1]
            state = f"loss {latest.loss_selection:.3f}"
            if latest.stage:  # what fits into 80 columns
                state = (
                    f"JCW {latest.jcw_selection:.4f}/{history.alpha:g} "
                    f"coverage {latest.coverage:.2f} λ {latest.multiplier:.0f}"
                )
            bar.update(task, completed=latest.epoch, state=state)

        yield show
