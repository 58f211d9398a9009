"""Finder: answers a query from a keyword index and from vectors, and adds the two scores."""

import importlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from recto.search.keyword_index import KeywordIndex, Passage
from recto.search.query import ParsedQuery, Query, find_speaker, parse_query
from recto.search.ranking import RADIUS, SPEAKER_FACTOR, SPEAKER_SIMILARITY, Posting, SecondLook, fuse, max_score, rank
from recto.search.vector_index import Nearest, VectorIndex

if TYPE_CHECKING:
    from recto.search.partition import Partition

T = TypeVar("T")

__all__ = ["Finder", "Hit", "HitChoice", "Query", "SearchResult"]

# From this many passages on, numpy (0.1 s) is imported in the background.
WORTH_NUMPY = 2000
# The number of passages scored by words, and the smaller number if the best are scored again.
MAX_SCORED, FUSION_DEPTH = 800, 400
# A window seldom has room for more.
HIT_BATCH = 60
# The number of top passages that are scored again. If one of them has no vector, similarity does not count: passages
# with a vector would win just by having one.
LOOKED_AT = 30
# The language of the results is detected from the beginnings of this many of the best passages.
SAMPLED_PASSAGES, SAMPLED_CHARS = 5, 300
# The share of the final score that comes from the first scoring, which includes neighbours.
FIRST_LOOK_SHARE = 0.2
# Penalty for passages that only ask, such as a list of questions: they may hold the very words, but no answer.
QUESTION_FACTOR = 0.5


class Hit(Struct, frozen=True):
    passage: Passage
    score: float
    """Between 0 and 1: 1 for the best of every ranking."""
    because: str = ""
    word_score: float = 0.0
    """The share of the query in the passage and its neighbours; between 0 and about 1."""
    similarity: float | None = None


class SearchResult(Struct, frozen=True):
    hits: tuple[Hit, ...] = ()
    warning: str = ""
    """Why the result may be incomplete: no vectors, or not yet."""


HitChoice = Callable[[Iterator[Hit]], Sequence[Hit]]
"""Takes as many of the hits as are wanted, best first. The hits have no reasons yet."""


class Finder:
    def __init__(self, index: KeywordIndex, vectors: VectorIndex | None = None) -> None:
        self.index = index
        self.vectors = vectors
        self._cache: dict[int, Partition] = {}
        self._too_large: int | None = None
        """The last searched partition that was too large for a table of its passages."""

    def warm(self) -> None:
        """Do in the background what speeds up later searches but is too slow for a search itself."""
        if self.index.extent(None).passages > WORTH_NUMPY:
            importlib.import_module("recto.search.partition")
        number, self._too_large = self._too_large, None
        if number is not None:
            self.index.file.reading(lambda: self._partition(number, self.index.extent(number).passages, has_time=True))

    def _partition(self, number: int | None, size: int, *, has_time: bool = False) -> "Partition":
        from recto.search.partition import open_partition  # imports numpy

        return open_partition(self.index, self._cache, number, size, has_time=has_time)

    def find(self, query: Query, choose: HitChoice = list) -> SearchResult:
        """Best first; nothing for an empty query or an unknown partition."""
        return self.index.file.reading(lambda: self._find(query, choose))

    def _find(self, query: Query, choose: HitChoice) -> SearchResult:
        number = self.index.partition(query.partition) if query.partition is not None else None
        if (query.partition is not None and number is None) or not query.text.strip():
            return SearchResult()
        speaker = find_speaker(self.index, query.text, number)
        # vectors first: their thread works while this one looks up words
        answer = self.vectors.nearest(speaker.rest, number) if self.vectors else Nearest
        parsed = parse_query(self.index, query, number, speaker)
        if not parsed.extent.passages:
            return SearchResult(warning=answer().warning)
        partition = self._partition(number, parsed.extent.passages)
        if partition.table is None:
            self._too_large = number
        depth = FUSION_DEPTH if self.index.keeps_texts else MAX_SCORED
        scores = partition.score(query, parsed, depth)
        if parsed.is_loose and len(scores) < query.limit:
            parsed = parse_query(self.index, query, number, speaker, strict=True)
            scores = partition.score(query, parsed, depth)
        by_words = partition.with_priors(scores)
        if raised := parsed.by_speaker(self.index, by_words):
            by_words |= {each: by_words[each] * SPEAKER_FACTOR for each in raised}
            by_words = {each: by_words[each] for each in rank(by_words)}
        look = SecondLook(query.text) if self.index.keeps_texts else None
        texts = self.index.texts(islice(by_words, LOOKED_AT)) if look else {}
        if look:  # before waiting for vectors
            look.read(texts)
        near = answer().complete_for(list(islice(by_words, LOOKED_AT)))
        similarity = self._similarity(near, texts, by_words) if look else near.in_language(1.0)
        nearest = _accepted_similarity(query, parsed, partition, similarity)
        if look:
            by_words, nearest = self._look_again(look, partition, texts, by_words, nearest)
        possible = max_score(parsed.postings, parsed.extent.passages) or 1.0
        covered = max(scores.values(), default=0.0) / possible
        for each in parsed.by_speaker(self.index, nearest):
            nearest[each] += SPEAKER_SIMILARITY
        best = fuse(by_words, nearest, covered)
        hits = choose(_hits(query, partition, scores, possible, similarity, best))
        return SearchResult(tuple(_with_reasons(parsed, hits)), near.warning)

    def _similarity(self, near: Nearest, texts: Mapping[int, str], by_words: Iterable[int]) -> Mapping[int, float]:
        """The similarity of passages, as far as MiniLM knows their language. The query is not used: a few words, half
        of them names, do not show its language. The results are sampled because notes are in several languages."""
        beside, vectors = near.beside, self.vectors
        if vectors is None or not (near.similarity if beside is None else beside.similarity):
            return near.in_language(1.0)
        sampled = list(islice(by_words or near.similarity, SAMPLED_PASSAGES))
        known = texts or self.index.texts(sampled)
        sample = " ".join(known[each][:SAMPLED_CHARS] for each in sampled if each in known)
        nearest = list(islice(near.similarity, LOOKED_AT)) if beside is not None else []
        told = {**texts, **self.index.texts(each for each in nearest if each not in texts)}
        unknown = [each for each in nearest if not vectors.familiarity(told.get(each, "")[:SAMPLED_CHARS])]
        return near.in_language(vectors.familiarity(sample), unknown)

    def _look_again(
        self,
        look: SecondLook,
        partition: "Partition",
        texts: Mapping[int, str],
        by_words: Mapping[int, float],
        nearest: Mapping[int, float],
    ) -> tuple[dict[int, float], dict[int, float]]:
        """Both scores after the best passages by words were scored again; the others follow them. `texts` holds the
        texts of the best by words, which were already read."""
        first, top = list(islice(by_words, LOOKED_AT)), max(by_words.values(), default=0.0) or 1.0
        look.read(self.index.texts(each for each in islice(nearest, LOOKED_AT // 2) if each not in texts))
        seen, passages, share = look.scores(), partition.passages, FIRST_LOOK_SHARE
        partition.read(seen)
        asks = {each: QUESTION_FACTOR if passages[each].is_question else 1.0 for each in seen if each in passages}
        looked = {
            each: factor * ((1 - share) * seen[each] + share * by_words.get(each, 0.0) / top)
            for each, factor in asks.items()
        }
        least = min((looked[each] for each in first if each in looked), default=1.0)
        rest = {each: least * score / top for each, score in by_words.items() if each not in looked}
        near = {each: asks.get(each, 1.0) * nearest[each] for each in islice(nearest, FUSION_DEPTH)}
        return looked | rest, near


def _accepted_similarity(
    query: Query, parsed: ParsedQuery, partition: "Partition", similarity: Mapping[int, float]
) -> dict[int, float]:
    """The accepted nearest passages, nearest first. In a partition without a table, only those that can be among the
    best are read; the others just keep their places in the ranking."""
    if partition.table is not None:
        # a named speaker may raise any of them; otherwise only this many are fused
        needed = len(similarity) if parsed.names_speaker else FUSION_DEPTH
        accepted = partition.accepted(query, similarity, needed)
        return {each: similarity[each] for each in islice(accepted, needed)}
    left = iter(nearest := list(islice(similarity, 2 * FUSION_DEPTH)))
    needed, near = len(nearest) if parsed.names_speaker else query.limit, dict[int, float]()
    while len(near) < needed and (batch := list(islice(left, needed))):
        near.update((each, similarity[each]) for each in partition.accepted(query, batch, needed))
    for each in left:
        passage = partition.passages.get(each)
        if passage is None or query.accepts_passage(passage):
            near[each] = similarity[each]
    return near


def _hits(
    query: Query,
    partition: "Partition",
    scores: Mapping[int, float],
    possible: float,
    similarity: Mapping[int, float],
    best: Mapping[int, float],
) -> Iterator[Hit]:
    """Yield the best first, read as needed. `possible`: the word score of a passage that holds the whole query."""
    order, passages = iter(rank(best)[: query.limit]), partition.passages
    while batch := list(islice(order, HIT_BATCH)):
        partition.read(batch)
        for each in batch:
            if each in passages:
                score, words = round(min(1.0, best[each]), 4), min(1.0, scores.get(each, 0.0) / possible)
                yield Hit(passages[each], score, "", words, similarity.get(each))


def _with_reasons(parsed: ParsedQuery, hits: Sequence[Hit]) -> Iterator[Hit]:
    reasons = _word_reasons(parsed.postings, {each.passage.number for each in hits})
    for each in hits:
        words = reasons.get(each.passage.number, "")
        meaning = f"near in meaning ({each.similarity:.2f})" if each.similarity is not None else ""
        yield replace(each, because="; ".join(filter(None, (words, meaning))) or "near to what was found")


def _word_reasons(postings: Sequence[Posting], wanted: Collection[int]) -> dict[int, str]:
    held = _held_words(postings, wanted)
    reasons = {each: "holds " + ", ".join(islice(names, 4)) for each, names in held.items()}
    around = {each: range(each - RADIUS, each + RADIUS + 1) for each in wanted if each not in held}
    beside = _held_words(postings, set(chain.from_iterable(around.values())))
    for each, near in around.items():
        names = {name for number in near for name in beside.get(number, ())}
        if names:
            nearest = [name for name in dict.fromkeys(map(_word, postings)) if name in names][:3]
            reasons[each] = "stands beside what holds " + ", ".join(nearest)
    return reasons


def _held_words(postings: Sequence[Posting], numbers: Collection[int]) -> dict[int, dict[str, None]]:
    held: dict[int, dict[str, None]] = {}
    for posting in postings:
        for each in set(numbers).intersection(posting.numbers):
            held.setdefault(each, {})[_word(posting)] = None
    return held


def _word(posting: Posting) -> str:
    return posting.name.removesuffix("*")
