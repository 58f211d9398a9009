"""Finder: questions answered from an index: words first, meaning beside them where there is any, fused by rank."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from itertools import islice
from typing import Protocol

from recto.search.index import Index, Passage
from recto.search.question import Asked, Wanted, ask, who_is_named
from recto.search.rank import NAMED, NAMED_NEAR, RADIUS, fuse, held, most_possible, ranked, word_scores
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
        named = who_is_named(self.index, wanted.text, number)
        # meaning is asked first: while its thread looks it up, this one looks up words
        answer = self.meaning.near(named.bare, number) if self.meaning else NOBODY
        asked = ask(self.index, wanted, number, named)
        scores, shelf = self._by_words(wanted, asked, number)
        if asked.is_loose and len(scores) < wanted.most:
            asked = ask(self.index, wanted, number, named, strict=True)
            scores, shelf = self._by_words(wanted, asked, number)
        worth = _worth(asked, shelf, scores)
        near, note = answer()
        near = self._counting(wanted, shelf, near)
        best = _fused(worth, _close(asked, shelf, near)) if near else _best(worth)
        return Found(tuple(_hits(asked, shelf, scores, near, dict(islice(best.items(), wanted.most)))), note)

    def _by_words(self, wanted: Wanted, asked: Asked, number: int | None) -> tuple[dict[int, float], Shelf]:
        """What passages that count hold of what was asked for, and the shelf they stand on."""
        shelf = open_shelf(self.index, self._kept, number, asked.extent.passages)
        every = held(asked.postings, asked.extent.passages)
        if shelf.is_whole:
            scores = word_scores(every, shelf.lengths, asked.extent.mean)
            order: Iterable[int] = scores if len(scores) <= MOST_WEIGHED else ranked(scores)
            return {each: scores[each] for each in islice(self._taken(wanted, shelf, order), MOST_WEIGHED)}, shelf
        rough = word_scores(every, dict.fromkeys(set[int]().union(*(each.shares for each in every)), 1.0), 1.0)
        read = self._taken(wanted, shelf, self._read(shelf, ranked(rough)))
        lengths = {each: shelf.lengths[each] for each in islice(read, wanted.most + READ_AT_ONCE // 2)}
        return word_scores(every, lengths, asked.extent.mean), shelf

    def _read(self, shelf: Shelf, numbers: Sequence[int]) -> Iterator[int]:
        """Those that stand on a shelf that is not whole, read as they are asked for."""
        for at in range(0, len(numbers), READ_AT_ONCE):
            some = numbers[at : at + READ_AT_ONCE]
            shelf.put(self.index.passages(some))
            yield from (each for each in some if each in shelf.passages)

    def _taken(self, wanted: Wanted, shelf: Shelf, numbers: Iterable[int]) -> Iterator[int]:
        takes, passages = wanted.takes, shelf.passages
        return (each for each in numbers if takes(passages[each])) if takes else iter(numbers)

    def _counting(self, wanted: Wanted, shelf: Shelf, near: Mapping[int, float]) -> dict[int, float]:
        """Of what is near in meaning that which was wanted."""
        if not shelf.is_whole:
            nearest = nlargest(2 * DEEP, near, key=lambda each: (near[each], each))
            shelf.put(self.index.passages([each for each in nearest if each not in shelf.passages]))
        known = [each for each in near if each in shelf.passages]
        return {each: near[each] for each in self._taken(wanted, shelf, known)}


def _worth(asked: Asked, shelf: Shelf, scores: Mapping[int, float]) -> dict[int, float]:
    """What passages are worth by their words."""
    top = max(scores.values(), default=0.0) or 1.0
    priors = shelf.priors
    worth = {each: score / top + priors[each] for each, score in scores.items()}
    for each in asked.said(shelf.passages, worth):
        worth[each] *= NAMED
    return worth


def _close(asked: Asked, shelf: Shelf, near: Mapping[int, float]) -> dict[int, float]:
    """How near passages are in meaning, and to who is meant."""
    close = dict(near)
    for each in asked.said(shelf.passages, near):
        close[each] += NAMED_NEAR
    return close


def _best(worth: Mapping[int, float]) -> dict[int, float]:
    """The very best first, which is worth 1."""
    ranking = ranked(worth)
    return {each: worth[each] / (worth[ranking[0]] or 1.0) for each in ranking}


def _fused(worth: Mapping[int, float], close: Mapping[int, float]) -> dict[int, float]:
    fused = fuse(ranked(worth)[:DEEP], ranked(close)[:DEEP])
    return {each: fused[each] for each in ranked(fused)}


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
