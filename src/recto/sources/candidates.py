"""Candidates: the sources that may be chosen for a message, split into chunks; and the score of each chunk, by its
words and by its meaning."""

import math
from collections import OrderedDict
from collections.abc import Container, Mapping, Sequence
from heapq import nlargest
from itertools import accumulate
from typing import TYPE_CHECKING

from msgspec import Struct

from recto.search.text_vectors import HashedTexts
from recto.sources.chunk_index import ChunkIndex, ChunkMatch, SourceChunk, name_weight, question_stems, source_chunks
from recto.sources.source import Source, SourceId

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from recto.search.vector_table import Row

    Rows = NDArray[np.float64]


TYPICAL_CHUNK_WORDS = 30
# The weight of one rare word: a message with less has no topic that a source could share.
MIN_QUERY_WEIGHT = 0.8
# Unused sources are dropped from the cache when there are this many more than candidates.
MAX_UNUSED_SOURCES = 1000
# Choosing and filtering use different candidates, so those of the last few messages stay.
MAX_CACHED_CANDIDATES = 4
_MAX_QUOTE_CHARS = 60
_MIN_SHOWN_SIMILARITY = 0.2

QueryMatches = tuple[Mapping[int, ChunkMatch], float]
"""The matches of a query by chunk number, and the weight of all its words."""


# -- weights


class WordOverlap(Struct, frozen=True):
    """The words that a chunk shares with a query."""

    share: float
    """How much of the query the chunk contains."""
    name: float
    """How much of its source's name the query contains."""
    density: float
    """The weight of the shared words, relative to the length of the chunk."""


class RelevanceWeights(Struct, frozen=True):
    similarity: float = 0.0
    share: float = 0.0
    name: float = 0.0
    density: float = 0.0
    scale: float = 1.0
    shape: float = 1.0

    def of_words(self, words: WordOverlap) -> float:
        return self.share * words.share + self.name * words.name + self.density * words.density

    def score(self, evidence: float) -> float:
        """From 0, for no evidence, to 1."""
        return round(1 - math.exp(-((evidence / self.scale) ** self.shape)), 4)

    def scores(self, evidence: "Rows") -> "Rows":
        import numpy as np  # takes a tenth of a second

        scores: Rows = np.round(1 - np.exp(-((evidence / self.scale) ** self.shape)), 4)
        return scores


# Fitted by bench/pick_fit.py.
COMBINED_WEIGHTS = RelevanceWeights(similarity=11.86, share=1.04, name=1.50, density=4.03, scale=9.93, shape=1.36)
KEYWORD_WEIGHTS = RelevanceWeights(share=3.02, name=2.70, density=5.52, scale=8.27, shape=1.42)
SIMILARITY_WEIGHTS = RelevanceWeights(similarity=18.29, scale=9.15, shape=1.93)


def word_overlap(match: ChunkMatch, query_weight: float, chunk: SourceChunk) -> WordOverlap:
    return WordOverlap(
        match.weight / max(query_weight, MIN_QUERY_WEIGHT),
        match.name / max(1.0, name_weight(chunk.name)),
        match.weight / (1 + len(chunk.stems) / TYPICAL_CHUNK_WORDS),
    )


# -- candidates


class ChunkedSource(Struct, frozen=True):
    chunks: tuple[SourceChunk, ...]
    numbers: tuple[int, ...]
    texts: tuple[HashedTexts, ...]
    """The texts to embed, for each chunk."""


class Candidates:
    """Sources by their chunks, in the order of the sources' ids. A chunk is known here by its position."""

    def __init__(self, index: ChunkIndex, sources: Sequence[Source], entries: Sequence[ChunkedSource]) -> None:
        self._index = index
        self.chunks = [
            (source, chunk, number)
            for source, entry in zip(sources, entries, strict=True)
            for chunk, number in zip(entry.chunks, entry.numbers, strict=True)
        ]
        self.positions = {number: position for position, (_, _, number) in enumerate(self.chunks)}
        self._numbers = set(self.positions)
        texts = [chunk_texts for entry in entries for chunk_texts in entry.texts]
        self.texts = HashedTexts.join(texts)
        self.sizes = [len(chunk_texts) for chunk_texts in texts]
        self.starts = [0, *accumulate(self.sizes)][:-1]
        counts = [len(entry.chunks) for entry in entries]
        firsts = [0, *accumulate(counts)][:-1]
        self._ranges = {
            id(source): range(first, first + count)
            for source, first, count in zip(sources, firsts, counts, strict=True)
        }

    def positions_of(self, source: Source) -> range:
        return self._ranges[id(source)]

    def match(self, queries: Sequence[str]) -> list[QueryMatches]:
        return [self._index.match(question_stems(query), self._numbers) for query in queries]

    def best_weight(self, sentence: str) -> float:
        """The weight of the best match for a sentence: how much it is about these sources."""
        matches, _ = self._index.match(question_stems(sentence), self._numbers)
        return max((match.weight for match in matches.values()), default=0.0)


class CandidateCache:
    """Recent candidates, so that each source is split only once."""

    def __init__(self) -> None:
        self._index = ChunkIndex()
        self._entries: dict[SourceId, tuple[Source, ChunkedSource]] = {}
        # by object identity: hashing five hundred texts for every message would take longer than choosing
        self._candidates: OrderedDict[tuple[int, ...], Candidates] = OrderedDict()

    def get(self, sources: Sequence[Source]) -> Candidates:
        objects = tuple(map(id, sources))
        if (cached := self._candidates.get(objects)) is not None:
            self._candidates.move_to_end(objects)
            return cached
        self._drop_unused(sources)
        ordered = sorted(sources, key=_sort_key)
        entries = [self._entry(source) for source in ordered]
        candidates = self._candidates[objects] = Candidates(self._index, ordered, entries)
        if len(self._candidates) > MAX_CACHED_CANDIDATES:
            self._candidates.popitem(last=False)
        return candidates

    def _entry(self, source: Source) -> ChunkedSource:
        known = self._entries.get(source.id)
        if known is not None and (known[0] is source or known[0] == source):
            return known[1]
        if known is not None:
            self._drop(source.id)
        chunks = source_chunks(source)
        entry = ChunkedSource(
            chunks, tuple(map(self._index.add, chunks)), tuple(HashedTexts.of(chunk.texts) for chunk in chunks)
        )
        self._entries[source.id] = source, entry
        return entry

    def _drop_unused(self, sources: Sequence[Source]) -> None:
        if len(self._entries) > 2 * len(sources) + MAX_UNUSED_SOURCES:
            for id in self._entries.keys() - {source.id for source in sources}:
                self._drop(id)

    def _drop(self, id: SourceId) -> None:
        self._index.remove(self._entries.pop(id)[1].numbers)
        self._candidates.clear()


def _sort_key(source: Source) -> tuple[str, str, str]:
    """The order of ids."""
    id = source.id
    return id.kind, id.name, id.server


# -- scores


class ChunkScore(Struct, frozen=True):
    source: Source
    part: str | None
    """The section that fits best, of a source with several."""
    score: float
    query: str
    similarity: float | None = None
    words: tuple[str, ...] = ()

    @property
    def because(self) -> str:
        reasons = []
        if self.similarity is not None and self.similarity >= _MIN_SHOWN_SIMILARITY:
            query = self.query
            quote = query if len(query) <= _MAX_QUOTE_CHARS else f"{query[:_MAX_QUOTE_CHARS].rstrip()}…"
            reasons.append(f"near in meaning ({self.similarity:.2f}) to '{quote}'")
        if self.words:
            reasons.append(f"holds {', '.join(sorted(self.words))}")
        return "; ".join(reasons) or "has little in common with the message"


class ChunkScores:
    """The score of each chunk of the candidates, by its position."""

    def __init__(self, candidates: Candidates, queries: Sequence[str], matches: Sequence[QueryMatches]) -> None:
        self._candidates, self._queries, self._matches = candidates, queries, matches
        self.scores: dict[int, float] = {}
        """Of the chunks that have anything in common with the message."""
        self._best_query: dict[int, int] = {}
        self._similarity: dict[int, float] = {}

    def ranked(self, limit: int | None = None) -> list[int]:
        """The best first; of equals, the one whose source comes first."""
        positions = sorted(self.scores)
        if limit is None:
            return sorted(positions, key=self.scores.__getitem__, reverse=True)
        return nlargest(limit, positions, key=self.scores.__getitem__)

    def source(self, position: int) -> Source:
        return self._candidates.chunks[position][0]

    def chunk_score(self, position: int) -> ChunkScore:
        source, chunk, number = self._candidates.chunks[position]
        query = self._best_query[position]
        match = self._matches[query][0].get(number)
        words = tuple(match.words) if match else ()
        part = chunk.part or self._best_part(source)
        similarity = self._similarity.get(position)
        return ChunkScore(source, part, self.scores[position], self._queries[query], similarity, words)

    def _best_part(self, source: Source) -> str | None:
        """The best section of a source that fits by its name; the first one of equals."""
        chunks = self._candidates.chunks
        positions = [position for position in self._candidates.positions_of(source) if chunks[position][1].part]
        best = max(positions, key=lambda position: (self.scores.get(position, 0.0), -position), default=None)
        return None if best is None else chunks[best][1].part

    def score_by_words(self, only: Container[int] | None = None) -> None:
        positions = self._candidates.positions
        best: dict[int, float] = {}
        for query, (matches, query_weight) in enumerate(self._matches):
            for number, match in matches.items():
                position = positions[number]
                overlap = word_overlap(match, query_weight, self._candidates.chunks[position][1])
                evidence = KEYWORD_WEIGHTS.of_words(overlap)
                if evidence > best.get(position, -1e9) and (only is None or position in only):
                    best[position], self._best_query[position] = evidence, query
        self.scores |= {position: KEYWORD_WEIGHTS.score(evidence) for position, evidence in best.items()}

    def score_by_words_and_meaning(self, cosines: "Row") -> None:
        """`cosines` has a row for each text and a column for each query. Chunks without vectors go by words."""
        import numpy as np  # takes a tenth of a second

        candidates = self._candidates
        mean = np.add.reduceat(cosines, candidates.starts, axis=0) / np.asarray(candidates.sizes, np.float32)[:, None]
        unknown = np.isnan(mean[:, 0])
        mean = np.where(unknown[:, None], np.float32(0), mean)
        similarity, rows = np.maximum(mean, 0.0).astype(np.float64), np.arange(len(mean))
        evidence = self._combined_evidence(similarity)
        best, nearest = evidence.argmax(1), similarity.argmax(1)
        combined = COMBINED_WEIGHTS.scores(evidence[rows, best])
        alone = SIMILARITY_WEIGHTS.scores(SIMILARITY_WEIGHTS.similarity * similarity[rows, nearest])
        # a chunk that is near enough needs no shared words
        best = np.where(alone > combined, nearest, best)
        self.scores = dict(enumerate(np.maximum(combined, alone).tolist()))
        self._best_query = dict(enumerate(best.tolist()))
        self._similarity = dict(enumerate(mean[rows, best].tolist()))
        if unknown.any():
            without_vectors = np.flatnonzero(unknown).tolist()
            for position in without_vectors:
                del self.scores[position], self._best_query[position], self._similarity[position]
            self.score_by_words(frozenset(without_vectors))

    def _combined_evidence(self, similarity: "Rows") -> "Rows":
        """The evidence for each chunk by each query."""
        evidence: Rows = COMBINED_WEIGHTS.similarity * similarity
        for query, (matches, query_weight) in enumerate(self._matches):
            positions = [self._candidates.positions[number] for number in matches]
            evidence[positions, query] += [
                COMBINED_WEIGHTS.of_words(word_overlap(match, query_weight, self._candidates.chunks[position][1]))
                for position, match in zip(positions, matches.values(), strict=True)
            ]
        return evidence
