"""`recto conversations`: what was said, and where one stands in it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from recto import wire
from recto.chat.message import Message
from recto.cli import options, pins, results, search, show
from recto.cli.moment import Moment
from recto.errors import Invalid
from recto.text import clean

if TYPE_CHECKING:
    from recto.desk import Desk
    from recto.talk import Talk


@click.group()
def command() -> None:
    """List, read, search, rename and branch conversations; pin messages.

    Example: recto conversations list
    """


@command.command("list")
@options.limit_option
@options.as_json_option
def list_conversations(limit: int, as_json: bool) -> None:
    """List conversations, the latest first.

    Example: recto conversations list --limit 10
    """
    with options.open_store() as store:
        for found in store.tree.conversations(limit=limit):
            if as_json:
                show.emit(wire.conversation_to_json(found))
            else:
                title = show.shortened(found.title, 70) or "(no title)"
                show.say(f"{found.id}  {show.when(found.updated)}  {found.messages:>5}  {title}")


@command.command("show")
@options.conversation_argument
@click.option("--limit", type=click.IntRange(1), help="Only the last N messages.")
@click.option("--since", type=Moment(), help="Only messages from this time on.")
@click.option("--before", type=Moment(), help="Only messages from before this time.")
@click.option("--no-tools", is_flag=True, help="Without tool calls and their results.")
@click.option("--branches", is_flag=True, help="List the ends of all branches instead.")
@options.as_json_option
def show_conversation(
    id: str | None,
    limit: int | None,
    since: str | None,
    before: str | None,
    no_tools: bool,
    branches: bool,
    as_json: bool,
) -> None:
    """Show what was said in a conversation (by default the latest).

    Example: recto conversations show --limit 20
    """
    from recto.cli.transcript import place_of, tell_message  # all events: `list` does without

    with options.open_desk() as desk:
        talk = options.find_talk(desk, id)
        if branches:
            _show_branches(desk, talk, as_json)
            return
        covered, block = talk.covered(), talk.compaction()
        chosen = [message for message in _between(talk, since, before) if not (no_tools and message.role == "tool")]
        for message in reversed(chosen[:limit]):
            place = place_of(message, covered, block)
            if as_json:
                marks = {"pinned": place.pinned, "lifted": place.lifted}
                show.emit(wire.message_to_json(message, active=place.active) | marks)
            else:
                tell_message(message, place, with_tools=not no_tools)


def _between(talk: "Talk", since: str | None, before: str | None) -> Iterator[Message]:
    for message in talk.path():
        if (not since or message.created >= since) and (not before or message.created < before):
            yield message


def _show_branches(desk: "Desk", talk: "Talk", as_json: bool) -> None:
    assert talk.id is not None
    head = talk.standing.head
    for leaf in desk.store.tree.leaves(talk.id):
        if as_json:
            said = {"id": leaf.id, "role": leaf.role, "text": leaf.text, "created": leaf.created}
            show.emit(said | {"messages": leaf.said, "head": leaf.id == head})
        else:
            mark = "*" if leaf.id == head else " "
            text = show.shortened(leaf.text, 50)
            show.say(f"{mark} {leaf.id}  {show.when(leaf.created)}  {leaf.said:>5}  {leaf.role}: {text}")


@command.command("rename")
@click.argument("id")
@click.argument("title", nargs=-1, required=True)
@options.as_json_option
def rename(id: str, title: tuple[str, ...], as_json: bool) -> None:
    """Give a conversation another title.

    Example: recto conversations rename 01J8ZQ4V9XKQW3M5T7B2N6D8F0 The new mast
    """
    named = " ".join(clean(" ".join(title))[0].split())
    if not named:
        raise Invalid("the title is empty: write something to call it by")
    with options.open_desk() as desk:
        changed = desk.store.tree.change(id, title=named)
        if as_json:
            show.emit(wire.conversation_to_json(changed))
        else:
            show.say(f"{changed.id} is now called {changed.title}")


@command.command("fork")
@options.message_argument
@options.home_option
@options.as_json_option
def fork(message: str, conversation: str | None, as_json: bool) -> None:
    """Go on from an earlier message: the next one starts a branch there.

    Example: recto conversations fork 01J8ZQ4V9XKQW3M5T7B2N6D8F0
    """
    with options.open_desk() as desk:
        message = options.message_of(desk, message, conversation)
        talk = desk.conversation(conversation or desk.store.tree.owner(message))
        talk.fork(message)
        if as_json:
            show.emit({"conversation": talk.id, "head": talk.standing.head})
        else:
            show.say(f"the next message of {talk.id} follows {message}")


@command.command("undo")
@options.conversation_argument
@options.as_json_option
def undo(id: str | None, as_json: bool) -> None:
    """Take back the last message and its reply; both stay in the store.

    Example: recto conversations undo
    """
    with options.open_desk() as desk:
        talk = options.find_talk(desk, id)
        taken = talk.undo()
        if as_json:
            undone = {"undone": taken.id, "text": taken.text}
            show.emit({"conversation": talk.id, "head": talk.standing.head} | undone)
        else:
            show.say(f"taken back in {talk.id}: {show.shortened(taken.text, 70) or 'the clear'}")


for each in (search.search, search.index, pins.pin, pins.unpin, pins.priority, results.result):
    command.add_command(each)
