"""PassageTable: a partition's passages as arrays, to score thousands of them at once. Imported late for numpy.

Gives the same scores as `ranking`, to the last bit: shares are added in the same order.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from recto.search.ranking import (
    ENOUGH_WORDS,
    K1,
    LENGTH_PRIOR,
    NEIGHBOUR_WEIGHTS,
    RADIUS,
    STATEMENT_PRIOR,
    B,
    Posting,
    idf,
    shares_by_distance,
)

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Stretch = tuple[int, int, int] | None
"""A branch, and the first and the last position on it; None for everything."""
Mask = NDArray[np.bool_] | None
"""Which passages of a table count; None for all of them."""

_STEPS = np.arange(-RADIUS, RADIUS + 1)
_DISTANCES = np.abs(_STEPS)
# Passages farther apart than this have no neighbour in common: a longer gap is shortened to it.
_MAX_GAP = 2 * RADIUS + 1
_FAR = 1 << 62


class Slots:
    """Places in an array for numbers with large gaps between them. Whatever is within RADIUS of one of the numbers has
    a place too, and so have its neighbours."""

    def __init__(self, numbers: Integers) -> None:
        self.numbers = numbers
        """Ascending."""
        steps = np.minimum(np.diff(numbers, prepend=numbers[:1]), _MAX_GAP)
        self.of_numbers: Integers = np.cumsum(steps) + _MAX_GAP
        self.count = int(self.of_numbers[-1]) + _MAX_GAP if len(numbers) else 0

    def find(self, numbers: Integers) -> Integers:
        """The slots of numbers; -1 for one that is not near enough."""
        if not len(self.numbers):
            return np.full(len(numbers), -1)
        after = np.searchsorted(self.numbers, numbers, side="right")
        before, last = np.maximum(after - 1, 0), np.minimum(after, len(self.numbers) - 1)
        above, below = numbers - self.numbers[before], numbers - self.numbers[last]
        slots = np.where(np.abs(below) <= RADIUS, self.of_numbers[last] + below, -1)
        return np.where(np.abs(above) <= RADIUS, self.of_numbers[before] + above, slots)


class WordScores(Struct, frozen=True):
    """The scores of passages, in the order of their numbers."""

    numbers: Integers
    scores: Floats
    slots: Integers

    def only(self, chosen: NDArray[np.bool_]) -> "WordScores":
        return WordScores(self.numbers[chosen], self.scores[chosen], self.slots[chosen])

    def best_first(self, count: int) -> Iterator[dict[int, float]]:
        """Some `count` of the best at a time, the best first; among equals the newest."""
        numbers, scores = self.numbers, self.scores
        while len(scores):
            cut = max(0, len(scores) - count)
            is_next = scores >= np.partition(scores, cut)[cut]
            yield _ranked(numbers[is_next], scores[is_next])
            numbers, scores = numbers[~is_next], scores[~is_next]


def _ranked(numbers: Integers, scores: Floats) -> dict[int, float]:
    """The best first; of equals, the last in this order."""
    order = len(scores) - 1 - np.argsort(-scores[::-1], kind="stable")
    return dict(zip(numbers[order].tolist(), scores[order].tolist(), strict=True))


class TermShares:
    """The passages that share terms with their neighbours: an entry per term and passage, term by term."""

    def __init__(
        self, postings: Sequence[Posting], total: int, slots: Slots | None = None, without: Integers | None = None
    ) -> None:
        found = [posting for posting in postings if posting.numbers]
        occurrences = [np.sort(np.array(posting.numbers, np.int64)) for posting in found]
        numbers = np.concatenate([np.empty(0, np.int64), *occurrences])
        terms = np.repeat(np.arange(len(found)), [len(each) for each in occurrences])
        if without is not None and len(without):
            is_kept = ~np.isin(numbers, without)
            numbers, terms = numbers[is_kept], terms[is_kept]
        spreads = np.array([posting.spreads for posting in found], bool)[terms]
        slots = slots or Slots(_each_once(numbers))
        own = slots.find(numbers)
        if spreads.any():
            row, column = np.nonzero(_is_nearest(numbers, terms, spreads) & (own >= 0)[:, None])
        else:
            row = np.flatnonzero(own >= 0)
            column = np.full(len(row), RADIUS)
        self.slots = own[row] + _STEPS[column]
        self.numbers = numbers[row] + _STEPS[column]
        self._slot_map = slots
        self._is_graded = spreads[row]
        self._shares, self._parts = _bm25_parts(found, total, terms[row], _DISTANCES[column])

    def score(self, lengths: Floats, mean: float) -> WordScores:
        """`lengths`: by slot; passages without one, that is NaN, get no score."""
        own = lengths[self.slots]
        return self._added(own * (K1 * B / mean), ~np.isnan(own))

    def score_roughly(self) -> WordScores:
        """As if every passage were as long as the mean."""
        return self._added(np.full(len(self.slots), K1 * B), np.ones(len(self.slots), bool))

    def score_passages(self, lengths: Mapping[int, float], mean: float) -> dict[int, float]:
        """The scores of passages of these lengths."""
        by_slot = np.full(self._slot_map.count, np.nan)
        slots = self._slot_map.find(np.fromiter(lengths, np.int64, len(lengths)))
        by_slot[slots[slots >= 0]] = np.fromiter(lengths.values(), np.float64, len(lengths))[slots >= 0]
        found = self.score(by_slot, mean)
        return dict(zip(found.numbers.tolist(), found.scores.tolist(), strict=True))

    def _added(self, by_length: Floats, is_scored: NDArray[np.bool_]) -> WordScores:
        slots = self.slots[is_scored]
        values = self._shares / np.where(self._is_graded, self._parts + by_length, 1.0)
        # bincount adds in the order of its input
        totals = np.bincount(slots, values[is_scored], self._slot_map.count).astype(np.float64, copy=False)
        numbers, has_score = np.empty(self._slot_map.count, np.int64), np.zeros(self._slot_map.count, bool)
        numbers[slots] = of_slots = self.numbers[is_scored]
        has_score[slots] = of_slots >= 0  # before the first passage there is none
        scored = np.flatnonzero(has_score)
        return WordScores(numbers[scored], totals[scored], scored)


def _each_once(numbers: Integers) -> Integers:
    """In order. As `np.unique`, which imports masked arrays first: longer than a search takes."""
    ordered = np.sort(numbers)
    once: Integers = ordered[np.diff(ordered, prepend=-1) != 0]
    return once


def _is_nearest(numbers: Integers, terms: Integers, spreads: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Per occurrence and step: whether the passage there has no nearer occurrence of the same term. Of two that are
    equally near the older one counts."""
    gap = np.where(np.diff(terms, append=-1) == 0, np.diff(numbers, append=0), _FAR)
    ahead = np.where(spreads, gap, 0)
    behind = np.where(spreads, np.concatenate((gap[-1:], gap[:-1])), 0)
    return np.concatenate(
        (
            behind[:, None] > 2 * _DISTANCES[:RADIUS],
            np.ones((len(numbers), 1), bool),
            ahead[:, None] >= 2 * _DISTANCES[RADIUS + 1 :],
        ),
        axis=1,
    )


def _bm25_parts(postings: Sequence[Posting], total: int, terms: Integers, distances: Integers) -> tuple[Floats, Floats]:
    """The numerators of BM25, and the parts of its denominators that do not depend on the length."""
    weights = [posting.weight * idf(posting.frequency, total) for posting in postings]
    graded = np.array([shares_by_distance(weight) for weight in weights]).reshape(-1, RADIUS + 1, 2)
    plain = np.array([not posting.spreads for posting in postings], bool)
    graded[plain, 0, 0] = np.array(weights)[plain]
    # as one index: two take three times as long
    entries = terms * (RADIUS + 1) + distances
    return graded[:, :, 0].ravel()[entries], graded[:, :, 1].ravel()[entries]


class PassageTable(Struct, frozen=True):
    """All passages of a partition, in the order of their numbers."""

    slots: Slots
    columns: Integers
    """Positions, branches, word counts, and 1 for a question."""
    lengths: Floats
    """Word counts, averaged with the neighbours."""
    lengths_by_slot: Floats
    """NaN where no passage is."""
    at_slot: Integers
    """The place of each slot's passage in the order of numbers; 0 where none is."""

    @property
    def numbers(self) -> Integers:
        return self.slots.numbers

    def extend(self, columns: Sequence[str]) -> "PassageTable":
        """With more passages: their numbers and columns, as `KeywordIndex.columns` gives them."""
        added, *values = (np.fromstring(column, np.int64, sep=",") for column in columns)
        if not len(added):
            return self
        numbers, chosen = np.unique(np.concatenate((self.numbers, added)), return_index=True)
        joined = np.concatenate((self.columns, np.array(values)), axis=1)[:, chosen]
        lengths = np.concatenate((self.lengths, np.zeros(len(added))))[chosen]
        slots = Slots(numbers)
        changed = _with_neighbours(np.searchsorted(numbers, added), len(numbers))
        lengths[changed] = _average(slots, joined[_WORDS], changed)
        by_slot, at_slot = np.full(slots.count, np.nan), np.zeros(slots.count, np.int64)
        by_slot[slots.of_numbers], at_slot[slots.of_numbers] = lengths, np.arange(len(numbers))
        return PassageTable(slots, joined, lengths, by_slot, at_slot)

    def score(self, postings: Sequence[Posting], total: int, mean: float, until: int | None = None) -> WordScores:
        """Occurrences at positions after `until` do not count."""
        later = self.numbers[np.flatnonzero(self.columns[_POSITION] > until)] if until is not None else None
        return TermShares(postings, total, self.slots, later).score(self.lengths_by_slot, mean)

    def of_branches(self, branches: Collection[int]) -> Mask:
        """Which passages are of these branches."""
        known = np.fromiter(branches, np.int64, len(branches))
        mask: Mask = np.isin(self.columns[_BRANCH], known)
        return mask

    def is_question(self, numbers: Iterable[int]) -> dict[int, bool]:
        """Those of the numbers that are passages, and whether they only ask."""
        wanted = np.fromiter(numbers, np.int64)
        there = wanted[self._is_within(wanted, None, None)]
        asks = self.columns[_ASKS, np.searchsorted(self.numbers, there)] > 0
        return dict(zip(there.tolist(), asks.tolist(), strict=True))

    def best_within(self, scores: WordScores, stretch: Stretch, mask: Mask, count: int) -> dict[int, float]:
        """The scores of the best passages in a stretch, the best first."""
        cut = len(scores.scores) - 2 * count
        if cut > 0:  # mostly enough of these are in it
            best = scores.only(scores.scores >= np.partition(scores.scores, cut)[cut])
            found = best.only(self._counts(self.at_slot[best.slots], stretch, mask))
            if len(found.scores) >= count:
                return next(found.best_first(count))
        found = scores.only(self._counts(self.at_slot[scores.slots], stretch, mask))
        return next(found.best_first(count), {})

    def within(self, numbers: Iterable[int], stretch: Stretch, mask: Mask) -> list[int]:
        """Those of the numbers that are passages in a stretch, in their order."""
        wanted = np.fromiter(numbers, np.int64)
        return list(wanted[self._is_within(wanted, stretch, mask)].tolist())

    def _is_within(self, numbers: Integers, stretch: Stretch, mask: Mask) -> NDArray[np.bool_]:
        if not len(self.numbers):
            return np.zeros(len(numbers), bool)
        at = np.minimum(np.searchsorted(self.numbers, numbers), len(self.numbers) - 1)
        is_there: NDArray[np.bool_] = self.numbers[at] == numbers
        return is_there & self._counts(at, stretch, mask)

    def _counts(self, at: Integers, stretch: Stretch, mask: Mask) -> NDArray[np.bool_]:
        """Whether the passages at these places are in a stretch."""
        counts = np.ones(len(at), bool) if mask is None else mask[at]
        if stretch is not None:
            branch, first, last = stretch
            positions, branches = self.columns[_POSITION, at], self.columns[_BRANCH, at]
            counts &= (first <= positions) & (positions <= last) & (branches == branch)
        return counts

    def with_priors(self, scores: Mapping[int, float]) -> dict[int, float]:
        """Scores scaled so that the best is 1, with what does not depend on the query; the best first."""
        numbers = np.sort(np.fromiter(scores, np.int64, len(scores)))
        values = np.fromiter(map(scores.__getitem__, numbers.tolist()), np.float64, len(scores))
        at = np.searchsorted(self.numbers, numbers)
        prior = np.where(self.columns[_ASKS, at] > 0, 0.0, STATEMENT_PRIOR)
        prior = prior + LENGTH_PRIOR * np.minimum(1.0, self.columns[_WORDS, at] / ENOUGH_WORDS)
        return _ranked(numbers, values / (values.max(initial=0.0) or 1.0) + prior)


_POSITION, _BRANCH, _WORDS, _ASKS = range(4)
_NONE = np.empty(0, np.int64)
EMPTY_TABLE = PassageTable(Slots(_NONE), np.empty((4, 0), np.int64), np.empty(0), np.empty(0), _NONE)


def _with_neighbours(places: Integers, count: int) -> Integers:
    """These places in the order of numbers, and those that may be near enough to matter for their lengths."""
    is_near = np.zeros(count + 2 * RADIUS, bool)
    for step in range(2 * RADIUS + 1):
        is_near[places + step] = True
    return np.flatnonzero(is_near[RADIUS : RADIUS + count])


def _average(slots: Slots, words: Integers, places: Integers) -> Floats:
    """The lengths of some passages: their word counts, averaged with the neighbours."""
    words_by_slot, is_there = np.zeros(slots.count), np.zeros(slots.count)
    words_by_slot[slots.of_numbers], is_there[slots.of_numbers] = words, 1.0
    own, total, weight = slots.of_numbers[places], np.zeros(len(places)), np.zeros(len(places))
    for step in range(-RADIUS, RADIUS + 1):
        part = NEIGHBOUR_WEIGHTS[abs(step)]
        total += part * words_by_slot[own + step]
        weight += part * is_there[own + step]
    return np.asarray(total / weight)
