"""Ranking: how much the words of a query count, and how word scores and similarity are combined.

Sharing scores with neighbours helps most in chats, where an answer seldom repeats the words of its question. The
constants are not sensitive: nearby values work as well.

A second look scores the best passages again by their texts, which the index does not hold. It counts whole words,
beginnings of words, groups of four letters, and pairs of words. Groups of letters find compounds and inflections in any
language; pairs find names and multi-word terms. Rarity is measured among these passages, which costs nothing and tells
them apart.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from msgspec import Struct

from recto.search.terms import QUESTION_WORDS, folded_text, is_spaced, query_terms, stem_word, word_forms, word_start

DECAY, RADIUS = 0.6, 4
NEIGHBOUR_WEIGHTS = tuple(DECAY**distance for distance in range(RADIUS + 1))
"""The weight of a word for a passage, by its distance."""
K1, B = 1.2, 0.75
DATE_WEIGHT = 1.5
"""The weight of a matching date, relative to an equally rare word."""
FORM_WEIGHT = 0.5
"""The weight of another form of a word, that is, one with the same first letters."""
STATEMENT_PRIOR, LENGTH_PRIOR, ENOUGH_WORDS = 0.1, 0.1, 16
"""The bonus for a passage that is not a question, and for one with enough words to say something."""
SPEAKER_FACTOR, SPEAKER_SIMILARITY = 2.0, 0.15
"""The bonus for a passage whose speaker is named in the query: a factor for words, an addition to similarity."""
SIMILARITY_WEIGHT = 1.5
"""The weight of similarity, relative to word scores scaled to a maximum of 1. Ranks in place of scores find less,
since they do not separate clear matches from faint ones."""
ENOUGH_COVERED = 0.5
"""Words count in full if a passage holds this share of the query. For questions in the language of the notes the
median is 0.6 to 0.8, for other languages below 0.2."""
SIMILARITY_WEIGHTS = (1.0, 0.3, 0.09)
"""The weight of a neighbour's similarity, by distance."""


class Posting(Struct, frozen=True):
    """The passages that contain a term. `frequency` is the number of such passages, including unread ones."""

    name: str
    numbers: Sequence[int]
    frequency: float
    weight: float = 1.0
    spreads: bool = True
    """Neighbours get a share."""
    is_other_form: bool = False
    """These passages contain another form of the term, not the term itself."""


def idf(frequency: float, total: int) -> float:
    return math.log(1 + max(0.0, total - frequency + 0.5) / (frequency + 0.5))


def rank(values: Mapping[int, float]) -> list[int]:
    """Best first; among equals, the newest first."""
    return sorted(sorted(values, reverse=True), key=values.__getitem__, reverse=True)


def max_score(postings: Sequence[Posting], total: int) -> float:
    """The score of a passage that contains everything in the query."""
    return math.fsum(each.weight * idf(each.frequency, total) for each in postings if not each.is_other_form)


def fuse(by_words: Mapping[int, float], similarity: Mapping[int, float], covered: float = 1.0) -> dict[int, float]:
    """The weighted sum of both scores, scaled so that the best of both gets 1. `covered`: the share of the query in
    the best passage; little more than a name if the query is in another language."""
    top = max(by_words.values(), default=0.0) or 1.0
    words = min(1.0, covered / ENOUGH_COVERED) if similarity else 1.0
    best = (words if by_words else 0.0) + SIMILARITY_WEIGHT * max(0.0, *similarity.values(), 0.0) or 1.0
    sums = {each: words * score / top for each, score in by_words.items()}
    for each, near in similarity.items():
        sums[each] = sums.get(each, 0.0) + (SIMILARITY_WEIGHT * near if near > 0 else 0.0)
    return {each: score / best for each, score in sums.items()}


# -- a second look

# Letters per group: shorter groups are in every text, longer ones miss what words share.
GROUP_LETTERS = 4
# How much whole words, beginnings of words, groups of letters and pairs of words add to a score.
WORD_SHARE, START_SHARE, GROUP_SHARE, PAIR_SHARE = 0.2, 0.4, 0.4, 0.1
# Words common to all questions count, but little.
COMMON_WEIGHT = 0.3
Needles = dict[str, float]
"""The strings to search for, with their weights."""


class SecondLook:
    """Scores texts for a question. Texts can be read in batches: counting is slowest, and can start during the search
    for the others."""

    def __init__(self, question: str) -> None:
        terms = query_terms(question)
        words, starts, self._groups, pairs = Needles(), Needles(), Needles(), Needles()
        for term in terms:
            weight, bare = _weight(term), term.removesuffix("*")
            if is_spaced(term):
                words[f" {term} "] = weight
                # with the spaces around a word, so that its beginning and end count as such
                spaced = f" {term} "
                groups = [spaced[at : at + GROUP_LETTERS] for at in range(max(1, len(spaced) - GROUP_LETTERS + 1))]
                found = {f" {word_start(stem_word(form)) or stem_word(form)}" for form in word_forms(term)}
            else:
                words[bare], groups, found = weight, [bare], {bare}
            for start in found:
                starts[start] = max(starts.get(start, 0.0), weight)
            for group in groups:
                self._groups[group] = self._groups.get(group, 0.0) + weight
        known = set(terms)
        for one, other in pairwise(folded_text(question).split()):
            if one in known and other in known:
                pairs[f" {one} {other} "] = max(_weight(one), _weight(other))
        shares = ((WORD_SHARE, words), (START_SHARE, starts), (GROUP_SHARE, self._groups), (PAIR_SHARE, pairs))
        self._kinds = [(share, needles) for share, needles in shares if needles]
        self._longer = {needle for _, needles in self._kinds for needle in needles} - self._groups.keys()
        self._counts: dict[str, dict[int, int]] = {needle: {} for needle in (*self._groups, *self._longer)}
        """How often each text holds a needle; texts without it are left out."""
        self._lengths: dict[int, int] = {}

    def read(self, texts: Mapping[int, str]) -> None:
        """`texts` come from `folded_text`."""
        fresh = {group: _count(group, texts, texts) for group in self._groups}
        # a text without the first group of a needle does not hold the needle
        fresh |= {needle: _count(needle, texts, fresh.get(needle[:GROUP_LETTERS], texts)) for needle in self._longer}
        for needle, counts in fresh.items():
            self._counts[needle].update(counts)
        self._lengths.update({number: text.count(" ") for number, text in texts.items()})

    def scores(self) -> dict[int, float]:
        mean = max(1.0, sum(self._lengths.values()) / max(1, len(self._lengths)))
        norms = {number: K1 * (1 - B + B * length / mean) for number, length in self._lengths.items()}
        kinds = [(share, self._score(needles, norms)) for share, needles in self._kinds]
        whole = math.fsum(share for share, _ in kinds) or 1.0
        return {
            number: math.fsum(share * scores.get(number, 0.0) for share, scores in kinds) / whole for number in norms
        }

    def _score(self, needles: Needles, norms: Mapping[int, float]) -> dict[int, float]:
        """BM25, scaled so that the best has 1."""
        scores: dict[int, float] = {}
        for needle, weight in needles.items():
            counts = self._counts[needle]
            rarity = weight * idf(len(counts), len(norms))
            for number, count in counts.items():
                scores[number] = scores.get(number, 0.0) + rarity * count / (count + norms[number])
        best = max(scores.values(), default=0.0) or 1.0
        return {number: score / best for number, score in scores.items()}


def _count(needle: str, texts: Mapping[int, str], among: Iterable[int]) -> dict[int, int]:
    return {number: count for number in among if (count := texts[number].count(needle))}


def _weight(term: str) -> float:
    return COMMON_WEIGHT if term in QUESTION_WORDS else 1.0
