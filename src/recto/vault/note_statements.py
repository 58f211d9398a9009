"""NoteStatement: a sentence, list item or table row of a note, as a person reads it. Knows documents, not questions."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from recto.search.passages import split_sentences
from recto.vault.document import Document
from recto.vault.links import DESTINATION, EMBED, WIKILINK

StatementKind = Literal["sentence", "item", "row", "table", "list"]
# A section is read this far around a place; longer tables and lists do not become one statement.
MAX_AROUND_CHARS, MAX_TABLE_CHARS = 3000, 400
MAX_ITEM_CHARS, MIN_ITEMS = 60, 2
# No author wraps a paragraph below this width: a shorter line ends where its author meant it to.
MIN_WIDTH = 60
# The most text kept after a sentence.
MAX_MORE_CHARS = 300

_NAMED = re.compile(r"[\w][\w -]{0,30}: ")
ITEM = re.compile(r"[ \t>]*(?:[-*+]|\d+[.)])[ \t]+(?:\[[ xX/-]\][ \t]+)?")
QUOTED = re.compile(r"^[ \t]*(?:>[ \t]*)+(?:\[![\w-]+\][+-]?[ \t]*)?")
_HEADING = re.compile(r" {0,3}#{1,6}(?:[ \t]|\r?$)|[ \t]*(?:=+|-{2,})[ \t\r]*$")
BLOCK_ID = re.compile(r"(?<![ \t])[ \t]++\^[A-Za-z0-9-]++[ \t\r]*+$", re.MULTILINE)
_LINK = re.compile(rf"\[([^\[\]\n]++)\]{DESTINATION}")
_MARK = re.compile(r"(\*\*|__|~~|==)(?=\S)|(?<![\w*])\*(?=\S)([^*\n]++)(?<=\S)\*(?!\w)|`([^`\n]++)`")


class NoteStatement(Struct, frozen=True):
    text: str
    """On one line, without Markdown; a table row includes the names of its columns."""
    kind: StatementKind
    heading: str
    """The nearest heading above it; empty above the first one."""
    line: int
    start: int
    """The start of its paragraph, item or row in the note."""
    end: int
    columns: str = ""
    """For a table and its rows: the column names, which all rows share."""
    more: str = ""
    """The text after it in its paragraph or item."""
    table: int | None = None
    """For a table row: the start of its table."""
    is_link: bool = False
    """True if it is nothing but links."""


def plain_text(markdown: str) -> str:
    """Markdown on one line as a person reads it: captions for links, no marks, no block ids."""
    text = EMBED.sub("", BLOCK_ID.sub("", markdown))
    text = _LINK.sub(r"\1", WIKILINK.sub(_caption, text))
    for _ in range(2):  # italics inside bold
        text = "\n".join(map(_without_marks, text.split("\n")))
    return " ".join(text.split())


def _without_marks(line: str) -> str:
    parts, at, start = list[str](), 0, 0
    unclosed = set[str]()  # marks without a closing one from here on: searched once
    while found := _MARK.search(line, start):
        mark, inside, end = found[1], found[2] or found[3], found.end()
        if mark:
            close = 0 if mark in unclosed else _closing(line, mark, end)
            if not close:
                unclosed.add(mark)
                start = found.start() + 1
                continue
            inside, end = line[end:close], close + len(mark)
        parts += [line[at : found.start()], inside]
        at = start = end
    return "".join([*parts, line[at:]])


def _closing(line: str, mark: str, start: int) -> int:
    """The position of the mark that closes what began before `start`, right after a character; 0 if there is none."""
    at = start
    while (at := line.find(mark, at + 1)) > 0:
        if not line[at - 1].isspace():
            return at
    return 0


def _caption(link: re.Match[str]) -> str:
    target, bar, caption = link[1].partition("|")
    return (caption if bar else target).lstrip("/#^").replace("#", " › ").replace("^", " › ")


def note_statements(document: Document, start: int, end: int) -> list[NoteStatement]:
    """The statements in one part of a note, read with the section around it, in order; tables as a whole."""
    first, last = _section(document, start, end)
    found = list(_Reader(document, first, last).statements())
    tables = {each.table for each in found if each.table is not None and each.start < end and each.end > start}
    return [each for each in found if (each.start < end and each.end > start) or each.table in tables]


def _section(document: Document, start: int, end: int) -> tuple[int, int]:
    """From the last heading above a part to the next one below it."""
    starts = [heading.start for heading in document.parsed.headings]
    at = bisect_right(starts, start)
    above = starts[at - 1] if at else document.parsed.body_start
    below = next((each for each in starts[at:] if each >= end), len(document.text))
    first, last = max(above, start - MAX_AROUND_CHARS), min(below, end + MAX_AROUND_CHARS)
    line_start, line_end = document.text.rfind("\n", 0, first) + 1, document.text.find("\n", last)
    return max(line_start, document.parsed.body_start), line_end if line_end >= 0 else len(document.text)


class _Line(Struct, frozen=True):
    text: str
    start: int
    number: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


class _Reader:
    def __init__(self, document: Document, start: int, end: int) -> None:
        self._headings = document.parsed.headings
        self._starts = [heading.start for heading in self._headings]
        self._lines, at = list[_Line](), start
        first = document.text.count("\n", 0, start) + 1
        for number, text in enumerate(document.text[start:end].split("\n"), first):
            self._lines.append(_Line(text.rstrip("\r"), at, number))
            at += len(text) + 1

    def statements(self) -> Iterator[NoteStatement]:
        """The statements in order. A list of short items is also a statement as a whole."""
        items = list[NoteStatement]()
        for each in self._each():
            if each.kind != "item" or (items and each.heading != items[-1].heading):
                yield from _together(items)
                items = []
            if each.kind == "item":
                items.append(each)
            yield each
        yield from _together(items)

    def _each(self) -> Iterator[NoteStatement]:
        lines, at = self._lines, 0
        while at < len(lines):
            first, end = lines[at].text, at + 1
            if _is_fence(first):
                while end < len(lines) and not _is_fence(lines[end].text):
                    if lines[end].text.strip():
                        yield self._statement(" ".join(lines[end].text.split()), "sentence", [lines[end]])
                    end += 1
                end += 1
            elif "|" in first and end < len(lines) and _is_ruler(lines[end].text) and not _HEADING.match(first):
                end = self._end(end, lambda text: "|" in text)
                rows = [(_cells(line.text), line) for line in lines[at + 2 : end]]
                yield from self._table(lines[at:end], _cells(first), rows)
            elif first.strip() and not _HEADING.match(first):
                end = self._prose_end(end)
                if not _HEADING.match(lines[end - 1].text):
                    yield from self._prose(lines[at:end])
            at = end

    def _end(self, at: int, continues: Callable[[str], bool]) -> int:
        while at < len(self._lines) and continues(self._lines[at].text):
            at += 1
        return at

    def _prose_end(self, end: int) -> int:
        """The end of a paragraph or item, or of a heading and the line under it."""
        lines = self._lines
        while end < len(lines) and (text := lines[end].text).strip():
            if ITEM.match(text) or _is_fence(text) or text.lstrip().startswith("|"):
                break
            if _HEADING.match(text):
                return end + (not text.lstrip().startswith("#"))
            end += 1
        return end

    def _prose(self, block: Sequence[_Line]) -> Iterator[NoteStatement]:
        lines = [QUOTED.sub("", line.text) for line in block]
        item = ITEM.match(lines[0])
        lines[0] = lines[0][item.end() :] if item else lines[0]
        sentences = [sentence for part in _wanted_lines(lines) for sentence in split_sentences(plain_text(part))]
        is_link = not any(map(str.isalnum, _LINK.sub("", WIKILINK.sub("", "\n".join(lines)))))
        for at, sentence in enumerate(sentences, 1):
            statement = self._statement(sentence, "item" if item else "sentence", block)
            yield replace(statement, more=_beginning(sentences, at), is_link=is_link)

    def _table(
        self, block: Sequence[_Line], header: Sequence[str], rows: Sequence[tuple[list[str], _Line]]
    ) -> Iterator[NoteStatement]:
        rows = [(cells, line) for cells, line in rows if any(cells)]
        for cells, line in rows:
            row = self._statement(_row_text(header, cells), "row", [line], " ".join(header).strip())
            yield replace(row, table=block[0].start)
        if rows and len(header) == 2:
            told = f"{header[1] or header[0]}: " + " · ".join(" ".join(filter(None, cells[:2])) for cells, _ in rows)
            if len(told) <= MAX_TABLE_CHARS:
                yield self._statement(told, "table", block, " ".join(header))

    def _statement(self, text: str, kind: StatementKind, lines: Sequence[_Line], columns: str = "") -> NoteStatement:
        at = bisect_right(self._starts, lines[0].start)
        heading = self._headings[at - 1].text if at else ""
        return NoteStatement(text, kind, heading, lines[0].number, lines[0].start, lines[-1].end, columns)


def _together(items: Sequence[NoteStatement]) -> Iterator[NoteStatement]:
    is_short = all(len(each.text) <= MAX_ITEM_CHARS and not each.more for each in items)
    if len(items) >= MIN_ITEMS and is_short and not all(each.is_link for each in items):
        told = " · ".join(each.text for each in items)
        if len(told) <= MAX_TABLE_CHARS:
            yield replace(items[0], text=told, kind="list", end=items[-1].end)


def _beginning(sentences: Sequence[str], at: int) -> str:
    told = ""
    while at < len(sentences) and len(told) < MAX_MORE_CHARS:
        told, at = f"{told}{' ' if told else ''}{sentences[at][:MAX_MORE_CHARS]}", at + 1
    return told[:MAX_MORE_CHARS]


def _wanted_lines(lines: Sequence[str]) -> list[str]:
    """The lines of a paragraph as its author meant them. A line continues if the next word would not have fitted, or if
    the next begins with a small letter and is not a label ("price: 7.50")."""
    width = max(MIN_WIDTH, *map(len, lines))
    wanted = [lines[0]]
    for before, line in pairwise(lines):
        first = line.split(maxsplit=1)[0] if line.strip() else ""
        fitted = len(before.rstrip()) + 1 + len(first) <= width
        if fitted and not before.rstrip().endswith((",", ";")) and (not first[:1].islower() or _NAMED.match(line)):
            wanted.append(line)
        else:
            wanted[-1] = f"{wanted[-1]}\n{line}"
    return wanted


def _cells(line: str) -> list[str]:
    cells = line.strip().strip("|").replace("\\|", "\0").split("|")
    return [plain_text(cell.replace("\0", "|")) for cell in cells]


def _is_ruler(line: str) -> bool:
    return "-" in line and not line.strip(" \t:|-\r")


def _is_fence(line: str) -> bool:
    return line.lstrip(" \t").startswith(("```", "~~~"))


def _row_text(header: Sequence[str], cells: Sequence[str]) -> str:
    """`Bilge pump · Size: 10 A`: a cell of words in the first column names the row and needs no column name."""
    named = [f"{name}: {cell}" if name else cell for name, cell in zip(header, cells, strict=False) if cell]
    if cells and cells[0] and any(map(str.isalpha, cells[0])):
        named[0] = cells[0]
    return " · ".join([*named, *(cell for cell in cells[len(header) :] if cell)])
