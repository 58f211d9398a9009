"""Relevant: which parts of one note a model is given when the whole does not fit. By words only, without an index."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import nlargest
from itertools import chain

from recto.search.rank import RADIUS, Posting, held, word_scores
from recto.search.terms import content
from recto.vault.document import Document, Heading
from recto.vault.pieces import Piece, pieces
from recto.vault.wording import Wording, best_part, wording

LEFT_OUT = "\n\n…\n\n"
"""What stands where something of the note is left out."""
# So many of the best pieces are tried; what has less than this share of what the best has is about something else.
MOST_TRIED, LEAST = 300, 0.3
# So far apart neighbours share nothing: room is scarce, and a search has found the note already.
_APART = 2 * RADIUS + 1
# Where not even the best fits, so many characters of it may.
_SHORTER = (600, 300, 150, 75)
# When less than this part of the room is left, no more is tried.
_HARDLY = 20
# A heading, with what is drawn under it.
_LINE = re.compile(r"[^\r\n]*(?:\r?\n {0,3}(?:=+|-+)(?=[ \t\r]*(?:\n|\Z)))?")

Count = Callable[[str], int]
Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Part:
    start: int
    end: int
    heading: str
    """The one it begins with or stands under; empty above the first one."""


def relevant(document: Document, text: str, *, room: int, count: Count) -> list[Part]:
    """What of a note bears on a text, in order, with the headings above it; its beginning where nothing does. As it is
    `shown` it takes at most `room` tokens; there is none where not even a few words would fit."""
    asked, every = wording(text), [piece for piece in pieces(document) if piece.text]
    scores = _scores(asked, every)
    least = LEAST * max(scores.values(), default=0.0)
    best = [at for at in nlargest(MOST_TRIED, scores, key=lambda at: (scores[at], -at)) if scores[at] >= least]
    # where there is room left: what the note is about, which its beginning says, and what stands beside the best
    beside = [near for at in best for near in (at + 1, at - 1) if 0 <= near < len(every)]
    order = list(dict.fromkeys([*best, 0, *beside])) if best else list(range(len(every)))
    page = _Page(document)
    spans = (page.with_headings(every[at].start, every[at].end) for at in order)
    first = next(spans, [])
    if first and count(page.shown(first)) > room:
        first = _shortened(page, every[order[0]], asked, room, count)
    return page.parts(_fitting(page, chain([first], spans), room, count, in_order=not best))


def shown(document: Document, parts: Sequence[Part]) -> str:
    """The parts as a model reads them."""
    return LEFT_OUT.join(document.text[part.start : part.end] for part in parts)


def _scores(asked: Wording, every: Sequence[Piece]) -> dict[int, float]:
    places: dict[str, list[int]] = {}
    for at, piece in enumerate(every):
        for word in asked.held(f"{' '.join(piece.headings)}\n{piece.text}"):
            places.setdefault(word, []).append(at * _APART)
    postings = [Posting(word, numbers, len(numbers)) for word, numbers in places.items()]
    lengths = {at * _APART: float(len(content(piece.text))) for at, piece in enumerate(every)} if places else {}
    mean = sum(lengths.values()) / max(1, len(lengths))
    scores = word_scores(held(postings, len(every)), lengths, max(1.0, mean))
    return {number // _APART: score for number, score in scores.items()}


def _fitting(page: "_Page", spans: Iterable[Sequence[Span]], room: int, count: Count, *, in_order: bool) -> list[Span]:
    """As many as fit, the best first; or the first ones, up to where no more does."""
    chosen: list[list[Span]] = []
    known, left = set[Span](), room
    for each in spans:
        new = [span for span in each if span not in known]
        cost = count(LEFT_OUT.join(["", *(page.text[start:end] for start, end in new)]))
        if cost <= left:
            chosen.append(new)
            known.update(new)
            left -= cost
        elif in_order or left < room // _HARDLY:
            break
    # a text may have more tokens than its parts together
    while chosen and count(page.shown(chain.from_iterable(chosen))) > room:
        chosen.pop()
    return list(chain.from_iterable(chosen))


def _shortened(page: "_Page", piece: Piece, asked: Wording, room: int, count: Count) -> list[Span]:
    """Less and less of a piece."""
    for size in _SHORTER:
        start, end = best_part(piece.text, asked, size)
        spans = page.with_headings(piece.start + start, piece.start + end)
        if count(page.shown(spans)) <= room:
            return spans
    return []


class _Page:
    """A note's text, and which headings stand above a place."""

    def __init__(self, document: Document) -> None:
        self.text = document.text
        self._headings = document.parsed.headings
        self._starts = [heading.start for heading in self._headings]
        self._parents = list(_parents(self._headings))

    def with_headings(self, start: int, end: int) -> list[Span]:
        lines = (self._line(heading) for heading in self._above(start))
        return [*((first, last) for first, last in lines if first < start), (start, end)]

    def parts(self, spans: Iterable[Span]) -> list[Part]:
        return [Part(start, end, self._heading(start)) for start, end in self._merged(sorted(spans))]

    def shown(self, spans: Iterable[Span]) -> str:
        return LEFT_OUT.join(self.text[part.start : part.end] for part in self.parts(spans))

    def _merged(self, spans: Iterable[Span]) -> Iterator[Span]:
        """Those between which nothing stands, as one."""
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

    def _above(self, place: int) -> list[Heading]:
        above: list[Heading] = []
        at = bisect_right(self._starts, place) - 1
        while at >= 0:
            above.append(self._headings[at])
            at = self._parents[at]
        return above[::-1]

    def _heading(self, place: int) -> str:
        at = bisect_right(self._starts, place)
        return self._headings[at - 1].text if at else ""

    def _line(self, heading: Heading) -> Span:
        found = _LINE.match(self.text, heading.start)
        return heading.start, found.end() if found else heading.start


def _parents(headings: Sequence[Heading]) -> Iterator[int]:
    """For each heading the place of the one above it; -1 for none."""
    above: list[int] = []
    for at, heading in enumerate(headings):
        while above and headings[above[-1]].level >= heading.level:
            above.pop()
        yield above[-1] if above else -1
        above.append(at)
