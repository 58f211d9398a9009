"""Conversations as one HTML page: self-contained, without scripts. Message content is shown, never executed.

Texts are rendered as Markdown in which HTML is text and images are not loaded; a policy in the page forbids the rest.
"""

import base64
import re
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore

from recto.chat.blocks import (
    Block,
    File,
    Image,
    References,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from recto.errors import Altered, NotFound
from recto.store.store import Store
from recto.transfer.reading import (
    ConversationText,
    ReadContext,
    ReadMessage,
    compaction_line,
    error_line,
    headline,
    reference_words,
    shown_summary,
)

# SVG may hold scripts; larger images make a page slow to open.
IMAGE_KINDS = ("image/png", "image/jpeg", "image/gif", "image/webp")
MAX_IMAGE_BYTES = 4 << 20
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_markdown = MarkdownIt("commonmark", {"html": False, "linkify": False}).enable("table").disable("image")


def _set_directions(state: StateCore) -> None:
    """The first letter sets the direction of each paragraph, list and table: right to left for Arabic or Hebrew."""
    for token in state.tokens:
        if token.level == 0 and token.nesting == 1:
            token.attrSet("dir", "auto")


_markdown.core.ruler.push("directions", _set_directions)


def html_chunks(store: Store, ids: Sequence[str]) -> Iterator[str]:
    texts = [ConversationText(store, id) for id in ids]
    style = Path(__file__).with_name("page.css").read_text("utf-8")
    title = texts[0].conversation.title if len(texts) == 1 else f"{len(texts)} conversations"
    yield (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n<meta name="generator" content="Recto">\n'
        f"<title>{escape(title or 'Conversation')}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
    )
    for text in texts:
        facts = " · ".join(f"{name}: {escape(value)}" for name, value in text.facts())
        named = escape(text.conversation.title or "Conversation")
        yield f'<h1 dir="auto">{named}</h1>\n<header>{facts}</header>\n'
        for part in text.parts():
            yield f"<h1>{part}</h1>\n" if isinstance(part, str) else _message(store, part)
    yield "</body>\n</html>\n"


def _message(store: Store, entry: ReadMessage) -> str:
    message = entry.message
    if block := message.compaction:
        summary = shown_summary(block)
        folded = _details("Summary", _rendered(summary)) if summary else ""
        return f'<div class="compaction">{escape(compaction_line(block))}{folded}</div>\n'
    parts = [f'<div class="head">{escape(headline(message))}</div>', *(_block(store, each) for each in message.blocks)]
    if message.error:
        parts.append(f"<p><em>{escape(error_line(message))}</em></p>")
    if entry.context:
        parts.append(_context(entry.context))
    begin = f'<article class="{escape(message.role)}" id="m-{escape(message.id)}">\n'
    return begin + "\n".join(filter(None, parts)) + "\n</article>\n"


def _block(store: Store, block: Block) -> str:
    match block:
        case Text(text=text):
            return _rendered(text)
        case Thinking(text=text):
            return _details("Thought", _rendered(text)) if text else ""
        case ToolCall():
            called = f'<pre class="call"><code>{escape(block.arguments)}</code></pre>'
            return f"<p>→ <code>{escape(block.name)}</code></p>{called}"
        case ToolResult():
            failed = " failed" if block.is_error else ""
            files = "".join(_block(store, each) for each in block.attachments)
            return _details(f"← {block.name}{failed}, {len(block.text):,} characters", _code(block.text)) + files
        case File():
            return _details(f"File {block.name}", _code(block.text)) if block.text else _named("File", block.name)
        case Image():
            return _image(store, block)
        case References(references=references, quotes=quotes) if references or quotes:
            named = "".join(f'<li dir="auto">{escape(reference_words(each))}</li>' for each in references)
            quoted = "".join(
                f'<blockquote dir="auto">{escape(each.sentence)}<br><small>{escape(each.wikilink)}</small></blockquote>'
                for each in quotes
            )
            return f"<p>📚 Referenced documents</p><ul>{named}</ul>{quoted}"
    return ""


def _image(store: Store, block: Image) -> str:
    data = block.base64
    if block.sha256 and block.media_type in IMAGE_KINDS:
        try:
            stored = store.blobs.get(block.sha256)
        except (NotFound, Altered):
            stored = b""
        data = base64.b64encode(stored).decode() if len(stored) <= MAX_IMAGE_BYTES else ""
    if block.media_type not in IMAGE_KINDS or not _BASE64.fullmatch(data):
        return _named("Image", block.name or block.url or block.media_type)
    return f'<p><img alt="{escape(block.name)}" src="data:{block.media_type};base64,{data}"></p>'


def _rendered(text: str) -> str:
    rendered: str = _markdown.render(text)
    return rendered


def _code(text: str) -> str:
    return f"<pre><code>{escape(text)}</code></pre>"


def _named(kind: str, name: str) -> str:
    return f"<p><em>{kind}: {escape(name)}</em></p>"


def _details(title: str, body: str) -> str:
    return f"<details><summary>{escape(title)}</summary>{body}</details>"


def _context(context: ReadContext) -> str:
    rows = []
    for section in context.sections:
        picks = "".join(f"<li>{escape(name)} <small>({escape(about)})</small></li>" for name, about in section.picks)
        rows.append(f"<li>{escape(section.line)}{f'<ul>{picks}</ul>' if picks else ''}</li>")
    rows += [f"<li>note: {escape(note)}</li>" for note in context.notes]
    folded = _details(f"Context: {context.line}", f"<ul>{''.join(rows)}</ul>")
    return f'<div class="context">{folded}</div>'
