"""`recto serve`: the endpoint for other programs, and its keys."""

import os
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING

import click

from recto.base.text import dollars
from recto.cli import options, show
from recto.cli.web import NEEDS_EXTRA
from recto.errors import Invalid

if TYPE_CHECKING:
    from recto.serve.workers import Disconnect, Mode
    from recto.store.clients import AccessKey

PORT = 8440


@click.group(invoke_without_command=True)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen at.")
@click.option("--port", default=PORT, show_default=True, type=click.IntRange(0, 65535), help="0 takes a free one.")
@click.option("--model", metavar="NAME", help="Model for clients that ask for `recto`, as provider:model.")
@click.option(
    "--mode",
    type=click.Choice(["manage", "record", "passthrough"]),
    default="manage",
    show_default=True,
    help="Plan each window; only record what is sent; or only pass it on.",
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
    help="What becomes of a reply whose client has gone.",
)
@click.option("--open", "is_open", is_flag=True, help="Serve without keys; only on this machine.")
@click.option("--web", is_flag=True, help="Serve the page too: whoever signs in with a key sees its conversations.")
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
    host: str,
    port: int,
    model: str | None,
    mode: "Mode",
    fallbacks: tuple[str, ...],
    on_disconnect: "Disconnect",
    is_open: bool,
    web: bool,
    web_hosts: tuple[str, ...],
    assignments: tuple[str, ...],
) -> None:
    """Serve OpenAI's and Anthropic's API to other programs, with windows that Recto plans.

    Point a client to http://127.0.0.1:8440/v1 and give it a key of `recto serve keys add`. A collector of
    OpenTelemetry that OTEL_EXPORTER_OTLP_ENDPOINT names is told about each recorded request.

    Example: recto serve --model openai:gpt-4o
    """
    if ctx.invoked_subcommand is not None:
        return
    from recto.serve.server import launch  # Starlette and uvicorn: only to serve

    if not (os.environ.get("RECTO_LOG") or ctx.find_root().params.get("log_file")):
        from recto.cli.log import set_up  # its clients read one sentence of what fails, so all of it must be somewhere

        set_up("warning", None, "serve")
    if web_hosts and not web:
        raise click.UsageError("--web-host names the page, which --web serves")
    add_page = None
    if web:
        if find_spec("nicegui") is None:
            raise Invalid(NEEDS_EXTRA)
        from recto.web.shared_page import with_page  # NiceGUI: a second

        add_page = partial(with_page, host=host, names=web_hosts)
    settings = dict(options.assignment("--set", text) for text in assignments)
    launch(
        host,
        port,
        model=model,
        mode=mode,
        fallbacks=fallbacks,
        on_disconnect=on_disconnect,
        is_open=is_open,
        settings=settings,
        tell=show.say,
        add_page=add_page,
    )


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
@click.option(
    "--spend-day", type=click.FloatRange(min=0), metavar="DOLLARS", help="The most that it may cost in a day."
)
@click.option("--requests-per-minute", type=click.IntRange(min=1), metavar="N", help="How often it may ask.")
@click.option(
    "--mode",
    type=click.Choice(["manage", "record", "passthrough"]),
    help="How its requests are handled; clients cannot change it.",
)
@options.as_json_option
def add_key(
    name: str,
    models: tuple[str, ...],
    spend_day: float | None,
    requests_per_minute: int | None,
    mode: str | None,
    as_json: bool,
) -> None:
    """Make a key. It is shown once: only its hash is stored.

    What its clients say belongs to it: no other key sees its conversations.

    Example: recto serve keys add laptop --spend-day 5
    """
    from recto.serve.server import open_store  # Starlette and uvicorn: only to serve

    limits = {"models": models, "spend_day": spend_day, "requests_per_minute": requests_per_minute, "mode": mode or ""}
    with open_store() as store:
        key, secret = store.access_keys.add(name, **limits)
    if as_json:
        show.emit({**_told(key), "key": secret})
        return
    show.say(secret)
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
        if as_json:
            show.emit({**_told(key), "spent_today": round(spent, 9)})
        else:
            show.say("  ".join((f"{key.name:<16}", key.created[:10], f"{dollars(spent)} today", *_limits(key))))
    if not found and not as_json:
        show.note("there is no key; `recto serve keys add NAME` makes one")


@keys.command("remove")
@click.argument("name")
@options.as_json_option
def remove_key(name: str, as_json: bool) -> None:
    """Remove a key: nobody can use it any more. Its conversations stay.

    Example: recto serve keys remove laptop
    """
    from recto.serve.server import open_store  # Starlette and uvicorn: only to serve

    with open_store() as store:
        key = store.access_keys.remove(name)
    if as_json:
        show.emit(_told(key))
    else:
        show.say(f"the key {key.name} is removed")


def _told(key: "AccessKey") -> dict[str, object]:
    return {
        "name": key.name,
        "created": key.created,
        "models": list(key.models),
        "spend_day": key.spend_day,
        "requests_per_minute": key.requests_per_minute,
        "mode": key.mode or None,
    }


def _limits(key: "AccessKey") -> list[str]:
    said = [f"models {', '.join(key.models)}"] if key.models else []
    said += [f"at most {dollars(key.spend_day)} a day"] if key.spend_day is not None else []
    said += [f"{key.requests_per_minute} requests a minute"] if key.requests_per_minute else []
    return said + ([key.mode] if key.mode else [])
