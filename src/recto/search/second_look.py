"""A second look: scores the best passages again by their texts, which an index of words does not have.

Whole words, beginnings of words, groups of four letters and pairs of words count. Groups of letters find compounds and
the forms of words in any language, pairs find names and terms of several words. How rare something is, is counted among
these passages: it costs nothing, and tells them apart.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
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
    want went work allowed may might must often shall should usually
"""

QUESTION_VERBS = frozenset(_QUESTION_VERBS.split())

Needles = Mapping[str, float]
"""What is looked for in texts, with its weight."""


def look_again(question: str, texts: Mapping[int, str]) -> dict[int, float]:
    """Scores between 0 and 1 of texts, given as `folded_text` does."""
    terms = query_terms(question)
    lengths = {number: text.count(" ") for number, text in texts.items()}
    mean = max(1.0, sum(lengths.values()) / max(1, len(lengths)))
    norms = {number: K1 * (1 - B + B * length / mean) for number, length in lengths.items()}
    groups = _groups(terms)
    counts = {group: _counts(group, texts, texts) for group in groups}
    by_kind = [
        (WORD_SHARE, _words(terms)),
        (START_SHARE, _starts(terms)),
        (GROUP_SHARE, groups),
        (PAIR_SHARE, _pairs(question, terms)),
    ]
    kinds = [(share, _score(needles, texts, norms, counts)) for share, needles in by_kind if needles]
    whole = math.fsum(share for share, _ in kinds) or 1.0
    return {number: math.fsum(share * scores.get(number, 0.0) for share, scores in kinds) / whole for number in texts}


def _counts(needle: str, texts: Mapping[int, str], among: Iterable[int]) -> dict[int, int]:
    return {number: count for number in among if (count := texts[number].count(needle))}


def _score(
    needles: Needles, texts: Mapping[int, str], norms: Mapping[int, float], by_group: Mapping[str, Mapping[int, int]]
) -> dict[int, float]:
    """BM25, scaled so that the best has 1."""
    scores: dict[int, float] = {}
    for needle, weight in needles.items():
        # a text without the first group of a needle does not hold the needle either
        counts = by_group.get(needle) or _counts(needle, texts, by_group.get(needle[:GROUP_LETTERS], texts))
        rarity = weight * idf(len(counts), len(texts))
        for number, count in counts.items():
            scores[number] = scores.get(number, 0.0) + rarity * count / (count + norms[number])
    best = max(scores.values(), default=0.0) or 1.0
    return {number: score / best for number, score in scores.items()}


def _words(terms: Sequence[str]) -> Needles:
    return {f" {term} " if is_spaced(term) else term.removesuffix("*"): _weight(term) for term in terms}


def _starts(terms: Sequence[str]) -> Needles:
    found: dict[str, float] = {}
    for term in terms:
        forms = word_forms(term) if is_spaced(term) else ()
        starts = {f" {(word_start(stem_word(form)) or stem_word(form))}" for form in forms}
        for start in starts or {term.removesuffix("*")}:
            found[start] = max(found.get(start, 0.0), _weight(term))
    return found


def _groups(terms: Sequence[str]) -> Needles:
    found: dict[str, float] = {}
    for term in terms:
        for group in _groups_of(term) if is_spaced(term) else (term.removesuffix("*"),):
            found[group] = found.get(group, 0.0) + _weight(term)
    return found


def _pairs(question: str, terms: Sequence[str]) -> Needles:
    """Words of the question that stand side by side, both worth looking up."""
    known = set(terms)
    return {
        f" {one} {other} ": max(_weight(one), _weight(other))
        for one, other in pairwise(folded_text(question).split())
        if one in known and other in known
    }


def _groups_of(word: str) -> list[str]:
    """With the spaces around a word: those of its beginning and its end count as such."""
    spaced = f" {word} "
    return [spaced[at : at + GROUP_LETTERS] for at in range(max(1, len(spaced) - GROUP_LETTERS + 1))]


def _weight(term: str) -> float:
    return COMMON_WEIGHT if term in COMMON_WORDS or term in QUESTION_VERBS else 1.0
