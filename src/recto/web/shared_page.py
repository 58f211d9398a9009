"""The page of a shared server: the endpoint for programs and, beside it, the page for people, each with their key."""

import socket
from collections.abc import AsyncGenerator, Collection
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.types import ASGIApp, Receive, Scope, Send

from recto.serve.gateway import Gateway
from recto.web.frame import VIEWS
from recto.web.key_guard import SIGN_OUT, KeyGuard, SharedAddress
from recto.web.page_door import KeyDoors
from recto.web.server import page_routes

OF_ENDPOINT = ("/health", "/ready", "/metrics")


class SharedApp:
    """Requests of programs go to the endpoint, all others to the page behind its guard."""

    def __init__(self, endpoint: ASGIApp, page: ASGIApp, guarded: ASGIApp) -> None:
        self._endpoint, self._page, self._guarded = endpoint, page, guarded

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        if scope["type"] == "lifespan":
            await self._page(scope, receive, send)
        elif scope["type"] == "http" and (path.startswith("/v1/") or path in OF_ENDPOINT):
            await self._endpoint(scope, receive, send)
        else:
            await self._guarded(scope, receive, send)


def with_page(
    gateway: Gateway, endpoint: Starlette, bound: socket.socket, host: str, names: Collection[str] = ()
) -> ASGIApp:
    """The endpoint and the page at one address. `names` are those of a proxy in front of it."""
    doors = KeyDoors(gateway)

    @asynccontextmanager
    async def lifespan(app: Any) -> AsyncGenerator[None, None]:
        async with _life_of(endpoint), doors:
            yield

    page, behind = page_routes(doors.find, lifespan=lifespan, is_whole=False)
    VIEWS[SIGN_OUT] = "Sign out"

    address = SharedAddress("", host, bound.getsockname()[1], names=frozenset(names))
    return SharedApp(endpoint, page, KeyGuard(behind, address, gateway.find_key))


def _life_of(app: Starlette) -> AbstractAsyncContextManager[Any]:
    return app.router.lifespan_context(app)
