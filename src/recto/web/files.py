"""Files that come in with messages, and pictures that the page shows: those of a message, and those of the vault."""

import asyncio
import base64
import logging
from pathlib import PurePath

from fastapi import FastAPI, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from recto.chat.blocks import Image
from recto.errors import Invalid, NotFound, RectoError
from recto.sources.documents import attachment
from recto.vault.links import Link, split_link
from recto.vault.vault import NO_VAULT, Vault
from recto.web.message_view import SHOWN_TYPES
from recto.web.page_door import FindDoor

log = logging.getLogger(__name__)
# Nothing in a picture can run, even where it is opened alone.
ALONE = {"content-security-policy": "default-src 'none'; sandbox", "cache-control": "private, max-age=3600"}


def add_file_routes(app: FastAPI, find: FindDoor) -> None:
    @app.post("/attach")
    async def attach(request: Request, name: str) -> Response:
        parked = (await find(request.scope)).parked
        try:
            return JSONResponse({"id": await parked.add(PurePath(name).name or "file", request.stream())})
        except RectoError as why:
            return JSONResponse({"error": why.message})
        except OSError as why:
            log.error("an upload could not be kept: %s", why)
            return JSONResponse({"error": "the server could not keep this file"})

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
