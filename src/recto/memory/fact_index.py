"""FactIndex: finds facts by words and meaning, in an index file that can be thrown away. Follows the facts by their
revisions: whoever asks first after a change brings the index up to date."""

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from recto.errors import StoreError
from recto.search.finder import Query, SearchResult
from recto.search.hybrid_index import HybridIndex, OpenEmbedder, Progress
from recto.search.index_item import IndexItem
from recto.search.keyword_index import Passage
from recto.store.fact import MemoryFact

PARTITION = "facts"
_REVISION, _USES_SEEN = "revision", "uses seen"
# How many changed facts are indexed in one transaction, and how many a search waits for.
BATCH, FEW = 2000, 4000
# A fact without a word of the question needs this similarity: an answer in other words reaches more.
MIN_SIMILARITY = 0.3

Changes = Callable[[int, int], tuple[list[tuple[int, MemoryFact | None]], int]]
"""The facts that changed after a revision, at most so many, and the revision that this leads to."""
Read = Callable[[Sequence[int]], Mapping[int, MemoryFact]]


class FactHit(Struct, frozen=True):
    number: int
    score: float
    """Between 0 and 1."""
    because: str
    word_score: float
    similarity: float | None


class FactIndex:
    def __init__(
        self,
        path: Path,
        embedder: OpenEmbedder,
        changes: Changes,
        latest: Callable[[], int],
        read: Read,
        *,
        timeout_s: float = 2.0,
    ) -> None:
        self._changes, self._latest, self._read = changes, latest, read
        self._index = HybridIndex(path, embedder, self._texts, timeout_s=timeout_s, keeps_texts=True)
        self._filling = threading.Lock()

    def find(self, text: str, limit: int) -> tuple[list[FactHit], str]:
        """The best first, and a note on what limits the result."""
        self._index.open()
        before = self._index.rebuild_reason
        behind, found = self._index.keywords.file.run(lambda: (self.fill(FEW), self._search(text, limit)))
        best: dict[int, FactHit] = {}
        for hit in found.hits:
            if hit.word_score or (hit.similarity or 0) >= MIN_SIMILARITY:
                best.setdefault(
                    hit.passage.item,
                    FactHit(hit.passage.item, hit.score, hit.because, hit.word_score, hit.similarity),
                )
        rebuilt = "" if self._index.rebuild_reason == before else self._index.rebuild_reason
        return list(best.values()), "not all facts are in the index yet" if behind else found.warning or rebuilt

    def _search(self, text: str, limit: int) -> SearchResult:
        return self._index.finder.find(Query(text, PARTITION, spreads=False, limit=limit))

    def fill(self, most: int | None = None) -> bool:
        """Brings the index up to date; after so many facts the rest waits. Returns whether any do."""
        with self._filling:
            done = 0
            if self._reached > self._latest():  # of another store, or of a newer one
                self.start_over()
            while most is None or done < most:
                reached = self._reached
                changed, revision = self._changes(reached, BATCH)
                if not changed:
                    return False
                self._put(reached, changed, revision)
                done += len(changed)
            return True

    def _put(self, reached: int, changed: Sequence[tuple[int, MemoryFact | None]], revision: int) -> None:
        items = [
            IndexItem(number, fact.text, position=number, time=fact.created)
            for number, fact in changed
            if fact is not None and fact.replaced_by is None
        ]
        # all in one step: another process may have done the same meanwhile
        self._index.keywords.add(
            {PARTITION: items},
            {_REVISION: str(revision)},
            expected={_REVISION: str(reached) if reached else ""},
            removed=[number for number, _ in changed] if reached else (),
        )

    def _texts(self, passages: Sequence[Passage]) -> Mapping[int, str]:
        facts = self._read([passage.item for passage in passages])
        return {
            passage.number: facts[passage.item].text[passage.start : passage.end]
            for passage in passages
            if passage.item in facts
        }

    @property
    def _reached(self) -> int:
        """The revision up to which facts are indexed."""
        return self._index.keywords.parsed_mark(_REVISION, int, 0)

    @property
    def uses_seen(self) -> int:
        """How many uses of notes were looked at to find those that are used often."""
        return self._index.keywords.parsed_mark(_USES_SEEN, int, 0)

    @uses_seen.setter
    def uses_seen(self, number: int) -> None:
        self._index.keywords.add({}, {_USES_SEEN: str(number)})

    def make_vectors(self, progress: Progress | None = None) -> None:
        self._index.make_vectors(progress)

    def make_batch(self) -> bool:
        """Makes some missing vectors; returns whether there may be more."""
        vectors = self._index.vectors
        return vectors is not None and vectors.make_batch() > 0

    def start_over(self) -> None:
        """Words cannot be taken out of the index one by one: it is filled again from nothing."""
        self._index.keywords.clear((), {_REVISION: ""}, forgotten_prefix=_REVISION)

    def close(self) -> None:
        with suppress(StoreError):  # it can be thrown away
            self._index.close()
