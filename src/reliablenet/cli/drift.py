"""`reliablenet drift`: whether new rows come from the certified source."""

from __future__ import annotations

from typing import Annotated

import typer

from reliablenet.cli import options
from reliablenet.cli.running import ALARM

SHOWN = 6


def drift(
    model: options.Model,
    data: options.Data,
    level: Annotated[
        float,
        typer.Option(
            parser=options.share,
            metavar="SHARE",
            help="Probability of a false alarm, at most, if the source is the same.",
        ),
    ] = 0.05,
    group: Annotated[
        str,
        typer.Option(
            help="Column that says which rows belong together; one row of each group counts."
        ),
    ] = "",
    seed: options.Seed = 0,
    no_header: options.NoHeader = False,
    as_json: options.AsJson = False,
) -> None:
    """Test whether new rows come from the source that the model was certified on; no labels are needed.

    Scores, predictions and inputs are compared with those of the certification rows, of which the model file keeps counts. Exit code 4 where the source changed. That says nothing about the mistakes themselves: only rows with the truth can tell whether the promise still holds (certify, monitor).

    Example: reliablenet drift model.rnet new.csv
    """
    from reliablenet.cli.model_rows import compare_source, load_model
    from reliablenet.cli.printing import show, show_json
    from reliablenet.tables.files import local_file

    fitted = load_model(model)
    with local_file(data, header=not no_header) as path:
        found = compare_source(fitted, path, level, group, seed)
    if as_json:
        show_json(found.to_dict())
    else:
        lines = {
            part.name: f"p-value {part.adjusted:.2g}, allowing for all comparisons"
            for part in found.parts[:SHOWN]
        }
        if fitted.profile_ is None:
            lines["note"] = (
                "the model file has no input profile: only scores and predictions were compared"
            )
        if found.changed:
            lines["what now"] = (
                "the certificate is about the old source. Label some of the new rows and certify on them"
            )
        show(str(found), lines)
    if found.changed:
        raise typer.Exit(ALARM)
