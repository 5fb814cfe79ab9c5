"""`reliablenet predict`: act or defer, row by row, for tables of any size."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from reliablenet.cli import options
from reliablenet.cli.running import note

SHOWN = 8  # groups that a note names


def predict(
    model: options.Model,
    data: options.Data,
    out: Annotated[
        Path,
        typer.Option(
            callback=options.output_or_folder,
            help="Where to write decisions; - for standard output. For a folder: a folder, or one file called "
            "*.csv.",
        ),
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
    dask: options.Dask = "",
    trusted_keys: options.TrustedKeys = None,
    as_json: options.AsJson = False,
) -> None:
    """Write a label or value, a confidence and whether to act on it for each row of a table, as CSV.

    Rows with accepted = False are for a person to decide. The table is read in batches. Rows unlike those that the model was trained on are reported; --defer-odd acts on none of them.

    With --explain there are four more columns: the threshold of the row, what it lacks, why it is deferred,
    and the columns that lower its confidence. They describe the model; no certificate covers them. Each
    deferred row is then scored some three to six times a column.

    DATA may be a folder of Parquet files. Its decisions go to a folder with files of the same names, each
    of them whole or not there; what a stopped run has finished is not decided again.

    Example: reliablenet predict model.rnet new.csv --out decisions.csv

    Example: reliablenet predict model.rnet new.csv --keep customer_id --out decisions.csv
    Example: reliablenet predict model.rnet new.csv --explain --out decisions.csv

    Example: reliablenet predict model.rnet new_rows/ --dask tcp://10.0.0.1:8786 --out decisions/
    """
    from contextlib import nullcontext

    from reliablenet._dask import connected
    from reliablenet._files import open_atomically
    from reliablenet.certificate.promise_wording import odd_deferred
    from reliablenet.certificate.wording import percent
    from reliablenet.cli.deciding import Asked, decide_folder, write_csv
    from reliablenet.cli.model_rows import DECIDED, EXPLAINED, kept_columns, load_model
    from reliablenet.cli.printing import show_json
    from reliablenet.datasets.sources import sha256_of
    from reliablenet.tables.files import local_file

    piped = str(out) == "-"
    if piped and as_json:
        raise typer.BadParameter("--json needs standard output for itself: give --out a file.")
    fitted = load_model(model, trusted_keys)
    with local_file(data, header=not no_header) as path:
        kept = kept_columns(path, keep, (*DECIDED, *EXPLAINED) if explain else DECIDED)
        folder = path.path.is_dir()
        to_folder = folder and not piped and (out.is_dir() or out.suffix.lower() != ".csv")
        if out.is_dir() and not folder:
            raise typer.BadParameter(f"{out} is a folder; name a file.")
        if dask and not to_folder:
            raise typer.BadParameter("--dask decides a folder of Parquet into another folder.")
        asked = Asked(tuple(kept), defer_odd, explain, tuple(allow_missing or ()))
        if to_folder:
            with connected(dask) if dask else nullcontext() as client:
                done = decide_folder(fitted, path.path, out, asked, sha256_of(model), client)
        else:
            with nullcontext(sys.stdout.buffer) if piped else open_atomically(out) as file:
                done = write_csv(fitted, path, file, asked)
                file.flush()
    rows, accepted, odd, reasons = done.rows, done.accepted, done.oddities, done.why
    groups = dict(done.without_certificate)
    summary = {"rows": rows, "accepted": accepted, "deferred": rows - accepted, "out": str(out)}
    summary |= {"oddities": odd.to_dict(), "odd_deferred": defer_odd}
    summary["without_certificate"] = groups
    if explain:
        summary["why"] = dict(reasons.most_common())
    if as_json:
        show_json(summary)
        return
    if fitted.threshold_ == float("inf"):
        note(f"the model has no certificate and defers every row: {fitted.certificate_.reason}.")
    elif groups:
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
        note("the model has no input profile, so odd rows cannot be found: fit it again.")
    if reasons:
        counted = ", ".join(f"{reason} ({count:,})" for reason, count in reasons.most_common())
        note(f"why rows are deferred: {counted}. {EXPLAINED[-1]} describes the model, not causes.")
    place = "" if piped else f" Decisions are in {out}."
    typer.echo(
        f"Acts on {accepted:,} of {rows:,} rows ({percent(accepted / rows)}), defers "
        f"{rows - accepted:,}.{place}",
        err=piped,
    )
