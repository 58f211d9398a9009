"""`recto ask`: one question, one answer."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recto.cli import options, show

if TYPE_CHECKING:
    from recto.api.blocking import Desk, Talk

NOTHING_LATER = {"references.gists": "off", "context.prepare_at": "0"}
"""Settings of commands that end with the reply: this background work would cost money and be lost."""


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
    with options.open_desk(NOTHING_LATER | {"context.learn_by_model": "off"} | flags) as desk:
        talk = place(desk)
        if document:
            talk.open_document(document)
        for tool in allowed:
            talk.allow(tool)
        if as_json:
            show.emit(_answer_as_json(talk, message, attachments, show_context))
            return
        from recto.cli.listener import follow, open_listener  # the engine's events: only to ask

        listener = open_listener(thinking=thinking, context=talk.numbered if show_context else None)
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


def _answer_as_json(talk: "Talk", message: bytes, attachments: tuple[str, ...], shows_context: bool) -> dict[str, Any]:
    from recto import wire  # the message types: only for JSON

    before = talk.compaction()
    reply = talk.ask(message, attachments=attachments)
    window, block = reply.window, talk.compaction()
    told: dict[str, Any] = {
        "conversation": window.conversation,
        "message": reply.message.id,
        "request": reply.request_id,
        **wire.fields_to_json(reply, "text", "references", "usage", "notes", "branched", "quotes"),
        "tokens": wire.fields_to_json(window, "total", "limit", "reserve", "exact"),
        "cost_usd": reply.cost,
        "compaction": wire.block_to_json(block) if block and block != before else None,
    }
    return told | ({"context": window.to_json()} if shows_context else {})
