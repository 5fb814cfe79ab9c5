"""The desk: one thread that decides and logs what is waiting, and only then answers.

Requests that wait while it works are taken together: one pass of the network and one transaction of the
log for all of them. A row's bits do not depend on its company, so nobody can tell.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from reliablenet.errors import DecisionLogError, ReliableNetError
from reliablenet.monitor.coin import AuditCoin
from reliablenet.monitor.log import DecisionLog, Logged
from reliablenet.serve.columns import Rows, join
from reliablenet.serve.counters import Counters
from reliablenet.serve.errors import busy, unusable
from reliablenet.serve.served import Answers, ServedModel

MOST_TOGETHER = 2_048  # rows: what is waiting is taken together up to here


@dataclass(frozen=True)
class Answer:
    """What one request gets: the answers to its rows, and what the log made of them."""

    answers: Answers
    logged: Sequence[Logged]


@dataclass
class Job:
    """Rows of one request, the model that they were checked for, and where the answer goes."""

    rows: Rows
    served: ServedModel
    loop: asyncio.AbstractEventLoop
    done: asyncio.Future[Answer]
    groups: list[str | None] | None = None
    end: float = field(default=float("inf"))  # after which nobody waits any more


class Desk:
    """Decides and logs, in a thread of its own.

    Parameters
    ----------
    log : DecisionLog
    coin : AuditCoin
    counters : Counters
    keep_features : bool
        Whether the log keeps what was asked.
    most_waiting : int
        Rows that may wait; more are refused at once.
    """

    def __init__(
        self,
        log: DecisionLog,
        coin: AuditCoin,
        counters: Counters,
        *,
        keep_features: bool = False,
        most_waiting: int = 200_000,
    ) -> None:
        self.log, self.coin, self.counters = log, coin, counters
        self.keep_features, self.most_waiting = keep_features, most_waiting
        self.healthy = True  # whether the log took what was last written
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._waiting = 0
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._work, name="desk", daemon=True)

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    def stop(self) -> None:
        """Finish what is waiting, and end."""
        self._jobs.put(None)
        self._thread.join()

    @property
    def waiting(self) -> int:
        """Rows that wait or are being decided."""
        return self._waiting

    async def ask(
        self, served: ServedModel, rows: Rows, groups: list[str | None] | None, timeout: float
    ) -> Answer:
        """Return the answer to a request, once it is in the log."""
        if self._waiting + rows.size > self.most_waiting:
            raise busy("Too many rows are waiting. Send the request again in a moment.")
        loop = asyncio.get_running_loop()
        end = time.monotonic() + timeout
        job = Job(rows, served, loop, loop.create_future(), groups, end)
        with self._lock:
            self._waiting += rows.size
        self._jobs.put(job)
        try:
            return await asyncio.wait_for(job.done, timeout)
        except TimeoutError:
            raise busy(f"No decision within {timeout:g} s. Send the request again.") from None

    def _work(self) -> None:
        held: Job | None = None
        while True:
            job = held or self._jobs.get()
            if job is None:
                return
            together, held, last = self._gather(job)
            try:
                self._serve(together)
            finally:
                with self._lock:
                    self._waiting -= sum(job.rows.size for job in together)
            if last:
                return

    def _gather(self, first: Job) -> tuple[list[Job], Job | None, bool]:
        """Take what is waiting and goes with the first: the same model, and not too many rows."""
        together, size = [first], first.rows.size
        while first.served.columns.separable and size < MOST_TOGETHER:
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                break
            if job is None:
                return together, None, True
            fits = job.served is first.served and size + job.rows.size <= MOST_TOGETHER
            if not fits or (job.groups is None) != (first.groups is None):
                return together, job, False
            together.append(job)
            size += job.rows.size
        return together, None, False

    def _serve(self, jobs: list[Job]) -> None:
        now = time.monotonic()
        for job in jobs:
            if job.end < now:  # nobody would be told
                _fail(job, busy("The request waited too long."))
        jobs = [job for job in jobs if job.end >= now]
        if not jobs:
            return
        try:
            found = self._decide(jobs)
        except DecisionLogError as error:
            self.healthy = False
            self.counters.log_failed()
            for job in jobs:
                _fail(job, busy(f"Nothing was decided. {error}"))
            return
        except Exception as error:
            if len(jobs) > 1:  # find out whose rows it was
                for job in jobs:
                    self._serve([job])
                return
            _fail(jobs[0], _explain(error))
            return
        _tell([(job.done, answer) for job, answer in zip(jobs, found, strict=True)], jobs[0].loop)

    def _decide(self, jobs: list[Job]) -> list[Answer]:
        served = jobs[0].served
        rows = join([job.rows for job in jobs])
        begun = time.perf_counter()
        answers = served.decide(rows)
        decided = time.perf_counter()
        groups = None
        if jobs[0].groups is not None:
            groups = [name for job in jobs for name in job.groups or []]
        logged = self.log.append(
            served.rule,
            self.coin,
            answers.texts,
            answers.confidences,
            answers.accepted,
            groups=groups,
            features=_written(rows) if self.keep_features else None,
        )
        self.healthy = True
        self.counters.decided(
            answers.accepted, logged, decided - begun, time.perf_counter() - decided, answers.odd
        )
        found, start = [], 0
        for job in jobs:
            part = slice(start, start + job.rows.size)
            cut = Answers(
                answers.labels[part],
                answers.texts[part],
                answers.confidences[part],
                answers.accepted[part],
            )
            found.append(Answer(cut, logged[part]))
            start = part.stop
        return found


def _written(rows: Rows) -> list[str | None]:
    return [orjson.dumps(record).decode() for record in rows.records()]


def _explain(error: Exception) -> BaseException:
    """Return the error as the client may see it."""
    if isinstance(error, ReliableNetError | ValueError):
        return unusable(str(error).splitlines()[0] if str(error) else type(error).__name__)
    return error


def _fail(job: Job, error: BaseException) -> None:
    def tell() -> None:
        if not job.done.done():
            job.done.set_exception(error)

    job.loop.call_soon_threadsafe(tell)


def _tell(answers: list[tuple[asyncio.Future[Answer], Answer]], loop: Any) -> None:
    def tell() -> None:
        for done, answer in answers:
            if not done.done():
                done.set_result(answer)

    loop.call_soon_threadsafe(tell)
