"""Piece: a part of a note as it is found: the own text of a section, or some of it, under what says where it stands.

Knows a document, not the index it is put into.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from itertools import zip_longest
from typing import Any

from recto.search.passages import LONGEST, spans
from recto.vault.document import Document, Section, name_of

# What stands above a piece is repeated with each: so much of it, and of what only the first one has.
MOST_ABOVE, MOST_TOLD = 200, 250
# A note of more sections is no text that somebody wrote: it is cut by its length alone.
MOST_SECTIONS = 3000

_BARE = re.compile(r"[^\n]*(?:\n[ \t]*(?:=+|-+))?")
_DAY = re.compile(r"(\d{4})-(\d\d?)-(\d\d?)(?!\d)")


@dataclass(frozen=True, slots=True)
class Piece:
    start: int
    end: int
    headings: tuple[str, ...]
    """The heading that it stands under, and those above that one."""
    above: str
    """What it is found by besides its text: title and headings; of the first one also names, tags and properties."""
    text: str
    """As it is written; empty only for a note that says nothing."""

    @property
    def said(self) -> str:
        """What is put into an index."""
        return f"{self.above}\n{self.text}" if self.text else self.above


def pieces(document: Document) -> list[Piece]:
    """All pieces of a note, in order; of an empty one its name."""
    told, found = _told(document), list[Piece]()
    for section, end in _own(document):
        found += _cut(document, section, end, "" if found else told)
    start = document.parsed.body_start
    return found or [Piece(start, start, (), _with(_above(document.title, ()), told), "")]


def day_of(document: Document) -> str:
    """The day a note is about, as its properties or its name say; empty when they do not."""
    given = document.parsed.properties.get("date")
    return _day(given if isinstance(given, str) else "") or _day(name_of(document.path))


def _day(said: str) -> str:
    """The day that a text begins with; one that is in no calendar is none."""
    found = _DAY.match(said)
    try:
        return date(*map(int, found.groups())).isoformat() if found else ""
    except ValueError:
        return ""


def line_of(document: Document, place: int) -> int:
    """From 1 on."""
    return document.text.count("\n", 0, place) + 1


def _own(document: Document) -> Iterator[tuple[Section, int]]:
    """Sections, and where the first one below them begins; without those that only lead to the one below."""
    sections = document.parsed.sections
    if len(sections) > MOST_SECTIONS:
        start, end = document.parsed.body_start, len(document.text)
        sections = (Section((), start, end, 0),)
    for section, following in zip_longest(sections, sections[1:]):
        end = following.start if following else len(document.text)
        leads_on = following is not None and following.level > section.level > 0
        if not (leads_on and _BARE.fullmatch(document.text[section.start : end].strip())):
            yield section, end


def _cut(document: Document, section: Section, end: int, told: str) -> Iterator[Piece]:
    text, path = document.text[section.start : end], section.heading_path
    above = _above(document.title, path)
    # with what stands above it a piece must be one passage of the index
    for begin, stop in spans(text, LONGEST - len(above) - len(told) - 2):
        own = text[begin:stop].strip()
        start = section.start + text.index(own, begin)
        # the heading itself is where the text begins
        under = _with(_above(document.title, path[:-1]), told) if begin == 0 else above
        yield Piece(start, start + len(own), path, under, own)


def _with(above: str, told: str) -> str:
    return f"{above} {told}" if told else above


def _above(title: str, path: tuple[str, ...]) -> str:
    return _short(" › ".join(dict.fromkeys((title, *(heading for heading in path if heading)))), MOST_ABOVE)


def _told(document: Document) -> str:
    """Under what else a note is looked for: its file, other names, tags, and what its properties say."""
    parsed, name = document.parsed, name_of(document.path)
    names = [name] if name != document.title else []
    tags = [f"#{tag}" for tag in parsed.tags]
    rest = {key: value for key, value in parsed.properties.items() if key not in _TOLD_ALREADY}
    return _short(" ".join([*names, *parsed.aliases, *tags, *_values(rest)]), MOST_TOLD)


_TOLD_ALREADY = ("title", "aliases", "alias", "tags", "tag", "cssclasses", "cssclass", "position")


def _values(given: Any, depth: int = 3) -> Iterator[str]:
    if isinstance(given, dict):
        for key, value in given.items() if depth else ():
            yield from (f"{key} {said}" for said in _values(value, depth - 1))
    elif isinstance(given, list):
        for value in given if depth else ():
            yield from _values(value, depth - 1)
    elif isinstance(given, str) or (isinstance(given, float | int) and abs(given) < 1e15):
        yield str(given)


def _short(text: str, most: int) -> str:
    line = " ".join(text[: 4 * most].split())
    return line if len(line) <= most else line[:most].rpartition(" ")[0] or line[:most]
