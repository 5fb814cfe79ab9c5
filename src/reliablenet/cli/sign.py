"""`reliablenet keygen`, `sign` and `verify`: who vouches for a model file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from reliablenet.cli import options
from reliablenet.errors import DataFileError


def keygen(
    key: Annotated[Path, typer.Argument(help="Where to write the private key.", metavar="KEY")],
) -> None:
    """Make a pair of keys: KEY to sign with, for you alone to read, and KEY.pub to give away.

    Keys of OpenSSL and OpenSSH work as well. If RELIABLENET_KEY_PASSWORD is set, it locks the private key.

    Example: reliablenet keygen signer.pem
    """
    from reliablenet.modelfile.signature import make_keys

    private, public = make_keys(key, key_password())
    typer.echo(f"The private key is in {private}, the public one in {public}.")


def sign(
    model: options.Model,
    key: Annotated[
        Path,
        typer.Option(help="An Ed25519 private key, in the format PEM or OpenSSH.", metavar="FILE"),
    ],
) -> None:
    """Sign a model file in place. The password of a locked key is taken from RELIABLENET_KEY_PASSWORD.

    Example: reliablenet sign model.rnet --key signer.pem
    """
    from reliablenet.modelfile.signature import sign_file

    _check_there(model)
    mark = sign_file(model, key, key_password())
    typer.echo(f"{model} is signed with the key {mark}.")


def verify(
    model: options.Model,
    trusted_keys: Annotated[
        list[Path],
        typer.Option(
            envvar="RELIABLENET_TRUSTED_KEYS",
            metavar="FILE",
            help="A file of public keys; can be repeated.",
        ),
    ],
) -> None:
    """Check that a model file is whole and signed with one of the trusted keys; else exit code 2.

    Example: reliablenet verify model.rnet --trusted-keys signer.pem.pub
    """
    from reliablenet.modelfile.archive import open_archive
    from reliablenet.modelfile.signature import check_signature

    _check_there(model)
    mark = check_signature(open_archive(model), trusted_keys, model)
    typer.echo(f"{model} is whole, and signed with the trusted key {mark}.")


def key_password() -> bytes | None:
    """Return the password of the private key, if the environment has one."""
    return os.environ.get("RELIABLENET_KEY_PASSWORD", "").encode() or None


def _check_there(model: Path) -> None:
    if not model.exists():
        raise DataFileError(f"There is no model file {model}.")
