"""Tables of a decision log, and how a database is opened: SQLite as a file, PostgreSQL by URL.

Four tables, and no row of them is ever changed: the database refuses it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

from reliablenet.errors import DataFileError, DecisionLogError, MissingExtraError

try:
    import sqlalchemy as sa
except ImportError as error:
    raise MissingExtraError(
        "A decision log needs SQLAlchemy: pip install 'reliablenet[serve]'"
    ) from error

VERSION = 2
WRITES = "reliablenet_writes"  # an execution option: this transaction is going to write
POSTGRES = ("postgresql", "postgres", "postgresql+psycopg")
MICROSECONDS = 1_000_000
TOGETHER = tuple(
    2**power for power in range(9, -1, -1)
)  # rows of one statement, as far as SQLite takes so many values

tables = sa.MetaData()
# What the log knows of itself: its version, and the commitment to its audit key.
facts = sa.Table(
    "facts",
    tables,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
)
# Which model and certificate decided since when; the history of renewals.
rules = sa.Table(
    "rules",
    tables,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("time", sa.BigInteger, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("model", sa.Text, nullable=False),
    sa.Column("certificate", sa.Text, nullable=False),
    sa.Column("document", sa.Text, nullable=False),
    # Scores of the certification rows, counted: what later scores are compared with.
    sa.Column("scores", sa.Text),
)
decisions = sa.Table(
    "decisions",
    tables,
    # SQLite numbers rows of an INTEGER key, and of no other type.
    sa.Column("number", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
    sa.Column("id", sa.Text, nullable=False, unique=True),
    sa.Column("time", sa.BigInteger, nullable=False),
    sa.Column("rule", sa.Integer, sa.ForeignKey("rules.number"), nullable=False),
    sa.Column("label", sa.Text, nullable=False),
    sa.Column("confidence", sa.Double, nullable=False),
    sa.Column("accepted", sa.Boolean, nullable=False),
    sa.Column("audit", sa.Boolean, nullable=False),
    sa.Column("share", sa.Double, nullable=False),
    # Of a number: how far it may be off and still be right.
    sa.Column("tolerance", sa.Text),
    sa.Column("population", sa.Text),
    sa.Column("features", sa.Text),
    sqlite_autoincrement=True,
)
outcomes = sa.Table(
    "outcomes",
    tables,
    sa.Column("id", sa.Text, sa.ForeignKey("decisions.id"), primary_key=True),
    sa.Column("time", sa.BigInteger, nullable=False),
    sa.Column("truth", sa.Text),
    sa.Column("wrong", sa.Boolean, nullable=False),
)
FLAGS = frozenset(column.name for column in decisions.c if isinstance(column.type, sa.Boolean))
APPENDED = (rules, decisions, outcomes, facts)
# Of the few decisions that wait for a person, found without reading all.
sa.Index(
    "decisions_to_audit",
    decisions.c.number,
    sqlite_where=decisions.c.audit,
    postgresql_where=decisions.c.audit,
)
sa.Index(
    "decisions_deferred",
    decisions.c.number,
    sqlite_where=sa.not_(decisions.c.accepted),
    postgresql_where=sa.not_(decisions.c.accepted),
)

# SQLite's one lock for writers is taken at once, so that no transaction finds it taken half-way.
BEGIN_TO_WRITE = "BEGIN IMMEDIATE"
LOCK = "SELECT pg_advisory_xact_lock(7465317841)"  # of PostgreSQL, for one transaction
REFUSAL = "a decision log is only added to"


def open_engine(place: str | Path, *, create: bool, durable: bool, timeout: float) -> sa.Engine:
    """Return an engine for a file or a URL, its tables made or checked.

    Parameters
    ----------
    place : str or Path
        Name of a SQLite file, or ``postgresql://user@host/database``.
    create : bool
        Whether to make the log where there is none.
    durable : bool
        SQLite: whether a commit waits for the disk. PostgreSQL has a setting of its own for that.
    timeout : float
        Seconds to wait for a lock that another process holds.
    """
    text = str(place)
    if "://" in text:
        engine = _postgres(text, timeout)
    else:
        engine = _sqlite(Path(text), create=create, durable=durable, timeout=timeout)
    try:
        _make_or_check(engine, create=create)
    except sa.exc.SQLAlchemyError as error:
        engine.dispose()
        raise DecisionLogError(
            f"The decision log {shown(engine)} cannot be opened: {reason(error)}."
        ) from None
    except BaseException:
        engine.dispose()
        raise
    return engine


def shown(engine: sa.Engine) -> str:
    """Return the name of a log as it may be shown: without a password."""
    if engine.dialect.name == "sqlite":
        return str(engine.url.database)
    return engine.url.render_as_string(hide_password=True)


def reason(error: BaseException) -> str:
    """Return what a database said, in one line."""
    original = getattr(error, "orig", None) or error
    lines = str(original).strip().splitlines() or [type(original).__name__]
    return lines[0].rstrip(".")


def _sqlite(path: Path, *, create: bool, durable: bool, timeout: float) -> sa.Engine:
    if not create and not path.exists():
        raise DataFileError(f"There is no decision log {path}.")
    if create and not path.parent.is_dir():
        raise DataFileError(
            f"There is no folder {path.parent} for the decision log; make it first."
        )
    mode = "rwc" if create else "ro"
    address = f"{path.resolve().as_uri()}?mode={mode}"

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(
            address,
            uri=True,
            timeout=timeout,
            isolation_level=None,  # transactions begin where `_begin` says so
            check_same_thread=False,
        )
        try:
            if create:
                # In write-ahead mode NORMAL loses nothing when the process dies, FULL when the power does.
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            connection.execute("PRAGMA foreign_keys = ON")
        except BaseException:
            connection.close()
            raise
        return connection

    engine = sa.create_engine(
        sa.URL.create("sqlite", database=str(path)), creator=connect, poolclass=sa.QueuePool
    )
    sa.event.listen(engine, "begin", _begin)
    return engine


def _begin(connection: sa.Connection) -> None:
    """Begin a transaction of SQLite."""
    writes = connection.get_execution_options().get(WRITES, False)
    connection.exec_driver_sql(BEGIN_TO_WRITE if writes else "BEGIN")


def _postgres(text: str, timeout: float) -> sa.Engine:
    try:
        url = sa.make_url(text)
    except sa.exc.ArgumentError:
        raise DataFileError(
            "The decision log must be a file or postgresql://user@host/database; got a URL that "
            "cannot be read."
        ) from None
    if url.drivername not in POSTGRES:
        raise DataFileError(
            f"The decision log must be a file or postgresql://user@host/database; got a URL of "
            f"{url.drivername!r}."
        )
    milliseconds = max(int(1000 * timeout), 1)
    try:
        return sa.create_engine(
            url.set(drivername="postgresql+psycopg"),
            pool_pre_ping=True,  # a server that was restarted costs no request
            connect_args={
                "connect_timeout": max(int(timeout), 2),  # the driver knows whole seconds, from 2
                "options": f"-c lock_timeout={milliseconds} -c statement_timeout={20 * milliseconds}",
            },
        )
    except ImportError as error:
        raise MissingExtraError(
            "A log in PostgreSQL needs psycopg: pip install 'reliablenet[serve]'"
        ) from error


def _make_or_check(engine: sa.Engine, *, create: bool) -> None:
    with engine.connect().execution_options(**{WRITES: create}) as connection, connection.begin():
        if create:
            if engine.dialect.name == "postgresql":  # two servers may start at once
                lock(connection)
            if not sa.inspect(connection).has_table("facts"):
                _make(connection)
        elif not sa.inspect(connection).has_table("facts"):
            raise DecisionLogError(f"{shown(engine)} is a database, but not a decision log.")
        found = connection.scalar(sa.select(facts.c.value).where(facts.c.name == "version"))
    if found != str(VERSION):
        raise DecisionLogError(
            f"The decision log {shown(engine)} has version {found} of the schema; this program knows "
            f"{VERSION}. Use the version of reliablenet that wrote it, or start a new log."
        )


def lock(connection: sa.Connection) -> None:
    """Let one transaction of a PostgreSQL log write at a time, so that numbers appear in order."""
    connection.exec_driver_sql(LOCK)


def append_decisions(
    engine: sa.Engine, same: Mapping[str, Any], columns: Mapping[str, Sequence[Any]]
) -> None:
    """Write decisions in a transaction of their own.

    The one statement that must be quick, so it goes to the driver as it takes it, through no more of
    SQLAlchemy than the pool: the rest costs several times what a single decision does.

    Parameters
    ----------
    engine : Engine
    same : mapping
        Columns that have one value in all of them.
    columns : mapping
        The others, a value for each decision. What is in neither stays empty.
    """
    rows = len(columns["id"])
    if any(len(values) != rows for values in columns.values()):
        raise ValueError("all columns of decisions must have one length")
    with closing(engine.raw_connection()) as connection:  # what is not committed is undone then
        cursor = connection.cursor()
        try:
            if engine.dialect.name == "sqlite":
                cursor.execute(BEGIN_TO_WRITE)
                _insert_in_sqlite(connection.driver_connection, cursor, same, columns)
            else:
                cursor.execute(LOCK)
                each = zip(*columns.values(), strict=True)
                cursor.executemany(
                    _insertion((*same, *columns)), [(*same.values(), *row) for row in each]
                )
            connection.commit()
        except engine.dialect.loaded_dbapi.Error as error:
            if engine.dialect.is_disconnect(error, connection, cursor):
                connection.invalidate(error)
            raise


def _insert_in_sqlite(
    driver: Any, cursor: Any, same: Mapping[str, Any], columns: Mapping[str, Sequence[Any]]
) -> None:
    """Insert decisions, many with one statement.

    SQLite's driver spends more on a statement than on a row, and more on a value than on anything else:
    a statement brings what its rows have in common once.
    """
    names, shared = (*same, *columns), tuple(same.values())
    rows, width = len(columns["id"]), len(columns)
    # The driver looks for an adapter of every value that is no plain number or text: True is none.
    columns = {
        name: list(map(int, values)) if name in FLAGS else values
        for name, values in columns.items()
    }
    most = driver.getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER) - len(shared)
    start = 0
    for size in (size for size in TOGETHER if size * width <= most):
        while rows - start >= size:
            values: list[Any] = [None] * (size * width)
            for place, column in enumerate(columns.values()):
                values[place::width] = column[start : start + size]
            cursor.execute(_insertion_of_many(names, width, size), (*shared, *values))
            start += size


@cache
def _insertion(names: tuple[str, ...]) -> str:
    """Return PostgreSQL's statement for one decision."""
    marks = ", ".join(["%s"] * len(names))
    return f"INSERT INTO decisions ({', '.join(names)}) VALUES ({marks})"  # noqa: S608


@cache
def _insertion_of_many(names: tuple[str, ...], width: int, rows: int) -> str:
    """Return SQLite's statement for some decisions; the last names are those that differ in each."""
    marks = ", ".join(["?"] * (len(names) - width))
    found = ", ".join(f"column{place + 1}" for place in range(width))
    values = ", ".join([f"({', '.join(['?'] * width)})"] * rows)
    return (
        f"INSERT INTO decisions ({', '.join(names)}) SELECT {marks}, {found} FROM (VALUES {values})"  # noqa: S608
    )


def _make(connection: sa.Connection) -> None:
    tables.create_all(connection)
    connection.execute(sa.insert(facts), {"name": "version", "value": str(VERSION)})
    for statement in _refusals(connection.dialect.name):
        connection.exec_driver_sql(statement)


def _refusals(dialect: str) -> list[str]:
    """Return the statements after which the database itself refuses to change or drop a row."""
    names = [table.name for table in APPENDED]
    if dialect == "sqlite":
        return [
            f"CREATE TRIGGER {name}_no_{verb} BEFORE {verb} ON {name} "
            f"BEGIN SELECT RAISE(ABORT, '{REFUSAL}'); END"
            for name in names
            for verb in ("update", "delete")
        ]
    function = (
        "CREATE FUNCTION reliablenet_refuse() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE EXCEPTION '{REFUSAL}'; END $$"
    )
    return [
        function,
        *(
            f"CREATE TRIGGER {name}_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON {name} "
            "FOR EACH STATEMENT EXECUTE FUNCTION reliablenet_refuse()"
            for name in names
        ),
    ]
