"""Results in words, the same from every command: certificates, comparisons, and JSON."""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from reliablenet.certificate import Certificate
    from reliablenet.methods import Comparison


def verdict(certificate: Certificate, subject: str, *, acts: bool | None = None) -> str:
    """Return one sentence on what a rule may do.

    Examples
    --------
    >>> from reliablenet.certificate import Certificate
    >>> c = Certificate(errors=1, accepted=80, n=100, alpha=0.05, rho=0.05, threshold=0.9)
    >>> verdict(c, "The model").split(": ")
    ['Certified', 'The model acts on 80% of rows, and wrongly on at most 5% of all rows from this source (confidence 95%).']
    """
    if certificate.certified:
        return (
            f"Certified: {subject} acts on {percent(certificate.coverage)} of rows, and wrongly on "
            f"at most {percent(certificate.alpha)} of all rows from this source (confidence "
            f"{percent(1 - certificate.rho)})."
        )
    if acts is None:
        return f"Not certified: {subject} is not shown to keep its budget."
    if acts:
        return f"Not certified: {subject} acts without a certificate."
    return f"Not certified: {subject} defers every row."


def remedy(certificate: Certificate, *, share: float = 1.0) -> str:
    """Return what would grant a refused certificate; ``share`` of the user's rows certify.

    Examples
    --------
    >>> from reliablenet.certificate import Certificate
    >>> few = Certificate(errors=0, accepted=40, n=40, alpha=0.05, rho=0.05, threshold=0.9)
    >>> remedy(few, share=0.4)
    '59 certification rows or more, about 148 rows in all; or a larger alpha'
    >>> near = Certificate(errors=40, accepted=900, n=1000, alpha=0.05, rho=0.05, threshold=0.9)
    >>> remedy(near)
    'more rows (3,701 if it goes on acting wrongly on 4% of them), or an alpha of 0.0518 or more'
    """
    from reliablenet.certificate import largest_certifiable_errors, rows_for_errors, rows_needed

    alpha, rho = certificate.alpha, certificate.rho
    if largest_certifiable_errors(certificate.n, alpha, rho) < 0:
        rows = rows_for_errors(certificate.errors, alpha, rho)
        in_all = f", about {math.ceil(rows / share):,} rows in all" if share < 1 else ""
        return f"{rows:,} certification rows or more{in_all}; or a larger alpha"
    if certificate.threshold == math.inf:
        return "a model that is rarely wrong where it is sure (see reliablenet compare), or a larger alpha"
    larger = f"an alpha of {math.ceil(certificate.upper_bound * 1e4) / 1e4:g} or more"
    if certificate.jcw >= alpha:
        return f"a higher threshold, or {larger}"
    rows = rows_needed(alpha, rho, expected_jcw=certificate.jcw)
    rate = percent(certificate.jcw)
    return f"more rows ({rows:,} if it goes on acting wrongly on {rate} of them), or {larger}"


def certificate_lines(certificate: Certificate, *, share: float = 1.0) -> dict[str, str]:
    """Return the reason and the rule, and what would grant a refused certificate, by name."""
    lines = {"because": certificate.reason}
    if not certificate.certified:
        lines["needed"] = remedy(certificate, share=share)
    elif math.isfinite(certificate.threshold):
        lines["acts at"] = f"confidence {certificate.threshold:.4g} or more"
    return lines


def show(sentence: str, lines: Mapping[str, str]) -> None:
    """Print a sentence and named lines under it."""
    typer.echo(sentence)
    width = max(map(len, lines), default=0)
    for name, text in lines.items():
        typer.echo(f"  {name:{width}s}  {text}")


def show_json(values: Mapping[str, Any]) -> None:
    """Print strict JSON: a number that JSON lacks is a text."""
    typer.echo(json.dumps(_plain(values), indent=2, allow_nan=False))


def percent(share: float) -> str:
    """Write a share as a person would, without losing small ones.

    Examples
    --------
    >>> percent(0.05), percent(0.6234), percent(0.0004)
    ('5%', '62.3%', '0.04%')
    """
    return f"{100 * share:.3g}%"


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


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):  # numpy's numbers and arrays
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
