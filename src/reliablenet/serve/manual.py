"""The page for people who write a client: how to ask this server, with the columns of its model."""

from __future__ import annotations

import json
from typing import Any

from reliablenet.certificate.promise_wording import odd_deferred
from reliablenet.report.charts import Numbers, marked_numbers
from reliablenet.report.inputs import hidden_columns, profile_table
from reliablenet.report.page import render
from reliablenet.report.text import sentence
from reliablenet.serve.describing import describe
from reliablenet.serve.served import ServedModel
from reliablenet.serve.settings import Settings


def manual_page(served: ServedModel, settings: Settings) -> str:
    """Return the page: an example to paste, the columns, and every address with its answers.

    Parameters
    ----------
    served : ServedModel
    settings : Settings

    Returns
    -------
    str
        HTML that needs no other file and no network.
    """
    profile = getattr(served.model, "profile_", None)
    return render(
        "manual.html",
        title=served.name,
        example=json.dumps(example_request(served), indent=2, ensure_ascii=False),
        outcome=json.dumps(
            {"outcomes": [{"id": "…", "truth": served.answering.examples[0]}]}, ensure_ascii=False
        ),
        answer=served.answering.name,
        answers=served.answering.choices,
        told=served.answering.told,
        token=bool(settings.token),
        most_rows=settings.most_rows,
        most_bytes=settings.most_bytes,
        columns=None if profile is None else profile_table(profile),
        hidden=0 if profile is None else hidden_columns(profile),
        idle=sorted(served.columns.idle),
        addresses=_addresses(describe(served, settings)),
        odd=_odd(served),
    )


def example_request(served: ServedModel) -> dict[str, Any]:
    """Return a request with one row that the model takes, made of what was usual in training.

    Parameters
    ----------
    served : ServedModel

    Returns
    -------
    dict
    """
    profile = getattr(served.model, "profile_", None)
    usual = {} if profile is None else {str(one.name): _usual(one) for one in profile.columns}
    names = served.columns.names
    if names is None:
        row = [usual.get(str(place), 0.0) for place in range(served.columns.width)]
        return {"inputs": [row]}
    wanted = [name for name in names if name not in served.columns.idle]
    record = {
        name: usual.get(name, 0.0 if name in served.columns.numbers else None) for name in wanted
    }
    return {"dataframe_records": [record]}


def _odd(served: ServedModel) -> str:
    """Return what happens to odd rows."""
    if not served.defer_odd:
        return "Rows with an odd value are decided all the same, and counted."
    return sentence(f"rows with an odd value are deferred: {odd_deferred(served.model.promise)}")


def _usual(column: Any) -> Any:
    if column.kind == "number":
        return column.quartiles[1]
    counted = zip(column.counts[1:], column.levels, strict=False)
    return max(counted, default=(0, None))[1] if column.kind == "category" else None


def _addresses(description: dict[str, Any]) -> Numbers:
    rows = []
    for path, methods in description["paths"].items():
        for method, told in methods.items():
            codes = [code for code in told["responses"] if code != "200"]
            rows.append([f"{method.upper()} {path}", told["summary"], ", ".join(codes)])
    return marked_numbers(["Address", "What", "Codes besides 200"], rows)
