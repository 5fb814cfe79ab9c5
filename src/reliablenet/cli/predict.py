"""`reliablenet predict`: act or defer, row by row, for tables of any size."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer

from reliablenet.cli import options
from reliablenet.cli.running import note

SHOWN = 8  # groups that a note names


def predict(
    model: options.Model,
    data: options.Data,
    out: Annotated[
        Path,
        typer.Option(callback=options.output, help="Where decisions go; - for standard output."),
    ],
    keep: Annotated[
        str,
        typer.Option(
            help="Columns to write beside each decision, such as an id, separated by commas; or all."
        ),
    ] = "",
    no_header: options.NoHeader = False,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            help="Also write why a row is deferred: the confidence that it lacks, and the columns that "
            "lower it.",
        ),
    ] = False,
    defer_odd: options.DeferOdd = False,
    allow_missing: options.AllowMissing = None,
    trusted_keys: options.TrustedKeys = None,
    as_json: options.AsJson = False,
) -> None:
    """Write a label or value, a confidence and whether to act on it for each row of a table, as CSV.

    Rows with accepted = False are for a person to decide. The table is read in batches. What does not
    look like the rows that the model was trained on is said below; --defer-odd acts on no such row.

    With --explain there are four more columns: the threshold of the row, what it lacks, why it is deferred,
    and the columns that lower its confidence. They describe the model; no certificate covers them. Each
    deferred row is then scored some three to six times a column.

    Example: reliablenet predict model.rnet new.csv --out decisions.csv

    Example: reliablenet predict model.rnet new.csv --keep customer_id --out decisions.csv
    Example: reliablenet predict model.rnet new.csv --explain --out decisions.csv
    """
    from contextlib import nullcontext

    import pandas as pd

    from reliablenet._files import open_atomically
    from reliablenet.certificate.promise_wording import odd_deferred
    from reliablenet.certificate.wording import percent
    from reliablenet.cli.printing import show_json
    from reliablenet.cli.rows import DECIDED, EXPLAINED, decide_batches, kept_columns, load_model
    from reliablenet.tables.files import local_file
    from reliablenet.tables.oddities import Oddities

    piped = str(out) == "-"
    if piped and as_json:
        raise typer.BadParameter("--json needs standard output for itself: give --out a file.")
    fitted = load_model(model, trusted_keys)
    rows = accepted = 0
    strangers: Counter[Any] = Counter()
    reasons: Counter[str] = Counter()
    batches: list[Oddities | None] = []
    target = nullcontext(sys.stdout.buffer) if piped else open_atomically(out)
    with local_file(data, header=not no_header) as path, target as file:
        kept_names = kept_columns(path, keep, (*DECIDED, *EXPLAINED) if explain else DECIDED)
        for decisions, kept, why in decide_batches(
            fitted, path, kept_names, defer_odd, allow_missing or (), strangers, explain
        ):
            batches.append(decisions.oddities)
            frame = decisions.to_frame()
            if defer_odd:
                frame["odd"] = decisions.odd
            if explain:
                reasons.update(why["why"][~decisions.accepted])
            frame = pd.concat([kept, frame, why], axis=1)
            frame.to_csv(file, header=rows == 0, index=False, lineterminator="\n")
            rows += len(decisions)
            accepted += int(decisions.accepted.sum())
        file.flush()
    odd = Oddities.joined(batches)
    summary = {"rows": rows, "accepted": accepted, "deferred": rows - accepted, "out": str(out)}
    summary |= {"oddities": odd.to_dict(), "odd_deferred": defer_odd}
    groups = {"missing" if k is None else str(k): count for k, count in strangers.items()}
    summary["without_certificate"] = groups
    if explain:
        summary["why"] = dict(reasons.most_common())
    if as_json:
        show_json(summary)
        return
    if fitted.threshold_ == float("inf"):
        note(f"the model has no certificate and defers every row: {fitted.certificate_.reason}.")
    elif strangers:
        commonest = Counter(groups).most_common(SHOWN)
        counted = ", ".join(f"{name} ({count:,})" for name, count in commonest)
        more = len(groups) - len(commonest)
        counted += f" and {more:,} more groups" if more else ""
        note(f"rows whose group has no certificate are deferred: {counted}.")
    if odd:
        note(
            str(odd)
            + f"\n  None of the odd rows is acted on: {odd_deferred(fitted.promise)}." * defer_odd
        )
    elif defer_odd and not odd.profiled:
        note("the model has no input profile, so that no row was found odd: fit it again.")
    if reasons:
        counted = ", ".join(f"{reason} ({count:,})" for reason, count in reasons.most_common())
        note(f"why rows are deferred: {counted}. {EXPLAINED[-1]} describes the model, not causes.")
    place = "" if piped else f" Decisions are in {out}."
    typer.echo(
        f"Acts on {accepted:,} of {rows:,} rows ({percent(accepted / rows)}), defers "
        f"{rows - accepted:,}.{place}",
        err=piped,
    )
