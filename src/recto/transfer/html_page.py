"""Conversations as one HTML page: self-contained, without scripts. Message content is shown, never executed.

It is the Markdown export, rendered message by message, in which HTML is text and only stored images are shown; a policy
in the page forbids the rest.
"""

import base64
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore

from recto.chat.blocks import Image
from recto.errors import Altered, NotFound
from recto.sources.documents import image_type
from recto.store.store import Store
from recto.transfer.reading import ConversationText, ReadMessage, escaped, message_parts

# SVG may hold scripts; larger images make a page slow to open.
IMAGE_KINDS = ("image/png", "image/jpeg", "image/gif", "image/webp")
MAX_IMAGE_BYTES = 4 << 20
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_STORED = "data:image/stored;sha256,"


def html_chunks(store: Store, ids: Sequence[str]) -> Iterator[str]:
    texts, page = [ConversationText(store, id) for id in ids], _Page(store)
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
            yield f"<h1>{part}</h1>\n" if isinstance(part, str) else page.message(part)
    yield "</body>\n</html>\n"


class _Page:
    def __init__(self, store: Store) -> None:
        self._store, self._markdown = store, MarkdownIt("commonmark", {"html": False, "linkify": False}).enable("table")
        self._markdown.core.ruler.push("directions", _set_directions)
        self._markdown.validateLink = _is_link  # type: ignore[method-assign]
        self._markdown.renderer.rules["image"] = self._image  # type: ignore[attr-defined]

    def message(self, entry: ReadMessage) -> str:
        role = "compaction" if entry.message.compaction else entry.message.role
        parts = []
        for part in message_parts(entry, _image_mark):
            rendered = self._markdown.render(part.text)
            fold = f"<details><summary>{escape(part.fold)}</summary>{rendered}</details>\n"
            parts.append(fold if part.fold else rendered)
        return f'<article class="{escape(role)}" id="m-{escape(entry.message.id)}">\n{"".join(parts)}</article>\n'

    def _image(self, tokens: Sequence[Any], place: int, *_: object) -> str:
        """Stored images are part of the page; an image elsewhere is not loaded."""
        source, name = str(tokens[place].attrs["src"]), escape(tokens[place].content)
        try:
            data = self._store.blobs.get(source.removeprefix(_STORED)) if source.startswith(_STORED) else b""
        except (NotFound, Altered):
            data = b""
        kind = image_type(data)
        if kind not in IMAGE_KINDS or len(data) > MAX_IMAGE_BYTES:
            return f"<em>Image: {name or escape(source)}</em>"
        return f'<img alt="{name}" src="data:{kind};base64,{base64.b64encode(data).decode()}">'


def _image_mark(block: Image) -> str:
    return f"![{escaped(block.name)}]({_STORED}{block.sha256})" if block.sha256 else ""


def _is_link(url: str) -> bool:
    return url.startswith(_STORED) or url.partition(":")[0].strip().lower() in ("http", "https", "mailto", "tel")


def _set_directions(state: StateCore) -> None:
    """The first letter sets the direction of each paragraph, list and table: right to left for Arabic or Hebrew."""
    for token in state.tokens:
        if token.level == 0 and token.nesting == 1:
            token.attrSet("dir", "auto")
