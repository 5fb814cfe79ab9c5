"""`reliablenet certify`: what fresh rows prove about a model, ours or any other."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reliablenet.cli import options
from reliablenet.cli.running import REFUSED


def certify(
    model: Annotated[Path | None, typer.Argument(help="A model file.", metavar="MODEL")] = None,
    data: Annotated[
        str,
        typer.Argument(help="Fresh rows with the truth; - for standard input.", metavar="DATA"),
    ] = "",
    target: Annotated[str, typer.Option(help="The column with the truth, beside MODEL.")] = "",
    predictions: Annotated[
        str, typer.Option(help="A file with predictions of any model, instead of MODEL and DATA.")
    ] = "",
    label: Annotated[str, typer.Option(help="Its column with the truth.")] = "",
    predicted: Annotated[str, typer.Option(help="Its column with the predicted label.")] = "",
    score: Annotated[str, typer.Option(help="Its column with the confidence.")] = "",
    proba: Annotated[
        str,
        typer.Option(
            help="Its probability columns, with commas between, instead of predicted and score."
        ),
    ] = "",
    threshold: Annotated[
        float | None,
        typer.Option(help="A threshold fixed beforehand; by default the lowest certifiable one."),
    ] = None,
    alpha: options.MaybeAlpha = None,
    rho: options.MaybeRho = None,
    as_json: options.AsJson = False,
) -> None:
    """Certify a fixed model on fresh rows, or the predictions of any model, read in batches.

    The rows must be independent draws from the source that the rule will meet, and neither have trained the model nor chosen its threshold. Exit code 3 if the certificate is refused.

    Example: reliablenet certify model.rnet fresh.csv --target default

    Example: reliablenet certify --predictions p.parquet --label y --predicted yhat --score conf
    """
    from reliablenet.certificate.streaming import certified_threshold_batches, certify_batches
    from reliablenet.cli.predictions import Predictions
    from reliablenet.cli.printing import certificate_lines, show, show_json, verdict
    from reliablenet.cli.rows import load_model, score_batches
    from reliablenet.data.tables import local_file

    if predictions:
        if model is not None or not label or bool(proba) == bool(predicted and score):
            raise typer.BadParameter(
                "--predictions needs --label, and --predicted with --score or else --proba, and "
                "no MODEL."
            )
        budget = (0.05 if alpha is None else alpha, 0.05 if rho is None else rho)
        with local_file(predictions) as path:
            file = Predictions(path, label, predicted, score, tuple(options.names(proba)))
            if threshold is None:
                found = certified_threshold_batches(file.read, *budget)
            else:
                found = certify_batches(file.read(), threshold, *budget)
        subject = "the rule"
    else:
        if model is None or not data or not target or threshold is not None:
            raise typer.BadParameter(
                "give MODEL, DATA and --target (the model has its threshold), or --predictions."
            )
        fitted = load_model(model)
        budget = (fitted.alpha if alpha is None else alpha, fitted.rho if rho is None else rho)
        with local_file(data) as path:
            rows = score_batches(fitted, path, target)
            found = certify_batches(rows, fitted.threshold_, *budget)
        subject = "the model"
    if as_json:
        show_json(found.to_dict())
    else:
        show(verdict(found, subject), certificate_lines(found))
    if not found.certified:
        raise typer.Exit(REFUSED)
