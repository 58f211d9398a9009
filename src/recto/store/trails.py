"""Trails: what is on a path, and where: found by branch and depth, however long the path is. Walks no messages."""

from dataclasses import dataclass

from sqlalchemy import Connection

from recto.chat.trail import Trail
from recto.store.queries import SAID_AT, STRETCH, TRAIL
from recto.store.reading import message_row
from recto.store.rows import AnyRow


def trail_of(connection: Connection, head: str) -> Trail:
    trail = Trail(tuple((row.branch, row.depth) for row in TRAIL(connection, head=head)))
    if not trail.branches:
        message_row(connection, head)
    return trail


def is_on_path(connection: Connection, head: str, target: AnyRow) -> bool:
    """Whether `target` is the head or an ancestor of it."""
    return trail_of(connection, head).holds(target.branch, target.depth)


@dataclass(frozen=True, slots=True)
class Track:
    """The path to a head, on which rows are found by their depth or by their number."""

    connection: Connection
    head: AnyRow
    trail: Trail

    def rows(self, first: int, last: int) -> list[AnyRow]:
        """Between two depths, in order."""
        return [
            row
            for branch, start, end in self.trail.between(first, last)
            for row in STRETCH(self.connection, home=self.head.conversation, branch=branch, first=start, last=end)
        ]

    def numbered(self, said: int) -> AnyRow | None:
        """The message that was said as the so-and-so-many-th."""
        depth = self._depth(said)
        found = self.rows(depth, depth) if depth else []
        return found[0] if found and found[0].said == said else None

    def _depth(self, said: int) -> int | None:
        """Where that many were said first. A message lies deeper than its number by the Compactions before it."""
        if not 1 <= said <= self.head.said:
            return None
        low, high = said, said + self.head.depth - self.head.said
        while low < high:
            middle = (low + high) // 2
            so_far = self._said_at(middle)
            if so_far is None:
                return None
            # numbers never grow faster than depth: the difference is the least that is left to go
            low, high = (middle + said - so_far, high) if so_far < said else (low, middle - so_far + said)
        return low

    def _said_at(self, depth: int) -> int | None:
        branch = self.trail.at(depth)
        return SAID_AT(self.connection, home=self.head.conversation, branch=branch, depth=depth).scalar()


def track_to(connection: Connection, head: str) -> Track:
    return Track(connection, message_row(connection, head), trail_of(connection, head))
