"""The server of the page: its routes, what stands in front of them, and its life from the first socket to the last."""

import asyncio
import logging
import socket
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path, PurePath
from typing import Any

import uvicorn
from fastapi import FastAPI, Request
from nicegui import core, ui
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from recto.api.desk import AsyncDesk
from recto.errors import RectoError
from recto.serve.connections import bounded_config, open_connections
from recto.serve.orderly_server import OrderlyServer
from recto.web.chat_page import add_chat_page
from recto.web.files import ParkedFiles, expiring_files, picture, vault_picture
from recto.web.graph_page import GraphView
from recto.web.live import LiveConversations
from recto.web.memory_page import MemoryView
from recto.web.menu import menu
from recto.web.models_page import ModelsView
from recto.web.page import FindDoor, PageDoor, add_view
from recto.web.security import Guard, PageAccess, PolicyHeaders, read_key
from recto.web.settings_page import SettingsView
from recto.web.sources_page import SourcesView
from recto.web.stats_page import StatsView
from recto.web.what_if_page import WhatIfView

VIEWS = (WhatIfView, StatsView, GraphView, SourcesView, MemoryView, ModelsView, SettingsView)
ASSETS = Path(__file__).parent / "assets"
# How long an open page may keep the server from ending.
GOODBYE_S = 1
# How long a page that lost its connection finds everything as it was.
RECONNECT_S = 20.0
# A higher one takes several times as long and saves a tenth: the browser is on this machine.
COMPRESSION = 4

log = logging.getLogger(__name__)


async def serve_page(
    desk: AsyncDesk, host: str, listening: socket.socket, started: Callable[[PageAccess], object]
) -> None:
    """Serves until the process is told to end; what came of a running reply is kept. `started` is called once with what
    the page listens on."""
    access = PageAccess(read_key(desk.home), host, listening.getsockname()[1])
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(expiring_files(desk.home))
        live = await stack.enter_async_context(LiveConversations(desk))
        door = PageDoor(desk, live, ParkedFiles(desk.home), takes_keys=access.is_loopback)

        async def find(scope: Any) -> PageDoor:
            return door

        app = Guard(page_routes(find, is_whole=True)[1], access)
        connections = open_connections(desk.settings.serve.proxies)
        server = OrderlyServer(bounded_config(app, connections, timeout_graceful_shutdown=GOODBYE_S))
        watch = asyncio.create_task(_tell_start(server, lambda: started(access)))
        stack.callback(watch.cancel)
        await server.serve(sockets=[listening])


async def _tell_start(server: uvicorn.Server, tell: Callable[[], object]) -> None:
    with suppress(asyncio.CancelledError):
        while not server.started:  # noqa: ASYNC110  uvicorn has no event for it
            await asyncio.sleep(0.01)
        tell()


def page_routes(find: FindDoor, *, is_whole: bool, lifespan: Any = None) -> tuple[FastAPI, ASGIApp]:
    """The app of the page, for its lifespan, and what is to be served behind a guard. NiceGUI has one app in a process,
    so this is called once. `is_whole`: with the pages that show all of a home."""
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None, lifespan=lifespan)
    app.mount("/assets", StaticFiles(directory=ASSETS), name="assets")
    _add_file_routes(app, find)
    add_chat_page(find)
    for view in VIEWS:
        if view.address in menu(is_whole=is_whole):
            add_view(view, find)
    ui.run_with(
        app,
        title="Recto",
        favicon=ASSETS / "icon.svg",
        dark=None,
        language="en-US",
        reconnect_timeout=RECONNECT_S,
        binding_refresh_interval=None,
        gzip_middleware_factory=None,
        tailwind=False,
        show_welcome_message=False,
    )
    core.app.on_exception(lambda why: log.error("the page failed", exc_info=why))
    return app, GZipMiddleware(PolicyHeaders(app), compresslevel=COMPRESSION)


def _add_file_routes(app: FastAPI, find: FindDoor) -> None:
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
            return picture(*await (await find(request.scope)).desk.attached(message, block))
        except RectoError as why:
            return PlainTextResponse(why.message, 404)

    @app.get("/vault-image")
    async def vault_image(request: Request, path: str) -> Response:
        try:
            return await asyncio.to_thread(vault_picture, (await find(request.scope)).desk.vault, path)
        except RectoError as why:
            return PlainTextResponse(why.message, 404)
