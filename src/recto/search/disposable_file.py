"""DisposableFile: a SQLite file that can be rebuilt from other data, such as a search index, a catalog or vectors.

Any error of such a file counts as damage unless the disk, a permission or a lock is at fault. A damaged file is emptied
once. If the new one soon fails too, an error is raised and the owner continues without the file.
"""

import logging
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from recto.base.home_files import create_private_file, make_private_folder, use_write_ahead_log
from recto.base.ids import new_id
from recto.errors import Busy, RectoError, StoreError

log = logging.getLogger(__name__)

BUSY_S = 5.0
# If a rebuilt file fails sooner than this, the damage was no accident.
MIN_LIFE_S = 600.0
# Errors that do not mean the file is damaged.
_HARMLESS = "BUSY LOCKED FULL IOERR CANTOPEN PERM AUTH NOMEM INTERRUPT PROTOCOL MISUSE NOLFS"
_NOT_DAMAGE = frozenset(getattr(sqlite3, f"SQLITE_{name}") for name in _HARMLESS.split())


class UnreadableContent(sqlite3.DatabaseError):
    """SQLite can read the file, but the code that uses its rows cannot interpret them."""


class DisposableFile:
    def __init__(self, path: Path, name: str, prepare: Callable[[sqlite3.Connection], None]) -> None:
        """`prepare` creates missing tables."""
        self.path, self.name = path, name
        self.rebuild_reason = ""
        """Why the file had to be rebuilt; empty if it did not."""
        self.rebuilds = 0
        self._prepare = prepare
        self._emptied_at: float | None = None

    def connect(self) -> sqlite3.Connection:
        """Raises OSError or sqlite3.Error."""
        make_private_folder(self.path.parent)
        create_private_file(self.path)
        db = sqlite3.connect(self.path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
        try:
            # a crash may lose the latest writes, which can be repeated, but never the file
            with self.interpreting():
                use_write_ahead_log(db, BUSY_S)
                db.execute("PRAGMA synchronous=NORMAL")
                db.execute("PRAGMA secure_delete=ON")  # what the user deleted for good must not stay in the file
                self._prepare(db)
        except BaseException:
            close_quietly(db)
            raise
        return db

    @contextmanager
    def interpreting(self) -> Iterator[None]:
        """Treat any failure of the enclosed code, which must only work with rows of the file, as damage. Wrap
        statements too: with a damaged file the driver may fail to decode SQLite's own message."""
        try:
            yield
        except (RectoError, sqlite3.Error, OSError, MemoryError):
            raise
        except Exception as why:
            raise UnreadableContent(f"{type(why).__name__}: {why}") from why

    def recover(self, why: Exception) -> None:
        """Empty the file after an error that shows damage. Raises any other error as a RectoError."""
        is_recent = self._emptied_at is not None and time.monotonic() - self._emptied_at < MIN_LIFE_S
        if is_recent or not self._is_damage(why):
            raise self.error(why) from why
        reason = f"{self.name} was damaged ({why}) and is being rebuilt"
        log.warning("%s: %s", self.path, reason)
        log.debug("the error that revealed the damage", exc_info=why)
        self.empty(reason)
        self._emptied_at = time.monotonic()

    def empty(self, reason: str) -> None:
        """Replace the file's content with empty tables. Raises StoreError."""
        try:
            self._overwrite()
        except (sqlite3.Error, OSError) as why:
            if not self._is_damage(why):
                raise self.error(why) from why
            try:  # nothing else uses a file that SQLite cannot open as a database
                for path in self._paths:
                    if path.is_dir() and not path.is_symlink():
                        path.rename(f"{path}.{new_id()}.old")  # not ours; the user may want it back
                    else:
                        path.unlink(missing_ok=True)
            except OSError as again:
                raise self.error(again) from again
        self.rebuild_reason = reason
        self.rebuilds += 1

    def _overwrite(self) -> None:
        """Empty the file in one transaction. Deleting it would leave other processes with an unlinked file."""
        until = time.monotonic() + BUSY_S

        def check_time(status: int, _left: int, _total: int) -> None:
            if status in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED) and time.monotonic() > until:
                raise self._busy

        create_private_file(self.path)
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as fresh:
            self._prepare(fresh)
            with (
                closing(sqlite3.connect(self.path, timeout=BUSY_S, isolation_level=None)) as damaged,
                self.interpreting(),
            ):
                fresh.backup(damaged, progress=check_time, sleep=0.05)
                use_write_ahead_log(damaged, BUSY_S)

    @property
    def _paths(self) -> list[Path]:
        return [Path(f"{self.path}{suffix}") for suffix in ("-wal", "-shm", "")]

    def _is_damage(self, why: Exception) -> bool:
        if not isinstance(why, sqlite3.Error) or isinstance(why, sqlite3.ProgrammingError | sqlite3.InterfaceError):
            return False
        code = getattr(why, "sqlite_errorcode", None) or 0
        if code & 0xFF == sqlite3.SQLITE_READONLY:  # a damaged header can make a writable file read-only
            return os.access(self.path, os.W_OK) and os.access(self.path.parent, os.W_OK)
        # the path is a folder, a dangling link or a device
        if any(os.path.lexists(path) and not path.is_file() for path in self._paths):
            return code & 0xFF in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR)
        return code == sqlite3.SQLITE_IOERR_SHORT_READ or code & 0xFF not in _NOT_DAMAGE

    def error(self, why: Exception) -> RectoError:
        if isinstance(why, RectoError):
            return why
        code = (getattr(why, "sqlite_errorcode", None) or 0) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return self._busy
        if isinstance(why, OSError):
            return StoreError(
                f"{self.name} {self.path} cannot be written: {why.strerror or why}; change the permissions of its "
                "folder or set RECTO_HOME"
            )
        return StoreError(f"{self.name} {self.path.name} cannot be used: {why or type(why).__name__}")

    @property
    def _busy(self) -> Busy:
        return Busy(f"{self.name} {self.path.name} is busy because another process is writing to it; try again")


def close_quietly(db: sqlite3.Connection) -> None:
    with suppress(sqlite3.Error):
        db.close()
