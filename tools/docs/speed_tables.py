"""Tables of the pages on speed, large data and several processes, from results/speed."""

from __future__ import annotations

from typing import Any

from studies.runner import read_records
from tools.docs.markdown import bold, record_table, sentence, table


def certified_file() -> str:
    """Return the memory that the certificate of a large file took."""
    (found,) = read_records("speed", "stream")
    megabytes = {"file": found["file_bytes"] / 1e6, "peak": found["peak_bytes"] / 1e6}
    return sentence("certified_file", rows=found["rows"] / 1e6, **megabytes)


def certified_file_by_group() -> str:
    """Return what a certificate by group takes beside the overall one of the same file."""
    found = max(read_records("speed", "stream_groups"), key=lambda record: int(record["rows"]))
    return sentence(
        "certified_file_by_group",
        rows=found["rows"] / 1e6,
        groups=found["groups"],
        ratio=found["ratio"],
        peak=found["by_group_peak_bytes"] / 1e6,
        overall=found["overall_peak_bytes"] / 1e6,
    )


def two_processes() -> str:
    """Return the time of an epoch on two processes over that on one, by batch and width."""
    return record_table(
        {
            "rows a process": lambda r: f"{r['batch']:,}",
            "width": lambda r: f"{r['width']}",
            "plain epoch": lambda r: f"{r['plain']:.2f}",
            "constrained epoch": lambda r: f"{r['constrained']:.2f}",
        },
        read_records("speed", "distributed"),
        left=(),
    )


def speed() -> str:
    """Return the ratios of `make bench-speed`, with what each was to be."""
    figures: dict[tuple[str, str], dict[int, dict[str, Any]]] = {}
    for figure in read_records("speed", "ratios"):
        by_threads = figures.setdefault((figure["name"], figure["target"]), {})
        by_threads[figure["threads"]] = figure
    rows = []
    for (name, target), by_threads in figures.items():
        cells = [f"{by_threads[n]['ratio']:.2f}" if n in by_threads else "" for n in (1, 2)]
        met = [figure["met"] for figure in by_threads.values()]
        verdict = "" if None in met else "met" if all(met) else bold("missed")
        rows.append([name, *cells, target, verdict])
    headings = ["what", "1 thread", "2 threads", "wanted", ""]
    return table(headings, rows, left=("what", "wanted", ""))


def team_times() -> str:
    """Return what the default costs beside boosting and beside its members, and the constraint in a loop."""
    return _ratios("team_times")


def image_steps() -> str:
    """Return the speed of training on images beside a usual loop."""
    return _ratios("image_steps")


def _ratios(study: str) -> str:
    """Return ratios of a study in one column, with what each was to be."""
    return record_table(
        {
            "what": lambda r: r["name"],
            "ratio": lambda r: f"{r['ratio']:.2f}",
            "wanted": lambda r: r["target"],
            "": lambda r: {True: "met", False: bold("missed"), None: ""}[r["met"]],
        },
        read_records("speed", study),
        left=("what", "wanted", ""),
    )


def steps_tried() -> str:
    """Return how fast other ways to run a step are, as multiples of ours."""
    one, two = read_records("speed", "steps_tried")
    ways = {
        "compiled_passes": "loss, forward and backward pass as one function under `torch.compile`",
        "compiled_loss_and_optimiser": "autograd, with loss and optimiser under `torch.compile`",
        "stacked_seeds": "five seeds stacked into one network (for each seed)",
    }
    rows = [[what, f"{one[name]:.2f}", f"{two[name]:.2f}"] for name, what in ways.items()]
    found = table(["instead of our step", "1 thread", "2 threads"], rows)
    return sentence("steps_tried", table=found, seconds_to_compile=one["seconds_to_compile"])


def serving() -> str:
    """Return what decisions over HTTP cost beside a bare route, and beside `decide`."""
    found = read_records("speed", "serving")
    rows = [
        [
            f"single rows, {one['clients']} at once",
            f"{one['ratio_to_padded']:.2f} of a bare route with the same padded pass of the network, "
            f"{one['ratio_to_plain']:.2f} of one with a plain pass; by the processor's time "
            f"{one['padded_processor_ms'] / one['ours_processor_ms']:.2f} and "
            f"{one['plain_processor_ms'] / one['ours_processor_ms']:.2f}",
            f"{one['ours_p50_ms']:,.0f} ms, {one['ours_p99_ms']:,.0f} ms",
            f"{one['log_share_of_work']:.0%}",
        ]
        for one in found
        if one["what"] == "single rows"
    ]
    alone = next(one for one in found if one.get("clients") == 1)
    share = alone["padded_rate"] / alone["plain_rate"]
    bare = f"{share:.2f} with the padded pass of what it is with a plain one"
    rows.insert(1, ["the bare route itself, 1 at once", bare, "", ""])
    rows += [
        [
            f"{one['what']}, {one['model']}",
            f"{one['ratio_to_decide']:.2f} of `decide` in Python, at "
            f"{one['processor_time_of_decide']:.2f} times its processor time",
            "",
            "",
        ]
        for one in found
        if one["what"].startswith("batches")
    ]
    headings = ["asked", "rows a second", "half and 99 % answered within", "of the work, the log"]
    return table(headings, rows, left=("asked", "rows a second"))


def profile_cost() -> str:
    """Return what comparing rows with the input profile adds to `decide`."""
    columns = {
        "rows": lambda r: str(r["what"]),
        "`decide` takes longer by": lambda r: f"{r['value'] - 1:.0%}",
        "least and most of five": lambda r: f"{r['least'] - 1:.0%} to {r['most'] - 1:.0%}",
    }
    return record_table(columns, read_records("speed", "profile"), ("rows",))


def graphs() -> str:
    """Return how graphs of ONNX agree with their models."""
    columns = {
        "table": lambda r: str(r["dataset"]),
        "certification rows": lambda r: f"{r['rows']:,}",
        "acted on": lambda r: f"{r['acted_on']:,}",
        "another label": lambda r: str(r["other_label"]),
        "another accepted": lambda r: str(r["other_accepted"]),
        "confidence differs by at most": lambda r: f"{r['gap']:.0e}",
        "size": lambda r: f"{r['bytes'] / 1e6:.1f} MB",
    }
    return record_table(columns, _graphs("equality"), ("table",))


def graph_times() -> str:
    """Return how long graphs of ONNX take beside `decide`."""
    columns = {
        "table": lambda r: str(r["dataset"]),
        "rows": lambda r: f"{r['rows']:,}",
        "graph / `decide`": lambda r: f"{r['ratio_with_reading']:.2f}",
        "wanted": lambda r: "at most 1",
        "": lambda r: "" if r["ratio_with_reading"] <= 1 else bold("missed"),
    }
    return record_table(columns, _graphs("speed"), ("table",))


def _graphs(what: str) -> list[dict[str, Any]]:
    return [one for one in read_records("speed", "graphs") if one["what"] == what]


PARTS = {
    "graph_times": graph_times,
    "graphs": graphs,
    "profile_cost": profile_cost,
    "serving": serving,
    "certified_file": certified_file,
    "certified_file_by_group": certified_file_by_group,
    "speed": speed,
    "steps_tried": steps_tried,
    "team_times": team_times,
    "image_steps": image_steps,
    "two_processes": two_processes,
}
