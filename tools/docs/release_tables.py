"""Tables of what is handed out and where it was tried, from results/quality/release.json."""

from __future__ import annotations

from typing import Any

from studies.runner import read_records
from tools.docs.markdown import record_table

SHOWN = ("numpy", "scipy", "scikit-learn", "pandas", "torch", "skops", "typer")


def release_archives() -> str:
    """Return the sizes of the wheel and of the source archive."""
    return record_table(
        {
            "archive": lambda r: f"`{r['file']}`",
            "kilobytes": lambda r: f"{r['bytes'] / 1000:,.0f}",
            "files": lambda r: f"{r['files']:,}",
        },
        [one for one in read_records("quality", "release") if "bytes" in one],
    )


def release_environments() -> str:
    """Return how the tests ended on each Python, and what importing takes there."""
    return record_table(
        {
            "Python": lambda r: r["python"],
            "versions": lambda r: r["dependencies"],
            "tests passed": lambda r: _ended(r, "passed"),
            "skipped": lambda r: _ended(r, "skipped"),
            "failed": lambda r: _ended(r, "failure", "error"),
            "`import reliablenet`, seconds": lambda r: _seconds(r, "import_seconds"),
            "with torch": lambda r: _seconds(r, "with_torch_seconds"),
        },
        [one for one in read_records("quality", "release") if "python" in one],
    )


def release_versions() -> str:
    """Return which versions these environments had."""
    records = [one for one in read_records("quality", "release") if one.get("found")]
    columns: Any = {"Python, versions": lambda r: f"{r['versions']['python']}, {r['dependencies']}"}
    columns |= {
        name: lambda r, name=name: r["versions"]["packages"].get(name) or "-" for name in SHOWN
    }
    return record_table(columns, records)


def _ended(record: dict[str, Any], *ways: str) -> str:
    if not record["found"]:
        return "not tried"
    return f"{sum(record['tests'].get(way, 0) for way in ways):,}"


def _seconds(record: dict[str, Any], name: str) -> str:
    return f"{record[name]:.2f}" if record["found"] else ""


PARTS = {
    "release_archives": release_archives,
    "release_environments": release_environments,
    "release_versions": release_versions,
}
