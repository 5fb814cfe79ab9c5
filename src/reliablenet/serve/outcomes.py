"""Outcomes as a request brings them: an id, and the truth or whether the label was wrong."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from reliablenet.monitor.log import DecisionLog, Outcome, Status
from reliablenet.serve.errors import unusable
from reliablenet.tables.target import label_texts

ID = re.compile(r"[0-9a-f]{16}-[0-9a-f]{8,16}")
MOST_LETTERS = 1_000  # of a truth


def read_outcomes(body: Any, classes: Sequence[str], most: int) -> list[Outcome]:
    """Return the outcomes of a request.

    Parameters
    ----------
    body : JSON
        ``{"outcomes": [{"id": ..., "truth": ...}]}``, or ``"wrong": true`` in place of the truth.
    classes : sequence of str
        Labels that the model knows, as texts. A truth that is none of them makes the label wrong; one
        that differs in case or spaces alone is refused, since it was meant to be that label.
    most : int
        Outcomes in one request.
    """
    found = body.get("outcomes") if isinstance(body, dict) else None
    if not isinstance(found, list) or not found:
        raise unusable('The request must be {"outcomes": [{"id": ..., "truth": ...}, ...]}.')
    if len(found) > most:
        raise unusable(f"A request may hold {most:,} outcomes; got {len(found):,}.")
    return [_read(item, place, classes) for place, item in enumerate(found)]


def _read(item: Any, place: int, classes: Sequence[str]) -> Outcome:
    if not isinstance(item, dict) or not isinstance(item.get("id"), str):
        raise unusable(f"Outcome {place} must be an object with the `id` of a decision.", "id")
    strangers = sorted(item.keys() - {"id", "truth", "wrong"})
    if strangers:
        raise unusable(
            f"Outcome {place} has a field {strangers[0]!r} that is not known.", strangers[0]
        )
    if ("truth" in item) == ("wrong" in item):
        raise unusable(f"Outcome {place} must have either `truth` or `wrong`.", "truth")
    if "wrong" in item:
        if type(item["wrong"]) is not bool:
            raise unusable(f"`wrong` of outcome {place} must be true or false.", "wrong")
        return Outcome(item["id"], wrong=item["wrong"])
    return Outcome(item["id"], truth=_read_truth(item["truth"], place, classes))


def _read_truth(value: Any, place: int, classes: Sequence[str]) -> str:
    if type(value) not in (str, int, float, bool) or len(str(value)) > MOST_LETTERS:
        raise unusable(f"`truth` of outcome {place} must be a class: text or a number.", "truth")
    text = str(label_texts([value])[0])
    if not text or "\0" in text:
        raise unusable(f"`truth` of outcome {place} must be a class; got empty text.", "truth")
    if text not in classes:
        folded = text.casefold().split()
        meant = next((name for name in classes if name.casefold().split() == folded), None)
        if meant is not None:
            raise unusable(
                f"`truth` of outcome {place} is {text!r}, but the model calls it {meant!r}.",
                "truth",
            )
    return text


def record(log: DecisionLog, reported: list[Outcome]) -> list[Status]:
    """Write outcomes; what cannot be an id of ours is not looked for."""
    sound = [outcome for outcome in reported if ID.fullmatch(outcome.id)]
    statuses = iter(log.record(sound) if sound else [])
    return [next(statuses) if ID.fullmatch(outcome.id) else Status.UNKNOWN for outcome in reported]


def status_code(statuses: Sequence[Status]) -> int:
    """Return the HTTP status for a list of results: that of all of them, or 207 where they differ."""
    codes = {{Status.UNKNOWN: 404, Status.OTHER: 409}.get(status, 200) for status in statuses}
    return codes.pop() if len(codes) == 1 else 207
