"""Uploads, parked until their message is sent; pictures of the vault for the page.

A visitor has at most 20 files and 64 MB parked, in memory: the oldest go first, and all with the server.
"""

import asyncio
import base64
from collections.abc import AsyncIterable, Sequence
from pathlib import PurePath

from starlette.responses import Response

from recto.base.ids import new_id
from recto.chat.blocks import File, Image
from recto.errors import Invalid, NotFound
from recto.sources.documents import attachment
from recto.vault.links import Link, split_link
from recto.vault.vault import NO_VAULT, Vault
from recto.web.security import MAX_BODY, TOO_LARGE

MOST_FILES, MOST_BYTES = 20, 64 << 20
# Picture types that cannot contain scripts.
SHOWN_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
# Nothing in a picture can run, even if it is opened directly.
ALONE = {"content-security-policy": "default-src 'none'; sandbox", "cache-control": "private, max-age=3600"}


class ParkedFiles:
    """The files of one visitor."""

    def __init__(self) -> None:
        self._files: dict[str, tuple[int, Image | File]] = {}
        """The size and the attachment by id, the oldest first."""
        self._uploading = asyncio.Lock()

    async def add(self, name: str, chunks: AsyncIterable[bytes]) -> str:
        """Keep an upload, and return its id. One at a time: the others wait unread. Raises Invalid if it is too large
        or cannot be attached."""
        async with self._uploading:
            data = bytearray()
            async for chunk in chunks:
                data += chunk
                if len(data) > MAX_BODY:
                    raise Invalid(TOO_LARGE)
            self._files[id := new_id()] = len(data), await asyncio.to_thread(attachment, name, bytes(data))
            while len(self._files) > MOST_FILES or sum(size for size, _ in self._files.values()) > MOST_BYTES:
                del self._files[next(iter(self._files))]
            return id

    def take(self, ids: Sequence[str]) -> list[Image | File]:
        """Remove and return the attachments. NotFound for one that is gone, or another visitor's."""
        if not all(id in self._files for id in ids):
            raise NotFound("an attachment is gone: the server was restarted, or too many followed; attach it again")
        return [self._files.pop(id)[1] for id in dict.fromkeys(ids)]


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
