"""Options that commands share, and where settings come from.

A setting is that of its flag, else of the environment, else of the file named by ``--config``, else
its default. typer looks in this order by itself; `read_config` only hands it the file.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from reliablenet.errors import DataFileError, MissingExtraError


def share(value: str | float) -> float:
    """Return a share written as 0.05 or 5%, and refuse one outside (0, 1) before anything is read."""
    text = str(value).strip()
    percent = text.endswith("%")
    try:
        number = float(text.removesuffix("%")) / (100.0 if percent else 1.0)
    except ValueError:
        raise typer.BadParameter(f"must be a share such as 0.05 or 5%; got {text}.") from None
    if not 0.0 < number < 1.0:
        hint = f" Did you mean {number:g}%?" if not percent and 1.0 <= number < 100.0 else ""
        raise typer.BadParameter(f"must lie in (0, 1); got {text}.{hint}")
    return number


def threshold(value: str) -> str:
    """Refuse a rule that no method knows."""
    if value not in ("certified", "selection"):
        try:
            fits = 0.0 < float(value) <= 1.0
        except ValueError:
            fits = False
        if not fits:
            raise typer.BadParameter(f"must be certified, selection or a number; got {value}.")
    return value


def tolerance(value: str) -> str:
    """Refuse a number that cannot be a tolerance, before anything is read; other texts name a column."""
    share = value.strip().endswith("%")
    try:
        amount = float(value.strip().removesuffix("%"))
    except ValueError:
        return value
    if not 0.0 < amount < (100.0 if share else float("inf")):
        raise typer.BadParameter(
            f"must be a number above 0, or a share of the truth between 0% and 100%; got {value}."
        )
    return value


def output(path: Path | None) -> Path | None:
    """Refuse a place where no file can be written, before the work starts."""
    if path is None or str(path) == "-":
        return path
    if path.is_dir():
        raise typer.BadParameter(f"{path} is a folder; name a file.")
    if not path.parent.is_dir():
        raise typer.BadParameter(f"there is no folder {path.parent}; make it first.")
    if not os.access(path.parent, os.W_OK):
        raise typer.BadParameter(f"the folder {path.parent} cannot be written to.")
    return path


def output_or_folder(path: Path) -> Path:
    """Refuse a place where neither a file nor a folder can be written, before the work starts."""
    found = output(path / "file" if path.is_dir() else path)
    assert found is not None  # noqa: S101
    return path


def page(path: Path | None) -> Path | None:
    """Refuse a page that cannot be drawn or written, before the work starts."""
    if path is not None and find_spec("jinja2") is None:
        raise MissingExtraError("A report needs jinja2: pip install 'reliablenet[report]'")
    return output(path)


def read_config(context: typer.Context, path: Path | None) -> Path | None:
    """Take the settings of a TOML file for defaults."""
    if path is None:
        return None
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataFileError(f"There is no file {path}.") from None
    except (OSError, ValueError) as error:
        raise typer.BadParameter(f"{path} is not a TOML file: {error}") from None
    known = {str(parameter.name) for parameter in context.command.params} - {"config", "data"}
    strangers = sorted(values.keys() - known)
    if strangers:
        raise typer.BadParameter(
            f"{path} has unknown settings {strangers}; known are {sorted(known)}."
        )
    repeated = {str(p.name) for p in context.command.params if getattr(p, "multiple", False)}
    context.default_map = {
        name: _texts(value) if name in repeated else _plain(value) for name, value in values.items()
    }
    return path


def names(text: str) -> list[str]:
    """Return the names in a text with commas between."""
    return [name.strip() for name in text.split(",") if name.strip()]


def _texts(value: Any) -> list[str]:
    """Return what an option that can be repeated gets from a list or a table of TOML."""
    if isinstance(value, dict):
        return [f"{name}={item}" for name, item in value.items()]
    return [str(item) for item in (value if isinstance(value, list) else [value])]


def _plain(value: Any) -> Any:
    return ",".join(str(item) for item in value) if isinstance(value, list) else value


Data = Annotated[
    str,
    typer.Argument(
        help="CSV, TSV, JSON lines, Excel, Parquet or Feather, text also compressed; a folder of Parquet; - for standard input.",
        metavar="DATA",
    ),
]
Dask = Annotated[
    str,
    typer.Option(
        metavar="ADDRESS",
        help="For a folder of Parquet: work on the Dask cluster whose scheduler has this address, such as "
        "tcp://10.0.0.1:8786; local starts one here.",
    ),
]
Model = Annotated[Path, typer.Argument(help="A model file, as train writes it.", metavar="MODEL")]
Target = Annotated[str, typer.Option(help="The column to predict.")]
NoHeader = Annotated[
    bool,
    typer.Option(
        "--no-header", help="The first line is a row: columns are called 0, 1, 2 and so on."
    ),
]
Ungrouped = Annotated[
    bool,
    typer.Option(
        "--ungrouped",
        help="Each row is a unit of its own, though the model's own certificate counts groups.",
    ),
]
Categorical = Annotated[
    str,
    typer.Option(
        help="Columns of numbers that are categories, such as postcodes, separated by commas."
    ),
]
Text = Annotated[
    str,
    typer.Option(
        help="Columns to read as free text, separated by commas, beside those that look like it."
    ),
]
NoText = Annotated[bool, typer.Option("--no-text", help="Leave free text out.")]
Date = Annotated[
    str,
    typer.Option(
        help="Columns to read as dates, separated by commas, beside those that look like it."
    ),
]
NoDate = Annotated[bool, typer.Option("--no-date", help="Leave dates out.")]
Drop = Annotated[str, typer.Option(help="Columns to leave out, separated by commas.")]
Group = Annotated[
    str,
    typer.Option(
        help="Column that says which rows belong together, such as those of one person. It is not a "
        "feature. A group stays in one fold and counts once in the certificate.",
    ),
]
Tolerance = Annotated[
    str,
    typer.Option(
        envvar="RELIABLENET_TOLERANCE",
        callback=tolerance,
        help="Predict a number: how far it may be off and still be right. 5, 10% (of the truth), or "
        "the column that holds it for each row.",
    ),
]
Alpha = Annotated[
    float,
    typer.Option(
        envvar="RELIABLENET_ALPHA",
        parser=share,
        metavar="SHARE",
        help="Budget: the share of all rows that may be acted on wrongly.",
    ),
]
Rho = Annotated[
    float,
    typer.Option(
        envvar="RELIABLENET_RHO",
        parser=share,
        metavar="SHARE",
        help="Allowed probability that the certificate is wrong.",
    ),
]
MaybeAlpha = Annotated[
    float | None,
    typer.Option(
        envvar="RELIABLENET_ALPHA",
        parser=share,
        metavar="SHARE",
        help="Budget; by default the model's, or 0.05.",
    ),
]
MaybeRho = Annotated[
    float | None,
    typer.Option(
        envvar="RELIABLENET_RHO",
        parser=share,
        metavar="SHARE",
        help="Allowed probability that the certificate is wrong; by default the model's, or 0.05.",
    ),
]
Seed = Annotated[
    int,
    typer.Option(
        envvar="RELIABLENET_SEED", min=0, help="Random seed: the same seed gives the same result."
    ),
]
Config = Annotated[
    Path | None,
    typer.Option(
        envvar="RELIABLENET_CONFIG",
        is_eager=True,
        callback=read_config,
        help="A TOML file with settings, such as alpha = 0.02; flags and environment variables override it.",
    ),
]
Report = Annotated[
    Path | None, typer.Option(callback=page, help="Also write a report: one HTML file.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
DeferOdd = Annotated[
    bool,
    typer.Option("--defer-odd", help="Also defer rows unlike those that the model was trained on."),
]
AllowMissing = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="A column that may be missing in every row given."),
]
TrustedKeys = Annotated[
    list[Path] | None,
    typer.Option(
        envvar="RELIABLENET_TRUSTED_KEYS",
        metavar="FILE",
        help="A file of public keys; can be repeated. A model that none of them signed is refused.",
    ),
]
Key = Annotated[
    Path | None,
    typer.Option(
        help="A private key to sign with; a password is taken from RELIABLENET_KEY_PASSWORD."
    ),
]


def refuse_twice(columns: Mapping[str, Sequence[str]]) -> None:
    """Raise if one column is given with two options: what is compared with itself is never wrong."""
    given: dict[str, str] = {}
    for option, names in columns.items():
        for name in filter(None, names):
            if name in given:
                raise typer.BadParameter(
                    f"{given[name]} and {option} both name the column {name!r}. Give each its own."
                )
            given[name] = option
