"""A validation record on paper and as a model card: the same sections, told in HTML and in Markdown."""

from __future__ import annotations

import json
from pathlib import Path

from reliablenet._files import write_atomically
from reliablenet._json import strict
from reliablenet.report import text
from reliablenet.report.charts import Numbers
from reliablenet.report.page import render
from reliablenet.report.validation_record import DISCLAIMER, NOT_GIVEN, Section, ValidationRecord

NAMES = {"json": "record.json", "page": "record.html", "card": "model-card.md"}
CARD_SECTIONS = (  # of the model card, by the names that readers of such cards look for
    ("Model description", ("purpose", "software")),
    ("Intended uses and limitations", ("promise", "limits")),
    ("Training data", ("data", "folds")),
    ("Evaluation", ("evidence", "who_bears_the_mistakes")),
    ("Monitoring and renewal", ("monitoring", "chain")),
)
MOST_ROWS = 40  # of a table in the card


def record_page(record: ValidationRecord) -> str:
    """Return a record as one page to read and to print."""
    return render(
        "record.html",
        title=record.title,
        record=record,
        verdict=text.typeset(record.verdict),
        not_given=NOT_GIVEN,
        disclaimer=DISCLAIMER,
    )


def model_card(record: ValidationRecord) -> str:
    """Return a record as a model card in Markdown, with the header that Hugging Face reads."""
    header = {
        "library_name": "reliablenet",
        "model_name": record.title,
        "tags": ["tabular", "selective-prediction", "risk-control"],
    }
    lines = ["---", *(f"{name}: {json.dumps(value)}" for name, value in header.items()), "---", ""]
    lines += [f"# {_escaped(record.title)}", "", _escaped(record.verdict), ""]
    if record.missing:
        lines += [f"Not given: {' '.join(record.missing)}", ""]
    for title, names in CARD_SECTIONS:
        lines += [f"## {title}", ""]
        for section in (record[name] for name in names):
            lines += [f"### {section.title}", "", *_card_lines(section)]
    lines += ["## About this card", "", DISCLAIMER, "", f"Written {record.written}.", ""]
    return "\n".join(lines)


def write_files(record: ValidationRecord, folder: Path) -> list[Path]:
    """Write JSON, page and model card into a folder; it is made if it is not there."""
    folder.mkdir(parents=True, exist_ok=True)
    written = {
        "json": json.dumps(strict(record.to_dict()), indent=2, ensure_ascii=False) + "\n",
        "page": record_page(record),
        "card": model_card(record),
    }
    paths = []
    for kind, content in written.items():
        write_atomically(folder / NAMES[kind], content.encode())
        paths.append(folder / NAMES[kind])
    return paths


def _card_lines(section: Section) -> list[str]:
    lines = [f"* **{_heading(fact.title)}** {_escaped(fact.words)}" for fact in section.facts]
    lines += [""] * bool(lines)
    for sentence in section.sentences:
        lines += [_escaped(sentence), ""]
    for title, table in section.tables.items():
        lines += [f"{title}:", "", *_table(table), ""]
    return lines


def _heading(title: str) -> str:
    return _escaped(title) + ("" if title.endswith("?") else ":")


def _table(table: Numbers) -> list[str]:
    rows = [table.columns, ["---"] * len(table.columns), *table.rows[:MOST_ROWS]]
    lines = ["| " + " | ".join(map(_escaped, row)) + " |" for row in rows]
    hidden = len(table.rows) - MOST_ROWS
    return [*lines, "", f"And {hidden} more, in {NAMES['json']}."] if hidden > 0 else lines


def _escaped(words: str) -> str:
    """Return text in which Markdown and HTML see no sign of theirs."""
    for sign in ("\\", "|", "<", "`", "*", "_", "[", "]"):
        words = words.replace(sign, f"&#{ord(sign)};" if sign == "<" else f"\\{sign}")
    return " ".join(words.split())
