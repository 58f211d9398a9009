"""SummaryWriter: the ladder of summarisers: the model, the model again, chosen sentences, beginnings of messages.

The result always fits its room and says who wrote it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import Any, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from recto.base.text import trim_text_caches
from recto.chat.blocks import Made
from recto.compaction.summary_check import WORTH_DIVIDING, SummaryCheck, as_sent
from recto.compaction.summary_input import MOST_READ, SummaryInput
from recto.errors import Overflow, RectoError
from recto.events import SummaryProgress, SummaryRequested
from recto.store.store import Store
from recto.summary.prompt import (
    SUMMARIZER_INSTRUCTIONS,
    SummarizedText,
    SummaryOptions,
    group_by_size,
    merge_prompt,
    reject_reason,
    split_in_half,
    summary_prompt,
)
from recto.summary.set_aside import RETURNED, SetAsideItem, add_to_contents, with_returned
from recto.summary.truncation import CountTokens
from recto.summary.verification import Checked
from recto.summary.work_log import split_work_log
from recto.turn.context import TurnContext
from recto.turn.emitting import PATIENCE_S, Emit
from recto.turn.preamble import Instructions, Preamble, build_preamble
from recto.turn.session import ChatSession
from recto.turn.side_call import SideAnswer, SideCall, call_model, count_texts, is_hopeless
from recto.window.compaction_block import WrittenSummary
from recto.window.window import CONTENTS_BEGIN, WORK_LOG_BEGINS

# Transcripts are counted message by message; joined, they may take a little more.
SLACK = 0.97
# The share that is used after the provider has counted more than we did.
TIGHT = 0.6
SMALLEST_ROOM = 64
# Characters of a token in texts that people write, at most.
MANY_CHARACTERS = 8


class Slices(Struct, frozen=True):
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
        """The text, halved until each part fits. What is surely too long is not counted: to count a text at every
        step would take longer than to read it."""
        if (
            len(text) <= MANY_CHARACTERS * room and (await count_texts(self.writer, [text]))[0].count.tokens < room
        ) or len(text) < 2:
            return [text]
        return [part for half in split_in_half(text) for part in await self._fitting(half, room)]


async def open_slices(writer: TurnContext, wanted: SummaryOptions, *, tight: bool) -> Slices:
    return Slices(
        writer,
        await build_preamble(writer.token_cache, writer.parameters, Instructions(SUMMARIZER_INSTRUCTIONS)),
        wanted,
        tight,
    )


T = TypeVar("T")
# If one compaction needs more calls than this, sentences are chosen without a model instead.
MOST_SLICES = 40
CHARACTERS_PER_TOKEN = 2
LEAST_WANTED = 16
# Where sentences and ledger use less of the room than this, more sentences are chosen.
USED = 0.98
# A work log's share of the room beside a model's summary. It lists many facts, so the ledger needs less than else.
LOG_SHARE, LEAST_SHARE = 0.35, 0.25
# The most that it takes for files and commands that have no place in its share.
MAX_LOG_SHARE = 0.5
# It gets more where the model's summary leaves it, and less where that is too long.
LOG_SHARES = (0.7, 0.6, MAX_LOG_SHARE, 0.45, LOG_SHARE, 0.25, 0.15, 0.08)
# The shares of what was set aside and returns, and of the contents; about how many tokens a line of these takes.
RETURNED_SHARE, CONTENTS_SHARE, CONTENTS_LINE = 0.15, 0.1, 16
COVERS_LITTLE = 0.25
# Where the longest answer has no room after the conversation's own prefix, one of so much of its length is asked for.
SHORTER = 0.7


class NoSummary(Exception):
    """An answer is not worth keeping; the message says why."""


class SummaryWriter(Struct):
    store: Store
    session: ChatSession
    source: SummaryInput
    writers: Sequence[TurnContext]
    """The models to ask, in order; empty if no model can summarise."""
    most: int
    """The longest summary as it is sent, in tokens."""
    wanted: SummaryOptions
    message: str | None = None
    timeout_s: float = 300.0
    ready: SideAnswer | None = None
    """An answer that was asked for ahead, for the same messages."""
    result: WrittenSummary = field(default_factory=WrittenSummary)
    _notes: list[str] = field(default_factory=list)
    _parts: dict[str, SideAnswer] = field(default_factory=dict)
    _answer: SideAnswer | None = None
    _was_ahead: bool = False
    _overflowed: bool = False
    _made_of: int = 1
    _share: int = 0
    """The ledger's share of the room."""
    _log: str = ""
    """The work log that stands before a model's summary."""
    _returned: list[SetAsideItem] = field(default_factory=list)
    _for_contents: int = 0
    """Room for the contents, in tokens."""
    _poor: tuple[Checked, SideAnswer] | None = None
    """An answer that tells too little; another is asked for once."""
    _is_poor: bool = False

    def note(self, problem: str) -> None:
        self._notes.append(problem)

    async def run(self, emit: Emit) -> WrittenSummary:
        """Tells each request, and work that takes long."""
        try:
            await self._write(emit)
            if self.result.text and (self.result.set_aside or self.source.set_aside):
                self.result = replace(self.result, contents=await self._contents())
            return self.result
        finally:
            trim_text_caches()

    async def _write(self, emit: Emit) -> None:
        await self._shown(self._open(), emit)
        for number, writer in enumerate(self._attempts):
            try:
                await self._attempt(number, writer, emit)
                if self._answer:
                    await self._take(await self._better(self._answer))
                    return
            except (NoSummary, RectoError) as why:
                self._notes.append(f"attempt {number + 1} by {writer.model.name} failed: {why}")
                self._overflowed = isinstance(why, Overflow)
                if is_hopeless(why) and writer is self.writers[-1]:
                    break
        if self._poor:
            self._is_poor = True
            await self._take(self._poor[1])
            return
        await self._shown(self._without_model(), emit)

    async def _open(self) -> None:
        if not self.writers:  # nobody else reads what is loaded
            await self.source.read(MOST_READ)
        self._share = self._check.share
        work = await asyncio.to_thread(lambda: self.source.work_log)
        if work and self.most >= WORTH_DIVIDING:
            self._log = work.render(int(self.most * LOG_SHARE), self.source.count, int(self.most * MAX_LOG_SHARE))
            least = min(self._share, int(self.most * LEAST_SHARE))
            self._share = max(least, self._share - self.source.count(self._log))
        await self._bring_back(self.most)
        room = self.wanted.tokens - self._share - (self.source.count(self._log) if self._log else 0) - self._beside
        days, has_log = self.source.days, bool(self._log)
        self.wanted = replace(self.wanted, tokens=max(LEAST_WANTED, room), days=days, has_log=has_log)

    async def _shown(self, work: Coroutine[Any, Any, None], emit: Emit) -> None:
        """Does the work, and says how far it is whenever it has taken half a second more."""
        task = asyncio.create_task(work)
        try:
            while not (await asyncio.wait([task], timeout=PATIENCE_S))[0]:
                await emit(SummaryProgress(self.source.seen, self.source.covered))
            await task
        finally:
            task.cancel()

    @property
    def _check(self) -> SummaryCheck:
        returned = tuple(item.head + item.text for item in self._returned)
        most = self.most - self._for_contents
        return SummaryCheck(self.source, most, self.wanted.keep, self._log, returned, self._is_poor)

    @property
    def _attempts(self) -> list[TurnContext]:
        return [self.writers[0], self.writers[-1]] if self.writers else []

    async def _attempt(self, number: int, writer: TurnContext, emit: Emit) -> None:
        """Asks on the conversation's own prefix if that is possible and new, else with a transcript."""
        is_first = number == 0 or writer is not self.writers[0] or bool(self.wanted.missed)
        has_current = bool(self.source.answering)
        question, text = await self._riding(writer, has_current=has_current) if is_first else (None, "")
        if self.ready is not None:
            answer, self.ready = self.ready, None
            self._answer = await self._accepted(answer, SummarizedText(self.source.tokens, text))
            self._was_ahead = True
            self.source.seen = self.source.covered
            return
        if question is not None:
            await emit(self._requested(question, 1, 1))
            self._answer = await self._ask(question, SummarizedText(self.source.tokens, text))
            self.source.seen = self.source.covered
            return
        await self._by_slices(writer, emit, shorter=number > 0)

    async def _riding(self, writer: TurnContext, *, has_current: bool = False) -> tuple[SideCall | None, str]:
        """The question that follows the conversation's own prefix, with the longest prompt that fits."""
        source, because = self.source, "sums up the beginning of the conversation, on its own prefix"
        if source.entries is None or not self._has_prefix(writer):
            return None, ""
        has_former = bool(source.former)
        shorter = replace(self.wanted, tokens=int(self.wanted.tokens * SHORTER))
        for wanted, brief in ((self.wanted, False), (self.wanted, True), (shorter, True)):
            text = summary_prompt(wanted, above=True, has_former=has_former, has_current=has_current, brief=brief)
            asked = (await count_texts(writer, [text]))[0]
            question = SideCall(writer, writer.preamble, source.entries, asked, because, wanted.tokens)
            if question.fits:
                return question, text
        return None, ""

    def _has_prefix(self, writer: TurnContext) -> bool:
        return self.source.entries is not None and self.source.token_cache is writer.token_cache

    async def _by_slices(self, writer: TurnContext, emit: Emit, *, shorter: bool) -> None:
        """Summarises a transcript of everything covered in as many calls as the model's window needs, and merges the
        parts level by level."""
        slices = await open_slices(writer, self.wanted, tight=self._overflowed)
        asked = summary_prompt(self.wanted, above=False, has_former=bool(self.source.former), shorter=shorter)
        texts = await self._transcript(slices, asked)
        while self._answer is None:
            parts = await self._read(slices, texts, asked, emit)
            if len(parts) == 1:
                self._answer = parts[0]
                return
            self._made_of = max(self._made_of, len(parts))
            asked = merge_prompt(self.wanted, shorter=shorter)
            told = [f"Part {place} of {len(parts)}:\n{part.text}" for place, part in enumerate(parts, 1)]
            texts = await slices.runs(told, asked)
            if not 0 < len(texts) < len(parts):
                raise NoSummary("its window is too small to merge two summaries")

    async def _read(self, slices: Slices, texts: Sequence[str], asked: str, emit: Emit) -> list[SideAnswer]:
        """A summary of every text; one that an earlier attempt has summarised is not sent again."""
        for place, text in enumerate(texts, 1):
            if text not in self._parts:
                because = f"sums up part {place} of {len(texts)}, as a transcript"
                question = await slices.question(f"{text}\n\n{asked}", because)
                await emit(self._requested(question, place, len(texts)))
                size = question.order.count.tokens if len(texts) > 1 else max(self.source.tokens, 1)
                self._parts[text] = await self._ask(question, SummarizedText(size, asked, text))
        return [self._parts[text] for text in texts]

    async def _transcript(self, slices: Slices, asked: str) -> list[str]:
        source, writer = self.source, slices.writer
        await source.read(min(MOST_READ, MOST_SLICES * writer.budget.limit * CHARACTERS_PER_TOKEN))
        told = [f"Earlier summary:\n{source.former}"] if source.former else []
        runs = await slices.runs([*told, *source.texts], asked)
        if not runs:
            raise NoSummary(f"the window of {writer.model.name} has no room for what is to be summed up")
        if len(runs) > MOST_SLICES:
            raise NoSummary(f"{len(runs)} calls would be needed to read it all")
        return runs

    async def _ask(self, question: SideCall, source: SummarizedText) -> SideAnswer:
        answer = await call_model(question, self.store, self.session, self.message, self.timeout_s)
        return await self._accepted(answer, source)

    async def write_ahead(self, last: str, compaction: int | None) -> None:
        """Asks for the summary on the conversation's own prefix, where that is possible. The answer stays with its
        request until a compaction takes it."""
        if not self.writers or not self._has_prefix(self.writers[0]):  # asked after every turn: facts take a while
            return
        await self._open()
        question, _ = await self._riding(self.writers[0])
        if question is not None:
            ahead = replace(question, ahead=last, compaction=compaction, because="sums up what will soon be covered")
            await call_model(ahead, self.store, self.session, None, self.timeout_s, purpose="ahead")

    async def _accepted(self, answer: SideAnswer, source: SummarizedText) -> SideAnswer:
        tokens = await as_sent(self.source.token_cache, answer.text, self.source.archived)
        why = reject_reason(
            answer.text, source, finish=answer.finish, called=answer.called, tokens=tokens, max_tokens=self.most
        )
        if why:
            raise NoSummary(why)
        return answer

    def _requested(self, question: SideCall, part: int, of: int) -> SummaryRequested:
        return SummaryRequested(question.tokens, question.context.budget.limit, question.context.model.name, part, of)

    async def _as_sent(self, text: str) -> int:
        """With what was set aside and returns, and the room for contents."""
        whole = with_returned(text, self._returned)
        return await as_sent(self.source.token_cache, whole, self.source.archived) + self._for_contents

    async def _better(self, answer: SideAnswer) -> SideAnswer:
        """This answer, or the one before it if that tells more. Where both tell too little, the first is asked for
        again with what it leaves out."""
        checked = await self._check.figures(answer.text)
        if checked.is_poor and not self._poor:
            self._poor = checked, answer
            self._answer, self._was_ahead = None, False
            self._parts.clear()
            self.wanted = replace(self.wanted, missed=await self._check.missing(checked))
            raise NoSummary(_how_much(checked))
        if self._poor and len(self._poor[0].kept) > len(checked.kept):
            checked, answer = self._poor
        self._is_poor = checked.is_poor
        if checked.is_poor:
            self._notes.append(f"{_how_much(checked)}: what it leaves out is quoted after it")
        return answer

    async def _take(self, answer: SideAnswer) -> None:
        self.result = await self._check.check(await self._by_model(answer))

    async def _by_model(self, answer: SideAnswer) -> WrittenSummary:
        # what a model repeats of the frame of the former summary
        lines = [line for line in answer.text.strip().splitlines() if line not in (RETURNED, *self.source.contents)]
        text = without_work_log("\n".join(lines))
        if not (text or self._log):
            raise NoSummary("it tells nothing but a work log")
        await self._bring_back(self.most - await as_sent(self.source.token_cache, text, self.source.archived))
        work = self.source.work_log if self._log else None
        for share in LOG_SHARES if work else ():
            self._log = work.render(int(self.most * share), self.source.count) if work else ""
            whole = f"{self._log}\n\n{text}"
            if self._log and await self._as_sent(whole) <= self.most - self._share:
                return self._written(whole, "model", answer.made)
        self._log = ""
        return self._written(text, "model", answer.made)

    async def _without_model(self) -> None:
        """The lower rungs: neither can fail, and both fit."""
        source, extract = self.source, partial(self.source.extract, keep=self.wanted.keep)
        await source.read(MOST_READ)
        text = await self._within(self.most, extract)
        made_by = "extractive"
        if not text:
            text, made_by = await self._within(self.most, source.truncate), "truncated"
        self.result = await self._check.check(self._written(text, made_by if text else "discard"))

    # -- what was set aside

    async def _bring_back(self, most: int) -> None:
        """Chooses what returns, within its share of the room and within `most` tokens."""
        source, self._for_contents = self.source, 0
        if self.most < WORTH_DIVIDING or not source.former:
            return
        self._returned = await source.returning(min(most, int(self.most * RETURNED_SHARE)))
        # what covers little makes no room for more contents at the expense of what the former summary told
        more = CONTENTS_LINE if source.size * source.density > self.most * COVERS_LITTLE else 0
        if source.set_aside and (more or source.contents):
            lines = source.count("\n".join((CONTENTS_BEGIN, *source.contents)))
            self._for_contents = min(int(self.most * CONTENTS_SHARE), lines + more)

    @property
    def _beside(self) -> int:
        """Tokens of what returns and of the contents."""
        return self.source.count(with_returned("", self._returned)) + self._for_contents

    async def _contents(self) -> tuple[str, ...]:
        """The topics of all that is set aside, in what room is left for them."""
        source, found = self.source, self.result
        aside = found.set_aside if source.contents else (*source.set_aside, *found.set_aside)
        limit = int(self.most * CONTENTS_SHARE)
        while self.most >= WORTH_DIVIDING and limit > CONTENTS_LINE:
            fits = partial(_fit, limit, source.count)
            lines = await asyncio.to_thread(add_to_contents, source.contents, aside, fits)
            if await as_sent(source.token_cache, found.text, source.archived, found.ledger, lines) <= self.most:
                return lines
            limit = limit * 3 // 4
        return ()

    def _written(self, text: str, made_by: str, made: Made | None = None) -> WrittenSummary:
        source, notes, text = self.source, self._notes, with_returned(text, self._returned) if text else ""
        if left := source.unread.count:
            read = f"the summary read {source.seen:,} of {source.covered:,} messages in time"
            notes = [*notes, f"{read}; the next compaction reads on, and search finds the other {left:,} too"]
        found = WrittenSummary(text, made_by, made, tuple(notes), self._checks)
        whole = source.work_log.whole_beside(text) if source.work_log else ""
        return replace(found, read=source.read_ranges, unread=source.unread.ranges, work_log=whole)

    @property
    def _checks(self) -> dict[str, int]:
        parts = {"parts": self._made_of} if self._made_of > 1 else {}
        ahead = {"ahead": 1} if self._was_ahead else {}
        return {"covered": self.source.covered, "seen": self.source.seen, **parts, **ahead}

    async def _within(self, most: int, make: Callable[[int], Awaitable[str]]) -> str:
        """The longest result of `make` that fits, among a few tries with more or less room."""
        aim, best = most - self._beside, ""
        for _ in range(8):
            text = await make(aim)
            tokens = await self._as_sent(text)
            if tokens <= most:
                if len(text) <= len(best):
                    break
                best = text
                if tokens >= most * USED:
                    break
            elif best:
                break
            aim = (
                int(aim * min(most / max(1, tokens), 4) * 0.98)
                if tokens < most
                else min(aim - 1, int(aim * most / tokens * 0.95))
            )
        return best


def _how_much(checked: Checked) -> str:
    number = len(checked.kept) + len(checked.lost)
    return f"the summary tells {len(checked.kept)} of the {number} statements that it was checked for"


def without_work_log(text: str) -> str:
    """A log is read off what was done, never taken from an answer."""
    while (stripped := text.strip()).startswith(WORK_LOG_BEGINS):
        text = split_work_log(stripped)[1]
    return stripped


def _fit(limit: int, count: CountTokens, lines: Sequence[str]) -> bool:
    return count("\n".join((CONTENTS_BEGIN, *lines))) <= limit
