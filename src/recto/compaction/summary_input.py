"""SummaryInput: everything that a cut newly covers, in the forms that a summariser needs.

What was loaded for the window is at hand. What is older is read from the store page by page; beyond what a model can be
asked to read, only the essence of each page is held.
"""

import asyncio
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from recto.chat.message import Message
from recto.concurrency import StoreThread
from recto.sources.tools import RECALL
from recto.store.store import Store
from recto.summary.extractive_summary import PlainMessage, extract, truncate
from recto.summary.prompt import transcribe
from recto.summary.verification import CoveredFacts, FormerSummary
from recto.turn.token_cache import Counted, TokenCache

PAGE = 1000
# How many characters are kept of a page that no model will read.
ESSENCE = 8_000


@dataclass(slots=True)
class SummaryInput:
    store: Store
    store_thread: StoreThread
    token_cache: TokenCache
    """Of the conversation's own model."""
    before: FormerSummary
    """The previous summary and its ledger."""
    messages: tuple[Message, ...]
    """The covered messages that are loaded, oldest first."""
    older: str | None
    """The newest covered message that is not loaded."""
    until: str | None
    """The last message that the previous summary covers."""
    entries: tuple[Counted, ...] | None
    """The covered part as the conversation's requests sent it; None if some of it is not loaded."""
    tokens: int
    """Its tokens in the window."""
    covered: int
    """How many messages are newly covered."""
    archived: int
    """How many messages are archived after the cut."""
    beside: tuple[str, ...] = ()
    """What else a summary may draw on: instructions, lifted messages."""
    seen: int = 0
    """How many messages were given to a summariser, whole or as sentences."""
    _essence: list[PlainMessage] = field(default_factory=list)
    _facts: CoveredFacts | None = None

    @property
    def former(self) -> str:
        return self.before.summary

    async def gathered(self) -> CoveredFacts:
        """The facts of the messages read so far."""
        if self._facts is None:
            self._facts = CoveredFacts()
            await asyncio.to_thread(self._facts.add, self.messages)
        return self._facts

    async def read(self, characters: int) -> None:
        """Reads the messages that are not loaded: about so many characters whole, of older ones the key sentences."""
        if self.seen:
            return
        facts = await self.gathered()
        at, self.seen = self.older, len(self.messages)
        size = sum(len(transcribe(message)) for message in self.messages)
        while at and at != self.until:
            page = await self.store_thread.do(self.store.tree.bare_page, at, most=PAGE, until=self.until)
            said = [message for message in reversed(page) if message.compaction is None]
            self.seen += len(said)
            await asyncio.to_thread(facts.add, said)
            if size <= characters and not self._essence:
                self.messages = (*said, *self.messages)
                size += sum(len(transcribe(message)) for message in said)
            else:
                self._essence = await asyncio.to_thread(_essence, said) + self._essence
            at = page[-1].parent if len(page) == PAGE else None

    @property
    def texts(self) -> list[str]:
        """Everything as a transcript, oldest first."""
        early = [f"{each.role.capitalize()}: {each.text}" for each in self._essence]
        begins = (
            ["Sentences from the beginning of the conversation:", *early, "The conversation then:"] if early else []
        )
        return [text for text in (*begins, *(transcribe(message) for message in self.messages)) if text]

    @property
    def has_essence(self) -> bool:
        return bool(self._essence)

    async def extract(self, most: int) -> str:
        return await asyncio.to_thread(extract, self._said, most, self.count, self.former)

    async def truncate(self, most: int) -> str:
        return truncate(self._said, most, self.count, self.former)

    @property
    def _said(self) -> list[PlainMessage]:
        return [*self._essence, *(_said(message) for message in self.messages)]

    @property
    def count(self) -> Callable[[str], int]:
        """An estimate by the token density of the covered part: exact counting may need a server and comes later."""
        size = sum(len(transcribe(message)) for message in self.messages)
        density = max(0.2, min(2.0, self.tokens / max(1, size)))
        return lambda text: math.ceil(len(text) * density)


def _said(message: Message) -> PlainMessage:
    text = message.text or "\n".join(result.text for result in message.results if result.name != RECALL)
    calls = " ".join(f"{call.name} {call.arguments}" for call in message.calls)
    return PlainMessage(message.role, "\n".join(part for part in (text, calls) if part), message.priority)


def _essence(messages: Sequence[Message]) -> list[PlainMessage]:
    lines = extract([_said(message) for message in messages], ESSENCE, len).splitlines()
    parts = [line.partition(": ") for line in lines]
    return [PlainMessage(role.lower(), text) for role, _, text in parts if text]
