"""Standing: where a front end stands in a conversation: its own head, its model, what it has been told."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from recto.sources.pick import Mode
from recto.sources.source import SourceId
from recto.vault.vault import Vault
from recto.walk.loading import Loaded
from recto.walk.scale import Scale
from recto.walk.setup import Choices

ASK_AGAIN_S = 0.005


@dataclass(frozen=True, slots=True)
class Before:
    """The tools of the last request."""

    compaction: int | None = None
    """The number of the Compaction that was in force."""
    chosen: tuple[SourceId, ...] = ()
    """Those that were chosen for a message: they stay until the next compaction."""
    others: tuple[SourceId, ...] = ()


def before(compaction: int | None, tools: Iterable[tuple[SourceId, Mode]]) -> Before:
    """Of tools with how each came in."""
    modes = dict(tools)
    chosen = tuple(id for id, mode in modes.items() if mode == "agent")
    return Before(compaction, chosen, tuple(id for id in modes if id not in chosen))


@dataclass(slots=True)
class Standing:
    """The head here is what this front end has seen. The store's head may have moved on: then we are on a branch."""

    conversation: str
    head: str | None
    model: str = ""
    """Who was asked for by name; empty leaves it to agent and settings."""
    vault: Vault | None = None
    document: str | None = None
    """What the user has open beside the chat, by its path in the vault."""
    choices: Choices = field(default_factory=Choices)
    branched: bool = False
    request: str | None = None
    """The last request made from here: the next is stored as what it adds."""
    told: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)
    """What is to be told with the next message."""
    loaded: dict[Scale, Loaded] = field(default_factory=dict)
    """What the last window was made of, by what weighed it: the next one adds to it."""
    offered: Before | None = None
    """None where the record of the last request has to be asked."""
    kept: set[str] = field(default_factory=set)
    """Hashes of source texts that the store has."""
    allowed: set[str] = field(default_factory=set)
    """Tools that may run without asking, as long as this front end stands here: `server` or `server/tool`."""
    declined: int = 0
    """How large the window was when the user last said no to a compaction."""
    _is_nearly_full: bool = False
    _turn: threading.Lock = field(default_factory=threading.Lock)

    def tell_once(self, text: str) -> bool:
        fresh = text not in self.told
        self.told.add(text)
        return fresh

    def fills_up(self, is_nearly_full: bool) -> bool:
        """True once, when the window comes to be nearly full; again after it was not."""
        before, self._is_nearly_full = self._is_nearly_full, is_nearly_full
        return self._is_nearly_full and not before

    @asynccontextmanager
    async def taking_turns(self) -> AsyncGenerator[None, None]:
        """One turn at a time. A lock of threads, asked again and again: turns may run on different loops."""
        while not self._turn.acquire(blocking=False):  # noqa: ASYNC110  an Event belongs to one loop
            await asyncio.sleep(ASK_AGAIN_S)
        try:
            yield
        finally:
            self._turn.release()

    def fresh(self, notes: Sequence[str], always: Sequence[str] = ()) -> list[str]:
        """What is to be told now: what waited to be told, and of these notes what was not told before."""
        waiting, self.notes = self.notes, []
        return waiting + [note for note in notes if note in always or self.tell_once(note)]

    def stands_at(self, head: str, moved: bool) -> bool:
        """We stand at `head` now; True when this is the moment at which we came to be on a branch."""
        fresh = not moved and not self.branched
        self.head, self.branched = head, not moved
        return fresh
