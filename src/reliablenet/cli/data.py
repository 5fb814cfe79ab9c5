"""`reliablenet data`: the paper's datasets, found or fetched."""

from __future__ import annotations

from typing import Annotated

import typer

from reliablenet.cli import options

data = typer.Typer(help="The paper's datasets: list, get, info.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="A name from reliablenet data list.")]


@data.command("list")
def list_datasets(as_json: options.AsJson = False) -> None:
    """List the datasets.

    Example: reliablenet data list
    """
    from importlib import import_module

    from reliablenet.cli.printing import show, show_json
    from reliablenet.datasets import DATASETS

    stories = {
        name: str(import_module(f"reliablenet.datasets.{name}").__doc__).splitlines()[0]
        for name in DATASETS
    }
    if as_json:
        show_json(stories)
    else:
        show("Datasets of the paper; reliablenet data get NAME finds or fetches one:", stories)


@data.command()
def get(name: Name, as_json: options.AsJson = False) -> None:
    """Find the files of a dataset, or download and verify them.

    Example: reliablenet data get adult
    """
    from reliablenet.cli.printing import show_json
    from reliablenet.datasets import load_dataset

    dataset = load_dataset(name)
    files = list(dataset.info.get("files", []))
    if as_json:
        show_json({"name": name, "files": files})
    else:
        what = f"{len(files)} files, verified by SHA-256" if files else "generated, no files needed"
        typer.echo(f"{name} is ready: {what}.")


@data.command()
def info(name: Name, seed: options.Seed = 0, as_json: options.AsJson = False) -> None:
    """Show the folds of a dataset, its shifts and groups, and where it comes from.

    Example: reliablenet data info german_credit
    """
    from reliablenet.cli.printing import show, show_json
    from reliablenet.datasets import load_dataset

    dataset = load_dataset(name, random_state=seed)
    parts = {f"{part} fold": len(fold) for part, fold in vars(dataset.folds).items()}
    parts |= {f"shift {part}": len(dataset.shifts[part]) for part in dataset.shifts}
    parts |= {f"group {part}": len(dataset.groups[part]) for part in dataset.groups}
    facts = {key: value for key, value in dataset.info.items() if key != "files"}
    if as_json:
        show_json({"name": name, "seed": seed, "rows": parts, "info": dict(dataset.info)})
    else:
        rows = {part: f"{count:,} rows" for part, count in parts.items()}
        show(f"{name}, seed {seed}:", rows | {key: str(value) for key, value in facts.items()})
