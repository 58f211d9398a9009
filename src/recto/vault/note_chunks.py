"""NoteChunk: a part of a note that is found on its own: a section's text or a piece of it, with title and headings.

Knows a document, not the index.
"""

import re
import threading
from collections.abc import Iterator, Sequence
from datetime import date
from functools import cached_property
from itertools import zip_longest
from typing import Any

from msgspec import Struct

from recto.search.index_item import text_hash
from recto.search.keyword_index import Passage, keep_recent
from recto.search.passages import MAX_PASSAGE_CHARS, split_passages
from recto.vault.document import Document, NoteSection, note_name

# How many notes that were found stay in memory, and up to which length: about four megabytes at most.
MAX_RECENT_NOTES, MAX_RECENT_CHARS = 200, 20_000
# The length of the title and headings in every chunk, and of the metadata that only the first chunk has.
MAX_HEADER_CHARS, MAX_METADATA_CHARS = 200, 250
# A note with more sections was not written by hand: it is split by length alone.
MAX_SECTIONS = 3000

_HEADING_ONLY = re.compile(r"[^\n]*(?:\n[ \t]*(?:=+|-+))?")
_DATE = re.compile(r"(\d{4})-(\d\d?)-(\d\d?)(?!\d)")


class NoteChunk(Struct, frozen=True):
    start: int
    end: int
    headings: tuple[str, ...]
    """Its heading, and those above that one."""
    header: str
    """What it is found by besides its text: title and headings; for the first chunk also names, tags and properties."""
    text: str
    """As written; empty only for a note without text."""

    @property
    def indexed_text(self) -> str:
        return f"{self.header}\n{self.text}" if self.text else self.header


def note_chunks(document: Document) -> list[NoteChunk]:
    """All chunks of a note, in order; for an empty note one chunk with its name."""
    metadata, found = _metadata(document), list[NoteChunk]()
    for section, end in _sections(document):
        found += _split(document, section, end, "" if found else metadata)
    start = document.parsed.body_start
    return found or [NoteChunk(start, start, (), _join(_header(document.title, ()), metadata), "")]


def note_date(document: Document) -> str:
    """The date of a note from its properties or its name; empty if it has none."""
    value = document.parsed.properties.get("date")
    return _leading_date(value if isinstance(value, str) else "") or _leading_date(note_name(document.path))


def _leading_date(text: str) -> str:
    """The date that a text begins with; empty if there is none, or if it is not in the calendar."""
    found = _DATE.match(text)
    try:
        return date(*map(int, found.groups())).isoformat() if found else ""
    except ValueError:
        return ""


def line_number(document: Document, offset: int) -> int:
    """Starts at 1."""
    return document.text.count("\n", 0, offset) + 1


def _sections(document: Document) -> Iterator[tuple[NoteSection, int]]:
    """Sections, and where their first subsection begins; without those that have nothing but a heading above it."""
    sections = document.parsed.sections
    if len(sections) > MAX_SECTIONS:
        start, end = document.parsed.body_start, len(document.text)
        sections = (NoteSection((), start, end, 0),)
    for section, following in zip_longest(sections, sections[1:]):
        end = following.start if following else len(document.text)
        has_subsection = following is not None and following.level > section.level > 0
        if not (has_subsection and _HEADING_ONLY.fullmatch(document.text[section.start : end].strip())):
            yield section, end


def _split(document: Document, section: NoteSection, end: int, metadata: str) -> Iterator[NoteChunk]:
    text, path = document.text[section.start : end], section.heading_path
    header = _header(document.title, path)
    # with its header, a chunk must be one passage of the index
    for begin, stop in split_passages(text, MAX_PASSAGE_CHARS - len(header) - len(metadata) - 2):
        own = text[begin:stop].strip()
        start = section.start + text.index(own, begin)
        # the first chunk begins with the heading itself
        above = _join(_header(document.title, path[:-1]), metadata) if begin == 0 else header
        yield NoteChunk(start, start + len(own), path, above, own)


def _join(header: str, metadata: str) -> str:
    return f"{header} {metadata}" if metadata else header


def _header(title: str, path: tuple[str, ...]) -> str:
    return _shorten(" › ".join(dict.fromkeys((title, *(heading for heading in path if heading)))), MAX_HEADER_CHARS)


_EXCLUDED_PROPERTIES = ("title", "aliases", "alias", "tags", "tag", "cssclasses", "cssclass", "position")


def _metadata(document: Document) -> str:
    """Other things a note is searched by: its file name, aliases, tags and properties."""
    parsed, name = document.parsed, note_name(document.path)
    names = [name] if name != document.title else []
    tags = [f"#{tag}" for tag in parsed.tags]
    rest = {key: value for key, value in parsed.properties.items() if key not in _EXCLUDED_PROPERTIES}
    return _shorten(" ".join([*names, *parsed.aliases, *tags, *_texts(rest)]), MAX_METADATA_CHARS)


def _texts(value: Any, depth: int = 3) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items() if depth else ():
            yield from (f"{key} {text}" for text in _texts(inner, depth - 1))
    elif isinstance(value, list):
        for inner in value if depth else ():
            yield from _texts(inner, depth - 1)
    elif isinstance(value, str) or (isinstance(value, float | int) and abs(value) < 1e15):
        yield str(value)


def _shorten(text: str, limit: int) -> str:
    line = " ".join(text[: 4 * limit].split())
    return line if len(line) <= limit else line[:limit].rpartition(" ")[0] or line[:limit]


def chunks_by_hash(document: Document) -> dict[bytes, list[NoteChunk]]:
    """The chunks of a note by the hash of their passages."""
    found: dict[bytes, list[NoteChunk]] = {}
    for chunk in note_chunks(document):
        found.setdefault(text_hash(chunk.indexed_text), []).append(chunk)
    return found


class FoundNote(Struct, frozen=True, dict=True):
    document: Document

    @cached_property
    def _chunks(self) -> dict[bytes, list[NoteChunk]]:
        return chunks_by_hash(self.document)

    def chunk(self, passage: Passage) -> NoteChunk | None:
        """The chunk of a passage, wherever it is now; None if its text has changed."""
        # most often it is where it was: one section is split sooner than all of them
        if "_chunks" not in self.__dict__ and (there := self._chunk_at(passage)):
            return there
        return _nearest(self._chunks.get(passage.sha, ()), passage)

    def _chunk_at(self, passage: Passage) -> NoteChunk | None:
        """The chunk of a passage in the section that is where the passage was."""
        for at, (section, end) in enumerate(_sections(self.document)):
            if section.start <= passage.position < end:
                chunks = _split(self.document, section, end, "" if at else _metadata(self.document))
                return _nearest([each for each in chunks if text_hash(each.indexed_text) == passage.sha], passage)
        return None


def _nearest(chunks: Sequence[NoteChunk], passage: Passage) -> NoteChunk | None:
    return min(chunks, key=lambda chunk: abs(chunk.start - passage.position), default=None)


class RecentNotes:
    """The notes that were found lately: read each time, parsed once."""

    def __init__(self) -> None:
        self._notes: dict[str, FoundNote] = {}
        self._lock = threading.Lock()

    def note(self, document: Document) -> FoundNote:
        with self._lock:
            known = self._notes.get(document.path)
            note = known if known and known.document.text == document.text else FoundNote(document)
            if len(document.text) <= MAX_RECENT_CHARS:
                keep_recent(self._notes, document.path, note, MAX_RECENT_NOTES)
            return note
