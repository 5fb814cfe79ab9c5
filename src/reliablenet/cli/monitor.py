"""`reliablenet monitor`: does a rule in use still keep its promise? For cron: exit code 4 is the alarm."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reliablenet.cli import options
from reliablenet.cli.running import ALARM

if TYPE_CHECKING:
    from reliablenet.monitor import Monitor
    from reliablenet.monitor.score_stream import ScoreStream

URL = "postgresql://"


def monitor(
    place: Annotated[
        str,
        typer.Argument(
            help="A decision log (SQLite file or PostgreSQL URL), or a table of outcomes in the order of the decisions; - for standard input.",
            metavar="LOG_OR_FILE",
        ),
    ],
    alpha: Annotated[
        float | None,
        typer.Option(
            envvar="RELIABLENET_ALPHA",
            parser=options.share,
            metavar="SHARE",
            help="Budget; by default that of the certificate in the log, or 0.05.",
        ),
    ] = None,
    level: Annotated[
        float,
        typer.Option(
            parser=options.share, metavar="SHARE", help="Allowed chance of a false alarm, ever."
        ),
    ] = 0.05,
    audit: Annotated[
        float | None,
        typer.Option(help="With a table: probability with which a row was picked for audit."),
    ] = None,
    accepted: Annotated[str, typer.Option(help="Column: was the row acted on?")] = "accepted",
    wrong: Annotated[
        str, typer.Option(help="Column: was the prediction wrong? Empty while not known.")
    ] = "wrong",
    label: Annotated[
        str, typer.Option(help="Column with the predicted label, instead of --wrong.")
    ] = "",
    truth: Annotated[
        str, typer.Option(help="Column with the true label, beside --label; empty while not known.")
    ] = "",
    group: Annotated[
        str,
        typer.Option(help="Column with the group of a row; every group is held to --alpha."),
    ] = "",
    out: Annotated[
        Path | None,
        typer.Option(
            callback=options.page, help="With a decision log: also write its page, one HTML file."
        ),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Tell whether a rule in use still keeps its promise, from the outcomes of its decisions.

    Look as often as you like: while the promise is kept, the chance that the alarm is ever raised is at most --level. A table has the columns accepted and wrong (or --label and --truth), and audited where only a share of the rows was. Exit code 0 if there is no alarm, 4 if there is one.

    Example: reliablenet monitor decisions.db --out page.html

    Example: reliablenet monitor outcomes.csv --alpha 0.02 --audit 0.1 --json
    """
    from reliablenet.cli.printing import show, show_json

    if bool(label) != bool(truth):
        raise typer.BadParameter("--label and --truth belong together; give both or neither.")
    source: ScoreStream | None = None
    if place.startswith(URL) or _is_sqlite(Path(place)):
        if audit is not None or group or label:
            raise typer.BadParameter(
                "--audit, --group, --label and --truth are for a table; LOG_OR_FILE is a decision log."
            )
        found, source = _watch_log(place, alpha, level, out)
    elif out is not None:
        raise typer.BadParameter("--out needs a decision log; LOG_OR_FILE is a table.")
    else:
        found = _watch_file(place, alpha, level, audit, accepted, wrong, label, truth, group)
    if as_json:
        told = {} if source is None else {"source": source.to_dict()}
        show_json(found.to_dict() | told | ({} if out is None else {"page": str(out)}))
    else:
        lines = _lines(found)
        if source is not None:
            lines["source"] = f"{source} Evidence {source.e_value:.3g} of {1 / source.level:.3g}."
        if out is not None:
            lines["page"] = str(out)
        show(str(found), lines)
    if found.alarm:
        raise typer.Exit(ALARM)


def _watch_log(
    place: str, alpha: float | None, level: float, out: Path | None
) -> tuple[Monitor, ScoreStream | None]:
    from reliablenet.errors import InvalidDataError
    from reliablenet.monitor.log import DecisionLog
    from reliablenet.monitor.watched import watch

    with DecisionLog(place) as log:
        watched = watch(log, level, alpha)
        if out is not None:
            from reliablenet.report import write_page
            from reliablenet.report.monitor import monitor_page

            write_page(monitor_page(log, level=level, watched=watched), out)
    if watched.monitor is None:
        raise InvalidDataError(watched.why_not)
    return watched.monitor, watched.source


def _watch_file(
    place: str,
    alpha: float | None,
    level: float,
    audit: float | None,
    accepted: str,
    wrong: str,
    label: str,
    truth: str,
    group: str,
) -> Monitor:
    import pandas as pd

    from reliablenet.monitor import Monitor
    from reliablenet.monitor.reading import OutcomeColumns, default_columns, watch_table
    from reliablenet.tables.files import local_file, read_batches

    with local_file(place) as path:
        given = OutcomeColumns(accepted, wrong, label, truth, group=group)
        columns = default_columns(path, given)
        outcome = {"--label": label, "--truth": truth} if label else {"--wrong": columns.wrong}
        read = {"--accepted": columns.accepted, "--group": group} | outcome
        options.refuse_twice({option: [name] for option, name in read.items()})
        if columns.audited and audit is None and not columns.probability:
            raise typer.BadParameter(
                "the table has a column audited: give the share of rows that is audited with --audit."
            )
        least, groups = 1.0 if audit is None else audit, set[str]()
        for name, small in ((columns.probability, True), (group, False)):
            for frame in read_batches(path, [name], text={group}) if name else ():
                if small:
                    least = min(least, float(pd.to_numeric(frame[name]).min()))
                else:
                    groups.update(map(str, frame[name].dropna().unique()))
        budget = 0.05 if alpha is None else alpha
        watched = Monitor(dict.fromkeys(sorted(groups), budget) if group else budget, level, least)
        return watch_table(path, watched, columns)


def _is_sqlite(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(15) == b"SQLite format 3"


def _lines(found: Monitor) -> dict[str, str]:
    from reliablenet.certificate.wording import percent_up

    limit = 1 / found.level
    lines = {
        "evidence": f"{found.e_value:.3g}; the alarm is raised at {limit:.3g}",
        "at most": f"{percent_up(found.upper_bound, 1.0)} of rows acted on wrongly so far, at any look",
        "rows": f"{found.rows:,}, of which {found.labels:,} acted on and with a known outcome",
    }
    if found.pending:
        lines["pending"] = (
            f"{found.pending:,} outcomes to come; if all were wrong the evidence would be at most {found.worst_e_value:.3g}, "
            f"if none were, at most {percent_up(found.best_upper_bound, 1.0)} acted on wrongly"
        )
    for name, part in found.parts.items():
        if name:
            state = "ALARM" if part.alarm else "no alarm"
            lines[name] = (
                f"{state}; {part.errors:,} mistakes in {part.rows:,} rows, at most {percent_up(part.upper_bound, part.alpha)}"
            )
    if found.alarm:
        lines["next"] = "stop acting, or renew the rule on fresh rows: reliablenet recertify"
    return lines
