"""DocumentSummary: a note in one line: its first paragraph, or a line that a model wrote about exactly this text.

The tables and files call a summary a gist.
"""

import logging
import re
import sqlite3
import threading
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from recto.errors import RectoError
from recto.search.disposable_file import DisposableFile, close_quietly
from recto.vault.document import Document
from recto.vault.links import DESTINATION, EMBED, mask_code

log = logging.getLogger(__name__)

MAX_SUMMARY_CHARS = 100
# How much of a note is searched for a paragraph, and how much of a paragraph is read: no summary needs more.
_MAX_SEARCHED, _MAX_PARAGRAPH = 20_000, 2000

_HEADING = re.compile(r" {0,3}#{1,6}(?:\s|$)")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-+)\s*$")
_RULE = re.compile(r" {0,3}(?:[-*_][ \t]*){3,}$")
_ITEM = re.compile(r"(?:(?<!\s)\s++)?(?:[-*+]|\d{1,9}[.)])\s++(?:\[.\]\s++)?")
_QUOTE = re.compile(r"(?:(?<!\s)\s++)?>[>\s]*+")
_CALLOUT = re.compile(r"\[![\w-]+\][+-]?\s*")
_TABLE = re.compile(r"\s*\||[^|]*\|[^|]*\|")
_INDENTED = re.compile(r" {4}|\t")
_FIELD = re.compile(r"[^\s:][^:\n]{0,60}:: ?")

_COMMENT = re.compile(r"%%.*?(?:%%|$)|<!--.*?(?:-->|$)", re.DOTALL)
_WIKI = re.compile(r"\[\[([^\[\]\n]+)\]\]")
_LINK = re.compile(rf"\[([^\[\]\n]*+)\](?:{DESTINATION}|\[[^\[\]\n]*+\])")
_FOOTNOTE = re.compile(r"\[\^[^\[\]\n]*+\]")
_ADDRESS = re.compile(r"<?\b(?:https?|ftp|mailto|obsidian):[^\s<>]*>?")
_HTML = re.compile(r"</?[A-Za-z][^<>\n]*>")
_BLOCK_ID = re.compile(r"\s\^[A-Za-z0-9-]+\s*$")
_TAG = re.compile(r"(?<!\S)#[\w/-]*[^\W\d][\w/-]*")
# One character that all links, tags, addresses and the like contain: most paragraphs have none.
_ANY_MARKUP = re.compile(r"[\[#:<]")
_ANY_EMPHASIS = re.compile(r"[*~=`_]")
_NON_LETTERS = re.compile(r"[\W_]+")
_EMPHASIS = re.compile(r"(?<!\\)(?:\*{1,3}|~~|==|`+)|(?<![\\\w])_{1,3}(?=\S)|(?<=\S)_{1,3}(?!\w)")
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_STOP = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’)\]]*+(?=\s++[^\s\d\W_]|\s*+$)|[。！？]++[」』”]?")
_MAX_ABBREVIATION = 12
_ABBREVIATED = re.compile(
    r"(?:(?:(?<!\S)|(?<=[.(]))[A-Za-z]|\b(?:Mr|Mrs|Ms|Dr|Prof|St|vs|etc|e\.g|i\.e|z\.B|bzw|ca|No|Nr)|^\d+)\.$"
)


class DocumentSummary(Struct, frozen=True):
    text: str
    """One line of at most 100 characters; empty for a note without text."""
    is_complete: bool = True
    """Whether it is the whole paragraph, or only its beginning."""


def document_summary(document: Document) -> DocumentSummary:
    """A short description from the properties, or else the first paragraph of prose, cut to its first sentence."""
    for name in ("description", "summary"):
        value = document.head[0].get(name)
        line = _line(value[:_MAX_PARAGRAPH]) if isinstance(value, str) else ""
        if 0 < len(line) <= MAX_SUMMARY_CHARS:
            return DocumentSummary(line)
    paragraph = next(_paragraphs(document), "")
    if len(paragraph) < MAX_SUMMARY_CHARS:
        return DocumentSummary(paragraph)
    return DocumentSummary(shorten_line(_first_sentence(paragraph)), is_complete=False)


def shorten_line(line: str, limit: int = MAX_SUMMARY_CHARS) -> str:
    """Cuts a line at the end of a word and adds an ellipsis."""
    if len(line) <= limit:
        return line
    end = limit - 1
    space = line.rfind(" ", limit // 2, end + 1)
    return line[: space if space > 0 else _character_end(line, end)].rstrip(" ,;:–—-") + "…"


def _character_end(line: str, end: int) -> int:
    """A place that does not split an accent from its letter, or an emoji."""
    at = end
    while at > end - 16 and (unicodedata.category(line[at])[0] == "M" or "\u200d" in line[at - 1 : at + 1]):
        at -= 1
    return at


def _paragraphs(document: Document) -> Iterator[str]:
    """The paragraphs of a note as plain lines: prose first, then what is in lists and quotes."""
    start = document.head[1]
    text = document.text[start : start + _MAX_SEARCHED]
    secondary: list[str] = []
    for lines in _blocks(text):
        raw = "\n".join(lines)[:_MAX_PARAGRAPH]
        if _ITEM.match(raw) or _QUOTE.match(raw):
            secondary.append(
                _CALLOUT.sub("", _QUOTE.sub("", _ITEM.sub("", lines[0][:_MAX_PARAGRAPH]), count=1), count=1)
            )
        elif plain := _prose_of(raw):
            yield plain
    yield from filter(None, map(_prose_of, secondary))


def _blocks(text: str) -> Iterator[list[str]]:
    """Groups of lines, without headings, rules, code, comments and other layout."""
    block: list[str] = []
    for line, mask in zip(text.split("\n"), mask_code(text).split("\n"), strict=True):
        if _UNDERLINE.match(line) and block:  # the block was a heading
            block = []
            continue
        is_text = bool(mask.strip()) and not _is_layout(line[:_MAX_PARAGRAPH], is_first=not block)
        if block and (not is_text or _ITEM.match(line)):
            yield block
            block = []
        if is_text and not _FIELD.match(line):
            block.append(line)
    if block:
        yield block


def _is_layout(line: str, *, is_first: bool) -> bool:
    if is_first and _INDENTED.match(line) and not _ITEM.match(line):
        return True  # code
    return bool(_HEADING.match(line) or _RULE.match(line) or _TABLE.match(_WIKI.sub("", line)))


def _prose_of(raw: str) -> str:
    """A paragraph as plain text; empty if more than three quarters of its letters are links, tags and addresses."""
    rest, plain = _COMMENT.sub(" ", raw), _plain(raw)
    for pattern in (EMBED, _WIKI, _LINK, _ADDRESS, _TAG, _HTML) if _ANY_MARKUP.search(rest) else ():
        rest = pattern.sub(" ", rest)
    count = _count_letters(rest)
    return plain if count > 0 and 4 * count >= _count_letters(plain) else ""


def _count_letters(text: str) -> int:
    count = len(_NON_LETTERS.sub("", text))
    return count if text.isascii() else count + sum(unicodedata.category(character) == "So" for character in text)


def _plain(raw: str) -> str:
    """Removes the markup."""
    text = _BLOCK_ID.sub("", _COMMENT.sub(" ", raw))
    text = _FOOTNOTE.sub("", EMBED.sub("", text))
    text = _LINK.sub(r"\1", _WIKI.sub(lambda link: _link_caption(link[1]), text))
    text = _HTML.sub("", text)
    text = _ESCAPE.sub(r"\1", _EMPHASIS.sub("", text) if _ANY_EMPHASIS.search(text) else text)
    return _line(text)


def _link_caption(inside: str) -> str:
    """What a reader sees of a wikilink: its caption, or the name of the note."""
    target, bar, caption = inside.partition("|")
    if bar and caption.strip():
        return caption.strip()
    name, _, heading = target.rstrip("\\").partition("#")
    return name.rpartition("/")[2].strip() or heading.strip("^ ")


def _line(text: str) -> str:
    return " ".join(text.split())


def _first_sentence(line: str) -> str:
    for stop in _STOP.finditer(line):
        if not _ABBREVIATED.search(line, max(0, stop.end() - _MAX_ABBREVIATION), stop.end()):
            return line[: stop.end()]
    return line


# About fifty tokens: what a model is asked for.
MAX_WRITTEN_CHARS = 240


class DocumentSummaries:
    """Summaries that a model wrote, stored by the hash of the note. If no file can be used, they are in memory."""

    def __init__(self, path: Path | None = None) -> None:
        self._file = DisposableFile(path, "the file of summaries", _prepare) if path else None
        self._db: sqlite3.Connection | None = None
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
            self._close()

    def _run(self, query: str, values: tuple[Any, ...]) -> list[Any]:
        """A damaged file is emptied; one that is locked, or on a disk that cannot be written, is left alone."""
        with self._lock:
            while self._file is not None:
                try:
                    with self._file.interpreting():
                        return self._connection().execute(query, values).fetchall()
                except (sqlite3.Error, OSError) as why:
                    self._close()
                    try:
                        self._file.recover(why)
                    except RectoError as problem:
                        log.warning("%s", problem.message)
                        self._file = None
            return self._connection().execute(query, values).fetchall()

    def _connection(self) -> sqlite3.Connection:
        if self._db is None and self._file is not None:
            self._db = self._file.connect()
        elif self._db is None:
            self._db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
            _prepare(self._db)
        return self._db

    def _close(self) -> None:
        if self._db is not None:
            close_quietly(self._db)
        self._db = None


def _prepare(db: sqlite3.Connection) -> None:
    db.execute("CREATE TABLE IF NOT EXISTS gists (sha BLOB PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID")
