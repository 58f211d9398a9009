"""Choosing: which sources a message needs, by words and by meaning, each with its score and because of what.

Knows sources and messages as values; nothing of sessions, windows or who answers.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from recto.choice.deck import Asked, asked
from recto.choice.fitting import Fit, Fits, Table
from recto.search.embedder import MINILM, Embedder
from recto.search.sayings import sayings, shortened
from recto.search.text_vectors import Near, TextVectors
from recto.search.texts import Texts
from recto.search.yardstick import QUESTIONS, TEXTS, Yardstick, measured
from recto.sources.source import Source, SourceId

if TYPE_CHECKING:
    from recto.search.rows import Row

# What is less is not worth a line in a record.
LEAST = 0.02
# Two messages that are this near want about the same; how much one use is worth, and all of them.
ALIKE, ALIKE_WORDS = 0.6, 0.5
ONCE, MOST_LEARNED = 0.06, 0.15
# Of an earlier question so much is compared.
PAST_SIGNS = 600


@dataclass(frozen=True, slots=True)
class Limits:
    top_k: int = 20
    """So many chunks compete."""
    top_n: int = 5
    """So many sources at most, but for those that reach `include_score`."""
    include_score: float = 0.7
    """From here on every source is chosen."""
    min_score: float = 0.4
    """Below this none is."""


DEFAULT = Limits()


@dataclass(frozen=True, slots=True)
class Past:
    """An earlier turn, and what its reply really used."""

    question: str
    used: frozenset[SourceId]


@dataclass(frozen=True, slots=True)
class Candidate:
    source: Source
    score: float
    because: str
    part: str | None = None
    """The section that fits best, verbatim with its heading; None where the source is one chunk."""


@dataclass(frozen=True, slots=True)
class Choice:
    chosen: tuple[Candidate, ...] = ()
    passed: tuple[Candidate, ...] = ()
    """Those that came near; `because` says why not."""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Learned:
    """What similar messages have shown of a source."""

    raise_by: float
    times: int


class Chooser:
    def __init__(self, path: Path, embedder: Callable[[], Embedder | None], *, timeout_s: float) -> None:
        """`path`: a file of its own for vectors, which may be thrown away."""
        self.vectors = TextVectors(path, embedder, timeout_s=timeout_s)
        self._table = Table()
        self._yardstick: Yardstick | None = None
        self._is_told = False
        self._lock = threading.Lock()

    def choose(
        self, message: str, candidates: Sequence[Source], limits: Limits = DEFAULT, past: Sequence[Past] = ()
    ) -> Choice:
        """Never raises for what it cannot do: words answer for meaning, and `note` says so."""
        fits, learned, note = self._fits(message, candidates, past)
        found = [_candidate(fit, learned.get(fit.source.id)) for fit in _best(fits, limits.top_k, learned)]
        found.sort(key=lambda each: (-each.score, each.source.id))
        return replace(_chosen(found, limits), note=note)

    def scores(self, message: str, sources: Sequence[Source]) -> tuple[dict[SourceId, float], str]:
        """How well each serves the message, 0 where not at all."""
        fits, _, note = self._fits(message, sources, ())
        found = {source.id: 0.0 for source in sources}
        for at, score in fits.scores.items():
            id = fits.source(at).id
            found[id] = max(found[id], score)
        return found, note

    def _fits(
        self, message: str, sources: Sequence[Source], past: Sequence[Past]
    ) -> tuple[Fits, Mapping[SourceId, Learned], str]:
        message = shortened(message)
        with self._lock:
            hand = self._table.hand(sources)
            said = sayings(message, hand.worth)
            whole = [*said, message] if len(said) > 1 else said
            fits = Fits(hand, whole, hand.words(whole))
        if not said or not sources:
            return fits, {}, ""
        before = Texts.of(each.question[:PAST_SIGNS] for each in past)
        near = self.vectors.near(said, hand.texts, before)
        if near.cosines is None:
            fits.by_words()
        else:
            fits.by_both(self._read(near.cosines))
        others = None if near.others is None else self._read(near.others)[:, -1].tolist()
        learned = _learned(message, past, others)
        return fits, learned, self._note(near, len(hand.texts) + len(before))

    def _read(self, cosines: "Row") -> "Row":
        """On the scale that the scores were calibrated on."""
        if self.vectors.name == MINILM:
            return cosines
        if self._yardstick is None:
            told = self.vectors.near(QUESTIONS, Texts.of(TEXTS))
            if told.cosines is None or told.missing:
                return cosines
            self._yardstick = measured(told.cosines)
        return self._yardstick.read(cosines)

    def _note(self, near: Near, size: int) -> str:
        if near.note:
            return f"{near.note}: words alone chose the sources"
        was_told, self._is_told = self._is_told, bool(near.missing)
        if not near.missing or was_told:
            return ""
        return f"{near.missing:,} of {size:,} vectors of sources are still being made: words stand in for them"

    def close(self) -> None:
        self.vectors.close()


# -- deciding


def _best(fits: Fits, top_k: int, learned: Mapping[SourceId, Learned]) -> list[Fit]:
    """Of each source its best chunk among the best; of those that similar messages used also where it is not."""
    found: dict[SourceId, int] = {}
    for place, at in enumerate(fits.ranked(None if learned else top_k)):
        id = fits.source(at).id
        if (place < top_k and fits.scores[at] >= LEAST) or (top_k and id in learned):
            found.setdefault(id, at)
    return [fits.fit(at) for at in found.values()]


def _candidate(fit: Fit, learned: Learned | None) -> Candidate:
    because = fit.because
    if learned is None:
        return Candidate(fit.source, fit.score, because, fit.part)
    times = {1: "once", 2: "twice"}.get(learned.times, f"{learned.times} times")
    score = round(min(1.0, fit.score + learned.raise_by), 4)
    return Candidate(fit.source, score, f"{because}; similar messages used it {times}", fit.part)


def _chosen(found: Sequence[Candidate], limits: Limits) -> Choice:
    """The best first."""
    chosen, passed = list[Candidate](), list[Candidate]()
    for place, each in enumerate(found):
        if each.score >= limits.include_score or (place < limits.top_n and each.score >= limits.min_score):
            chosen.append(each)
            continue
        if each.score < limits.min_score:
            why = f"score {each.score:.2f} is below min_score {limits.min_score:g}"
        else:
            why = f"{place} others are better, and top_n is {limits.top_n}"
        passed.append(replace(each, because=f"{why}; {each.because}"))
    return Choice(tuple(chosen), tuple(passed))


# -- learning


def _learned(message: str, past: Sequence[Past], near: Sequence[float] | None) -> dict[SourceId, Learned]:
    """What similar messages used, and by how much that raises its score: never lowers it."""
    if not past:
        return {}
    own = asked(message)
    found: dict[SourceId, Learned] = {}
    for place, each in enumerate(past):
        share = _likeness(own, each.question, near[place] if near is not None else None)
        if share <= 0:
            continue
        for id in each.used:
            before = found.get(id, Learned(0.0, 0))
            found[id] = Learned(min(MOST_LEARNED, before.raise_by + ONCE * share), before.times + 1)
    return found


def _likeness(own: Asked, question: str, near: float | None) -> float:
    """From 0 to 1 where two messages are alike."""
    if near is not None and near == near:  # a vector that is not there yet is not equal to itself
        return (near - ALIKE) / (1 - ALIKE) * 0.5 + 0.5 if near >= ALIKE else 0.0
    other = asked(question)
    union = own.stems.keys() | other.stems.keys()
    share = len(own.stems.keys() & other.stems.keys()) / len(union) if union else 0.0
    return share if share >= ALIKE_WORDS else 0.0
