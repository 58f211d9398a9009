"""Database: opens, checks and migrates the store, runs transactions, and turns failures into readable errors."""

import sqlite3
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, Literal
from weakref import WeakKeyDictionary

from sqlalchemy import (
    Column,
    Connection,
    Engine,
    Executable,
    MetaData,
    String,
    Table,
    create_mock_engine,
    event,
    exc,
    func,
    inspect,
    select,
    text,
)
from sqlalchemy.engine.mock import MockConnection

from recto.base.home_files import create_private_file, make_private_folder
from recto.base.ids import new_id
from recto.errors import Busy, RectoError, StoreError, TooNew
from recto.store.dialect import (
    Failure,
    announce,
    driver_connection,
    engine_of,
    failure_of,
    file_of,
    held_name,
    is_usable,
    is_writable,
    read_only_url,
    share_conditions,
    url_of,
)
from recto.store.marker import NewestMessage, StoreMarker
from recto.store.migrations import REVISIONS
from recto.store.prepared_statement import Statement
from recto.store.schema import messages, metadata

# How long a writer waits for others: forty at once need a few seconds, an import longer.
BUSY_TIMEOUT_S = 60.0
# Soon: overwriting a restarted log takes a tenth of the time of extending it.
CHECKPOINT_IN_S = 0.02
# A connection used this recently is not checked.
FRESH_S = 5.0
# How long a server waits for another one that migrates their database.
MIGRATION_S = 600.0
SERVER_LANES = 4
Change = Literal["messages", "removed"]
# A turn, a search and the background use the store at the same time; more is rare.
MAX_IDLE = 3
# Databases of one file share an engine, and thus its few connections.
_IDLE: WeakKeyDictionary[Engine, deque[Connection]] = WeakKeyDictionary()


class Database:
    def __init__(self, location: Path | str, *, busy_timeout_s: float = BUSY_TIMEOUT_S) -> None:
        """`location` is the path of a SQLite file or the URL of a database."""
        url = url_of(location)
        self.file = file_of(url)
        self.name = str(self.file) if self.file else url.render_as_string(hide_password=True)
        self._local = threading.local()
        self._is_closed = False
        self._used = 0.0
        self._marker = StoreMarker(self.file) if self.file else None
        if self.file and self.file.exists() and not is_writable(self.file):
            url = read_only_url(self.file)
        self.engine = engine_of(url, busy_timeout_s)
        self._idle = _IDLE.setdefault(self.engine, deque())
        # connections that hold a name wait for working ones: in a shared pool they could lock them out
        self._holding = engine_of(url, busy_timeout_s) if self.file is None else self.engine
        for engine in (self.engine, self._holding) if self.file is None else ():
            event.listen(engine, "checkin", self._close_late)
        self.instance = new_id()
        self._leasing = threading.Lock()
        self._lease: tuple[ExitStack, Connection] | None = None
        self._leased = 0.0
        try:
            with self.translate_errors():
                if self.file:
                    make_private_folder(self.file.parent)
                self._open()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._is_closed = True
        self._close_idle()
        if self._lease is not None:
            self._lease[0].close()
        self.engine.dispose()
        self._holding.dispose()

    def _close_late(self, connection: Any, _: object) -> None:
        # the database was closed while a thread was at work: the pool would keep its connection open
        if self._is_closed and connection is not None:
            connection.close()

    def _close_idle(self) -> None:
        with suppress(IndexError):
            while True:
                self._idle.pop().close()

    def _open(self) -> None:
        # read first: what other processes add meanwhile is in the store before it is in the marker
        newest = self._marker.read() if self._marker else None
        if self._marker:
            self._marker.check_file()
        if self.file:
            create_private_file(self.file)
        with self.engine.connect() as connection:
            found = _read_revision(connection)
            if self._marker and newest:
                self._check_newest(connection, self._marker, newest)
        if found is not None and found not in REVISIONS:
            name, known = Path(self.name).name, {"found": found, "known": REVISIONS[-1]}
            if found < REVISIONS[0]:
                raise StoreError(
                    f"{name} was written by a pre-release Recto (schema {found}; this one opens {REVISIONS[0]} "
                    "and later); export its conversations with that Recto and import them here",
                    **known,
                )
            raise TooNew(
                f"{name} was written by a newer Recto "
                f"(schema {found}, this one knows {REVISIONS[-1]}); upgrade Recto to open it",
                **known,
            )
        if found != REVISIONS[-1]:
            self._migrate()

    def _check_newest(self, connection: Connection, marker: StoreMarker, newest: NewestMessage) -> None:
        if not inspect(connection).has_table("messages"):
            raise marker.lost(f"has no messages, but {newest.number:,} were stored")
        if connection.execute(select(messages.c.id).where(messages.c.n == newest.number)).scalar() != newest.id:
            there = connection.execute(select(func.max(messages.c.n))).scalar() or 0
            is_older = there < newest.number
            raise marker.lost(f"holds {there:,} of {newest.number:,} messages" if is_older else "is another store")

    def _migrate(self) -> None:
        with self.engine.connect().execution_options(write=True, patience_s=MIGRATION_S) as connection:
            # another process may have migrated while we waited for the lock
            found = _read_revision(connection)
            if found is None:
                for statement in _new_tables(connection.dialect.name):
                    connection.exec_driver_sql(statement)
            elif found != REVISIONS[-1]:
                _upgrade(connection)
            connection.commit()

    @property
    def lanes(self) -> int:
        """The most threads at a time: one for a file, which has one writer and no network to wait for."""
        return SERVER_LANES if self.file is None else 1

    @contextmanager
    def read(self, *, shared: bool = False) -> Iterator[Connection]:
        """A transaction whose reads all see one state; inside a write of the same thread, that of the write. Further
        reads of the same thread join a `shared` one."""
        with self._within(write=False, shared=shared) as connection:
            yield connection

    def rows(self, query: Statement | Executable, **values: Any) -> list[Any]:
        """All rows of a query in its own read."""
        with self.read() as connection:
            return list(_run(connection, query, values).all())

    def first(self, query: Statement | Executable, **values: Any) -> Any:
        with self.read() as connection:
            return _run(connection, query, values).first()

    def scalar(self, query: Statement | Executable, **values: Any) -> Any:
        with self.read() as connection:
            return _run(connection, query, values).scalar()

    @contextmanager
    def write(self, *, is_synced: bool = True) -> Iterator[Connection]:
        """A transaction without other writers; inside a write of the same thread, it joins that. An unsynced one
        survives the end of the process, but a power cut only after a later synced one."""
        with self._within(write=True, is_synced=is_synced) as connection:
            yield connection

    @contextmanager
    def _within(self, *, write: bool, shared: bool = False, is_synced: bool = True) -> Iterator[Connection]:
        outer: Connection | None = getattr(self._local, "connection", None)
        if outer is None and not write:
            outer = getattr(self._local, "reading", None)
        if outer is not None:
            yield outer
            return
        with self.translate_errors(), self._connection(write=write, is_synced=is_synced) as connection:
            self._local.connection, self._local.newest = connection if write else None, None
            self._local.changes, before = set(), getattr(self._local, "reading", None)
            self._local.reading = connection if shared else before
            try:
                with connection.begin():
                    yield connection
                    for change in self._local.changes if write and self.file is None else ():
                        announce(connection, change, self.instance)
            finally:
                self._local.connection, self._local.reading = None, before
        if self._marker and self._local.newest:
            self._marker.write(self._local.newest)

    @contextmanager
    def _connection(self, *, write: bool, is_synced: bool) -> Iterator[Connection]:
        """A connection for one transaction. It stays open for the next: SQLAlchemy's pool would take five times as long
        as an empty transaction."""
        connection = self._idle_connection() or self.engine.connect()
        known = connection.get_execution_options()
        if (known.get("write"), known.get("is_synced")) != (write, is_synced):
            connection.execution_options(write=write, is_synced=is_synced)
        try:
            yield connection
        except BaseException:
            if connection.invalidated:
                self._close_idle()
            connection.close()
            raise
        if len(self._idle) >= MAX_IDLE * self.lanes:
            connection.close()
        else:
            self._used = time.monotonic()
            self._idle.append(connection)
        if self._is_closed:  # checked after adding it: the closing thread does not wait for it
            self._close_idle()

    def _idle_connection(self) -> Connection | None:
        while self._idle:
            try:
                connection = self._idle.pop()
            except IndexError:
                break
            if self.file is not None or time.monotonic() - self._used < FRESH_S or is_usable(connection):
                return connection
            connection.close()
        return None

    @contextmanager
    def hold(self, name: str, wait_s: float = 0.0) -> Iterator[bool]:
        """True if nobody else, on any machine, holds this name, or releases it within `wait_s`. It is released when the
        process ends. For a file the name is always free: its machine has other locks."""
        if self.file is not None:
            yield True
            return
        with ExitStack() as held:
            with self.translate_errors():
                connection = held.enter_context(self._holding.connect())
                is_ours = held.enter_context(held_name(connection, name, wait_s))
            yield is_ours

    def keep_lease(self, name: str) -> None:
        """Holds a name while this database is open; takes it again after a lost connection."""
        with self._leasing, self.translate_errors():
            if self._lease is not None and time.monotonic() - self._leased < FRESH_S:
                return
            self._leased = time.monotonic()
            if self._lease is not None:
                try:
                    self._lease[1].exec_driver_sql("SELECT 1")
                    self._lease[1].commit()
                    return
                except exc.DBAPIError:
                    self._lease[0].close()
            held = ExitStack()
            connection = held.enter_context(self._holding.connect())
            held.enter_context(held_name(connection, name))
            self._lease = held, connection

    def checkpoint(self, *, is_whole: bool = False) -> bool:
        """Moves SQLite's log into the file, as far as no reader needs it, at a time when nobody waits; otherwise a
        commit would do it. `is_whole` waits for readers and empties the log. Returns False if nothing is left to do. A
        full disk is not an error: the log holds everything until the next checkpoint."""
        if self.file is None:
            return False
        how = "TRUNCATE" if is_whole else "PASSIVE"
        with suppress(exc.DBAPIError, sqlite3.Error), self.engine.connect() as connection:
            driver_connection(connection).execute(f"PRAGMA wal_checkpoint({how})").fetchall()
        return False

    def note_newest(self, number: int, id: str) -> None:
        """Notes the newest message of this thread's write; the marker names it after the commit."""
        self._local.newest = NewestMessage(number, id)
        self.note_change("messages")

    def note_change(self, change: Change) -> None:
        """Other processes on a database server hear of the change after this thread's commit."""
        self._local.changes.add(change)

    def lower_newest(self, newest: NewestMessage | None) -> None:
        """Called before messages are deleted: the marker names one that stays, or none."""
        if self._marker:
            self._marker.lower(newest)

    @contextmanager
    def translate_errors(self) -> Iterator[None]:
        try:
            yield
        except RectoError:
            raise
        except exc.DBAPIError as why:
            raise self._error(failure_of(why.orig), str(why.orig)) from why
        except sqlite3.Error as why:
            raise self._error(failure_of(why), str(why)) from why
        except FileExistsError as why:
            raise StoreError(f"{why.filename} is not a folder; set RECTO_HOME to one") from why
        except PermissionError as why:
            raise self._error("cannot open", "") from why
        except OSError as why:
            raise StoreError(f"cannot use {why.filename or self.name}: {why.strerror}") from why

    def _error(self, failure: Failure, message: str) -> StoreError:
        sentence = SENTENCES[failure].format(name=self.name, message=" ".join(message.split()))
        return Busy(sentence) if failure == "busy" else StoreError(sentence)


def _run(connection: Connection, query: Statement | Executable, values: dict[str, Any]) -> Any:
    return query(connection, **values) if isinstance(query, Statement) else connection.execute(query, values)


SENTENCES: dict[Failure, str] = {
    "busy": "{name} is busy: another process has been writing for too long; try again",
    "read-only": "{name} is read-only: nothing can be stored; change its permissions or set RECTO_HOME",
    "full": "the disk that holds {name} is full: free some space and try again",
    "damaged": "{name} is damaged ({message}); `recto store restore` restores a backup and moves this file aside",
    "failing": "{name} cannot be written any more (its disk is full or failing): nothing was stored",
    "cannot open": "cannot open {name}: check that the folder exists and can be written, or set RECTO_HOME",
    "unreachable": "cannot reach {name} ({message}); check RECTO_DB and that the server runs",
    "other": "{name}: {message}",
}


@cache
def _new_tables(dialect: str) -> Sequence[str]:
    """Creates today's tables directly, instead of the first revision and all changes since."""
    statements = list[str]()
    engine: MockConnection = create_mock_engine(
        f"{dialect}://", lambda sql, *_: statements.append(str(sql.compile(dialect=engine.dialect)))
    )
    # tables that reference each other are altered after creation, which changes the metadata: done on a copy
    copy = MetaData()
    for table in metadata.tables.values():
        share_conditions(table.to_metadata(copy), engine.dialect)
    revision = Table("alembic_version", copy, Column("version_num", String(32), primary_key=True))
    copy.create_all(engine, checkfirst=False)
    return [*statements, f"INSERT INTO {revision.name} VALUES ('{REVISIONS[-1]}')"]


def _upgrade(connection: Connection) -> None:
    # slow to import, and only needed for a migration
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def _read_revision(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
