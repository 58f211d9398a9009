"""Partition: the passages of a conversation, or of a vault, in memory, as many as searches need."""

import sys
from collections.abc import Collection, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct, field

from recto.search.keyword_index import KeywordIndex, Passage
from recto.search.ranking import NEIGHBOUR_WEIGHTS, RADIUS, passage_prior

if TYPE_CHECKING:
    from recto.search.passage_table import Mask, PassageTable

K = TypeVar("K")
V = TypeVar("V")

# About ten megabytes. Of a larger partition, only the passages that a query needs are read.
MAX_CACHED_PASSAGES = 20_000
# In a table about twenty megabytes. That of a large chat is made in the background: it takes longer than a search.
MAX_TABLE_PASSAGES = 250_000
# A table has no need of passages; so many that were read stay, since questions about one thing find the same ones.
MAX_KEPT_PASSAGES = 2000
# How many partitions, that is conversations, stay in memory.
MAX_CACHED_PARTITIONS = 8
_OFFSETS = [(offset, NEIGHBOUR_WEIGHTS[abs(offset)]) for offset in range(-RADIUS, RADIUS + 1)]


class Partition(Struct):
    """A partition's passages in memory: all of them, or those that one query needs."""

    passages: dict[int, Passage] = field(default_factory=dict)
    """With a table only those that were needed so far."""
    lengths: dict[int, float] = field(default_factory=dict)
    """Word counts, averaged with the neighbours; with a table that has them."""
    priors: dict[int, float] = field(default_factory=dict)
    """Scores that do not depend on the query."""
    table: "PassageTable | None" = None
    mask: "tuple[Collection[int], Mask] | None" = None
    """Branches, and which passages of the table are of them."""
    is_complete: bool = False
    queue_end: int = 0
    change_id: str = ""
    removal_id: str = ""

    def put(self, fresh: Mapping[int, Passage]) -> None:
        """In a partition that is not complete, neighbours are unknown and do not count."""
        self.passages.update(fresh)
        for number, passage in fresh.items() if self.table is None else ():
            self.priors[number] = passage_prior(passage.words, passage.is_question)
            self.lengths[number] = passage.words

    def extend(self, index: KeywordIndex, number: int) -> None:
        """Reads what was added since the last time; everything if something was removed."""
        change_id = index.file.change_id
        if change_id == self.change_id and self.is_complete:
            return
        removal_id = index.mark("removed")
        if removal_id != self.removal_id:
            for cached in (self.passages, self.lengths, self.priors):
                cached.clear()
            self.queue_end, self.table = 0, None
        queue_end = index.queue_end
        if self.table is None and (arrays := load_arrays()):
            for cached in (self.passages, self.lengths, self.priors):
                cached.clear()
            self.table, self.queue_end = arrays.EMPTY_TABLE, 0
        if self.table is not None:
            self.table, self.mask = self.table.extend(index.columns(number, self.queue_end)), None
        else:
            self._extend(index.added_since(number, self.queue_end) if self.queue_end else index.in_partition(number))
        self.queue_end = queue_end
        self.is_complete, self.change_id, self.removal_id = True, change_id, removal_id

    def of_branches(self, table: "PassageTable", branches: Collection[int] | None) -> "Mask":
        if branches is None:
            return None
        if self.mask is None or self.mask[0] is not branches:
            self.mask = branches, table.of_branches(branches)
        return self.mask[1]

    def _extend(self, fresh: Mapping[int, Passage]) -> None:
        self.put(fresh)
        affected = {near for each in fresh for near in range(each - RADIUS, each + RADIUS + 1)}
        self.lengths.update({near: self._length(near) for near in affected if near in self.passages})

    def _length(self, number: int) -> float:
        total = weight = 0.0
        for offset, part in _OFFSETS:
            if passage := self.passages.get(number + offset):
                total, weight = total + part * passage.words, weight + part
        # dividing by the weight makes up for missing neighbours at an edge
        return total / weight

    def later_than(self, position: int) -> set[int]:
        """The passages at later positions."""
        return {number for number, passage in self.passages.items() if passage.position > position}


def load_arrays() -> ModuleType | None:
    """Scoring by numpy; None without it, or until something else needs it: importing it takes longer than a search."""
    if sys.modules.get("numpy") is None:
        return None
    from recto.search import passage_table  # imports numpy

    return passage_table


def open_partition(index: KeywordIndex, cache: dict[int, Partition], number: int | None, size: int) -> Partition:
    """The complete partition from the cache, brought up to date; an empty one if it is too large to cache."""
    if number is None:
        return Partition()
    partition = cache.pop(number, None) or Partition()
    if partition.table is not None and len(partition.passages) > MAX_KEPT_PASSAGES:
        partition.passages.clear()
    may_be_table = partition.table is not None or (index.keeps_texts and load_arrays())
    if size > (MAX_TABLE_PASSAGES if may_be_table else MAX_CACHED_PASSAGES):
        return Partition()
    keep_recent(cache, number, partition, MAX_CACHED_PARTITIONS)
    partition.extend(index, number)
    return partition


def keep_recent(cache: dict[K, V], key: K, value: V, most: int) -> None:
    """Puts a value last into a cache and drops the first ones, which were not used for longest."""
    cache.pop(key, None)
    cache[key] = value
    while len(cache) > most:
        cache.pop(next(iter(cache)), None)
