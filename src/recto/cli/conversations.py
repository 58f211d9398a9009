"""`recto conversations`: reading, renaming and branching conversations; pins, priorities and tool results.

`recto conversations search` and `index`: finding messages again, and the index that finds them.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recto import wire
from recto.cli import options, show, trash
from recto.cli.terminal import bar
from recto.errors import Invalid

if TYPE_CHECKING:
    from recto.api.blocking import Desk, Talk
    from recto.recall.indexed_message import IndexStatus

# so many messages are shown where nobody says how many
LATEST = 100
# how fast people read, about
WORDS_PER_S = 4.0


@click.group()
def command() -> None:
    """List, read, search, rename, branch, archive and delete conversations; pin messages.

    A conversation is named by its number, such as 3, by its title or a part of it, or by its id; a message by its
    number in a conversation or by its id. The first characters of an id will do. Programs get ids with --json.

    Example: recto conversations list
    """


@command.command("list")
@options.limit_option
@click.option("--archived", "state", flag_value="archived", help="Those that are archived instead.")
@click.option("--trash", "state", flag_value="deleted", help="Those in the trash instead.")
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
@click.option("--since", type=options.Place(), help="Only messages from this time, number or id on.")
@click.option("--before", type=options.Place(), help="Only messages before this time, number or id.")
@click.option("--no-tools", is_flag=True, help="Without tool calls and their results.")
@click.option("--no-system", is_flag=True, help="Without compactions.")
@click.option("--branches", is_flag=True, help="List the ends of all branches instead.")
@options.as_json_option
def show_conversation(
    id: str | None,
    limit: int | None,
    whole: bool,
    since: str | None,
    before: str | None,
    no_tools: bool,
    no_system: bool,
    branches: bool,
    as_json: bool,
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
        where: Any = {"since": since, "before": before, "limit": None if whole else limit or LATEST}
        found = talk.transcript(**where, with_tools=not no_tools, with_system=not no_system)
        if not limit and len(found) == where["limit"] and found[0].message.parent:
            show.note(f"only the last {LATEST} messages: --all or --limit shows more")
        if not found and (since or before):
            show.note("this conversation has no message from then: check --since and --before")
        for entry in found:
            message, block = entry.message, entry.message.compaction
            if as_json:
                marks = {"pinned": entry.pinned, "lifted": entry.lifted}
                show.emit(wire.message_to_json(message, active=entry.active) | marks)
            else:
                tell_entry(entry, talk.numbered(block.because) if block else "", with_tools=not no_tools)


def _show_branches(talk: "Talk", as_json: bool) -> None:
    """A number names a message of the current path only, so branches are told with ids."""
    from recto.cli.drawing.transcripts import branch_in_words  # as above

    for end in talk.branches():
        leaf = end.message
        if as_json:
            said = {"id": leaf.id, "role": leaf.role, "text": leaf.text, "created": leaf.created}
            show.emit(said | {"messages": leaf.said, "head": end.is_head})
        else:
            mark = "*" if end.is_head else " "
            show.say(f"{mark} {leaf.id}  {show.when(leaf.created)}  #{leaf.said:<4}  {branch_in_words(leaf)}")


@command.command("replay")
@options.conversation_argument
@click.option("--speed", type=click.FloatRange(0.01), default=1.0, help="2 is twice as fast (default: 1).")
@click.option("--at-once", is_flag=True, help="Without pauses.")
@click.option("--thinking", is_flag=True, help="Show the model's thinking too.")
@click.option("--show-context", is_flag=True, help="Show what was sent before each answer.")
def replay(id: str | None, speed: float, at_once: bool, thinking: bool, show_context: bool) -> None:
    """Play a conversation (by default the latest) at reading speed, with its compactions. Nothing is sent or stored;
    Ctrl-C ends it.

    Example: recto conversations replay --at-once
    """
    from recto.cli.replay import play  # all events: `list` does without

    with options.open_reader() as reader:
        rate = None if at_once else WORDS_PER_S * speed
        play(reader, id, rate=rate, thinking=thinking, shows_context=show_context)


@command.command("rename")
@click.argument("id")
@click.argument("title", nargs=-1, required=True)
@options.as_json_option
def rename(id: str, title: tuple[str, ...], as_json: bool) -> None:
    """Give a conversation another title.

    Example: recto conversations rename 3 The new mast
    """
    with options.open_desk() as desk:
        changed = desk.rename(id, " ".join(title))
    if as_json:
        show.emit(wire.conversation_to_json(changed))
    else:
        show.say(f"conversation #{changed.number} is now called {changed.title}")


@command.command("fork")
@options.message_argument
@options.home_option
@options.as_json_option
def fork(message: str, conversation: str | None, as_json: bool) -> None:
    """Go on from an earlier message: the next one starts a branch there.

    `recto conversations show --branches` lists the ends of branches, by id.

    Example: recto conversations fork 4
    """
    with options.open_desk() as desk:
        talk = desk.talk_with(message, conversation)
        found = talk.fork(message)
        if as_json:
            show.emit({"conversation": talk.id, "head": talk.head})
        else:
            show.say(f"the next message of {talk.name} follows #{found.said}: {_text(found.text)}")


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
            show.emit({"conversation": talk.id, "head": talk.head} | undone)
        else:
            show.say(f"taken back in {talk.name}: {_text(taken.text) or 'the clear'}")


@command.command("pin")
@options.message_argument
@options.home_option
@options.as_json_option
def pin(message: str, conversation: str | None, as_json: bool) -> None:
    """Keep a message in every window from now on, however long the conversation gets.

    Example: recto conversations pin 57
    """
    from recto.cli.drawing.transcripts import compaction_to_json  # all events: `list` does without

    with options.open_desk() as desk:
        talk = desk.talk_with(message, conversation)
        found, block = talk.message(message), talk.pin(message)
        if as_json:
            show.emit(compaction_to_json(talk, block))
        else:
            show.say(f"#{found.said} is pinned, in every window of {talk.name} from now on: {_text(found.text)}")


@command.command("unpin")
@options.message_argument
@options.home_option
@options.as_json_option
def unpin(message: str, conversation: str | None, as_json: bool) -> None:
    """Let a pinned message be archived like any other.

    Example: recto conversations unpin 57
    """
    from recto.cli.drawing.transcripts import compaction_to_json  # all events: `list` does without

    with options.open_desk() as desk:
        talk = desk.talk_with(message, conversation)
        found, block = talk.message(message), talk.unpin(message)
        if as_json:
            show.emit(compaction_to_json(talk, block))
        else:
            show.say(f"#{found.said} is no longer pinned in {talk.name}: {_text(found.text)}")


@command.command("priority")
@options.message_argument
@click.argument("priority", metavar="N", type=int)
@options.home_option
@options.as_json_option
def priority(message: str, priority: int, conversation: str | None, as_json: bool) -> None:
    """Say how much a message matters to the strategy hybrid, from 1 to 10.

    Example: recto conversations priority 57 9
    """
    with options.open_desk() as desk:
        talk = desk.talk_with(message, conversation)
        found = talk.set_priority(message, priority)
        if as_json:
            show.emit({"conversation": talk.id, "message": found.id, "priority": priority})
        else:
            show.say(f"#{found.said} has priority {priority} in {talk.name}: {_text(found.text)}")


def _text(text: str) -> str:
    return show.shortened(text, 70)


@command.command("result")
@options.message_argument
@click.option("--call", "number", type=click.IntRange(1), default=1, show_default=True, help="Which of its results.")
@click.option("--media", type=click.IntRange(1), help="Its picture or file of this number instead of its text.")
@click.option("--output", "-o", metavar="FILE", help="Write to this file instead of stdout.")
@options.home_option
def result(message: str, number: int, media: int | None, output: str | None, conversation: str | None) -> None:
    """Print the whole result of a tool, also where the model saw only its beginning.

    MESSAGE is the one that holds the results, as `recto conversations show` numbers it.

    Example: recto conversations result 3 -o result.txt
    """
    with options.open_desk() as desk:
        data = desk.talk_with(message, conversation).tool_result(message, call=number, media=media)
    if output is None:
        if media is not None and sys.stdout.isatty():
            raise Invalid("a picture or file cannot be printed: give -o FILE")
        show.hand_over(data)
        return
    try:
        Path(output).write_bytes(data)
    except OSError as why:
        raise Invalid(f"cannot write {output}: {why.strerror}", path=output) from why


ROLES = ["system", "user", "assistant", "tool"]
# Fewer are indexed before anybody notices.
MANY = 100
MAKE_VECTORS = "`recto conversations index --vectors` makes them"


@click.command("search")
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
    from recto.cli.drawing.references import found_to_json, hit_lines  # text folding: `list` does without

    wanted = " ".join(words)
    with options.open_desk() as desk:
        told = _fill(desk)
        found = desk.search(wanted, complete=True, **where)
        status = desk.index_status()
        for hit in found:
            if as_json:
                show.emit(found_to_json(hit))
            else:
                for line in hit_lines(hit, wanted):
                    show.say_styled(line)
        # the index may turn out to be damaged only while it is read
        renewed = "" if status.renewed == told else status.renewed
        for text in filter(None, (renewed, found.note, _lacking(status), "" if found else "nothing was found")):
            show.note(text)


def _fill(desk: "Desk", *, anew: bool = False) -> str:
    """Brings the index up to date; says why where that takes a while. Gives why the index was begun anew, if it was."""
    status = desk.index_status()
    left = status.messages - status.indexed
    why = status.renewed or (f"the search index lacks {show.counted(left, 'message')}" if left > MANY else "")
    if why and not anew:
        show.note(why)
    with bar("indexing") as tell:
        now = desk.index(tell, anew=anew)
    if now.renewed and (anew or now.renewed != status.renewed):
        show.note(now.renewed)
    return now.renewed


def _lacking(status: "IndexStatus") -> str:
    """What cannot be found by meaning yet."""
    if status.embedder is None or status.why or not status.waiting:
        return ""
    passages = show.counted(status.waiting, "passage")
    return f"{passages} can be found by words only, until vectors are made: {MAKE_VECTORS}"


@click.command("index")
@click.option("--vectors", is_flag=True, help="Wait until all vectors are made.")
@click.option("--rebuild", is_flag=True, help="Throw the index away and make a new one.")
@options.as_json_option
def index(vectors: bool, rebuild: bool, as_json: bool) -> None:
    """Bring the search index up to date, and show what is in it.

    Example: recto conversations index --vectors
    """
    with options.open_desk() as desk:
        _fill(desk, anew=rebuild)
        why = desk.check_embedder()
        if vectors and not why:
            with bar("making vectors") as tell:
                desk.index(tell, vectors=True)
        status = desk.index_status()
        _tell_status(status, why or status.why, as_json)
    if vectors and (status.waiting or status.embedder is None):
        sys.exit(1)


def _tell_status(status: "IndexStatus", why: str, as_json: bool) -> None:
    known = {"messages": status.messages, "indexed": status.indexed}
    if as_json:
        made = {"vectors": status.vectors, "waiting": status.waiting}
        show.emit({**known, **made, "embedder": status.embedder, "why": why or None})
        return
    embedder = status.embedder or "none"
    facts = {name: f"{count:,}" for name, count in known.items()} | {
        "vectors": f"{status.vectors:,}; {show.counted(status.waiting, 'passage')} waiting",
        "embedder": f"{embedder}: {why}" if why else embedder,
    }
    for name, value in facts.items():
        show.say(f"{name:<12}{value}")


for each in (search, index, *trash.COMMANDS):
    command.add_command(each)
