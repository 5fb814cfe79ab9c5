"""Results in words, the same from every command: certificates, comparisons, and JSON."""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import typer

from reliablenet._json import strict

if TYPE_CHECKING:
    from reliablenet.certificate import Certificate, RuleCertificate
    from reliablenet.methods import Comparison
    from reliablenet.metrics import Breakdown


def certificate_lines(
    certificate: Certificate | RuleCertificate, *, share: float = 1.0, acts_at: str = ""
) -> dict[str, str]:
    """Return what stands below a verdict, by name.

    ``share`` of the user's rows certify; ``acts_at`` says where the rule acts if its score is no
    confidence of ours.
    """
    from reliablenet.certificate import RuleCertificate, promise_wording, wording
    from reliablenet.certificate.remedies import remedy

    lines = {"because": certificate.reason, "acted on": wording.acted_on(certificate)}
    if not certificate.certified:
        lines["needed"] = remedy(certificate, share)
    elif isinstance(certificate, RuleCertificate):
        for name, threshold in certificate.rule.thresholds.items():
            lines["acts" if name == "all" else f"acts, {name}"] = _when(threshold)
    else:
        lines["acts"] = f"at {acts_at}" if acts_at else _when(certificate.threshold)
    notes = promise_wording.notes(certificate)
    return lines | {f"note {i + 1}" if len(notes) > 1 else "note": t for i, t in enumerate(notes)}


def _when(threshold: float) -> str:
    """Say when a rule acts; 0 is not always, as not every score is a probability."""
    if math.isinf(threshold):
        return "never" if threshold > 0 else "always"
    from reliablenet.certificate.wording import threshold_text

    return f"at confidence {threshold_text(threshold)} or more"


def unit_lines(model: Any, certificate: Certificate | RuleCertificate) -> dict[str, str]:
    """Return what is to be said where a certificate counts another unit than the model's own."""
    own = model.certificate_.unit
    if certificate.unit == own:
        return {}
    return {
        "unit": f"{certificate.unit}s are counted, where the model's own certificate counts {own}s: the two promises "
        "are about different things"
    }


def bearing_lines(breakdown: Breakdown | None) -> dict[str, str]:
    """Return who clearly bears more mistakes than the rest, by name; nothing if nobody does."""
    if breakdown is None or not breakdown.is_clear_anywhere:
        return {}
    names = ("borne by", "and by")
    lines = dict(zip(names, breakdown.summary(len(names)), strict=False))
    lines[list(lines)[-1]] += " (exploratory; only what the certificate names is promised)"
    return lines


def bearing_values(breakdown: Breakdown) -> list[dict[str, Any]]:
    """Return every part with its counts, rates and intervals, as JSON can hold it."""
    frame = breakdown.to_frame()
    return [strict(dict(row)) for row in frame.to_dict("records")]


def sensitivity_values(certificate: Certificate | RuleCertificate) -> dict[str, Any]:
    """Return how far the source of each granted part may move before alpha is reached, by its name."""
    from reliablenet.certificate.shift import sensitivities

    return {name: card.to_dict() for name, card in sensitivities(certificate).items()}


def show(sentence: str, lines: Mapping[str, str]) -> None:
    """Print a sentence and named lines under it."""
    typer.echo(sentence)
    width = max(map(len, lines), default=0)
    for name, text in lines.items():
        typer.echo(f"  {name:{width}s}  {text}")


def show_json(values: Mapping[str, Any]) -> None:
    """Print strict JSON: a number that JSON lacks is a text."""
    typer.echo(json.dumps(strict(values), indent=2, allow_nan=False))


def show_comparison(comparison: Comparison) -> None:
    """Print one line a method, and which to use."""
    typer.echo(
        "                           at the certified threshold              rule fixed before"
    )
    typer.echo(
        "   method                  acted  right  wrong    K of n   bound   wrong   certified"
    )
    for name, result in comparison.results.items():
        found, rule = result.certificate, result.rule
        line = f"{'no certificate: every row is deferred':39s}"
        if found.certified:
            count = f"{found.errors}/{found.n}"
            line = (
                f"{found.coverage:.3f}  {found.throughput:.3f}  {found.jcw:.3f} {count:>9s}"
                f"  {found.upper_bound:.4f}"
            )
        fixed = "-" if rule is None else f"{rule.jcw:.3f}   {'yes' if rule.certified else 'no'}"
        typer.echo(f"   {name:23s} {line}   {fixed}")
    for name, story in comparison.failures.items():
        typer.echo(f"   {name:23s} failed: {story}")
    text = str(comparison.best())
    typer.echo("")
    typer.echo(textwrap.fill(text, 84, initial_indent="   ", subsequent_indent="   ") + "\n")
