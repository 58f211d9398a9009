"""Finder: answers a query from a keyword index and from vectors, and adds up the two scores."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain, islice
from types import ModuleType
from typing import TYPE_CHECKING, Protocol, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from recto.search.hits import Hit, SearchResult, make_hits
from recto.search.keyword_index import KeywordIndex, Passage
from recto.search.query import ParsedQuery, Query, QueryAhead, find_speaker, parse_query
from recto.search.ranking import (
    NEIGHBOUR_WEIGHTS,
    RADIUS,
    SPEAKER_FACTOR,
    SPEAKER_SIMILARITY,
    Posting,
    best_first,
    fuse,
    passage_prior,
    posting_scores,
    rank,
    rough_scores,
    word_scores,
)
from recto.search.second_look import look_again

if TYPE_CHECKING:
    from recto.search.passage_table import PassageTable

K = TypeVar("K")
V = TypeVar("V")
__all__ = ["Finder", "Hit", "Query", "SearchResult", "VectorAnswer", "VectorSearch"]

# About ten megabytes. Of a larger partition, only the passages that a query needs are read.
MAX_CACHED_PASSAGES = 20_000
# The same as arrays: some fifty megabytes. What is too large without arrays is read into them in the background.
MAX_IN_TABLE = 1_000_000
# From so many passages on arrays are worth the import of numpy, in the background.
WORTH_ARRAYS = 2000
# How many partitions, that is conversations, stay in memory.
MAX_CACHED_PARTITIONS = 8
# How many passages are scored exactly, and how many are read at once from a partition that is not cached.
MAX_SCORED, READ_BATCH = 1500, 200
# How many of the nearest passages count.
FUSION_DEPTH = 400
# How many of the best passages are looked at again.
LOOKED_AT = 30
# How much of their scores is still that of the first look, which knows their neighbours.
FIRST_LOOK_SHARE = 0.2
# What a passage loses that only asks, such as a list of questions: it may hold the very words, but no answer.
QUESTION_FACTOR = 0.5
_OFFSETS = [(offset, NEIGHBOUR_WEIGHTS[abs(offset)]) for offset in range(-RADIUS, RADIUS + 1)]


class Partition(Struct):
    """A partition's passages in memory: all of them, or those that one query needs."""

    passages: dict[int, Passage] = field(default_factory=dict)
    """With a table only those that were needed so far."""
    lengths: dict[int, float] = field(default_factory=dict)
    """Word counts, averaged with the neighbours; with a table that has them."""
    priors: dict[int, float] = field(default_factory=dict)
    """Scores that do not depend on the query."""
    table: "PassageTable | None" = None
    is_complete: bool = False
    queue_end: int = 0
    change_id: str = ""
    removal_id: str = ""

    def put(self, fresh: Mapping[int, Passage]) -> None:
        """In a partition that is not complete, neighbours are unknown and do not count."""
        self.passages.update(fresh)
        for number, passage in fresh.items() if self.table is None else ():
            self.priors[number] = passage_prior(passage.words, passage.is_question)
            self.lengths[number] = passage.words

    def extend(self, index: KeywordIndex, number: int) -> None:
        """Reads what was added since the last time; everything if something was removed."""
        change_id = index.file.change_id
        if change_id == self.change_id and self.is_complete:
            return
        removal_id = index.mark("removed")
        if removal_id != self.removal_id:
            for cached in (self.passages, self.lengths, self.priors):
                cached.clear()
            self.queue_end, self.table = 0, None
        queue_end = index.queue_end
        if self.table is None and (arrays := load_arrays()):
            for cached in (self.passages, self.lengths, self.priors):
                cached.clear()
            self.table, self.queue_end = arrays.EMPTY_TABLE, 0
        if self.table is not None:
            self.table = self.table.extend(index.columns(number, self.queue_end))
        else:
            self._extend(index.added_since(number, self.queue_end) if self.queue_end else index.in_partition(number))
        self.queue_end = queue_end
        self.is_complete, self.change_id, self.removal_id = True, change_id, removal_id

    def _extend(self, fresh: Mapping[int, Passage]) -> None:
        self.put(fresh)
        affected = {near for each in fresh for near in range(each - RADIUS, each + RADIUS + 1)}
        self.lengths.update({near: self._length(near) for near in affected if near in self.passages})

    def _length(self, number: int) -> float:
        total = weight = 0.0
        for offset, part in _OFFSETS:
            if passage := self.passages.get(number + offset):
                total, weight = total + part * passage.words, weight + part
        # dividing by the weight makes up for missing neighbours at an edge
        return total / weight

    def later_than(self, position: int) -> set[int]:
        """The passages at later positions."""
        return {number for number, passage in self.passages.items() if passage.position > position}


def load_arrays() -> ModuleType | None:
    """Scoring by numpy; None without it, or until something else needs it: importing it takes longer than a search."""
    if sys.modules.get("numpy") is None:
        return None
    from recto.search import passage_table  # imports numpy

    return passage_table


def open_partition(index: KeywordIndex, cache: dict[int, Partition], number: int | None, size: int) -> Partition:
    """The complete partition from the cache, brought up to date; an empty one if it is too large to cache."""
    if number is None:
        return Partition()
    partition = cache.pop(number, None) or Partition()
    if size > (MAX_CACHED_PASSAGES if partition.table is None else MAX_IN_TABLE):
        return Partition()
    keep_recent(cache, number, partition, MAX_CACHED_PARTITIONS)
    partition.extend(index, number)
    return partition


def keep_recent(cache: dict[K, V], key: K, value: V, most: int) -> None:
    """Puts a value last into a cache and drops the first ones, which were not used for longest."""
    cache.pop(key, None)
    cache[key] = value
    while len(cache) > most:
        cache.pop(next(iter(cache)), None)


VectorAnswer = Callable[[], tuple[Mapping[int, float], str]]
"""Waits for the similarity of passages, the nearest first, and for a warning if there is none."""
NO_VECTORS: VectorAnswer = lambda: ({}, "")  # noqa: E731  an answer is a function


class VectorSearch(Protocol):
    """Finds passages by similarity. Starts at once; the result is there when the answer is called."""

    def prepare(self, text: Callable[[], str]) -> None: ...

    def nearest(self, text: str, partition: int | None) -> VectorAnswer: ...


class Finder:
    def __init__(self, index: KeywordIndex, vectors: VectorSearch | None = None) -> None:
        self.index = index
        self.vectors = vectors
        self._ahead = QueryAhead(index)
        self._cache: dict[int, Partition] = {}
        self._too_large: int | None = None
        """The partition that was last searched without a copy of it in memory."""

    def warm(self) -> None:
        """What makes the next searches faster and takes too long for a search itself: for the background."""
        if sys.modules.get("numpy") is None and self.index.extent(None).passages > WORTH_ARRAYS:
            with suppress(ImportError):
                import numpy  # noqa: F401  takes a tenth of a second
        number, self._too_large = self._too_large, None
        if number is None or load_arrays() is None or self.index.extent(number).passages > MAX_IN_TABLE:
            return
        partition = Partition()
        with self.index.file.in_use():
            partition.extend(self.index, number)
        keep_recent(self._cache, number, partition, MAX_CACHED_PARTITIONS)

    def prepare(self, query: Query) -> None:
        """Begins with what takes longest, before everything about a query is known; a second call does nothing."""
        if self._ahead.begin(query) and self.vectors:
            self.vectors.prepare(lambda: self._without_speakers(query))

    def _without_speakers(self, query: Query) -> str:
        with self.index.file.in_use():
            number = self.index.partition(query.partition) if query.partition is not None else None
            return find_speaker(self.index, query.text, number).rest if number is not None else query.text

    def find(self, query: Query) -> SearchResult:
        """The best passages first. Nothing for an empty query or an unknown partition."""
        with self.index.file.in_use():
            return self._find(query)

    def close(self) -> None:
        self._ahead.close()

    def _find(self, query: Query) -> SearchResult:
        number = self.index.partition(query.partition) if query.partition is not None else None
        if (query.partition is not None and number is None) or not query.text.strip():
            return SearchResult()
        speaker = find_speaker(self.index, query.text, number)
        # vectors first: their thread works while this one looks up words
        answer = self.vectors.nearest(speaker.rest, number) if self.vectors else NO_VECTORS
        parsed = self._ahead.take(query, number) or parse_query(self.index, query, number, speaker)
        scores, partition = self._score_words(query, parsed, number)
        if parsed.is_loose and len(scores) < query.limit:
            parsed = parse_query(self.index, query, number, speaker, strict=True)
            scores, partition = self._score_words(query, parsed, number)
        by_words = self._with_priors(parsed, partition, scores)
        similarity, warning = answer()
        nearest = self._accepted_similarity(query, parsed, partition, similarity)
        if self.index.keeps_texts:
            by_words, nearest = self._look_again(query.text, partition, by_words, nearest)
        best = fuse(by_words, self._with_speaker(parsed, partition, nearest))
        top = {each: best[each] for each in islice(best_first(best, query.limit), query.limit)}
        known = similarity if partition.is_complete else nearest
        self._read(partition, top)
        return SearchResult(tuple(make_hits(parsed, partition.passages, scores, known, top)), warning)

    def _score_words(self, query: Query, parsed: ParsedQuery, number: int | None) -> tuple[dict[int, float], Partition]:
        """Scores the accepted passages by words, and gives the partition they are in."""
        partition = open_partition(self.index, self._cache, number, parsed.extent.passages)
        if not partition.is_complete:
            self._too_large = number
            return self._score_needed(query, parsed, partition), partition
        if partition.table is not None and query.predicate is None:
            total, mean = parsed.extent.passages, parsed.extent.mean
            found = partition.table.score(parsed.postings, total, mean, query.until)
            return partition.table.best_within(found, query.stretch, MAX_SCORED), partition
        scores: dict[int, float] = {}
        for some in _best_first(query, parsed, partition):
            accepted = self._accepted(query, partition, some, FUSION_DEPTH)
            scores.update((each, some[each]) for each in islice(accepted, MAX_SCORED - len(scores)))
            if len(scores) == MAX_SCORED:
                break
        return scores, partition

    def _score_needed(self, query: Query, parsed: ParsedQuery, partition: Partition) -> dict[int, float]:
        """Scores passages of a partition that is not complete, those that are likely to be the best."""
        enough, total, mean = query.limit + READ_BATCH // 2, parsed.extent.passages, parsed.extent.mean
        if arrays := load_arrays():
            shares = arrays.TermShares(parsed.postings, total)
            best: Iterator[int] = chain.from_iterable(shares.score_roughly().best_first(enough + READ_BATCH))
            scores: dict[int, float] = shares.score_passages(self._lengths(query, partition, best, enough), mean)
            return scores
        postings = posting_scores(parsed.postings, total)
        best = best_first(rough_scores(postings), enough + READ_BATCH)
        return word_scores(postings, self._lengths(query, partition, best, enough), mean)

    def _lengths(self, query: Query, partition: Partition, numbers: Iterable[int], enough: int) -> dict[int, float]:
        """The lengths of the first accepted passages."""
        accepted = self._accepted(query, partition, numbers)
        return {each: partition.lengths[each] for each in islice(accepted, enough)}

    def _accepted(
        self, query: Query, partition: Partition, numbers: Iterable[int], at_once: int = READ_BATCH
    ) -> Iterator[int]:
        """The passages that are there and count for the query, read as they are needed."""
        left, passages = iter(numbers), partition.passages
        while batch := list(islice(left, at_once)):
            self._read(partition, batch)
            yield from query.accepted([each for each in batch if each in passages], passages)

    def _read(self, partition: Partition, numbers: Iterable[int]) -> None:
        if missing := [each for each in numbers if each not in partition.passages]:
            partition.put(self.index.passages(missing))

    def _accepted_similarity(
        self, query: Query, parsed: ParsedQuery, partition: Partition, similarity: Mapping[int, float]
    ) -> dict[int, float]:
        """The accepted of the nearest passages, the nearest first. Of a partition that is not complete as many are read
        as can be among the best; the others, unread, only keep their places in the ranking."""
        if partition.is_complete:
            # a named speaker may raise any of them; else no more than are fused
            needed = len(similarity) if parsed.names_speaker else FUSION_DEPTH
            if partition.table is not None and query.predicate is None:
                accepted: Iterable[int] = partition.table.within(similarity, query.stretch)
            else:
                accepted = self._accepted(query, partition, similarity, needed)
            return {each: similarity[each] for each in islice(accepted, needed)}
        nearest = list(islice(similarity, 2 * FUSION_DEPTH))
        needed = len(nearest) if parsed.names_speaker else query.limit
        near, at = dict[int, float](), 0
        while at < len(nearest) and len(near) < needed:
            batch = self._accepted(query, partition, nearest[at : at + needed])
            near.update((each, similarity[each]) for each in batch)
            at += needed
        passages = partition.passages
        unread = [each for each in nearest[at:] if each not in passages]
        kept = {*unread, *query.accepted([each for each in nearest[at:] if each in passages], passages)}
        near.update((each, similarity[each]) for each in nearest[at:] if each in kept)
        return near

    def _with_priors(self, parsed: ParsedQuery, partition: Partition, scores: Mapping[int, float]) -> dict[int, float]:
        """Word scores with the priors added, raised for the named speaker; the best first."""
        if partition.table is not None:
            raised = partition.table.with_priors(scores)
        else:
            top = max(scores.values(), default=0.0) or 1.0
            raised = {each: score / top + partition.priors[each] for each, score in scores.items()}
        if parsed.names_speaker:
            self._read(partition, raised)
            for each in parsed.by_speaker(partition.passages, raised):
                raised[each] *= SPEAKER_FACTOR
        elif partition.table is not None:
            return raised
        return {each: raised[each] for each in rank(raised)}

    def _look_again(
        self, text: str, partition: Partition, by_words: Mapping[int, float], nearest: Mapping[int, float]
    ) -> tuple[dict[int, float], dict[int, float]]:
        """Both scores, after the best passages were looked at again; by words the others come after them."""
        first, top = list(islice(by_words, LOOKED_AT)), max(by_words.values(), default=0.0) or 1.0
        seen = look_again(text, self.index.texts({*first, *islice(nearest, LOOKED_AT // 2)}))
        self._read(partition, seen)
        known = {each: partition.passages[each] for each in seen if each in partition.passages}
        asks = {each: QUESTION_FACTOR if passage.is_question else 1.0 for each, passage in known.items()}
        share = FIRST_LOOK_SHARE
        looked = {
            each: asks[each] * ((1 - share) * score + share * by_words.get(each, 0.0) / top)
            for each, score in seen.items()
            if each in known
        }
        least = min((looked[each] for each in first if each in looked), default=1.0)
        rest = {each: least * score / top for each, score in by_words.items() if each not in looked}
        near = {each: asks.get(each, 1.0) * nearest[each] for each in islice(nearest, FUSION_DEPTH)}
        return looked | rest, near

    def _with_speaker(
        self, parsed: ParsedQuery, partition: Partition, similarity: Mapping[int, float]
    ) -> Mapping[int, float]:
        """Similarity, raised for the named speaker."""
        if not parsed.names_speaker:
            return similarity
        self._read(partition, similarity)
        raised = dict(similarity)
        for each in parsed.by_speaker(partition.passages, similarity):
            raised[each] += SPEAKER_SIMILARITY
        return raised


def _without(posting: Posting, later: set[int]) -> Posting:
    if later.isdisjoint(posting.numbers):
        return posting
    return replace(posting, numbers=[each for each in posting.numbers if each not in later])


def _best_first(query: Query, parsed: ParsedQuery, partition: Partition) -> Iterator[Mapping[int, float]]:
    """The scores of a complete partition's passages, at least as many at once as are used; the best first."""
    found, total, mean = parsed.postings, parsed.extent.passages, parsed.extent.mean
    if partition.table is not None:
        yield from partition.table.score(found, total, mean, query.until).best_first(MAX_SCORED)
        return
    if query.until is not None and (later := partition.later_than(query.until)):
        found = tuple(_without(posting, later) for posting in found)
    scores = word_scores(posting_scores(found, total), partition.lengths, mean)
    order = iter(scores) if len(scores) <= MAX_SCORED else best_first(scores, MAX_SCORED)
    while some := {each: scores[each] for each in islice(order, MAX_SCORED)}:
        yield some
