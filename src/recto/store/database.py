"""Database: one SQLite file: opened, checked, migrated; transactions; errors in words. Knows no table of ours."""

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, create_engine, event, exc, text
from sqlalchemy.engine import Engine

from recto.errors import Busy, RectoError, StoreError, TooNew
from recto.store.schema import REVISIONS

BUSY_TIMEOUT_S = 5.0


class Database:
    def __init__(self, path: Path, *, busy_timeout_s: float = BUSY_TIMEOUT_S) -> None:
        self.path = path
        self._local = threading.local()
        self.engine = _engine(path, busy_timeout_s)
        with self.told():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._open()

    def close(self) -> None:
        self.engine.dispose()

    def _open(self) -> None:
        found = self._revision()
        if found is not None and found not in REVISIONS:
            raise TooNew(
                f"{self.path.name} was written by a newer Recto (schema {found}, this one knows {REVISIONS[-1]}); "
                "upgrade Recto to open it",
                found=found,
                known=REVISIONS[-1],
            )
        if found != REVISIONS[-1]:
            self._migrate()

    def _revision(self) -> str | None:
        with self.engine.connect() as connection:
            return _read_revision(connection)

    def _migrate(self) -> None:
        # alembic: only when migration is due
        from alembic import command
        from alembic.config import Config

        with self.engine.connect().execution_options(write=True) as connection:
            # another process may have migrated while we waited for the lock
            if _read_revision(connection) != REVISIONS[-1]:
                config = Config()
                config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
                config.attributes["connection"] = connection
                command.upgrade(config, "head")
            connection.commit()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """One consistent look; inside a write of the same thread, that write's own look."""
        with self._within(write=False) as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """All or nothing. A write inside a write of the same thread joins it."""
        with self._within(write=True) as connection:
            yield connection

    @contextmanager
    def _within(self, *, write: bool) -> Iterator[Connection]:
        outer: Connection | None = getattr(self._local, "connection", None)
        if outer is not None:
            yield outer
            return
        with self.told(), self.engine.connect().execution_options(write=write) as connection:
            self._local.connection = connection if write else None
            try:
                with connection.begin():
                    yield connection
            finally:
                self._local.connection = None

    @contextmanager
    def told(self) -> Iterator[None]:
        """Failures of disk and database as one sentence each."""
        try:
            yield
        except RectoError:
            raise
        except exc.DBAPIError as why:
            raise self._error(str(why.orig)) from why
        except sqlite3.Error as why:
            raise self._error(str(why)) from why
        except FileExistsError as why:
            raise StoreError(f"{why.filename} is not a folder; set RECTO_HOME to one") from why
        except OSError as why:
            raise StoreError(f"cannot use {why.filename or self.path}: {why.strerror}") from why

    def _error(self, said: str) -> StoreError:
        name = str(self.path)
        if "locked" in said or "busy" in said:
            return Busy(f"{name} is busy: another process has been writing for too long; try again")
        if "readonly" in said:
            return StoreError(f"{name} is read-only: nothing can be stored; change its permissions or set RECTO_HOME")
        if "disk is full" in said:
            return StoreError(f"the disk that holds {name} is full: free some space and try again")
        if "not a database" in said or "malformed" in said or "vtable constructor" in said:
            return StoreError(f"{name} is damaged ({said}); restore a copy, or move it away to start anew")
        if "disk I/O error" in said:
            return StoreError(f"{name} cannot be written any more (its disk is full or failing): nothing was stored")
        if "unable to open" in said:
            return StoreError(f"cannot open {name}: check that the folder exists and can be written, or set RECTO_HOME")
        return StoreError(f"{name}: {said}")


@lru_cache(maxsize=32)
def _engine(path: Path, busy_timeout_s: float) -> Engine:
    """Kept when a store is closed (its connections are not): compiled statements belong to their engine."""
    engine = create_engine(f"sqlite:///{path}", connect_args={"timeout": busy_timeout_s, "check_same_thread": False})

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _: object) -> None:
        # the driver's own BEGIN would be deferred: two writers then lose updates
        connection.isolation_level = None
        _write_ahead(connection, busy_timeout_s)
        for pragma in ("synchronous=FULL", "foreign_keys=ON", "temp_store=MEMORY"):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writing = connection.get_execution_options().get("write")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")

    return engine


def _write_ahead(connection: Any, timeout_s: float) -> None:
    """Where two processes make a new file at once, SQLite refuses one of them here without waiting."""
    ends = time.monotonic() + timeout_s
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as why:
            if "locked" not in str(why) or time.monotonic() > ends:
                raise
            time.sleep(0.01)


def _read_revision(connection: Connection) -> str | None:
    known = connection.execute(text("SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'")).first()
    if known is None:
        return None
    row = connection.execute(text("SELECT version_num FROM alembic_version")).first()
    return row[0] if row else None
