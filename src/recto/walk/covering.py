"""Covering: all that a cut covers and no summary tells yet, in the forms a summariser needs.

What was loaded for the window is at hand. What is older is read from the store page by page; beyond what a model can be
asked to read, only the essence of each page is held.
"""

import asyncio
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from recto.chat.message import Message
from recto.sources.tools import RECALL
from recto.store.clerk import Clerk
from recto.store.store import Store
from recto.summary.check import Covered, Former
from recto.summary.extract import Said, extract, truncate
from recto.summary.order import told
from recto.walk.scale import Scale, Weighed

PAGE = 1000
# What is kept of a page that no model will read, in characters.
ESSENCE = 8_000


@dataclass(slots=True)
class Covering:
    store: Store
    clerk: Clerk
    scale: Scale
    """The conversation's own."""
    before: Former
    """The summary that there is, and its ledger."""
    messages: tuple[Message, ...]
    """What was loaded, oldest first."""
    older: str | None
    """Where the part that was not loaded begins, going back."""
    until: str | None
    """Where it ends: what the former summary covers."""
    entries: tuple[Weighed, ...] | None
    """The covered part as the conversation's own requests have it; None when some of it was not loaded."""
    tokens: int
    """What it takes in the window."""
    covered: int
    """How many messages it is."""
    archived: int
    """How many are archived once it is covered, those before included."""
    beside: tuple[str, ...] = ()
    """What else a summariser may tell from: instructions, messages that are still sent."""
    seen: int = 0
    """How many messages were given to a summariser, whole or as sentences."""
    _essence: list[Said] = field(default_factory=list)
    _facts: Covered | None = None

    @property
    def former(self) -> str:
        return self.before.summary

    async def gathered(self) -> Covered:
        """The facts of what was read so far; what was loaded is read at the first call."""
        if self._facts is None:
            self._facts = Covered()
            await asyncio.to_thread(self._facts.add, self.messages)
        return self._facts

    async def read(self, characters: int) -> None:
        """Brings in what was not loaded: whole up to about so many characters, the essence of what is before."""
        if self.seen:
            return
        facts = await self.gathered()
        at, self.seen = self.older, len(self.messages)
        size = sum(len(told(message)) for message in self.messages)
        while at and at != self.until:
            page = await self.clerk.do(self.store.tree.bare_page, at, most=PAGE, until=self.until)
            said = [message for message in reversed(page) if message.compaction is None]
            self.seen += len(said)
            await asyncio.to_thread(facts.add, said)
            if size <= characters and not self._essence:
                self.messages = (*said, *self.messages)
                size += sum(len(told(message)) for message in said)
            else:
                self._essence = await asyncio.to_thread(_essence, said) + self._essence
            at = page[-1].parent if len(page) == PAGE else None

    @property
    def texts(self) -> list[str]:
        """Everything as a transcript tells it, oldest first."""
        early = [f"{each.role.capitalize()}: {each.text}" for each in self._essence]
        begins = (
            ["Sentences from the beginning of the conversation:", *early, "The conversation then:"] if early else []
        )
        return [text for text in (*begins, *(told(message) for message in self.messages)) if text]

    @property
    def has_essence(self) -> bool:
        return bool(self._essence)

    async def extract(self, most: int) -> str:
        return await asyncio.to_thread(extract, self._said, most, self.count, self.former)

    async def truncate(self, most: int) -> str:
        return truncate(self._said, most, self.count, self.former)

    @property
    def _said(self) -> list[Said]:
        return [*self._essence, *(_said(message) for message in self.messages)]

    @property
    def count(self) -> Callable[[str], int]:
        """By the density of what is covered: real counting may need a server, and comes afterwards."""
        size = sum(len(told(message)) for message in self.messages)
        density = max(0.2, min(2.0, self.tokens / max(1, size)))
        return lambda text: math.ceil(len(text) * density)


def _said(message: Message) -> Said:
    text = message.text or "\n".join(result.text for result in message.results if result.name != RECALL)
    calls = " ".join(f"{call.name} {call.arguments}" for call in message.calls)
    return Said(message.role, "\n".join(part for part in (text, calls) if part), message.priority)


def _essence(messages: Sequence[Message]) -> list[Said]:
    lines = extract([_said(message) for message in messages], ESSENCE, len).splitlines()
    parts = [line.partition(": ") for line in lines]
    return [Said(role.lower(), text) for role, _, text in parts if text]
