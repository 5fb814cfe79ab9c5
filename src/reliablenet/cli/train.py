"""`reliablenet train`: from a table to a model with a certificate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from reliablenet.cli import options, promises
from reliablenet.cli.running import REFUSED


def train(
    data: options.Data,
    target: options.Target,
    out: Annotated[Path, typer.Option(callback=options.output, help="The model file to write.")],
    alpha: options.Alpha = 0.05,
    rho: options.Rho = 0.05,
    threshold: Annotated[
        str,
        typer.Option(
            envvar="RELIABLENET_THRESHOLD",
            callback=options.threshold,
            help="When to act: certified (the lowest that can be certified), selection, or a number.",
        ),
    ] = "certified",
    network: Annotated[
        str,
        typer.Option(
            envvar="RELIABLENET_NETWORK",
            help="The network: tabular, or mlp (that of the paper).",
        ),
    ] = "tabular",
    members: Annotated[
        str,
        typer.Option(
            envvar="RELIABLENET_MEMBERS",
            help="Who answers: auto, or network, boosting and forest, separated by commas; network alone "
            "means no trees.",
        ),
    ] = "auto",
    tolerance: options.Tolerance = "",
    drop: options.Drop = "",
    categorical: options.Categorical = "",
    text: options.Text = "",
    no_text: options.NoText = False,
    date: options.Date = "",
    no_date: options.NoDate = False,
    no_header: options.NoHeader = False,
    weight: Annotated[
        str,
        typer.Option(
            metavar="COLUMN",
            help="Column that says how much each row counts in training; the certificate counts every row "
            "once.",
        ),
    ] = "",
    balanced: Annotated[
        bool, typer.Option("--balanced", help="Let every class count alike in training.")
    ] = False,
    group: options.Group = "",
    promise: promises.Names = None,
    by: promises.By = "",
    budget: promises.Budget = None,
    costs: promises.Costs = None,
    common: promises.Common = False,
    seed: options.Seed = 0,
    report: options.Report = None,
    config: options.Config = None,
    as_json: options.AsJson = False,
) -> None:
    """Train a model that acts or defers, and certify it on rows that it has not seen.

    It predicts classes, or with --tolerance numbers.

    Exit code 3 if no certificate is granted; model and report are written all the same.

    Example: reliablenet train loans.csv --target default --alpha 0.02 --out model.rnet

    Example: reliablenet train loans.csv --target default --by region --out model.rnet
    Example: reliablenet train flats.csv --target price --tolerance 10% --out model.rnet
    """
    for named, left_out, option in ((text, no_text, "text"), (date, no_date, "date")):
        if named and left_out:
            raise typer.BadParameter(f"--{option} and --no-{option} exclude each other: give one.")
    import numpy as np

    import reliablenet as rn
    from reliablenet.certificate.planning import MOST_SHARE
    from reliablenet.certificate.promise_wording import verdict
    from reliablenet.cli.labelled import read_labelled
    from reliablenet.cli.printing import (
        bearing_lines,
        bearing_values,
        certificate_lines,
        sensitivity_values,
        show,
        show_json,
    )
    from reliablenet.tables.target import promised_groups

    if tolerance and (balanced or members != "auto"):
        raise typer.BadParameter("--members and --balanced are for classes, not for --tolerance.")
    table = read_labelled(
        data,
        target,
        group=group,
        by=by,
        drop=drop,
        weight=weight,
        categorical=categorical,
        text=text,
        date=date,
        header=not no_header,
    )
    features, labels = table.take(numbers=bool(tolerance))
    promised = promises.make_promise(alpha, promise, table.by, budget, costs, common)
    groups_by = {}
    if promised is not None:
        promises.refuse_target(promised, table.target)
        groups_by = {name: promised_groups(table.frame[name], name) for name in promised.columns}
        classes = [] if tolerance else np.unique(labels).tolist()
        promised = promises.spell_labels(promised, classes, groups_by)
        promises.note_small_groups(promised, groups_by, rho)
    who = members if members == "auto" else tuple(options.names(members))
    rule = threshold if threshold in ("certified", "selection") else float(threshold)
    settings: dict[str, Any] = {"promise": promised, "network": network, "random_state": seed}
    of_classes: dict[str, Any] = {"members": who, "class_weight": "balanced" if balanced else None}
    settings["text"] = None if no_text else table.text or "auto"
    settings["dates"] = None if no_date else table.date or "auto"
    model = (
        rn.ReliableRegressor(tolerance, alpha, rho, rule, **settings)
        if tolerance
        else rn.ReliableClassifier(alpha, rho, rule, **settings, **of_classes)
    )
    model.fit(features, labels, groups=table.groups, by=groups_by or None, **table.weights)
    model.save(out)
    found, acts = model.certificate_, model.threshold_ < float("inf")
    borne = model.breakdown_
    lines = certificate_lines(found, share=MOST_SHARE) | bearing_lines(borne) | {"model": str(out)}
    if report is not None:
        from reliablenet.report import fold_importance, model_page, write_page

        write_page(model_page(model, importance=fold_importance(model, features)), report)
        lines["report"] = str(report)
    lines["next"] = f"reliablenet predict {out} NEW-ROWS.csv --out decisions.csv"
    if as_json:
        values = {"acts": acts, "certificate": found.to_dict(), "breakdown": bearing_values(borne)}
        show_json(values | {"sensitivity": sensitivity_values(found)} | lines)
    else:
        show(verdict(found, "the model", acts=acts), lines)
    if not found.certified:
        raise typer.Exit(REFUSED)
