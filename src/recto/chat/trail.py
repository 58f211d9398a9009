"""Trail: a path told by its branches, so that nobody walks it to know what is on it. Knows numbers, no messages.

A branch is an unforked run of messages, named by the number of its first; at any depth a path is on one of them.
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

Counting = tuple[int, int]
"""A branch, and the depth down to which it counts."""


@dataclass(frozen=True, slots=True)
class Trail:
    branches: tuple[Counting, ...] = ()
    """Newest first, so the depths fall."""

    def holds(self, branch: int, depth: int) -> bool:
        """Whether the message of this branch at this depth is on the path."""
        return self.at(depth) == branch

    def at(self, depth: int) -> int | None:
        """The branch that the path is on at this depth; None beyond its end."""
        place = bisect_right(self.branches, -depth, key=lambda each: -each[1])
        return self.branches[place - 1][0] if place else None

    def between(self, first: int, last: int) -> Iterator[tuple[int, int, int]]:
        """The stretches of branches that make up the path between two depths, in order: branch, first, last."""
        for (_, before), (branch, depth) in pairwise([(0, 0), *reversed(self.branches)]):
            start, end = max(first, before + 1), min(last, depth)
            if start <= end:
                yield branch, start, end
