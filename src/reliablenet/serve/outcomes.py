"""Outcomes as a request brings them: an id, and the truth or whether the answer was wrong."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from reliablenet.errors import InvalidDataError
from reliablenet.monitor.log import DecisionLog, Outcome, Status
from reliablenet.serve.answering import Answering
from reliablenet.serve.errors import unusable

ID = re.compile(r"[0-9a-f]{16}-[0-9a-f]{8,16}")


def read_outcomes(body: Any, answering: Answering, most: int) -> list[Outcome]:
    """Return the outcomes of a request.

    Parameters
    ----------
    body : JSON
        ``{"outcomes": [{"id": ..., "truth": ...}]}``, or ``"wrong": true`` in place of the truth.
    answering : ClassAnswers or NumberAnswers
        What the truths are truths of.
    most : int
        Outcomes in one request.
    """
    found = body.get("outcomes") if isinstance(body, dict) else None
    if not isinstance(found, list) or not found:
        raise unusable('The request must be {"outcomes": [{"id": ..., "truth": ...}, ...]}.')
    if len(found) > most:
        raise unusable(f"A request may hold at most {most:,} outcomes; got {len(found):,}.")
    return [_read(item, place, answering) for place, item in enumerate(found)]


def _read(item: Any, place: int, answering: Answering) -> Outcome:
    if not isinstance(item, dict) or not isinstance(item.get("id"), str):
        raise unusable(f"Outcome {place} must be an object with the `id` of a decision.", "id")
    strangers = sorted(item.keys() - {"id", "truth", "wrong"})
    if strangers:
        raise unusable(f"Outcome {place} has an unknown field {strangers[0]!r}.", strangers[0])
    if ("truth" in item) == ("wrong" in item):
        raise unusable(f"Outcome {place} must have either `truth` or `wrong`.", "truth")
    if "wrong" in item:
        if type(item["wrong"]) is not bool:
            raise unusable(f"`wrong` of outcome {place} must be true or false.", "wrong")
        return Outcome(item["id"], wrong=item["wrong"])
    return Outcome(item["id"], truth=answering.read_truth(item["truth"], place))


def record(log: DecisionLog, reported: list[Outcome]) -> list[Status]:
    """Write outcomes; what cannot be an id of ours is not looked for."""
    sound = [outcome for outcome in reported if ID.fullmatch(outcome.id)]
    try:
        statuses = iter(log.record(sound) if sound else [])
    except InvalidDataError as error:  # a class for a number that an earlier model predicted
        raise unusable(str(error), "truth") from None
    return [next(statuses) if ID.fullmatch(outcome.id) else Status.UNKNOWN for outcome in reported]


def status_code(statuses: Sequence[Status]) -> int:
    """Return the HTTP status for a list of results: that of all of them, or 207 where they differ."""
    codes = {{Status.UNKNOWN: 404, Status.OTHER: 409}.get(status, 200) for status in statuses}
    return codes.pop() if len(codes) == 1 else 207
