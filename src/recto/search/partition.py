"""Partition: the passages that a query reads of a conversation or a vault, and their scores by words.

Imports numpy, so it is imported only to score passages.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from recto.search.keyword_index import KeywordIndex, Passage
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
    rank,
)

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

_OFFSETS = np.arange(-RADIUS, RADIUS + 1)
_WEIGHTS = np.array(NEIGHBOUR_WEIGHTS)
_FAR = 1 << 62


class WordScores(Struct, frozen=True):
    """In the order of the passages' numbers."""

    numbers: Integers
    scores: Floats

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
    return WordScores(numbers[scored], scores[scored])


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


# Passages read per batch, since they must be checked one by one; and how many more than wanted are scored.
READ_BATCH, MORE_THAN_WANTED = 200, 100


class Partition:
    """The passages of a partition, or of all, that one query reads."""

    def __init__(self, index: KeywordIndex) -> None:
        self._index = index
        self.passages: dict[int, Passage] = {}
        """The passages read so far."""

    def read(self, numbers: Iterable[int]) -> None:
        if missing := [each for each in numbers if each not in self.passages]:
            self.passages.update(self._index.passages(missing))

    def accepted(self, query: Query, numbers: Iterable[int], at_once: int = READ_BATCH) -> Iterator[int]:
        """Yield the given numbers that are passages and accepted by the query, in order, read as needed."""
        left = iter(numbers)
        while batch := list(islice(left, at_once)):
            self.read(batch)
            yield from (each for each in batch if (found := self.passages.get(each)) and query.accepts_passage(found))

    def score(self, query: Query, parsed: ParsedQuery) -> dict[int, float]:
        """The word scores of the accepted passages that are likely the best."""
        total, enough = parsed.extent.passages, query.limit + MORE_THAN_WANTED
        best = chain.from_iterable(score_roughly(parsed.postings, total).best_first(enough + READ_BATCH))
        numbers = np.array(sorted(islice(self.accepted(query, best), enough)), np.int64)
        sizes = self._index.sizes(set(chain.from_iterable(map(_reach, numbers.tolist()))))
        later = [each for each, (_, position) in sizes.items() if position > query.until] if query.until else []
        lengths, mean = _lengths(numbers, sizes), parsed.extent.mean
        found = score_words(parsed.postings, total, numbers, lengths, mean, np.array(later, np.int64))
        return dict(zip(found.numbers.tolist(), found.scores.tolist(), strict=True))

    def with_priors(self, scores: Mapping[int, float]) -> dict[int, float]:
        """Add what does not depend on the query and scale the best to 1; best first."""
        top, found = max(scores.values(), default=0.0) or 1.0, dict[int, float]()
        for each in sorted(scores):
            passage = self.passages[each]
            prior = 0.0 if passage.is_question else STATEMENT_PRIOR
            found[each] = scores[each] / top + prior + LENGTH_PRIOR * min(1.0, passage.words / ENOUGH_WORDS)
        return {each: found[each] for each in rank(found)}


def _lengths(numbers: Integers, sizes: Mapping[int, tuple[int, int]]) -> Floats:
    """Word counts, averaged with the neighbours."""
    known = np.array(sorted(sizes), np.int64)
    words = np.array([sizes[each][0] for each in known.tolist()], np.float64)
    places, steps = _around(known, numbers, np.searchsorted(known, numbers))
    distances = np.abs(steps)
    weights = np.where(distances <= RADIUS, _WEIGHTS[np.minimum(distances, RADIUS)], 0.0)
    lengths: Floats = (words[places] * weights).sum(1) / weights.sum(1) if len(numbers) else np.empty(0)
    return lengths


def _reach(number: int) -> range:
    return range(number - RADIUS, number + RADIUS + 1)
