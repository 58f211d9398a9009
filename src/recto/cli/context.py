"""`recto context`: what the model would be sent now, statistics of a conversation, its summaries, its strategy."""

import sys
from contextlib import closing
from typing import TYPE_CHECKING

import click

from recto.base.text import clean
from recto.chat.compaction_words import UNVERIFIED, counts_in_words
from recto.cli import options, show
from recto.cli.ask import open_listener
from recto.cli.config import set_for_conversation, unset_for_conversation
from recto.cli.drawing.costs import cost_lines, cost_table, costs_to_json
from recto.cli.drawing.transcripts import (
    LEDGER,
    LOST_MESSAGES,
    NOTHING_COMPACTED,
    block_in_words,
    compaction_facts,
    compaction_to_json,
    in_one_line,
    ledger_in_words,
    lost_in_words,
    no_summary_in_words,
    progress_in_words,
    remarks,
    request_in_words,
    restored,
    set_aside_in_words,
    undone_in_words,
)
from recto.cli.drawing.windows import FOLLOWS_SETTINGS, outlook, setting_in_words, strategy_in_words
from recto.cli.listener import follow
from recto.cli.memory import context_memory
from recto.cli.terminal import SUMMING, bar
from recto.cli.transfer import export_command, import_command
from recto.cli.what_if import what_if
from recto.errors import Invalid, NotFound
from recto.events import SummaryProgress, SummaryRequested
from recto.settings.strategy import STRATEGIES

if TYPE_CHECKING:
    from recto.api.blocking import Desk, Talk
    from recto.api.store_reader import SpentWithin
    from recto.chat.blocks import Compaction
    from recto.store.spending import SpentBy


@click.group()
def command() -> None:
    """See and steer what the model is sent: windows, summaries, strategies.

    Example: recto context show
    """


@command.command("show")
@options.conversation_argument
@options.settings_options
@click.option("--message", default="", metavar="TEXT", help="Plan for this message.")
@click.option("--new", is_flag=True, help="Plan for a new conversation.")
@click.option("--agent", metavar="NAME", help="Plan for a new conversation of this agent.")
@click.option("--all", "whole", is_flag=True, help="Fold no list, however long.")
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
        talk = _planned(desk, id, agent, new)
        window = talk.window(message)
        if as_json:
            show.emit(window.to_json() | {"settings": talk.chosen_settings})
            return
        from recto.cli.drawing.windows import draw_window  # rich: a tenth of a second

        drawn = talk.numbered(window.to_json())
        draw_window(show.console(), drawn, outlook=outlook(talk.context_settings, window.plan), whole=whole)
        for key in talk.chosen_settings:
            show.say(setting_in_words(key, talk.settings), dim=True)


def _planned(desk: "Desk", id: str | None, agent: str | None, new: bool) -> "Talk":
    if agent is not None:
        return desk.conversation(agent=agent)
    return desk.conversation() if new or (id is None and not desk.latest(unsent=True)) else options.find_talk(desk, id)


@command.command("stats")
@options.conversation_argument
@click.option("--by", type=click.Choice(["turn"]), help="How full each reply's window was, and what it cost.")
@options.as_json_option
def stats(id: str | None, by: str | None, as_json: bool) -> None:
    """Show statistics of a conversation: messages, tokens, window, compactions, requests, cost.

    Example: recto context stats
    """
    from recto.cli.drawing.picks import stats_in_words  # statistics: other commands do without
    from recto.cli.drawing.what_if import use_in_lines

    with options.open_desk() as desk:
        talk = options.find_talk(desk, id)
        if by:
            uses = talk.request_use()
            for each, line in zip(uses, use_in_lines(uses), strict=True):
                show.emit(each.to_json()) if as_json else show.say(line)
            return
        found = talk.stats()
        if as_json:
            show.emit(found.to_json())
            return
        for name, value in stats_in_words(talk.name, found):
            show.say(f"{name:<14}{value}")


@command.command("cost")
@options.conversation_argument
@click.option("--all", "everything", is_flag=True, help="Of all conversations.")
@click.option("--by", type=click.Choice(["day", "model", "conversation", "purpose"]), help="How to sum it up.")
@click.option("--since", type=options.Moment(), metavar="TIME", help="From this time on.")
@options.as_json_option
def cost(id: str | None, everything: bool, by: str | None, since: str | None, as_json: bool) -> None:
    """Show what a conversation cost, or all of them: replies, summaries and other calls, in US dollars and tokens.

    Example: recto context cost --all --by model
    """
    if everything and id:
        raise click.UsageError("Give an ID or --all, not both.")
    with options.open_desk() as desk:
        talk = None if everything else options.find_talk(desk, id)
        limits = talk.settings.spend if talk else desk.settings.spend
        wanted: SpentWithin = {"conversation": talk.id if talk else None, "since": since}
        group: SpentBy = by or ("day" if everything else "model")  # type: ignore[assignment]  # click has checked it
        if talk and not (by or since or as_json):
            lines = cost_lines(talk, desk)
        else:
            with bar(SUMMING) as tell:
                groups, (total,) = desk.spending(group, tell, **wanted), desk.spending("total", **wanted)
            tokens = [*desk.token_use(group, **wanted), *desk.token_use("total", **wanted)]
            if as_json:
                told = costs_to_json(group, groups, total, limits, tokens)
                show.emit({"conversation": talk.id if talk else None} | told)
                return
            lines = cost_table(desk, group, groups, total, tokens)
        for name, value in lines:
            show.say(f"{name:<24}  {value}")


@command.command("compact")
@options.conversation_argument
@click.argument("words", nargs=-1)
@click.option("--keep", default="", metavar="TEXT", help="What the summary must keep above all.")
@options.settings_options
@options.as_json_option
def compact(id: str | None, words: tuple[str, ...], keep: str, flags: dict[str, str], as_json: bool) -> None:
    """Sum up all but the latest messages now. Words after the ID say what to keep, as --keep does.

    Example: recto context compact --keep "the names of the API"
    """
    if id and not id.removeprefix("#").isalnum():  # ids are letters and digits: this is what to keep
        words, id = (id, *words), None
    wanted = " ".join((keep, *words)).strip()
    with options.open_desk(flags) as desk:
        talk = options.find_talk(desk, id)
        if as_json:
            show.emit(compaction_to_json(talk, talk.compact(wanted)))
        elif sys.stdout.isatty():
            follow(talk.stream_compaction(wanted), open_listener(stopped=NOTHING_COMPACTED))
        else:
            _compact_in_lines(talk, wanted)


def _compact_in_lines(talk: "Talk", keep: str) -> None:
    is_slow = False
    with closing(talk.stream_compaction(keep)) as events:
        for event in events:
            if isinstance(event, SummaryRequested):
                show.note(request_in_words(event))
            elif isinstance(event, SummaryProgress) and not is_slow:
                show.note(progress_in_words(event))
                is_slow = True
    block = talk.compaction()
    assert block is not None
    show.say(block_in_words(block))
    for line in remarks(block.notes, len(block.excerpts), block.checks):
        show.note(line)


@command.command("summary")
@options.conversation_argument
@click.option("--all", "all_of_them", is_flag=True, help="Every compaction on the path, the newest first.")
@click.option("--edit", is_flag=True, help="Change the text in your editor.")
@click.option("--text", "source", metavar="FILE", help="Put the text of this file (- for stdin) in its place.")
@click.option("--lost", is_flag=True, help="What neither summary nor ledger tells, by message.")
@click.option(
    "--limit",
    type=click.IntRange(1),
    default=LOST_MESSAGES,
    show_default=True,
    help="With --lost: look at the last N archived messages.",
)
@options.as_json_option
def summary(
    id: str | None, all_of_them: bool, edit: bool, source: str | None, lost: bool, limit: int, as_json: bool
) -> None:
    """Show the summary that stands for what is archived, its ledger and its numbers; or change it.

    Example: recto context summary --lost
    """
    if all_of_them + edit + (source is not None) + lost > 1:
        raise click.UsageError("Give only one of --all, --edit, --text and --lost.")
    with options.open_desk() as desk:
        talk = options.find_talk(desk, id)
        if lost:
            _tell_lost(talk, limit, as_json=as_json)
            return
        blocks = talk.compactions(limit=sys.maxsize) if all_of_them else [talk.summary_block()]
        if edit or source is not None:
            blocks = [_changed(talk, blocks[0], _edited(blocks[0]) if source is None else _read(source))]
        if not blocks:
            raise NotFound(f"there was no compaction yet in {talk.name}")
        for block in blocks:
            if as_json:
                show.emit(compaction_to_json(talk, block))
            else:
                show.say(in_one_line(block)) if all_of_them else _tell_summary(talk, block)


def _edited(block: "Compaction") -> str | None:
    from recto.cli.terminal import edited  # only to edit

    return edited(block.summary)


def _read(source: str) -> str:
    try:
        with click.open_file(source, "rb") as file:
            return clean(file.read())[0].strip()
    except OSError as why:
        raise Invalid(f"cannot read {source}: {why.strerror}", path=source) from why


def _changed(talk: "Talk", block: "Compaction", text: str | None) -> "Compaction":
    """The block with the new summary; the same text changes nothing."""
    if text is None or text == block.summary:
        show.note("the summary is unchanged")
        return block
    return talk.edit_summary(text)


def _tell_summary(talk: "Talk", block: "Compaction") -> None:
    for name, value in talk.numbered(list(compaction_facts(block))):
        show.say(f"{name:<12}{value}")
    show.say("")
    if block.summary:
        marked = click.style(UNVERIFIED, fg="yellow")
        for line in block.summary.splitlines():
            show.say_styled(show.visible(line).replace(UNVERIFIED, marked))
    else:
        show.say(no_summary_in_words(block), dim=True)
    if block.ledger:
        show.say(f"\n{LEDGER}")
        for line in ledger_in_words(block.ledger):
            show.say(line)
    for title, lines in set_aside_in_words(block):
        show.say(f"\n{title}")
        for line in lines:
            show.say(line)
    if counts := counts_in_words(block.checks):
        show.say(f"\n{counts}.")


def _tell_lost(talk: "Talk", limit: int, *, as_json: bool) -> None:
    found, block = talk.lost_facts(limit), talk.summary_block()
    archived = block.messages_archived
    if archived > limit:
        show.note(f"of the last {limit:,} of {archived:,} archived messages; --limit N looks at more")
    if as_json:
        items = [{"number": number, "role": role, "text": text} for number, role, text in found]
        show.emit({"conversation": talk.id, "head": talk.head, "lost": items})
        return
    for line in lost_in_words(found, looked_at=min(limit, archived), archived=archived):
        show.say(line)


@command.command("uncompact")
@options.conversation_argument
@options.as_json_option
def uncompact(id: str | None, as_json: bool) -> None:
    """Take the newest compaction back: the messages it covered are in the window again, and later ones stay.

    Example: recto context uncompact
    """
    with options.open_desk() as desk:
        talk = options.find_talk(desk, id)
        before = talk.compaction()
        block = talk.uncompact()
        if as_json:
            show.emit(compaction_to_json(talk, block) | {"restored": restored(before, block)})
        else:
            told = undone_in_words(talk, before, block, "`recto context compact`")
            show.say(f"{talk.name}: {told}")


@command.command("strategy")
@click.argument("name", required=False)
@options.conversation_argument
@options.as_json_option
def strategy(name: str | None, id: str | None, as_json: bool) -> None:
    """Show which strategy a conversation follows, or choose one for it; `default` follows the settings again.

    Example: recto context strategy hybrid
    """
    with options.open_desk() as desk:
        name, id = _which(desk, name, id)
        talk = options.find_talk(desk, id)
        if name:
            talk.use_strategy(None if name == FOLLOWS_SETTINGS else name)
        used = talk.strategy_in_force()
        if as_json:
            show.emit({"conversation": talk.id, "strategy": used, "chosen": talk.strategy})
        else:
            show.say(f"{talk.name}: {strategy_in_words(talk.strategy, used)}")


def _which(desk: "Desk", name: str | None, id: str | None) -> tuple[str | None, str | None]:
    """A single argument may also be the conversation whose strategy is to be shown."""
    if name in (None, FOLLOWS_SETTINGS) or name in STRATEGIES or id is not None:
        return name, id
    try:
        return None, desk.conversation(name).id
    except NotFound:
        return name, None


@command.command("clear")
@options.conversation_argument
@options.as_json_option
def clear(id: str | None, as_json: bool) -> None:
    """Start over for the model; every message stays in the store.

    Example: recto context clear
    """
    with options.open_desk() as desk:
        talk = options.find_talk(desk, id)
        block = talk.clear()
        if as_json:
            show.emit(compaction_to_json(talk, block))
        else:
            show.say(f"{talk.name}: {block_in_words(block)}")


command.add_command(context_memory)
command.add_command(set_for_conversation)
command.add_command(unset_for_conversation)
command.add_command(what_if)
command.add_command(export_command)
command.add_command(import_command)
