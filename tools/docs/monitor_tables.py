"""Tables of the page on guarantees about what comes after the certificate, from committed results."""

from __future__ import annotations

from studies.guarantees.drift import LONGEST
from studies.guarantees.monitor import FAULTS
from studies.runner import Record, read_records
from tools.docs.markdown import percent, record_table, table


def monitor_levels() -> str:
    """Return how often the alarm was raised at the edge of the promise, by the way of feeding the monitor."""
    found = [r for r in read_records("guarantees", "monitor") if r["truth"] == "1 x alpha"]
    columns = {
        "outcomes given": lambda r: str(r["way"]) + (" (a fault)" if r["way"] in FAULTS else ""),
        "alpha": lambda r: f"{r['alpha']:g}",
        "streams": lambda r: f"{r['streams']:,}",
        "rows each": lambda r: f"{r['rows']:,}",
        "alarm ever raised": lambda r: percent(r["alarms"], r["streams"]),
        "bound too low at the end": _bound,
    }
    return record_table(columns, found, ("outcomes given",))


def monitor_delays() -> str:
    """Return how many rows pass until the alarm, once the promise is broken."""
    found = [r for r in read_records("guarantees", "monitor") if r["truth"] != "1 x alpha"]
    rows = []
    for record in found:
        delays = ["never" if rows is None else f"{rows:,}" for rows in record["delay"]]
        rows.append([_truth(record), record["way"], f"{record['streams']:,}", *delays])
    headings = ["JCW", "outcomes given", "streams", "a tenth by row", "half by row", "nine tenths"]
    return table(headings, rows, ("JCW", "outcomes given"))


def monitor_renewals() -> str:
    """Return how often a certificate was ever false, by the way of looking again."""
    columns = {
        "way": lambda r: str(r["way"]),
        "JCW of acting on all": lambda r: f"{r['jcw_of_all']:.4f}",
        "a look every": lambda r: "row" if r["look_every"] == 1 else f"{r['look_every']} rows",
        "streams": lambda r: f"{r['streams']:,}",
        "ever false": lambda r: percent(r["false"], r["streams"]),
        "all rows certified, half by row": lambda r: _rows(r["rows_until_all"][0]),
    }
    return record_table(columns, read_records("guarantees", "renewal"), ("way",))


def drift_levels() -> str:
    """Return how often the source test raised an alarm though nothing changed."""
    found = [r for r in read_records("guarantees", "drift") if r["part"] == "level"]
    fault = "training rows"
    columns = {
        "test": lambda r: str(r["test"]),
        "compared with": lambda r: (
            r["compared_with"] + " (a fault)" * (r["compared_with"] == fault)
        ),
        "draws": lambda r: f"{r['draws']:,}",
        "alarm raised": lambda r: percent(r["alarms"], r["draws"]),
    }
    return record_table(columns, found, ("test", "compared with"))


def drift_shifts() -> str:
    """Return which of the paper's shifts the source test sees, by how many new rows."""
    found = [r for r in read_records("guarantees", "drift") if r["part"] == "shift"]
    sizes = sorted({r["new_rows"] for r in found if r["new_rows"] != "stream"})
    cases = dict.fromkeys((r["dataset"], r["shift"]) for r in found)
    rows = []
    for case in cases:
        of_case = {r["new_rows"]: r for r in found if (r["dataset"], r["shift"]) == case}
        seen = [f"{of_case[n]['seen']:.0%}" if n in of_case else "" for n in sizes]
        stream = of_case["stream"]
        soon = stream["median_delay"] <= LONGEST
        told = [f"{stream['median_delay']}", stream["where"]] if soon else ["never", ""]
        rows.append([*case, *seen, *told])
    headings = ["dataset", "shift", *(f"seen in {n} rows" for n in sizes), "stream, half by row"]
    return table([*headings, "where"], rows, ("dataset", "shift", "where"))


def _bound(record: Record) -> str:
    failed = record["bound_failed"]
    return "" if failed is None else percent(failed, record["streams"])


def _truth(record: Record) -> str:
    changed = record["truth"] == "late change"
    return "half of alpha, twice alpha from row 10,001 on" if changed else str(record["truth"])


def _rows(rows: int | None) -> str:
    return "never" if rows is None else f"{rows:,}"


PARTS = {
    "drift_levels": drift_levels,
    "drift_shifts": drift_shifts,
    "monitor_delays": monitor_delays,
    "monitor_levels": monitor_levels,
    "monitor_renewals": monitor_renewals,
}
