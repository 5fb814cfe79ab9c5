"""What a page that trains a model promises on every processor, and where a fresh run breaks it.

Another processor rounds otherwise, and training carries a last bit on into the weights. So a page cannot
promise the figures that one machine printed. It promises

* its prose, its code and its commands, letter by letter;
* the words that its blocks print, verdicts among them: "Certified", "within alpha 0.05", "yes";
* settings, sizes of folds and whatever else no training moves, to the digit;
* counts and shares of rows, up to what two draws of as many rows from one source differ by;
* confidences, thresholds, losses and other means, known no better than a share of as many rows;
* decisions on single rows as those of one threshold; a label turns only with its confidence.

What two draws differ by is Fisher's exact test, at a level at which no true page fails: 3 errors in 900
rows and 4 are alike, 3 and 40 are not. What is not known to come out of training must agree exactly.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from scipy.stats import binomtest, fisher_exact

LEVEL = 1e-6
# Blocks that a run fills, and in them the lines that it does not fill.
OUTPUT = re.compile(
    r"^```(?:text|console)[^\n`]*\n(?P<body>.*?)^```$", flags=re.DOTALL | re.MULTILINE
)
COMMAND = re.compile(r"^\$ (?:.*\\\n)*.*$", flags=re.MULTILINE)
NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:,\d{3})*(?:\.\d+)?(?:e[-+]?\d+)?")
# A row as predict and Decisions.to_frame write it: perhaps a number, label, confidence, accepted.
DECISION = re.compile(
    r"^(?:\d+ +)?(?P<label>[\w-]+)[ ,]+(?P<confidence>[01](?:\.\d+)?)[ ,]+(?P<accepted>True|False)$",
    flags=re.MULTILINE,
)
ROWS = r"#(?:/| of | (?:[a-z-]+ ){1,3}in )@(?! ?%)"  # behind a count of some of them
# A number is told by the words around it: it stands as @ here, other numbers as #. The first that fits.
KINDS = {
    r"\b(?:alpha|rho|tau) ?(?:= ?)?@|allows @|# of @|@ can be certified": "fixed",
    r"confidence @ ?%|@ ?% confidence": "fixed",
    r"least @ ?%|wrongly on @ ?%|keeps @ ?%": "fixed",  # plans, which no model has a part in
    r"@(?:/| of | (?:[a-z-]+ ){1,3}in )#|defers @": "count",
    r"# rows\W+at most @": "share",  # a bound, behind the count that it comes from
    r"at most @": "fixed",  # the budget
    r"confidence @ or more": "threshold",
    r"ahead in @ ?%": "sureness",
    r"\bmultiplier(?: of)? @": "multiplier",
    r"\bepoch @|^ ?@ epochs:|second fit of @ epochs|Alarm at row @": "epoch",
}


class Number(NamedTuple):
    """A number of an output: as printed, what stands around it, and where it begins."""

    text: str
    context: str
    place: int

    @property
    def value(self) -> float:
        return float(self.text.replace(",", ""))

    @property
    def whole(self) -> bool:
        return "." not in self.text

    @property
    def percent(self) -> bool:
        return re.search(r"@ ?%", self.context) is not None

    @property
    def share(self) -> float:
        return self.value / 100 if self.percent else self.value


def disagreements(shown: str, today: str, rows: int) -> list[str]:
    """Return what today's run of a page does not keep of what the page shows.

    ``rows`` is how many rows stand behind a figure where the page names none.
    """
    if skeleton(shown) != skeleton(today):
        return ["prose, code, commands or generated parts differ"]
    found = []
    for then, now in zip(OUTPUT.finditer(shown), OUTPUT.finditer(today), strict=True):
        pair = COMMAND.sub("", then["body"]), COMMAND.sub("", now["body"])
        found += list(compare_outputs(*pair, rows))
    return found


def skeleton(text: str) -> str:
    """Return a page without what its blocks print."""
    return OUTPUT.sub(lambda block: "\n".join(COMMAND.findall(block["body"])), text)


def compare_outputs(shown: str, today: str, rows: int) -> Iterator[str]:
    """Yield in which ways the output of a block disagrees with what the page shows."""
    named = [n for n in numbers(shown) if n.whole and re.search(ROWS, n.context)]

    def rows_at(place: int) -> int:
        near = min(named, key=lambda number: abs(number.place - place), default=None)
        return rows if near is None else int(near.value)

    if words(shown) != words(today):
        yield f"other words: {words(shown)!r}, today {words(today)!r}"
        return
    for then, now in zip(numbers(shown), numbers(today), strict=True):
        kind = kind_of(then, now)
        if not agree(kind, then, now, rows_at(then.place)):
            yield f"{then.text}, today {now.text}: no such {kind} in {then.context!r}"
    yield from compare_decisions(
        list(DECISION.finditer(shown)), list(DECISION.finditer(today)), rows_at
    )


def words(output: str) -> str:
    """Return an output without its numbers and what hangs on them: spaces, plurals, sureness."""
    text = DECISION.sub("decision", output)
    text = re.sub(r"[\s─]+", " ", NUMBER.sub("#", text))
    text = re.sub(r"\b(?:clearly|probably)\b", "surely", text)
    return re.sub(r"(# (?:[a-z-]+ )?[a-z-]+?)s\b", r"\1", text)


def numbers(output: str) -> list[Number]:
    """Return the numbers of an output but for decisions; in a table the column's name is the context."""
    text = DECISION.sub(lambda row: " " * len(row[0]), output)
    matches = list(NUMBER.finditer(text))
    around = [re.sub(r"\s+", " ", piece) for piece in NUMBER.split(text)]
    columns = dict(column_names(text))
    found = []
    for place, match in enumerate(matches):
        before, after = "#".join(around[: place + 1])[-60:], "#".join(around[place + 1 :])[:60]
        context = columns.get(match.start(), before + "@" + after)
        found.append(Number(match[0], context, match.start()))
    return found


def column_names(text: str) -> Iterator[tuple[int, str]]:
    """Yield where a number stands in a table of numbers, and the name of its column."""
    header: list[str] = []
    start = 0
    for line in text.splitlines(keepends=True):
        cells = list(re.finditer(r"\S+", line))
        if cells and all(NUMBER.fullmatch(cell[0]) or cell[0] == "NaN" for cell in cells):
            if len(cells) == len(header):
                for name, cell in zip(header, cells, strict=True):
                    yield start + cell.start(), f"{name} @"
        else:
            header = line.split()
        start += len(line)


def kind_of(then: Number, now: Number) -> str:
    """Return what a number is: whatever is neither named nor between 0 and 1 is fixed."""
    whole = then.whole and now.whole
    for pattern, kind in KINDS.items():
        if re.search(pattern, then.context) and (kind != "count" or whole):
            return kind
    within = 0 <= then.share <= 1 and 0 <= now.share <= 1
    return "share" if within and (then.percent or not whole) else "fixed"


def agree(kind: str, then: Number, now: Number, rows: int) -> bool:
    """Tell whether two runs of a page may show these two numbers."""
    if kind == "fixed" or then.value == now.value:
        return then.value == now.value
    if kind == "count":
        return alike(then.value, now.value, rows)
    if kind == "threshold" and 0 in (then.value, now.value):
        return 0 <= now.value <= 1  # 0 acts on every row; whether that is so stands beside it
    if kind == "sureness":
        return 0 <= now.share <= 1  # as random as the rows: a p-value says no more
    if kind == "multiplier":  # a sum over batches: no count of rows stands behind it
        return abs(then.value - now.value) <= max(0.3 * then.value, 0.08)
    if kind == "epoch":  # steps until something happened, as two Poisson counts
        return bool(binomtest(int(then.value), int(then.value + now.value)).pvalue >= LEVEL)
    return alike(then.share * rows, now.share * rows, rows)


def alike(first: float, second: float, rows: int) -> bool:
    """Tell whether two counts may come from two draws of so many rows from one source."""
    counts = round(first), round(second)
    if not all(0 <= count <= rows for count in counts):
        return False
    table = [[count, rows - count] for count in counts]
    return bool(fisher_exact(table).pvalue >= LEVEL)


def compare_decisions(
    shown: list[re.Match[str]], today: list[re.Match[str]], rows_at: Callable[[int], int]
) -> Iterator[str]:
    """Yield where decisions on rows are not those of the page, or not those of one threshold."""
    for then, now in zip(shown, today, strict=True):
        before, after = float(then["confidence"]), float(now["confidence"])
        turned = then["label"] != now["label"]
        rows = rows_at(then.start())
        if not alike(before * rows, (1 - after if turned else after) * rows, rows):
            yield f"{then[0]!r}, today {now[0]!r}: another decision"
        if before == after and then["accepted"] != now["accepted"]:
            yield f"{then[0]!r}, today {now[0]!r}: another rule"
    for rows_of in (shown, today):
        acted = [float(row["confidence"]) for row in rows_of if row["accepted"] == "True"]
        deferred = [float(row["confidence"]) for row in rows_of if row["accepted"] == "False"]
        if acted and deferred and min(acted) < max(deferred):
            yield f"no threshold: acts at {min(acted)} and defers at {max(deferred)}"
