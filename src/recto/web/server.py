"""The servers of the page: for a whole home, or shared, with a part of it for each key.

Routes, their guards, and their lifetime.
"""

import asyncio
import logging
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import uvicorn
from fastapi import FastAPI, Request
from nicegui import core, ui
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

from recto.api.desk import AsyncDesk
from recto.errors import RectoError
from recto.serve.connections import OrderlyServer, bounded_config
from recto.serve.gateway import Gateway
from recto.serve.key_desk import KeyDesk
from recto.web.chat_page import add_chat_page
from recto.web.files import ParkedFiles, picture, vault_picture
from recto.web.graph_page import GraphView
from recto.web.live import LiveConversations
from recto.web.memory_page import MemoryView
from recto.web.menu import SIGN_OUT, menu
from recto.web.page import FindDoor, PageDoor, add_view
from recto.web.security import PRIVATE, Guard, PageAccess, PolicyHeaders, read_key, refusal
from recto.web.settings_page import SettingsView
from recto.web.stats_page import StatsView
from recto.web.templates import fill

if TYPE_CHECKING:
    from recto.store.clients import AccessKey

VIEWS = (StatsView, GraphView, MemoryView, SettingsView)
ASSETS = Path(__file__).parent / "assets"
# Longest that an open page may delay shutdown.
GOODBYE_S = 1
# How long the state of a disconnected page is kept.
RECONNECT_S = 20.0
# A higher level takes several times as long and saves a tenth: the browser is on this machine.
COMPRESSION = 4
SIGN_IN = "/sign-in"
OF_ENDPOINT = ("/health", "/ready", "/metrics")
SCOPE_KEY = "recto.key"
"""The place of the key in a request's scope."""
# Room for a form with one key.
MAX_FORM = 4096
NO_SIGN_IN = "Sign in first: open this page in a browser."
UNKNOWN = "This key is unknown here. The owner of the server makes one with `recto serve keys add`."
SIGN_IN_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
log = logging.getLogger(__name__)


async def serve_page(
    desk: AsyncDesk, host: str, listening: socket.socket, started: Callable[[PageAccess], object]
) -> None:
    """Serve until a signal ends the process; running replies keep their text so far. `started` is called once."""
    access = PageAccess(read_key(desk.home), host, listening.getsockname()[1])
    async with AsyncExitStack() as stack:
        live = await stack.enter_async_context(LiveConversations(desk).looking())
        door = PageDoor(desk, live, ParkedFiles(), takes_keys=access.is_loopback)

        async def find(scope: Any) -> PageDoor:
            return door

        app = Guard(page_routes(find, is_whole=True)[1], access)
        server = OrderlyServer(bounded_config(app, timeout_graceful_shutdown=GOODBYE_S))
        watch = asyncio.create_task(_tell_start(server, lambda: started(access)))
        stack.callback(watch.cancel)
        await server.serve(sockets=[listening])


async def _tell_start(server: uvicorn.Server, tell: Callable[[], object]) -> None:
    with suppress(asyncio.CancelledError):
        while not server.started:  # noqa: ASYNC110  uvicorn has no event for it
            await asyncio.sleep(0.01)
        tell()


def page_routes(find: FindDoor, *, is_whole: bool, lifespan: Any = None) -> tuple[FastAPI, ASGIApp]:
    """The page's app, for its lifespan, and the app to put behind a guard. Call it once: NiceGUI has one app per
    process. `is_whole`: include the pages that show a whole home."""
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

    @app.get("/attached")
    async def attached(request: Request, message: str, block: int) -> Response:
        """A picture attached to a message."""
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


def with_page(
    gateway: Gateway, endpoint: Starlette, bound: socket.socket, host: str, names: Collection[str] = ()
) -> ASGIApp:
    """The endpoint for programs and the page for people at one address. `names` are those of a proxy."""
    stack = AsyncExitStack()
    doors: dict[AccessKey, PageDoor] = {}

    async def find(scope: Any) -> PageDoor:
        """The door of a key, opened at its first visit."""
        key: AccessKey = scope[SCOPE_KEY]
        if key not in doors:
            desk = KeyDesk(gateway, key)
            door = doors[key] = PageDoor(desk, LiveConversations(desk), ParkedFiles())
            await stack.enter_async_context(door.live.looking())
        return doors[key]

    @asynccontextmanager
    async def lifespan(app: Any) -> AsyncGenerator[None, None]:
        async with endpoint.router.lifespan_context(endpoint), stack:
            yield

    page, inside = page_routes(find, lifespan=lifespan, is_whole=False)
    address = SharedAddress("", host, bound.getsockname()[1], names=frozenset(names))
    guarded = KeyGuard(inside, address, gateway.find_key)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        is_of_program = scope["type"] == "http" and (path.startswith("/v1/") or path in OF_ENDPOINT)
        served = page if scope["type"] == "lifespan" else endpoint if is_of_program else guarded
        await served(scope, receive, send)

    return app


class SharedAddress(PageAccess, frozen=True):
    """The address of the page, and the names of a proxy in front of it."""

    names: frozenset[str] = frozenset()

    def is_own(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        return name in self.names or super().is_own(host)

    @property
    def cookie(self) -> str:
        return f"recto-serve-{self.port}"


class KeyGuard(Guard):
    """Admits requests from the page itself with a known key, and adds its owner."""

    def __init__(
        self, app: ASGIApp, address: SharedAddress, find: "Callable[[str], Awaitable[AccessKey | None]]"
    ) -> None:
        super().__init__(app, address)
        self._find = find

    async def _answer(self, scope: Scope, receive: Receive, headers: Headers) -> ASGIApp | None:
        is_http = scope["type"] == "http"
        if is_http and scope["path"] in (SIGN_IN, SIGN_OUT):
            return await self._signed(scope, receive, headers)
        given = self._cookie(headers)
        if given and (key := await self._find(given)):
            scope[SCOPE_KEY] = key
            return None
        is_document = is_http and "text/html" in headers.get("accept", "")
        return _sign_in_page("", 401) if is_document else refusal(NO_SIGN_IN)

    async def _signed(self, scope: Scope, receive: Receive, headers: Headers) -> Response:
        """Sign in or out. The checked origin keeps other sites from signing anybody in."""
        made = RedirectResponse("/", 303, headers=PRIVATE)
        if scope["path"] == SIGN_OUT:
            made.delete_cookie(self._access.cookie, httponly=True, samesite="strict")
        elif scope["method"] == "POST":
            given = parse_qs(await _form(receive)).get("key", [""])[0].strip()
            if not given or await self._find(given) is None:
                return _sign_in_page(UNKNOWN, 403)
            is_https = "https" in (scope.get("scheme"), headers.get("x-forwarded-proto"))
            self._set_cookie(made, given, secure=is_https)
        return made


def _sign_in_page(failure: str, status: int) -> Response:
    # with no-referrer the browser would not send the form's origin
    own = {"referrer-policy": "same-origin", "content-security-policy": SIGN_IN_POLICY}
    return HTMLResponse(fill("sign_in", failure=failure), status, PRIVATE | own)


async def _form(receive: Receive) -> str:
    body = bytearray()
    while len(body) <= MAX_FORM:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    return bytes(body[:MAX_FORM]).decode("latin-1")
