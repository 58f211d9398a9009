"""Parts of a note: chunks, which are found on their own, and the parts that go to a model if the whole does not fit.

A chunk is a section's text or a piece of it, with title and headings. Knows documents, not the index.
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date
from heapq import nlargest
from itertools import chain, pairwise, zip_longest
from typing import Any

from msgspec import Struct

from recto.search.dates import YEAR, Day, named_days
from recto.search.keyword_index import text_hash
from recto.search.passages import MAX_PASSAGE_CHARS, MIN_PASSAGE_CHARS, split_passages
from recto.search.ranking import K1, B, idf
from recto.search.terms import query_terms, stem_word, topic_words, word_forms, words
from recto.vault.document import Document, NoteSection, note_name

# The length of title and headings in every chunk, and of the metadata in the first chunk.
MAX_HEADER_CHARS, MAX_METADATA_CHARS = 200, 250
# A note with more sections is machine-written: it is split by length alone.
MAX_SECTIONS = 3000
_EXCLUDED_PROPERTIES = ("title", "aliases", "alias", "tags", "tag", "cssclasses", "cssclass", "position")
_STOP = re.compile(r"\n+|(?<=[.!?…])[ \t]+|(?<=[。！？])")


class NoteChunk(Struct, frozen=True):
    start: int
    end: int
    headings: tuple[str, ...]
    """Its heading, then those above it."""
    header: str
    """Searched along with the text: title and headings; in the first chunk also names, tags and properties."""
    text: str
    """As written; empty only for a note without text."""

    @property
    def indexed_text(self) -> str:
        return f"{self.header}\n{self.text}" if self.text else self.header


def note_chunks(document: Document) -> list[NoteChunk]:
    """All chunks of a note, in order; an empty note has one chunk with its name."""
    metadata, found = _metadata(document), list[NoteChunk]()
    for section, end in _sections(document):
        found += _split(document, section, end, "" if found else metadata)
    start = document.parsed.body_start
    return found or [NoteChunk(start, start, (), _header(document.title, (), metadata), "")]


DATE_PROPERTIES = frozenset(("date", "datum", "fecha", "day", "created", "erstellt"))
# A statement that begins with a day was written then: "14 March 2026: launch on 13 June".
MAX_BEGINNING_CHARS = 18
NO_TIME = (0, 0, 0)


def note_day(document: Document) -> Day | None:
    properties = document.parsed.properties
    told = (str(properties[name]) for name in sorted(DATE_PROPERTIES & properties.keys()))
    days = (day for text in (*told, note_name(document.path)) for day in named_days(text))
    return next((day for day in days if day.year), None)


def order_in_time(document: Document, heading: str, text: str = "") -> tuple[int, int, int]:
    """The date of a statement, from its beginning, its heading, or the note's properties or name; zeros if unknown."""
    days = (*named_days(text[:MAX_BEGINNING_CHARS]), *named_days(heading), *filter(None, [note_day(document)]))
    if day := next((each for each in days if each.year), None):
        return day.year or 0, day.month, day.day or 0
    year = YEAR.search(f"{heading} {note_name(document.path)}")
    return int(year[0]) if year else 0, 0, 0


def note_date(document: Document) -> str:
    """The day of a note as an ISO date; empty if there is none or it is not a real date."""
    day = note_day(document)
    try:
        return date(day.year, day.month, day.day).isoformat() if day and day.year and day.day else ""
    except ValueError:
        return ""


def line_number(document: Document, offset: int) -> int:
    return document.text.count("\n", 0, offset) + 1


def _sections(document: Document) -> Iterator[tuple[NoteSection, int]]:
    """Sections, each with the start of its first subsection; without those that contain nothing but a heading above
    it."""
    sections = document.parsed.sections
    if len(sections) > MAX_SECTIONS:
        start, end = document.parsed.body_start, len(document.text)
        sections = (NoteSection((), start, end, 0, start),)
    for section, following in zip_longest(sections, sections[1:]):
        end = following.start if following else len(document.text)
        has_subsection = following is not None and following.level > section.level > 0
        if not has_subsection or document.text[section.body_start : end].strip().strip("=-"):
            yield section, end


def _split(document: Document, section: NoteSection, end: int, metadata: str) -> Iterator[NoteChunk]:
    text, path = document.text[section.start : end], section.heading_path
    header = _header(document.title, path)
    # with its header, a chunk must be one passage of the index
    for begin, stop in split_passages(text, MAX_PASSAGE_CHARS - len(header) - len(metadata) - 2):
        own = text[begin:stop].strip()
        start = section.start + text.index(own, begin)
        # the first chunk begins with the heading itself
        above = header if begin else _header(document.title, path[:-1], metadata)
        yield NoteChunk(start, start + len(own), path, above, own)


def _header(title: str, path: Sequence[str], metadata: str = "") -> str:
    header = _shorten(" › ".join(dict.fromkeys((title, *filter(None, path)))), MAX_HEADER_CHARS)
    return f"{header} {metadata}" if metadata else header


def _metadata(document: Document) -> str:
    """The other searched fields of a note: file name, aliases, tags and properties."""
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
    found: dict[bytes, list[NoteChunk]] = {}
    for chunk in note_chunks(document):
        found.setdefault(text_hash(chunk.indexed_text), []).append(chunk)
    return found


# -- the parts that match a text, chosen by words alone, without an index


class QuestionWords(Struct, frozen=True):
    stems: dict[str, str]
    """The stem of each word form, with its word of the question."""
    prefixes: tuple[str, ...] = ()
    """Single characters of scripts without spaces: they match every word that begins with them."""

    def found_in(self, text: str) -> set[str]:
        text_words = set(words(text))
        found = {self.stems[root] for word in text_words if (root := stem_word(word)) in self.stems}
        return found | {prefix for prefix in self.prefixes if any(word.startswith(prefix) for word in text_words)}


def question_words(question: str) -> QuestionWords:
    terms = query_terms(question)
    plain = [term for term in terms if not term.endswith("*")]
    stems = {stem_word(form): term for term in reversed(plain) for form in word_forms(term)}
    return QuestionWords(stems, tuple(term[:-1] for term in terms if term.endswith("*")))


OMISSION = "\n\n…\n\n"
# The number of chunks tried, and the share of the best score below which a chunk is about something else.
MAX_TRIED, MIN_SCORE_SHARE = 300, 0.3
# If not even the best chunk fits, this many characters of it are tried.
_SHORTER_CHARS = (600, 300, 150, 75)
# With less than this fraction of the room left, no more chunks are tried.
_MIN_ROOM_FRACTION = 20

CountTokens = Callable[[str], int]
Span = tuple[int, int]


class NotePart(Struct, frozen=True):
    start: int
    end: int
    heading: str
    """The heading it begins with or is under; empty above the first one."""


def relevant_parts(document: Document, text: str, *, room: int, count: CountTokens) -> list[NotePart]:
    """The parts of a note that match a text, in order, with the headings above them; the beginning if none match.
    Joined by `parts_text` they take at most `room` tokens; empty if not even a few words fit."""
    question, chunks = question_words(text), [chunk for chunk in note_chunks(document) if chunk.text]
    scores = _scores(question, chunks)
    threshold = MIN_SCORE_SHARE * max(scores.values(), default=0.0)
    best = [at for at in nlargest(MAX_TRIED, scores, key=lambda at: (scores[at], -at)) if scores[at] >= threshold]
    # if there is room: the beginning, which introduces the note, and the neighbours of the best
    neighbours = [near for at in best for near in (at + 1, at - 1) if 0 <= near < len(chunks)]
    order = list(dict.fromkeys([*best, 0, *neighbours])) if best else list(range(len(chunks)))
    page = _Page(document)
    spans = (page.with_headings(chunks[at].start, chunks[at].end) for at in order)
    first = next(spans, [])
    if first and count(page.text_of(first)) > room:
        first = _shorten_chunk(page, chunks[order[0]], question, room, count)
    return page.parts(_fit(page, chain([first], spans), room, count, in_order=not best))


def parts_text(document: Document, parts: Sequence[NotePart]) -> str:
    return OMISSION.join(document.text[part.start : part.end] for part in parts)


def _scores(question: QuestionWords, chunks: Sequence[NoteChunk]) -> dict[int, float]:
    """BM25, without sharing scores with neighbours: room is scarce, and the note is already found."""
    occurrences: dict[str, list[int]] = {}
    for at, chunk in enumerate(chunks):
        for word in question.found_in(f"{' '.join(chunk.headings)}\n{chunk.text}"):
            occurrences.setdefault(word, []).append(at)
    lengths = [len(topic_words(chunk.text)) for chunk in chunks] if occurrences else []
    mean = max(1.0, sum(lengths) / max(1, len(lengths)))
    scores: dict[int, float] = {}
    for found in occurrences.values():
        weight = idf(len(found), len(chunks)) * (1 + K1)
        for at in found:
            scores[at] = scores.get(at, 0.0) + weight / (1 + K1 * (1 - B) + K1 * B / mean * lengths[at])
    return scores


def _fit(
    page: "_Page", groups: Iterable[Sequence[Span]], room: int, count: CountTokens, *, in_order: bool
) -> list[Span]:
    """As many groups of spans as fit, best first; `in_order` stops at the first that does not fit."""
    chosen: list[list[Span]] = []
    known, left = set[Span](), room
    for group in groups:
        new = [span for span in group if span not in known]
        cost = count(OMISSION.join(["", *(page.text[start:end] for start, end in new)]))
        if cost <= left:
            chosen.append(new)
            known.update(new)
            left -= cost
        elif in_order or left < room // _MIN_ROOM_FRACTION:
            break
    # a text may have more tokens than its parts together
    while chosen and count(page.text_of(chain.from_iterable(chosen))) > room:
        chosen.pop()
    return list(chain.from_iterable(chosen))


def best_part(text: str, question: QuestionWords, limit: int) -> tuple[int, int]:
    """The part of a text, at most `limit` characters, with the most words of a question, rare words weighing more;
    without any, the beginning. Split after a line or sentence if possible."""
    if len(text) <= limit:
        return 0, len(text)
    parts = list(_sentences(text, limit)) or [(0, 0)]
    found = [question.found_in(text[start:end]) for start, end in parts]
    counts = Counter(word for some in found for word in some)
    ends = [_end(parts, first, limit) for first in range(len(parts))]
    scores = [sum(1 / counts[word] for word in set[str]().union(*found[at:end])) for at, end in enumerate(ends)]
    first = max(range(len(parts)), key=lambda at: (round(scores[at], 6), -at))
    end = parts[ends[first] - 1][1]
    while first and end - parts[first - 1][0] <= limit:
        first -= 1
    start = parts[first][0]
    own = text[start : min(end, start + limit)].strip()
    begin = text.index(own, start)
    return begin, begin + len(own)


def _sentences(text: str, limit: int) -> Iterator[tuple[int, int]]:
    ends = [found.end() for found in _STOP.finditer(text)]
    for start, end in pairwise([0, *ends, len(text)]):
        # long enough that splitting makes progress
        within = split_passages(text[start:end], max(limit // 2, limit - MIN_PASSAGE_CHARS))
        yield from ((start + begin, start + stop) for begin, stop in within)


def _end(parts: Sequence[tuple[int, int]], first: int, limit: int) -> int:
    last = first + 1
    while last < len(parts) and parts[last][1] - parts[first][0] <= limit:
        last += 1
    return last


def _shorten_chunk(
    page: "_Page", chunk: NoteChunk, question: QuestionWords, room: int, count: CountTokens
) -> list[Span]:
    for size in _SHORTER_CHARS:
        start, end = best_part(chunk.text, question, size)
        spans = page.with_headings(chunk.start + start, chunk.start + end)
        if count(page.text_of(spans)) <= room:
            return spans
    return []


class _Page:
    def __init__(self, document: Document) -> None:
        self.text = document.text
        self._headings = document.parsed.headings
        self._starts = [heading.start for heading in self._headings]
        self._above: list[list[Span]] = []
        """The lines of each heading and of those above it."""
        above: list[tuple[int, Span]] = []
        for heading in self._headings:
            above = [each for each in above if each[0] < heading.level]
            above.append((heading.level, (heading.start, heading.end)))
            self._above.append([line for _, line in above])

    def with_headings(self, start: int, end: int) -> list[Span]:
        at = bisect_right(self._starts, start)
        lines = self._above[at - 1] if at else []
        return [*(line for line in lines if line[0] < start), (start, end)]

    def parts(self, spans: Iterable[Span]) -> list[NotePart]:
        """Joins spans that overlap or are separated only by white space."""
        joined: list[Span] = []
        for start, end in sorted(spans):
            if joined and (start <= joined[-1][1] or not self.text[joined[-1][1] : start].strip()):
                start, end = joined[-1][0], max(joined.pop()[1], end)
            joined.append((start, end))
        return [NotePart(start, end, self._heading(start)) for start, end in joined]

    def text_of(self, spans: Iterable[Span]) -> str:
        return OMISSION.join(self.text[part.start : part.end] for part in self.parts(spans))

    def _heading(self, offset: int) -> str:
        at = bisect_right(self._starts, offset)
        return self._headings[at - 1].text if at else ""
