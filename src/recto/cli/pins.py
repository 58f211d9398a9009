"""`recto conversations pin`, `unpin`, `priority`: what the user says about single messages."""

from typing import TYPE_CHECKING

import click

from recto.cli import options, show

if TYPE_CHECKING:
    from recto.desk import Desk


@click.command("pin")
@options.message_argument
@options.home_option
@options.as_json_option
def pin(message: str, conversation: str | None, as_json: bool) -> None:
    """Keep a message in every window from now on, however long the conversation gets. It is named by its id, or by its
    number in the latest conversation.

    Example: recto conversations pin '#57'
    """
    from recto.cli.compaction import compaction_to_json  # all events: `list` does without

    with options.open_desk() as desk:
        message = options.message_of(desk, message, conversation)
        talk = options.home_of(desk, message, conversation)
        block = talk.pin(message)
        if as_json:
            show.emit(compaction_to_json(talk, block))
        else:
            show.say(f"pinned, in every window of {talk.id} from now on: {_text(desk, message)}")


@click.command("unpin")
@options.message_argument
@options.home_option
@options.as_json_option
def unpin(message: str, conversation: str | None, as_json: bool) -> None:
    """Let a pinned message be archived like any other.

    Example: recto conversations unpin 01J8ZQ4V9XKQW3M5T7B2N6D8F0
    """
    from recto.cli.compaction import compaction_to_json  # all events: `list` does without

    with options.open_desk() as desk:
        message = options.message_of(desk, message, conversation)
        talk = options.home_of(desk, message, conversation)
        block = talk.unpin(message)
        if as_json:
            show.emit(compaction_to_json(talk, block))
        else:
            show.say(f"no longer pinned in {talk.id}: {_text(desk, message)}")


@click.command("priority")
@options.message_argument
@click.argument("priority", metavar="N", type=int)
@options.home_option
@options.as_json_option
def priority(message: str, priority: int, conversation: str | None, as_json: bool) -> None:
    """Say how much a message matters to the strategy hybrid, from 1 to 10.

    Example: recto conversations priority 01J8ZQ4V9XKQW3M5T7B2N6D8F0 9
    """
    with options.open_desk() as desk:
        message = options.message_of(desk, message, conversation)
        talk = options.home_of(desk, message, conversation)
        talk.prioritise(message, priority)
        if as_json:
            show.emit({"conversation": talk.id, "message": message, "priority": priority})
        else:
            show.say(f"priority {priority} in {talk.id}: {_text(desk, message)}")


def _text(desk: "Desk", message: str) -> str:
    return show.shortened(desk.store.tree.message(message).text, 70) or message
