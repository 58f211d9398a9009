"""Trail: a path described by its branches, so that membership needs no walk over messages. Knows numbers only.

A branch is an unforked run of messages, named by the number of its first. At any depth a path is on exactly one branch.
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

BranchDepth = tuple[int, int]
"""A branch, and the deepest message of it that is on the path."""


@dataclass(frozen=True, slots=True)
class Trail:
    branches: tuple[BranchDepth, ...] = ()
    """Newest first, so depths decrease."""

    def holds(self, branch: int, depth: int) -> bool:
        """Whether the message of this branch at this depth is on the path."""
        return self.at(depth) == branch

    def at(self, depth: int) -> int | None:
        """The branch that the path is on at this depth; None beyond its end."""
        place = bisect_right(self.branches, -depth, key=lambda branch: -branch[1])
        return self.branches[place - 1][0] if place else None

    def between(self, first: int, last: int) -> Iterator[tuple[int, int, int]]:
        """The segments of the path between two depths, in order, each as branch, first and last depth."""
        for (_, before), (branch, depth) in pairwise([(0, 0), *reversed(self.branches)]):
            start, end = max(first, before + 1), min(last, depth)
            if start <= end:
                yield branch, start, end
