"""SummaryInput: everything that a cut newly covers, in the forms that a summariser needs.

What was loaded for the window is at hand. What is older is read from the store page by page; beyond what a model can be
asked to read, only the essence of each page is held.

Slices: a long transcript cut into parts that fit the summariser's window beside prompt and answer.

Excerpts: the shorter text that is sent for a message or tool result that is too large.
"""

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from recto.chat.blocks import File, Image, Text, ToolResult
from recto.chat.message import Message
from recto.concurrency import StoreThread
from recto.sources.tools import RECALL
from recto.store.store import Store
from recto.summary.extractive_summary import PlainMessage, extract, truncate
from recto.summary.prompt import SUMMARIZER_INSTRUCTIONS, SummaryOptions, group_by_size, split_in_half, transcribe
from recto.summary.truncation import excerpt
from recto.summary.verification import CoveredFacts, FormerSummary
from recto.turn.assembly import Turn
from recto.turn.context import TurnContext
from recto.turn.preamble import Instructions, Preamble, build_preamble
from recto.turn.side_call import SideCall, count_texts
from recto.turn.token_cache import Counted, TokenCache
from recto.window.plan import Cut
from recto.window.request import Entry

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
    has_current: bool = False
    """The entries hold the message that is answered, which stays in the window as it is."""
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


# Transcripts are counted message by message; joined, they may take a little more.
SLACK = 0.97
# The share that is used after the provider has counted more than we did.
TIGHT = 0.6
SMALLEST_ROOM = 64


@dataclass(frozen=True, slots=True)
class Slices:
    writer: TurnContext
    preamble: Preamble
    wanted: SummaryOptions
    tight: bool = False

    async def question(self, text: str, because: str) -> SideCall:
        asked = (await count_texts(self.writer, [text]))[0]
        return SideCall(self.writer, self.preamble, (), asked, because, self.wanted.tokens)

    async def runs(self, texts: Sequence[str], order: str) -> list[str]:
        """The texts joined into parts; none when the prompt leaves no room."""
        empty = await self.question(order, "")
        room = self.writer.budget.limit - empty.tokens - (empty.parameters.max_tokens or 0)
        room = int(room * SLACK * (TIGHT if self.tight else 1)) - 16
        if room < SMALLEST_ROOM:
            return []
        fitting = [part for text in texts for part in await self._fitting(text, room)]
        tokens = [counted.count.tokens + 1 for counted in await count_texts(self.writer, fitting)]
        return ["\n".join(run) for run in group_by_size(fitting, tokens, room)]

    async def _fitting(self, text: str, room: int) -> list[str]:
        """The text, halved until each part fits."""
        if (await count_texts(self.writer, [text]))[0].count.tokens < room or len(text) < 2:
            return [text]
        return [part for half in split_in_half(text) for part in await self._fitting(half, room)]


async def open_slices(writer: TurnContext, wanted: SummaryOptions, *, tight: bool) -> Slices:
    return Slices(
        writer,
        await build_preamble(writer.token_cache, writer.parameters, Instructions(SUMMARIZER_INSTRUCTIONS)),
        wanted,
        tight,
    )


MOST_TRIES = 8


async def excerpts(turn: Turn, cut: Cut) -> dict[str, str]:
    """Excerpts in force that are still sent after the cut, and those that the cut asks for, each within its tokens."""
    view, current = turn.loaded.view, turn.current.message
    _, stays = view.split(cut.last)
    still = {message.id for message in stays} | {*cut.lifted, current.id}
    before = view.compaction.excerpts if view.compaction else {}
    kept = {key: text for key, text in before.items() if key.partition("/")[0] in still}
    here = {message.id: message for message in (*view.tail, *view.lifted, current)}
    made = {key: await _excerpt(turn.token_cache, here, key, most) for key, most in cut.excerpts.items()}
    return kept | made


async def _excerpt(token_cache: TokenCache, here: Mapping[str, Message], key: str, most: int) -> str:
    """The beginning and end of a text with a line between them. Cut by the text's own token density, then counted."""
    id, _, call = key.partition("/")
    text = _whole(here[id], call)
    overhead, whole = await _tokens(token_cache, ".", call), await _tokens(token_cache, text, call)
    density = (whole - overhead) / max(1, len(text))
    aim = most
    for _ in range(MOST_TRIES):
        made = excerpt(text, max(1, aim - overhead), lambda part: round(len(part) * density), id)
        tokens = await _tokens(token_cache, made, call)
        if tokens <= most:
            return made
        aim = min(aim - 1, int(aim * most / tokens * 0.95))
    return text[: max(1, (most - overhead) // 4)]


def _whole(message: Message, call: str) -> str:
    if call:
        return "".join(result.text for result in message.results if result.call_id == call)
    texts = [block.text for block in message.blocks if isinstance(block, Text | File | ToolResult)]
    return "\n\n".join(texts) or "".join(block.media_type for block in message.blocks if isinstance(block, Image))


async def _tokens(token_cache: TokenCache, text: str, call: str) -> int:
    """Counted as it is sent: results carry the id of their call."""
    entry = Entry("tool", (ToolResult(call, "", text),)) if call else Entry("user", (Text(text),))
    return (await token_cache.count([entry]))[0].count.tokens
