"""`reliablenet certify`: what fresh rows prove about a model, ours or any other."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reliablenet.cli import options, promises
from reliablenet.cli.running import REFUSED

WAYS = (  # which columns of a file say how sure and how right an answer is
    {"--label", "--predicted", "--score"},
    {"--label", "--proba"},
    {"--correct", "--score"},
)

if TYPE_CHECKING:
    from reliablenet.certificate import Certificate, RuleCertificate


def certify(
    model: Annotated[Path | None, typer.Argument(help="A model file.", metavar="MODEL")] = None,
    data: Annotated[
        str,
        typer.Argument(help="Fresh rows with the truth; - for standard input.", metavar="DATA"),
    ] = "",
    target: Annotated[str, typer.Option(help="Column of DATA with the true label.")] = "",
    predictions: Annotated[
        str,
        typer.Option(
            help="A file, or a folder of Parquet, with predictions of any model, instead of MODEL and DATA."
        ),
    ] = "",
    label: Annotated[str, typer.Option(help="Column of PREDICTIONS with the true label.")] = "",
    predicted: Annotated[
        str, typer.Option(help="Column of PREDICTIONS with the predicted label.")
    ] = "",
    score: Annotated[str, typer.Option(help="Column of PREDICTIONS with the confidence.")] = "",
    proba: Annotated[
        str,
        typer.Option(
            help="Columns of PREDICTIONS with the class probabilities, separated by commas, instead of "
            "--predicted and --score; of two classes, one is enough."
        ),
    ] = "",
    positive: Annotated[
        str, typer.Option(help="The label that a single --proba is the probability of.")
    ] = "",
    correct: Annotated[
        str,
        typer.Option(
            help="Column of PREDICTIONS that says whether the answer is right (true or false, 1 or 0), with "
            "--score alone: for answers that are not labels."
        ),
    ] = "",
    lower_is_better: Annotated[
        bool, typer.Option("--lower-is-better", help="A low --score means a sure answer.")
    ] = False,
    threshold: Annotated[
        float | None,
        typer.Option(
            help="A threshold fixed beforehand; by default the lowest that can be certified."
        ),
    ] = None,
    group: Annotated[
        str,
        typer.Option(
            help="Column that says which rows belong together; one row of each group counts, drawn at "
            "random."
        ),
    ] = "",
    ungrouped: options.Ungrouped = False,
    alpha: options.MaybeAlpha = None,
    rho: options.MaybeRho = None,
    promise: promises.Names = None,
    by: promises.By = "",
    budget: promises.Budget = None,
    costs: promises.Costs = None,
    common: promises.Common = False,
    breakdown: Annotated[
        bool,
        typer.Option(
            help="Count who bears the mistakes, by label and by every other column of PREDICTIONS: one more "
            "look at the file."
        ),
    ] = True,
    no_header: options.NoHeader = False,
    dask: options.Dask = "",
    as_json: options.AsJson = False,
) -> None:
    """Certify a fixed model on fresh rows, or the predictions of any model, read in batches.

    The rows must be independent draws from the source that the rule will meet, and neither have trained the model nor chosen its threshold: rows that were given to train are recognised and refused. Exit code 0 if the certificate is granted, even if it is worth nothing, and 3 if it is refused.

    Example: reliablenet certify model.rnet fresh.csv --target default

    Example: reliablenet certify --predictions p.parquet --label y --predicted yhat --score conf

    Example: reliablenet certify --predictions p.parquet --label y --predicted yhat --score conf --by race

    Example: reliablenet certify --predictions folder/ --label y --predicted yhat --score conf --dask tcp://10.0.0.1:8786

    Example: reliablenet certify --predictions answers.jsonl --correct exact_match --score entropy --lower-is-better
    """
    from reliablenet.certificate.merging import in_one
    from reliablenet.certificate.partitions import certify_partitions
    from reliablenet.certificate.promise_wording import verdict
    from reliablenet.cli.cluster import folder_on
    from reliablenet.cli.predictions import Predictions
    from reliablenet.cli.printing import (
        bearing_lines,
        bearing_values,
        certificate_lines,
        sensitivity_values,
        show,
        show_json,
        unit_lines,
    )
    from reliablenet.tables.files import local_file

    extra: dict[str, object] = {}
    acts_at, borne, changed = "", None, {}
    if predictions:
        if ungrouped:
            raise typer.BadParameter(
                "--ungrouped goes with MODEL and DATA; predictions have no unit yet."
            )
        if target:
            raise typer.BadParameter(
                "--target is for MODEL and DATA; for a file of predictions give --label."
            )
        columns = {"--label": [label], "--predicted": [predicted], "--score": [score]}
        columns |= {"--proba": options.names(proba), "--correct": [correct]}
        if model is not None or {o for o, names in columns.items() if any(names)} not in WAYS:
            raise typer.BadParameter(
                "--predictions needs --label with --proba, or --label with --predicted and --score, or "
                "--correct with --score; and no MODEL."
            )
        if lower_is_better and not score:
            raise typer.BadParameter("--lower-is-better needs --score.")
        if positive and len(columns["--proba"]) != 1:
            raise typer.BadParameter("--positive needs --proba with exactly one column.")
        limits = (0.05 if alpha is None else alpha, 0.05 if rho is None else rho)
        promised = promises.make_promise(
            limits[0], promise, options.names(by), budget, costs, common
        )
        if promised is not None and threshold is not None:
            raise typer.BadParameter("a promise finds its own thresholds; leave --threshold out.")
        if promised is not None and lower_is_better:
            raise typer.BadParameter(
                f"--lower-is-better does not go with a promise; write minus {score} to the file."
            )
        with (
            local_file(predictions, header=not no_header) as path,
            folder_on(dask, path) as cluster,
        ):
            file = Predictions(
                path,
                label=label,
                predicted=predicted,
                score=score,
                proba=tuple(options.names(proba)),
                positive=positive,
                correct=correct,
                group=group,
                by=tuple(options.names(by)),
                lower_is_better=lower_is_better,
            )
            file = file.as_spelled()
            options.refuse_twice(file.given())
            file = file.with_known_labels()
            if promised is not None:
                promised = promises.make_promise(limits[0], promise, file.by, budget, costs, common)
            found: Certificate | RuleCertificate = certify_partitions(
                in_one(file.read) if cluster is None else cluster.run_predictions(file),
                limits[0] if promised is None else promised,
                limits[1],
                fixed=None if threshold is None else file.threshold(threshold),
                classes=None if promised is None else file.classes(),
            )
            if breakdown and found.certified:
                borne = file.breakdown(found) if cluster is None else cluster.breakdown(file, found)
        if promised is None and (correct or lower_is_better):  # else the certificate says it all
            side = "at_most" if lower_is_better else "at_least"
            extra["acts_at"] = {"column": score, side: file.threshold(found.threshold)}
            acts_at = file.acts_at(found.threshold)
        subject = "the rule"
    else:
        others = (
            threshold is not None,
            correct,
            lower_is_better,
            promise,
            by,
            budget,
            costs,
            common,
        )
        if model is None or not data or not target or any(others):
            raise typer.BadParameter(
                "give MODEL, DATA and --target (the model has its threshold and its promise), or "
                "--predictions."
            )
        from reliablenet.cli.model_rows import (  # torch takes seconds
            FreshRows,
            check_unit,
            load_model,
        )

        fitted = load_model(model)
        check_unit(fitted, group, ungrouped)
        limits = (fitted.alpha if alpha is None else alpha, fitted.rho if rho is None else rho)
        with local_file(data, header=not no_header) as path, folder_on(dask, path) as cluster:
            fresh = FreshRows(fitted, path, target, group)
            found = fresh.certify(*limits, None if cluster is None else cluster.run_fresh(fresh))
        borne, changed = fresh.breakdown, unit_lines(fitted, found)
        subject = "the model"
    if as_json:
        if borne is not None:
            extra["breakdown"] = bearing_values(borne)
        show_json(found.to_dict() | extra | {"sensitivity": sensitivity_values(found)})
    else:
        lines = certificate_lines(found, acts_at=acts_at) | changed | bearing_lines(borne)
        if model is not None and not found.certified:
            unit = f" --group {group}" if group else " --ungrouped" * ungrouped
            lines["next"] = (
                f"a new threshold from fresh {found.unit}s: reliablenet recertify {model} FRESH-ROWS --target {target}"
                f"{unit} --out RENEWED"
            )
        show(verdict(found, subject), lines)
    if not found.certified:
        raise typer.Exit(REFUSED)
