"""Shelf: the passages of one shelf as a question needs them, kept between questions as far as that is bearable."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from recto.search.index import Index, Passage
from recto.search.rank import FALL, RADIUS, prior

# About ten megabytes; of a larger shelf only what a question leads to is read.
MOST_KEPT = 20_000
_PARTS = [(distance, FALL[abs(distance)]) for distance in range(-RADIUS, RADIUS + 1)]


@dataclass(slots=True)
class Shelf:
    passages: dict[int, Passage] = field(default_factory=dict)
    lengths: dict[int, float] = field(default_factory=dict)
    """How many words passages have, with their surroundings."""
    priors: dict[int, float] = field(default_factory=dict)
    """What passages are worth whatever was asked for."""
    is_whole: bool = False
    came: int = 0
    changes: str = ""
    removed: str = ""

    def put(self, fresh: Mapping[int, Passage]) -> None:
        """Of a shelf that is not whole the surroundings are not known, and do not count."""
        self.passages.update(fresh)
        for number, passage in fresh.items():
            self.priors[number] = prior(passage.words, passage.asks)
            self.lengths[number] = passage.words

    def extend(self, index: Index, number: int) -> None:
        """Reads what has come since the last time; everything anew where something was taken away."""
        changes = index.file.changes
        if changes == self.changes and self.is_whole:
            return
        removed = index.mark("removed")
        if removed != self.removed:
            for known in (self.passages, self.lengths, self.priors):
                known.clear()
            self.came = 0
        came = index.came
        fresh = index.since(number, self.came) if self.came else index.on_shelf(number)
        self.came = came
        self.put(fresh)
        around = {near for each in fresh for near in range(each - RADIUS, each + RADIUS + 1)}
        self.lengths.update({near: self._length(near) for near in around if near in self.passages})
        self.is_whole, self.changes, self.removed = True, changes, removed

    def _length(self, number: int) -> float:
        total = weight = 0.0
        for near, part in _PARTS:
            if passage := self.passages.get(number + near):
                total, weight = total + part * passage.words, weight + part
        # what stands at an edge has fewer neighbours, not less to say
        return total / weight


def open_shelf(index: Index, kept: dict[int, Shelf], number: int | None, size: int) -> Shelf:
    """The whole shelf as it was kept, brought up to date; an empty one, to be filled with what a question needs, where
    it is too large for that."""
    if number is None or size > MOST_KEPT:
        return Shelf()
    shelf = kept.setdefault(number, Shelf())
    shelf.extend(index, number)
    return shelf
