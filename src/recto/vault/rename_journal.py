"""RenameJournal: a rename that has begun, beside the catalog, so that one that was killed can be finished.

It is written before the file moves and taken away when all links are rewritten. Its lock ends with its process, so only
a rename that nobody is making any more is found.
"""

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import msgspec
from msgspec import Struct

from recto.base.home_files import make_private_folder, private

log = logging.getLogger(__name__)

NAME = "rename.json"


class BegunRename(Struct, frozen=True):
    old: str
    new: str
    notes: Mapping[str, str]
    """Notes whose links may have to change, by their paths before, and the sha256 of what they contained."""


class RenameJournal:
    def __init__(self, folder: Path | None) -> None:
        """Without a folder, or in one that cannot be written, nothing is remembered."""
        self.path = folder / NAME if folder else None

    @contextmanager
    def remembered(self, begun: BegunRename) -> Iterator[None]:
        """Around a rename. What ends it otherwise than by its own error leaves it to be finished."""
        file = self._begin(begun)
        try:
            yield
            self._forget(file)
        except Exception:
            self._forget(file)
            raise
        finally:
            if file:
                file.close()

    @contextmanager
    def left(self) -> Iterator[BegunRename | None]:
        """The rename that was not finished, if there is one, until it is forgotten."""
        file = self._open_left()
        begun = _read(file) if file else None
        if begun is None:
            self._forget(file)
        try:
            yield begun
        finally:
            if file:
                file.close()

    def forget(self) -> None:
        with suppress(OSError):
            if self.path:
                self.path.unlink()

    def _forget(self, file: IO[bytes] | None) -> None:
        if file:  # what another process remembers is not ours to forget
            self.forget()

    def _open_left(self) -> IO[bytes] | None:
        try:
            if self.path and self.path.exists():
                file = self.path.open("r+b")
                return file if _lock(file, self.path) else None
        except OSError as why:
            log.warning("an unfinished rename cannot be read from %s: %s", self.path, why)
        return None

    def _begin(self, begun: BegunRename) -> IO[bytes] | None:
        if self.path is None:
            return None
        file = None
        try:
            make_private_folder(self.path.parent)
            file = os.fdopen(private(str(self.path), os.O_RDWR | os.O_CREAT), "r+b")
            if not _lock(file, self.path):  # another process is renaming, and remembers its own
                return None
            file.truncate()
            file.write(msgspec.json.encode(begun))
            file.flush()
            os.fsync(file.fileno())
        except OSError as why:
            log.warning("a rename is not remembered in %s: %s", self.path, why)
            if file:
                file.close()
            return None
        return file


def _read(file: IO[bytes]) -> BegunRename | None:
    try:
        return msgspec.json.decode(file.read(), type=BegunRename)
    except (OSError, msgspec.MsgspecError):  # killed while it was written: nothing had been moved
        return None


def _lock(file: IO[bytes], path: Path) -> bool:
    """Whether the file is ours now. It is closed if another process has it, or has just taken it away."""
    try:
        import fcntl  # not every system has it

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(file.fileno()), os.stat(path)):
            return True
    except ImportError:
        return True
    except OSError:
        pass
    file.close()
    return False
