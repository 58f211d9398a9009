"""`recto ask`: one question, one answer."""

import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from recto import wire
from recto.cli import options, show
from recto.cli.hearing import open_listener
from recto.cli.listen import follow

if TYPE_CHECKING:
    from recto.desk import Desk
    from recto.talk import Reply, Talk


@click.command()
@click.argument("text", nargs=-1)
@options.settings_options
@options.place_options
@options.document_option
@options.allow_tool_option
@click.option("--show-context", is_flag=True, help="Show what goes in before the answer.")
@click.option("--thinking", is_flag=True, help="Show what the model thinks before it answers.")
@options.as_json_option
def command(
    text: tuple[str, ...],
    flags: dict[str, str],
    place: Callable[["Desk"], "Talk"],
    document: str | None,
    allowed: tuple[str, ...],
    show_context: bool,
    thinking: bool,
    as_json: bool,
) -> None:
    """Ask one question and print the answer. What is piped in follows the question, or is the question.

    Example: recto ask "Sum this up" < report.txt
    """
    message = _message(" ".join(text))
    # what is written behind a reply would be cut off by the end of the command, and paid for all the same
    flags.setdefault("references.gists", "off")
    with options.open_desk(flags) as desk:
        talk = place(desk)
        if document:
            talk.open_document(document)
        options.allow_tools(desk, talk, allowed)
        if as_json:
            before = talk.compaction()
            reply = talk.ask(message)
            block = talk.compaction()
            made = {"compaction": wire.block_to_json(block) if block and block != before else None}
            context = {"context": reply.window.to_json()} if show_context else {}
            show.emit(_to_json(reply) | made | context)
        else:
            listener = open_listener(thinking=thinking, shows_context=show_context, starting=lambda: _starting(desk))
            follow(talk.stream(message, answers=listener.answers), listener)


def _starting(desk: "Desk") -> str:
    from recto.cli.source_lists import starting_in_words  # rich: a tenth of a second

    return starting_in_words(desk.servers.states())


def _message(text: str) -> bytes:
    """The question with what is piped in, as bytes: what is not valid in them the engine repairs and tells."""
    said = text.encode("utf-8", "surrogateescape")
    if sys.stdin is None or options.has_keyboard():
        return said
    piped = sys.stdin.buffer.read()
    if not piped.strip():
        return said
    return said + b"\n\n" + piped if text.strip() else piped


def _to_json(reply: "Reply") -> dict[str, Any]:
    window, usage = reply.window, asdict(reply.usage)
    return {
        "conversation": window.conversation,
        "message": reply.message.id,
        "request": reply.request_id,
        "text": reply.text,
        "references": [wire.reference_to_json(each) for each in reply.references],
        "usage": {name: usage[name] for name in ("input", "output", "cache_read", "cache_write")},
        "tokens": {
            "total": window.total,
            "limit": window.limit,
            "reserve": window.reserve,
            "exact": window.exact,
        },
        "notes": list(reply.notes),
    }
