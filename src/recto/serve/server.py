"""Runs the endpoint: binds, serves until it is told to end, and finishes the replies that are on their way."""

import asyncio
import gc
import ipaddress
import logging
import socket
from collections.abc import Callable

from starlette.applications import Starlette
from starlette.types import ASGIApp

from recto.api.desk import AsyncDesk
from recto.errors import Invalid
from recto.serve.app import PATIENCE_S, build_app
from recto.serve.connections import bounded_config, open_connections
from recto.serve.gateway import Gateway, ServeOptions
from recto.serve.mcp_server import mcp_server, mcp_tools, serve_stdio
from recto.serve.orderly_server import OrderlyServer
from recto.serve.workers import WorkerPlan

log = logging.getLogger(__name__)
KEEP_ALIVE_S = 75
# The command line collects every 50,000 objects, which is best for a start and takes tens of milliseconds at once.
GC_STEPS = (10_000, 20, 100)


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def bound_socket(host: str, port: int) -> socket.socket:
    """Invalid where the address cannot be used."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
    except OSError as why:
        bound.close()
        raise Invalid(f"cannot listen at {host}:{port}: {why.strerror or why}") from why
    bound.listen(2048)
    return bound


async def serve(app: ASGIApp, bound: socket.socket, proxies: str = "", *, has_page: bool = False) -> None:
    """Until SIGINT or SIGTERM."""
    config = bounded_config(
        app,
        open_connections(proxies),
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=int(PATIENCE_S),
        lifespan="on",
        ws="auto" if has_page else "none",
    )
    await OrderlyServer(config).serve(sockets=[bound])


AddPage = Callable[[Gateway, Starlette, socket.socket], ASGIApp]
"""Puts a page for people beside the endpoint."""


def run_server(
    desk: AsyncDesk, options: ServeOptions, bound: socket.socket, plan: WorkerPlan, add_page: AddPage | None = None
) -> None:
    asyncio.run(_serve(desk, options, bound, plan, add_page))


async def _serve(
    desk: AsyncDesk, options: ServeOptions, bound: socket.socket, plan: WorkerPlan, add_page: AddPage | None
) -> None:
    async with desk:
        await desk.follow()
        gateway = Gateway(desk, options, plan)
        endpoint = build_app(gateway)
        app = add_page(gateway, endpoint, bound) if add_page else endpoint
        collect_in_small_steps()
        await serve(app, bound, desk.settings.serve.proxies, has_page=add_page is not None)


def collect_in_small_steps() -> None:
    """Garbage is collected between words, not in long pauses: what is there from the start is never looked at again,
    and the rest in steps of a few milliseconds."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_STEPS)


def run_mcp_server(desk: AsyncDesk, *, allow_write: bool, bound: socket.socket | None) -> None:
    """Over standard input and output, or at an address."""
    asyncio.run(_serve_mcp(desk, allow_write=allow_write, bound=bound))


async def _serve_mcp(desk: AsyncDesk, *, allow_write: bool, bound: socket.socket | None) -> None:
    if bound is None:
        await serve_stdio(desk, allow_write=allow_write)
        return
    async with desk:
        await desk.follow()
        await serve(mcp_server(mcp_tools(desk, allow_write=allow_write)).streamable_http_app(), bound)
