"""`reliablenet serve`: decisions over HTTP, each of them in a log before it is sent."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from reliablenet.cli import options
from reliablenet.cli.running import note
from reliablenet.errors import DataFileError, MissingExtraError

NEEDED = ("fastapi", "uvicorn", "httptools", "orjson", "sqlalchemy", "jinja2")


def share(value: float) -> float:
    """Refuse a share outside [0, 1]."""
    if not 0.0 <= value <= 1.0:
        raise typer.BadParameter(f"must lie in [0, 1]; got {value:g}.")
    return value


def serve(
    model: options.Model,
    log: Annotated[
        str,
        typer.Option(
            envvar="RELIABLENET_LOG",
            help="Where decisions are logged: a SQLite file, or postgresql://user@host/database.",
        ),
    ],
    audit: Annotated[
        float,
        typer.Option(callback=share, help="Share of decisions that a person is to check."),
    ] = 0.1,
    host: Annotated[
        str, typer.Option(help="Address to listen on; by default this machine alone.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")
    ] = 8080,
    name: Annotated[str, typer.Option(help="Name of the model; by default that of its file.")] = "",
    token_file: Annotated[
        Path | None,
        typer.Option(
            help="A file with the token that requests must bring; RELIABLENET_TOKEN does the same."
        ),
    ] = None,
    audit_key: Annotated[
        Path | None,
        typer.Option(
            help="A file with the key of the audit coin; RELIABLENET_AUDIT_KEY does the same. By "
            "default it is made beside a SQLite log."
        ),
    ] = None,
    group: Annotated[
        str, typer.Option(help="Column that says which group a row belongs to; the log keeps it.")
    ] = "",
    keep_features: Annotated[
        bool, typer.Option("--keep-features", help="Keep what was asked in the log, too.")
    ] = False,
    durable: Annotated[
        bool,
        typer.Option(
            "--durable", help="SQLite: survive a power failure too; each batch waits for the disk."
        ),
    ] = False,
    defer_odd: options.DeferOdd = False,
    allow_missing: options.AllowMissing = None,
    trusted_keys: options.TrustedKeys = None,
    level: Annotated[
        float,
        typer.Option(
            parser=options.share, metavar="SHARE", help="Probability of a false alarm, ever."
        ),
    ] = 0.05,
    max_rows: Annotated[int, typer.Option(min=1, help="Rows in one request.")] = 10_000,
    max_megabytes: Annotated[int, typer.Option(min=1, help="Size of one request.")] = 16,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds for one request.")] = 30.0,
    watch: Annotated[
        float,
        typer.Option(
            min=0.0,
            help="Seconds between checks whether the model file was replaced; 0: only on SIGHUP.",
        ),
    ] = 0.0,
) -> None:
    """Serve a model over HTTP: decisions out, each of them logged first, and outcomes back in.

    Example: reliablenet serve model.rnet --log decisions.db --audit 0.1
    """
    missing = [package for package in NEEDED if find_spec(package) is None]
    if missing:
        raise MissingExtraError(f"A server needs {missing[0]}: pip install 'reliablenet[serve]'")
    from reliablenet.serve.server import run
    from reliablenet.serve.settings import Settings

    settings = Settings(
        model=model,
        log=log,
        key=_key(log, audit_key),
        audit=audit,
        name=name,
        host=host,
        port=port,
        token=_token(token_file),
        group=group,
        keep_features=keep_features,
        durable=durable,
        most_rows=max_rows,
        most_bytes=max_megabytes * 2**20,
        timeout=timeout,
        watch=watch,
        level=level,
        defer_odd=defer_odd,
        allow_missing=tuple(allow_missing or ()),
        trusted_keys=tuple(trusted_keys or ()),
    )
    if not settings.local and not settings.token:
        note(
            "anyone who reaches this address can ask for decisions and report outcomes: give --token-file."
        )
    run(settings, lambda line: typer.echo(line, err=True))


def _token(path: Path | None) -> str:
    if path is None:
        return os.environ.get("RELIABLENET_TOKEN", "").strip()
    try:
        token = path.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        raise DataFileError(f"There is no token file {path}.") from None
    if not token:
        raise DataFileError(f"The token file {path} is empty.")
    return token


def _key(log: str, path: Path | None) -> bytes:
    from reliablenet.monitor.coin import MAKE_ONE, make_key, parse_key, read_key

    if path is not None:
        return read_key(path)
    if text := os.environ.get("RELIABLENET_AUDIT_KEY", "").strip():
        return parse_key(text, "RELIABLENET_AUDIT_KEY")
    if "://" in log:
        raise DataFileError(
            f"A log in PostgreSQL needs --audit-key, the same for all its servers. Make one: {MAKE_ONE}"
        )
    if not Path(log).parent.is_dir():
        raise DataFileError(f"There is no folder {Path(log).parent} for the decision log.")
    return make_key(Path(f"{log}.key"))
