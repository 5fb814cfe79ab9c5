"""`reliablenet recertify`: a new threshold for a model, from fresh rows of the source that it meets now."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reliablenet.cli import options
from reliablenet.cli.running import REFUSED, note


def recertify(
    model: options.Model,
    data: Annotated[
        str,
        typer.Argument(help="Fresh rows with the truth; - for standard input.", metavar="DATA"),
    ],
    target: Annotated[str, typer.Option(help="Column of DATA with the true label.")],
    out: Annotated[
        Path, typer.Option(callback=options.output, help="Where to write the renewed model.")
    ],
    reason: Annotated[
        str, typer.Option(help="Why, for the chain of certificates in the file.")
    ] = "renewed on fresh rows",
    group: Annotated[
        str,
        typer.Option(
            help="Column that says which rows belong together; one row of each group counts, drawn at "
            "random. With --sequential it is drawn in the look that the group first comes in."
        ),
    ] = "",
    ungrouped: options.Ungrouped = False,
    sequential: Annotated[
        Path | None,
        typer.Option(
            callback=options.output,
            help="A file that keeps all fresh rows of this renewal: look every month until it passes. Made at the first look.",
        ),
    ] = None,
    no_header: options.NoHeader = False,
    trusted_keys: options.TrustedKeys = None,
    key: options.Key = None,
    as_json: options.AsJson = False,
) -> None:
    """Give a model a new threshold from fresh rows; its weights stay as they are.

    The rows must be independent draws from the source that the model meets now, and the model must not have seen them: rows that it was trained, tuned or certified on are recognised and refused. The old certificate stays in the file, in a chain with reason and date. One look is a fixed plan; with --sequential you may add rows and look again until it passes. Exit code 3 if no threshold can be certified; then nothing is written to --out.

    Example: reliablenet recertify model.rnet fresh.csv --target default --out renewed.rnet

    Example: reliablenet recertify model.rnet march.csv --target default --out renewed.rnet --sequential renewal.json
    """
    from reliablenet.certificate.promise_wording import verdict
    from reliablenet.cli.model_rows import FreshRows, check_unit, load_model
    from reliablenet.cli.printing import certificate_lines, show, show_json, unit_lines
    from reliablenet.cli.sign import key_password
    from reliablenet.methods.renewal import RenewalState, refuse_own_rule, renew
    from reliablenet.modelfile.signature import sign_file, signed_with
    from reliablenet.tables.files import local_file

    fitted = load_model(model, trusted_keys)
    refuse_own_rule(fitted)
    check_unit(fitted, group, ungrouped)
    with local_file(data, header=not no_header) as path:
        fresh = FreshRows(fitted, path, target, group)
        rows, hashes = fresh.read_all()
    if sequential is None:
        renewed, found = renew(fitted, rows, hashes, reason, rows.group if group else "rows")
    else:
        state = (
            RenewalState.load(sequential, fitted)
            if sequential.exists()
            else RenewalState.begin(fitted, "group" if group else "row")
        )
        state = state.add(rows, hashes, rows.group)
        state.save(sequential)
        renewed, found = state.renew(fitted, reason)
    if found.certified:
        renewed.save(out)
        if key is not None:
            sign_file(out, key, key_password())
        elif signed_with(model):
            note("the model was signed and the renewed one is not: sign it, or give --key.")
    if as_json:
        show_json(found.to_dict() | {"out": str(out) if found.certified else None})
    else:
        lines = certificate_lines(found) | unit_lines(fitted, found)
        if found.certified:
            lines["written"] = f"{out}, certificate {len(renewed.chain_)} in its chain"
        elif sequential is not None:
            lines["needed"] = (
                f"more fresh {found.unit}s; {found.n:,} are kept in {sequential}; look again at any time"
            )
        else:
            lines["note"] = (
                "trying again with other rows until one passes voids the promise; with --sequential you may look as often as you like"
            )
        show(verdict(found, "the model", acts=False), lines)
    if not found.certified:
        raise typer.Exit(REFUSED)
