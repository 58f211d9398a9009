"""`recto context`: the next window, statistics, costs, summaries, export and import, and past turns replanned under
other settings. `recto request`: recorded requests explained, rebuilt and verified. Some commands are in the
table of actions.
"""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click
from msgspec.structs import asdict

from recto.base.ids import is_id
from recto.base.text import clean
from recto.chat.compaction_words import UNVERIFIED, block_in_words
from recto.cli import options, show
from recto.cli.actions import add_commands
from recto.cli.drawing import transcripts
from recto.cli.drawing.statistics import cost_lines, cost_table, costs_to_json
from recto.cli.drawing.windows import outlook, setting_in_words
from recto.cli.terminal import bar
from recto.errors import Invalid, NotFound
from recto.settings.strategy import STRATEGIES
from recto.transfer.report import EXPORT_FORMATS, IMPORT_FORMATS, ExportFormat, ImportFormat

if TYPE_CHECKING:
    from recto.api.blocking import Desk, Talk
    from recto.chat.blocks import Compaction
    from recto.transfer.report import ImportReport


OUTCOMES = {
    "added": "added",
    "extended": "extended",
    "unchanged": "here already",
    "different": "here with other content, which stays",
    "empty": "empty",
}
MOST_NOTES = 10


@click.group()
def command() -> None:
    """See and change what the model gets: windows, summaries, strategies.

    Example: recto context show
    """


@command.command("show")
@options.conversation_argument
@options.settings_options
@click.option("--message", default="", metavar="TEXT", help="Plan for this message.")
@click.option("--new", is_flag=True, help="Plan for a new conversation.")
@click.option("--agent", metavar="NAME", help="Plan for a new conversation of this agent.")
@click.option("--all", "whole", is_flag=True, help="Show lists whole, however long.")
@options.as_json_option
def show_context(
    id: str | None, flags: dict[str, str], message: str, new: bool, agent: str | None, whole: bool, as_json: bool
) -> None:
    """Show the window of a conversation (by default the latest): every part, its tokens, and why.

    Example: recto context show --message "Compare [[Budget]] with last year"
    """
    if (new or agent is not None) and id:
        raise click.UsageError("Give an ID, or --new and --agent, not both: a conversation has its own agent.")
    with options.open_desk(flags) as desk:
        if agent is not None:
            talk = desk.conversation(agent=agent)
        else:
            talk = desk.conversation() if new else options.find_or_new_talk(desk, id)
        window = talk.window(message)
        if as_json:
            show.emit(window.to_json() | {"settings": talk.chosen_settings})
            return
        from recto.cli.drawing.windows import draw_window  # rich: a tenth of a second

        drawn = talk.numbered(window.to_json())
        draw_window(show.console(), drawn, outlook=outlook(talk.context_settings, window.plan), whole=whole)
        for key in talk.chosen_settings:
            show.say(setting_in_words(key, talk.settings), dim=True)


@command.command("stats")
@options.conversation_argument
@click.option("--by", type=click.Choice(["turn"]), help="How full each reply's window was, and what it cost.")
@options.as_json_option
def stats(id: str | None, by: str | None, as_json: bool) -> None:
    """Show statistics of a conversation: messages, tokens, window, compactions, requests, cost.

    Example: recto context stats
    """
    from recto import wire
    from recto.cli.drawing.statistics import stats_in_words, use_in_lines

    with options.open_desk() as desk:
        talk = options.find_talk(desk, id)
        if by:
            uses = talk.request_use()
            for each, line in zip(uses, use_in_lines(uses), strict=True):
                show.answer(wire.value_to_json(each) if as_json else line)
            return
        found = talk.stats()
        show.emit(found.to_json()) if as_json else show.facts(stats_in_words(talk.name, found), 14)


@command.command("cost")
@options.conversation_argument
@click.option("--all", "everything", is_flag=True, help="Of all conversations.")
@click.option("--by", type=click.Choice(["day", "model", "conversation", "purpose"]), help="How to group the sums.")
@click.option("--since", type=options.Moment(), metavar="TIME", help="From this time on.")
@options.as_json_option
def cost(id: str | None, everything: bool, by: Any, since: str | None, as_json: bool) -> None:
    """Show the cost of a conversation, or of all: replies, summaries and other calls, in US dollars and tokens.

    Example: recto context cost --all --by model
    """
    if everything and id:
        raise click.UsageError("Give an ID or --all, not both.")
    with options.open_desk() as desk:
        talk = None if everything else options.find_talk(desk, id)
        if talk and not (by or since or as_json):
            _tell_costs(cost_lines(talk, desk))
            return
        wanted: Any = {"conversation": talk.id if talk else None, "since": since}
        group: Any = by or ("day" if everything else "model")
        groups, (total,) = desk.spending(group, **wanted), desk.spending("total", **wanted)
        tokens = [*desk.token_use(group, **wanted), *desk.token_use("total", **wanted)]
        if as_json:
            limits = talk.settings.spend if talk else desk.settings.spend
            told = costs_to_json(group, groups, total, limits, tokens)
            show.emit({"conversation": talk.id if talk else None} | told)
        else:
            _tell_costs(cost_table(desk, group, groups, total, tokens))


def _tell_costs(lines: Iterable[tuple[str, str]]) -> None:
    for name, value in lines:
        show.say(f"{name:<24}  {value}")


# -- compaction


@command.command("compact")
@click.argument("words", metavar="[ID] [WORDS]...", nargs=-1)
@options.conversation_option
@click.option("--keep", default="", metavar="TEXT", help="What the summary must keep above all.")
@options.settings_options
@options.as_json_option
def compact(conversation: str | None, words: tuple[str, ...], keep: str, flags: dict[str, str], as_json: bool) -> None:
    """Summarize all but the latest messages now. Words say what to keep, as --keep does.

    A number, an id or a whole title before them names the conversation.

    Example: recto context compact the names of the API
    """
    from recto.cli.listener import follow, open_listener  # the engine's events: only to compact

    with options.open_desk(flags) as desk:
        if conversation is None and words and _names_conversation(desk, words[0]):
            conversation, words = words[0], words[1:]
        keep = " ".join((keep, *words)).strip()
        talk = options.find_talk(desk, conversation)
        if as_json:
            show.emit(transcripts.compaction_to_json(talk, talk.compact(keep)))
            return
        listener = open_listener(stopped=transcripts.NOTHING_COMPACTED)
        follow(talk.stream_compaction(keep), listener)
        if not sys.stdout.isatty() and (block := talk.compaction()):
            show.say(block_in_words(block))


def _names_conversation(desk: "Desk", word: str) -> bool:
    if word.removeprefix("#").isdecimal() or is_id(word):
        return True
    return any(each.title.casefold() == word.casefold() for each in desk.find_conversations(word))


@command.command("summary")
@options.conversation_argument
@click.option("--all", "all_of_them", is_flag=True, help="Every compaction on the path, the newest first.")
@click.option("--edit", is_flag=True, help="Change the text in your editor.")
@click.option("--text", "source", metavar="FILE", help="Replace the text with that of this file (- for stdin).")
@click.option("--lost", is_flag=True, help="What neither summary nor ledger holds, by message.")
@options.as_json_option
def summary(id: str | None, all_of_them: bool, edit: bool, source: str | None, lost: bool, as_json: bool) -> None:
    """Show the summary that is sent in place of archived messages, its ledger and its numbers; or change it.

    Example: recto context summary --lost
    """
    if all_of_them + edit + (source is not None) + lost > 1:
        raise click.UsageError("Give only one of --all, --edit, --text and --lost.")
    with options.open_desk() as desk:
        talk = options.find_talk(desk, id)
        if lost:
            _tell_lost(talk, as_json=as_json)
            return
        blocks = talk.compactions(limit=sys.maxsize) if all_of_them else [talk.summary_block()]
        if edit or source is not None:
            blocks = [_changed(talk, blocks[0], source)]
        if not blocks:
            raise NotFound(f"there was no compaction yet in {talk.name}")
        for block in blocks:
            if as_json:
                show.emit(transcripts.compaction_to_json(talk, block))
            elif all_of_them:
                show.say(transcripts.marker_line(block))
            else:
                _tell_summary(talk, block)


def _tell_summary(talk: "Talk", block: "Compaction") -> None:
    show.facts(talk.numbered(list(transcripts.compaction_facts(block))))
    show.say("")
    marked = click.style(UNVERIFIED, fg="yellow")
    for line in block.summary.splitlines():
        show.say_styled(show.visible(line).replace(UNVERIFIED, marked))
    if not block.summary:
        show.say(transcripts.no_summary_in_words(block), dim=True)
    for line in transcripts.beside_summary(block):
        show.say(line)


def _changed(talk: "Talk", block: "Compaction", source: str | None) -> "Compaction":
    """Replace the summary with a file's text or the editor's; unchanged text changes nothing."""
    from recto.cli.terminal import edited  # only to edit

    try:
        if source is None:
            text = edited(block.summary)
        else:
            with click.open_file(source, "rb") as file:
                text = clean(file.read())[0].strip()
    except OSError as why:
        raise Invalid(f"cannot read {source}: {why.strerror}", path=source) from why
    if text is None or text == block.summary:
        show.note("the summary is unchanged")
        return block
    return talk.edit_summary(text)


def _tell_lost(talk: "Talk", *, as_json: bool) -> None:
    found, archived = talk.lost_statements(transcripts.LOST_MESSAGES), talk.summary_block().messages_archived
    if as_json:
        items = [{"number": number, "role": role, "text": text} for number, role, text in found]
        show.emit({"conversation": talk.id, "head": talk.head, "lost": items})
        return
    for line in transcripts.lost_in_words(found, archived):
        show.say(line)


# -- what if


@command.command("whatif")
@click.argument("message", metavar="[REPLY]", required=False)
@options.home_option
@click.option("--all", "everything", is_flag=True, help="With every strategy, side by side.")
@click.option("--strategy", metavar="NAME", help="Another strategy.")
@click.option("--window", type=click.IntRange(1), metavar="TOKENS", help="Another size of the window.")
@click.option("--model", "-m", metavar="NAME", help="Another model.")
@click.option("--set", "assignments", metavar="KEY=VALUE", multiple=True, help="Another context setting.")
@options.as_json_option
def what_if(
    message: str | None,
    conversation: str | None,
    everything: bool,
    assignments: tuple[str, ...],
    as_json: bool,
    **changed: Any,
) -> None:
    """Plan a past turn again, and compare its window with the one that was sent.

    REPLY is the number or id of a reply, or of the message that it answers (default: the last reply). No model is asked
    and nothing is stored. Earlier compactions stay.

    Example: recto context whatif 4 --strategy hybrid --window 2000
    """
    if everything and changed["strategy"]:
        raise click.UsageError("--all plans with every strategy: leave out --strategy.")
    settings = options.assigned("--set", assignments)
    names = STRATEGIES if everything else [changed.pop("strategy")]
    with options.open_desk({}) as desk:
        talk = desk.talk_with(message, conversation) if message else options.find_talk(desk, conversation)
        turn = message or _last(talk)
        found = [talk.what_if(turn, **{**changed, "strategy": name, "settings": settings}) for name in names]
        if as_json:
            for each in found:
                show.emit(each.to_json())
            return
        from recto.cli.drawing.requests import draw_strategies, draw_what_if  # rich: a tenth of a second

        if everything:
            draw_strategies(show.console(), talk.name, found)
        else:
            draw_what_if(show.console(), talk.name, found[0])


def _last(talk: "Talk") -> str:
    record = talk.last_request()
    named = record and (record.outcome.get("reply") or record.message)
    if not named:
        raise NotFound(f"nothing was sent yet in {talk.name}: there is no turn to plan again")
    return str(named)


# -- export and import


@command.command("export")
@options.conversation_argument
@click.option("--all", "everything", is_flag=True, help="All conversations.")
@click.option(
    "--format", type=click.Choice(EXPORT_FORMATS), help="json is complete; the others are to read (default: json)."
)
@click.option("--output", "-o", "file", type=click.Path(path_type=Path), help="Write to FILE instead of stdout.")
def export(id: str | None, everything: bool, format: ExportFormat | None, file: Path | None) -> None:
    """Write a conversation (by default the latest) as JSON lines that `import` reads, as Markdown or as a page.

    Example: recto context export 3 -o talk.html
    """
    if everything and id is not None:
        raise click.UsageError("Name a conversation or give --all, not both.")
    form = format or (options.SUFFIXES.get(file.suffix.lower()) if file else None) or "json"
    with options.open_queries() as reader:
        if file is not None:
            show.note(f"written to {reader.export_file(file, id, format=form, everything=everything)}")
            return
        for chunk in reader.export(id, format=form, everything=everything):
            show.hand_over(chunk.decode())


@command.command("import")
@click.argument("files", metavar="FILE…", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--from", "format", type=click.Choice(IMPORT_FORMATS), help="The program that wrote FILE (default: detected)."
)
@options.as_json_option
def import_files(files: tuple[Path, ...], format: str | None, as_json: bool) -> None:
    """Store the conversations of files: exports of Recto, ChatGPT, Claude and LibreChat, message lists, llm's logs.db.

    A damaged file is refused as a whole. What is in the store already is left as it is.

    Example: recto context import conversations.json
    """
    with options.open_desk() as desk:
        for file in files:
            with bar("importing") as tell:
                done = desk.import_file(file, format=cast("ImportFormat | None", format), progress=tell)
            if as_json:
                for each in done.conversations:
                    show.emit({"file": str(file), "format": done.format, **asdict(each)})
            else:
                _tell_import(file, done)


def _tell_import(file: Path, done: "ImportReport") -> None:
    counts = [(words, done.count(outcome)) for outcome, words in OUTCOMES.items()]  # type: ignore[arg-type]
    told = ", ".join(f"{count:,} {words}" for words, count in counts if count) or "nothing in it"
    show.say(f"{file} ({done.format}): {told}; {show.counted(done.messages, 'message')} stored")
    notes = [(each.title or each.id, note) for each in done.conversations for note in each.notes]
    for title, note in notes[:MOST_NOTES]:
        show.note(f"{show.shortened(title, 40)}: {note}")
    if len(notes) > MOST_NOTES:
        show.note(f"and {len(notes) - MOST_NOTES:,} more; --json shows all of them")


add_commands(command, "context")


# -- recto request


@click.group()
def request() -> None:
    """See, rebuild and verify what was sent.

    Example: recto request show
    """


@request.command("show")
@click.argument("id", required=False)
@click.option("--all", "whole", is_flag=True, help="Show lists whole, however long.")
@click.option("--source", metavar="SOURCE", help="Print the text of rule:NAME, ref:NAME or tool:SERVER/NAME as sent.")
@options.as_json_option
def show_request(id: str | None, whole: bool, source: str | None, as_json: bool) -> None:
    """Explain a request (by default the last one of the latest conversation).

    ID is the number of its reply, such as 12, or the id of the request or of a message.

    Example: recto request show --all
    """
    with options.open_queries() as reader:
        if source is not None:
            sent = reader.sent_source(id, source)
            show.answer({**sent.pick.to_json(), "text": sent.text} if as_json else sent.text)
            return
        record = reader.record(id).to_json()
        if as_json:
            show.emit(record)
            return
        from recto.cli.drawing.requests import draw_request  # rich: a tenth of a second

        draw_request(show.console(), reader.numbered(record), whole=whole)


@request.command("rebuild")
@click.argument("id", required=False)
@options.output_option
def rebuild(id: str | None, output: str | None) -> None:
    """Print the exact bytes that were sent, and nothing else.

    Example: recto request rebuild -o request.json
    """
    with options.open_queries() as reader:
        body = reader.rebuild(id)
    show.write(output, body)


@request.command("verify")
@click.argument("ids", nargs=-1)
@click.option("--all", "all_of_them", is_flag=True, help="Every request of every conversation.")
@options.as_json_option
def verify(ids: tuple[str, ...], all_of_them: bool, as_json: bool) -> None:
    """Verify that requests still rebuild to the bytes that were sent; exit 1 if one does not.

    A request that never left, because there was no key or no connection, is shown as not sent.

    Example: recto request verify --all
    """
    if bool(ids) == all_of_them:
        raise click.UsageError("Name the requests to verify, or give --all.")
    named, differs = None if all_of_them else ids, False
    with options.open_queries() as reader:
        unsent = reader.unsent(named)
        for id, difference in reader.verify(named):
            differs = differs or difference is not None
            if as_json:
                show.emit({"request": id, "ok": difference is None, "difference": difference, "sent": id not in unsent})
            elif difference is not None:
                show.say(f"ALTERED {id}: {difference}")
            else:
                show.say(f"not sent {id}" if id in unsent else f"ok {id}")
    if differs:
        sys.exit(1)
