"""`reliablenet demo`: two datasets, two ways to train, certificates, a saved model put to use."""

from __future__ import annotations

import os
import textwrap
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from reliablenet.data import Folds
    from reliablenet.methods import Decisions, SelectiveClassifier

NEW_PATIENTS = 60
NEXT_STEPS = """\
What next
  your own table      {python} examples/table_to_certificate.py FILE.csv TARGET
  any fitted model    {python} examples/certify_any_model.py
  your training loop  {python} examples/own_training_loop.py
  what it promises    README.md"""


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the saved model.")] = Path("demo-output"),
    seed: Annotated[int, typer.Option(help="Seed of all that is random.")] = 0,
) -> None:
    """Train under a budget for confident mistakes, certify, save, load and decide.

    Example: reliablenet demo --seed 1
    """
    import sys

    import numpy as np
    import torch
    from sklearn.datasets import load_breast_cancer

    import reliablenet as rn
    from reliablenet.data import SyntheticBand, cut_folds

    torch.set_num_threads(1)  # these networks are too small to gain from a second one
    typer.echo("ReliableNet: a budget, alpha, for acting on a prediction that is wrong (JCW).\n")

    alpha, band = 0.05, SyntheticBand(seed)
    best = band.best_throughput(alpha)
    typer.echo(
        f"1. Synthetic Band, alpha = {alpha:g}. In a band around the boundary, {band.in_band():.0%} of\n"
        f"   all rows, labels are coin tosses. No rule within alpha acts rightly on more\n"
        f"   than {best:.3f} of all rows.\n"
    )
    models = compare(band.folds(), alpha, seed)
    fresh = band.sample(200_000)
    for name, model in models.items():
        truth = model.evaluate(fresh.X, fresh.y)
        typer.echo(
            f"   On {truth.n:,} fresh rows {name} has JCW {truth.jcw:.4f} and acts rightly on\n"
            f"   {truth.throughput:.3f}, which is {truth.throughput / best:.1%} of the best possible."
        )

    alpha = 0.03
    typer.echo(
        f"\n2. Breast cancer, alpha = {alpha:g}: 569 real patients, shipped with scikit-learn. Act on\n"
        f"   a diagnosis or defer to a doctor. {NEW_PATIENTS} patients are set aside as tomorrow's.\n"
    )
    table, target = load_breast_cancer(return_X_y=True, as_frame=True)
    labels = np.where(target == 1, "benign", "malignant")
    order = np.random.RandomState(seed).permutation(len(labels))
    new, known = order[:NEW_PATIENTS], order[NEW_PATIENTS:]
    folds = cut_folds(table.iloc[known], labels[known], alpha=alpha, random_state=seed)
    models = compare(folds, alpha, seed)

    out.mkdir(parents=True, exist_ok=True)
    path = models["ReliableNet"].save(out / "breast-cancer.rnet")
    typer.echo(f"3. The model, saved to {path} and loaded back,\n   meets the new patients:\n")
    show_decisions(rn.load(path).decide(table.iloc[new]), labels[new])
    nearest = min(sys.executable, os.path.relpath(sys.executable), key=len)
    typer.echo("\n" + NEXT_STEPS.format(python=nearest))


def compare(folds: Folds, alpha: float, seed: int) -> dict[str, SelectiveClassifier]:
    """Fit ERM and ReliableNet on the same folds, print them side by side, and return them."""
    import reliablenet as rn

    models: dict[str, Any] = {
        "ERM": rn.ERMClassifier(alpha, random_state=seed),
        "ReliableNet": rn.ReliableClassifier(alpha, random_state=seed),
    }
    columns, notes = [], []
    for name, model in models.items():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(
                folds.train.X,
                folds.train.y,
                selection=folds.selection,
                certification=folds.certification,
            )
        notes += [f"{name}: {warning.message}" for warning in caught]
        result = model.evaluate(folds.certification.X, folds.certification.y)
        certificate = model.certificate_
        columns.append(
            {
                "": name,
                "accuracy": f"{result.accuracy:.3f}",
                "coverage (acted on)": f"{result.coverage:.3f}",
                "accuracy of accepted": f"{result.accuracy_accepted:.3f}",
                "throughput (acted, right)": f"{result.throughput:.3f}",
                "JCW (acted, wrong)": f"{result.jcw:.4f}",
                "K of n": f"{certificate.errors} of {certificate.n}",
                f"bound of JCW ({1 - certificate.rho:.0%} sure)": f"{certificate.upper_bound:.4f}",
                f"certified within {alpha:g}": "yes" if certificate.certified else "no",
            }
        )
    for heading in columns[0]:
        typer.echo(f"   {heading:26s}" + "".join(f"{column[heading]:>14s}" for column in columns))
    typer.echo("")
    for note in notes:
        typer.echo(textwrap.fill(note, 84, initial_indent="   ", subsequent_indent="   ") + "\n")
    return models


def show_decisions(decisions: Decisions, truth: Any) -> None:
    """Print what was decided in all, and the three surest and three least sure rows."""
    acted = decisions.accepted
    wrong = int((acted & (decisions.label != truth)).sum())
    typer.echo(
        f"   acted on {int(acted.sum())} of {len(decisions)}, {wrong} of these wrongly; "
        f"deferred {int((~acted).sum())}. The least and the most sure:"
    )
    order = decisions.confidence.argsort()
    for row in [*order[:3], *order[-3:]]:
        action = "act" if acted[row] else "defer"
        typer.echo(
            f"   {decisions.label[row]:9s}  confidence {decisions.confidence[row]:.4f}  {action:5s}"
            f"  (in truth {truth[row]})"
        )
