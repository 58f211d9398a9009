"""Summarising: what is covered becomes a summary, by the first that manages: the model, the model again, the originals'
own sentences, their beginnings. Whatever comes out is within its room and says who made it.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TypeVar

from recto.chat.blocks import Compaction
from recto.errors import Overflow, ProviderError, RectoError
from recto.events import Event, SummaryRequested
from recto.store.clerk import Clerk
from recto.store.store import Store
from recto.walk.asking import Answer, Question, ask, is_hopeless, weigh_text
from recto.walk.covering import Covering
from recto.walk.opening import open_window
from recto.walk.setup import Ready
from recto.walk.standing import Standing
from recto.window.compact import Written, next_block
from recto.window.summary import SUMMARISER, Source, Wanted, fault, halves, merge_order, order, slices
from recto.window.window import summary_entry

T = TypeVar("T")
# More calls than this for one compaction are not waited for: sentences are chosen without a model, which reads it all.
MOST_SLICES = 40
CHARACTERS_PER_TOKEN = 2
# Transcripts are counted message by message; joined they may take a little more.
SLACK = 0.97


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

    async def run(self) -> AsyncGenerator[Event, None]:
        """Tells what is asked of whom; `result` holds the summary in the end."""
        for number, writer in enumerate(self._attempts):
            try:
                async with aclosing(self._attempt(number, writer)) as events:
                    async for event in events:
                        yield event
                if self._answer:
                    self.result = self._by_model(self._answer)
                    return
            except (NoSummary, RectoError) as why:
                self._notes.append(f"attempt {number + 1} by {writer.model.name} failed: {why}")
                self._overflowed = isinstance(why, Overflow)
                if isinstance(why, ProviderError) and is_hopeless(why) and writer is self.writers[-1]:
                    break
        self.result = await self._without_model()

    @property
    def _attempts(self) -> list[Ready]:
        return [self.writers[0], self.writers[-1]] if self.writers else []

    async def _attempt(self, number: int, writer: Ready) -> AsyncGenerator[Event, None]:
        """On the conversation's own prefix where that is possible and was not tried yet, else as a transcript."""
        text = order(self.wanted, above=True, has_former=bool(self.covering.former))
        question = await self._riding(writer, text) if number == 0 else None
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
        """Everything that is covered, told as a transcript, in as many calls as the summariser's window needs."""
        opening = await open_window(writer.scale, writer.parameters, SUMMARISER, ())
        ask_for = order(self.wanted, above=False, has_former=bool(self.covering.former), shorter=shorter)
        texts = await self._texts(writer, opening.count.tokens, ask_for, shorter)
        level = 0
        while True:
            parts: list[Answer] = []
            for place, text in enumerate(texts):
                whole = f"{text}\n\n{ask_for}"
                asked = (await weigh_text(writer, [whole]))[0]
                because = f"part {place + 1} of {len(texts)} of what is covered" + (
                    f", level {level + 1}" if level else ""
                )
                question = Question(writer, opening, (), asked, because, self.wanted.tokens)
                if whole not in self._parts:
                    yield self._requested(question, place + 1, len(texts))
                    size = asked.count.tokens if len(texts) > 1 or level else self.covering.tokens
                    self._parts[whole] = await self._ask(question, Source(size, ask_for, text))
                parts.append(self._parts[whole])
            if len(parts) == 1:
                self._answer = parts[0]
                return
            level += 1
            self._notes.append(f"summed up in {len(parts)} parts, then merged")
            ask_for = merge_order(self.wanted, shorter=shorter)
            told = [f"Part {place + 1} of {len(parts)}:\n{part.text}" for place, part in enumerate(parts)]
            texts = await self._runs(writer, told, opening.count.tokens, ask_for, shorter)
            if len(texts) >= len(parts):
                raise NoSummary("its window is too small to merge two summaries")

    async def _texts(self, writer: Ready, opening: int, ask_for: str, shorter: bool) -> list[str]:
        covering = self.covering
        await covering.read(MOST_SLICES * writer.budget.limit * CHARACTERS_PER_TOKEN)
        if covering.has_essence:
            self._notes.append("the oldest messages are too many for a model: it got whole sentences of them")
        told = [f"Earlier summary:\n{covering.former}"] if covering.former else []
        runs = await self._runs(writer, [*told, *covering.texts], opening, ask_for, shorter)
        if len(runs) > MOST_SLICES:
            raise NoSummary(f"{len(runs)} calls would be needed to read it all")
        return runs

    async def _runs(self, writer: Ready, texts: Sequence[str], opening: int, ask_for: str, shorter: bool) -> list[str]:
        """The texts joined to runs of a size that the summariser can read beside its order and its answer."""
        room = await self._room(writer, opening, ask_for, shorter)
        if room < 64:
            raise NoSummary(f"the window of {writer.model.name} has no room for what is to be summed up")
        fitting = [part for text in texts for part in await self._fitting(writer, text, room)]
        tokens = [weighed.count.tokens + 1 for weighed in await weigh_text(writer, fitting)]
        return ["\n".join(run) for run in slices(fitting, tokens, room)]

    async def _room(self, writer: Ready, opening: int, ask_for: str, shorter: bool) -> int:
        asked = (await weigh_text(writer, [ask_for]))[0].count.tokens
        answer = Question(writer, writer.opening, (), (await weigh_text(writer, [""]))[0], "", self.wanted.tokens)
        most = answer.parameters.max_tokens or 0
        room = writer.budget.limit - opening - asked - most
        # a second try also has room for what the first one may have miscounted
        return int(room * SLACK * (0.6 if shorter and self._overflowed else 1)) - 16

    async def _fitting(self, writer: Ready, text: str, room: int) -> list[str]:
        """The text, in halves of halves where it is larger than what can be read at once."""
        if (await weigh_text(writer, [text]))[0].count.tokens < room or len(text) < 2:
            return [text]
        return [part for half in halves(text) for part in await self._fitting(writer, half, room)]

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
        """What a summary of this text takes in the conversation's window, frame and all."""
        entry = summary_entry(_framed(text, self.covering.archived))
        return (await self.covering.scale.weigh([entry]))[0].count.tokens if entry else 0

    def _by_model(self, answer: Answer) -> Written:
        return Written(answer.text.strip(), "model", answer.made, tuple(self._notes), self._checks)

    async def _without_model(self) -> Written:
        """The lower rungs. Neither can fail; both are within the room."""
        covering = self.covering
        await covering.read(0)
        text = await self._within(self.most, covering.extract)
        made_by = "extractive"
        if not text:
            text, made_by = await self._within(self.most, covering.truncate), "truncated"
        return Written(text, made_by if text else "discard", None, tuple(self._notes), self._checks)

    @property
    def _checks(self) -> dict[str, int]:
        return {"covered": self.covering.covered, "seen": self.covering.seen}

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


def _framed(text: str, archived: int) -> Compaction:
    return next_block(None, Written(text), messages_archived=archived)
