"""Finder: answers a query from a keyword index and from vectors, and adds the two scores."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from recto.search.keyword_index import KeywordIndex, Passage
from recto.search.query import ParsedQuery, Query, find_speaker, parse_query
from recto.search.ranking import SPEAKER_FACTOR, SPEAKER_SIMILARITY, Posting, SecondLook, fuse, max_score, rank
from recto.search.vector_index import Nearest, VectorIndex

if TYPE_CHECKING:
    from recto.search.partition import Partition

T = TypeVar("T")

__all__ = ["Finder", "Hit", "HitChoice", "Query", "SearchResult"]

# The number of nearest passages that are added to those found by words.
FUSION_DEPTH = 400
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
        from recto.search.partition import Partition  # imports numpy

        partition = Partition(self.index)
        scores = partition.score(query, parsed)
        by_words = partition.with_priors(scores)
        if raised := parsed.by_speaker(self.index, by_words):
            by_words |= {each: by_words[each] * SPEAKER_FACTOR for each in raised}
            by_words = {each: by_words[each] for each in rank(by_words)}
        look = SecondLook(query.text) if self.index.keeps_texts else None
        texts = self.index.texts(islice(by_words, LOOKED_AT)) if look else {}
        if look:  # before waiting for vectors
            look.read(texts)
        near = answer().complete_for(list(islice(by_words, LOOKED_AT)))
        similarity = self._similarity(near, speaker.rest, texts, by_words) if look else near.similarity
        # a named speaker may raise any of them; otherwise only this many are fused
        enough = FUSION_DEPTH if parsed.names_speaker else query.limit
        accepted = partition.accepted(query, similarity, enough)
        nearest = {each: similarity[each] for each in islice(accepted, enough)}
        if look:
            by_words, nearest = self._look_again(look, partition, texts, by_words, nearest)
        possible = max_score(parsed.postings, parsed.extent.passages) or 1.0
        covered = max(scores.values(), default=0.0) / possible
        for each in parsed.by_speaker(self.index, nearest):
            nearest[each] += SPEAKER_SIMILARITY
        best = fuse(by_words, nearest, covered)
        hits = choose(_hits(query, partition, scores, possible, similarity, best))
        return SearchResult(tuple(_with_reasons(parsed, hits)), near.warning)

    def _similarity(
        self, near: Nearest, question: str, texts: Mapping[int, str], by_words: Iterable[int]
    ) -> Mapping[int, float]:
        """The similarity of passages, as far as the embedder knows their language. It shows in the results: a few
        words, half of them names, do not show the language of a query."""
        if self.vectors is None or not near.similarity:
            return near.similarity
        sampled = list(islice(by_words or near.similarity, SAMPLED_PASSAGES))
        known = texts or self.index.texts(sampled)
        sample = " ".join(known[each][:SAMPLED_CHARS] for each in sampled if each in known)
        factor = self.vectors.language_factor(question, sample)
        return {each: factor * score for each, score in near.similarity.items()} if factor else {}

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
    held: dict[int, dict[str, None]] = {}
    for posting in postings:
        for each in set(wanted).intersection(posting.numbers):
            held.setdefault(each, {})[_word(posting)] = None
    return {each: "holds " + ", ".join(islice(names, 4)) for each, names in held.items()}


def _word(posting: Posting) -> str:
    return posting.name.removesuffix("*")
