"""`reliablenet plan`: how many rows a certificate takes, and what the rows at hand can prove."""

from __future__ import annotations

from typing import Annotated

import typer

from reliablenet.cli import options, promises

MEANT = {  # which rows are counted
    "among-accepted": "are rows acted on, with the order of thresholds learned on other rows",
    "by-group": "are rows of each group; a smaller group is deferred",
    "by-predicted": "are all rows, whatever is predicted",
    "by-class": "are rows of each true class",
    "cost": "are all rows; alpha is the budget over the largest cost",
}


def plan(
    alpha: options.Alpha = 0.05,
    rho: options.Rho = 0.05,
    expected_jcw: Annotated[
        float,
        typer.Option(help="The share of all rows that the rule is expected to act on wrongly."),
    ] = 0.0,
    power: Annotated[
        float,
        typer.Option(
            parser=options.share, metavar="SHARE", help="Wanted chance of being certified."
        ),
    ] = 0.9,
    rows: Annotated[
        int | None,
        typer.Option(min=1, help="Certification rows that you have: print what they can prove."),
    ] = None,
    monitor: Annotated[
        bool,
        typer.Option("--monitor", help="Plan the monitor instead: how soon is a breach seen?"),
    ] = False,
    audit: Annotated[
        float, typer.Option(help="With --monitor: probability with which a row is audited.")
    ] = 1.0,
    level: Annotated[
        float,
        typer.Option(
            parser=options.share, metavar="SHARE", help="With --monitor: chance of a false alarm."
        ),
    ] = 0.05,
    groups: Annotated[
        int,
        typer.Option(
            min=1,
            help="Groups or classes that must each keep the budget.",
        ),
    ] = 1,
    shares: Annotated[
        str,
        typer.Option(
            help="Share of each group in all rows, separated by commas: print how many rows that takes in all."
        ),
    ] = "",
    promise: Annotated[
        str,
        typer.Option(
            help="What must hold: overall, among-accepted, by-group, by-predicted, by-class or cost."
        ),
    ] = "",
    common: promises.Common = False,
    as_json: options.AsJson = False,
) -> None:
    """Tell how many certification rows a budget needs, before any is labelled.

    Example: reliablenet plan --alpha 0.05 --expected-jcw 0.03

    Example: reliablenet plan --alpha 0.05 --rows 400

    Example: reliablenet plan --alpha 0.05 --monitor --audit 0.1

    Example: reliablenet plan --alpha 0.05 --groups 5 --shares 0.4,0.3,0.15,0.1,0.05
    """
    if monitor:
        _plan_monitor(alpha, level, audit, as_json)
        return
    from reliablenet.certificate import (
        certification_power,
        clopper_pearson_upper,
        largest_certifiable_errors,
        rows_needed,
    )
    from reliablenet.certificate.wording import confidence, exact, percent, percent_up
    from reliablenet.cli.printing import show, show_json

    kind = _kind(promise, groups, common)
    # the prediction tells whose mistake it would be only where there are two classes
    together = common or (kind == "by-class" and groups > 2)
    sharing = 1 if together else groups
    needed = rows_needed(alpha, rho, expected_jcw, power, groups=sharing)
    parts = _shares(shares, groups)
    result: dict[str, object] = {
        "alpha": alpha,
        "rho": rho,
        "expected_jcw": expected_jcw,
        "power": power,
        "rows_needed": needed,
    }
    truth = "never acts wrongly" if expected_jcw == 0 else f"acts wrongly on {exact(expected_jcw)}"
    sentence = (
        f"{needed:,} certification {'row shows' if needed == 1 else 'rows show'}, with a chance of at least {exact(power)}, that a rule which "
        f"{truth} keeps {exact(alpha)} ({confidence(rho)} confidence)."
    )
    lines = {}
    if kind != "overall":
        result |= {"promise": kind, "groups": groups, "common": common}
        lines["rows"] = MEANT[kind]
        if common and kind == "by-group":
            lines["rows"] = "are rows of each group; with fewer of one, nothing is acted on"
    if kind in ("by-group", "by-class", "by-predicted"):
        lines["of rho"] = (
            "one rule for all: each is tested at rho"
            if together
            else f"{groups} thresholds share it: each is tested at {rho / groups:g}"
        )
    if parts:
        total = rows_needed(alpha, rho, expected_jcw, power, groups=sharing, shares=parts)
        result |= {"shares": parts, "rows_in_all": total}
        lines["in all"] = (
            f"{total:,} rows, of which the smallest group, {exact(min(parts))}, gets {needed:,} on average"
        )
    if rows is not None:
        level = rho / sharing
        most = largest_certifiable_errors(rows, alpha, level)
        chance = certification_power(rows, alpha, level, expected_jcw)
        bound = float(clopper_pearson_upper(0, rows, level))
        result |= {"rows": rows, "most_errors": most, "chance": chance, "least_bound": bound}
        lines[f"{rows:,} rows"] = (
            f"afford {most} wrong actions; chance of a certificate {percent(chance)}"
            if most >= 0
            else f"cannot certify {exact(alpha)}, not even without a wrong action"
        )
        lines["at best"] = f"without a wrong action they show at most {percent_up(bound, alpha)}"
    if as_json:
        show_json(result)
    else:
        show(sentence, lines)


def _plan_monitor(alpha: float, level: float, audit: float, as_json: bool) -> None:
    """Print how soon the monitor sees breaches of several sizes."""
    from reliablenet.certificate.wording import exact, percent
    from reliablenet.cli.printing import show, show_json
    from reliablenet.monitor.delays import plan_delay

    sizes = [factor * alpha for factor in (1.5, 2.0, 3.0, 5.0) if factor * alpha < 1.0]
    delays = {jcw: plan_delay(alpha, jcw, level, audit) for jcw in sizes}
    if as_json:
        found = [{"jcw": jcw} | delay._asdict() for jcw, delay in delays.items()]
        show_json({"alpha": alpha, "level": level, "audit": audit, "delays": found})
        return
    lines = {}
    for jcw, (median, most, labels) in delays.items():
        name = f"{percent(jcw)} wrong"
        if median is None or labels is None:
            lines[name] = "takes more rows than can be planned"
            continue
        ninety = "more than can be planned" if most is None else f"{most:,}"
        lines[name] = (
            f"alarm after {median:,} rows in half of the cases, {ninety} in nine tenths; "
            f"about {labels:,.0f} audited rows"
        )
    show(
        f"How soon an alarm shows that a rule breaks {exact(alpha)}, if {exact(audit)} of its rows are audited (chance "
        f"of a false alarm, ever: {exact(level)}):",
        lines,
    )


def _kind(promise: str, groups: int, common: bool) -> str:
    """Return the promise that is planned for; groups alone say that it is by group."""
    kind = promise.replace("_", "-") or ("by-group" if groups > 1 or common else "overall")
    if kind not in promises.KINDS:
        raise typer.BadParameter(
            f"--promise must be one of {', '.join(promises.KINDS)}; got {kind!r}."
        )
    if kind not in promises.LABELLED and (groups > 1 or common):
        raise typer.BadParameter(f"--groups and --common do not go with --promise {kind}.")
    return kind


def _shares(text: str, groups: int) -> list[float]:
    try:
        parts = [float(share) for share in options.names(text)]
    except ValueError:
        raise typer.BadParameter(
            f"--shares must be numbers with commas between; got {text}."
        ) from None
    if parts and len(parts) != groups:
        raise typer.BadParameter(
            f"--shares must name {groups} shares, as --groups says; got {len(parts)}."
        )
    return parts
