"""`recto ask`: one question, one answer."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import asdict

from recto.cli import options, show

if TYPE_CHECKING:
    from recto.api.ask_options import Reply
    from recto.api.blocking import Desk, Talk
    from recto.cli.listener import Listener, Numbered

NOTHING_LATER = {"context.prepare_at": "0"}
"""Settings of commands that end with the reply: the next summary would cost money and be lost."""


@click.command()
@click.argument("text", nargs=-1)
@options.settings_options
@options.place_options
@options.document_option
@options.allow_tool_option
@click.option("--attach", "attachments", multiple=True, metavar="FILE", help="Attach an image, a PDF or a text file.")
@click.option("--template", "-t", metavar="NAME", help="Ask with a template of RECTO_HOME/templates.")
@click.option("--param", "-p", "params", multiple=True, metavar="KEY=VALUE", help="A variable of the template.")
@click.option("--show-context", is_flag=True, help="Show what is sent before the answer.")
@click.option("--thinking", is_flag=True, help="Show the model's thinking before the answer.")
@options.as_json_option
def command(
    text: tuple[str, ...],
    flags: dict[str, str],
    place: Callable[["Desk"], "Talk"],
    document: str | None,
    allowed: tuple[str, ...],
    attachments: tuple[str, ...],
    template: str | None,
    params: tuple[str, ...],
    show_context: bool,
    thinking: bool,
    as_json: bool,
) -> None:
    """Ask one question and print the answer. Piped input is added to the question, or is the question.

    `recto "QUESTION"` does the same. A question that begins with @NAME goes to the agent of this name.

    Example: recto ask "Sum this up" < report.txt
    """
    message = _message(" ".join(text))
    if params and not template:
        raise click.UsageError("--param goes with --template.")
    if template:
        message = _filled(template, params, message, flags)
    with options.open_desk(NOTHING_LATER | flags) as desk:
        talk = place(desk)
        if document:
            talk.open_document(document)
        for tool in allowed:
            talk.allow(tool)
        if as_json:
            show.emit(_answer_as_json(talk, message, attachments, show_context))
            return
        from recto.cli.listener import follow  # the engine's events: only to ask

        context = talk.numbered if show_context else None
        listener = open_listener(thinking=thinking, context=context, starting=lambda: _starting(desk))
        follow(talk.stream(message, can_ask=listener.answers, attachments=attachments), listener)


def _message(text: str) -> bytes:
    """The question followed by the piped input, as bytes: the engine repairs invalid UTF-8 and reports it."""
    said = text.encode("utf-8", "surrogateescape")
    if sys.stdin is None or options.has_keyboard():
        return said
    piped = sys.stdin.buffer.read()
    if not piped.strip():
        return said
    return said + b"\n\n" + piped if text.strip() else piped


def _filled(name: str, params: tuple[str, ...], message: bytes, flags: dict[str, str]) -> bytes:
    """Fill in a template. Options override its model and instructions."""
    from recto.agents.templates import read_template  # reads notes: only for templates
    from recto.base.locations import find_home, find_project

    home = find_home()
    template = read_template(name, home, find_project(Path.cwd(), home))
    if template.note:
        show.note(template.note)
    filled = template.fill(options.assigned("--param", params), message.decode("utf-8", "surrogateescape"))
    if template.model:
        flags.setdefault("model", template.model)
    if template.system and not flags.keys() & {"system_prompt", "system_prompt_file"}:
        flags |= {"system_prompt": template.system, "system_prompt_file": ""}
    return filled.encode("utf-8", "surrogateescape")


def _starting(desk: "Desk") -> str:
    from recto.cli.drawing.sources import starting_in_words  # rich: a tenth of a second

    return starting_in_words(desk.servers.statuses())


def _answer_as_json(talk: "Talk", message: bytes, attachments: tuple[str, ...], shows_context: bool) -> dict[str, Any]:
    from recto import wire  # the message types: only for JSON

    before = talk.compaction()
    reply = talk.ask(message, attachments=attachments)
    block = talk.compaction()
    made = {"compaction": wire.block_to_json(block) if block and block != before else None}
    return _reply_to_json(reply) | made | ({"context": reply.window.to_json()} if shows_context else {})


def _reply_to_json(reply: "Reply") -> dict[str, Any]:
    from recto import wire  # the message types: only for JSON

    window, usage = reply.window, asdict(reply.usage)
    return {
        "conversation": window.conversation,
        "message": reply.message.id,
        "request": reply.request_id,
        "text": reply.text,
        "references": wire.value_to_json(reply.references),
        "usage": {name: usage[name] for name in ("input", "output", "cache_read", "cache_write", "reasoning")},
        "tokens": {name: getattr(window, name) for name in ("total", "limit", "reserve", "exact")},
        "cost_usd": reply.cost,
        "notes": list(reply.notes),
        "branched": asdict(reply.branched) if reply.branched else None,
        "quotes": wire.value_to_json(reply.quotes),
    }


def open_listener(
    *,
    thinking: bool = False,
    context: "Numbered | None" = None,
    stopped: str = "",
    starting: Callable[[], str] = lambda: "",
) -> "Listener":
    """The listener for this stdout. `stopped` is printed after Ctrl-C; `starting` returns the servers being started."""
    from recto.cli.listener import KEPT, Lines  # the engine's events: only to ask

    if not sys.stdout.isatty():
        return Lines(context=context)
    console = show.console()
    if not console.is_terminal:
        from recto.cli.questions import PlainLines  # prompt_toolkit: a fifth of a second

        return PlainLines(console, context=context)
    from recto.cli.screen import Screen  # rich: a tenth of a second

    return Screen(console, thinking=thinking, context=context, stopped=stopped or KEPT, starting=starting)
