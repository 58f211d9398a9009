"""DocumentSummary: a note in one line: its first paragraph, or a line that a model wrote about exactly this text.

Tables and files call a summary a gist.
"""

import logging
import re
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from recto.search.passages import split_sentences
from recto.vault.catalog import CacheEmptied, CacheFile
from recto.vault.document import Document, is_underline
from recto.vault.links import mask_code
from recto.vault.note_statements import ITEM, QUOTED, plain_text

log = logging.getLogger(__name__)

MAX_SUMMARY_CHARS = 100
# About fifty tokens; the limit given to a model.
MAX_WRITTEN_CHARS = 240
# Limits on the text searched for a paragraph and on the part of a paragraph that is read.
_MAX_SEARCHED, _MAX_PARAGRAPH = 20_000, 2000

_LAYOUT = re.compile(r" {0,3}(?:#{1,6}(?:\s|$)|(?:[-*_][ \t]*){3,}$)|(?: {4}|\t)(?![ \t]*(?:[-*+]|\d+[.)])\s)|[ \t]*\|")
# Links, tags and addresses.
_NO_PROSE = re.compile(
    r"!?\[\[[^\[\]\n]*+\]\]|\[[^\[\]\n]*+\]\([^()\n]*+\)|\b(?:https?|mailto|obsidian):[^\s<>]*+|(?<!\S)#[\w/-]*+"
)


class DocumentSummary(Struct, frozen=True):
    text: str
    """One line of at most 100 characters; empty for a note without text."""
    is_complete: bool = True
    """False if it is only the beginning of the paragraph."""


def document_summary(document: Document) -> DocumentSummary:
    """A description from the properties, or else the first sentence of the first paragraph of prose."""
    for name in ("description", "summary"):
        value = document.head[0].get(name)
        line = " ".join(value[:_MAX_PARAGRAPH].split()) if isinstance(value, str) else ""
        if 0 < len(line) <= MAX_SUMMARY_CHARS:
            return DocumentSummary(line)
    paragraph = next(_paragraphs(document), "")
    if len(paragraph) < MAX_SUMMARY_CHARS:
        return DocumentSummary(paragraph)
    first = next(iter(split_sentences(paragraph)), paragraph)
    return DocumentSummary(shorten_line(first), is_complete=False)


def shorten_line(line: str, limit: int = MAX_SUMMARY_CHARS) -> str:
    if len(line) <= limit:
        return line
    space = line.rfind(" ", limit // 2, limit)
    return line[: space if space > 0 else limit - 1].rstrip(" ,;:–—-") + "…"


def _paragraphs(document: Document) -> Iterator[str]:
    """The paragraphs of a note as plain lines: prose first, then lists and quotes. Those with more links, tags and
    addresses than text are left out."""
    start, secondary = document.head[1], list[str]()
    for lines in _blocks(document.text[start : start + _MAX_SEARCHED]):
        first = QUOTED.sub("", lines[0])
        item = ITEM.match(first)
        is_prose = not item and first == lines[0]
        text = ("\n".join(lines) if is_prose else first[item.end() if item else 0 :])[:_MAX_PARAGRAPH]
        plain = plain_text(text)
        if 4 * _count_letters(_NO_PROSE.sub("", text)) < max(1, _count_letters(plain)):
            continue
        if is_prose:
            yield plain
        secondary.append(plain)
    yield from secondary


def _blocks(text: str) -> Iterator[list[str]]:
    """Groups of lines, without headings, rules, tables, code and comments."""
    block: list[str] = []
    for line, mask in zip(text.split("\n"), mask_code(text).split("\n"), strict=True):
        if block and is_underline(line):  # the block was a heading
            block = []
            continue
        is_text = bool(mask.strip()) and not _LAYOUT.match(line)
        if block and (not is_text or ITEM.match(line)):
            yield block
            block = []
        if is_text:
            block.append(line)
    if block:
        yield block


def _count_letters(text: str) -> int:
    return sum(map(str.isalnum, text))


class DocumentSummaries:
    """Summaries by a model, stored by the note's hash. If no file can be used, they are in memory."""

    def __init__(self, path: Path | None = None) -> None:
        self._file = CacheFile(path, "the file of summaries", _prepare)
        self._lock = threading.Lock()

    def get(self, sha: bytes) -> str | None:
        """The summary of a note with exactly this content."""
        rows = self._run("SELECT text FROM gists WHERE sha = ?", (sha,))
        return str(rows[0][0]) if rows else None

    def put(self, sha: bytes, text: str) -> None:
        """Stores a summary as one line; an empty one is ignored."""
        if line := shorten_line(" ".join(text.split()), MAX_WRITTEN_CHARS):
            self._run("INSERT OR REPLACE INTO gists VALUES (?, ?)", (sha, line))

    def close(self) -> None:
        with self._lock:
            self._file.close()

    def _run(self, query: str, values: tuple[Any, ...]) -> list[Any]:
        """Empties a damaged file, but leaves a locked file or an unwritable disk alone."""
        with self._lock:
            for _ in range(2):
                try:
                    return self._file.read(query, values)
                except CacheEmptied as why:
                    log.warning("%s", why.message)
            return self._file.read(query, values)


def _prepare(db: sqlite3.Connection) -> None:
    db.execute("CREATE TABLE IF NOT EXISTS gists (sha BLOB PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID")
