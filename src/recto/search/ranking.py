"""Ranking: scores passages by the words that they and their neighbours contain, and adds similarity.

Sharing scores with neighbours helps chats most: an answer seldom repeats the words of its question. The constants are
not sensitive: nearby values work as well.

Calibration: puts the cosines of every embedder on one scale.

Each embedder has its own range of cosines. A few questions and their answers show where that range begins and ends.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, pairwise
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from recto.search.vector_table import Row


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
# How many values are looked at to guess which are among the best.
_SAMPLE = 500
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


def spread_to_neighbours(numbers: Sequence[int]) -> list[list[int]]:
    """Passages that share a word with their neighbours, by the distance to the nearest occurrence: those that contain
    it, those next to them, and so on. Several occurrences nearby add nothing: else a long topic would outweigh a word
    that was said once."""
    if not numbers:
        return []
    own = sorted(numbers, reverse=True)
    by_distance, gaps = [own], [(high, low) for high, low in pairwise(own) if high - low > 1]
    for distance in range(1, RADIUS + 1):
        gaps = [(high, low) for high, low in gaps if high - low >= 2 * distance]
        ring = [low + distance for _, low in gaps]
        ring += [high - distance for high, low in gaps if high - low > 2 * distance]
        by_distance.append([own[0] + distance, *ring, own[-1] - distance])
    return by_distance


class PostingScores(Struct, frozen=True):
    """A posting prepared for scoring."""

    weight: float
    by_distance: Sequence[Sequence[int]]
    """The passages that share the term, by their distance to it."""
    is_graded: bool
    """Whether a greater distance or a longer passage lowers the score."""


def posting_scores(postings: Sequence[Posting], total: int) -> list[PostingScores]:
    return [
        PostingScores(
            posting.weight * idf(posting.frequency, total),
            spread_to_neighbours(posting.numbers) if posting.spreads else [posting.numbers],
            posting.spreads,
        )
        for posting in postings
    ]


def word_scores(postings: Sequence[PostingScores], lengths: Mapping[int, float], mean: float) -> dict[int, float]:
    """BM25 with shares in place of counts. Only passages whose length is known get a score."""
    scores: dict[int, float] = {}
    score_of, slope = scores.get, K1 * B / mean
    for each in postings:
        if not each.is_graded:
            for number in each.by_distance[0]:
                if number in lengths:
                    scores[number] = score_of(number, 0.0) + each.weight
            continue
        for ring, (share, part) in zip(each.by_distance, shares_by_distance(each.weight), strict=False):
            for number in ring:
                if number in lengths:
                    scores[number] = score_of(number, 0.0) + share / (part + slope * lengths[number])
    return scores


def rough_scores(postings: Sequence[PostingScores]) -> dict[int, float]:
    """Scores as if every passage were as long as the mean."""
    scores: dict[int, float] = {}
    score_of = scores.get
    for each in postings:
        shares = (
            [share / (part + K1 * B) for share, part in shares_by_distance(each.weight)]
            if each.is_graded
            else [each.weight]
        )
        for ring, score in zip(each.by_distance, shares, strict=False):
            scores.update({number: score_of(number, 0.0) + score for number in ring})
    return scores


def shares_by_distance(weight: float) -> list[tuple[float, float]]:
    """By distance: the numerator of BM25, and the part of its denominator that does not depend on the length."""
    full = weight * (1 + K1)
    return [(full * share, share + K1 * (1 - B)) for share in NEIGHBOUR_WEIGHTS]


def passage_prior(words: int, is_question: bool) -> float:
    """A score that does not depend on the query."""
    return (0.0 if is_question else STATEMENT_PRIOR) + LENGTH_PRIOR * min(1.0, words / ENOUGH_WORDS)


def rank(values: Mapping[int, float]) -> list[int]:
    """The best first; among equals the newest."""
    return sorted(sorted(values, reverse=True), key=values.__getitem__, reverse=True)


def best_first(values: Mapping[int, float], count: int) -> Iterator[int]:
    """The same order, for when about `count` will be enough: the rest is sorted only when it is asked for."""
    if len(values) <= 4 * count:
        yield from rank(values)
        return
    sample = sorted(islice(values.values(), None, None, max(1, len(values) // _SAMPLE)), reverse=True)
    least = sample[min(len(sample) - 1, 2 * len(sample) * count // len(values))]
    yield from rank({number: value for number, value in values.items() if value >= least})
    yield from rank({number: value for number, value in values.items() if value < least})


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


# Each question is answered by the text at the same position, and by no other.
SAMPLE_QUESTIONS = (
    "How do I cancel my train ticket?",
    "What is the temperature in the cellar?",
    "Send the report to my boss.",
    "Who painted the picture in the hall?",
    "Delete the photos from last summer.",
    "Which bus goes to the harbour?",
    "Translate the letter into Italian.",
    "How much sugar is in the jam?",
)
SAMPLE_TEXTS = (
    "Tickets for the railway can be returned up to a day before departure.",
    "Reads the thermometer of a room.",
    "Sends a file by mail to a person.",
    "Paintings of the collection, with the artist of each.",
    "Removes images from the album for good.",
    "Timetable of the buses with all stops at the port.",
    "Renders a text in another language.",
    "Recipes for preserves with the weight of each ingredient.",
)
# Embedders that hardly separate the samples are not rescaled.
_MIN_SPAN = 0.05


class Calibration(Struct, frozen=True):
    unrelated: float
    """The mean cosine of texts that have nothing in common."""
    related: float
    """The mean cosine of a question and its answer."""

    def rescale(self, cosines: "Row") -> "Row":
        """Maps cosines to the scale of MiniLM."""
        span = self.related - self.unrelated
        if span < _MIN_SPAN:
            return cosines
        stretch = (MINILM_CALIBRATION.related - MINILM_CALIBRATION.unrelated) / span
        return (cosines - self.unrelated) * stretch + MINILM_CALIBRATION.unrelated


def calibrate(cosines: "Row") -> Calibration:
    """Measures an embedder from its sample cosines: one row per text, one column per question."""
    import numpy as np  # takes a tenth of a second

    size = len(SAMPLE_TEXTS)
    grid = cosines[:size, :size]
    same = np.eye(size, dtype=bool)
    return Calibration(float(grid[~same].mean()), float(grid[same].mean()))


MINILM_CALIBRATION = Calibration(unrelated=0.0428, related=0.4336)
