"""The parts of a note that go to a model if the whole does not fit. Chosen by words only, without an index."""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import nlargest
from itertools import chain, pairwise

from msgspec import Struct

from recto.search.passages import MIN_PASSAGE_CHARS, split_passages
from recto.search.ranking import K1, B, idf
from recto.search.terms import query_terms, stem_word, topic_words, word_forms, words
from recto.vault.document import Document, Heading
from recto.vault.note_chunks import NoteChunk, note_chunks

_STOP = re.compile(r"\n+|(?<=[.!?…])[ \t]+|(?<=[。！？])")


class QuestionWords(Struct, frozen=True):
    stems: dict[str, str]
    """The stem of each word form, and the word of the question that it belongs to."""
    prefixes: tuple[str, ...] = ()
    """Single characters of scripts without spaces: they match every word that begins with them."""

    def found_in(self, text: str) -> set[str]:
        """The words of the question that occur in a text."""
        text_words = set(words(text))
        found = {self.stems[root] for word in text_words if (root := stem_word(word)) in self.stems}
        return found | {prefix for prefix in self.prefixes if any(word.startswith(prefix) for word in text_words)}


def question_words(question: str) -> QuestionWords:
    terms = query_terms(question)
    plain = [term for term in terms if not term.endswith("*")]
    stems = {stem_word(form): term for term in reversed(plain) for form in word_forms(term)}
    return QuestionWords(stems, tuple(term[:-1] for term in terms if term.endswith("*")))


def best_part(text: str, question: QuestionWords, limit: int) -> tuple[int, int]:
    """The part of a text, at most `limit` characters, with the most words of a question; words that occur seldom count
    more. The beginning if there are none. Split at the end of a line or a sentence if possible."""
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
    return _trim(text, parts[first][0], min(end, parts[first][0] + limit))


def _sentences(text: str, limit: int) -> Iterator[tuple[int, int]]:
    ends = [found.end() for found in _STOP.finditer(text)]
    for start, end in pairwise([0, *ends, len(text)]):
        within = split_passages(text[start:end], max(1, limit - MIN_PASSAGE_CHARS))
        yield from ((start + begin, start + stop) for begin, stop in within)


def _end(parts: Sequence[tuple[int, int]], first: int, limit: int) -> int:
    last = first + 1
    while last < len(parts) and parts[last][1] - parts[first][0] <= limit:
        last += 1
    return last


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    own = text[start:end].strip()
    begin = text.index(own, start)
    return begin, begin + len(own)


OMISSION = "\n\n…\n\n"
"""Stands for text that is left out."""
# How many of the best chunks are tried; and the share of the best score below which a chunk is about something else.
MAX_TRIED, MIN_SCORE_SHARE = 300, 0.3
# If not even the best chunk fits, this many characters of it are tried.
_SHORTER_CHARS = (600, 300, 150, 75)
# With less than this fraction of the room left, no more chunks are tried.
_MIN_ROOM_FRACTION = 20
# A heading, with its underline.
_LINE = re.compile(r"[^\r\n]*(?:\r?\n {0,3}(?:=+|-+)(?=[ \t\r]*(?:\n|\Z)))?")

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
    # then, if there is room: the beginning, which says what the note is about, and the neighbours of the best
    neighbours = [near for at in best for near in (at + 1, at - 1) if 0 <= near < len(chunks)]
    order = list(dict.fromkeys([*best, 0, *neighbours])) if best else list(range(len(chunks)))
    page = _Page(document)
    spans = (page.with_headings(chunks[at].start, chunks[at].end) for at in order)
    first = next(spans, [])
    if first and count(page.text_of(first)) > room:
        first = _shorten_chunk(page, chunks[order[0]], question, room, count)
    return page.parts(_fit(page, chain([first], spans), room, count, in_order=not best))


def parts_text(document: Document, parts: Sequence[NotePart]) -> str:
    """The parts as a model reads them."""
    return OMISSION.join(document.text[part.start : part.end] for part in parts)


def _scores(question: QuestionWords, chunks: Sequence[NoteChunk]) -> dict[int, float]:
    """BM25, without a share for neighbours: room is scarce, and a search has found the note already."""
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
    """As many groups of spans as fit, the best first; `in_order` stops at the first that does not fit."""
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


def _shorten_chunk(
    page: "_Page", chunk: NoteChunk, question: QuestionWords, room: int, count: CountTokens
) -> list[Span]:
    """The largest part of a chunk that fits."""
    for size in _SHORTER_CHARS:
        start, end = best_part(chunk.text, question, size)
        spans = page.with_headings(chunk.start + start, chunk.start + end)
        if count(page.text_of(spans)) <= room:
            return spans
    return []


class _Page:
    """A note's text, and the headings above each place in it."""

    def __init__(self, document: Document) -> None:
        self.text = document.text
        self._headings = document.parsed.headings
        self._starts = [heading.start for heading in self._headings]
        self._parents = list(_parents(self._headings))

    def with_headings(self, start: int, end: int) -> list[Span]:
        lines = (self._line(heading) for heading in self._above(start))
        return [*((first, last) for first, last in lines if first < start), (start, end)]

    def parts(self, spans: Iterable[Span]) -> list[NotePart]:
        return [NotePart(start, end, self._heading(start)) for start, end in self._merge(sorted(spans))]

    def text_of(self, spans: Iterable[Span]) -> str:
        return OMISSION.join(self.text[part.start : part.end] for part in self.parts(spans))

    def _merge(self, spans: Iterable[Span]) -> Iterator[Span]:
        """Joins spans that overlap, or have only white space between them."""
        last: Span | None = None
        for start, end in spans:
            if last and (start <= last[1] or not self.text[last[1] : start].strip()):
                last = last[0], max(last[1], end)
                continue
            if last:
                yield last
            last = start, end
        if last:
            yield last

    def _above(self, offset: int) -> list[Heading]:
        above: list[Heading] = []
        at = bisect_right(self._starts, offset) - 1
        while at >= 0:
            above.append(self._headings[at])
            at = self._parents[at]
        return above[::-1]

    def _heading(self, offset: int) -> str:
        at = bisect_right(self._starts, offset)
        return self._headings[at - 1].text if at else ""

    def _line(self, heading: Heading) -> Span:
        found = _LINE.match(self.text, heading.start)
        return heading.start, found.end() if found else heading.start


def _parents(headings: Sequence[Heading]) -> Iterator[int]:
    """For each heading the index of the one above it; -1 for none."""
    above: list[int] = []
    for at, heading in enumerate(headings):
        while above and headings[above[-1]].level >= heading.level:
            above.pop()
        yield above[-1] if above else -1
        above.append(at)
