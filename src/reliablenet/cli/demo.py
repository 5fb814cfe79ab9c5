"""`reliablenet demo`: two datasets, all methods, certificates, a promise by group, an alarm, a model put to use."""

from __future__ import annotations

import os
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from reliablenet.certificate import Certificate, RuleCertificate
    from reliablenet.datasets import SyntheticBand
    from reliablenet.methods import Comparison, Decisions
    from reliablenet.tables import Fold

NEW_PATIENTS = 60
HARDER = 0.9  # half-width of the band in the noisy region
NEXT_STEPS = """\
What next
  your own table      {python} -m reliablenet train FILE.csv --target COLUMN --out m.rnet
  which method?       {python} -m reliablenet compare FILE.csv --target COLUMN
  in every group      {python} -m reliablenet train FILE.csv --target COLUMN --by GROUP --out m.rnet
  serve and log       {python} -m reliablenet serve m.rnet --log decisions.db --audit 0.1
  alarm?              {python} -m reliablenet monitor decisions.db
  same source?        {python} -m reliablenet drift m.rnet NEW-ROWS.csv
  new certificate     {python} -m reliablenet recertify m.rnet FRESH.csv --target COLUMN --out n.rnet
  any other model     {python} -m reliablenet certify --help"""
IN_A_CHECKOUT = """  any fitted model    {python} examples/certify_any_model.py
  your training loop  {python} examples/own_training_loop.py
  what it promises    README.md"""

INDENTED: dict[str, Any] = {"initial_indent": "   ", "subsequent_indent": "   "}


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the saved model and its page.")] = Path(
        "demo-output"
    ),
    seed: Annotated[
        int, typer.Option(help="Random seed: the same seed gives the same result.")
    ] = 0,
) -> None:
    """Train under a budget for confident mistakes, certify, compare, save, decide, watch and export.

    Example: reliablenet demo --seed 1
    """
    import sys

    import numpy as np
    import torch
    from sklearn.datasets import load_breast_cancer

    import reliablenet as rn
    from reliablenet.cli.printing import show_comparison
    from reliablenet.datasets import SyntheticBand
    from reliablenet.report import model_page, write_page
    from reliablenet.tables import cut_folds

    out.mkdir(parents=True, exist_ok=True)  # now, for a disk may be read-only
    torch.set_num_threads(1)  # these networks are too small to gain from a second one
    typer.echo("ReliableNet: a budget, alpha, for acting on a prediction that is wrong (JCW).\n")

    alpha, band = 0.05, SyntheticBand(seed)
    best = band.best_throughput(alpha)
    typer.echo(
        f"1. Synthetic Band, alpha = {alpha:g}. In a band around the boundary, {band.in_band():.0%} of\n"
        f"   all rows, labels are coin tosses. No rule within alpha acts rightly on more\n"
        f"   than {best:.3f} of all rows.\n"
    )
    comparison = rn.compare(alpha=alpha, folds=band.folds(), random_state=seed)
    show_comparison(comparison)
    fresh = band.sample(200_000)
    show_truth(comparison, fresh, best)
    chosen = comparison.best()
    if chosen.model is not None and chosen.certificate is not None:
        show_groups(chosen.model, band, alpha)
        show_alarm(chosen.model, chosen.certificate, band)

    alpha = 0.03
    typer.echo(
        f"\n4. Breast cancer, alpha = {alpha:g}: 569 real patients, shipped with scikit-learn. Act on\n"
        f"   a diagnosis or defer to a doctor. {NEW_PATIENTS} patients are set aside as tomorrow's.\n"
    )
    table, target = load_breast_cancer(return_X_y=True, as_frame=True)
    labels = np.where(target == 1, "benign", "malignant")
    order = np.random.RandomState(seed).permutation(len(labels))
    new, known = order[:NEW_PATIENTS], order[NEW_PATIENTS:]
    folds = cut_folds(table.iloc[known], labels[known], alpha=alpha, random_state=seed)
    comparison = rn.compare(alpha=alpha, folds=folds, random_state=seed)
    show_comparison(comparison)

    choice = comparison.best()
    if choice.model is None or choice.certificate is None:
        typer.echo("5. No method got a certificate, so there is no model to use.")
        raise typer.Exit(3)
    path = choice.model.save(out / "breast-cancer.rnet")
    typer.echo(
        f"5. {choice.name}, saved to {path} and loaded back, meets the\n"
        f"   new patients. Its certificate allows for the choice among "
        f"{choice.chosen_among} methods:\n"
        f"{textwrap.fill(choice.certificate.reason + '.', 84, **INDENTED)}\n"
    )
    show_decisions(rn.load(path).decide(table.iloc[new]), labels[new])
    try:
        page = model_page(choice.model, comparison=comparison, title="Breast cancer")
        typer.echo(f"   More to see: {write_page(page, out / 'breast-cancer.html')}")
    except rn.errors.MissingExtraError as error:
        typer.echo(f"   {error}")
    show_exports(choice.model, path, table.iloc[known])
    nearest = min(sys.executable, os.path.relpath(sys.executable), key=len)
    typer.echo("\n" + NEXT_STEPS.format(python=nearest))
    if Path("examples/certify_any_model.py").exists():
        typer.echo(IN_A_CHECKOUT.format(python=nearest))


def show_truth(comparison: Comparison, fresh: Fold, best: float) -> None:
    """Print what rules do on fresh rows, and why one may exceed the budget it was certified for."""
    typer.echo(f"   What they do in truth, on {len(fresh):,} fresh rows:")
    first, choice = next(iter(comparison.results)), comparison.best()
    names = dict.fromkeys([first, "reliablenet", "boosting", "erm"])
    models = {name: comparison.results[name].model for name in names}
    if choice.model is not None:
        models[f"the best of {choice.chosen_among}"] = choice.model
    over = []
    for name, model in models.items():
        truth = model.evaluate(fresh.X, fresh.y)
        typer.echo(
            f"   {name:18s} JCW {truth.jcw:.4f}, acts rightly on {truth.throughput:.3f}, "
            f"{truth.throughput / best:.1%} of the best possible"
        )
        over += [name] if truth.jcw > comparison.alpha else []
    if choice.model is not None:
        typer.echo(f"   The last is {choice.name}, its threshold certified for having been chosen.")
    if over:
        typer.echo(
            f"   More than alpha: {', '.join(over)}. A certificate may be false in one of "
            f"{1 / comparison.rho:.0f}\n   draws, and that of a winner more often: hence the correction."
        )


def show_groups(model: Any, band: SyntheticBand, alpha: float) -> None:
    """Print what one budget for everybody does to a harder group, and what a promise by group does."""
    import numpy as np

    import reliablenet as rn

    regions = {"calm": (2000, None), "noisy": (1000, HARDER)}
    rows = {name: band.sample(n, gamma) for name, (n, gamma) in regions.items()}
    proba = model.predict_proba(np.concatenate([fold.X for fold in rows.values()]))
    y = np.concatenate([fold.y for fold in rows.values()])
    region = np.repeat(list(rows), [len(fold) for fold in rows.values()])
    whole = rn.certified_threshold(proba, y, alpha=alpha, classes=model.classes_)
    promise = rn.Promise.by_group(alpha, by="region")
    by_region = rn.certified_rule(proba, y, promise, by=region, classes=model.classes_)
    typer.echo(
        f"\n2. The same model in two regions. In one, labels are coin tosses in {band.in_band(HARDER):.0%} of the\n"
        "   rows. Certified are one budget for all rows, and one in every region. In truth:\n"
    )
    typer.echo("   region  one budget for all        a budget for every region")
    for name, (_, gamma) in regions.items():
        fresh = band.sample(50_000, gamma)
        proba = model.predict_proba(fresh.X)
        wrong = model.classes_[proba.argmax(axis=1)] != fresh.y
        acted = proba.max(axis=1) >= whole.threshold
        kept = by_region.rule.accept(proba, by=np.full(len(fresh), name))
        typer.echo(
            f"   {name:6s}  wrong {np.mean(acted & wrong):.4f}, acts {np.mean(acted):.3f}"
            f"   wrong {np.mean(kept & wrong):.4f}, acts {np.mean(kept):.3f}"
        )


def show_alarm(model: Any, certificate: Certificate | RuleCertificate, band: SyntheticBand) -> None:
    """Print what the tests of new rows say before and after the source changes."""
    import reliablenet as rn

    monitor, batch = rn.Monitor(certificate), 50
    typer.echo(
        "\n3. After the certificate. Outcomes come in, and a monitor looks after every "
        f"{batch} rows;\n   if the promise holds, the chance of an alarm is at most 5 % for all time."
    )

    def watch(rows: int, gamma: float | None = None) -> None:
        for _ in range(0, rows, batch):
            new = band.sample(batch, gamma)
            decided = model.decide(new.X)
            monitor.update(decided.accepted, decided.label != new.y)
            if monitor.alarm:
                return

    watch(2000)
    before = monitor.rows
    typer.echo(
        f"   {before:,} rows of the same source: {'an alarm' if monitor.alarm else 'no alarm'}."
    )
    if not monitor.alarm:
        watch(5000, HARDER)
        said = "an alarm" if monitor.alarm else "no alarm"
        typer.echo(f"   Then the noisy region alone: {said} after {monitor.rows - before:,} rows.")
    moved = rn.source_test(model, band.sample(500).X + 1.0)
    said = f"Without outcomes, 500 rows whose columns moved by 1: {moved}"
    typer.echo(textwrap.fill(said, 84, **INDENTED))


def show_exports(model: Any, path: Path, rows: Any) -> None:
    """Write a record for the auditor and an ONNX graph, where what they need is installed."""
    import shutil

    from reliablenet.cli.export import Order, write_record
    from reliablenet.errors import MissingExtraError

    record, graph = path.with_name("record"), path.with_suffix(".onnx")
    shutil.rmtree(record, ignore_errors=True)  # of an earlier demo
    told = {"purpose": "Demonstration", "owner": "Whoever started it", "source": "scikit-learn"}
    try:
        write_record(Order(model, path, record, "", told))
        typer.echo(f"   For an auditor: {record / 'record.html'}")
        model.export(graph, rows)
        typer.echo(f"   For other programs, tried on {len(rows)} rows: {graph}")
    except MissingExtraError as error:
        typer.echo(f"   {error}")


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
