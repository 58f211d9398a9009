"""Backups of a SQLite store: made while others write, on request or daily, and restored."""

import logging
import os
import re
import shutil
import sqlite3
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from urllib.parse import quote

from msgspec import Struct

from recto.base.background import BackgroundWorker
from recto.base.home_files import make_private_folder, sync_to_disk
from recto.errors import Busy, Invalid, NotFound, StoreError
from recto.store.dialect import is_writable, read_only_url
from recto.store.marker import LOG_SUFFIXES, NewestMessage, StoreMarker

log = logging.getLogger(__name__)

Tell = Callable[[int, int], object]
"""Called with the number of pages done and the total."""
FOLDER = "backups"
KEPT_DAYS = 7
PAGES_PER_STEP = 1024
# How long closing a desk waits for a backup. Larger stores are backed up when a desk stays open longer.
FINISH_S = 2.0
# Disk space that a backup leaves free.
SPARE_BYTES = 64_000_000
# A copy that nothing has written to for so long was left by a process that died.
LEFT_S = 3600.0
_DAILY = r"-\d{4}-\d\d-\d\d\.db"
_BY_HAND = r"-\d{4}-\d\d-\d\d(?:-\d{6})?\.db"
# The bytes that SQLite locks while a connection is open, for its lifetime in a write-ahead log.
_SHARED_LOCK = (0x40000002, 510)


class _Stopped(Exception):
    pass


class Backup(Struct, frozen=True):
    file: Path
    newest: NewestMessage | None
    """None in a backup without messages."""
    made: datetime

    @property
    def messages(self) -> int:
        return self.newest.number if self.newest else 0


class Restored(Struct, frozen=True):
    backup: Backup
    former: Path | None
    """Where the former store is kept; None if there was none."""
    missing: int
    """Messages in the former store but not in the backup, as far as its marker shows."""


def backup_folder(store: Path) -> Path:
    return store.parent / FOLDER


def backups(store: Path) -> list[Backup]:
    """The readable backups of this store, the one with the newest messages first."""
    found = []
    for file in _named(store, _BY_HAND):
        with suppress(Invalid, FileNotFoundError):
            found.append(_read(file))
    return sorted(found, key=lambda backup: (backup.messages, backup.made), reverse=True)


def _named(store: Path, pattern: str) -> Iterator[Path]:
    with suppress(FileNotFoundError):
        for file in backup_folder(store).iterdir():
            if re.fullmatch(re.escape(store.stem) + pattern, file.name):
                yield file


def copies_of(store: Path) -> list[Path]:
    """Backups, and stores that were replaced."""
    return sorted(backup_folder(store).glob("*.db"))


def backup_by_hand(store: Path, target: Path | None, tell: Tell | None = None) -> Path:
    """Makes a backup in a new file, by default in the backup folder, and returns the file."""
    if not store.exists():
        raise NotFound(f"there is no store yet: {store}")
    target = target or backup_folder(store) / f"{store.stem}-{datetime.now():%Y-%m-%d-%H%M%S}.db"
    if target.exists():
        raise Invalid(f"{target} exists already; name another file")
    with _store_errors(target):
        make_private_folder(target.parent)
        _copy(store, target, tell)
    return target


def _copy(source: Path, target: Path, tell: Tell | None = None) -> None:
    """A checked copy of one state of the source; it gets its name only when complete."""
    _check_space(source, target.parent)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}-", suffix=".part")
    os.close(handle)
    part = Path(name)
    try:
        with closing(_connect(source)) as one, closing(sqlite3.connect(part, isolation_level=None)) as other:
            # an open read transaction keeps the copied state the same while others write
            one.execute("BEGIN")
            one.execute("SELECT count(*) FROM sqlite_master").fetchone()
            told = (lambda _, left, total: tell(total - left, total)) if tell else None
            one.backup(other, pages=PAGES_PER_STEP, progress=told)
            other.execute("PRAGMA journal_mode=DELETE")  # one file, without a separate log
            if damage := _damage(other):
                raise StoreError(f"{source} is damaged ({damage}): no copy was kept")
        sync_to_disk(part)
        os.replace(part, target)
        sync_to_disk(target.parent)
    finally:
        for suffix in ("", "-journal", *LOG_SUFFIXES):
            Path(f"{part}{suffix}").unlink(missing_ok=True)


def _check_space(source: Path, folder: Path) -> None:
    needed = sum(os.path.getsize(f"{source}{suffix}") for suffix in ("", "-wal") if os.path.exists(f"{source}{suffix}"))
    free = shutil.disk_usage(folder).free
    if free < needed + SPARE_BYTES:
        raise StoreError(f"there is no room for a copy of {source} in {folder}: {free // 10**6:,} MB are free")


def _damage(connection: sqlite3.Connection) -> str:
    found = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
    return "" if found == "ok" else " ".join(found.split())


def _connect(file: Path) -> sqlite3.Connection:
    if is_writable(file):
        name = f"file:{quote(str(file.absolute()))}?mode=rw"
    else:
        url = read_only_url(file)
        name = f"{url.database}?" + "&".join(f"{key}={value}" for key, value in url.query.items() if key != "uri")
    return sqlite3.connect(name, uri=True, isolation_level=None, check_same_thread=False)


@contextmanager
def _store_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as why:
        raise StoreError(f"{path}: {why}") from why
    except OSError as why:  # not `why.filename`: that may be an internal file
        raise StoreError(f"cannot write {path}: {why.strerror}") from why


def restore_backup(store: Path, file: Path | None, tell: Tell | None = None) -> Restored:
    """Replaces the store with a backup, by default the one with the newest messages."""
    if file is not None and not file.is_file():
        raise NotFound(f"there is no backup {file}")
    found = backups(store) if file is None else [_read(file)]
    if not found:
        raise NotFound(f"there is no backup in {backup_folder(store)}; name a file")
    backup = found[0]
    if is_in_use(store):
        raise Busy(f"{store} is in use by another process: close its chats first")
    marker = StoreMarker(store)
    held = marker.read()
    with _store_errors(store):
        make_private_folder(store.parent)
        fresh = store.with_name(f".{store.name}.restored")
        _copy(backup.file, fresh, tell)
        former = move_aside(store)
        os.replace(fresh, store)
        sync_to_disk(store.parent)
        # last: after a power cut before this, the store reports missing messages instead of looking new
        marker.lower(backup.newest)
    return Restored(backup, former, max(0, held.number - backup.messages) if held else 0)


def move_aside(store: Path) -> Path | None:
    """Moves the store and its log to the backup folder; returns its new name."""
    if not store.exists():
        return None
    folder = make_private_folder(backup_folder(store))
    aside = folder / f"replaced-{datetime.now():%Y-%m-%d-%H%M%S-%f}.db"
    for suffix in (*LOG_SUFFIXES, ""):
        with suppress(FileNotFoundError):
            os.rename(f"{store}{suffix}", f"{aside}{suffix}")
    return aside


def accept_store(store: Path) -> Path | None:
    """Accepts a store that lost messages. An empty file is moved aside, to keep its log."""
    refuse_damaged(store)
    with _store_errors(store):
        is_empty = store.exists() and store.stat().st_size == 0
        aside = move_aside(store) if is_empty else None
        StoreMarker(store).remove()
    return aside


def refuse_damaged(store: Path) -> None:
    if not store.exists() or store.stat().st_size == 0:
        return
    try:
        with closing(_connect(store)) as connection:
            damage = _damage(connection)
    except sqlite3.DatabaseError as why:
        damage = str(why)
    if damage:
        raise StoreError(
            f"{store} is damaged ({damage}), and accepting does not repair it; `recto store restore` restores a backup "
            "and moves this file aside"
        )


def _read(file: Path) -> Backup:
    try:
        with closing(_connect(file)) as connection:
            connection.execute("SELECT version_num FROM alembic_version").fetchone()
            row = connection.execute("SELECT n, id FROM messages ORDER BY n DESC LIMIT 1").fetchone()
    except sqlite3.Error as why:
        raise Invalid(f"{file} is not a backup of a store ({why})") from why
    made = datetime.fromtimestamp(file.stat().st_mtime).astimezone()
    return Backup(file, NewestMessage(*row) if row else None, made)


def is_in_use(store: Path) -> bool:
    """True if another process has the store open. Tests its locks, since opening the store could change it."""
    if sys.platform != "linux" or not store.exists():  # elsewhere the structure below has another order
        return False
    import fcntl
    import struct

    start, length = _SHARED_LOCK
    with store.open("rb") as file:
        asked = struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, start, length, 0)
        held = struct.unpack("hhqqi", fcntl.fcntl(file, fcntl.F_GETLK, asked))
    return bool(held[0] != fcntl.F_UNLCK)


class DailyBackup:
    """Makes one backup a day in the background and keeps those of a week."""

    def __init__(self, store: Path | None) -> None:
        """Without a `store`, no backups are made."""
        self._store, self._day = store, ""
        self._worker = BackgroundWorker(self._make, "recto-backup", quiet_s=0)  # closing waits for it
        self._done, self._stop = threading.Event(), threading.Event()
        self._done.set()

    def wake(self) -> None:
        today = f"{datetime.now():%Y-%m-%d}"
        if self._store is not None and self._day != today and self._done.is_set():
            self._day = today
            self._done.clear()
            self._worker.wake()

    def _make(self) -> bool:
        assert self._store is not None
        try:
            self._make_daily(self._store)
        except _Stopped:
            log.info("the daily backup was abandoned: the desk was closed")
        except StoreError as why:
            log.warning("no daily backup was made: %s", why.message)
        except Exception:  # nobody would see it here
            log.exception("the daily backup failed")
        finally:
            self._done.set()
        return False

    def _make_daily(self, store: Path) -> None:
        """Two processes that make it at once make the same file twice."""
        target = backup_folder(store) / f"{store.stem}-{self._day}.db"
        if target.exists():
            return
        with _store_errors(target):
            make_private_folder(target.parent)
            for left in target.parent.glob(f".{store.stem}-*.part*"):
                if time.time() - left.stat().st_mtime > LEFT_S:
                    left.unlink(missing_ok=True)
            _copy(store, target, self._step)
            for old in sorted(_named(store, _DAILY), reverse=True)[KEPT_DAYS:]:
                old.unlink(missing_ok=True)
        log.info("made the daily backup %s", target.name)

    def _step(self, done: int, total: int) -> None:
        if self._stop.is_set():
            raise _Stopped

    def close(self) -> None:
        """Waits a moment for a running backup, then abandons it."""
        self._done.wait(FINISH_S)
        self._stop.set()
        self._worker.close()
