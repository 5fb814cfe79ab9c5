"""What every request passes first: checks of its host, its token and the size of its body; and the count."""

from __future__ import annotations

import base64
import binascii
import hmac
import logging
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import orjson

from reliablenet.serve.counters import Counters
from reliablenet.serve.errors import RequestError

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

OPEN = frozenset({"/ping", "/healthz", "/v2/health/live", "/v2/health/ready"})  # for load balancers
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
]
CHALLENGE = 'Bearer, Basic realm="reliablenet"'
FAILED = "The server failed; nothing was decided."
logger = logging.getLogger("reliablenet.serve")


class Guard:
    """Around the application: refuses who may not ask, and answers what went wrong inside.

    Parameters
    ----------
    app : ASGI application
    counters : Counters
    token : str
        Every request but those for health must bring it; none if empty.
    most_bytes : int
        Of a body.
    hosts : frozenset of str
        Names under which the server may be asked for; any if empty. A page elsewhere could otherwise
        reach a server on loopback by a name of its own that leads there.
    """

    def __init__(
        self,
        app: App,
        counters: Counters,
        *,
        token: str = "",
        most_bytes: int,
        hosts: frozenset[str] = frozenset(),
    ) -> None:
        self.app, self.counters = app, counters
        self.most_bytes, self.hosts = most_bytes, hosts
        self._token = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begun, code = time.perf_counter(), 0

        async def note(message: MutableMapping[str, Any]) -> None:
            nonlocal code
            if message["type"] == "http.response.start":
                code = message["status"]
                message["headers"] = [*message["headers"], *HEADERS]
            await send(message)

        try:
            self._check(scope)
            await self.app(scope, receive, note)
        except RequestError as error:
            await _answer(note, error)
        except Exception:  # whatever it is, the client sees no traceback
            logger.exception("A request failed")
            if not code:
                await _answer(note, RequestError(500, FAILED))
        finally:
            route = scope.get("route")
            path = getattr(route, "path", None) or "other"
            self.counters.answered(path, code, time.perf_counter() - begun)

    def _check(self, scope: Scope) -> None:
        headers = dict(scope["headers"])
        if self.hosts and _host(headers.get(b"host", b"")) not in self.hosts:
            raise RequestError(421, "The Host header names another server.")
        if self._token and scope["path"] not in OPEN:
            given = _token(headers.get(b"authorization", b""))
            if not hmac.compare_digest(given, self._token):
                raise RequestError(
                    401,
                    "A token is needed: send `Authorization: Bearer TOKEN`.",
                    headers={"WWW-Authenticate": CHALLENGE},
                )
        length = headers.get(b"content-length", b"0")
        if length.isdigit() and int(length) > self.most_bytes:
            raise too_large(self.most_bytes)


def too_large(most_bytes: int) -> RequestError:
    """Return the error of a body that is too large."""
    return RequestError(
        413, f"A request may hold at most {most_bytes:,} bytes. Send the rows in parts."
    )


def _host(header: bytes) -> str:
    name = header.decode("latin-1").strip().lower()
    if name.startswith("["):  # [::1]:8080
        return name[1:].partition("]")[0]
    return name.rpartition(":")[0] if ":" in name else name


def _token(header: bytes) -> bytes:
    """Return the token, which a browser sends as the password of any user."""
    kind, _, rest = header.strip().partition(b" ")
    if kind.lower() == b"bearer":
        return rest.strip()
    if kind.lower() == b"basic":
        try:
            return base64.b64decode(rest.strip(), validate=True).partition(b":")[2]
        except binascii.Error:
            return b""
    return b""


async def _answer(send: Send, error: RequestError) -> None:
    body = orjson.dumps(error.body())
    headers = {
        "content-type": "application/json",
        "content-length": str(len(body)),
        **error.headers,
    }
    pairs = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": error.status, "headers": pairs})
    await send({"type": "http.response.body", "body": body})
