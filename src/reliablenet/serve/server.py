"""The process: sockets and signals. SIGTERM finishes what was begun, SIGHUP takes up a renewed model."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from reliablenet._listing import listed
from reliablenet.errors import InvalidDataError, ReliableNetError
from reliablenet.monitor.coin import AuditCoin
from reliablenet.monitor.log import DecisionLog
from reliablenet.serve.app import State, make_app
from reliablenet.serve.counters import Counters
from reliablenet.serve.desk import Desk
from reliablenet.serve.served import ServedModel, read_model
from reliablenet.serve.settings import Settings
from reliablenet.serve.watching import Watching

MOST_CONNECTIONS = 1_000
SWITCH = 5e-4  # seconds for which a thread keeps the others from Python: they do little at a time
logger = logging.getLogger("reliablenet.serve")
Tell = Callable[[str], None]
Stamp = tuple[int, int, int]  # when a file was written, which it is, and its size


class PatientProtocol(HttpToolsProtocol):
    """HTTP that does not wait for ever for the first line of a client."""

    patience = 30.0

    def connection_made(self, transport: Any) -> None:
        """Note when a client came."""
        super().connection_made(transport)
        self._first = self.loop.call_later(self.patience, self._give_up)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the client."""
        self._first.cancel()
        super().connection_lost(exc)

    def _give_up(self) -> None:
        if self.cycle is None and not self.transport.is_closing():  # no request began
            self.transport.close()


class Server(uvicorn.Server):
    """A server that reloads its model, and ends with code 0 when it is asked to."""

    def __init__(
        self, config: uvicorn.Config, state: State, tell: Tell, seen: Stamp | None
    ) -> None:
        super().__init__(config)
        self.state, self.tell = state, tell
        self._seen = seen  # the file as it was before it was read
        self._tasks: set[asyncio.Task[None]] = set()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Finish what was begun on SIGTERM and SIGINT; a second one ends at once."""
        here = threading.current_thread() is threading.main_thread()
        numbers = (signal.SIGTERM, signal.SIGINT) if here else ()
        before = {number: signal.signal(number, self.handle_exit) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    async def startup(self, sockets: Any = None) -> None:
        """Listen, say where, and look out for a renewed model."""
        await super().startup(sockets)
        if self.should_exit:
            return
        host, port = self.servers[0].sockets[0].getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        self.tell(f"Serving {self.state.served.name} on http://{shown}:{port}")
        loop = asyncio.get_running_loop()
        if hasattr(signal, "SIGHUP") and threading.current_thread() is threading.main_thread():
            loop.add_signal_handler(signal.SIGHUP, self._begin_reload)
        if self.state.settings.watch:
            self._keep(self._watch())

    async def shutdown(self, sockets: Any = None) -> None:
        """Stop to listen, and finish what was begun."""
        for task in self._tasks:
            task.cancel()
        await super().shutdown(sockets)

    def _begin_reload(self) -> None:
        self._keep(self._reload())

    def _keep(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _reload(self) -> None:
        """Take up the model file as it is now; a file that cannot be used leaves the old one in force."""
        state = self.state
        try:
            served = await asyncio.to_thread(_read, state.settings, state.log)
        except (ReliableNetError, OSError) as error:
            state.counters.reloaded(well=False)
            self.tell(f"The old model stays in force: {error}")
            return
        if served.rule == state.served.rule:
            self.tell("The model in force is unchanged.")
            return
        state.served = served
        _set_aside()
        state.counters.reloaded(well=True)
        self.tell(f"A new model is in force: {served.hash[:12]}")

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(self.state.settings.watch)
            now = _stamp(self.state.settings)
            if now is not None and now != self._seen:
                self._seen = now
                await self._reload()


def run(settings: Settings, tell: Tell | None = None) -> None:
    """Serve a model until the process is asked to end.

    Parameters
    ----------
    settings : Settings
    tell : callable
        Takes lines for whoever started it; by default they go to standard error.
    """
    with make_server(settings, tell or _tell_on_stderr) as server:
        _set_aside()
        sys.setswitchinterval(SWITCH)
        server.run()


@contextmanager
def make_server(settings: Settings, tell: Tell) -> Iterator[Server]:
    """Yield a server with its log open and its model loaded, ready to run."""
    coin = AuditCoin(settings.key, settings.audit)
    with DecisionLog(settings.log, create=True, durable=settings.durable) as log:
        seen = _stamp(settings)
        served = _read(settings, log)
        counters = Counters()
        desk = Desk(
            log,
            coin,
            counters,
            keep_features=settings.keep_features,
            most_waiting=20 * settings.most_rows,
        )
        state = State(settings, log, desk, counters, served, Watching(log, settings.level))
        protocol = type("Protocol", (PatientProtocol,), {"patience": settings.timeout})
        config = uvicorn.Config(
            make_app(state),
            host=settings.host,
            port=settings.port,
            http=protocol,
            loop="asyncio",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            limit_concurrency=MOST_CONNECTIONS,
            timeout_graceful_shutdown=int(settings.timeout) + 1,
        )
        yield Server(config, state, tell, seen)


def _set_aside() -> None:
    """Let the garbage collector not look again at what is here now.

    Rows of requests make it look at all objects of the process every few hundred batches, the libraries'
    and the model's among them: a pause of 0.2 s, for nothing. A model that was replaced is found here.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()


def _tell_on_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201


def _read(settings: Settings, log: DecisionLog) -> ServedModel:
    served = read_model(
        settings.model,
        settings.title,
        log,
        defer_odd=settings.defer_odd,
        allow_missing=settings.allow_missing,
        trusted_keys=settings.trusted_keys,
    )
    names, group = served.columns.names or [], settings.group
    if group and group not in names:
        raise InvalidDataError(
            f"The group {group!r} is not one of the model's columns: {listed(names)}."
        )
    return served


def _stamp(settings: Settings) -> Stamp | None:
    with suppress(OSError):
        found = os.stat(settings.model)
        return found.st_mtime_ns, found.st_ino, found.st_size
    return None
