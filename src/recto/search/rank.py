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


def word_scores(every: Sequence[Held], lengths: Mapping[int, float]) -> dict[int, float]:
    """Per passage the sum over the words: rarer ones count more, more of one counts less and less, and what is long
    counts less. Only passages whose length is known count at all."""
    scores = dict.fromkeys(lengths, 0.0)
    damps = {number: SATURATION * (1 - LENGTH + LENGTH * size) for number, size in lengths.items()}
    for each in every:
        worth, full, shares = each.worth, each.worth * (1 + SATURATION), each.shares
        for number in shares if len(shares) < len(damps) else damps:
            share, damp = shares.get(number), damps.get(number)
            if share is not None and damp is not None:
                scores[number] += full * share / (share + damp) if each.fades else worth
    return scores


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
