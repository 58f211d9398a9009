"""Transcripts: messages for people to read: number, who, when, how large, and the blocks."""

from textwrap import indent

from recto.chat.blocks import Block, Compaction, File, Image, References, Text, Thinking, ToolCall, ToolResult
from recto.cli import show
from recto.cli.drawing.compactions import block_in_words, remarks
from recto.cli.drawing.references import references_shown
from recto.reports.transcript import TranscriptEntry

RESULT_WIDTH = 200
INDENT = "  "
USUAL_PRIORITY = 5
APPROVALS = {
    "allowed": "allowed by you",
    "always": "always allowed",
    "denied": "denied by you",
    "unanswered": "nobody was asked",
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
        if with_tools or not isinstance(block, ToolCall | ToolResult):
            is_dim = not entry.active or isinstance(block, Thinking | ToolCall | ToolResult)
            for line in _lines(block):
                show.say(line, dim=is_dim or None)
    if message.error:
        show.say(f"failed: {message.error}", fg="red")
    show.say("")


def _head(entry: TranscriptEntry) -> str:
    message = entry.message
    parts = [f"#{message.said} {message.role}", show.when(message.created)]
    if message.tokens.own is not None:
        parts.append(show.counted(message.tokens.own, "token"))
    if message.model:
        parts.append(message.model)
    if message.priority != USUAL_PRIORITY:
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


def _lines(block: Block) -> list[str]:
    if isinstance(block, References):
        return references_shown(block.references, fold=None, is_terminal=False)
    return [_in_words(block)]


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
