"""Partition: the passages of a conversation or a vault in memory, and their scores by words.

Imports numpy, so it is imported only to score passages.
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

_OFFSETS = np.arange(-RADIUS, RADIUS + 1)
_WEIGHTS = np.array(NEIGHBOUR_WEIGHTS)
_FAR = 1 << 62


class WordScores(Struct, frozen=True):
    """In the order of the passages' numbers."""

    numbers: Integers
    scores: Floats
    places: Integers
    """The indexes of these passages among all."""

    def only(self, chosen: Mask) -> "WordScores":
        return WordScores(self.numbers[chosen], self.scores[chosen], self.places[chosen])

    def best_first(self, count: int) -> Iterator[dict[int, float]]:
        """Yield batches of about `count`, best first; among equals, the newest first."""
        numbers, scores = self.numbers, self.scores
        while len(scores):
            cut = max(0, len(scores) - count)
            is_next = scores >= np.partition(scores, cut)[cut]
            yield _ranked(numbers[is_next], scores[is_next])
            numbers, scores = numbers[~is_next], scores[~is_next]


def _ranked(numbers: Integers, scores: Floats) -> dict[int, float]:
    """Best first; of equals, the last in this order."""
    order = len(scores) - 1 - np.argsort(-scores[::-1], kind="stable")
    return dict(zip(numbers[order].tolist(), scores[order].tolist(), strict=True))


def score_words(
    postings: Sequence[Posting],
    total: int,
    numbers: Integers,
    lengths: Floats,
    mean: float,
    without: Integers | None = None,
) -> WordScores:
    """Score the passages that have a term or are near one, by BM25 with shares in place of counts: 1 for a passage
    with the term, less for its neighbours, by distance to the nearest occurrence. Nearby occurrences do not add up:
    a long topic would outweigh a word that was said once. `numbers` ascend; occurrences in passages in `without` do
    not count."""
    found = [posting for posting in postings if posting.numbers]
    own, terms = _occurrences(found)
    if without is not None and len(without):
        is_kept = ~np.isin(own, without)
        own, terms = own[is_kept], terms[is_kept]
    spreads = np.array([posting.spreads for posting in found], bool)[terms]
    gap = np.full(len(own), _FAR)
    gap[:-1] = np.where(terms[1:] == terms[:-1], own[1:] - own[:-1], _FAR)
    ahead, behind = np.where(spreads, gap, 0), np.where(spreads, np.concatenate((gap[-1:], gap[:-1])), 1)
    offsets = _OFFSETS if spreads.any() else _OFFSETS[RADIUS : RADIUS + 1]
    places, steps = _around(numbers, own, np.searchsorted(numbers, own), offsets)
    distances = np.abs(steps)
    # of two equally near occurrences the older one counts
    is_nearest = 2 * np.minimum(distances, _OFFSETS.size) <= np.where(steps < 0, behind[:, None] - 1, ahead[:, None])
    chosen = np.flatnonzero(is_nearest & (distances <= RADIUS))
    row, places, shares = chosen // offsets.size, places.ravel()[chosen], _WEIGHTS[distances.ravel()[chosen]]
    weights = np.array([posting.weight * idf(posting.frequency, total) for posting in found])[terms[row]]
    graded = weights * (1 + K1) * shares / (shares + K1 * (1 - B) + lengths[places] * (K1 * B / mean))
    # bincount adds in the order of its input
    parts = np.where(spreads[row], graded, weights)
    scores = np.bincount(places, parts, len(numbers)).astype(np.float64, copy=False)
    scored = np.flatnonzero(np.bincount(places, minlength=len(numbers)))
    return WordScores(numbers[scored], scores[scored], scored)


def score_roughly(postings: Sequence[Posting], total: int) -> WordScores:
    """Score as if every passage had all neighbours and mean length."""
    own, _ = _occurrences([posting for posting in postings if not posting.spreads])
    spread, _ = _occurrences([posting for posting in postings if posting.spreads])
    ordered = np.sort(np.concatenate((own, (spread[:, None] + _OFFSETS).ravel())))
    # like `np.unique`, which first imports masked arrays: longer than a search takes
    is_new = ordered >= 0
    is_new[1:] &= ordered[1:] != ordered[:-1]
    numbers = ordered[is_new]
    return score_words(postings, total, numbers, np.ones(len(numbers)), 1.0)


def _occurrences(postings: Sequence[Posting]) -> tuple[Integers, Integers]:
    """The occurrences of all terms, term by term and ascending, and the term of each."""
    numbers = [np.sort(np.array(posting.numbers, np.int64)) for posting in postings]
    terms = np.repeat(np.arange(len(numbers)), [len(each) for each in numbers])
    return np.concatenate([np.empty(0, np.int64), *numbers]), terms


def _around(numbers: Integers, own: Integers, at: Integers, offsets: Integers = _OFFSETS) -> tuple[Integers, Integers]:
    """The indexes of the passages around some, whose numbers are `own`, and the steps to them: far if there is none. A
    passage is at most as many indexes away as its number, or fewer if others were removed."""
    places = at[:, None] + offsets
    is_there = (places >= 0) & (places < len(numbers))
    places = np.where(is_there, places, 0)
    return places, np.where(is_there, numbers[places] - own[:, None], _FAR) if len(numbers) else places + _FAR


class PassageTable(Struct, frozen=True):
    """All passages of a partition, in the order of their numbers."""

    numbers: Integers
    columns: Integers
    """Positions, branches, word counts, and 1 for a question."""
    lengths: Floats
    """Word counts, averaged with the neighbours."""

    def extend(self, columns: Sequence[str]) -> "PassageTable":
        added, *values = (np.fromstring(column, np.int64, sep=",") for column in columns)
        if not len(added):
            return self
        numbers, chosen = np.unique(np.concatenate((self.numbers, added)), return_index=True)
        joined = np.concatenate((self.columns, np.array(values)), axis=1)[:, chosen]
        lengths = np.concatenate((self.lengths, np.zeros(len(added))))[chosen]
        is_near = np.zeros(len(numbers) + 2 * RADIUS, bool)
        for step in range(2 * RADIUS + 1):
            is_near[np.searchsorted(numbers, added) + step] = True
        changed = np.flatnonzero(is_near[RADIUS:-RADIUS])
        places, steps = _around(numbers, numbers[changed], changed)
        weights = np.where(np.abs(steps) <= RADIUS, _WEIGHTS[np.minimum(np.abs(steps), RADIUS)], 0.0)
        lengths[changed] = (weights * joined[_WORDS][places]).sum(1) / weights.sum(1)
        return PassageTable(numbers, joined, lengths)

    def mask(self, stretch: tuple[int, int, int] | None, branches: Collection[int] | None) -> Mask | None:
        position, branch = self.columns[_POSITION], self.columns[_BRANCH]
        mask: Mask | None = None
        if stretch is not None:
            mask = (branch == stretch[0]) & (stretch[1] <= position) & (position <= stretch[2])
        if branches is not None:
            chosen = np.isin(branch, np.fromiter(branches, np.int64, len(branches)))
            mask = chosen if mask is None else mask & chosen
        return mask

    def within(self, numbers: Iterable[int], mask: Mask | None) -> list[int]:
        """The given numbers that are passages and accepted, in order."""
        wanted = np.fromiter(numbers, np.int64)
        if not len(self.numbers):
            return []
        at = np.minimum(np.searchsorted(self.numbers, wanted), len(self.numbers) - 1)
        counts = self.numbers[at] == wanted
        found: list[int] = wanted[counts if mask is None else counts & mask[at]].tolist()
        return found


_POSITION, _BRANCH, _WORDS, _ASKS = range(4)
EMPTY_TABLE = PassageTable(np.empty(0, np.int64), np.empty((4, 0), np.int64), np.empty(0))


# A table with up to the first number of passages, about two megabytes, is made during a search. Larger ones are made in
# the background for chats; until then, and beyond the second number (about twenty megabytes), only the passages that a
# query needs are read.
MAX_READ_PASSAGES, MAX_TABLE_PASSAGES = 20_000, 250_000
# Passages kept after reading, since related questions find the same ones.
MAX_KEPT_PASSAGES = 2000
# Passages read per batch when they must be checked one by one.
READ_BATCH = 200


class Partition:
    """A partition's passages in memory: a table of all, or only those needed by one query."""

    def __init__(self, index: KeywordIndex) -> None:
        self._index = index
        self.passages: dict[int, Passage] = {}
        """The passages read so far."""
        self.table: PassageTable | None = None
        """None if the partition is too large, and for all partitions together."""
        self._queue_end, self._change_id, self._removal_id = 0, "", ""

    def update(self, number: int) -> None:
        """Read additions into the table, or everything if something was removed."""
        index, change_id = self._index, self._index.file.change_id
        if self.table is not None and change_id == self._change_id:
            return
        removal_id, queue_end = index.mark("removed"), index.queue_end
        if self.table is None or removal_id != self._removal_id:
            self.passages.clear()
            self._queue_end, self.table = 0, EMPTY_TABLE
        self.table = self.table.extend(index.columns(number, self._queue_end))
        self._queue_end, self._change_id, self._removal_id = queue_end, change_id, removal_id

    def read(self, numbers: Iterable[int]) -> None:
        if missing := [each for each in numbers if each not in self.passages]:
            self.passages.update(self._index.passages(missing))

    def accepted(self, query: Query, numbers: Iterable[int], at_once: int = READ_BATCH) -> Iterator[int]:
        """Yield the given numbers that are passages and accepted by the query, in order, read as needed."""
        if self.table is not None:
            numbers = self.table.within(numbers, self.table.mask(query.stretch, query.branches))
            if query.is_plain:
                yield from numbers
                return
        left = iter(numbers)
        while batch := list(islice(left, at_once)):
            self.read(batch)
            yield from (each for each in batch if (found := self.passages.get(each)) and query.accepts_passage(found))

    def score(self, query: Query, parsed: ParsedQuery, count: int) -> dict[int, float]:
        """The word scores of about `count` of the best accepted passages; without a table, of the likely best."""
        total, mean = parsed.extent.passages, parsed.extent.mean
        if self.table is None:
            enough = query.limit + READ_BATCH // 2
            best = chain.from_iterable(score_roughly(parsed.postings, total).best_first(enough + READ_BATCH))
            numbers = sorted(islice(self.accepted(query, best), enough))
            words = np.array([float(self.passages[each].words) for each in numbers])
            found = score_words(parsed.postings, total, np.array(numbers, np.int64), words, mean)
            return dict(zip(found.numbers.tolist(), found.scores.tolist(), strict=True))
        table, mask = self.table, self.table.mask(query.stretch, query.branches)
        later = table.numbers[table.columns[_POSITION] > query.until] if query.until is not None else None
        found = score_words(parsed.postings, total, table.numbers, table.lengths, mean, later)
        if mask is not None:
            found = found.only(mask[found.places])
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
        """Add what does not depend on the query and scale the best to 1; best first."""
        numbers = np.sort(np.fromiter(scores, np.int64, len(scores)))
        values = np.array([scores[each] for each in numbers.tolist()])
        if self.table is not None:
            words, asks = self.table.columns[_WORDS:, np.searchsorted(self.table.numbers, numbers)]
        else:
            passages = [self.passages[each] for each in numbers.tolist()]
            words, asks = np.array([(each.words, each.is_question) for each in passages], np.int64).reshape(-1, 2).T
        prior = np.where(asks > 0, 0.0, STATEMENT_PRIOR) + LENGTH_PRIOR * np.minimum(1.0, words / ENOUGH_WORDS)
        return _ranked(numbers, values / (values.max(initial=0.0) or 1.0) + prior)


def open_partition(
    index: KeywordIndex, cache: dict[int, Partition], number: int | None, size: int, *, has_time: bool = False
) -> Partition:
    """The partition from the cache, updated; without a table if it is too large or would take too long."""
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
