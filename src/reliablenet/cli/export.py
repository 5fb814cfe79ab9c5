"""`reliablenet export`: a model in a form that other programs read.

Each form is a record in `TARGETS`; what it needs to know of the command stands in `Order`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from reliablenet.cli import options


@dataclass(frozen=True)
class Order:
    """What was asked for.

    Attributes
    ----------
    model : estimator
        The model, loaded.
    file : Path
        The model file that it came from.
    out : Path
        Where to write.
    check : str
        A table with rows to try the result on; empty if none was given.
    told : dict
        What people said of the model, by the names of `Given`.
    """

    model: Any
    file: Path
    out: Path
    check: str
    told: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Target:
    """A form that a model can be written in.

    Attributes
    ----------
    what : str
        In a few words, for the help.
    write : callable
        Takes an `Order`, writes, and returns what to print.
    folder : bool
        Whether it is a folder, not a file.
    """

    what: str
    write: Callable[[Order], str]
    folder: bool = False


def write_onnx(order: Order) -> str:
    """Write one graph from columns to decisions."""
    from reliablenet.datasets.sources import sha256_of
    from reliablenet.export.parts import TOLERANCE
    from reliablenet.methods.exporting import write_graph

    batches = table_batches(order.model, order.check) if order.check else ()
    name = f"rows of {order.check}"
    trial = write_graph(order.model, order.out, batches, sha256_of(order.file), name)
    tried = f"{trial.made_up:,} made-up rows"
    if order.check:
        tried += f" and {trial.rows:,} {name}, {trial.certified:,} certification rows among them"
    return (
        f"{order.out} decides as {order.file} does: tried on {tried}, label and accepted are the same "
        f"and confidence differs by less than {TOLERANCE:.5f}."
    )


def table_batches(model: Any, table: str) -> Iterator[tuple[Any, Any]]:
    """Yield the rows of a table as a model takes them, with the groups that its rule needs."""
    from reliablenet.cli.model_rows import feature_batches, rule_groups
    from reliablenet.tables.files import local_file

    columns = model.rule_.columns
    with local_file(table) as path:
        for X, more in feature_batches(model, path, by=columns):
            yield X, rule_groups(model, more) if columns else None


def write_mlflow(order: Order) -> str:
    """Write a folder that MLflow loads and serves."""
    from reliablenet.export.mlflow import write_folder

    write_folder(order.model, order.file, order.out)
    return (
        f"{order.out} is an MLflow model, with its certificate. Serve it where reliablenet is installed: "
        f"mlflow models serve -m {order.out} --env-manager local"
    )


def write_record(order: Order) -> str:
    """Write the validation record: JSON, a page to print, and a model card."""
    from reliablenet.cli.model_summary import contents_of
    from reliablenet.report.record_page import write_files
    from reliablenet.report.record_sections import make_record
    from reliablenet.report.validation_record import Given

    contents = contents_of(order.model, order.file)
    record = make_record(order.model, order.file, contents, Given(**_asked(order.told)))
    paths = write_files(record, order.out)
    names = ", ".join(str(path) for path in paths)
    missing = f" Not given: {' '.join(record.missing)}" if record.missing else ""
    return f"The validation record is in {names}.{missing}"


def _asked(told: dict[str, Any]) -> dict[str, Any]:
    """Return answers as given; on a terminal people are asked for those that are missing."""
    from reliablenet.report.validation_record import QUESTIONS

    given = {name: value for name, value in told.items() if value not in ("", None)}
    if sys.stdin.isatty() and sys.stdout.isatty():
        for name, question in QUESTIONS.items():
            if name not in given:
                given[name] = typer.prompt(question, default="", show_default=False)
    return given


TARGETS = {
    "onnx": Target("one graph from columns to decisions, for onnxruntime", write_onnx),
    "mlflow": Target("a folder that MLflow loads and serves", write_mlflow, folder=True),
    "record": Target(
        "a validation record for the auditor, and a model card", write_record, folder=True
    ),
}


def known_target(name: str) -> str:
    """Refuse a form that is not known, before the model is read."""
    if name not in TARGETS:
        raise typer.BadParameter(f"must be one of {', '.join(TARGETS)}; got {name}.")
    return name


def export(
    model: options.Model,
    to: Annotated[
        str,
        typer.Option(
            callback=known_target,
            help="; ".join(f"{name}: {target.what}" for name, target in TARGETS.items()) + ".",
        ),
    ],
    out: Annotated[Path, typer.Option(help="The file or folder to write.")],
    check: Annotated[
        str, typer.Option(metavar="DATA", help="A table with rows to try the result on.")
    ] = "",
    trusted_keys: options.TrustedKeys = None,
    purpose: Annotated[str, typer.Option(help="Record: what the model is for.")] = "",
    owner: Annotated[str, typer.Option(help="Record: who answers for it.")] = "",
    population: Annotated[str, typer.Option(help="Record: whom or what the rows are about.")] = "",
    source: Annotated[str, typer.Option(help="Record: the file or query they come from.")] = "",
    collected: Annotated[str, typer.Option(help="Record: when they were collected.")] = "",
    alpha_reason: Annotated[str, typer.Option(help="Record: why this budget.")] = "",
    renewal: Annotated[str, typer.Option(help="Record: when a new certificate is needed.")] = "",
    audit: Annotated[
        float | None,
        typer.Option(
            parser=options.share, metavar="SHARE", help="Record: decisions that a person checks."
        ),
    ] = None,
) -> None:
    """Write a model in a form that other programs read.

    Example: reliablenet export model.rnet --to onnx --out model.onnx

    Example: reliablenet export model.rnet --to record --out record --purpose "Small loans" --owner "Risk"
    """
    from reliablenet.cli.model_rows import load_model

    target = TARGETS[to]
    told = {
        "purpose": purpose,
        "owner": owner,
        "population": population,
        "source": source,
        "collected": collected,
        "alpha_reason": alpha_reason,
        "renewal": renewal,
        "audit": audit,
    }
    said = [name for name, value in told.items() if value not in ("", None)]
    if said and to != "record":
        raise typer.BadParameter(f"--{said[0].replace('_', '-')} is for --to record.")
    if target.folder and out.exists():
        raise typer.BadParameter(f"{out} exists already; name a folder that does not exist.")
    options.output(out)
    loaded = load_model(model, trusted_keys)
    typer.echo(target.write(Order(loaded, model, out, check, told)))
