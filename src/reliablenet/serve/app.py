"""The application: which addresses there are and what each answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import orjson
from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from reliablenet._version import __version__
from reliablenet.errors import DecisionLogError
from reliablenet.monitor.log import DecisionLog, Entry
from reliablenet.report.monitor import monitor_page
from reliablenet.serve import describing, inference_protocol, manual, outcomes
from reliablenet.serve.counters import Counters
from reliablenet.serve.describing import MOST_LISTED
from reliablenet.serve.desk import Answer, Desk
from reliablenet.serve.errors import RequestError, busy, unusable
from reliablenet.serve.guard import FAILED, LOOPBACK, Guard, too_large
from reliablenet.serve.request_rows import Rows
from reliablenet.serve.served import ServedModel
from reliablenet.serve.settings import Settings
from reliablenet.serve.watching import Watching


@dataclass
class State:
    """What requests share; `served` is replaced when the model is renewed."""

    settings: Settings
    log: DecisionLog
    desk: Desk
    counters: Counters
    served: ServedModel
    watching: Watching


def make_app(state: State) -> Guard:
    """Return the application of a server that has its model and its log."""

    @asynccontextmanager
    async def work(_: FastAPI) -> AsyncIterator[None]:
        state.desk.start()
        try:
            yield
        finally:
            await asyncio.to_thread(state.desk.stop)

    app = FastAPI(
        title=f"ReliableNet: {state.served.name}",
        version=__version__,
        lifespan=work,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
    )
    app.add_exception_handler(RequestError, _refuse)
    app.add_exception_handler(HTTPException, _no_such_address)
    app.add_exception_handler(DecisionLogError, _no_log)
    app.add_exception_handler(Exception, _fail)
    _add_decisions(app, state)
    _add_protocol(app, state)
    _add_outcomes(app, state)
    _add_telling(app, state)
    settings = state.settings
    return Guard(
        app,
        state.counters,
        token=settings.token,
        most_bytes=settings.most_bytes,
        hosts=LOOPBACK if settings.local else frozenset(),
    )


def _add_decisions(app: FastAPI, state: State) -> None:
    async def invocations(request: Request) -> Response:
        body = await _read_json(request, state.settings)
        served = state.served
        answer = await _decide(state, served, _read_rows(body, served))
        return _json(_predictions(answer, served.answering.name))

    # It has no parameters for FastAPI to read, and what that costs counts here alone.
    app.add_route("/invocations", invocations, ["POST"])

    @app.get("/ping")
    async def ping() -> Response:
        return Response("\n", media_type="application/json")

    @app.get("/healthz")
    async def healthz() -> Response:
        well = state.desk.healthy
        status = "ok" if well else "the last write to the decision log failed"
        body = {"status": status, "model": state.served.hash, "waiting": state.desk.waiting}
        return _json(body, 200 if well else 503)


def _add_protocol(app: FastAPI, state: State) -> None:
    def model(name: str) -> ServedModel:
        served = state.served
        if name != served.name:
            raise RequestError(
                404, f"There is no such model here; this server has {served.name!r}."
            )
        return served

    @app.get("/v2")
    async def server() -> Response:
        return _json({"name": "reliablenet", "version": __version__, "extensions": []})

    @app.get("/v2/health/live")
    async def live() -> Response:
        return _json({"live": True})

    @app.get("/v2/health/ready")
    async def ready() -> Response:
        return _json({"ready": state.desk.healthy}, 200 if state.desk.healthy else 503)

    @app.get("/v2/models/{name}")
    async def metadata(name: str) -> Response:
        served = model(name)
        return _json(
            inference_protocol.describe(
                served.columns, served.name, served.hash[:12], served.answering
            )
        )

    @app.get("/v2/models/{name}/ready")
    async def model_ready(name: str) -> Response:
        return _json({"name": model(name).name, "ready": True})

    @app.post("/v2/models/{name}/infer")
    async def infer(name: str, request: Request) -> Response:
        served = model(name)
        body = await _read_json(request, state.settings)
        told = body.get("id")
        if told is not None and not isinstance(told, str):
            raise unusable("`id` of an inference request must be text.")
        answer = await _decide(state, served, inference_protocol.read_rows(body, served.columns))
        version = served.hash[:12]
        title = served.answering.name
        return _json(inference_protocol.write_answer(answer, title, served.name, version, told))


def _add_outcomes(app: FastAPI, state: State) -> None:
    @app.post("/outcomes")
    async def report(request: Request) -> Response:
        body = await _read_json(request, state.settings)
        reported = outcomes.read_outcomes(body, state.served.answering, state.settings.most_rows)
        statuses = await asyncio.to_thread(outcomes.record, state.log, reported)
        state.counters.reported(statuses)
        results = [
            {"id": outcome.id, "status": status}
            for outcome, status in zip(reported, statuses, strict=True)
        ]
        recorded = sum(status == "recorded" for status in statuses)
        return _json({"recorded": recorded, "results": results}, outcomes.status_code(statuses))

    @app.get("/audit")
    async def audit(request: Request) -> Response:
        limit = _limit(request)
        waiting = await asyncio.to_thread(state.log.to_audit, limit)
        kept = await asyncio.to_thread(state.log.features, [entry.id for entry in waiting])
        return _json({"decisions": [_listed(entry, kept) for entry in waiting]})


def _add_telling(app: FastAPI, state: State) -> None:
    @app.get("/certificate")
    async def certificate() -> Response:
        served = state.served
        document = json.loads(served.document)
        return _json({"name": served.name, "model": served.hash, "certificate": document})

    @app.get("/metrics")
    async def metrics() -> Response:
        gauges = [
            ("waiting_rows", "Rows that wait or are being decided.", float(state.desk.waiting)),
            (
                "log_healthy",
                "Whether the last write to the log succeeded.",
                float(state.desk.healthy),
            ),
            ("acts", "Whether the model acts on any row.", float(state.served.acts)),
        ]
        watched = await asyncio.to_thread(state.watching.gauges)
        text = state.counters.text([*gauges, *watched])
        return Response(text, media_type="text/plain; version=0.0.4")

    @app.get("/")
    async def page() -> Response:
        return Response(await asyncio.to_thread(_page, state), media_type="text/html")

    @app.get("/docs")
    async def docs() -> Response:
        text = manual.manual_page(state.served, state.settings)
        return Response(text, media_type="text/html")

    @app.get("/openapi.json")
    async def openapi() -> Response:
        return _json(describing.describe(state.served, state.settings))


def _page(state: State) -> str:
    return monitor_page(
        state.log,
        level=state.settings.level,
        live=True,
        classes=state.served.answering.choices,
        watched=state.watching.view(),
    )


async def _decide(state: State, served: ServedModel, rows: Rows) -> Answer:
    if rows.size > state.settings.most_rows:
        raise RequestError(
            413, f"A request may hold at most {state.settings.most_rows:,} rows; got {rows.size:,}."
        )
    group = state.settings.group
    groups = _groups(rows, group) if group else None
    return await state.desk.ask(served, rows, groups, state.settings.timeout)


def _groups(rows: Rows, column: str) -> list[str | None]:
    names = [None if value is None else str(value) for value in rows.values[column]]
    if any(name is not None and "\0" in name for name in names):
        raise unusable(f"Column {column!r} names groups and must not hold a zero byte.", column)
    return names


def _read_rows(body: dict[str, Any], served: ServedModel) -> Rows:
    """Read the rows of an invocation in any of the forms that MLflow has for them."""
    readers = {
        "dataframe_records": served.columns.from_records,
        "dataframe_split": served.columns.from_split,
        "inputs": served.columns.from_lists,
    }
    found = [name for name in readers if name in body]
    strangers = sorted(body.keys() - readers.keys())
    if strangers or len(found) != 1:
        got = f"; got {strangers[0]!r}" if strangers else ""
        raise unusable(
            f"A request must hold `dataframe_records`, `dataframe_split` or `inputs`, and nothing else{got}."
        )
    return readers[found[0]](body[found[0]])


def _predictions(answer: Answer, name: str) -> dict[str, Any]:
    answers, logged = answer.answers, answer.logged
    columns = (answers.values, answers.confidences, answers.accepted, logged.ids, logged.audit)
    return {
        "predictions": [
            {
                name: value,
                "confidence": confidence,
                "accepted": accepted,
                "id": number,
                "audit": audit,
            }
            for value, confidence, accepted, number, audit in zip(*columns, strict=True)
        ]
    }


def _listed(entry: Entry, features: dict[str, str]) -> dict[str, Any]:
    number = entry.tolerance is not None
    answer = {"value": float(entry.label), "tolerance": entry.tolerance} if number else {}
    shown = {
        "id": entry.id,
        "time": entry.time,
        **(answer or {"label": entry.label}),
        "confidence": entry.confidence,
        "accepted": entry.accepted,
        "group": entry.group,
    }
    asked = features.get(entry.id)
    return {**shown, **({"features": json.loads(asked)} if asked else {})}


def _limit(request: Request) -> int:
    text = request.query_params.get("limit", "50")
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:9]) <= MOST_LISTED:
        raise unusable(
            f"`limit` must be a whole number from 1 to {MOST_LISTED}; got {text[:50]!r}."
        )
    return int(text)


async def _read_json(request: Request, settings: Settings) -> dict[str, Any]:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise RequestError(
            415, f"Send JSON as `Content-Type: application/json`; got {kind[:50]!r}."
        )
    body = bytearray()
    try:
        async with asyncio.timeout(settings.timeout):
            async for chunk in request.stream():
                body += chunk
                if len(body) > settings.most_bytes:
                    raise too_large(settings.most_bytes)
    except TimeoutError:
        raise RequestError(
            408, f"The request did not arrive within {settings.timeout:g} s."
        ) from None
    except ClientDisconnect:
        raise RequestError(400, "The client went away.") from None
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise RequestError(400, f"The request is not JSON: {error}.") from None
    if not isinstance(found, dict):
        raise unusable("The request must be a JSON object.")
    return found


def _json(content: Any, status: int = 200) -> Response:
    return Response(orjson.dumps(content), status, media_type="application/json")


async def _refuse(_: Request, error: Any) -> Response:
    answer = _json(error.body(), error.status)
    answer.headers.update(error.headers)
    return answer


async def _no_such_address(request: Request, error: Any) -> Response:
    told = {
        404: "There is nothing at this address.",
        405: "This address does not accept this method.",
    }
    answer = _json({"error": told.get(error.status_code, str(error.detail))}, error.status_code)
    answer.headers.update(error.headers or {})
    return answer


async def _fail(request: Request, _: Any) -> Response:
    return await _refuse(request, RequestError(500, FAILED))


async def _no_log(request: Request, error: Any) -> Response:
    return await _refuse(request, busy(f"Nothing was recorded. {error}"))
