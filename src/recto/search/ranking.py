"""Ranking: scores passages by the words that they and their neighbours contain, and fuses rankings.

Sharing scores with neighbours helps chats most: an answer seldom repeats the words of its question. The constants are
not sensitive: nearby values work as well.

Calibration: puts the cosines of every embedder on one scale.

Each embedder has its own range of cosines. A few questions and their answers show where that range begins and ends.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recto.search.vector_table import Row


DECAY, RADIUS = 0.6, 4
NEIGHBOUR_WEIGHTS = tuple(DECAY**distance for distance in range(RADIUS + 1))
"""How much of a word counts for a passage, by the distance to the word."""
K1, B = 1.2, 0.75
"""The parameters of BM25: saturation, and normalization by length."""
DATE_WEIGHT = 1.5
"""How much a matching date counts, compared with a word as rare."""
STATEMENT_PRIOR, LENGTH_PRIOR, ENOUGH_WORDS = 0.1, 0.1, 16
"""What a passage gains for not being a question, and for having enough words to say something."""
SPEAKER_FACTOR, SPEAKER_SIMILARITY = 2.0, 0.15
"""What a passage gains if its speaker is named in the query: a factor for words, an addition to similarity."""
RRF_K = 15
"""The constant of reciprocal rank fusion."""
SIMILARITY_WEIGHTS = (1.0, 0.3, 0.09)
"""How much a neighbour's similarity counts, by its distance."""


@dataclass(frozen=True, slots=True)
class Posting:
    """The passages that contain a term. `frequency`: in how many passages it is, including those not read."""

    name: str
    numbers: Sequence[int]
    frequency: float
    weight: float = 1.0
    spreads: bool = True
    """Whether neighbours get a share."""


def idf(frequency: float, total: int) -> float:
    """The inverse document frequency, as in BM25."""
    return math.log(1 + max(0.0, total - frequency + 0.5) / (frequency + 0.5))


def spread_to_neighbours(numbers: Sequence[int]) -> dict[int, float]:
    """A share of a word for each passage: 1 where the word is, less with the distance to the nearest occurrence.
    Several occurrences nearby add nothing: else a long topic would outweigh a word that was said once."""
    shares: dict[int, float] = {}
    for distance in range(RADIUS, 0, -1):
        shares.update(dict.fromkeys([number + distance for number in numbers], NEIGHBOUR_WEIGHTS[distance]))
        shares.update(dict.fromkeys([number - distance for number in numbers], NEIGHBOUR_WEIGHTS[distance]))
    shares.update(dict.fromkeys(numbers, 1.0))
    return shares


@dataclass(frozen=True, slots=True)
class PostingScores:
    """A posting prepared for scoring."""

    weight: float
    shares: Mapping[int, float]
    """Each passage's share of the term."""
    is_graded: bool
    """Whether a smaller share or a longer passage lowers the score."""


def posting_scores(postings: Sequence[Posting], total: int) -> list[PostingScores]:
    return [
        PostingScores(
            posting.weight * idf(posting.frequency, total),
            spread_to_neighbours(posting.numbers) if posting.spreads else dict.fromkeys(posting.numbers, 1.0),
            posting.spreads,
        )
        for posting in postings
    ]


def word_scores(postings: Sequence[PostingScores], lengths: Mapping[int, float], mean: float) -> dict[int, float]:
    """BM25 with shares in place of counts. Only passages whose length is known get a score."""
    scores: dict[int, float] = {}
    length_of, score_of = lengths.get, scores.get
    base, slope = K1 * (1 - B), K1 * B / mean
    for each in postings:
        if not each.is_graded:
            scores.update({number: score_of(number, 0.0) + each.weight for number in each.shares if number in lengths})
            continue
        full = each.weight * (1 + K1)
        for number, share in each.shares.items():
            length = length_of(number)
            if length is not None:
                scores[number] = score_of(number, 0.0) + full * share / (share + base + slope * length)
    return scores


def passage_prior(words: int, is_question: bool) -> float:
    """A score that does not depend on the query."""
    return (0.0 if is_question else STATEMENT_PRIOR) + LENGTH_PRIOR * min(1.0, words / ENOUGH_WORDS)


def rank(values: Mapping[int, float]) -> list[int]:
    """The best first; among equals the newest."""
    return sorted(sorted(values, reverse=True), key=values.__getitem__, reverse=True)


def max_score(postings: Sequence[Posting], total: int) -> float:
    """The score of a passage that contains everything in the query."""
    return math.fsum(posting.weight * idf(posting.frequency, total) for posting in postings)


def fuse(*rankings: Sequence[int]) -> dict[int, float]:
    """Reciprocal rank fusion, scaled to values between 0 and 1."""
    scores: dict[int, float] = {}
    best = len(rankings) / (RRF_K + 1)
    for ranking in rankings:
        for place, number in enumerate(ranking, 1):
            scores[number] = scores.get(number, 0.0) + 1 / (RRF_K + place) / best
    return scores


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


@dataclass(frozen=True, slots=True)
class Calibration:
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
