"""Ranking: scores of passages from the words they and their neighbours hold, and several rankings fused.

Pure numbers. That neighbours share what they hold is the largest single gain for chats: an answer seldom repeats the
words of its question. The constants are flat: anything near them does as well.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

DECAY, RADIUS = 0.6, 4
FALL = tuple(DECAY**distance for distance in range(RADIUS + 1))
SATURATION, LENGTH = 1.2, 0.75
DATED = 1.5
"""What a day that the question names counts, in rarities of a word."""
NO_QUESTION, TELLING, ENOUGH = 0.1, 0.1, 16
"""What a passage gains by asking nothing, and by holding enough words to tell something."""
NAMED, NAMED_NEAR = 2.0, 0.15
"""Who is named in a question is most likely who said the answer: a factor for words, an addition for meaning."""
FUSION = 15
CLOSE = (1.0, 0.3, 0.09)
"""How much of a neighbour's meaning counts."""


@dataclass(frozen=True, slots=True)
class Posting:
    """Where a word stands, or what else counts like one. `frequency`: in how many passages, unread ones included."""

    name: str
    numbers: Sequence[int]
    frequency: float
    weight: float = 1.0
    spreads: bool = True
    """Whether neighbours share in it."""


def rarity(frequency: float, total: int) -> float:
    return math.log(1 + max(0.0, total - frequency + 0.5) / (frequency + 0.5))


def spread(numbers: Sequence[int]) -> dict[int, float]:
    """What each passage has of a word: all of it where it stands, less and less the farther off the nearest stands.
    That several stand near adds nothing: a topic that goes on for long would else drown a word that was said once."""
    found: dict[int, float] = {}
    for distance in range(RADIUS, 0, -1):
        found.update(dict.fromkeys([number + distance for number in numbers], FALL[distance]))
        found.update(dict.fromkeys([number - distance for number in numbers], FALL[distance]))
    found.update(dict.fromkeys(numbers, 1.0))
    return found


@dataclass(frozen=True, slots=True)
class Held:
    """A posting as scores need it."""

    worth: float
    shares: Mapping[int, float]
    """What each passage has of it."""
    fades: bool
    """Whether less of it, or in a longer passage, counts less."""


def held(postings: Sequence[Posting], total: int) -> list[Held]:
    return [
        Held(
            posting.weight * rarity(posting.frequency, total),
            spread(posting.numbers) if posting.spreads else dict.fromkeys(posting.numbers, 1.0),
            posting.spreads,
        )
        for posting in postings
    ]


def word_scores(every: Sequence[Held], lengths: Mapping[int, float], mean: float) -> dict[int, float]:
    """Per passage the sum over the words: rarer ones count more, more of one counts less and less, and what is longer
    than the mean counts less. Only passages whose length is known count at all."""
    scores: dict[int, float] = {}
    known, so_far = lengths.get, scores.get
    least, slope = SATURATION * (1 - LENGTH), SATURATION * LENGTH / mean
    for each in every:
        if not each.fades:
            scores.update({number: so_far(number, 0.0) + each.worth for number in each.shares if number in lengths})
            continue
        full = each.worth * (1 + SATURATION)
        for number, share in each.shares.items():
            length = known(number)
            if length is not None:
                scores[number] = so_far(number, 0.0) + full * share / (share + least + slope * length)
    return scores


def prior(words: int, asks: bool) -> float:
    """What a passage is worth whatever was asked for."""
    return (0.0 if asks else NO_QUESTION) + TELLING * min(1.0, words / ENOUGH)


def ranked(values: Mapping[int, float]) -> list[int]:
    """The best first; of equals the newest."""
    return sorted(sorted(values, reverse=True), key=values.__getitem__, reverse=True)


def most_possible(postings: Sequence[Posting], total: int) -> float:
    """What a passage would score that holds everything that was asked for."""
    return math.fsum(posting.weight * rarity(posting.frequency, total) for posting in postings)


def fuse(*rankings: Sequence[int]) -> dict[int, float]:
    """What the places in several rankings are worth together, between 0 and 1."""
    scores: dict[int, float] = {}
    best = len(rankings) / (FUSION + 1)
    for ranking in rankings:
        for place, number in enumerate(ranking, 1):
            scores[number] = scores.get(number, 0.0) + 1 / (FUSION + place) / best
    return scores
