"""Tables of faults, odd input, mutants and branches, from results/quality."""

from __future__ import annotations

from studies.quality.faults import failed
from studies.runner import read_records
from tools.docs.markdown import bold, record_table, table

OUTCOMES = {
    "right answer": "right",
    "answer": "answered",
    "our error": "our error",
    "documented error": "scikit-learn's error",
    "no memory": "no memory",
    "fault": "faults",
}
MUTANTS = ("mutants", "killed", "timed_out", "survived")


def fault_cases() -> str:
    """Return how many tests of each kind of fault there are, and how they ended."""
    return record_table(
        {
            "tests/faults": lambda r: r["kind"].replace("_", " "),
            "tests": lambda r: str(sum(count for name, count in r.items() if name != "kind")),
            "passed": lambda r: str(r.get("passed", 0)),
            "skipped": lambda r: str(r.get("skipped", 0)),
            "failed": lambda r: str(failed(r)),
        },
        read_records("quality", "faults"),
    )


def fuzz_cases() -> str:
    """Return the outcomes of the long form, by target."""
    found = read_records("quality", "fuzz")
    rows = []
    for record in found:
        counts = [record["outcomes"].get(kind, 0) for kind in OUTCOMES]
        cells = [f"{count:,}" if count else "" for count in counts]
        rows.append([record["target"], f"{sum(counts):,}", *cells])
    total = sum(sum(record["outcomes"].values()) for record in found)
    rows.append(["all", f"{total:,}", *[""] * len(OUTCOMES)])
    return table(["target", "cases", *OUTCOMES.values()], rows)


def mutation() -> str:
    """Return how many mutants of each module the tests kill."""
    found = read_records("quality", "mutation")
    rows = [[f"`{one['module']}`", *(f"{one[name]:,}" for name in MUTANTS)] for one in found]
    totals = [sum(record[name] for record in found) for name in MUTANTS]
    rows.append([bold("all"), *(bold(f"{total:,}") for total in totals)])
    return table(["module", *(name.replace("_", " ") for name in MUTANTS)], rows)


def coverage() -> str:
    """Return how many statements and branches of each package the tests reach."""
    headings = ["package", "statements", "reached", "branches", "reached"]
    counts = ("num_statements", "covered_lines", "num_branches", "covered_branches")
    rows = (
        [f"`{record['package']}`", *(f"{record[name]:,}" for name in counts)]
        for record in read_records("quality", "coverage")
    )
    return table(headings, rows)


def server_faults() -> str:
    """Return what became of what killed servers had told, and of requests that were made up."""
    found = read_records("quality", "server_faults")
    asked = [one for one in found if one["what"] == "made-up requests"]
    headings = [
        "tried",
        "times",
        "decisions and outcomes told, or requests",
        "lost or failed",
        "twice",
    ]
    rows: list[list[str | int]] = []
    for what in dict.fromkeys(one["what"] for one in found if "lost" in one):
        cases = [one for one in found if one["what"] == what]
        told = sum(one["acknowledged"] + one["reported"] for one in cases)
        lost = sum(one["lost"] + one["lost_outcomes"] for one in cases)
        twice = sum(one["twice"] for one in cases)
        rows.append([what, len(cases), told, lost, twice])
    rows.append(
        [
            "requests made up from the description, sound and broken",
            len(asked),
            sum(one["requests"] for one in asked),
            sum(one["failures"] for one in asked),
            "",
        ]
    )
    return table(headings, [[f"{v:,}" if isinstance(v, int) else v for v in row] for row in rows])


PARTS = {
    "coverage": coverage,
    "server_faults": server_faults,
    "fault_cases": fault_cases,
    "fuzz_cases": fuzz_cases,
    "mutation": mutation,
}
