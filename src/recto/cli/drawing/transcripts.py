"""Transcripts: messages for people to read: number, who, when, how large, and the blocks.

Compactions in words: the marker line, who wrote the summary, its facts.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from textwrap import indent
from typing import TYPE_CHECKING, Any

from recto import wire
from recto.chat.blocks import (
    Block,
    Compaction,
    File,
    Image,
    MessageRange,
    References,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from recto.chat.compaction_words import WRITERS, archived_in_words, kept_in_words, writer_in_words
from recto.chat.message import Message
from recto.cli import show
from recto.cli.drawing.references import references_shown
from recto.errors import RectoError
from recto.events import ContextCompacted, SummaryProgress, SummaryRequested, Working
from recto.reports.transcript import TranscriptEntry

if TYPE_CHECKING:
    from recto.api.blocking import Talk


MOST_RANGES = 12
NOTHING_CHECKED: Mapping[str, int] = {}
NOTHING_COMPACTED = "stopped; nothing was compacted"
SPEAKERS = {"user": "you"}
LEDGER = "Said besides, word for word:"
SET_ASIDE = "Set aside by this compaction:"
CONTENTS = "Set aside so far, by messages:"
# With how many archived messages what is lost is found in no more than a moment.
LOST_MESSAGES = 300
NOTHING_LOST = "Nothing is only in the archive: the summary and its ledger tell every fact that was found."
NO_SUMMARY = "There is no summary: what is archived was left out."
CLEARED = "There is no summary: what was said before the clear is not sent."
NOTHING_ARCHIVED = "There is no summary: nothing is archived; what is long is sent as an excerpt."


def event_in_words(event: ContextCompacted, writer: str = "") -> str:
    """The marker line of a compaction that was just made; `writer` is the model that was asked last, if any."""
    by = f"summary by {writer}" if writer else "summary as before"
    sizes = (event.messages_archived, event.context_size_before, event.context_size_after)
    return _line(event.compaction_number, archived_in_words(*sizes), WRITERS.get(event.made_by, by))


def block_in_words(block: Compaction) -> str:
    sizes = (block.messages_archived, block.context_size_before, block.context_size_after)
    writer = writer_in_words(block) if block.made_by != "clear" else ""
    return _line(block.compaction_number, archived_in_words(*sizes), writer)


def facts_in_words(checks: Mapping[str, int]) -> str:
    """What happened to the facts: "41 of 48 facts kept, 6 more in the ledger, 1 unverified"; empty without any."""
    parts = [kept] if (kept := kept_in_words(checks)) else []
    parts += [f"{checks['ledger']} more in the ledger"] if checks.get("ledger") else []
    parts += [f"{checks['invented']} unverified"] if checks.get("invented") else []
    return ", ".join(parts)


def ledger_in_words(lines: Iterable[str]) -> Iterator[str]:
    """The items of a ledger, with who said them."""
    from recto.summary.ledger import ledger_rows  # compiles patterns: a tenth of a second

    return quoted_in_words((number, SPEAKERS.get(role, role), item) for number, role, item in ledger_rows(lines))


def lost_in_words(found: Sequence[tuple[int, str, str]], *, looked_at: int, archived: int) -> Iterator[str]:
    """What is only in the archive, or that nothing is, of the messages that were looked at."""
    if not found and looked_at < archived:
        yield f"Of the last {show.counted(looked_at, 'archived message')} nothing is only in the archive."
    elif not found:
        yield NOTHING_LOST
    else:
        shown = f"the last {looked_at:,} of " if looked_at < archived else ""
        yield f"{show.counted(len(found), 'fact')} of {shown}{show.counted(archived, 'archived message')}:"
    yield from quoted_in_words((number, SPEAKERS.get(role, role), item) for number, role, item in found)


def quoted_in_words(quotations: Iterable[tuple[int, str, str]]) -> Iterator[str]:
    """In columns: the number of a message, who says it if that is given, and the words, a line each."""
    wanted = [(f"#{number} {speaker}".rstrip(), item) for number, speaker, item in quotations]
    width = max((len(head) for head, _ in wanted), default=0)
    before = None
    for head, item in wanted:
        yield f"{head if head != before else '':<{width}}  {item}"
        before = head


def set_aside_in_words(block: Compaction) -> Iterator[tuple[str, Sequence[str]]]:
    """What a compaction set aside and the topics of all that was, each with a title; nothing where there is none."""
    if block.set_aside:
        yield SET_ASIDE, block.set_aside
    if block.contents:
        yield CONTENTS, block.contents


def _line(number: int, archived: str, writer: str) -> str:
    return f"compaction {number}: {archived}" + (f" · {writer}" if writer else "")


def remarks(notes: tuple[str, ...], excerpts: int, checks: Mapping[str, int] = NOTHING_CHECKED) -> list[str]:
    """More about it, a line each: what the summary kept, what went wrong, what is sent shortened."""
    are = "is sent as an excerpt" if excerpts == 1 else "are sent as excerpts"
    kept = facts_in_words(checks)
    return [
        *([kept] if kept else ()),
        *notes,
        *([f"{show.counted(excerpts, 'long text')} {are}"] if excerpts else ()),
    ]


def request_in_words(event: SummaryRequested) -> str:
    part = f", part {event.part} of {event.of}" if event.of > 1 else ""
    return f"summing up {event.size:,} tokens with {event.model}{part}"


def progress_in_words(event: SummaryProgress) -> str:
    read = f", {event.read:,} read so far" if event.read else ""
    return f"summing up {event.of:,} messages{read}"


def undone_in_words(talk: "Talk", before: Compaction | None, block: Compaction, command: str) -> str:
    """What is in the window again after a compaction was taken back; `command` compacts again where there is no room
    for it."""
    back = restored(before, block)
    if left_out := _left_out(talk):
        told = f"the summary is taken back, but the window has no room for {show.counted(left_out, 'message')}"
        return f"{told}: the next request leaves them out; {command} sums them up again"
    size, after = block.context_size_before, block.context_size_after
    sizes = f" ({size:,} → {after:,} tokens)" if size or after else ""
    said = f"{show.counted(back, 'message')} {'is' if back == 1 else 'are'} back in the window{sizes}"
    return f"{said}, behind the summary of what came before" if block.summary else said


def _left_out(talk: "Talk") -> int:
    """The messages that the next request leaves out; 0 where the model, which alone knows its window, is not there."""
    try:
        return talk.window().plan.left_out.count
    except RectoError:
        return 0


def restored(before: Compaction | None, block: Compaction) -> int:
    return (before.messages_archived if before else 0) - block.messages_archived


def in_one_line(block: Compaction) -> str:
    """For lists: the marker line with its time, and the action where that was no compaction."""
    action = "" if block.action == "compact" else f" · {block.action}"
    return f"{show.when(block.timestamp)}  {block_in_words(block)}{action}"


def compaction_facts(block: Compaction) -> Iterator[tuple[str, str]]:
    """All that is known about a compaction, by name. Messages are ids here: `Talk.numbered` gives their numbers."""
    yield "compaction", f"{block.compaction_number}, {show.when(block.timestamp)}" + _action(block)
    covered = block.messages_archived + len(block.lifted)
    # `last` may be a Compaction, which has no number
    yield "covers", f"{show.counted(covered, 'message')}, up to #{covered}" if covered else "no messages"
    if block.lifted:
        yield "still sent", f"{show.counted(len(block.lifted), 'message')}: {', '.join(block.lifted)}"
    if block.context_size_before or block.context_size_after:
        yield "window", f"{block.context_size_before:,} → {block.context_size_after:,} tokens"
    yield "made by", _made(block)
    yield "because", block.because
    if block.unread:
        yield "read", f"{_ranges(block.read)}; the next compaction reads more"
        yield "not read", f"{show.counted(block.unread_messages, 'message')}: {_ranges(block.unread)}"
    for note in block.notes:
        yield "note", note
    if block.pinned:
        yield "pins", ", ".join(block.pinned)
    if block.excerpts:
        yield "excerpts", ", ".join(f"{key} ({len(text):,} characters)" for key, text in block.excerpts.items())


def no_summary_in_words(block: Compaction) -> str:
    if block.last is None:
        return NOTHING_ARCHIVED
    return CLEARED if block.made_by == "clear" else NO_SUMMARY


def branch_in_words(message: Message) -> str:
    """What the end of a branch says, or did if nobody said it."""
    block = message.compaction
    said = f"{message.role}: {show.shortened(message.text, BRANCH_WIDTH)}"
    return said if block is None else f"{block_in_words(block)}{_action(block)}"


def _ranges(ranges: Sequence[MessageRange]) -> str:
    """The first few of them, and how many more there are."""
    named = [f"#{first}–#{last}" if first < last else f"#{first}" for first, last in ranges[:MOST_RANGES]]
    more = f" and {len(ranges) - MOST_RANGES} more" if len(ranges) > MOST_RANGES else ""
    return ", ".join(named) + more


def _action(block: Compaction) -> str:
    return "" if block.action == "compact" else f" ({block.action})"


def _made(block: Compaction) -> str:
    if block.made_by != "model":
        return {"user": "you", "clear": "you: cleared"}.get(block.made_by, WRITERS.get(block.made_by, block.made_by))
    if block.made is None:
        return "model"
    took = f" in {block.made.duration_s:.1f} s" if block.made.duration_s is not None else ""
    return f"model {block.made.model}{took}"


def compaction_to_json(talk: "Talk", block: Compaction) -> dict[str, Any]:
    """The answer of every command that makes or shows a Compaction."""
    return {"conversation": talk.id, "head": talk.head, "compaction": wire.block_to_json(block)}


RESULT_WIDTH, BRANCH_WIDTH = 200, 50
INDENT = "  "
USUAL_PRIORITIES = range(3, 8)
APPROVALS = {
    "allowed": "allowed by you",
    "always": "always allowed",
    "denied": "denied by you",
    "unanswered": "nobody was asked",
    "changed": "changed since it was allowed",
    "forbidden": "forbidden",
}
MARKS = {"unfinished": "unfinished", "stopped": "stopped", "error": "failed"}


def tell_entry(entry: TranscriptEntry, because: str = "", *, with_tools: bool = True) -> None:
    """Archived messages are dimmed. A Compaction is a line of its own; `because` says why it was made."""
    message = entry.message
    if message.compaction:
        _tell_compaction(message.compaction, because or message.compaction.because)
        return
    show.say(_head(entry), dim=not entry.active, bold=entry.active or None)
    for block in message.blocks:
        if not isinstance(block, References) and (with_tools or not isinstance(block, ToolCall | ToolResult)):
            is_dim = not entry.active or isinstance(block, Thinking | ToolCall | ToolResult)
            show.say_words(_in_words(block), dim=is_dim or None)
    for line in references_shown(message.references, fold=None, is_terminal=False):
        show.say(line, dim=not entry.active or None)
    if message.error:
        show.say(f"{MARKS.get(message.status, 'failed')}: {message.error}", fg="red")
    show.say("")


def _head(entry: TranscriptEntry) -> str:
    message = entry.message
    parts = [f"#{message.said} {message.role}", *([show.when(message.time)] if message.time else [])]
    if message.tokens.own is not None:
        parts.append(show.counted(message.tokens.own, "token"))
    if message.model:
        parts.append(message.model)
    if message.priority not in USUAL_PRIORITIES:
        parts.append(f"priority {message.priority}")
    if mark := MARKS.get(message.status):
        parts.append(mark)
    return " · ".join([*parts, *_marks(entry)])


def _marks(entry: TranscriptEntry) -> list[str]:
    sent = "archived, still sent" if entry.lifted else "" if entry.active else "archived"
    return [mark for mark in ("pinned" if entry.pinned else "", sent) if mark]


def _tell_compaction(block: Compaction, because: str) -> None:
    show.say(f"── {block_in_words(block)} ({because}) ──", fg="yellow")
    for line in remarks(block.notes, len(block.excerpts), block.checks) if block.action == "compact" else ():
        show.say(f"· {line}", dim=True)
    # a pin leaves the summary as it was, and that was shown above
    if block.summary and block.action not in ("pin", "unpin"):
        show.say(indent(block.summary, INDENT), dim=True)
    show.say("")


def _known_of(block: ToolResult) -> str:
    """Its size, who let it run, and what else of it is kept."""
    facts = [show.counted(len(block.text), "character"), APPROVALS.get(block.approval, "")]
    facts += ["kept whole" if block.whole else "", *(f"{each.partition(' ')[0]} kept" for each in block.media)]
    return ", ".join(fact for fact in facts if fact)


def _in_words(block: Block) -> str:
    match block:
        case Text(text=text):
            return text
        case Thinking(text=text):
            return f"(thought) {text}"
        case ToolCall():
            return f"→ {block.name} {show.shortened(block.arguments, RESULT_WIDTH)}"
        case ToolResult():
            told = "failed: " if block.is_error else ""
            return f"← {block.name} ({_known_of(block)}) {told}{show.shortened(block.text, RESULT_WIDTH)}"
        case File():
            return f"[file {block.name}, {show.counted(len(block.text), 'character')}]"
        case Image():
            return f"[image, {block.media_type}]"
        case Compaction():
            return block.summary
        case References():
            return block.told


def work_in_words(event: Working) -> str:
    match event.stage:
        case "store":
            return "waiting until other processes have stored theirs"
        case "model":
            return f"loading {event.model}"
        case "notes":
            return f"indexing {show.counted(event.notes, 'note')}"
        case "sources":
            return "choosing sources"
        case "search":
            return "searching earlier messages"
