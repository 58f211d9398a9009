"""Starts and stops the servers: the endpoint with the options of the command line, and the MCP server."""

import asyncio
import gc
import ipaddress
import os
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.types import ASGIApp

from recto.api.desk import AsyncDesk, new_desk
from recto.base import locations
from recto.base.home_files import private_home
from recto.errors import Invalid
from recto.serve.app import PATIENCE_S, build_app
from recto.serve.connections import QUEUED, BodyLimits, OrderlyServer, bounded_config
from recto.serve.gateway import Disconnect, Gateway, Mode, ServeOptions
from recto.serve.mcp_server import mcp_server, mcp_tools, serve_stdio
from recto.serve.telemetry import find_collector
from recto.store.store import Store

KEEP_ALIVE_S = 75
# The command line collects every 50,000 objects, which suits a start but takes tens of milliseconds each time.
GC_STEPS = (10_000, 20, 100)

AddPage = Callable[[Gateway, Starlette, socket.socket], ASGIApp]
"""Adds a page for people to the endpoint."""


@contextmanager
def open_store() -> Iterator[Store]:
    home = locations.find_home()
    with private_home(home), Store(locations.find_store(home)) as store:
        yield store


def launch(
    host: str,
    port: int,
    *,
    model: str | None,
    mode: Mode,
    fallbacks: Iterable[str],
    on_disconnect: Disconnect,
    is_open: bool,
    settings: dict[str, Any],
    tell: Callable[[str], object],
    add_page: AddPage | None = None,
) -> None:
    """Serves until SIGINT or SIGTERM."""
    if is_open and add_page:
        raise Invalid("--web needs keys to tell its visitors apart; leave out --open")
    if is_open and not is_loopback(host):
        raise Invalid(f"--open is only for this machine, and {host} can be reached from elsewhere")
    by_model = read_fallbacks(fallbacks)
    if not is_open:
        with open_store() as store:
            if not store.access_keys.all():
                raise Invalid("there is no key yet; add one with `recto serve keys add NAME`, or use --open")
    with bound_socket(host, port) as bound:
        desk = new_desk(model=model, settings=settings)
        limits, collector = BodyLimits(desk.settings.serve.body_mb << 20), find_collector(os.environ)
        options = ServeOptions(mode, not is_open, by_model, on_disconnect, limits, collector)
        address = f"[{host}]" if ":" in host else host
        place = f"http://{address}:{bound.getsockname()[1]}"
        tell(f"serving at {place}/v1 ({mode}); Ctrl-C ends it")
        if add_page:
            tell(f"the page is at {place}/: sign in with a key")
        asyncio.run(serve_endpoint(desk, options, bound, add_page))


def read_fallbacks(given: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """`MODEL=OTHER`, in the order of the attempts."""
    found: dict[str, tuple[str, ...]] = {}
    for each in given:
        model, equals, other = (part.strip() for part in each.partition("="))
        if not (equals and model and other):
            raise Invalid(f"--fallback takes MODEL=OTHER, not {each!r}")
        found[model] = (*found.get(model, ()), other)
    return found


def launch_mcp(
    *,
    port: int | None,
    vault: str | None,
    allow_write: bool,
    settings: dict[str, Any],
    tell: Callable[[str], object],
) -> None:
    """Serves over standard input and output until its client ends, or on this machine until SIGINT or SIGTERM."""
    if port is None:
        asyncio.run(serve_mcp(new_desk(vault=vault, settings=settings), None, allow_write=allow_write))
        return
    with bound_socket("127.0.0.1", port) as bound:
        desk = new_desk(vault=vault, settings=settings)
        tell(f"serving MCP at http://127.0.0.1:{bound.getsockname()[1]}/mcp; Ctrl-C ends it")
        asyncio.run(serve_mcp(desk, bound, allow_write=allow_write))


# -- sockets


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def bound_socket(host: str, port: int) -> socket.socket:
    """Raises Invalid if the address cannot be used."""
    bound = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
    except OSError as why:
        bound.close()
        raise Invalid(f"cannot listen at {host}:{port}: {why.strerror or why}") from why
    bound.listen(QUEUED)
    return bound


async def _serve(app: ASGIApp, bound: socket.socket, *, has_page: bool = False) -> None:
    """Serves until SIGINT or SIGTERM; replies in progress are finished."""
    config = bounded_config(
        app,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=int(PATIENCE_S),
        lifespan="on",
        ws="auto" if has_page else "none",
    )
    await OrderlyServer(config).serve(sockets=[bound])


def _collect_in_small_steps() -> None:
    """Collects garbage in steps of a few milliseconds between words, not in long pauses; objects from the start are
    never scanned again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_STEPS)


# -- servers


async def serve_endpoint(
    desk: AsyncDesk, options: ServeOptions, bound: socket.socket, add_page: AddPage | None
) -> None:
    async with desk:
        await desk.follow()
        gateway = Gateway(desk, options)
        endpoint = build_app(gateway)
        app = add_page(gateway, endpoint, bound) if add_page else endpoint
        _collect_in_small_steps()
        await _serve(app, bound, has_page=add_page is not None)


async def serve_mcp(desk: AsyncDesk, bound: socket.socket | None, *, allow_write: bool) -> None:
    """At an address, or over standard input and output."""
    async with desk:
        await desk.follow()
        server = mcp_server(mcp_tools(desk, allow_write=allow_write))
        await (_serve(server.streamable_http_app(), bound) if bound else serve_stdio(server))
