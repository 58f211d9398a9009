"""Files that come in with messages, and pictures that the page shows: those of a message, and those of the vault."""

import asyncio
import base64
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import PurePath

from fastapi import FastAPI, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from recto.ask_options import Attachment
from recto.chat.blocks import Image
from recto.errors import Invalid, NotFound, RectoError
from recto.ids import new_id
from recto.sources.documents import attachment
from recto.vault.links import Link, split_link
from recto.vault.vault import NO_VAULT, Vault
from recto.web.message_view import SHOWN_TYPES
from recto.web.page_door import FindDoor
from recto.web.security import MAX_BODY, TOO_LARGE

# Attachments that wait for their message; the oldest go first.
MOST_WAITING = 50
# Nothing in a picture can run, even where it is opened alone.
ALONE = {"content-security-policy": "default-src 'none'; sandbox", "cache-control": "private, max-age=3600"}
_waiting: dict[str, OrderedDict[str, Attachment]] = {}
"""By whom they are from: the name of a key, or nothing."""


def taken_attachments(owner: str, ids: Sequence[str]) -> list[Attachment]:
    """Attachments that were sent before their message. NotFound for one that is gone, or another's."""
    waiting = _waiting.get(owner, OrderedDict())
    missing = [id for id in ids if id not in waiting]
    if missing:
        raise NotFound("an attachment is gone, as after a restart of the server: attach it again")
    return [waiting.pop(id) for id in ids]


def add_file_routes(app: FastAPI, find: FindDoor) -> None:
    @app.post("/attach")
    async def attach(request: Request, name: str) -> Response:
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > MAX_BODY:
                return PlainTextResponse(TOO_LARGE, 413)
        try:
            made = attachment(PurePath(name).name or "file", bytes(body))
        except RectoError as why:
            return JSONResponse({"error": why.message})
        waiting = _waiting.setdefault((await find(request.scope)).owner, OrderedDict())
        waiting[id := new_id()] = made
        while len(waiting) > MOST_WAITING:
            waiting.popitem(last=False)
        return JSONResponse({"id": id})

    @app.get("/attached")
    async def attached(request: Request, message: str, block: int) -> Response:
        """A picture that came with a message."""
        try:
            media_type, data = await (await find(request.scope)).desk.attached(message, block)
        except RectoError as why:
            return PlainTextResponse(why.message, 404)
        if media_type not in SHOWN_TYPES:
            return PlainTextResponse("this is not a picture", 404)
        return Response(data, media_type=media_type, headers=ALONE)

    @app.get("/vault-image")
    async def vault_image(request: Request, path: str) -> Response:
        """A picture of the vault, by its path or its name as links name it."""
        try:
            vault = (await find(request.scope)).desk.vault
            if vault is None:
                raise NotFound(NO_VAULT)
            return await asyncio.to_thread(_picture, vault, path)
        except RectoError as why:
            return PlainTextResponse(why.message, 404)


def _picture(vault: Vault, path: str) -> Response:
    at = vault.find_existing(path) or vault.resolve(Link(f"[[{path}]]", *split_link(path)))
    if at is None:
        raise NotFound(f"there is no picture {path[:80]} in the vault", path=path)
    vault.folder.check_ignored(at)
    found = attachment(PurePath(at).name, vault.folder.read(at))
    if not isinstance(found, Image) or found.media_type not in SHOWN_TYPES:
        raise Invalid(f"{at} is not a picture", path=at)
    return Response(base64.b64decode(found.base64), media_type=found.media_type, headers=ALONE)
