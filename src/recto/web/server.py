"""The server of the page: its routes, what stands in front of them, and its life from the first socket to the last."""

import asyncio
import logging
import socket
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI
from nicegui import core, ui
from starlette.middleware.gzip import GZipMiddleware
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from recto.api.desk import AsyncDesk
from recto.serve.connections import OrderlyServer, bounded_config, open_connections
from recto.web.all_views import add_views
from recto.web.chat_page import add_chat_page
from recto.web.files import add_file_routes
from recto.web.live import LiveConversations
from recto.web.page_door import FindDoor, PageDoor
from recto.web.parked_files import ParkedFiles, expiring_files
from recto.web.security import Guard, PageAccess, PolicyHeaders, read_key

ASSETS = Path(__file__).parent / "assets"
# How long an open page may keep the server from ending.
GOODBYE_S = 1
# How long a page that lost its connection finds everything as it was.
RECONNECT_S = 20.0

# A higher one takes several times as long and saves a tenth: the browser is on this machine.
COMPRESSION = 4

Started = Callable[[PageAccess], object]


async def serve_page(desk: AsyncDesk, host: str, listening: socket.socket, started: Started) -> None:
    """Serves until the process is told to end; what came of a running reply is kept. `started` is called once with what
    the page listens on."""
    access = PageAccess(read_key(desk.home), host, listening.getsockname()[1])
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(expiring_files(desk.home))
        live = await stack.enter_async_context(LiveConversations(desk))
        connections = open_connections(desk.settings.serve.proxies)
        app = page_app(desk, live, access)
        server = OrderlyServer(bounded_config(app, connections, timeout_graceful_shutdown=GOODBYE_S))
        watch = asyncio.create_task(_tell_start(server, lambda: started(access)))
        stack.callback(watch.cancel)
        await server.serve(sockets=[listening])


def page_app(desk: AsyncDesk, live: LiveConversations, access: PageAccess) -> ASGIApp:
    """Everything of a home, behind its guard."""
    door = PageDoor(desk, live, ParkedFiles(desk.home), takes_keys=access.is_loopback)

    async def find(scope: Any) -> PageDoor:
        return door

    return Guard(page_routes(find, is_whole=True)[1], access)


def page_routes(find: FindDoor, *, is_whole: bool, lifespan: Any = None) -> tuple[FastAPI, ASGIApp]:
    """The app of the page, for its lifespan, and what is to be served behind a guard. NiceGUI has one app in a process,
    so this is called once. `is_whole`: with the pages that show all of a home."""
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None, lifespan=lifespan)
    app.mount("/assets", StaticFiles(directory=ASSETS), name="assets")
    add_file_routes(app, find)
    add_chat_page(find)
    add_views(find, is_whole=is_whole)
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
    core.app.on_exception(_log_failure)
    return app, GZipMiddleware(PolicyHeaders(app), compresslevel=COMPRESSION)


def _log_failure(why: Exception) -> None:
    logging.getLogger(__name__).error("the page failed", exc_info=why)


async def _tell_start(server: uvicorn.Server, tell: Callable[[], object]) -> None:
    with suppress(asyncio.CancelledError):
        while not server.started:  # noqa: ASYNC110  uvicorn has no event for it
            await asyncio.sleep(0.01)
        tell()
