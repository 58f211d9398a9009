"""Finder: questions answered from an index: words first, meaning beside them where there is any, fused by rank."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from itertools import islice
from typing import Protocol

from recto.search.index import Index, Passage
from recto.search.question import Asked, Wanted, ask
from recto.search.rank import (
    ENOUGH,
    NAMED,
    NAMED_NEAR,
    NO_QUESTION,
    RADIUS,
    TELLING,
    fuse,
    held,
    most_possible,
    word_scores,
)
from recto.search.shelf import Shelf, open_shelf

__all__ = ["Answer", "Finder", "Found", "Hit", "Near", "Wanted"]

# How many passages are weighed exactly; how many are read at once of a shelf that is not kept.
MOST_WEIGHED, READ_AT_ONCE = 1500, 200
# So many of each ranking are fused.
DEEP = 400


@dataclass(frozen=True, slots=True)
class Hit:
    passage: Passage
    score: float
    """Between 0 and 1: 1 for the best in every ranking."""
    because: str = ""
    words: float = 0.0
    """How much of what was asked for it holds, neighbours included; between 0 and about 1."""
    meaning: float | None = None


@dataclass(frozen=True, slots=True)
class Found:
    hits: tuple[Hit, ...] = ()
    note: str = ""
    """What was not as it should be: no vectors, or not yet."""


Answer = Callable[[], tuple[Mapping[int, float], str]]
NOBODY: Answer = lambda: ({}, "")  # noqa: E731  an answer is a function


class Near(Protocol):
    """Who knows which passages are near in meaning: asked at once, answers when called; nothing, and why, when nobody
    can tell now."""

    def near(self, text: str, shelf: int | None) -> Answer: ...


class Finder:
    def __init__(self, index: Index, meaning: Near | None = None) -> None:
        self.index = index
        self.meaning = meaning
        self._kept: dict[int, Shelf] = {}

    def find(self, wanted: Wanted) -> Found:
        """The best passages, the very best first. An empty question, an empty shelf: nothing."""
        number = self.index.shelf(wanted.shelf) if wanted.shelf is not None else None
        if (wanted.shelf is not None and number is None) or not wanted.text.strip():
            return Found()
        asked = ask(self.index, wanted, number)
        # meaning is asked first: while its thread looks it up, this one looks up words
        answer = self.meaning.near(asked.bare, number) if self.meaning else NOBODY
        scores, shelf = self._by_words(wanted, asked, number)
        near, note = answer()
        near = self._counting(wanted, shelf, near)
        best = _best(asked, shelf, scores, near, wanted.most)
        return Found(tuple(_hits(asked, shelf, scores, near, best)), note)

    def _by_words(self, wanted: Wanted, asked: Asked, number: int | None) -> tuple[dict[int, float], Shelf]:
        """What passages that count hold of what was asked for, and the shelf they stand on."""
        shelf = open_shelf(self.index, self._kept, number, asked.extent.passages)
        every = held(asked.postings, asked.extent.passages)
        touched = sorted(set[int]().union(*(each.shares for each in every)), reverse=True)
        if len(touched) > MOST_WEIGHED or not shelf.is_whole:
            rough = word_scores(every, dict.fromkeys(touched, 1.0))
            touched.sort(key=rough.__getitem__, reverse=True)
        most = MOST_WEIGHED if shelf.is_whole else wanted.most + READ_AT_ONCE // 2
        counting = islice((each for each in self._known(shelf, touched) if wanted.takes(shelf.passages[each])), most)
        return word_scores(every, shelf.lengths(counting, asked.extent.mean)), shelf

    def _known(self, shelf: Shelf, numbers: Sequence[int]) -> Iterator[int]:
        """Those that stand on a shelf; where it is not whole they are read as they are asked for."""
        for at in range(0, len(numbers), READ_AT_ONCE):
            some = numbers[at : at + READ_AT_ONCE]
            if not shelf.is_whole:
                shelf.passages.update(self.index.passages(some))
            yield from (each for each in some if each in shelf.passages)

    def _counting(self, wanted: Wanted, shelf: Shelf, near: Mapping[int, float]) -> dict[int, float]:
        """Of what is near in meaning that which was wanted."""
        if not shelf.is_whole:
            nearest = nlargest(2 * DEEP, near, key=lambda each: (near[each], each))
            shelf.passages.update(self.index.passages([each for each in nearest if each not in shelf.passages]))
        known = shelf.passages
        return {each: value for each, value in near.items() if each in known and wanted.takes(known[each])}


def _best(
    asked: Asked, shelf: Shelf, scores: Mapping[int, float], near: Mapping[int, float], most: int
) -> dict[int, float]:
    """What the best are worth, the very best first."""
    top = max(scores.values(), default=0.0) or 1.0
    worth = {each: _worth(asked, shelf.passages[each], score / top) for each, score in scores.items()}
    if near:
        close = {each: _close(asked, shelf.passages[each], value) for each, value in near.items()}
        worth = fuse(_ranked(worth, DEEP), _ranked(close, DEEP))
        return {each: worth[each] for each in _ranked(worth, most)}
    ranking = _ranked(worth, most)
    return {each: worth[each] / (worth[ranking[0]] or 1.0) for each in ranking}


def _ranked(values: Mapping[int, float], most: int) -> list[int]:
    """Of equals the newest first."""
    return nlargest(most, values, key=lambda each: (values[each], each))


def _worth(asked: Asked, passage: Passage, share: float) -> float:
    value = share + (0.0 if passage.asks else NO_QUESTION) + TELLING * min(1.0, passage.words / ENOUGH)
    return value * NAMED if asked.is_from(passage) else value


def _close(asked: Asked, passage: Passage, near: float) -> float:
    return near + NAMED_NEAR if asked.is_from(passage) else near


def _hits(
    asked: Asked, shelf: Shelf, scores: Mapping[int, float], near: Mapping[int, float], best: Mapping[int, float]
) -> list[Hit]:
    possible = most_possible(asked.postings, asked.extent.passages) or 1.0
    places = [(posting.name.removesuffix("*"), frozenset(posting.numbers)) for posting in asked.postings]
    return [
        Hit(
            shelf.passages[each],
            round(min(1.0, score), 4),
            _because(each, places, near.get(each)),
            min(1.0, scores.get(each, 0.0) / possible),
            near.get(each),
        )
        for each, score in best.items()
    ]


def _because(number: int, places: Sequence[tuple[str, frozenset[int]]], near: float | None) -> str:
    parts = []
    if own := [name for name, numbers in places if number in numbers]:
        parts.append("holds " + ", ".join(own[:4]))
    else:
        around = range(number - RADIUS, number + RADIUS + 1)
        if beside := [name for name, numbers in places if not numbers.isdisjoint(around)]:
            parts.append("stands beside what holds " + ", ".join(beside[:3]))
    if near is not None:
        parts.append(f"near in meaning ({near:.2f})")
    return "; ".join(parts) or "near to what was found"
