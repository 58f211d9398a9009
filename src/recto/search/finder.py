"""Finder: answers a query from a keyword index and from vectors, and adds up the two scores."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, islice
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from recto.search.keyword_index import KeywordIndex, Passage
from recto.search.nearest import NO_VECTORS, Nearest, VectorSearch
from recto.search.partition import (
    MAX_CACHED_PARTITIONS,
    MAX_TABLE_PASSAGES,
    Partition,
    keep_recent,
    load_arrays,
    open_partition,
)
from recto.search.query import ParsedQuery, Query, QueryAhead, find_speaker, parse_query
from recto.search.ranking import (
    RADIUS,
    SPEAKER_FACTOR,
    SPEAKER_SIMILARITY,
    Posting,
    best_first,
    fuse,
    max_score,
    posting_scores,
    rank,
    rough_scores,
    word_scores,
)
from recto.search.second_look import SecondLook

T = TypeVar("T")

__all__ = ["Finder", "Hit", "HitChoice", "Query", "SearchResult"]

# From so many passages on arrays are worth the import of numpy, in the background.
WORTH_ARRAYS = 2000
# How many passages are scored exactly, and how many are read at once from a partition that is not cached.
MAX_SCORED, READ_BATCH = 800, 200
# How many hits are read at once: a window seldom has room for more.
HIT_BATCH = 60
# How many of the nearest passages count, and of those that are looked at again.
FUSION_DEPTH = 400
# How many of the best passages are looked at again. While one of them has no vector, similarity does not count: others
# would come first only because they have one.
LOOKED_AT = 30
# The language of what is found is told by the beginnings of so many of the best passages.
SAMPLED_PASSAGES, SAMPLED_CHARS = 5, 300
# How much of their scores is still that of the first look, which knows their neighbours.
FIRST_LOOK_SHARE = 0.2
# What a passage loses that only asks, such as a list of questions: it may hold the very words, but no answer.
QUESTION_FACTOR = 0.5


class Hit(Struct, frozen=True):
    passage: Passage
    score: float
    """Between 0 and 1: 1 for the best of every ranking."""
    because: str = ""
    word_score: float = 0.0
    """How much of the query it contains, neighbours included; between 0 and about 1."""
    similarity: float | None = None


class SearchResult(Struct, frozen=True):
    hits: tuple[Hit, ...] = ()
    warning: str = ""
    """Why the result may be incomplete: no vectors, or not yet."""


HitChoice = Callable[[Iterator[Hit]], Sequence[Hit]]
"""Takes as many of the hits as are wanted, the best first. They do not say why yet."""


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
        if load_arrays() is None and self.index.extent(None).passages > WORTH_ARRAYS:
            with suppress(ImportError):
                import numpy  # noqa: F401  takes a tenth of a second
        number, self._too_large = self._too_large, None
        if number is None or load_arrays() is None or self.index.extent(number).passages > MAX_TABLE_PASSAGES:
            return
        keep_recent(self._cache, number, self._in_index(lambda: self._whole(number)), MAX_CACHED_PARTITIONS)

    def _whole(self, number: int) -> Partition:
        partition = Partition()
        partition.extend(self.index, number)
        return partition

    def _in_index(self, work: Callable[[], T]) -> T:
        """Runs work that reads the index and nothing else: if it fails, the index is damaged, and emptied."""

        def read() -> T:
            with self.index.file.in_use(), self.index.file.interpreting():
                return work()

        return self.index.file.run(read)

    @property
    def _depth(self) -> int:
        """How many passages count by their words: those that are not looked at again count little."""
        return FUSION_DEPTH if self.index.keeps_texts else MAX_SCORED

    def prepare(self, query: Query) -> None:
        """Begins with what takes longest, before everything about a query is known; a second call does nothing."""
        if self._ahead.begin(query) and self.vectors:
            self.vectors.prepare(lambda: self._without_speakers(query))

    def _without_speakers(self, query: Query) -> str:
        number = self.index.partition(query.partition) if query.partition is not None else None
        if number is None:
            return query.text
        return self._in_index(lambda: find_speaker(self.index, query.text, number).rest)

    def find(self, query: Query, choose: HitChoice = list) -> SearchResult:
        """The best passages first. Nothing for an empty query or an unknown partition."""
        return self._in_index(lambda: self._find(query, choose))

    def close(self) -> None:
        self._ahead.close()

    def _find(self, query: Query, choose: HitChoice) -> SearchResult:
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
        look = SecondLook(query.text) if self.index.keeps_texts else None
        texts = self.index.texts(islice(by_words, LOOKED_AT)) if look else {}
        if look:  # before waiting: there is time for it
            look.read(texts)
        near = answer()
        near = near.complete_for(list(islice(by_words, LOOKED_AT)))
        depends = look and (near.similarity if near.beside is None else near.beside.similarity)
        unknown = self._unknown(texts, near) if depends else ()
        similarity = near.in_language(self._known(texts, by_words or near.similarity) if depends else 1.0, unknown)
        nearest = self._accepted_similarity(query, parsed, partition, similarity)
        if look:
            by_words, nearest = self._look_again(look, partition, texts, by_words, nearest)
        covered = max(scores.values(), default=0.0) / (max_score(parsed.postings, parsed.extent.passages) or 1.0)
        best = fuse(by_words, self._with_speaker(parsed, partition, nearest), covered)
        known = similarity if partition.is_complete else nearest
        hits = choose(self._hits(query, parsed, partition, scores, known, best))
        return SearchResult(tuple(_with_reasons(parsed, hits)), near.warning)

    def _hits(
        self,
        query: Query,
        parsed: ParsedQuery,
        partition: Partition,
        scores: Mapping[int, float],
        similarity: Mapping[int, float],
        best: Mapping[int, float],
    ) -> Iterator[Hit]:
        """The best first, read as they are needed."""
        possible = max_score(parsed.postings, parsed.extent.passages) or 1.0
        order, passages = islice(best_first(best, query.limit), query.limit), partition.passages
        while batch := list(islice(order, HIT_BATCH)):
            self._read(partition, batch)
            for each in batch:
                if each in passages:
                    score, words = round(min(1.0, best[each]), 4), min(1.0, scores.get(each, 0.0) / possible)
                    yield Hit(passages[each], score, "", words, similarity.get(each))

    def _score_words(self, query: Query, parsed: ParsedQuery, number: int | None) -> tuple[dict[int, float], Partition]:
        """Scores the accepted passages by words, and gives the partition they are in."""
        partition = open_partition(self.index, self._cache, number, parsed.extent.passages)
        if not partition.is_complete:
            self._too_large = number
            return self._score_needed(query, parsed, partition), partition
        if partition.table is not None and query.predicate is None:
            total, mean = parsed.extent.passages, parsed.extent.mean
            found = partition.table.score(parsed.postings, total, mean, query.until)
            mask = partition.of_branches(partition.table, query.branches)
            return partition.table.best_within(found, query.stretch, mask, self._depth), partition
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

    def _known(self, texts: Mapping[int, str], best: Iterable[int]) -> float:
        """How far an embedder that knows few languages knows that of the best passages: a question of a few words, half
        of them names, does not tell."""
        sampled = list(islice(best, SAMPLED_PASSAGES))
        known_texts = texts or self.index.texts(sampled)
        sample = " ".join(known_texts[each][:SAMPLED_CHARS] for each in sampled if each in known_texts)
        return self.vectors.familiarity(sample) if self.vectors else 1.0

    def _unknown(self, texts: Mapping[int, str], near: Nearest) -> Collection[int]:
        """Of the nearest passages those in a language that the second embedder does not know: notes are in several."""
        if self.vectors is None or near.beside is None:
            return ()
        nearest = list(islice(near.similarity, LOOKED_AT))
        told = {**texts, **self.index.texts([each for each in nearest if each not in texts])}
        return [each for each in nearest if not self.vectors.familiarity(told.get(each, "")[:SAMPLED_CHARS])]

    def _accepted_similarity(
        self, query: Query, parsed: ParsedQuery, partition: Partition, similarity: Mapping[int, float]
    ) -> dict[int, float]:
        """The accepted of the nearest passages, the nearest first. Of a partition that is not complete as many are read
        as can be among the best; the others, unread, only keep their places in the ranking."""
        if partition.is_complete:
            # a named speaker may raise any of them; else no more than are fused
            needed = len(similarity) if parsed.names_speaker else FUSION_DEPTH
            if partition.table is not None and query.predicate is None:
                mask = partition.of_branches(partition.table, query.branches)
                accepted: Iterable[int] = partition.table.within(similarity, query.stretch, mask)
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
            for each in parsed.by_speaker(self.index, raised):
                raised[each] *= SPEAKER_FACTOR
        elif partition.table is not None:
            return raised
        return {each: raised[each] for each in rank(raised)}

    def _look_again(
        self,
        look: SecondLook,
        partition: Partition,
        texts: Mapping[int, str],
        by_words: Mapping[int, float],
        nearest: Mapping[int, float],
    ) -> tuple[dict[int, float], dict[int, float]]:
        """Both scores, after the best passages were looked at again; by words the others come after them. `texts` are
        those of the best by words, which were read already."""
        first, top = list(islice(by_words, LOOKED_AT)), max(by_words.values(), default=0.0) or 1.0
        others = self.index.texts(each for each in islice(nearest, LOOKED_AT // 2) if each not in texts)
        look.read(others)
        seen = look.scores()
        asks = {each: QUESTION_FACTOR if asks else 1.0 for each, asks in self._questions(partition, seen).items()}
        share = FIRST_LOOK_SHARE
        looked = {
            each: asks[each] * ((1 - share) * score + share * by_words.get(each, 0.0) / top)
            for each, score in seen.items()
            if each in asks
        }
        least = min((looked[each] for each in first if each in looked), default=1.0)
        rest = {each: least * score / top for each, score in by_words.items() if each not in looked}
        near = {each: asks.get(each, 1.0) * nearest[each] for each in islice(nearest, FUSION_DEPTH)}
        return looked | rest, near

    def _questions(self, partition: Partition, numbers: Collection[int]) -> dict[int, bool]:
        """Those of the numbers that are passages, and whether they only ask."""
        if partition.table is not None:
            return partition.table.is_question(numbers)
        self._read(partition, numbers)
        return {each: partition.passages[each].is_question for each in numbers if each in partition.passages}

    def _with_speaker(
        self, parsed: ParsedQuery, partition: Partition, similarity: Mapping[int, float]
    ) -> Mapping[int, float]:
        """Similarity, raised for the named speaker."""
        if not parsed.names_speaker:
            return similarity
        raised = dict(similarity)
        for each in parsed.by_speaker(self.index, similarity):
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


def _with_reasons(parsed: ParsedQuery, hits: Sequence[Hit]) -> Iterator[Hit]:
    reasons = _word_reasons(parsed.postings, [each.passage.number for each in hits])
    for each in hits:
        because = _because(reasons.get(each.passage.number, ""), each.similarity)
        yield Hit(each.passage, each.score, because, each.word_score, each.similarity)


def _word_reasons(postings: Sequence[Posting], best: Collection[int]) -> dict[int, str]:
    """Which words the passages hold; of those that hold none, which words are beside them."""
    wanted = set(best)
    held = _held_words(postings, wanted)
    reasons = {each: "holds " + ", ".join(islice(names, 4)) for each, names in held.items()}
    around = {each: range(each - RADIUS, each + RADIUS + 1) for each in wanted - held.keys()}
    beside = _held_words(postings, set(chain.from_iterable(around.values()))) if around else {}
    places = {
        name: place for place, name in enumerate(dict.fromkeys(posting.name.removesuffix("*") for posting in postings))
    }
    for each, near in around.items():
        names = {name for number in near for name in beside.get(number, ())}
        if names:
            nearest = sorted(names, key=places.__getitem__)[:3]
            reasons[each] = "stands beside what holds " + ", ".join(nearest)
    return reasons


def _held_words(postings: Sequence[Posting], numbers: set[int]) -> dict[int, dict[str, None]]:
    """The words of each passage that holds some, in the order of the postings."""
    held: dict[int, dict[str, None]] = {}
    for posting in postings:
        name = posting.name.removesuffix("*")
        for each in numbers.intersection(posting.numbers):
            held.setdefault(each, {})[name] = None
    return held


def _because(words: str, similarity: float | None) -> str:
    meaning = f"near in meaning ({similarity:.2f})" if similarity is not None else ""
    return "; ".join(filter(None, (words, meaning))) or "near to what was found"
