"""The page of a shared server: who signs in with a key sees that key's part. Beside it is the endpoint."""

import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from recto.serve.gateway import Gateway
from recto.serve.key_desk import KeyDesk
from recto.web.files import ParkedFiles, expiring_files
from recto.web.live import LiveConversations
from recto.web.menu import SIGN_OUT
from recto.web.page import PageDoor
from recto.web.security import PRIVATE, Guard, PageAccess, refusal
from recto.web.server import page_routes
from recto.web.templates import fill

if TYPE_CHECKING:
    from recto.store.clients import AccessKey

SIGN_IN = "/sign-in"
OF_ENDPOINT = ("/health", "/ready", "/metrics")
SCOPE_KEY = "recto.key"
"""Where a request carries the key that it came with."""
# A form with one key in it.
MAX_FORM = 4096
NO_SIGN_IN = "Sign in first: open this page in a browser."
UNKNOWN = "This key is unknown here. The owner of the server makes one with `recto serve keys add`."
POLICY = "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"


def with_page(
    gateway: Gateway, endpoint: Starlette, bound: socket.socket, host: str, names: Collection[str] = ()
) -> ASGIApp:
    """The endpoint for programs and the page for people at one address. `names` are those of a proxy in front of it."""
    doors = _KeyDoors(gateway)

    @asynccontextmanager
    async def lifespan(app: Any) -> AsyncGenerator[None, None]:
        async with endpoint.router.lifespan_context(endpoint), expiring_files(gateway.desk.home), doors.stack:
            yield

    page, behind = page_routes(doors.find, lifespan=lifespan, is_whole=False)
    address = SharedAddress("", host, bound.getsockname()[1], names=frozenset(names))
    guarded = KeyGuard(behind, address, gateway.find_key)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        is_of_program = scope["type"] == "http" and (path.startswith("/v1/") or path in OF_ENDPOINT)
        served = page if scope["type"] == "lifespan" else endpoint if is_of_program else guarded
        await served(scope, receive, send)

    return app


class _KeyDoors:
    """A door for each key, opened with its first visit."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway, self.stack = gateway, AsyncExitStack()
        self._doors: dict[AccessKey, PageDoor] = {}

    async def find(self, scope: Any) -> PageDoor:
        key: AccessKey = scope[SCOPE_KEY]
        if key not in self._doors:
            desk = KeyDesk(self._gateway, key)
            parked = ParkedFiles(self._gateway.desk.home, key.name)
            door = self._doors[key] = PageDoor(desk, LiveConversations(desk), parked)
            await self.stack.enter_async_context(door.live)
        return self._doors[key]


class SharedAddress(PageAccess, frozen=True):
    """The address of the page, and the names under which a proxy in front of it is reached."""

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
    """Lets through what comes from the page itself with a known key, and says whose it is."""

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
        """In or out. A sign-in carries its origin, which was checked: another site cannot sign anybody in."""
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
    # with no-referrer the browser would not name the origin of the form
    own = {"referrer-policy": "same-origin", "content-security-policy": POLICY}
    return HTMLResponse(fill("sign_in", failure=failure), status, PRIVATE | own)


async def _form(receive: Receive) -> str:
    body = bytearray()
    while len(body) <= MAX_FORM:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    return bytes(body[:MAX_FORM]).decode("latin-1")
