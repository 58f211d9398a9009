"""Conversations as Markdown. What was said stays as it was said; what is added around it is escaped."""

import re
from collections.abc import Iterator, Sequence

from recto.chat.blocks import (
    Block,
    Compaction,
    File,
    Image,
    References,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from recto.store.store import Store
from recto.transfer.reading import (
    ConversationText,
    ReadContext,
    ReadMessage,
    compaction_line,
    ended_in_words,
    facts,
    headline,
    one_line,
    reference_words,
    shown_summary,
)

# An underscore within a word is no mark.
_SPECIAL = re.compile(r"([\\`*\[\]<>|~]|(?<!\w)_|_(?!\w))")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})", re.MULTILINE)


def markdown_chunks(store: Store, ids: Sequence[str]) -> Iterator[bytes]:
    for place, id in enumerate(ids):
        text = ConversationText(store, id)
        head = "\n---\n\n" if place else ""
        yield f"{head}# {_escaped(text.conversation.title) or 'Conversation'}\n\n".encode()
        yield "".join(f"- {name}: {_escaped(value)}\n" for name, value in facts(text.conversation)).encode()
        for entry in text.messages():
            yield _message(entry).encode()
        for branch in text.branches():
            where = f"after #{branch.after}" if branch.after else "from the beginning"
            yield f"\n# Another branch, {where}\n".encode()
            for entry in branch.messages:
                yield _message(entry).encode()


def _message(entry: ReadMessage) -> str:
    message = entry.message
    if block := message.compaction:
        summary = shown_summary(block)
        quoted = "\n>\n" + _quoted(summary) if summary else ""
        return f"\n> **{_escaped(compaction_line(block))}**{quoted}\n"
    parts = [f"## {_escaped(headline(message))}", *filter(None, map(_block, message.blocks))]
    if message.error:
        parts.append(f"*{ended_in_words(message)}: {_escaped(message.error)}*")
    if entry.context:
        parts.append(_context(entry.context))
    return "\n" + "\n\n".join(parts) + "\n"


def _block(block: Block) -> str:
    match block:
        case Text(text=text):
            return _closed(text)
        case Thinking(text=text):
            return f"> *Thought:*\n>\n{_quoted(text)}" if text else ""
        case ToolCall():
            return f"**→ {_escaped(block.name)}**\n\n{_fenced(block.arguments, 'json')}"
        case ToolResult():
            failed = " failed" if block.is_error else ""
            return f"**← {_escaped(block.name)}**{failed}\n\n{_fenced(block.text)}"
        case File():
            return f"**File {_escaped(block.name)}** ({_escaped(block.media_type)})\n\n" + (
                _fenced(block.text) if block.text else ""
            )
        case Image():
            return f"**Image {_escaped(block.name or block.url)}** ({_escaped(block.media_type)})"
        case References():
            quotes = [f"> {_escaped(quote.sentence)} — {_escaped(quote.wikilink)}" for quote in block.quotes]
            named = [f"- {_escaped(reference_words(each))}" for each in block.references]
            return (
                "\n".join(("📚 Referenced documents", "", *named, *(("", *quotes) if quotes else ())))
                if named or quotes
                else ""
            )
        case Compaction():
            return ""


def _context(context: ReadContext) -> str:
    lines = [f"> **Context:** {_escaped(context.line)}"]
    for section in context.sections:
        always = ", ".join(pick.name for pick in section.picks if not pick.is_chosen)
        lines.append(f"> - {_escaped(section.name)} {section.tokens:,}" + (f": {_escaped(always)}" if always else ""))
        lines += [f">   - {_escaped(pick.name)} ({_escaped(pick.about)})" for pick in section.picks if pick.is_chosen]
    lines += [f"> - note: {_escaped(note)}" for note in context.notes]
    return "\n".join(lines)


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", one_line(text))


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}" for line in _closed(text).splitlines())


def _closed(text: str) -> str:
    """The text with an end for a fence that has none: it would swallow all that follows."""
    open_fence = ""
    for found in _FENCE.finditer(text):
        fence = found[1]
        if not open_fence:
            open_fence = fence
        elif fence[0] == open_fence[0] and len(fence) >= len(open_fence):
            open_fence = ""
    return f"{text}\n{open_fence}" if open_fence else text


def _fenced(text: str, language: str = "") -> str:
    longest = max((len(found[0]) for found in re.finditer(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"
