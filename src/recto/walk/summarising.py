"""Summarising: what is covered becomes a summary, by the first that manages: the model, the model again, the originals'
own sentences, their beginnings. Whatever comes out is within its room and says who made it.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import TypeVar

from recto.errors import Overflow, ProviderError, RectoError
from recto.events import Event, SummaryRequested
from recto.store.clerk import Clerk
from recto.store.store import Store
from recto.summary.order import Source, Wanted, fault, merge_order, order
from recto.walk.asking import Answer, Question, ask, is_hopeless, weigh_text
from recto.walk.checking import Checking, as_sent
from recto.walk.covering import Covering
from recto.walk.setup import Ready
from recto.walk.slicing import Slicing, open_slicing
from recto.walk.standing import Standing
from recto.window.compact import Written

T = TypeVar("T")
# More calls than this for one compaction are not waited for: sentences are chosen without a model, which reads it all.
MOST_SLICES = 40
CHARACTERS_PER_TOKEN = 2
LEAST_WANTED = 16


class NoSummary(Exception):
    """An answer that is not worth keeping, and why."""


@dataclass(slots=True)
class Summarising:
    store: Store
    clerk: Clerk
    standing: Standing
    covering: Covering
    writers: Sequence[Ready]
    """Whom to ask, in this order; nobody where no model can write a summary."""
    most: int
    """The longest summary, as it is sent."""
    wanted: Wanted
    message: str | None = None
    timeout_s: float = 300.0
    result: Written = field(default_factory=Written)
    _notes: list[str] = field(default_factory=list)
    _parts: dict[str, Answer] = field(default_factory=dict)
    _answer: Answer | None = None
    _overflowed: bool = False
    _made_of: int = 1
    _share: int = 0
    """What is left to the ledger."""

    async def run(self) -> AsyncGenerator[Event, None]:
        """Tells what is asked of whom; `result` holds the summary in the end."""
        self._share = await self._checking.share()
        self.wanted = replace(self.wanted, tokens=max(LEAST_WANTED, self.wanted.tokens - self._share))
        for number, writer in enumerate(self._attempts):
            try:
                async with aclosing(self._attempt(number, writer)) as events:
                    async for event in events:
                        yield event
                if self._answer:
                    self.result = await self._checking.check(self._by_model(self._answer))
                    return
            except (NoSummary, RectoError) as why:
                self._notes.append(f"attempt {number + 1} by {writer.model.name} failed: {why}")
                self._overflowed = isinstance(why, Overflow)
                if isinstance(why, ProviderError) and is_hopeless(why) and writer is self.writers[-1]:
                    break
        self.result = await self._checking.check(await self._without_model())

    @property
    def _checking(self) -> Checking:
        return Checking(self.covering, self.most, self.wanted.keep)

    @property
    def _attempts(self) -> list[Ready]:
        return [self.writers[0], self.writers[-1]] if self.writers else []

    async def _attempt(self, number: int, writer: Ready) -> AsyncGenerator[Event, None]:
        """On the conversation's own prefix where that is possible and was not tried yet, else as a transcript."""
        text = order(self.wanted, above=True, has_former=bool(self.covering.former))
        is_first = number == 0 or writer is not self.writers[0]
        question = await self._riding(writer, text) if is_first else None
        if question is not None:
            yield self._requested(question, 1, 1)
            self._answer = await self._ask(question, Source(self.covering.tokens, text))
            self.covering.seen = self.covering.covered
            return
        async with aclosing(self._by_slices(writer, shorter=number > 0)) as events:
            async for event in events:
                yield event

    async def _riding(self, writer: Ready, text: str) -> Question | None:
        covering = self.covering
        if covering.entries is None or covering.scale is not writer.scale:
            return None
        asked = (await weigh_text(writer, [text]))[0]
        because = "sums up the beginning of the conversation, on its own prefix"
        question = Question(writer, writer.opening, covering.entries, asked, because, self.wanted.tokens)
        return question if question.fits else None

    async def _by_slices(self, writer: Ready, *, shorter: bool) -> AsyncGenerator[Event, None]:
        """Everything that is covered, told as a transcript, in as many calls as the summariser's window needs; what
        comes of several is merged, level by level."""
        slicing = await open_slicing(writer, self.wanted, tight=self._overflowed)
        asked = order(self.wanted, above=False, has_former=bool(self.covering.former), shorter=shorter)
        texts = await self._transcript(slicing, asked)
        while self._answer is None:
            parts: list[Answer] = []
            async with aclosing(self._read(slicing, texts, asked, parts)) as events:
                async for event in events:
                    yield event
            if len(parts) == 1:
                self._answer = parts[0]
                return
            self._made_of = max(self._made_of, len(parts))
            asked = merge_order(self.wanted, shorter=shorter)
            told = [f"Part {place} of {len(parts)}:\n{part.text}" for place, part in enumerate(parts, 1)]
            texts = await slicing.runs(told, asked)
            if not 0 < len(texts) < len(parts):
                raise NoSummary("its window is too small to merge two summaries")

    async def _read(
        self, slicing: Slicing, texts: Sequence[str], asked: str, parts: list[Answer]
    ) -> AsyncGenerator[Event, None]:
        """Every text summed up into `parts`; one that an attempt before has read is not read again."""
        for place, text in enumerate(texts, 1):
            if text not in self._parts:
                because = f"sums up part {place} of {len(texts)}, as a transcript"
                question = await slicing.question(f"{text}\n\n{asked}", because)
                yield self._requested(question, place, len(texts))
                size = question.order.count.tokens if len(texts) > 1 else max(self.covering.tokens, 1)
                self._parts[text] = await self._ask(question, Source(size, asked, text))
            parts.append(self._parts[text])

    async def _transcript(self, slicing: Slicing, asked: str) -> list[str]:
        covering, writer = self.covering, slicing.writer
        await covering.read(MOST_SLICES * writer.budget.limit * CHARACTERS_PER_TOKEN)
        if covering.has_essence:
            self._notes.append("the oldest messages are too many for a model: it got whole sentences of them")
        told = [f"Earlier summary:\n{covering.former}"] if covering.former else []
        runs = await slicing.runs([*told, *covering.texts], asked)
        if not runs:
            raise NoSummary(f"the window of {writer.model.name} has no room for what is to be summed up")
        if len(runs) > MOST_SLICES:
            raise NoSummary(f"{len(runs)} calls would be needed to read it all")
        return runs

    async def _ask(self, question: Question, source: Source) -> Answer:
        answer = await ask(question, self.store, self.clerk, self.standing, self.message, self.timeout_s)
        tokens = await self._as_sent(answer.text)
        why = fault(answer.text, source, finish=answer.finish, called=answer.called, tokens=tokens, most=self.most)
        if why:
            raise NoSummary(why)
        return answer

    def _requested(self, question: Question, part: int, of: int) -> SummaryRequested:
        return SummaryRequested(question.tokens, question.ready.budget.limit, question.ready.model.name, part, of)

    async def _as_sent(self, text: str) -> int:
        return await as_sent(self.covering.scale, text, self.covering.archived)

    def _by_model(self, answer: Answer) -> Written:
        return Written(answer.text.strip(), "model", answer.made, tuple(self._notes), self._checks)

    async def _without_model(self) -> Written:
        """The lower rungs. Neither can fail; both are within the room."""
        covering = self.covering
        await covering.read(0)
        text = await self._within(self.most - self._share, covering.extract)
        made_by = "extractive"
        if not text:
            text, made_by = await self._within(self.most, covering.truncate), "truncated"
        return Written(text, made_by if text else "discard", None, tuple(self._notes), self._checks)

    @property
    def _checks(self) -> dict[str, int]:
        parts = {"parts": self._made_of} if self._made_of > 1 else {}
        return {"covered": self.covering.covered, "seen": self.covering.seen, **parts}

    async def _within(self, most: int, make: Callable[[int], Awaitable[str]]) -> str:
        """What `make` gives for a room, made again for a smaller one until it really fits."""
        aim = most
        for _ in range(8):
            text = await make(aim)
            tokens = await self._as_sent(text)
            if tokens <= most:
                return text
            aim = min(aim - 1, int(aim * most / tokens * 0.95))
        return ""
