"""Archive: all messages as they are searched: fed into an index as they come, found within a path or everywhere.

The index is a file of its own beside the store, so that what is made behind never holds up what is said. It can be
thrown away: it is filled again from the store.
"""

import json
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from recto.chat.message import Message
from recto.chat.trail import Trail
from recto.errors import RectoError, StoreError
from recto.search.behind import Behind
from recto.search.finder import Hit, Wanted
from recto.search.index import Filter, Item, Passage
from recto.search.lookup import Lookup, Open, Progress
from recto.store.store import Store
from recto.walk.shelving import is_settled, items_of, said

# So many messages are fed at once behind a turn.
BATCH = 64
# So many passages are looked at at least: a long message that holds a word in all of them is found but once.
PASSAGES = 400
# So long the end waits for a batch that is being made; a server may take longer, and loses nothing but that.
LET_GO_S = 1.0
# So many vectors are made while one waits for a search to begin.
FEW = 64
AS_ASKED = "the search index is made anew, as you asked"


@dataclass(frozen=True, slots=True)
class Patience:
    """What may be waited for before an answer: so many messages fed, and so long for another thread that feeds."""

    messages: int
    seconds: float
    newest: int = 0
    """So many of the newest may be missing: they are not what is looked for."""


BEING_MADE = "the search index is being made"
# About a millisecond of a turn, whose latest messages are in its window; of somebody who asked to search, a moment.
OF_A_TURN, OF_A_USER = Patience(16, 0.003, newest=2), Patience(8 * BATCH, 1.0)


@dataclass(frozen=True, slots=True)
class Scope:
    """A part of a path: what of a conversation may be recalled."""

    home: str
    trail: Trail
    first: int
    last: int

    def holds(self, passage: Passage) -> bool:
        if not self.first <= passage.place <= self.last:
            return False
        branches = self.trail.branches
        # most conversations never branch, and this is asked for every passage
        return (
            passage.branch == branches[0][0] if len(branches) == 1 else self.trail.holds(passage.branch, passage.place)
        )


@dataclass(frozen=True, slots=True)
class Recalled:
    """A message that was found, with the passage that was."""

    hit: Hit
    message: Message
    home: str

    @property
    def text(self) -> str:
        """The passage as it was said."""
        return said(self.message)[self.hit.passage.start : self.hit.passage.end]


@dataclass(frozen=True, slots=True)
class Filled:
    """How far the index has come."""

    messages: int
    indexed: int
    vectors: int
    waiting: int
    """Passages that the embedder has not seen yet."""
    embedder: str | None
    why: str = ""
    """Why there is no embedder, or what it could not do."""


class Archive:
    def __init__(self, store: Store, path: Path, embedder: Open, *, timeout_s: float = 2.0) -> None:
        self._store = store
        self._lookup = Lookup(path, embedder, self._texts, timeout_s=timeout_s)
        self._index, self._finder = self._lookup.index, self._lookup.finder
        self._checked = False
        self._trouble = ""
        """What went wrong behind."""
        self._behind = Behind(self._some, "recto-archive")
        self._feeding = threading.Lock()

    # -- finding

    def recall(
        self, text: str, scope: Scope, *, most: int, patience: Patience = OF_A_TURN
    ) -> tuple[list[Recalled], str]:
        """What of a path's part bears on a text, the best first, and what was not as it should be."""
        hits, note = self._find(Wanted(text, scope.home, accepts=scope.holds, most=most), patience)
        return self.read(hits), note

    def search(self, text: str, *, home: str | None = None, only: Filter, most: int) -> tuple[list[Hit], str]:
        """What bears on a text in all conversations, archived parts and branches: of each message its best passage."""
        wanted = Wanted(text, home, only=only, spreads=False, most=max(PASSAGES, most * 3))
        hits, note = self._find(wanted, OF_A_USER)
        once: dict[int, Hit] = {}
        for hit in hits:
            once.setdefault(hit.passage.item, hit)
        return list(once.values()), note

    def _find(self, wanted: Wanted, patience: Patience) -> tuple[Sequence[Hit], str]:
        note, before = self._ready(patience), self.was_renewed
        found = self._finder.find(wanted)
        if self.was_renewed != before:  # it turned out to be damaged while it was read
            note = self._ready(patience)
            found = self._finder.find(wanted)
        return found.hits, note or found.note

    def _ready(self, patience: Patience) -> str:
        """What is missing in what is to be searched is made behind, unless it is next to nothing; says what is not as
        it should be."""
        self._lookup.open()
        left = self.left
        if left <= patience.newest and patience.newest:
            self.stir()
            return self._amiss
        if 0 < left <= patience.messages or (left == 0 and self._growing()):
            left = self._feed(patience.messages, patience.seconds)
        if left > 0:
            self.stir()
            return BEING_MADE if patience is OF_A_TURN else f"{BEING_MADE}: {left} messages are not in it yet"
        return self._amiss

    @property
    def _amiss(self) -> str:
        return self._trouble or self._lookup.why

    def read(self, hits: Sequence[Hit]) -> list[Recalled]:
        """The messages of hits, in their order."""
        found = self._store.tree.by_number([hit.passage.item for hit in hits])
        return [
            Recalled(hit, found[hit.passage.item].message, found[hit.passage.item].home)
            for hit in hits
            if hit.passage.item in found
        ]

    # -- filling

    def stir(self) -> None:
        """Something was said: it is fed, and its vectors are made, behind."""
        self._behind.stir()

    def catch_up(self, progress: Progress | None = None, *, vectors: bool = False) -> None:
        """Feeds all that there is, now; for commands that were asked to."""
        total = self._store.tree.newest_number()
        while (left := self._feed(BATCH * 8)) > 0:
            if progress:
                progress(total - left, total)
        if vectors:
            self.make_vectors(progress)

    def make_vectors(self, progress: Progress | None = None) -> None:
        """Makes all vectors that are missing, now; where that fails it ends, and `filled` says why."""
        self._lookup.make_vectors(progress)

    def settle(self, within_s: float) -> None:
        """Makes vectors behind; where only a few are missing, waits a moment for them."""
        meaning, until = self._lookup.meaning, time.monotonic() + within_s
        if meaning is None or not meaning.waiting:
            return
        self.stir()
        while 0 < meaning.waiting <= FEW and not meaning.why and time.monotonic() < until:
            time.sleep(0.02)

    def renew(self, because: str = AS_ASKED) -> None:
        self._index.file.renew(because)

    @property
    def left(self) -> int:
        """How many messages are not in the index yet."""
        newest = self._store.tree.newest_number()
        return newest - self._done(newest)

    @property
    def was_renewed(self) -> str:
        """Why the index had to be begun anew; empty when it had not."""
        return self._lookup.was_renewed

    @property
    def filled(self) -> Filled:
        meaning, left = self._lookup.meaning, self.left
        total = self._store.tree.newest_number()
        if meaning is None:
            return Filled(total, total - left, 0, 0, None, self._amiss)
        return Filled(total, total - left, meaning.made, meaning.waiting, meaning.name, meaning.why)

    def check(self) -> str:
        """Asks the embedder for a vector; empty when it gave one, else why there is none."""
        meaning = self._lookup.meaning
        return meaning.check() if meaning else self._amiss

    def _some(self) -> bool:
        """A bit of what is to be done behind; never raises, for nobody would hear it."""
        try:
            meaning = self._lookup.meaning
            if self._feed(BATCH) > 0:
                return True
            return meaning is not None and meaning.make_some() > 0
        except RectoError as why:
            self._trouble = why.message
            return False
        except Exception as why:  # nobody would hear it: the next search tells it
            self._trouble = f"the search index could not be brought up to date ({type(why).__name__}: {why})"
            return False

    def _done(self, newest: int) -> int:
        """The number of the last message that was fed, of so many; an index that belongs to another store is begun
        anew."""
        done = int(self._index.mark("messages") or 0)
        if done and (done > newest or not self._is_ours(done)):
            self.renew("the search index belonged to another store and is made anew")
            return 0
        return done

    def _is_ours(self, done: int) -> bool:
        """Whether the first and the last message that were fed are the store's: an older copy of it may have been put
        back, and gone on otherwise. Asked once."""
        if not self._checked:
            first = self._store.tree.after(0, most=1)
            last = self._store.tree.by_number([done])
            known = [self._index.mark("first"), self._index.mark("last")]
            self._checked = known == [each.message.id for each in (*first, *last.values())]
        return self._checked

    def _feed(self, most: int, patience_s: float = OF_A_USER.seconds) -> int:
        """Feeds up to so many messages, and those that were not finished the last time; says how many are left. Another
        thread or process may be doing the same: then what it does is enough."""
        if not self._feeding.acquire(timeout=patience_s):
            return self.left
        before = self.was_renewed
        try:
            return self._feed_some(most)
        except StoreError:
            if self.was_renewed == before:
                raise
            return self.left  # it was damaged: all is to be done again
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
        still = [each.n for each in fresh if not is_settled(each.message)]
        still += [number for number in growing if number not in {each.n for each in late}]
        shelves: dict[str, list[Item]] = {}
        for each in (*late, *fresh):
            if is_settled(each.message):
                shelves.setdefault(each.home, []).extend(items_of(each))
        last = fresh[-1].n if fresh else done
        marks = {"messages": str(last), "growing": json.dumps(still)}
        if fresh:
            marks["last"] = fresh[-1].message.id
        if not done and fresh:
            marks["first"] = fresh[0].message.id
        self._index.add(shelves, marks, expects=before)
        return self._store.tree.newest_number() - last

    def _growing(self) -> list[int]:
        """The numbers of messages that were not finished when they were met."""
        return list(json.loads(self._index.mark("growing") or "[]"))

    def _texts(self, passages: Sequence[Passage]) -> Mapping[int, str]:
        found = self._store.tree.by_number([passage.item for passage in passages])
        return {
            passage.n: said(found[passage.item].message)[passage.start : passage.end]
            for passage in passages
            if passage.item in found
        }

    def close(self) -> None:
        self._behind.close(timeout_s=0)
        self._lookup.stop()
        self._behind.close(LET_GO_S)
        self._lookup.close()
