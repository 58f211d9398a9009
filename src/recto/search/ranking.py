"""Ranking: how much the words of a query count, and how scores by words and by similarity are added up.

Sharing scores with neighbours helps chats most: an answer seldom repeats the words of its question. The constants are
not sensitive: nearby values work as well.
"""

import math
from collections.abc import Mapping, Sequence

from msgspec import Struct

DECAY, RADIUS = 0.6, 4
NEIGHBOUR_WEIGHTS = tuple(DECAY**distance for distance in range(RADIUS + 1))
"""How much of a word counts for a passage, by the distance to the word."""
K1, B = 1.2, 0.75
"""The parameters of BM25: saturation, and normalization by length."""
DATE_WEIGHT = 1.5
"""How much a matching date counts, compared with a word as rare."""
FORM_WEIGHT = 0.5
"""How much another form of a word counts: a word that begins with the same letters."""
STATEMENT_PRIOR, LENGTH_PRIOR, ENOUGH_WORDS = 0.1, 0.1, 16
"""What a passage gains for not being a question, and for having enough words to say something."""
SPEAKER_FACTOR, SPEAKER_SIMILARITY = 2.0, 0.15
"""What a passage gains if its speaker is named in the query: a factor for words, an addition to similarity."""
SIMILARITY_WEIGHT = 1.5
"""How much similarity counts, compared with the score of the words scaled so that the best has 1. Ranks in place of
scores find less: they do not tell a clear match from a faint one."""
ENOUGH_COVERED = 0.5
"""Words count in full where one passage holds this share of the query: of questions in the language of the notes half
are above 0.6 to 0.8, of those in another language below 0.2."""
MULTILINGUAL_STRETCH = 1.3
"""Brings the cosines of the multilingual encoder to the scale of MiniLM, for which weights and thresholds are set."""
SIMILARITY_WEIGHTS = (1.0, 0.3, 0.09)
"""How much a neighbour's similarity counts, by its distance."""


class Posting(Struct, frozen=True):
    """The passages that contain a term. `frequency`: in how many passages it is, including those not read."""

    name: str
    numbers: Sequence[int]
    frequency: float
    weight: float = 1.0
    spreads: bool = True
    """Whether neighbours get a share."""
    is_other_form: bool = False
    """Whether these passages contain another form of the term, not the term itself."""


def idf(frequency: float, total: int) -> float:
    """The inverse document frequency, as in BM25."""
    return math.log(1 + max(0.0, total - frequency + 0.5) / (frequency + 0.5))


def rank(values: Mapping[int, float]) -> list[int]:
    """The best first; among equals the newest."""
    return sorted(sorted(values, reverse=True), key=values.__getitem__, reverse=True)


def max_score(postings: Sequence[Posting], total: int) -> float:
    """The score of a passage that contains everything in the query."""
    return math.fsum(each.weight * idf(each.frequency, total) for each in postings if not each.is_other_form)


def fuse(by_words: Mapping[int, float], similarity: Mapping[int, float], covered: float = 1.0) -> dict[int, float]:
    """The weighted sum of both scores, between 0 and 1: 1 for the best of both. `covered`: the share of the query that
    the best passage holds: no more than a name, where the query is in another language."""
    top = max(by_words.values(), default=0.0) or 1.0
    words = min(1.0, covered / ENOUGH_COVERED) if similarity else 1.0
    best = (words if by_words else 0.0) + SIMILARITY_WEIGHT * max(0.0, *similarity.values(), 0.0) or 1.0
    sums = {each: words * score / top for each, score in by_words.items()}
    for each, near in similarity.items():
        sums[each] = sums.get(each, 0.0) + (SIMILARITY_WEIGHT * near if near > 0 else 0.0)
    return {each: score / best for each, score in sums.items()}
