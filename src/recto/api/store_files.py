"""StoreFiles: checks, backs up and restores the store's files, even if the store itself cannot be opened."""

from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct

from recto.base import locations
from recto.base.home_files import create_private_file, make_private_folder
from recto.errors import Invalid, MessagesLost, StoreError
from recto.store.backup import (
    Backup,
    Restored,
    accept_store,
    backup_by_hand,
    backups,
    refuse_damaged,
    restore_backup,
)
from recto.store.check import StoreReport, check_store
from recto.store.dialect import file_of, url_of
from recto.store.store import Store
from recto.store.store_copy import copy_store

Tell = Callable[[int, int], object]
"""Called with the amount done and the total."""
NOT_OURS = "PostgreSQL checks, backs up and restores its files with its own tools: pg_amcheck, pg_dump, pg_restore"


class AcceptedStore(Struct, frozen=True):
    was_lost: bool
    """True if messages were missing and are now accepted as lost."""
    messages: int
    aside: Path | None = None
    """The place of an empty file that was moved."""


class StoreFiles:
    def __init__(self, home: str | Path | None = None, location: str | None = None) -> None:
        """Opens the files in `home` (default: RECTO_HOME or ~/.recto), or at `location`: a URL or a file."""
        place = Path(home).expanduser() if home else locations.find_home()
        self._location = location or locations.find_store(place)
        self._file = file_of(url_of(self._location))

    @property
    def name(self) -> str:
        """The file, or the address without its password."""
        return str(self._file or url_of(self._location).render_as_string(hide_password=True))

    @property
    def backups(self) -> list[Backup]:
        """The one with the newest messages first."""
        return backups(self._file) if self._file else []

    @property
    def note(self) -> str:
        """A note on what Recto leaves to other tools; empty for a store in a file."""
        return "" if self._file else NOT_OURS

    def check(self, tell: Tell | None = None) -> StoreReport:
        """Checks everything stored; slow for a large store."""
        with Store(self._location) as store:
            return check_store(store, tell)

    def backup(self, file: Path | None = None, tell: Tell | None = None) -> Path:
        """Copies the store to a new file while others write. Returns the file."""
        return backup_by_hand(self._own_file, file, tell)

    def restore(self, file: Path | None = None, tell: Tell | None = None) -> Restored:
        """Replaces the store by a backup (by default the one with the newest messages)."""
        return restore_backup(self._own_file, file, tell)

    def accept(self) -> AcceptedStore:
        """Accepts a store that lost messages. Raises StoreError if it is damaged."""
        try:
            return self._as_it_is(was_lost=False)
        except MessagesLost:
            aside = accept_store(self._own_file)
            return self._as_it_is(was_lost=True, aside=aside)

    def _as_it_is(self, *, was_lost: bool, aside: Path | None = None) -> AcceptedStore:
        with Store(self._own_file) as store:
            refuse_damaged(self._own_file)
            return AcceptedStore(was_lost, store.tree.newest_number(), aside)

    def copy(self, target: str, tell: Tell | None = None) -> Mapping[str, int]:
        """Copies the whole store into an empty database, by URL or file. Returns the number of rows by table."""
        if (file := file_of(url_of(target))) and not file.exists():
            try:
                make_private_folder(file.parent)
                create_private_file(file)
            except OSError as why:
                raise StoreError(f"cannot write {file}: {why.strerror}") from why
        return copy_store(self._location, target, tell)

    @property
    def _own_file(self) -> Path:
        if self._file is None:
            raise Invalid(f"the store is not a file: {NOT_OURS}")
        return self._file
