"""`recto serve`: the endpoint for other programs, and its keys. `recto mcp`: an MCP server. `recto web`: the page."""

import asyncio
import os
import sys
import webbrowser
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import click
from msgspec import to_builtins

from recto.base.text import dollars
from recto.cli import options, show
from recto.errors import Invalid

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from recto.store.clients import AccessKey
    from recto.web.security import PageAccess

PORT = 8440
MODES = ("manage", "record")
NEEDS_EXTRA = "the page needs an extra: pip install 'recto-context[web]'"


@click.group(invoke_without_command=True)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=PORT, show_default=True, type=click.IntRange(0, 65535), help="0 takes a free one.")
@click.option("--model", metavar="NAME", help="Model for clients that ask for `recto`, as provider:model.")
@click.option(
    "--mode",
    type=click.Choice(MODES),
    default="manage",
    show_default=True,
    help="Plan each window, or only record what is sent.",
)
@click.option(
    "--fallback",
    "fallbacks",
    multiple=True,
    metavar="MODEL=OTHER",
    help="Ask OTHER where MODEL fails; * stands for any model. May be given several times.",
)
@click.option(
    "--on-disconnect",
    type=click.Choice(["finish", "stop"]),
    default="finish",
    show_default=True,
    help="What happens to a reply whose client has gone.",
)
@click.option("--open", "is_open", is_flag=True, help="Serve without keys; only on this machine.")
@click.option(
    "--web", is_flag=True, help="Serve the page too: everyone who signs in with a key sees its conversations."
)
@click.option(
    "--web-host",
    "web_hosts",
    multiple=True,
    metavar="NAME",
    help="A name under which a proxy in front serves the page. May be given several times.",
)
@options.set_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    host: str,
    port: int,
    web: bool,
    web_hosts: tuple[str, ...],
    assignments: tuple[str, ...],
    **chosen: Any,
) -> None:
    """Serve OpenAI's and Anthropic's API to other programs, with planned windows.

    Point a client to http://127.0.0.1:8440/v1 and give it a key of `recto serve keys add`. If
    OTEL_EXPORTER_OTLP_ENDPOINT names an OpenTelemetry collector, it receives a span for each recorded request.

    Example: recto serve --model openai:gpt-4o
    """
    if ctx.invoked_subcommand is not None:
        return
    from recto.serve.server import launch  # Starlette and uvicorn: only to serve

    if not (os.environ.get("RECTO_LOG") or ctx.find_root().params.get("log_file")):
        from recto.cli.log import set_up  # clients get one sentence about a failure: the log has the rest

        set_up("warning", None, "serve")
    if web_hosts and not web:
        raise click.UsageError("--web-host names the page, which --web serves")
    add_page = None
    if web:
        if find_spec("nicegui") is None:
            raise Invalid(NEEDS_EXTRA)
        from recto.web.server import with_page  # NiceGUI: a second

        add_page = partial(with_page, host=host, names=web_hosts)
    launch(host, port, settings=options.assigned("--set", assignments), tell=show.say, add_page=add_page, **chosen)


@command.group()
def keys() -> None:
    """Make keys for clients of `recto serve`, list them, remove them.

    Example: recto serve keys add laptop
    """


@keys.command("add")
@click.argument("name")
@click.option(
    "--model", "models", multiple=True, metavar="NAME", help="A model that it may ask; * stands for any text."
)
@click.option("--spend-day", type=click.FloatRange(min=0), metavar="DOLLARS", help="Maximum cost in a day.")
@click.option("--requests-per-minute", type=click.IntRange(min=1), metavar="N", help="How often it may ask.")
@click.option("--mode", type=click.Choice(MODES), help="How its requests are handled; clients cannot change it.")
@options.as_json_option
def add_key(name: str, mode: str | None, as_json: bool, **limits: Any) -> None:
    """Make a key. It is shown once: only its hash is stored.

    Conversations belong to the key that they come with: no other key sees them.

    Example: recto serve keys add laptop --spend-day 5
    """
    from recto.serve.server import open_store  # Starlette and uvicorn: only to serve

    with open_store() as store:
        key, secret = store.access_keys.add(name, **limits, mode=mode or "")
    show.answer({**to_builtins(key), "key": secret} if as_json else secret)
    if not as_json:
        show.note(f"this is the key {key.name}; it is not shown again")


@keys.command("list")
@options.as_json_option
def list_keys(as_json: bool) -> None:
    """List the keys by their names, with what each may do and has spent today. No part of a key is shown.

    Calls that have not ended count with the most that they can cost.

    Example: recto serve keys list
    """
    from recto.serve.server import open_store  # Starlette and uvicorn: only to serve

    with open_store() as store:
        found = [(key, store.charges.spent_today(key.name)) for key in store.access_keys.all()]
    for key, spent in found:
        show.answer(
            {**to_builtins(key), "spent_today": round(spent, 9)}
            if as_json
            else "  ".join((f"{key.name:<16}", key.created[:10], f"{dollars(spent)} today", *_limits(key)))
        )
    if not found and not as_json:
        show.note("there is no key; `recto serve keys add NAME` makes one")


@keys.command("remove")
@click.argument("name")
@options.as_json_option
def remove_key(name: str, as_json: bool) -> None:
    """Remove a key, so that nobody can use it. Its conversations stay.

    Example: recto serve keys remove laptop
    """
    from recto.serve.server import open_store  # Starlette and uvicorn: only to serve

    with open_store() as store:
        key = store.access_keys.remove(name)
    show.answer(to_builtins(key) if as_json else f"the key {key.name} is removed")


def _limits(key: "AccessKey") -> list[str]:
    said = [f"models {', '.join(key.models)}"] if key.models else []
    said += [f"at most {dollars(key.spend_day)} a day"] if key.spend_day is not None else []
    said += [f"{key.requests_per_minute} requests a minute"] if key.requests_per_minute else []
    return said + ([key.mode] if key.mode else [])


@click.command("mcp")
@click.option("--vault", metavar="DIR", help="Folder of notes to offer (default: the setting `vault`).")
@click.option("--port", type=click.IntRange(0, 65535), help="Serve over HTTP at this port; 0 takes a free one.")
@click.option("--allow-write", is_flag=True, help="Offer the tools that write notes and remember or forget facts.")
@options.set_option
def mcp(vault: str | None, port: int | None, allow_write: bool, assignments: tuple[str, ...]) -> None:
    """Let other assistants search and read your notes, conversations and memory, as an MCP server.

    Without --port it uses standard input and output: name `recto mcp` as the command of a server where your assistant
    lists its MCP servers. With --port it serves this machine alone.

    Example: recto mcp --vault notes
    """
    from recto.serve.server import launch_mcp  # Starlette and uvicorn: only to serve

    settings = options.assigned("--set", assignments)
    launch_mcp(port=port, vault=vault, allow_write=allow_write, settings=settings, tell=show.say)


@click.command("web")
@options.settings_options
@click.option("--port", type=click.IntRange(1, 65_535), metavar="N", help="The port to listen on (default: 8642).")
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    metavar="NAME",
    help="The address to listen on; others need the key.",
)
@click.option("--no-open", "stays_closed", is_flag=True, help="Print the link, and open no browser.")
def web(flags: dict[str, str], port: int | None, host: str, stays_closed: bool) -> None:
    """Chat in the browser, with the context of every reply beside it.

    The link holds the key to the page: without it nobody gets in, other users of this machine included.

    Example: recto web --vault notes --no-open
    """
    if find_spec("nicegui") is None:
        raise Invalid(NEEDS_EXTRA)
    has_display = sys.platform in ("darwin", "win32") or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY")))

    def started(access: "PageAccess") -> None:
        show.say(f"Recto listens on {access.link}")
        if access.host not in ("127.0.0.1", "localhost", "::1"):
            show.note("others on the network reach it too, over an unencrypted connection; they need the key")
        if not stays_closed and has_display:
            webbrowser.open(access.one_time_link())

    from recto.web.security import listening_socket  # only here

    # Ctrl-C is how the page ends
    with listening_socket(host, port) as listening, suppress(KeyboardInterrupt):
        asyncio.run(_serve_page(flags, host, listening, started))


async def _serve_page(
    flags: dict[str, str], host: str, listening: "socket.socket", started: "Callable[[PageAccess], object]"
) -> None:
    from recto.api.desk import open_async  # the store: a third of a second
    from recto.web.server import serve_page  # NiceGUI: a second

    async with await open_async(settings=dict(flags)) as desk:
        await serve_page(desk, host, listening, started)
