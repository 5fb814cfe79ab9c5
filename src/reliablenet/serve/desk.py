"""The desk: one thread decides what is waiting, another logs it, and only then it is answered.

Requests that wait meanwhile are taken together: one pass of the network and one transaction of the log for
all of them. A row's bits do not depend on its company, so nobody can tell. While one pass is written, the
next is decided; where nothing waits to be decided, few rows are written without changing threads.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import orjson

from reliablenet.errors import DecisionLogError, ReliableNetError
from reliablenet.monitor.coin import AuditCoin
from reliablenet.monitor.log import DecisionLog, Logged
from reliablenet.serve.counters import Counters
from reliablenet.serve.errors import busy, unusable
from reliablenet.serve.request_rows import Rows, join
from reliablenet.serve.served import Answers, ServedModel

FEW = 16  # rows: to write them takes less than to wake another thread for it
MOST_TOGETHER = 512  # rows: what is waiting is taken together up to here, one pass of the network


@dataclass(frozen=True)
class Answer:
    """What one request gets: the answers to its rows, and what the log made of them."""

    answers: Answers
    logged: Logged


@dataclass
class Job:
    """Rows of one request, the model that they were checked for, and where the answer goes."""

    rows: Rows
    served: ServedModel
    loop: asyncio.AbstractEventLoop
    done: asyncio.Future[Answer]
    groups: list[str | None] | None = None
    end: float = field(default=float("inf"))  # after which nobody waits any more


@dataclass(frozen=True)
class Pass:
    """Jobs that were decided together, their rows and answers one below the other."""

    jobs: list[Job]
    rows: Rows
    answers: Answers
    seconds: float  # that deciding took

    def parts(self) -> Iterator[tuple[Job, slice]]:
        """Yield each job with the places of its rows."""
        start = 0
        for job in self.jobs:
            yield job, slice(start, start + job.rows.size)
            start += job.rows.size


class Desk:
    """Decides and logs, in two threads of its own.

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
        self._decided: queue.Queue[Pass | None] = queue.Queue(1)
        self._threads = [
            threading.Thread(target=work, name=f"desk: {name}", daemon=True)
            for name, work in (("decide", self._decide_all), ("log", self._log_all))
        ]

    def start(self) -> None:
        """Begin to work."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Finish what is waiting, and end."""
        self._jobs.put(None)
        for thread in self._threads:
            thread.join()

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
            async with asyncio.timeout(timeout):
                return await job.done
        except TimeoutError:
            raise busy(f"No decision within {timeout:g} s. Send the request again.") from None

    def _decide_all(self) -> None:
        held: Job | None = None
        last = False
        while not last:
            job = held or self._jobs.get()
            if job is None:
                break
            together, held, last = self._gather(job)
            self._decide(together)
        self._decided.put(None)

    def _log_all(self) -> None:
        while (decided := self._decided.get()) is not None:
            self._log(decided)

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

    def _decide(self, jobs: list[Job]) -> None:
        """Decide jobs and have them logged."""
        now = time.monotonic()
        late = [job for job in jobs if job.end < now]  # nobody would be told
        self._fail(late, busy("The request waited too long."))
        jobs = [job for job in jobs if job.end >= now]
        if not jobs:
            return
        rows = join([job.rows for job in jobs])
        begun = time.perf_counter()
        try:
            answers = jobs[0].served.decide(rows)
        except Exception as error:
            if len(jobs) > 1:  # find out whose rows it was
                for job in jobs:
                    self._decide([job])
            else:
                self._fail(jobs, _explain(error))
            return
        decided = Pass(jobs, rows, answers, time.perf_counter() - begun)
        if rows.size <= FEW and self._jobs.empty() and self._decided.empty():
            self._log(decided)
        else:
            self._decided.put(decided)

    def _log(self, decided: Pass) -> None:
        """Log a pass and tell its answers."""
        try:
            answers = self._append(decided)
        except DecisionLogError as error:
            self.healthy = False
            self.counters.log_failed()
            self._fail(decided.jobs, busy(f"Nothing was decided. {error}"))
        except Exception as error:
            if len(decided.jobs) > 1:
                for job, part in decided.parts():
                    self._log(Pass([job], job.rows, decided.answers.cut(part), 0.0))
            else:
                self._fail(decided.jobs, _explain(error))
        else:
            _tell(
                [(job.done, answer) for job, answer in zip(decided.jobs, answers, strict=True)],
                decided.jobs[0].loop,
            )
            self._release(decided.jobs)

    def _append(self, decided: Pass) -> list[Answer]:
        jobs, answers = decided.jobs, decided.answers
        begun = time.perf_counter()
        groups = None
        if jobs[0].groups is not None:
            groups = [name for job in jobs for name in job.groups or []]
        logged = self.log.append(
            jobs[0].served.rule,
            self.coin,
            answers.texts,
            answers.confidences,
            answers.accepted,
            tolerances=answers.tolerances,
            groups=groups,
            features=_written(decided.rows) if self.keep_features else None,
        )
        self.healthy = True
        spent = time.perf_counter() - begun
        self.counters.decided(answers.accepted, logged.audit, decided.seconds, spent)
        self.counters.were_odd(answers.odd, answers.odd_values)
        return [Answer(answers.cut(part), logged.cut(part)) for _, part in decided.parts()]

    def _fail(self, jobs: list[Job], error: BaseException) -> None:
        """Tell jobs that there is no decision."""
        for job in jobs:
            _tell_error(job, error)
        self._release(jobs)

    def _release(self, jobs: list[Job]) -> None:
        with self._lock:
            self._waiting -= sum(job.rows.size for job in jobs)


def _written(rows: Rows) -> list[str | None]:
    return [orjson.dumps(record).decode() for record in rows.records()]


def _explain(error: Exception) -> BaseException:
    """Return the error as the client may see it."""
    if isinstance(error, ReliableNetError | ValueError):
        return unusable(str(error).splitlines()[0] if str(error) else type(error).__name__)
    return error


def _tell_error(job: Job, error: BaseException) -> None:
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
