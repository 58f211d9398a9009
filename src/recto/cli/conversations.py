"""`recto conversations`: reading, replaying and searching conversations, and the trash.

Renaming, branching, pinning and archiving are in the table of actions.
"""

import re
import sys
import time
from collections.abc import Generator, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from recto import wire
from recto.chat.message import now
from recto.cli import options, show
from recto.cli.actions import add_commands
from recto.cli.terminal import bar
from recto.errors import Invalid

if TYPE_CHECKING:
    from recto.api.blocking import Talk
    from recto.chat.conversation import Conversation
    from recto.events import Event

# Messages that are shown without --limit.
LATEST = 100
# The speed of a reader, roughly.
WORDS_PER_S = 4.0
ROLES = ["system", "user", "assistant", "tool"]
# Conversations named before they are removed.
NAMED = 10
UNSURE = "what is removed from the trash cannot be brought back: --yes removes it without asking"


@click.group()
def command() -> None:
    """List, read, search, rename, branch, hide and delete conversations; pin messages.

    A conversation is named by its number, such as 3, by its title or a part of it, or by its id; a message by its
    number in a conversation or by its id. The first characters of an id are enough. Programs get ids with --json.

    Example: recto conversations list
    """


@command.command("list")
@options.limit_option
@click.option("--hidden", "state", flag_value="hidden", help="List hidden conversations instead.")
@click.option("--trash", "state", flag_value="deleted", help="List the trash instead.")
@options.as_json_option
def list_conversations(limit: int, state: Any, as_json: bool) -> None:
    """List conversations, the latest first.

    Example: recto conversations list --limit 10
    """
    from recto.api.conversation_list import latest_conversations  # sqlite3: only to list

    found = latest_conversations(limit, state=state or "active")
    width = max((len(f"#{each.number}") for each in found), default=0)
    for each in found:
        if as_json:
            show.emit(wire.conversation_to_json(each))
        else:
            title = show.shortened(each.title, 70) or "(no title)"
            show.say(f"{f'#{each.number}':>{width}}  {show.when(each.updated)}  {each.messages:>5}  {title}")


@command.command("show")
@options.conversation_argument
@click.option("--limit", type=click.IntRange(1), help=f"Only the last N messages (default: {LATEST}).")
@click.option("--all", "whole", is_flag=True, help="All messages, however many.")
@click.option("--since", metavar="PLACE", help="Only messages from this time, number or id on.")
@click.option("--before", metavar="PLACE", help="Only messages before this time, number or id.")
@click.option("--no-tools", is_flag=True, help="Without tool calls and their results.")
@click.option("--no-system", is_flag=True, help="Without compactions.")
@click.option("--branches", is_flag=True, help="List the ends of all branches instead.")
@options.as_json_option
def show_conversation(
    id: str | None,
    limit: int | None,
    whole: bool,
    branches: bool,
    no_tools: bool,
    no_system: bool,
    as_json: bool,
    **when: Any,
) -> None:
    """Show the messages of a conversation (by default the latest).

    Example: recto conversations show --limit 20
    """
    from recto.cli.drawing.transcripts import tell_entry  # all events: `list` does without

    with options.open_desk() as desk:
        talk = options.find_talk(desk, id)
        if branches:
            _show_branches(talk, as_json)
            return
        most = None if whole else limit or LATEST
        found = talk.transcript(**when, limit=most, with_tools=not no_tools, with_system=not no_system)
        if not limit and len(found) == most and found[0].message.parent:
            show.note(f"only the last {LATEST} messages: --all or --limit shows more")
        if not found and any(when.values()):
            show.note("this conversation has no message from then: check --since and --before")
        for entry in found:
            message, block = entry.message, entry.message.compaction
            if as_json:
                marks = {"pinned": entry.pinned, "lifted": entry.lifted}
                show.emit(wire.message_to_json(message, active=entry.active) | marks)
            else:
                tell_entry(entry, talk.numbered(block.because) if block else "", with_tools=not no_tools)


def _show_branches(talk: "Talk", as_json: bool) -> None:
    """List branches with ids, since numbers name messages of the current path only."""
    from recto.cli.drawing.transcripts import branch_in_words  # as above

    for end in talk.branches():
        leaf = end.message
        if as_json:
            told = {"id": leaf.id, "role": leaf.role, "text": leaf.text, "created": leaf.created}
            show.emit(told | {"messages": leaf.said, "head": end.is_head})
        else:
            mark = "*" if end.is_head else " "
            show.say(f"{mark} {leaf.id}  {show.when(leaf.created)}  #{leaf.said:<4}  {branch_in_words(leaf)}")


@command.command("replay")
@options.conversation_argument
@click.option("--at-once", is_flag=True, help="Without pauses.")
@click.option("--thinking", is_flag=True, help="Show the model's thinking too.")
@click.option("--show-context", is_flag=True, help="Show what was sent before each answer.")
def replay(id: str | None, at_once: bool, thinking: bool, show_context: bool) -> None:
    """Play a conversation (by default the latest) at reading speed, with its compactions. Nothing is sent or stored;
    Ctrl-C ends it.

    Example: recto conversations replay --at-once
    """
    from recto.cli.listener import follow, open_listener  # all events: `list` does without
    from recto.events import Appended

    with options.open_queries() as reader, suppress(KeyboardInterrupt):
        turns: list[list[Event]] = [[]]
        for event in reader.playback(id):
            turns += [[]] if isinstance(event, Appended) else []
            turns[-1].append(event)
        for turn in turns:
            if turn and isinstance(said := turn[0], Appended):
                show.say_words(f"\n› {said.message.text}", bold=True)
            context = reader.numbered if show_context else None
            events = (event for event in turn if not isinstance(event, Appended))
            listener = open_listener(thinking=thinking, context=context, stopped="playback stopped")
            follow(_paced(events, 0 if at_once else 1 / WORDS_PER_S), listener)


def _paced(events: "Iterable[Event]", pause_s: float) -> "Generator[Event]":
    """The events, with texts word by word."""
    from recto.events import TextDelta, ThinkingDelta

    for event in events:
        if not isinstance(event, TextDelta | ThinkingDelta):
            yield event
            continue
        for word in re.findall(r"\S*\s*", event.text):
            yield type(event)(show.visible(word))
            time.sleep(pause_s if word else 0)


@command.command("result")
@options.message_argument
@click.option("--call", "number", type=click.IntRange(1), default=1, show_default=True, help="Which of its results.")
@click.option("--media", type=click.IntRange(1), help="Its picture or file of this number instead of its text.")
@options.output_option
@options.home_option
def result(message: str, number: int, media: int | None, output: str | None, conversation: str | None) -> None:
    """Print the whole result of a tool, even if the model saw only its beginning.

    MESSAGE is the one that holds the results, as `recto conversations show` numbers it.

    Example: recto conversations result 3 -o result.txt
    """
    with options.open_desk() as desk:
        data = desk.talk_with(message, conversation).tool_result(message, call=number, media=media)
    if output is None and media is not None and sys.stdout.isatty():
        raise Invalid("a picture or file cannot be printed: give -o FILE")
    show.write(output, data)


# -- search


@command.command("search")
@click.argument("words", nargs=-1, required=True)
@click.option("--conversation", "-c", metavar="ID", help="Only in this conversation.")
@click.option("--role", type=click.Choice(ROLES), help="Only messages of this role.")
@click.option("--since", type=options.Moment(), help="Only messages from this time on.")
@click.option("--before", type=options.Moment(), help="Only messages before this time.")
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, help="Show at most N.")
@options.as_json_option
def search(words: tuple[str, ...], as_json: bool, **where: Any) -> None:
    """Find messages by words and meaning, in all conversations and branches, archived parts too; the best first.

    Example: recto conversations search mast step
    """
    from recto.cli.drawing.transcripts import found_to_json, hit_lines  # text folding: `list` does without

    wanted = " ".join(words)
    with options.open_desk() as desk:
        with bar("indexing") as tell:
            desk.index(tell)
        found = desk.search(wanted, complete=True, **where)
        for hit in found:
            if as_json:
                show.emit(found_to_json(hit))
            else:
                for line in hit_lines(hit, wanted):
                    show.say_styled(line)
        for text in filter(None, (desk.index_status().renewed, found.note, "" if found else "nothing was found")):
            show.note(text)


# -- the trash


def removal(found: "Sequence[Conversation]") -> tuple[str, list[str]]:
    """The question about a permanent removal, and what would be removed."""
    named = [f"#{each.number}  {show.shortened(each.title, 70) or '(no title)'}" for each in found[:NAMED]]
    more = [f"… and {len(found) - NAMED} more"] if len(found) > NAMED else []
    return f"Remove {show.counted(len(found), 'conversation')} for good?", [*named, *more]


@command.command("empty-trash")
@click.option(
    "--older-than",
    metavar="DAYS",
    type=click.IntRange(0, 36_500),
    default=0,
    help="Only what was deleted that many days ago.",
)
@options.yes_option
@options.as_json_option
def empty_trash(older_than: int, is_sure: bool, as_json: bool) -> None:
    """Permanently remove the conversations in the trash: messages, requests, and texts that no other one needs.

    It cannot be undone. Earlier backups still hold them.

    Example: recto conversations empty-trash --older-than 30
    """
    with options.open_desk() as desk:
        limit = now(days_ago=older_than)
        found = [each for each in desk.conversations(state="deleted", limit=1_000_000) if (each.deleted or "") <= limit]
        if found and not is_sure and not options.is_confirmed(*removal(found), UNSURE):
            show.note("nothing was removed")
            return
        with bar("emptying the trash") as tell:
            removed = desk.empty_trash(older_than, tell)
    if as_json:
        show.emit({"removed": removed})
    else:
        gone = f"{show.counted(removed, 'conversation')} removed for good"
        show.say(gone if removed else "there is nothing to remove")


add_commands(command, "conversations")
