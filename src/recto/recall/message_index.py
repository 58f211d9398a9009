"""MessageIndex: indexes messages as they come, and searches them on a path or everywhere."""

import logging
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from msgspec import Struct, json

from recto.base.background import BackgroundWorker
from recto.chat.conversation import Trail
from recto.chat.message import Message
from recto.errors import RectoError
from recto.recall.indexed_message import (
    BACKGROUND_BATCH,
    BATCH,
    IndexStatus,
    index_items,
    is_settled,
    searchable_text,
)
from recto.search.finder import Hit, HitChoice, Query
from recto.search.hybrid_index import HybridIndex, OpenEmbedder, Progress
from recto.search.keyword_index import Filter, IndexItem, Passage
from recto.store.database import Change
from recto.store.store import Store

log = logging.getLogger(__name__)

_NUMBERS = json.Decoder(list[int])

# The least number of passages that a search reads: one long message may hold the word in many of them.
PASSAGES = 400
# New messages are indexed once no turn has begun or ended for this long.
QUIET_S = 0.2
# How long closing waits for a batch of vectors; a slower one is made again later.
LET_GO_S = 1.0
# How many missing vectors a search waits for.
FEW = 64
AS_ASKED = "the search index is being rebuilt, as you asked"


class WaitPolicy(Struct, frozen=True):
    """How long a search may wait: messages to index first, seconds for another thread that indexes."""

    messages: int
    seconds: float


BEING_MADE = "the search index is being built"
# A turn waits only if messages were archived right after they came; a user who searches waits a moment.
WAIT_IN_TURN, WAIT_FOR_USER = WaitPolicy(2 * BATCH, 0.003), WaitPolicy(8 * BATCH, 1.0)


class IndexScope(Struct, frozen=True):
    home: str
    trail: Trail
    first: int
    last: int
    number: int
    """The number of the last message in the store."""
    condensed: frozenset[int] = frozenset()
    """Positions of messages with an excerpt in the window."""

    @property
    def stretch(self) -> tuple[int, int, int] | None:
        """The branch and its first and last position, if the path never branches, as is usual."""
        branches = self.trail.branches
        return (branches[0][0], self.first, self.last) if len(branches) == 1 and not self.condensed else None

    def reaches(self, position: int) -> bool:
        return self.first <= position <= self.last or position in self.condensed

    def holds(self, passage: Passage) -> bool:
        return self.reaches(passage.position) and self.trail.holds(passage.branch, passage.position)


class MessageHit(Struct, frozen=True):
    hit: Hit
    message: Message
    home: str

    @property
    def text(self) -> str:
        """The passage, verbatim."""
        return searchable_text(self.message)[self.hit.passage.start : self.hit.passage.end]


class MessageIndex:
    def __init__(self, store: Store, path: Path, embedder: OpenEmbedder, *, timeout_s: float = 2.0) -> None:
        self._store = store
        self._lookup = HybridIndex(path, embedder, self._texts, timeout_s=timeout_s)
        self._index, self._finder = self._lookup.keywords, self._lookup.finder
        self._checked = False
        self._trouble = ""
        self._worker = BackgroundWorker(self._some, "recto-archive", delay_s=QUIET_S)
        self._feeding = threading.Lock()
        self._may_lag = store.database.file is None

    # -- finding

    def recall(
        self,
        text: str,
        scope: IndexScope,
        *,
        most: int,
        until: int | None = None,
        patience: WaitPolicy = WAIT_IN_TURN,
        choose: HitChoice = list,
    ) -> tuple[list[MessageHit], str]:
        """Messages that match, best first, and a note on what limits the result.

        `until` is the depth of the last message before the one that asks, which may be indexed already. Only the hits
        that `choose` takes are read."""
        stretch = scope.stretch
        accepts = scope.holds if stretch is None else None
        query = Query(text, scope.home, accepts=accepts, stretch=stretch, until=until, limit=most)
        hits, note = self._find(query, patience, scope.number if patience is WAIT_IN_TURN else None, choose)
        return self.read(hits), note

    def search(
        self, text: str, *, home: str | None = None, homes: Collection[str] | None = None, only: Filter, most: int
    ) -> tuple[list[Hit], str]:
        """The best passage of each matching message, also in archived parts and branches."""
        accepts = None
        if homes is not None:
            partitions = {self._index.partition(each) for each in homes}
            accepts = lambda passage: passage.partition in partitions  # noqa: E731
        wanted = Query(text, home, accepts=accepts, filter=only, spreads=False, limit=max(PASSAGES, most * 3))
        hits, note = self._find(wanted, WAIT_FOR_USER)
        once: dict[int, Hit] = {}
        for hit in hits:
            once.setdefault(hit.passage.item, hit)
        return list(once.values()), note

    def _find(
        self, wanted: Query, patience: WaitPolicy, needed: int | None = None, choose: HitChoice = list
    ) -> tuple[Sequence[Hit], str]:
        before = self.was_renewed

        def find() -> tuple[Sequence[Hit], str]:
            # a damaged index is empty now, and lacks what was in it
            note = self._prepare_index(patience, needed if self.was_renewed == before else None)
            found = self._finder.find(wanted, choose)
            return found.hits, note or found.warning or (self.was_renewed if self.was_renewed != before else "")

        return self._index.file.run(find)

    def _prepare_index(self, patience: WaitPolicy, needed: int | None = None) -> str:
        """Indexes a few missing messages immediately, leaves more to the background, and notes what is missing.
        `needed` is the number of the last message that can be found: later ones are in the window."""
        self._lookup.open()
        if needed is not None and self._has(needed):
            return self._amiss
        left = self.left
        if 0 < left <= patience.messages or (left == 0 and self._growing()):
            left = self._feed(patience.messages, patience.seconds)
        if left > 0 and patience is WAIT_IN_TURN:
            return BEING_MADE  # indexing begins when the request has been sent
        if left > 0:
            self.wake()
            return f"{BEING_MADE}: {left} messages are not in it yet"
        return self._amiss

    def _has(self, number: int) -> bool:
        """True if everything up to this message is indexed."""
        done = self._index.parsed_mark("messages", int, 0)
        return done >= number and (self._checked or self._done(self._store.tree.newest_number()) == done)

    @property
    def _amiss(self) -> str:
        return self._trouble or self._lookup.problem

    def read(self, hits: Sequence[Hit]) -> list[MessageHit]:
        found = self._store.tree.by_number(list(dict.fromkeys(hit.passage.item for hit in hits)))
        named = ((hit, found.get(hit.passage.item)) for hit in hits)
        return [MessageHit(hit, each.message, each.home) for hit, each in named if each]

    # -- filling

    def wake(self) -> None:
        """Indexes new messages and makes their vectors in the background."""
        self._worker.wake()

    def catch_up(self, progress: Progress | None = None, *, vectors: bool = False) -> None:
        """Indexes everything now, for explicit commands."""
        while (left := self._feed(BACKGROUND_BATCH)) > 0:
            if progress:
                total = self._store.tree.newest_number()
                progress(max(0, total - left), total)
        if vectors:
            self._lookup.make_vectors(progress)  # on a failure it stops, and `filled` says why

    def settle(self, within_s: float) -> None:
        """Makes vectors in the background, and waits a moment if only a few are missing."""
        meaning, until = self._lookup.vectors, time.monotonic() + within_s
        if meaning is None or not meaning.waiting:
            return
        self.wake()
        while 0 < meaning.waiting <= FEW and not meaning.problem and time.monotonic() < until:
            time.sleep(0.02)

    def forget_removed(self) -> None:
        """Rebuilds the index if it holds conversations that were removed from the store, since words cannot be removed
        one by one. Vectors of what stays are kept."""
        held = {str(key) for (key,) in self._index.file.read("SELECT key FROM shelves")}
        if held <= self._store.tree.conversation_numbers(held).keys():
            return
        with self._feeding:
            numbers = self._store.tree.all_numbers()
            self._index.clear(numbers, {"messages": "", "growing": "", "first": "", "last": ""}, "message:")
            self._checked = False

    def follow(self, change: Change) -> None:
        """Handles a change by another process on the same database server; the index is this machine's own."""
        if change == "removed":
            self.forget_removed()
        self.wake()

    def renew(self, because: str = AS_ASKED) -> None:
        self._index.file.rebuild(because)

    @property
    def left(self) -> int:
        """The number of messages not yet indexed."""
        newest = self._store.tree.newest_number()
        return newest - self._done(newest)

    @property
    def was_renewed(self) -> str:
        """Why the index had to be rebuilt; empty if it was not."""
        return self._lookup.rebuild_reason

    @property
    def filled(self) -> IndexStatus:
        vectors, left, total = self._lookup.vectors, self.left, self._store.tree.newest_number()
        done, renewed = total - left, self.was_renewed
        if vectors is None:
            return IndexStatus(total, done, 0, 0, None, self._amiss, renewed)
        return IndexStatus(total, done, vectors.count, vectors.waiting, vectors.name, vectors.problem, renewed)

    def check(self) -> str:
        """Asks the embedder for a vector; returns the error, or an empty text."""
        meaning = self._lookup.vectors
        return meaning.check() if meaning else self._amiss

    def _some(self) -> bool:
        """One step of background work. Never raises: nobody would see it."""
        try:
            meaning = self._lookup.vectors
            if self._may_lag:  # others may have removed conversations while this process did not run
                self._may_lag = False
                self.forget_removed()
            if self._feed(BACKGROUND_BATCH) > 0:
                return True
            return meaning is not None and meaning.make_batch() > 0
        except RectoError as why:
            self._trouble = why.message
            return False
        except Exception as why:  # nobody would see it here: the next search reports it
            log.exception("indexing messages failed")
            self._trouble = f"the search index could not be brought up to date ({type(why).__name__}: {why})"
            return False

    def _done(self, newest: int) -> int:
        """The number of the last indexed message; an index that belongs to another store is rebuilt."""
        done = self._index.parsed_mark("messages", int, 0)
        if done and (done > newest or not self._is_ours(done)):
            self.renew("the search index belonged to another store and is being rebuilt")
            return 0
        return done

    def _is_ours(self, done: int) -> bool:
        """Checks the first and last indexed messages: an older copy of the store may have been restored."""
        if not self._checked:
            first = self._store.tree.after(0, most=1)
            last = self._store.tree.by_number([done])
            known = [self._index.mark("first"), self._index.mark("last")]
            self._checked = known == [each.message.id for each in (*first, *last.values())]
        return self._checked

    def _feed(self, most: int, patience_s: float = WAIT_FOR_USER.seconds) -> int:
        """Indexes at most this many messages, and those left unfinished; returns how many remain. Does nothing if
        another thread or process is indexing."""
        if not self._feeding.acquire(timeout=patience_s):
            return self.left
        try:
            return self._index.file.run(lambda: self._feed_some(most))
        finally:
            self._feeding.release()

    def _feed_some(self, most: int) -> int:
        done = self._done(self._store.tree.newest_number())
        growing = self._growing()
        before = {name: self._index.mark(name) for name in ("messages", "growing")}
        fresh = self._store.tree.after(done, most=most)
        late = [each for each in self._store.tree.by_number(growing).values() if is_settled(each.message)]
        if not fresh and not late:
            return 0
        complete = [*late, *(each for each in fresh if is_settled(each.message))]
        known = {each.n for each in complete}
        still = [number for number in (*(each.n for each in fresh), *growing) if number not in known]
        partitions: dict[str, list[IndexItem]] = {}
        for each in complete:
            partitions.setdefault(each.home, []).extend(index_items(each))
        last = fresh[-1].n if fresh else done
        marks = {"messages": str(last), "growing": json.encode(still).decode()}
        if fresh:
            marks["last"] = fresh[-1].message.id
        if not done and fresh:
            marks["first"] = fresh[0].message.id
        self._index.add(partitions, marks, expected=before)
        return self._store.tree.newest_number() - last

    def _growing(self) -> list[int]:
        """Numbers of messages that were unfinished when they were indexed."""
        return self._index.parsed_mark("growing", _NUMBERS.decode, [])

    def _texts(self, passages: Sequence[Passage]) -> Mapping[int, str]:
        found = self._store.tree.by_number([passage.item for passage in passages])
        return {
            passage.number: searchable_text(found[passage.item].message)[passage.start : passage.end]
            for passage in passages
            if passage.item in found
        }

    def close(self) -> None:
        self._worker.close(timeout_s=0)
        self._lookup.stop()
        self._worker.close(LET_GO_S)
        self._lookup.close()
