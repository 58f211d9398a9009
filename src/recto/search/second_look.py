"""A second look: scores the best passages again by their texts, which an index of words does not have.

Whole words, beginnings of words, groups of four letters and pairs of words count. Groups of letters find compounds and
the forms of words in any language, pairs find names and terms of several words. How rare something is, is counted among
these passages: it costs nothing, and tells them apart.
"""

import math
from collections.abc import Iterable, Mapping
from itertools import pairwise

from recto.search.ranking import K1, B, idf
from recto.search.terms import COMMON_WORDS, folded_text, is_spaced, query_terms, stem_word, word_forms, word_start

# How many letters a group has: fewer are in every text, more miss what words have in common.
GROUP_LETTERS = 4
# How much whole words, beginnings of words, groups of letters and pairs of words add to a score.
WORD_SHARE, START_SHARE, GROUP_SHARE, PAIR_SHARE = 0.2, 0.4, 0.4, 0.1
# Words of any question count, but little.
COMMON_WEIGHT = 0.3
_QUESTION_VERBS = """
    become began begin bring called change choose chose chosen come decide decided does done found get give given got
    happen happened hold keep kept made make mean meant need put said say set show take taken tell told took use used
    want went work allowed may might must often shall should usually"""
QUESTION_VERBS = frozenset(_QUESTION_VERBS.split())

Needles = dict[str, float]
"""What is looked for in texts, with its weight."""


class SecondLook:
    """Scores texts for a question. They may be read a few at a time: counting takes longest, and can be begun while
    others are still looked for."""

    def __init__(self, question: str) -> None:
        terms = query_terms(question)
        words, starts, self._groups, pairs = Needles(), Needles(), Needles(), Needles()
        for term in terms:
            weight, bare = _weight(term), term.removesuffix("*")
            if is_spaced(term):
                words[f" {term} "] = weight
                # with the spaces around a word: those of its beginning and its end count as such
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
        """How often each text holds a needle; without the texts that do not."""
        self._lengths: dict[int, int] = {}

    def read(self, texts: Mapping[int, str]) -> None:
        """`texts` are given as `folded_text` does."""
        fresh = {group: _count(group, texts, texts) for group in self._groups}
        # a text without the first group of a needle does not hold the needle either
        fresh |= {needle: _count(needle, texts, fresh.get(needle[:GROUP_LETTERS], texts)) for needle in self._longer}
        for needle, counts in fresh.items():
            self._counts[needle].update(counts)
        self._lengths.update({number: text.count(" ") for number, text in texts.items()})

    def scores(self) -> dict[int, float]:
        """Between 0 and 1, of all texts that were read."""
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
    return COMMON_WEIGHT if term in COMMON_WORDS or term in QUESTION_VERBS else 1.0
