"""Partition: the passages of a conversation, or of a vault, in memory, and their scores by words.

Imported only where passages are scored, since it imports numpy.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from recto.search.keyword_index import KeywordIndex, Passage, keep_recent
from recto.search.query import ParsedQuery, Query
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
)

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

_STEPS = np.arange(-RADIUS, RADIUS + 1)
_DISTANCES = np.abs(_STEPS)
_WEIGHTS = np.array(NEIGHBOUR_WEIGHTS)
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

    def only(self, chosen: Mask) -> "WordScores":
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
    """The passages that share terms with their neighbours: an entry per term and passage, term by term.

    Scores are those of BM25 with shares in place of counts: 1 for a passage with the term, less for its neighbours, by
    the distance to the nearest occurrence. Several occurrences nearby add nothing: else a long topic would outweigh a
    word that was said once.
    """

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
        self._slots = slots or Slots(_each_once(numbers))
        own = self._slots.find(numbers)
        row, column = np.nonzero(_is_nearest(numbers, terms, spreads) & (own >= 0)[:, None])
        self.slots = own[row] + _STEPS[column]
        self.numbers = numbers[row] + _STEPS[column]
        weights = np.array([posting.weight * idf(posting.frequency, total) for posting in found])[terms[row]]
        shares = _WEIGHTS[_DISTANCES[column]]
        self._is_graded = spreads[row]
        """Whether a greater distance or a longer passage lowers the score."""
        self._numerators = np.where(self._is_graded, weights * (1 + K1) * shares, weights)
        self._denominators = shares + K1 * (1 - B)
        """The parts that do not depend on the length."""

    def score(self, lengths: Floats, mean: float) -> WordScores:
        """`lengths`: by slot; passages without one, that is NaN, get no score."""
        own = lengths[self.slots]
        return self._added(own * (K1 * B / mean), ~np.isnan(own))

    def score_roughly(self) -> WordScores:
        """As if every passage were as long as the mean."""
        return self._added(np.full(len(self.slots), K1 * B), np.ones(len(self.slots), bool))

    def score_passages(self, lengths: Mapping[int, float], mean: float) -> dict[int, float]:
        """The scores of passages of these lengths."""
        by_slot = np.full(self._slots.count, np.nan)
        slots = self._slots.find(np.fromiter(lengths, np.int64, len(lengths)))
        by_slot[slots[slots >= 0]] = np.fromiter(lengths.values(), np.float64, len(lengths))[slots >= 0]
        found = self.score(by_slot, mean)
        return dict(zip(found.numbers.tolist(), found.scores.tolist(), strict=True))

    def _added(self, by_length: Floats, is_scored: Mask) -> WordScores:
        slots = self.slots[is_scored]
        values = self._numerators / np.where(self._is_graded, self._denominators + by_length, 1.0)
        # bincount adds in the order of its input
        totals = np.bincount(slots, values[is_scored], self._slots.count).astype(np.float64, copy=False)
        numbers, has_score = np.empty(self._slots.count, np.int64), np.zeros(self._slots.count, bool)
        numbers[slots] = of_slots = self.numbers[is_scored]
        has_score[slots] = of_slots >= 0  # before the first passage there is none
        scored = np.flatnonzero(has_score)
        return WordScores(numbers[scored], totals[scored], scored)


def _each_once(numbers: Integers) -> Integers:
    """In order. As `np.unique`, which imports masked arrays first: longer than a search takes."""
    ordered = np.sort(numbers)
    once: Integers = ordered[np.diff(ordered, prepend=-1) != 0]
    return once


def _is_nearest(numbers: Integers, terms: Integers, spreads: Mask) -> Mask:
    """Per occurrence and step: whether the passage there has no nearer occurrence of the same term. Of two that are
    equally near the older one counts."""
    gap = np.where(np.diff(terms, append=-1) == 0, np.diff(numbers, append=0), _FAR)
    ahead = np.where(spreads, gap, 0)
    behind = np.where(spreads, np.concatenate((gap[-1:], gap[:-1])), 0)
    own = np.ones((len(numbers), 1), bool)
    later, earlier = behind[:, None] > 2 * _DISTANCES[:RADIUS], ahead[:, None] >= 2 * _DISTANCES[RADIUS + 1 :]
    return np.concatenate((later, own, earlier), axis=1)


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
        later = self.numbers[self.columns[_POSITION] > until] if until is not None else None
        return TermShares(postings, total, self.slots, later).score(self.lengths_by_slot, mean)

    def mask(self, stretch: tuple[int, int, int] | None, branches: Collection[int] | None) -> Mask | None:
        """Which passages are of a stretch and of these branches; None if all are."""
        position, branch = self.columns[_POSITION], self.columns[_BRANCH]
        mask: Mask | None = None
        if stretch is not None:
            mask = (branch == stretch[0]) & (stretch[1] <= position) & (position <= stretch[2])
        if branches is not None:
            chosen = np.isin(branch, np.fromiter(branches, np.int64, len(branches)))
            mask = chosen if mask is None else mask & chosen
        return mask

    def masked(self, scores: WordScores, mask: Mask | None) -> WordScores:
        return scores if mask is None else scores.only(mask[self.at_slot[scores.slots]])

    def within(self, numbers: Iterable[int], mask: Mask | None) -> list[int]:
        """Those of the numbers that are passages and count, in their order."""
        wanted = np.fromiter(numbers, np.int64)
        if not len(self.numbers):
            return []
        at = np.minimum(np.searchsorted(self.numbers, wanted), len(self.numbers) - 1)
        counts = self.numbers[at] == wanted
        found: list[int] = wanted[counts if mask is None else counts & mask[at]].tolist()
        return found


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


# A table of so many passages, about two megabytes, is made during a search. A larger one of a chat is made in the
# background: until then, and beyond the maximum, about twenty megabytes, only what a query needs is read.
MAX_READ_PASSAGES, MAX_TABLE_PASSAGES = 20_000, 250_000
# So many passages that were read stay, since questions about one thing find the same ones.
MAX_KEPT_PASSAGES = 2000
# How many passages are read at once where those that count have to be read.
READ_BATCH = 200


class Partition:
    """A partition's passages in memory: a table of all of them, or only those that one query needs."""

    def __init__(self, index: KeywordIndex) -> None:
        self._index = index
        self.passages: dict[int, Passage] = {}
        """Those that were read."""
        self.table: PassageTable | None = None
        """None where a partition is too large, and for all partitions together."""
        self._mask: tuple[Collection[int] | None, Mask | None] = None, None
        """The branches that were asked for last."""
        self._queue_end, self._change_id, self._removal_id = 0, "", ""

    def update(self, number: int) -> None:
        """Reads into the table what was added since the last time; everything if something was removed."""
        index, change_id = self._index, self._index.file.change_id
        if self.table is not None and change_id == self._change_id:
            return
        removal_id, queue_end = index.mark("removed"), index.queue_end
        if self.table is None or removal_id != self._removal_id:
            self.passages.clear()
            self._queue_end, self.table = 0, EMPTY_TABLE
        self.table, self._mask = self.table.extend(index.columns(number, self._queue_end)), (None, None)
        self._queue_end, self._change_id, self._removal_id = queue_end, change_id, removal_id

    def read(self, numbers: Iterable[int]) -> None:
        if missing := [each for each in numbers if each not in self.passages]:
            self.passages.update(self._index.passages(missing))

    def accepted(self, query: Query, numbers: Iterable[int], at_once: int = READ_BATCH) -> Iterator[int]:
        """Those of the numbers that are passages and count for the query, in order; read as they are needed."""
        if self.table is not None:
            numbers = self.table.within(numbers, self._query_mask(self.table, query))
            if query.is_plain:
                yield from numbers
                return
        left = iter(numbers)
        while batch := list(islice(left, at_once)):
            self.read(batch)
            yield from (each for each in batch if (found := self.passages.get(each)) and query.accepts_passage(found))

    def score(self, query: Query, parsed: ParsedQuery, count: int) -> dict[int, float]:
        """The scores by words of about `count` accepted passages, the best; of a partition without a table those of
        the passages that are likely to be the best."""
        total, mean = parsed.extent.passages, parsed.extent.mean
        if self.table is None:
            enough, shares = query.limit + READ_BATCH // 2, TermShares(parsed.postings, total)
            best = chain.from_iterable(shares.score_roughly().best_first(enough + READ_BATCH))
            accepted = islice(self.accepted(query, best), enough)
            return shares.score_passages({each: self.passages[each].words for each in accepted}, mean)
        found = self.table.score(parsed.postings, total, mean, query.until)
        found = self.table.masked(found, self._query_mask(self.table, query))
        scores: dict[int, float] = {}
        for some in found.best_first(count):
            if query.is_plain:
                return some
            some_accepted = self.accepted(query, some, 2 * READ_BATCH)
            scores.update((each, some[each]) for each in islice(some_accepted, count - len(scores)))
            if len(scores) == count:
                break
        return scores

    def with_priors(self, scores: Mapping[int, float]) -> dict[int, float]:
        """Scores scaled so that the best is 1, with what does not depend on the query; the best first."""
        numbers = np.sort(np.fromiter(scores, np.int64, len(scores)))
        values = np.array([scores[each] for each in numbers.tolist()])
        if self.table is not None:
            words, asks = self.table.columns[_WORDS:, np.searchsorted(self.table.numbers, numbers)]
        else:
            passages = [self.passages[each] for each in numbers.tolist()]
            words, asks = np.array([(each.words, each.is_question) for each in passages], np.int64).reshape(-1, 2).T
        prior = np.where(asks > 0, 0.0, STATEMENT_PRIOR) + LENGTH_PRIOR * np.minimum(1.0, words / ENOUGH_WORDS)
        return _ranked(numbers, values / (values.max(initial=0.0) or 1.0) + prior)

    def _query_mask(self, table: PassageTable, query: Query) -> Mask | None:
        if query.stretch is not None or query.branches is None:
            return table.mask(query.stretch, query.branches)
        if self._mask[0] is not query.branches:
            self._mask = query.branches, table.mask(None, query.branches)
        return self._mask[1]


def open_partition(
    index: KeywordIndex, cache: dict[int, Partition], number: int | None, size: int, *, has_time: bool = False
) -> Partition:
    """The partition from the cache, brought up to date; one without a table if it is too large, or takes too long."""
    known = cache.get(number) if number is not None else None
    is_quick = known is not None or index.keeps_texts or has_time
    if number is None or size > (MAX_TABLE_PASSAGES if is_quick else MAX_READ_PASSAGES):
        return Partition(index)
    partition = known or Partition(index)
    if len(partition.passages) > MAX_KEPT_PASSAGES:
        partition.passages.clear()
    keep_recent(cache, number, partition)
    partition.update(number)
    return partition
