"""Starts the endpoint as the command line asks for it, and keeps its keys."""

import logging
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from recto.api.desk import new_desk
from recto.base import locations
from recto.base.home_files import private_home
from recto.errors import Invalid
from recto.serve.access import Limits
from recto.serve.gateway import ServeOptions
from recto.serve.server import AddPage, bound_socket, is_loopback, run_mcp_server, run_server
from recto.serve.span_exporter import find_collector
from recto.serve.workers import Disconnect, Mode, WorkerPlan
from recto.store.store import Store

log = logging.getLogger(__name__)


@contextmanager
def open_store() -> Iterator[Store]:
    home = locations.find_home()
    with private_home(home), Store(locations.find_store(home)) as store:
        yield store


def read_fallbacks(given: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """`MODEL=OTHER`, in the order in which they are tried."""
    found: dict[str, tuple[str, ...]] = {}
    for each in given:
        model, equals, other = (part.strip() for part in each.partition("="))
        if not (equals and model and other):
            raise Invalid(f"--fallback takes MODEL=OTHER, not {each!r}")
        found[model] = (*found.get(model, ()), other)
    return found


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
        raise Invalid("--web needs keys, by which it knows its visitors apart: leave out --open")
    if is_open and not is_loopback(host):
        raise Invalid(f"--open is for this machine alone, and {host} can be reached from elsewhere")
    by_model = read_fallbacks(fallbacks)
    if not is_open:
        with open_store() as store:
            if not store.access_keys.all():
                raise Invalid("there is no key yet: `recto serve keys add NAME` makes one, or --open serves without")
    bound = bound_socket(host, port)
    with bound:
        desk = new_desk(model=model, settings=settings)
        limits, project = Limits(desk.settings.serve.body_mb << 20), str(desk.project) if desk.project else None
        client = (mode, not is_open, by_model, on_disconnect, limits)
        plan = WorkerPlan(str(desk.home), project, model, settings, *client)
        options = ServeOptions(*client, collector=find_collector(os.environ))
        address = f"[{host}]" if ":" in host else host
        place = f"http://{address}:{bound.getsockname()[1]}"
        tell(f"serving at {place}/v1 ({mode}); Ctrl-C ends it")
        if add_page:
            tell(f"the page is at {place}/: sign in with a key")
        run_server(desk, options, bound, plan, add_page)


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
        run_mcp_server(new_desk(vault=vault, settings=settings), allow_write=allow_write, bound=None)
        return
    with bound_socket("127.0.0.1", port) as bound:
        desk = new_desk(vault=vault, settings=settings)
        tell(f"serving MCP at http://127.0.0.1:{bound.getsockname()[1]}/mcp; Ctrl-C ends it")
        run_mcp_server(desk, allow_write=allow_write, bound=bound)
