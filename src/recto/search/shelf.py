"""Shelf: the passages of one shelf as a question needs them, kept between questions as far as that is bearable."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from recto.search.index import Index, Passage
from recto.search.rank import FALL, RADIUS

# About ten megabytes; of a larger shelf only what a question leads to is read.
MOST_KEPT = 20_000


@dataclass(slots=True)
class Shelf:
    passages: dict[int, Passage] = field(default_factory=dict)
    is_whole: bool = False
    came: int = 0
    changes: str = ""
    removed: str = ""
    _lengths: dict[int, float] = field(default_factory=dict)

    def lengths(self, numbers: Iterable[int], mean: float) -> dict[int, float]:
        """How long passages are with their surroundings, measured in what is usual."""
        known, found = self._lengths, {}
        for number in numbers:
            length = known.get(number)
            if length is None and number in self.passages:
                length = known[number] = self._length(number)
            if length is not None:
                found[number] = length / mean
        return found

    def _length(self, number: int) -> float:
        total = weight = 0.0
        for distance in range(-RADIUS, RADIUS + 1):
            near = self.passages.get(number + distance)
            if near is not None:
                part = FALL[abs(distance)]
                total, weight = total + part * near.words, weight + part
        # what stands at an edge has fewer neighbours, not less to say
        return total / weight if self.is_whole else self.passages[number].words

    def extend(self, index: Index, number: int) -> None:
        """Reads what has come since the last time; everything anew where something was taken away."""
        changes = index.file.changes
        if changes == self.changes and self.is_whole:
            return
        removed = index.mark("removed")
        if removed != self.removed:
            self.passages.clear()
            self._lengths.clear()
            self.came = 0
        came = index.came
        fresh = index.since(number, self.came) if self.came else index.on_shelf(number)
        self.came = came
        self.passages.update(fresh)
        for each in fresh:
            for near in range(each - RADIUS, each + RADIUS + 1):
                self._lengths.pop(near, None)
        self.is_whole, self.changes, self.removed = True, changes, removed


def open_shelf(index: Index, kept: dict[int, Shelf], number: int | None, size: int) -> Shelf:
    """The whole shelf as it was kept, brought up to date; an empty one, to be filled with what a question needs, where
    it is too large for that."""
    if number is None or size > MOST_KEPT:
        return Shelf()
    shelf = kept.setdefault(number, Shelf())
    shelf.extend(index, number)
    return shelf
