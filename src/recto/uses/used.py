"""Used: which sources a reply shows signs of using: a tool was called, words were quoted, a sentence was paraphrased.

What was said in the conversation before proves nothing. A rule that shapes how a reply is written (its language, its
length) leaves no words behind: no sign is then all that can honestly be told.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from recto.search.terms import words
from recto.sources.source import SourceId
from recto.uses.stat import Sign
from recto.uses.traces import (
    LITTLE,
    RUN,
    Sentence,
    Traces,
    is_phrase,
    joined,
    mark_of,
    runs_of,
    sentences_of,
    traces,
    weight_of,
)

QUOTE = 2.4
"""What a run of words must tell to be a quote and no phrase that everybody uses."""
EASED = 0.25
"""So much less for every word beyond the first six."""
LITERAL = 1.6
"""The same for what the source itself puts between quotation marks."""
NEW, MUCH_NEW = 2.7, 4.2
"""What a sentence must share with the source beyond what was known before; with so much, a smaller share is enough."""
SHARE, SMALL_SHARE = 0.5, 0.33
MORE = 0.6
"""So much more is asked of two sentences taken together."""
ITEM, TELLING, OWN = 1.5, 2.0, 2.4
"""The weight of a number, a name, an address; and of one that needs nothing beside it."""
WORN = 8
"""A common word that stands in more sentences of a source than this tells none of them apart."""
LONGEST_DETAIL = 80


@dataclass(frozen=True, slots=True)
class Given:
    """A source as it went in."""

    id: SourceId
    text: str
    call_name: str = ""
    """Of a tool: the name that the model calls."""


@dataclass(frozen=True, slots=True)
class Use:
    id: SourceId
    sign: Sign
    detail: str = ""
    """The words that were quoted, or the name that was called."""


def uses_of(reply: str, called: Collection[str], given: Sequence[Given], known: str) -> list[Use]:
    """One for each source, in their order; `known` is what the conversation held before."""
    read = [traces(each.text) if each.id.kind != "tool" else None for each in given]
    seen = Seen(reply, Known(known), [each for each in read if each])
    return [_use(each, found, called, seen) for each, found in zip(given, read, strict=True)]


def _use(given: Given, found: Traces | None, called: Collection[str], seen: "Seen") -> Use:
    if found is None:
        was_called = bool(given.call_name) and given.call_name in called
        return Use(given.id, "called", given.call_name) if was_called else Use(given.id, "")
    if quote := seen.quote(found):
        return Use(given.id, "quoted", shortened(quote))
    if (pair := seen.nearest(found)) is None:
        return Use(given.id, "")
    sign: Sign = "quoted" if pair.items else "paraphrased"
    return Use(given.id, sign, shortened(", ".join(pair.items) or pair.sentence))


class Known:
    """What was said before, read only as far as it is asked."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def _lines(self) -> list[tuple[str, frozenset[str]]]:
        return [_said(line) for line in self._text.splitlines() if line]

    @cached_property
    def _line(self) -> str:
        return f" {' '.join(said for said, _ in self._lines)} "

    @cached_property
    def _marks(self) -> frozenset[str]:
        return frozenset().union(*(marks for _, marks in self._lines))

    @cached_property
    def _folded(self) -> str:
        return self._text.casefold()

    def said(self, run: str) -> bool:
        return f" {run} " in self._line

    def bears(self, mark: str) -> bool:
        if " " in mark:  # a number with its unit
            return all(map(self.bears, mark.split(" ", 1)))
        return mark in self._marks or (not mark.isalpha() and mark in self._folded)


@lru_cache(maxsize=4096)
def _said(line: str) -> tuple[str, frozenset[str]]:
    """A conversation comes again with every turn, longer by a few lines."""
    said = words(line)
    return " ".join(said), frozenset(map(mark_of, said))


@dataclass(frozen=True, slots=True)
class Pair:
    """A sentence of the reply beside the one of a source that it is nearest to."""

    sentence: str
    new: float
    """What both share and nobody had said."""
    items: tuple[str, ...]
    """Of that, what is spelled in a way of its own: numbers, names, addresses."""


class Seen:
    """A reply, to be held against one source after another."""

    def __init__(self, reply: str, known: Known, sources: Sequence[Traces]) -> None:
        self._reply, self._known, self._sources = reply, known, sources
        self._words = tuple(words(reply))
        self._runs = runs_of(self._words)
        self._line = f" {' '.join(self._words)} "
        alone = tuple(sentences_of(reply))
        self._sentences = (*alone, *map(joined, alone, alone[1:]))
        self._marks = frozenset(mark for sentence in alone for mark in sentence.marks)
        self._worth: dict[str, float] = {}

    def quote(self, source: Traces) -> str:
        """Words in a row that the reply has from the source; empty where there are none."""
        for literal in source.literals:
            said = tuple(literal.split())
            if f" {literal} " in self._line and weight_of(said) >= LITERAL and not self._known.said(literal):
                return self._as_written(said)
        for first, last in self._stretches(source.runs):
            said = self._words[first : last + RUN]
            if weight_of(said) >= QUOTE - EASED * (len(said) - RUN) and not is_phrase(said):
                return self._as_written(said)
        return ""

    def _stretches(self, runs: frozenset[str]) -> Iterator[tuple[int, int]]:
        """Where runs of the source stand one behind the other, those aside that were known."""
        if runs.isdisjoint(self._runs):
            return
        places = [at for at, run in enumerate(self._runs) if run in runs and not self._known.said(run)]
        while places:
            length = next((n for n, at in enumerate(places) if at != places[0] + n), len(places))
            yield places[0], places[length - 1]
            places = places[length:]

    def _as_written(self, said: Sequence[str]) -> str:
        found = re.search(r"[\W_]+".join(map(re.escape, said)), self._reply, re.IGNORECASE)
        return found[0] if found else _rejoined(said)

    def nearest(self, source: Traces) -> Pair | None:
        """The pair of sentences that share the most that is new, where that is enough to tell."""
        new = self.new(source)
        pairs = (_pair(said, other, new) for said, other, amount in self.close(source, new) if amount >= OWN)
        return max((pair for pair in pairs if pair), key=lambda pair: pair.new, default=None)

    def new(self, source: Traces) -> dict[str, float]:
        """The marks that both bear and nobody had said, and how much each tells of where it is from."""
        return {mark: worth for mark in self._marks & source.places.keys() if (worth := self._new(mark))}

    def close(self, source: Traces, new: Mapping[str, float]) -> Iterator[tuple[Sentence, Sentence, float]]:
        """Sentences of both that have anything in common, and how much of that is new."""
        for said in self._sentences:
            told: dict[int, float] = {}
            for mark in said.marks.keys() & new.keys():
                if said.marks[mark] <= LITTLE and len(source.places[mark]) > WORN:
                    continue
                for place in source.places[mark]:
                    weight = min(said.marks[mark], source.sentences[place].marks[mark])
                    told[place] = told.get(place, 0.0) + weight * new[mark]
            yield from ((said, source.sentences[place], amount) for place, amount in told.items())

    def _new(self, mark: str) -> float:
        """What a mark tells of where it is from: nothing where it was known, less where several sources bear it."""
        if mark not in self._worth:
            bearing = sum(mark in source.places for source in self._sources) or 1
            self._worth[mark] = 0.0 if self._known.bears(mark) else bearing**-0.5
        return self._worth[mark]


def _pair(said: Sentence, other: Sentence, new: Mapping[str, float]) -> Pair | None:
    shared = {mark: min(weight, other.marks[mark]) for mark, weight in said.marks.items() if mark in other.marks}
    told = {mark: weight * new[mark] for mark, weight in shared.items() if mark in new}
    amount, largest = sum(told.values()), max(told.values(), default=0.0)
    share = sum(shared.values()) / min(said.weight, other.weight)
    more = MORE if said.is_joined else 0.0
    if not _tells(amount - more, share - more / 4, largest):
        return None
    return Pair(said.text, amount, tuple(mark for mark, weight in told.items() if weight >= ITEM))


def _tells(amount: float, share: float, largest: float) -> bool:
    if largest >= OWN:
        return True
    return amount >= NEW and share >= (SHARE if largest < TELLING and amount < MUCH_NEW else SMALL_SHARE)


def _rejoined(said: Sequence[str]) -> str:
    """Words side by side; the pairs of a script without spaces overlap."""
    text = said[0]
    for word in said[1:]:
        text += f" {word}" if word.isascii() or word[0] != text[-1] else word[1:]
    return text


def shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_DETAIL else line[: LONGEST_DETAIL - 1].rstrip() + "…"
