"""StoreMarker: a small file beside a SQLite store that names the newest message.

To SQLite, a store of 0 bytes or without its write-ahead log is valid and just contains less; the marker reveals it. It
is written after a synced commit, so it may name an older message than the newest, but never one that was not stored.
"""

import os
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from recto.base.home_files import private, sync_to_disk
from recto.errors import MessagesLost

SUFFIX = ".newest"
LOG_SUFFIXES = ("-wal", "-shm")


class NewestMessage(NamedTuple):
    number: int
    id: str


class StoreMarker:
    def __init__(self, store: Path) -> None:
        self._store, self._path = store, Path(f"{store}{SUFFIX}")

    def read(self) -> NewestMessage | None:
        """None without a readable marker."""
        try:
            number, id = self._path.read_text("ascii").partition("\n")[0].split()
            return NewestMessage(int(number), id)
        except (OSError, ValueError):
            return None

    def write(self, newest: NewestMessage) -> None:
        with suppress(OSError):  # without a marker only the warning is lost
            file = private(str(self._path), os.O_WRONLY | os.O_CREAT)
            try:
                os.pwrite(file, f"{newest.number} {newest.id}\n".encode(), 0)
            finally:
                os.close(file)

    def lower(self, newest: NewestMessage | None) -> None:
        """Called before messages are deleted: names one that stays, or none. Synced, so that no power cut leaves the
        old marker with the new store."""
        if newest is None:
            self.remove()
            return
        self.write(newest)
        if self._path.exists():
            sync_to_disk(self._path)

    def remove(self) -> None:
        self._path.unlink(missing_ok=True)
        sync_to_disk(self._path.parent)

    def check_file(self) -> None:
        """Called before SQLite opens the file: it would turn an empty one into a new store and delete its log."""
        size, log = _size(self._store), _size(Path(f"{self._store}-wal"))
        if size == 0 and log:
            raise self.lost("is empty, but its -wal file is not")
        if not size and (newest := self.read()):
            found = "is missing" if size is None else "is empty"
            raise self.lost(f"{found}, but {newest.number:,} messages were stored")

    def lost(self, found: str) -> MessagesLost:
        return MessagesLost(
            f"{self._store} {found}: nothing was changed. `recto store restore` restores a backup; "
            "`recto store accept` keeps what is there",
            path=str(self._store),
        )


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return None
