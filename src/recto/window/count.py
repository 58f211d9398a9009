"""Token counts. A Count says whether it is exact; a TokenCounter counts wire pieces for one model."""

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


class TokenCounter(Protocol):
    """Counts pieces as one model's provider charges them."""

    key: str
    """Counts are stored by piece and this key; anything that changes counts must change the key."""
    priming: Count
    """Cost of every request besides its pieces: the start of the reply, a first token."""
    without_system: Count
    """Extra cost of a request without a system message: some templates then insert one of their own."""
    note: str | None
    """Why this counter only estimates, for example a tokenizer that failed. Shown to the user."""

    async def count(self, pieces: Sequence[Piece]) -> list[Count]:
        """One count per piece; 0 for kinds that cost nothing. Message pieces are passed without their comma."""
        ...


def estimate_text(text: str) -> int:
    """The estimate where no tokenizer works: a quarter of the characters plus 5 % (400 characters: 105)."""
    return math.ceil(math.ceil(len(text) / 4) * 1.05)


def estimate_message(text: str) -> int:
    return estimate_text(text) + 2


def proportional_shares(tokens: int, weights: Sequence[int]) -> list[int]:
    """Divides tokens into whole shares in proportion to the weights; the shares add up to `tokens`."""
    total, spent, out, run = sum(weights) or 1, 0, [], 0
    for weight in weights:
        run += weight
        share = tokens * run // total - spent
        spent += share
        out.append(share)
    if out:
        out[-1] += tokens - spent
    return out
