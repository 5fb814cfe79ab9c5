"""`reliablenet compare`: which method to use on a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reliablenet.cli import options, promises
from reliablenet.cli.running import REFUSED, note


def compare(
    data: options.Data,
    target: options.Target,
    alpha: options.Alpha = 0.05,
    rho: options.Rho = 0.05,
    methods: Annotated[str, typer.Option(help="Only these methods, separated by commas.")] = "",
    tolerance: options.Tolerance = "",
    drop: options.Drop = "",
    categorical: options.Categorical = "",
    no_header: options.NoHeader = False,
    group: options.Group = "",
    promise: promises.Names = None,
    by: promises.By = "",
    budget: promises.Budget = None,
    costs: promises.Costs = None,
    common: promises.Common = False,
    seed: options.Seed = 0,
    jobs: Annotated[int, typer.Option(help="Methods fitted at the same time.")] = 1,
    out: Annotated[
        Path | None, typer.Option(callback=options.output, help="Write the comparison as JSON.")
    ] = None,
    report: options.Report = None,
    save_best: Annotated[
        Path | None,
        typer.Option(callback=options.output, help="Write the recommended model, ready to use."),
    ] = None,
    config: options.Config = None,
    as_json: options.AsJson = False,
) -> None:
    """Fit every method on the same rows and compare what each can be certified to do.

    It predicts classes, or with --tolerance numbers. Exit code 3 if none can be certified.

    Example: reliablenet compare loans.csv --target default --alpha 0.02 --save-best model.rnet
    """
    import numpy as np

    import reliablenet as rn
    from reliablenet._files import write_atomically
    from reliablenet.cli.labelled import read_labelled
    from reliablenet.cli.printing import show_comparison, show_json
    from reliablenet.tables.columns import check_columns

    table = read_labelled(
        data,
        target,
        group=group,
        by=by,
        drop=drop,
        categorical=categorical,
        header=not no_header,
    )
    features, labels = table.take(numbers=bool(tolerance))
    check_columns(table.by, features.columns.tolist(), table.name)
    promised = promises.make_promise(alpha, promise, table.by, budget, costs, common)
    if promised is not None:
        classes = [] if tolerance else np.unique(labels).tolist()
        groups_by = {name: features[name].dropna().unique() for name in promised.columns}
        promised = promises.spell_labels(promised, classes, groups_by)
    comparison = rn.compare(
        features,
        labels,
        alpha,
        rho,
        options.names(methods) or None,
        promise=promised,
        tolerance=tolerance or None,
        groups=table.groups,
        n_jobs=jobs,
        random_state=seed,
    )
    for text in dict.fromkeys(text for r in comparison.results.values() for text in r.notes):
        if text.startswith("Column ") or "are copies of" in text:
            note(text)
    best = comparison.best()
    written = {}
    if out is not None:
        write_atomically(out, comparison.to_json().encode())
        written["comparison"] = str(out)
    if report is not None:
        from reliablenet.report import comparison_page, write_page

        write_page(comparison_page(comparison), report)
        written["report"] = str(report)
    if save_best is not None and best.model is not None:
        written["model"] = str(best.model.save(save_best))
    if as_json:
        frame = comparison.to_frame()
        rows = {name: frame.loc[name].to_dict() for name in frame.index}
        show_json({"best": best.name, "sentence": str(best), "methods": rows} | written)
    else:
        show_comparison(comparison)
        for name, place in written.items():
            typer.echo(f"   {name:10s}  {place}")
        if "model" in written:
            typer.echo(
                f"   next        reliablenet predict {save_best} NEW-ROWS.csv --out decisions.csv"
            )
    if best.model is None:
        raise typer.Exit(REFUSED)
