"""ParkedFiles: attachments that were uploaded before their message, as private files in the home.

Each visitor has a folder of its own, with at most 50 files of together 128 MB: the oldest go first. All are gone after
an hour, also those that a killed server left.
"""

import asyncio
import os
import time
from collections.abc import AsyncGenerator, AsyncIterable, Sequence
from contextlib import asynccontextmanager, suppress
from hashlib import sha256
from pathlib import Path

from recto.api.ask_options import Attachment
from recto.base.home_files import PARKED_FOLDER, make_private_folder
from recto.base.ids import new_id
from recto.base.text import clean
from recto.errors import Invalid, NotFound
from recto.sources.documents import attachment
from recto.web.security import MAX_BODY, TOO_LARGE

MOST_FILES, MOST_BYTES = 50, 128 << 20
KEPT_S, SWEEP_S = 3600.0, 60.0
GONE = "an attachment is gone: they are kept for an hour; attach it again"


class ParkedFiles:
    """The files of one visitor. `owner` is the name of a key, or nothing."""

    def __init__(self, home: Path, owner: str = "") -> None:
        self._folder = home / PARKED_FOLDER / sha256(owner.encode()).hexdigest()[:32]
        self._uploading = asyncio.Lock()

    async def add(self, name: str, chunks: AsyncIterable[bytes]) -> str:
        """Keeps an upload; gives its id. One upload at a time: the others wait unread. Raises Invalid for one that is
        too large, or cannot be attached."""
        async with self._uploading:
            make_private_folder(self._folder)
            file = self._folder / new_id()
            try:
                await _write(file, chunks)
                await asyncio.to_thread(_finish, file, name)
            except BaseException:
                _remove(file)
                raise
            await asyncio.to_thread(self._make_room)
            return file.name

    async def take(self, ids: Sequence[str]) -> list[Attachment]:
        """The attachments, which are kept no longer. NotFound for one that is gone, or another's."""
        return await asyncio.to_thread(self._take, ids) if ids else []

    def _take(self, ids: Sequence[str]) -> list[Attachment]:
        files = [self._folder / id for id in ids]
        try:
            if not all(id.isalnum() for id in ids):
                raise NotFound(GONE)
            found = [_read(file) for file in files]
        except OSError as why:
            raise NotFound(GONE) from why
        for file in files:
            _remove(file)
        return found

    def _make_room(self) -> None:
        total = 0
        for number, file in enumerate(sorted(_files(self._folder), reverse=True)):  # ids are in the order of time
            total += file.stat().st_size
            if number >= MOST_FILES or total > MOST_BYTES:
                _remove(file)


async def _write(file: Path, chunks: AsyncIterable[bytes]) -> None:
    size = 0
    with open(file, "xb", opener=_private) as out:  # noqa: ASYNC230  some kilobytes at a time
        async for chunk in chunks:
            size += len(chunk)
            if size > MAX_BODY:
                raise Invalid(TOO_LARGE)
            out.write(chunk)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _finish(file: Path, name: str) -> None:
    """Writes the name down, in a file of its own: it may be longer than that of a file, and hold any character.
    Raises Invalid where the upload cannot be attached."""
    with open(file.with_suffix(".name"), "xb", opener=_private) as out:
        out.write(clean(name)[0].encode())
    _read(file)


def _read(file: Path) -> Attachment:
    return attachment(file.with_suffix(".name").read_bytes().decode(), file.read_bytes())


def _files(folder: Path) -> list[Path]:
    return [each for each in folder.iterdir() if not each.suffix]


def _remove(file: Path) -> None:
    for each in (file, file.with_suffix(".name")):
        with suppress(OSError):
            each.unlink()


def remove_expired(home: Path, kept_s: float = KEPT_S) -> None:
    """Removes files that no message has taken for too long, of all visitors."""
    oldest = time.time() - kept_s
    with suppress(OSError):
        for file in (home / PARKED_FOLDER).glob("*/*"):
            with suppress(OSError):
                if file.stat().st_mtime < oldest:
                    file.unlink()


@asynccontextmanager
async def expiring_files(home: Path) -> AsyncGenerator[None, None]:
    """While a server runs: files expire, first those that an earlier one left."""
    await asyncio.to_thread(remove_expired, home)
    sweeping = asyncio.create_task(_keep_removing(home))
    try:
        yield
    finally:
        sweeping.cancel()


async def _keep_removing(home: Path) -> None:
    while True:
        await asyncio.sleep(SWEEP_S)
        await asyncio.to_thread(remove_expired, home)
