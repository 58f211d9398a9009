"""DocumentSummary: a note in one line: its first paragraph, or a line that a model wrote about exactly this text.

Tables and files call a summary a gist.
"""

import logging
import re
import sqlite3
import threading
import unicodedata
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any

from msgspec import Struct

from recto.search.passages import split_sentences
from recto.vault.catalog import CacheEmptied, CacheFile
from recto.vault.document import Document, is_underline
from recto.vault.links import DESTINATION, EMBED, ESCAPED, WIKILINK, mask_code
from recto.vault.note_statements import BLOCK_ID, ITEM, QUOTED

log = logging.getLogger(__name__)

MAX_SUMMARY_CHARS = 100
# About fifty tokens; the limit given to a model.
MAX_WRITTEN_CHARS = 240
# Limits on the text searched for a paragraph and on the part of a paragraph that is read.
_MAX_SEARCHED, _MAX_PARAGRAPH = 20_000, 2000

_LAYOUT = re.compile(r" {0,3}(?:#{1,6}(?:\s|$)|(?:[-*_][ \t]*){3,}$)")
_COMMENT = re.compile(r"%%.*?(?:%%|$)|<!--.*?(?:-->|$)", re.DOTALL)
_LINK = re.compile(rf"\[([^\[\]\n]*+)\](?:{DESTINATION}|\[[^\[\]\n]*+\])")
_FOOTNOTE = re.compile(r"\[\^[^\[\]\n]*+\]")
_ADDRESS = re.compile(r"<?\b(?:https?|ftp|mailto|obsidian):[^\s<>]*>?")
_HTML = re.compile(r"</?[A-Za-z][^<>\n]*>")
_TAG = re.compile(r"(?<!\S)#[\w/-]*[^\W\d][\w/-]*")
_EMPHASIS = re.compile(r"(?<!\\)(?:\*{1,3}|~~|==|`+)|(?<![\\\w])_{1,3}(?=\S)|(?<=\S)_{1,3}(?!\w)")


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
    first, *others = split_sentences(paragraph) or [paragraph]
    for other in others:
        if other[0].isalpha() or not first.endswith("."):
            break
        first = f"{first} {other}"  # "No. 5"
    return DocumentSummary(shorten_line(first), is_complete=False)


def shorten_line(line: str, limit: int = MAX_SUMMARY_CHARS) -> str:
    if len(line) <= limit:
        return line
    end = limit - 1
    space = line.rfind(" ", limit // 2, end + 1)
    if space < 0:  # never split an accent from its letter, or an emoji
        parts = (line[at - 1 : at + 1] for at in range(end, end - 16, -1))
        split = takewhile(lambda part: "\u200d" in part or unicodedata.category(part[1])[0] == "M", parts)
        space = end - len(list(split))
    return line[:space].rstrip(" ,;:–—-") + "…"


def _paragraphs(document: Document) -> Iterator[str]:
    """The paragraphs of a note as plain lines: prose first, then lists and quotes."""
    start = document.head[1]
    secondary = list[str]()
    for lines in _blocks(document.text[start : start + _MAX_SEARCHED]):
        raw, first = "\n".join(lines)[:_MAX_PARAGRAPH], lines[0][:_MAX_PARAGRAPH]
        item = ITEM.match(first)
        if item or QUOTED.match(first):
            secondary.append(QUOTED.sub("", first[item.end() if item else 0 :]))
        elif plain := _prose_of(raw):
            yield plain
    yield from filter(None, map(_prose_of, secondary))


def _blocks(text: str) -> Iterator[list[str]]:
    """Groups of lines, without headings, rules, code, comments and other layout."""
    block: list[str] = []
    for line, mask in zip(text.split("\n"), mask_code(text).split("\n"), strict=True):
        if block and is_underline(line):  # the block was a heading
            block = []
            continue
        is_text = bool(mask.strip()) and not _is_layout(line[:_MAX_PARAGRAPH], is_first=not block)
        if block and (not is_text or ITEM.match(line)):
            yield block
            block = []
        if is_text and not _is_field(line):
            block.append(line)
    if block:
        yield block


def _is_layout(line: str, *, is_first: bool) -> bool:
    """True for a heading, a rule, a table row, or the start of code."""
    if _LAYOUT.match(line) or (is_first and line.startswith(("    ", "\t")) and not ITEM.match(line)):
        return True
    cells = WIKILINK.sub("", line)
    return cells.lstrip().startswith("|") or cells.count("|") >= 2


def _is_field(line: str) -> bool:
    """True for an inline property of other programs: `name:: value`."""
    name, mark, _ = line.partition("::")
    return bool(mark) and 0 < len(name) <= 61 and not name[0].isspace() and ":" not in name


def _prose_of(raw: str) -> str:
    """A paragraph as plain text; empty if more than three quarters of its letters are links, tags and addresses."""
    rest = _COMMENT.sub(" ", raw)
    plain = _plain(rest)
    for pattern in (EMBED, WIKILINK, _LINK, _ADDRESS, _TAG, _HTML):
        rest = pattern.sub(" ", rest)
    count = _count_letters(rest)
    return plain if count > 0 and 4 * count >= _count_letters(plain) else ""


def _count_letters(text: str) -> int:
    return sum(sign.isalnum() or unicodedata.category(sign) == "So" for sign in text)


def _plain(text: str) -> str:
    text = _FOOTNOTE.sub("", EMBED.sub("", BLOCK_ID.sub("", text)))
    text = _LINK.sub(r"\1", WIKILINK.sub(_caption, text))
    return " ".join(ESCAPED.sub(r"\1", _EMPHASIS.sub("", _HTML.sub("", text))).split())


def _caption(link: re.Match[str]) -> str:
    """A wikilink as a reader sees it: the caption, or the note's name."""
    target, _, caption = link[1].partition("|")
    name, _, heading = target.rstrip("\\").partition("#")
    return caption.strip() or name.rpartition("/")[2].strip() or heading.strip("^ ")


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
