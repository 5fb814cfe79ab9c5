"""`DecisionLog`: every decision is written before it is sent, and outcomes join it by id.

What was acknowledged is in the log, whatever happens to the process afterwards: a batch is one
transaction, and `append` returns after its commit.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import sqlalchemy as sa

from reliablenet.certificate.sealing import lasting
from reliablenet.errors import DecisionLogError, InvalidParameterError
from reliablenet.monitor.coin import AuditCoin
from reliablenet.monitor.log import schema
from reliablenet.monitor.log.records import Entry, Logged, Outcome, Rule, Status
from reliablenet.monitor.log.schema import MICROSECONDS, decisions, facts, outcomes, rules

READ = 5_000  # rows held at a time while all are read
ASKED = 500  # ids in one question; SQLite allows some thousand parameters
_Answer = tuple[str, str | None]  # label and tolerance

_joined = decisions.join(rules, decisions.c.rule == rules.c.number).outerjoin(
    outcomes, decisions.c.id == outcomes.c.id
)
_entry = (
    *(decisions.c.number, decisions.c.id, decisions.c.time, rules.c.model, rules.c.certificate),
    *(decisions.c.label, decisions.c.confidence, decisions.c.accepted, decisions.c.audit),
    *(decisions.c.share, decisions.c.population),
    *(outcomes.c.truth, outcomes.c.wrong, outcomes.c.time.label("learned")),
    *(decisions.c.rule, decisions.c.tolerance),
)


class DecisionLog:
    """A log of decisions and outcomes in SQLite or PostgreSQL.

    Parameters
    ----------
    place : str or Path
        A SQLite file, or ``postgresql://user@host/database``.
    create : bool
        Whether the log may be written, and is made where there is none. By default it is only read.
    durable : bool
        SQLite: whether each commit waits until the disk has it. Without, a decision survives the end
        of the process in any form, kill -9 included, but the last ones may be lost when the power
        fails. In PostgreSQL its setting ``synchronous_commit`` decides, and is on by default.
    timeout : float
        Seconds to wait for a lock of another process before `DecisionLogError` is raised.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from reliablenet.monitor.coin import AuditCoin
    >>> from reliablenet.monitor.log import DecisionLog, Outcome
    >>> folder = tempfile.TemporaryDirectory()
    >>> log = DecisionLog(Path(folder.name) / "decisions.db", create=True)
    >>> rule = log.put_in_force("loans", model="0" * 64, document="{}")
    >>> coin = AuditCoin(bytes(32), share=1.0)
    >>> logged = log.append(rule, coin, ["yes", "no"], [0.93, 0.61], [True, False])
    >>> [status.value for status in log.record([Outcome(logged.ids[0], truth="no")])]
    ['recorded']
    >>> [(entry.label, entry.accepted, entry.audit, entry.wrong) for entry in log.entries()]
    [('yes', True, True, True), ('no', False, True, None)]
    >>> log.close()
    >>> folder.cleanup()
    """

    def __init__(
        self,
        place: str | Path,
        *,
        create: bool = False,
        durable: bool = False,
        timeout: float = 5.0,
    ) -> None:
        self._engine = schema.open_engine(place, create=create, durable=durable, timeout=timeout)
        self._writes = create
        self._lock = threading.Lock()  # of the run and its count
        self._committed: set[str] = set()  # audit keys that the log is known to keep
        self._new_run()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    @property
    def name(self) -> str:
        """The file or URL, without a password."""
        return schema.shown(self._engine)

    # Writing.

    def put_in_force(self, name: str, model: str, document: str, scores: str | None = None) -> int:
        """Note which model and certificate decide from now on; return the number of that rule.

        Parameters
        ----------
        name : str
            What people call the model.
        model : str
            SHA-256 of the model file.
        document : str
            The certificate as JSON.
        scores : str, optional
            Scores of its certification rows, counted, as `write_scores` writes them.
        """
        certificate = hashlib.sha256(document.encode()).hexdigest()
        with self._writing() as connection:
            last = connection.execute(sa.select(rules).order_by(rules.c.number.desc()).limit(1))
            found = last.first()
            if found is not None and (found.name, found.model) == (name, model):
                # A later version has other words for the same certificate.
                before, now = (lasting(json.loads(text)) for text in (found.document, document))
                if before == now:
                    return int(found.number)
            row = {"name": name, "model": model, "certificate": certificate, "document": document}
            asked = sa.insert(rules).returning(rules.c.number)
            known = {**row, "scores": scores, "time": _now()}
            return int(connection.execute(asked, known).scalar_one())

    def append(
        self,
        rule: int,
        coin: AuditCoin,
        labels: Sequence[str],
        confidences: Sequence[float],
        accepted: Sequence[bool],
        *,
        tolerances: Sequence[str | None] | None = None,
        groups: Sequence[str | None] | None = None,
        features: Sequence[str | None] | None = None,
    ) -> Logged:
        """Write decisions in one transaction; return their ids and which are to be audited.

        Parameters
        ----------
        rule : int
            From `put_in_force`.
        coin : AuditCoin
            With the key that the log was begun with.
        labels, confidences, accepted : sequences of length n
            Labels as texts; numbers as texts too, and then
        tolerances : sequence of length n, optional
            how far each may be off and still be right, as `Margin.texts` writes it.
        groups : sequence of length n, optional
            The population that each row belongs to, where the promise is by group.
        features : sequence of length n, optional
            What was asked, as JSON, if it is to be kept.

        Returns
        -------
        Logged

        Raises
        ------
        DecisionLogError
            If the log cannot be written; then none of them is in it, and none may be told.
        """
        size, moment = len(labels), _now()
        if not size:
            return Logged([], [])
        with self._lock:
            self._keep_commitment(coin)
            ids = [f"{self._run}-{self._count + place:08x}" for place in range(size)]
            audit = coin.picks_each(ids)
            same = {"time": moment, "rule": rule, "share": float(coin.share)}
            columns: dict[str, Sequence[Any]] = {"id": ids, "label": labels, "audit": audit}
            columns |= {"confidence": confidences, "accepted": accepted}
            some = {"tolerance": tolerances, "population": groups, "features": features}
            columns |= {name: values for name, values in some.items() if values is not None}
            try:
                with self._told("written"):
                    schema.append_decisions(self._engine, same, columns)
            except BaseException:
                self._new_run()  # a commit may have failed after it took effect
                raise
            self._count += size
        return Logged(ids, audit)

    def record(self, reported: Sequence[Outcome]) -> list[Status]:
        """Write outcomes in one transaction; return what became of each, in their order.

        The first outcome of a decision stands. One that says the same again changes nothing; one that
        says something else is not written.
        """
        with self._lock, self._writing() as connection:
            if self._engine.dialect.name == "postgresql":
                schema.lock(connection)
            answers = self._answers(connection, [outcome.id for outcome in reported])
            known = self._outcomes(connection, list(answers))
            fresh: list[dict[str, Any]] = []
            found = []
            for outcome in reported:
                status = _status(outcome, answers, known)
                if status is Status.RECORDED:
                    wrong = outcome.judge(*answers[outcome.id])
                    known[outcome.id] = (outcome.truth, wrong)
                    row = {"id": outcome.id, "truth": outcome.truth, "wrong": wrong}
                    fresh.append({**row, "time": _now()})
                found.append(status)
            if fresh:
                connection.execute(sa.insert(outcomes), fresh)
        return found

    # Reading.

    def entries(self, after: int = 0) -> Iterator[Entry]:
        """Yield all decisions with their outcomes, in the order in which they were decided.

        Parameters
        ----------
        after : int
            Only decisions with a larger number. What is appended later has larger numbers than all
            that was read, so that a reader may go on where it stopped; outcomes come at any time.
        """
        while True:
            page = self._read(decisions.c.number > after, newest=False, limit=READ)
            yield from page
            if len(page) < READ:
                return
            after = page[-1].number

    def to_audit(
        self, limit: int = 50, *, rule: int | None = None, accepted: bool = False
    ) -> list[Entry]:
        """Return decisions that the coin picked and whose outcome is not known, oldest first.

        Parameters
        ----------
        limit : int
        rule : int, optional
            Only those of the model and certificate with this number.
        accepted : bool
            Only those that were acted on: deferred ones cannot have been mistakes.
        """
        waits = sa.and_(decisions.c.audit, outcomes.c.id.is_(None))
        if rule is not None:
            waits = sa.and_(waits, decisions.c.rule == rule)
        if accepted:
            waits = sa.and_(waits, decisions.c.accepted)
        return self._read(waits, newest=False, limit=limit)

    def deferred(self, limit: int = 50) -> list[Entry]:
        """Return deferred decisions whose outcome is not known, newest first."""
        waits = sa.and_(sa.not_(decisions.c.accepted), outcomes.c.id.is_(None))
        return self._read(waits, newest=True, limit=limit)

    def features(self, ids: Sequence[str]) -> dict[str, str]:
        """Return what was asked in these decisions, as JSON, where it was kept."""
        columns = (decisions.c.id, decisions.c.features)
        found: dict[str, str] = {}
        with self._reading() as connection:
            for part in _parts(ids):
                asked = sa.select(*columns).where(decisions.c.id.in_(part))
                found |= {name: text for name, text in connection.execute(asked) if text}
        return found

    def rules(self) -> list[Rule]:
        """Return the models and certificates that were in force, in their order."""
        with self._reading() as connection:
            found = connection.execute(sa.select(rules).order_by(rules.c.number)).all()
        return [Rule(row[0], row[1] / MICROSECONDS, *row[2:]) for row in found]

    def counts(self) -> dict[str, int]:
        """Return how many decisions, acted on, picked for audit, and outcomes there are."""
        count = sa.func.count
        asked = sa.select(
            count(),
            count().filter(decisions.c.accepted),
            count().filter(decisions.c.audit),
        ).select_from(decisions)
        with self._reading() as connection:
            total, acted, audit = connection.execute(asked).one()
            known = connection.scalar(sa.select(count()).select_from(outcomes))
        return {"decisions": total, "accepted": acted, "audit": audit, "outcomes": int(known or 0)}

    # What both need.

    def _new_run(self) -> None:
        self._run, self._count = secrets.token_hex(8), 0

    def _keep_commitment(self, coin: AuditCoin) -> None:
        """Note the key of the first decision; refuse any other afterwards."""
        if coin.commitment in self._committed:
            return
        with self._writing() as connection:
            if self._engine.dialect.name == "postgresql":
                schema.lock(connection)
            asked = sa.select(facts.c.value).where(facts.c.name == "audit key")
            kept = connection.scalar(asked)
            if kept is None:
                row = {"name": "audit key", "value": coin.commitment}
                connection.execute(sa.insert(facts), row)
        if kept not in (None, coin.commitment):
            raise InvalidParameterError(
                f"The audit key is not the one that the log {self.name} was started with, so its "
                "coin could not be checked. Give the first key, or start a new log."
            )
        self._committed.add(coin.commitment)

    def _answers(self, connection: sa.Connection, ids: Sequence[str]) -> dict[str, _Answer]:
        columns = (decisions.c.id, decisions.c.label, decisions.c.tolerance)
        found: dict[str, _Answer] = {}
        for part in _parts(ids):
            asked = sa.select(*columns).where(decisions.c.id.in_(part))
            found.update((row[0], (row[1], row[2])) for row in connection.execute(asked))
        return found

    def _outcomes(
        self, connection: sa.Connection, ids: Sequence[str]
    ) -> dict[str, tuple[str | None, bool]]:
        columns = (outcomes.c.id, outcomes.c.truth, outcomes.c.wrong)
        found: dict[str, tuple[str | None, bool]] = {}
        for part in _parts(ids):
            asked = sa.select(*columns).where(outcomes.c.id.in_(part))
            found.update((row[0], (row[1], bool(row[2]))) for row in connection.execute(asked))
        return found

    def _read(self, which: sa.ColumnElement[bool], *, newest: bool, limit: int) -> list[Entry]:
        order = decisions.c.number.desc() if newest else decisions.c.number
        asked = sa.select(*_entry).select_from(_joined).where(which).order_by(order).limit(limit)
        with self._reading() as connection:
            return [_read_entry(row) for row in connection.execute(asked)]

    @contextmanager
    def _reading(self) -> Iterator[sa.Connection]:
        with self._told("read"), self._engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def _writing(self) -> Iterator[sa.Connection]:
        if not self._writes:
            raise DecisionLogError(f"The decision log {self.name} was opened read-only.")
        options = {schema.WRITES: True}
        with (
            self._told("written"),
            self._engine.connect().execution_options(**options) as connection,
            connection.begin(),
        ):
            yield connection

    @contextmanager
    def _told(self, done: str) -> Iterator[None]:
        """Turn what a database says into one line of ours."""
        try:
            yield
        except (sa.exc.SQLAlchemyError, self._engine.dialect.loaded_dbapi.Error) as error:
            raise DecisionLogError(
                f"The decision log {self.name} cannot be {done}: {schema.reason(error)}."
            ) from error


def _read_entry(row: Any) -> Entry:
    entry = Entry(*row)
    learned = None if entry.learned is None else entry.learned / MICROSECONDS
    return entry._replace(time=entry.time / MICROSECONDS, learned=learned)


def _status(
    outcome: Outcome, answers: dict[str, _Answer], known: dict[str, tuple[str | None, bool]]
) -> Status:
    if outcome.id not in answers:
        return Status.UNKNOWN
    if outcome.id not in known:
        return Status.RECORDED
    truth, wrong = known[outcome.id]
    same = outcome.judge(*answers[outcome.id]) == wrong
    if outcome.truth is not None and truth is not None:
        same = outcome.truth == truth
    return Status.KNOWN if same else Status.OTHER


def _parts(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(ids), ASKED):
        yield ids[start : start + ASKED]


def _now() -> int:
    return time.time_ns() // 1000
