"""`recto conversations result`: what a tool gave, whole, where the window had only its beginning; and pictures."""

import sys
from pathlib import Path

import click

from recto.chat.blocks import ToolResult
from recto.cli import options, show
from recto.errors import Invalid, NotFound


@click.command("result")
@options.message_argument
@click.option("--call", "number", type=click.IntRange(1), default=1, show_default=True, help="Which of its results.")
@click.option("--media", type=click.IntRange(1), help="Its picture or file of this number instead of its text.")
@click.option("--output", "-o", metavar="FILE", help="Write to this file instead of stdout.")
@options.home_option
def result(message: str, number: int, media: int | None, output: str | None, conversation: str | None) -> None:
    """Print what a tool gave, whole, also where the model saw only its beginning.

    MESSAGE is the one that holds the results, as `recto conversations show` names it.

    Example: recto conversations result 01J8ZQ4V9XKQW3M5T7B2N6D8F0 -o result.txt
    """
    with options.open_desk() as desk:
        id = options.message_of(desk, message, conversation)
        found = _chosen(desk.store.tree.message(id).results, id, number)
        if media is not None:
            data = desk.store.kept.get(_media(found, media))
        else:
            data = desk.store.kept.get(found.whole) if found.whole else found.text.encode()
    if output is None and sys.stdout.isatty():
        _at_terminal(data, media is not None)
        return
    if output is None:
        sys.stdout.buffer.write(data)
        return
    try:
        Path(output).write_bytes(data)
    except OSError as why:
        raise Invalid(f"cannot write {output}: {why.strerror}", path=output) from why


def _at_terminal(data: bytes, is_media: bool) -> None:
    """What a server gave must not be able to steer the terminal."""
    if is_media:
        raise Invalid("a picture or file is nothing to print: give -o FILE")
    show.say(data.decode(errors="replace"))


def _chosen(results: tuple[ToolResult, ...], id: str, number: int) -> ToolResult:
    if number > len(results):
        raise NotFound(f"message {id} holds {show.counted(len(results), 'tool result')}, not {number}", id=id)
    return results[number - 1]


def _media(found: ToolResult, number: int) -> str:
    if number > len(found.media):
        raise NotFound(f"{found.name} gave {len(found.media)} pictures or files, not {number}")
    return found.media[number - 1].rpartition(" ")[2]
