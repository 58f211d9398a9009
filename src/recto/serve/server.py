"""Starts and stops the servers: the endpoint with the options of the command line, its workers, and the MCP server.

`python -m recto.serve.server` is a worker of `recto serve`. It reads its plan from standard input, ends with that
input, and writes its port, then its figures, to standard output. See `workers.py`.
"""

import asyncio
import gc
import hmac
import ipaddress
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import msgspec
from msgspec.structs import replace
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from recto.api.desk import AsyncDesk, new_desk
from recto.base import locations
from recto.base.home_files import private_home
from recto.errors import Invalid
from recto.serve.app import PATIENCE_S, build_app
from recto.serve.connections import QUEUED, BodyLimits, OrderlyServer, bounded_config, open_connections
from recto.serve.gateway import Gateway
from recto.serve.mcp_server import mcp_server, mcp_tools, serve_stdio
from recto.serve.telemetry import Metrics, find_collector
from recto.serve.workers import SECRET_HEADER, Disconnect, Mode, ServeOptions, WorkerPlan
from recto.store.store import Store

KEEP_ALIVE_S = 75
# The command line collects every 50,000 objects, which suits a start but takes tens of milliseconds each time.
GC_STEPS = (10_000, 20, 100)
TELL_S = 1.0
# For a worker: on a busy machine the server, which answers everybody, comes first.
NICE = 5

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
        project = str(desk.project) if desk.project else None
        plan = WorkerPlan(str(desk.home), project, model, settings, options)
        address = f"[{host}]" if ":" in host else host
        place = f"http://{address}:{bound.getsockname()[1]}"
        tell(f"serving at {place}/v1 ({mode}); Ctrl-C ends it")
        if add_page:
            tell(f"the page is at {place}/: sign in with a key")
        asyncio.run(serve_endpoint(desk, plan, bound, add_page))


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


async def _serve(app: ASGIApp, bound: socket.socket, proxies: str = "", *, has_page: bool = False) -> None:
    """Serves until SIGINT or SIGTERM; replies in progress are finished."""
    config = bounded_config(
        app,
        open_connections(proxies),
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


async def serve_endpoint(desk: AsyncDesk, plan: WorkerPlan, bound: socket.socket, add_page: AddPage | None) -> None:
    async with desk:
        await desk.follow()
        gateway = Gateway(desk, plan.options, plan)
        endpoint = build_app(gateway)
        app = add_page(gateway, endpoint, bound) if add_page else endpoint
        _collect_in_small_steps()
        await _serve(app, bound, desk.settings.serve.proxies, has_page=add_page is not None)


async def serve_mcp(desk: AsyncDesk, bound: socket.socket | None, *, allow_write: bool) -> None:
    """At an address, or over standard input and output."""
    async with desk:
        await desk.follow()
        server = mcp_server(mcp_tools(desk, allow_write=allow_write))
        await (_serve(server.streamable_http_app(), bound) if bound else serve_stdio(server))


# -- a worker


def run_worker() -> None:
    with suppress(AttributeError):  # not on Windows
        os.nice(NICE)
    plan = msgspec.json.decode(sys.stdin.buffer.readline(), type=WorkerPlan)
    with bound_socket("127.0.0.1", 0) as bound:
        asyncio.run(_serve_as_worker(plan, bound))


async def _serve_as_worker(plan: WorkerPlan, bound: socket.socket) -> None:
    # the server, which hears the client, gives up first
    limits = replace(plan.options.limits, read_s=plan.options.limits.read_s * 2)
    options = replace(plan.options, limits=limits, is_worker=True)
    async with new_desk(home=plan.home, project=plan.project, model=plan.model, settings=plan.settings) as desk:
        await desk.follow()
        gateway = Gateway(desk, options)
        _collect_in_small_steps()
        _print(b"%d" % bound.getsockname()[1])
        threading.Thread(target=_end_with_input, daemon=True).start()
        telling = asyncio.create_task(_keep_telling(gateway.metrics))
        await _serve(_only_for_server(build_app(gateway), plan.secret.encode()), bound)
        telling.cancel()
        _print(gateway.metrics.taken())


def _print(line: bytes) -> None:
    with suppress(OSError):  # the server is gone
        sys.stdout.buffer.write(line + b"\n")
        sys.stdout.buffer.flush()


def _end_with_input() -> None:
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGTERM)


async def _keep_telling(metrics: Metrics) -> None:
    while True:
        await asyncio.sleep(TELL_S)
        _print(metrics.taken())


def _only_for_server(app: ASGIApp, secret: bytes) -> ASGIApp:
    """Answers only the server that started this process, and nobody else on this machine."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        given = next((value for name, value in scope.get("headers", ()) if name == SECRET_HEADER.encode()), b"")
        is_refused = scope["type"] == "http" and not hmac.compare_digest(given, secret)
        answered = PlainTextResponse("This port belongs to recto serve.\n", 403) if is_refused else app
        await answered(scope, receive, send)

    return answer


if __name__ == "__main__":
    run_worker()
