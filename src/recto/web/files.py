"""Uploads, parked until their message is sent; pictures of the vault for the page.

Each visitor has a private folder in the home, with at most 50 files and 128 MB in total: the oldest go first. Files
expire after an hour, including those left by a killed server.
"""

import asyncio
import base64
import os
import time
from collections.abc import AsyncGenerator, AsyncIterable, Sequence
from contextlib import asynccontextmanager, suppress
from hashlib import sha256
from pathlib import Path, PurePath

from starlette.responses import Response

from recto.api.ask_options import Attachment
from recto.base.home_files import PARKED_FOLDER, make_private_folder
from recto.base.ids import new_id
from recto.base.text import clean
from recto.chat.blocks import Image
from recto.errors import Invalid, NotFound
from recto.sources.documents import attachment
from recto.vault.links import Link, split_link
from recto.vault.vault import NO_VAULT, Vault
from recto.web.security import MAX_BODY, TOO_LARGE

MOST_FILES, MOST_BYTES = 50, 128 << 20
KEPT_S, SWEEP_S = 3600.0, 60.0
GONE = "an attachment is gone: they are kept for an hour; attach it again"
# Picture types that cannot contain scripts.
SHOWN_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
# Nothing in a picture can run, even if it is opened directly.
ALONE = {"content-security-policy": "default-src 'none'; sandbox", "cache-control": "private, max-age=3600"}


class ParkedFiles:
    """The files of one visitor. `owner` is the name of a key, or empty."""

    def __init__(self, home: Path, owner: str = "") -> None:
        self._folder = home / PARKED_FOLDER / sha256(owner.encode()).hexdigest()[:32]
        self._uploading = asyncio.Lock()

    async def add(self, name: str, chunks: AsyncIterable[bytes]) -> str:
        """Store an upload, and return its id. One at a time: the others wait unread. Raises Invalid if it is too large
        or cannot be attached."""
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
        """Remove and return the attachments. NotFound for one that is gone, or another visitor's."""
        return await asyncio.to_thread(self._take, ids) if ids else []

    def _take(self, ids: Sequence[str]) -> list[Attachment]:
        if not all(id.isalnum() for id in ids):
            raise NotFound(GONE)
        files = [self._folder / id for id in ids]
        try:
            found = [_read(file) for file in files]
        except OSError as why:
            raise NotFound(GONE) from why
        for file in files:
            _remove(file)
        return found

    def _make_room(self) -> None:
        files = [each for each in self._folder.iterdir() if not each.suffix]
        total = 0
        for number, file in enumerate(sorted(files, reverse=True)):  # ids sort by time
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
    """Write the name into a separate file: it may be too long for a file name, and hold any character. Raises Invalid
    if the upload cannot be attached."""
    with open(file.with_suffix(".name"), "xb", opener=_private) as out:
        out.write(clean(name)[0].encode())
    _read(file)


def _read(file: Path) -> Attachment:
    return attachment(file.with_suffix(".name").read_bytes().decode(), file.read_bytes())


def _remove(file: Path) -> None:
    for each in (file, file.with_suffix(".name")):
        with suppress(OSError):
            each.unlink()


@asynccontextmanager
async def expiring_files(home: Path) -> AsyncGenerator[None, None]:
    """Expire files while a server runs, first those left by an earlier one."""
    await asyncio.to_thread(_remove_expired, home)
    sweeping = asyncio.create_task(_keep_removing(home))
    try:
        yield
    finally:
        sweeping.cancel()


async def _keep_removing(home: Path) -> None:
    while True:
        await asyncio.sleep(SWEEP_S)
        await asyncio.to_thread(_remove_expired, home)


def _remove_expired(home: Path) -> None:
    oldest = time.time() - KEPT_S
    with suppress(OSError):
        for file in (home / PARKED_FOLDER).glob("*/*"):
            with suppress(OSError):
                if file.stat().st_mtime < oldest:
                    file.unlink()


def vault_picture(vault: Vault | None, path: str) -> Response:
    """A picture of the vault, by its path or its name in links."""
    if vault is None:
        raise NotFound(NO_VAULT)
    at = vault.find_existing(path) or vault.resolve(Link(f"[[{path}]]", *split_link(path)))
    if at is None:
        raise NotFound(f"there is no picture {path[:80]} in the vault", path=path)
    vault.folder.check_ignored(at)
    found = attachment(PurePath(at).name, vault.folder.read(at))
    if not isinstance(found, Image):
        raise Invalid(f"{at} is not a picture", path=at)
    return picture(found.media_type, base64.b64decode(found.base64))


def picture(media_type: str, data: bytes) -> Response:
    if media_type not in SHOWN_TYPES:
        raise Invalid("this is not a picture")
    return Response(data, media_type=media_type, headers=ALONE)
