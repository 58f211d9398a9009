"""Fitting: how well each chunk of each source serves a message, by the best of its sayings. Decides nothing."""

from collections import OrderedDict
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from itertools import accumulate
from typing import TYPE_CHECKING

from recto.choice.chunks import Chunk, chunks
from recto.choice.deck import Deck, Held, asked
from recto.choice.likelihood import BOTH, NEAR, WORDS, words_of
from recto.search.texts import Texts
from recto.sources.source import Source, SourceId

if TYPE_CHECKING:
    from recto.choice.likelihood import Rows
    from recto.search.rows import Row

# What is no longer offered is let go when so much more than what is has come together.
SPARE = 1000
# Those of the last messages: what is chosen from, and what is filtered, differ.
MOST_HANDS = 4
# A saying is quoted up to here; a smaller cosine is no nearness that one could tell of.
_QUOTED, _NEAR = 60, 0.2

Said = tuple[Mapping[int, Held], float]
"""What chunks hold of a saying, by their numbers, and what all of its words weigh."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A source as it is found."""

    chunks: tuple[Chunk, ...]
    numbers: tuple[int, ...]
    texts: tuple[Texts, ...]
    """What is embedded, for each chunk."""


@dataclass(frozen=True, slots=True)
class Fit:
    source: Source
    part: str | None
    """The section that fits best, of a source that has several."""
    score: float
    saying: str
    near: float | None = None
    words: tuple[str, ...] = ()

    @property
    def because(self) -> str:
        told = []
        if self.near is not None and self.near >= _NEAR:
            saying = self.saying if len(self.saying) <= _QUOTED else f"{self.saying[:_QUOTED].rstrip()}…"
            told.append(f"near in meaning ({self.near:.2f}) to '{saying}'")
        if self.words:
            told.append(f"holds {', '.join(sorted(self.words))}")
        return "; ".join(told) or "has little in common with the message"


class Hand:
    """The sources on offer for a message, chunk by chunk, in the order of their ids."""

    def __init__(self, deck: Deck, sources: Sequence[Source], entries: Sequence[Entry]) -> None:
        self._deck = deck
        self.chunks = [
            (source, chunk, number)
            for source, entry in zip(sources, entries, strict=True)
            for chunk, number in zip(entry.chunks, entry.numbers, strict=True)
        ]
        self.places = {number: at for at, (_, _, number) in enumerate(self.chunks)}
        self.among = set(self.places)
        each = [texts for entry in entries for texts in entry.texts]
        self.texts = Texts.joined(each)
        self.sizes = [len(texts) for texts in each]
        self.starts = [0, *accumulate(self.sizes)][:-1]
        chunked = [len(entry.chunks) for entry in entries]
        begins = [0, *accumulate(chunked)][:-1]
        self._of = {id(source): range(at, at + size) for source, at, size in zip(sources, begins, chunked, strict=True)}

    def of(self, source: Source) -> range:
        """Where the chunks of a source stand."""
        return self._of[id(source)]

    def words(self, sayings: Sequence[str]) -> list[Said]:
        return [self._deck.held(asked(saying), self.among) for saying in sayings]

    def worth(self, sentence: str) -> float:
        """How much of what is on offer a sentence speaks of."""
        held, _ = self._deck.held(asked(sentence), self.among)
        return max((each.mass for each in held.values()), default=0.0)


class Table:
    """All sources that were on offer lately, taken apart once."""

    def __init__(self) -> None:
        self._deck = Deck()
        self._entries: dict[SourceId, tuple[Source, Entry]] = {}
        # by object: hashing five hundred texts for every message would take longer than choosing
        self._hands: OrderedDict[tuple[int, ...], Hand] = OrderedDict()

    def hand(self, sources: Sequence[Source]) -> Hand:
        objects = tuple(map(id, sources))
        if (known := self._hands.get(objects)) is not None:
            self._hands.move_to_end(objects)
            return known
        self._forget(sources)
        ordered = sorted(sources, key=_order)
        entries = [self._entry(source) for source in ordered]
        hand = self._hands[objects] = Hand(self._deck, ordered, entries)
        if len(self._hands) > MOST_HANDS:
            self._hands.popitem(last=False)
        return hand

    def _entry(self, source: Source) -> Entry:
        known = self._entries.get(source.id)
        if known is not None and (known[0] is source or known[0] == source):
            return known[1]
        if known is not None:
            self._drop(source.id)
        made = chunks(source)
        entry = Entry(made, tuple(map(self._deck.put, made)), tuple(Texts.of(chunk.said) for chunk in made))
        self._entries[source.id] = source, entry
        return entry

    def _forget(self, sources: Sequence[Source]) -> None:
        """What is not on offer now, when that has become a lot."""
        if len(self._entries) > 2 * len(sources) + SPARE:
            for id in self._entries.keys() - {source.id for source in sources}:
                self._drop(id)

    def _drop(self, id: SourceId) -> None:
        self._deck.drop(self._entries.pop(id)[1].numbers)
        self._hands.clear()


def _order(source: Source) -> tuple[str, str, str]:
    """As ids are ordered."""
    id = source.id
    return id.kind, id.name, id.server


class Fits:
    """How well each chunk of a hand fits, by its place in the hand."""

    def __init__(self, hand: Hand, sayings: Sequence[str], words: Sequence[Said]) -> None:
        self._hand, self._sayings, self._words = hand, sayings, words
        self.scores: dict[int, float] = {}
        """Of those that have anything in common with the message."""
        self._by: dict[int, int] = {}
        self._near: dict[int, float] = {}

    def ranked(self, most: int | None = None) -> list[int]:
        """The best first; of equals the one whose source comes first."""
        places = sorted(self.scores)
        if most is None:
            return sorted(places, key=self.scores.__getitem__, reverse=True)
        return nlargest(most, places, key=self.scores.__getitem__)

    def source(self, at: int) -> Source:
        return self._hand.chunks[at][0]

    def fit(self, at: int) -> Fit:
        source, chunk, number = self._hand.chunks[at]
        saying = self._by[at]
        held = self._words[saying][0].get(number)
        words = tuple(held.words) if held else ()
        part = chunk.part or self._best_part(source)
        return Fit(source, part, self.scores[at], self._sayings[saying], self._near.get(at), words)

    def _best_part(self, source: Source) -> str | None:
        """Of a source that fits by its name as a whole: the section that fits best, the first one of equals."""
        places = [at for at in self._hand.of(source) if self._hand.chunks[at][1].part]
        best = max(places, key=lambda at: (self.scores.get(at, 0.0), -at), default=None)
        return None if best is None else self._hand.chunks[best][1].part

    def by_words(self, only: Container[int] | None = None) -> None:
        places = self._hand.places
        best: dict[int, float] = {}
        for saying, (held, total) in enumerate(self._words):
            for number, each in held.items():
                at = places[number]
                evidence = WORDS.of_words(words_of(each, total, self._hand.chunks[at][1]))
                if evidence > best.get(at, -1e9) and (only is None or at in only):
                    best[at], self._by[at] = evidence, saying
        self.scores |= {at: WORDS.score(evidence) for at, evidence in best.items()}

    def by_both(self, cosines: "Row") -> None:
        import numpy as np  # a tenth of a second

        hand = self._hand
        near = np.add.reduceat(cosines, hand.starts, axis=0) / np.asarray(hand.sizes, np.float32)[:, None]
        unknown = np.isnan(near[:, 0])
        near = np.where(unknown[:, None], np.float32(0), near)
        plain, rows = np.maximum(near, 0.0).astype(np.float64), np.arange(len(near))
        evidence = self._with_words(plain)
        best, nearest = evidence.argmax(1), plain.argmax(1)
        scores, alone = BOTH.scores(evidence[rows, best]), NEAR.scores(NEAR.near * plain[rows, nearest])
        # what is near enough needs no words
        best = np.where(alone > scores, nearest, best)
        self.scores = dict(enumerate(np.maximum(scores, alone).tolist()))
        self._by, self._near = dict(enumerate(best.tolist())), dict(enumerate(near[rows, best].tolist()))
        if unknown.any():
            without = np.flatnonzero(unknown).tolist()
            for at in without:
                del self.scores[at], self._by[at], self._near[at]
            self.by_words(frozenset(without))

    def _with_words(self, near: "Rows") -> "Rows":
        """What speaks for each chunk by each saying."""
        evidence: Rows = BOTH.near * near
        for saying, (held, total) in enumerate(self._words):
            places = [self._hand.places[number] for number in held]
            evidence[places, saying] += [
                BOTH.of_words(words_of(each, total, self._hand.chunks[at][1]))
                for at, each in zip(places, held.values(), strict=True)
            ]
        return evidence
