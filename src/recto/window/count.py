"""Counts of what is really sent. A Count says whether it is exact; a Meter counts wire pieces for one model."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from recto.window.request import Piece


@dataclass(frozen=True, slots=True)
class Count:
    tokens: int
    exact: bool = True

    def __add__(self, other: "Count") -> "Count":
        return Count(self.tokens + other.tokens, self.exact and other.exact)


ZERO = Count(0)


class Meter(Protocol):
    """Counts pieces as one model's provider charges them."""

    key: str
    """Counts are stored by piece and this key; whatever changes a count must change the key."""
    priming: Count
    """What every request costs besides its pieces: the primed reply, a first token."""
    without_system: Count
    """What a request costs besides when it has no system message: some templates put one of their own in its place."""
    note: str | None
    """Why this meter estimates although it should not: a tokenizer that failed. Shown to the user."""

    async def measure(self, pieces: Sequence[Piece]) -> list[Count]:
        """A count for each piece; 0 for kinds that cost nothing. Message pieces come without their comma."""
        ...


def estimate_text(text: str) -> int:
    """The fallback where a tokenizer fails: a quarter of the characters and 5 % more (400 characters: 105)."""
    return math.ceil(math.ceil(len(text) / 4) * 1.05)


def estimate_message(text: str) -> int:
    return estimate_text(text) + 2
