"""One message for people to read: who, when, how large, what became of it, and its blocks."""

from dataclasses import dataclass
from textwrap import indent
from typing import TYPE_CHECKING

from recto.chat.blocks import Block, Compaction, File, Image, References, Text, Thinking, ToolCall, ToolResult
from recto.chat.message import Message
from recto.cli import show
from recto.cli.compaction import besides, block_in_words
from recto.cli.references import references_shown

if TYPE_CHECKING:
    from recto.talk import Covered

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


@dataclass(frozen=True, slots=True)
class Place:
    """Where a message stands with regard to what is sent."""

    active: bool = True
    lifted: bool = False
    """Covered by a Compaction, and sent all the same."""
    pinned: bool = False

    @property
    def marks(self) -> list[str]:
        sent = "archived, still sent" if self.lifted else "" if self.active else "archived"
        return [mark for mark in ("pinned" if self.pinned else "", sent) if mark]


def place_of(message: Message, covered: "Covered", block: Compaction | None) -> Place:
    """`block` is the Compaction in force, whose cover is `covered`."""
    lifted = message.id in covered.lifted
    return Place(covered.active(message), lifted, block is not None and message.id in block.pinned)


def tell_message(message: Message, place: Place, *, with_tools: bool = True) -> None:
    """Archived messages are dimmed; a Compaction is a line of its own."""
    if message.compaction:
        _tell_compaction(message.compaction)
        return
    show.say(_head(message, place), dim=not place.active, bold=place.active or None)
    for block in message.blocks:
        if with_tools or not isinstance(block, ToolCall | ToolResult):
            is_dim = not place.active or isinstance(block, Thinking | ToolCall | ToolResult)
            for line in _lines(block):
                show.say(line, dim=is_dim or None)
    if message.error:
        show.say(f"failed: {message.error}", fg="red")
    show.say("")


def _head(message: Message, place: Place) -> str:
    parts = [message.role, show.when(message.created)]
    if message.tokens.own is not None:
        parts.append(show.counted(message.tokens.own, "token"))
    if message.model:
        parts.append(message.model)
    if message.priority != USUAL_PRIORITY:
        parts.append(f"priority {message.priority}")
    if mark := MARKS.get(message.status):
        parts.append(mark)
    return " · ".join([*parts, *place.marks, f"#{message.said}", message.id])


def _tell_compaction(block: Compaction) -> None:
    show.say(f"── {block_in_words(block)} ({block.because}) ──", fg="yellow")
    for line in besides(block.notes, len(block.excerpts), block.checks) if block.action == "compact" else ():
        show.say(f"· {line}", dim=True)
    # pins leave the summary as it was, and it has been told
    if block.summary and block.action not in ("pin", "unpin"):
        show.say(indent(block.summary, INDENT), dim=True)
    show.say("")


def _lines(block: Block) -> list[str]:
    if isinstance(block, References):
        return references_shown(block.references, fold=None, is_terminal=False)
    return [_in_words(block)]


def _known_of(block: ToolResult) -> str:
    """Its size, who let it run, and what of it is kept besides."""
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
