"""Standing: where a front end stands in a conversation: its own head, its model, what it has been told."""

import asyncio
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from recto.vault.vault import Vault
from recto.walk.scale import Scale
from recto.walk.turn import Loaded

ASK_AGAIN_S = 0.005


@dataclass(slots=True)
class Standing:
    """The head here is what this front end has seen. The store's head may have moved on: then we are on a branch."""

    conversation: str
    head: str | None
    model: str
    vault: Vault | None = None
    branched: bool = False
    request: str | None = None
    """The last request made from here: the next is stored as what it adds."""
    told: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)
    """What is to be told with the next message."""
    loaded: dict[Scale, Loaded] = field(default_factory=dict)
    """What the last window was made of, by what weighed it: the next one adds to it."""
    _turn: threading.Lock = field(default_factory=threading.Lock)

    def tell_once(self, text: str) -> bool:
        fresh = text not in self.told
        self.told.add(text)
        return fresh

    @asynccontextmanager
    async def taking_turns(self) -> AsyncGenerator[None, None]:
        """One turn at a time. A lock of threads, asked again and again: turns may run on different loops."""
        while not self._turn.acquire(blocking=False):  # noqa: ASYNC110  an Event belongs to one loop
            await asyncio.sleep(ASK_AGAIN_S)
        try:
            yield
        finally:
            self._turn.release()

    def take_notes(self) -> list[str]:
        notes, self.notes = self.notes, []
        return notes

    def stands_at(self, head: str, moved: bool) -> bool:
        """We stand at `head` now; True when this is the moment at which we came to be on a branch."""
        fresh = not moved and not self.branched
        self.head, self.branched = head, not moved
        return fresh
