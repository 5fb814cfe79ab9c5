"""The OpenAPI description of a server, made of the columns of its model."""

from __future__ import annotations

from typing import Any

from reliablenet._version import __version__
from reliablenet.serve.answering import Answering
from reliablenet.serve.inference_protocol import TYPES
from reliablenet.serve.served import ServedModel
from reliablenet.serve.settings import Settings

MOST_LISTED = 500  # decisions in one answer
JSON = "application/json"
TEXT = {"type": "string"}
FLAG = {"type": "boolean"}
SHARE = {"type": "number"}
ERRORS = {
    400: "The body is not JSON.",
    401: "The token is missing or wrong.",
    404: "There is no such decision or model.",
    408: "The request came too slowly.",
    409: "Another outcome is recorded.",
    413: "The request is too large.",
    415: "The body is not sent as JSON.",
    421: "The Host header names another server.",
    422: "Rows that the model cannot take; the message names the column.",
    503: "The log could not be written, or too many rows wait: nothing was decided.",
}
EVERYWHERE = (401, 421)
OF_BODIES = (400, 408, 413, 415, 422, 503)


def describe(served: ServedModel, settings: Settings) -> dict[str, Any]:
    """Return the description of all addresses, with the columns of the model in force."""
    row, most = served.columns.schema(), settings.most_rows
    return {
        "openapi": "3.1.0",
        "info": {
            "title": f"ReliableNet: {served.name}",
            "version": __version__,
            "description": "Decisions of a certified model: act on a row, or defer it to a person.",
        },
        "paths": _paths(served, row, most),
        "components": {
            "schemas": {"Row": row, "Error": _error()},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        **({"security": [{"token": []}]} if settings.token else {}),
    }


def _paths(served: ServedModel, row: dict[str, Any], most: int) -> dict[str, Any]:
    model = {"name": "name", "in": "path", "required": True, "schema": {"enum": [served.name]}}
    limit = {
        "name": "limit",
        "in": "query",
        "schema": {"type": "integer", "minimum": 1, "maximum": MOST_LISTED, "default": 50},
    }
    decisions = _object({"predictions": _list(_decision(served.answering))})
    listed = {"properties": {"id": TEXT, "time": SHARE}, "type": "object"}
    v2 = "/v2/models/{name}"
    return {
        "/invocations": {
            "post": _asks("Decide on rows", _invocation(row, served, most), decisions)
        },
        "/outcomes": {
            "post": _asks(
                "Report outcomes",
                _outcome(served.answering, most),
                {"type": "object"},
                more=(207, 404, 409),
            )
        },
        "/audit": {
            "get": _tells(
                "Decisions that wait for a person",
                _object({"decisions": _list(listed)}),
                parameters=[limit],
                more=(422, 503),
            )
        },
        "/certificate": {"get": _tells("The certificate in force", {"type": "object"})},
        "/metrics": {"get": _tells("Counts for Prometheus", TEXT, kind="text/plain")},
        "/healthz": {
            "get": _tells("Whether decisions can be logged", {"type": "object"}, more=(503,))
        },
        "/": {"get": _tells("The monitor's page", TEXT, kind="text/html", more=(503,))},
        "/docs": {"get": _tells("This description for people", TEXT, kind="text/html")},
        "/ping": {"get": _tells("Whether the server runs", None)},
        "/v2": {"get": _tells("The server", {"type": "object"})},
        "/v2/health/live": {"get": _tells("Whether the server runs", {"type": "object"})},
        "/v2/health/ready": {
            "get": _tells("Whether decisions can be logged", {"type": "object"}, more=(503,))
        },
        v2: {
            "get": _tells("Inputs and outputs", {"type": "object"}, parameters=[model], more=(404,))
        },
        f"{v2}/ready": {
            "get": _tells("Whether it decides", {"type": "object"}, parameters=[model], more=(404,))
        },
        f"{v2}/infer": {
            "post": _asks(
                "Decide on tensors",
                _inference(most),
                _object({"model_name": TEXT, "outputs": _list({"type": "object"})}),
                parameters=[model],
                more=(404,),
            )
        },
    }


def _invocation(row: dict[str, Any], served: ServedModel, most: int) -> dict[str, Any]:
    if served.columns.names is None:
        return _object({"inputs": _list(row, most)}, closed=True)
    split = _object({"columns": _list(TEXT), "data": _list({"type": "array"}, most)}, closed=True)
    records = _object(
        {"dataframe_records": _list({"$ref": "#/components/schemas/Row"}, most)}, closed=True
    )
    return {"oneOf": [records, _object({"dataframe_split": split}, closed=True)]}


def _outcome(answering: Answering, most: int) -> dict[str, Any]:
    truth = _object({"id": TEXT, "truth": answering.schema}, closed=True)
    wrong = _object({"id": TEXT, "wrong": FLAG}, closed=True)
    return _object({"outcomes": _list({"oneOf": [truth, wrong]}, most)}, closed=True)


def _inference(most: int) -> dict[str, Any]:
    tensor = {
        "name": TEXT,
        "shape": _list({"type": "integer", "minimum": 0, "maximum": most}),
        "datatype": {"enum": list(TYPES)},
        "data": {"type": "array"},
    }
    body = _object({"inputs": _list(_object(tensor))})
    body["properties"]["id"] = TEXT
    return body


def _decision(answering: Answering) -> dict[str, Any]:
    answer = {answering.name: answering.schema}
    return _object({**answer, "confidence": SHARE, "accepted": FLAG, "id": TEXT, "audit": FLAG})


def _error() -> dict[str, Any]:
    error = _object({"error": TEXT})
    error["properties"]["column"] = TEXT
    return error


def _object(properties: dict[str, Any], *, closed: bool = False) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        **({"additionalProperties": False} if closed else {}),
    }


def _list(items: dict[str, Any], most: int | None = None) -> dict[str, Any]:
    limit = {} if most is None else {"maxItems": most}
    return {"type": "array", "items": items, "minItems": 1, **limit}


def _asks(
    summary: str,
    body: dict[str, Any],
    answer: dict[str, Any],
    *,
    parameters: list[dict[str, Any]] | None = None,
    more: tuple[int, ...] = (),
) -> dict[str, Any]:
    told = _tells(summary, answer, parameters=parameters, more=(*OF_BODIES, *more))
    return {**told, "requestBody": {"required": True, "content": {JSON: {"schema": body}}}}


def _tells(
    summary: str,
    answer: dict[str, Any] | None,
    *,
    kind: str = JSON,
    parameters: list[dict[str, Any]] | None = None,
    more: tuple[int, ...] = (),
) -> dict[str, Any]:
    content = {} if answer is None else {"content": {kind: {"schema": answer}}}
    responses: dict[str, Any] = {"200": {"description": summary, **content}}
    for code in sorted({*EVERYWHERE, *more}):
        if code == 207:
            responses["207"] = {
                **responses["200"],
                "description": "Some were recorded, and some not.",
            }
            continue
        schema = (
            answer if code in (404, 409) and 207 in more else {"$ref": "#/components/schemas/Error"}
        )
        responses[str(code)] = {"description": ERRORS[code], "content": {JSON: {"schema": schema}}}
    return {
        "summary": summary,
        "responses": responses,
        **({"parameters": parameters} if parameters else {}),
    }
