"""One message for people to read: who, when, how large, what became of it, and its blocks."""

from recto.chat.blocks import Block, Compaction, File, Image, Text, Thinking, ToolCall, ToolResult
from recto.chat.message import Message
from recto.cli import show
from recto.cli.listen import compaction_in_words

RESULT_WIDTH = 200
MARKS = {"unfinished": "unfinished", "stopped": "stopped", "error": "failed"}


def tell_message(message: Message, *, active: bool, with_tools: bool = True) -> None:
    """Archived messages are dimmed; a Compaction is a line of its own."""
    if message.compaction:
        _tell_compaction(message.compaction)
        return
    show.say(_head(message, active), dim=not active, bold=active or None)
    for block in message.blocks:
        if with_tools or not isinstance(block, ToolCall | ToolResult):
            show.say(_in_words(block), dim=not active or isinstance(block, Thinking | ToolCall | ToolResult) or None)
    if message.error:
        show.say(f"failed: {message.error}", fg="red")
    show.say("")


def _head(message: Message, active: bool) -> str:
    parts = [message.role, show.when(message.created)]
    if message.tokens.own is not None:
        parts.append(show.counted(message.tokens.own, "token"))
    if message.model:
        parts.append(message.model)
    if mark := MARKS.get(message.status):
        parts.append(mark)
    if not active:
        parts.append("archived")
    return " · ".join([*parts, message.id])


def _tell_compaction(block: Compaction) -> None:
    words = compaction_in_words(
        block.compaction_number, block.messages_archived, block.context_size_before, block.context_size_after
    )
    show.say(f"── {words} ({block.because}) ──", fg="yellow")
    if block.summary:
        show.say(block.summary)
    show.say("")


def _in_words(block: Block) -> str:
    match block:
        case Text(text=text):
            return text
        case Thinking(text=text):
            return f"(thought) {text}"
        case ToolCall():
            return f"→ {block.name} {show.shortened(block.arguments, RESULT_WIDTH)}"
        case ToolResult():
            size = show.counted(len(block.text), "character")
            told = "failed: " if block.is_error else ""
            return f"← {block.name} ({size}) {told}{show.shortened(block.text, RESULT_WIDTH)}"
        case File():
            return f"[file {block.name}, {show.counted(len(block.text), 'character')}]"
        case Image():
            return f"[image, {block.media_type}]"
        case Compaction():
            return block.summary
