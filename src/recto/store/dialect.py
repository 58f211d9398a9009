"""The differences between SQLite and PostgreSQL. The rest of the store is SQLAlchemy Core.

Both behave alike: one writer at a time, and every read sees one state of the store. In PostgreSQL an advisory lock does
the job of BEGIN IMMEDIATE, so reading and then writing in one transaction is safe.
"""

import hashlib
import os
import random
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from sqlalchemy import (
    ARRAY,
    Boolean,
    Column,
    ColumnElement,
    Connection,
    Dialect,
    LargeBinary,
    Table,
    Text,
    bindparam,
    create_engine,
    event,
)
from sqlalchemy.engine import URL, Engine, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, NoSuchModuleError
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from recto.base.home_files import use_write_ahead_log
from recto.errors import StoreError

SQLITE, POSTGRESQL = "sqlite", "postgresql"
# The letters of "recto".
WRITER_LOCK = int.from_bytes(b"recto", "big")

# A commit that makes the log this long would move it into the file. We move it earlier, between turns.
MAX_LOG_PAGES = 8000
# The longest pause between tries for the write lock, when a writer begins to wait.
MAX_PAUSE_S = 0.04
# PostgreSQL: connections that stay open, and further ones for peaks.
POOL_SIZE, MAX_OVERFLOW = 5, 25
# Ids, times and names are compared by their bytes, as SQLite does.
TEXT = Text().with_variant(Text(collation="C"), POSTGRESQL)

Failure = Literal["busy", "read-only", "full", "damaged", "failing", "cannot open", "unreachable", "other"]


# -- engines


def url_of(location: Path | str) -> URL:
    """The database URL of a SQLite file's path or of a URL. Raises StoreError if it is neither."""
    if isinstance(location, Path) or "://" not in location:
        return URL.create(SQLITE, database=str(location))
    try:
        url = make_url(location)
    except ArgumentError as why:
        raise StoreError("RECTO_DB is not a database URL; write postgresql+psycopg://user@host/name") from why
    if url.get_backend_name() not in (SQLITE, POSTGRESQL):
        raise StoreError(f"{url.drivername} is not supported; RECTO_DB takes postgresql+psycopg://… or sqlite:///…")
    return url


def file_of(url: URL) -> Path | None:
    return Path(url.database or "") if url.get_backend_name() == SQLITE else None


def is_writable(file: Path) -> bool:
    """SQLite needs to create files beside it."""
    return os.access(file, os.W_OK) and os.access(file.parent, os.W_OK)


def read_only_url(file: Path) -> URL:
    """For a read-only file. Without a log nobody is writing it, and SQLite needs no other files."""
    query = {"mode": "ro", "uri": "true"}
    if not os.path.exists(f"{file}-wal"):
        query["immutable"] = "1"
    return URL.create(SQLITE, database=f"file:{quote(str(file.absolute()))}", query=query)


def engine_of(url: URL, busy_timeout_s: float) -> Engine:
    if url.get_backend_name() == SQLITE:
        return _sqlite_engine(url, busy_timeout_s)
    return _postgresql_engine(url, busy_timeout_s)


@lru_cache(maxsize=32)
def _sqlite_engine(url: URL, busy_timeout_s: float) -> Engine:
    """Cached beyond the life of a store (without its connections), since compiled statements belong to their engine."""
    engine = create_engine(url, connect_args={"timeout": busy_timeout_s, "check_same_thread": False})

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _: object) -> None:
        # the driver's own BEGIN is deferred, and two writers would lose updates
        connection.isolation_level = None
        if "mode" not in url.query:
            use_write_ahead_log(connection, busy_timeout_s)
        settings = ("synchronous=FULL", "foreign_keys=ON", "temp_store=MEMORY", f"wal_autocheckpoint={MAX_LOG_PAGES}")
        for setting in settings:
            connection.execute(f"PRAGMA {setting}")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        if _is_write(connection):
            _sync_commits(connection)
            _begin_writing(driver_connection(connection), busy_timeout_s)
        else:
            driver_connection(connection).execute("BEGIN")

    return engine


def _sync_commits(connection: Connection) -> None:
    """Sets whether the next commit waits for the disk. A synced commit also syncs those before it."""
    about, is_synced = connection.connection.info, connection.get_execution_options().get("is_synced", True)
    if about.get("is_synced", True) is not is_synced:
        about["is_synced"] = is_synced
        driver_connection(connection).execute(f"PRAGMA synchronous={'FULL' if is_synced else 'NORMAL'}")


def _begin_writing(connection: sqlite3.Connection, timeout_s: float) -> None:
    """Waits for the write lock. SQLite tries less often the longer it waits, so that some of twenty writers starve for
    seconds. Here a writer tries more often the longer it has waited, at random moments."""
    began = time.monotonic()
    connection.execute("PRAGMA busy_timeout=0")
    try:
        while True:
            try:
                connection.execute("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError as why:
                waited = time.monotonic() - began
                if failure_of(why) != "busy" or waited > timeout_s:
                    raise
            time.sleep(random.uniform(0, MAX_PAUSE_S / (1 + waited)))
    finally:
        connection.execute(f"PRAGMA busy_timeout={int(timeout_s * 1000)}")


def _postgresql_engine(url: URL, busy_timeout_s: float) -> Engine:
    try:
        engine = create_engine(url, pool_pre_ping=True, pool_size=POOL_SIZE, max_overflow=MAX_OVERFLOW)
    except (ModuleNotFoundError, NoSuchModuleError) as why:
        driver = f"the driver of {url.drivername}"
        raise StoreError(f"{driver} is not installed: pip install 'recto-context[postgres]'") from why

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _: object) -> None:
        # the driver would send BEGIN in its own round trip; below, one is enough
        connection.autocommit = True

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        if not _is_write(connection):
            run_driver(connection, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            return
        options = connection.get_execution_options()
        timeout_s = options.get("patience_s", busy_timeout_s)
        unsynced = "" if options.get("is_synced", True) else "SET LOCAL synchronous_commit = off; "
        # read committed: reads after the lock see the last writer's changes
        run_driver(
            connection,
            "BEGIN ISOLATION LEVEL READ COMMITTED; "
            f"{unsynced}SET LOCAL lock_timeout = {int(timeout_s * 1000)}; SELECT pg_advisory_xact_lock({WRITER_LOCK})",
        )

    return engine


def driver_connection(connection: Connection) -> Any:
    return connection.connection.dbapi_connection


def run_driver(connection: Connection, sql: str, parameters: Any = None) -> Any:
    """Runs a PostgreSQL statement without SQLAlchemy's result, which is slow to set up; returns the cursor."""
    try:
        return driver_connection(connection).execute(sql, parameters)
    except connection.dialect.loaded_dbapi.Error as why:
        if driver_connection(connection).closed:
            connection.invalidate()
        kind = IntegrityError if isinstance(why, connection.dialect.loaded_dbapi.IntegrityError) else DBAPIError
        raise kind(sql, None, why) from why


def is_usable(connection: Connection) -> bool:
    try:
        driver_connection(connection).execute("")
        return True
    except connection.dialect.loaded_dbapi.Error:
        connection.invalidate()
        return False


@contextmanager
def held_name(connection: Connection, name: str, wait_s: float = 0.0) -> Iterator[bool]:
    """PostgreSQL: True if no other connection holds this name, or releases it within `wait_s`. Ends with the
    connection."""
    key = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big", signed=True)
    is_ours = bool(connection.exec_driver_sql(f"SELECT pg_try_advisory_lock({key})").scalar())
    if not is_ours and wait_s > 0:
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = {int(wait_s * 1000)}")
        try:
            connection.exec_driver_sql(f"SELECT pg_advisory_lock({key})")
            is_ours = True
        except DBAPIError as why:
            if failure_of(why.orig) != "busy":
                raise
            connection.rollback()
    connection.commit()  # the lock belongs to the connection: no transaction stays open for hours
    try:
        yield is_ours
    finally:
        try:
            if is_ours:
                connection.exec_driver_sql(f"SELECT pg_advisory_unlock({key})")
            connection.commit()
        except DBAPIError:  # a server that is gone has released it
            connection.invalidate()


# The channel on which processes announce their changes.
CHANNEL = "recto"


def announce(connection: Connection, change: str, by: str) -> None:
    run_driver(connection, "SELECT pg_notify(%s, %s)", (CHANNEL, f"{change} {by}"))


def heard_changes(connection: Connection, but_by: str, patience_s: float) -> Iterator[str]:
    """Changes announced by others; an empty text at the start and after each silence."""
    driver = driver_connection(connection)
    driver.autocommit = True
    driver.execute(f"LISTEN {CHANNEL}")
    error = connection.dialect.loaded_dbapi.Error
    while True:
        yield ""
        try:
            for notice in driver.notifies(timeout=patience_s):
                change, _, by = notice.payload.partition(" ")
                if by != but_by:
                    yield change
        except error as why:
            connection.invalidate()
            raise DBAPIError(f"LISTEN {CHANNEL}", None, why) from why


def overwrite_deleted(connection: Connection) -> None:
    """Makes SQLite overwrite deleted data with zeros; PostgreSQL does so when it vacuums."""
    if connection.dialect.name == SQLITE:
        connection.exec_driver_sql("PRAGMA secure_delete = ON")


def _is_write(connection: Connection) -> bool:
    return bool(connection.get_execution_options().get("write"))


def share_conditions(table: Table, dialect: Dialect) -> None:
    """Gives partial indexes the condition that the schema states for SQLite. Stating it for both would load both
    dialects in every process: a tenth of a second."""
    for index in table.indexes:
        condition = index.dialect_kwargs.get(f"{SQLITE}_where")
        if condition is not None and dialect.name != SQLITE:
            index.dialect_kwargs[f"{dialect.name}_where"] = condition


# -- failures

_SQLITE_FAILURES: dict[int, Failure] = {
    sqlite3.SQLITE_BUSY: "busy",
    sqlite3.SQLITE_LOCKED: "busy",
    sqlite3.SQLITE_READONLY: "read-only",
    sqlite3.SQLITE_FULL: "full",
    sqlite3.SQLITE_CORRUPT: "damaged",
    sqlite3.SQLITE_NOTADB: "damaged",
    sqlite3.SQLITE_IOERR: "failing",
    sqlite3.SQLITE_CANTOPEN: "cannot open",
}
# By SQLSTATE, or its first two characters.
_POSTGRESQL_FAILURES: dict[str, Failure] = {
    "55P03": "busy",
    "40001": "busy",
    "40P01": "busy",
    "25006": "read-only",
    "53100": "full",
    "58030": "failing",
    "XX001": "damaged",
    "XX002": "damaged",
    "08": "unreachable",
    "28": "unreachable",
    "3D": "unreachable",
    "57": "unreachable",
}


def failure_of(error: BaseException | None) -> Failure:
    if isinstance(error, sqlite3.Error):
        # the low byte is the kind of error, the rest are details
        return _SQLITE_FAILURES.get((getattr(error, "sqlite_errorcode", None) or 0) & 0xFF, "other")
    state = getattr(error, "sqlstate", "")
    if state is None:  # psycopg could not connect, so no server returned a state
        return "unreachable"
    return _POSTGRESQL_FAILURES.get(state) or _POSTGRESQL_FAILURES.get(state[:2], "other")


# -- expressions


class InList(ColumnElement[bool]):
    """True if a column's value is in a list passed as one parameter; only inside a Statement."""

    inherit_cache = False
    type = Boolean()

    def __init__(self, column: Column[Any], name: str) -> None:
        self.column, self.name = column, name

    def self_group(self, against: Any = None) -> "InList":
        # SQLAlchemy would add "= 1" to a boolean column, and SQLite would use no index
        return self

    @property
    def is_binary(self) -> bool:
        return isinstance(self.column.type, LargeBinary)


def in_list(column: Column[Any], name: str) -> ColumnElement[bool]:
    return InList(column, name)


@compiles(InList, SQLITE)
def _in_sqlite_list(element: InList, compiler: Any, **options: Any) -> str:
    column = compiler.process(element.column, **options)
    if element.is_binary:  # JSON has no bytes: the list is expanded to placeholders when bound
        return f"{column} IN (/*{element.name}*/)"
    # one JSON parameter: with one per item, each length would be another statement
    values = compiler.process(bindparam(element.name, type_=JsonList()), **options)
    return f"{column} IN (SELECT value FROM json_each({values}))"


@compiles(InList, POSTGRESQL)
def _in_postgresql_list(element: InList, compiler: Any, **options: Any) -> str:
    values = compiler.process(bindparam(element.name, type_=ARRAY(element.column.type)), **options)
    return f"{compiler.process(element.column, **options)} = ANY({values})"


class JsonList(Text):
    """A list, bound as JSON text."""


class raw_bytes(FunctionElement[bytes]):  # noqa: N801 (it is called like a function of SQL)
    """The bytes of a text. In SQLite a damaged text may not decode, and one row must not hide the others."""

    inherit_cache = True
    type = LargeBinary()


@compiles(raw_bytes, SQLITE)
def _sqlite_bytes(element: Any, compiler: Any, **options: Any) -> str:
    return f"CAST({compiler.process(element.clauses, **options)} AS BLOB)"


@compiles(raw_bytes, POSTGRESQL)
def _postgresql_bytes(element: Any, compiler: Any, **options: Any) -> str:
    return f"convert_to({compiler.process(element.clauses, **options)}, 'UTF8')"
