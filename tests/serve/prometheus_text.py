"""Prometheus' text format, read strictly."""

import re

LINE = re.compile(r'([a-z_]+)(?:\{([a-z]+="[^"]*"(?:,[a-z]+="[^"]*")*)\})? ([-+0-9.e]+|NaN|\+Inf)')


def read_metrics(text: str) -> dict[str, float]:
    """Return the sum over all labels of each metric, or refuse a line that is none."""
    found: dict[str, float] = {}
    for line in text.splitlines():
        if line.startswith("# "):
            assert re.fullmatch(r"# (HELP|TYPE) reliablenet_[a-z_]+ .+", line), line
            continue
        match = LINE.fullmatch(line)
        assert match, line
        name = match[1].removeprefix("reliablenet_")
        found[name] = found.get(name, 0.0) + float(match[3])
    return found
