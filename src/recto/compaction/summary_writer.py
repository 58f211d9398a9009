"""SummaryWriter: tries summarisers in order: the model, the model again, chosen sentences, beginnings of messages.

The result always fits its room and names its author. It is checked against what it covers: unsupported facts are
marked, lost facts go into the ledger. A failed check never ends the chat."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import Any, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from recto.base.text import trim_text_caches
from recto.compaction.summary_input import MOST_READ, SummaryInput, as_sent, fitting_ledger
from recto.errors import Overflow, RectoError
from recto.events import SummaryProgress, SummaryRequested
from recto.sentences.segments import segments
from recto.store.store import Store
from recto.summary.ledger import KeyStatement, ledger_lines
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
from recto.summary.set_aside import RETURNED, add_to_contents, find_dropped, with_returned
from recto.summary.truncation import cut_to_fit
from recto.summary.verification import Checked, VerifiedSummary, check_figures, split_stated, verify_summary
from recto.summary.work_log import split_work_log
from recto.turn.context import TurnContext
from recto.turn.emitting import PATIENCE_S, Emit
from recto.turn.preamble import Instructions, Preamble, build_preamble
from recto.turn.session import ChatSession
from recto.turn.side_call import SideAnswer, SideCall, call_model, count_texts, is_hopeless
from recto.window.compaction_block import WrittenSummary
from recto.window.window import CONTENTS_BEGIN, WORK_LOG_BEGINS

log = logging.getLogger(__name__)
T = TypeVar("T")

# Transcripts are counted message by message; joined, they may take a little more.
SLACK = 0.97
# The share that is used after the provider has counted more than we did.
TIGHT = 0.6
SMALLEST_ROOM = 64
# The most characters per token in texts that people write, and about how many a slice has.
MANY_CHARACTERS, CHARACTERS_PER_TOKEN = 8, 2
# If one compaction needs more calls than this, sentences are chosen without a model instead.
MOST_SLICES = 40
LEAST_WANTED = 16
# If sentences use less than this share of the room, more are chosen, in at most this many tries.
USED, MOST_TRIES = 0.98, 8
# If the longest answer has no room after the conversation's own prefix, one of this share of its length is requested.
SHORTER = 0.7
# Below this many tokens the summary may use all of the room; the ledger gets what is left.
WORTH_DIVIDING = 160
# The ledger's limits beside a model's summary: its share of the room, and of the summary's own tokens; less beside a
# work log, which lists many facts. A short summary may still have one or two statements.
LEDGER_SHARE, OF_SUMMARY, LEAST_SHARE, LEAST_LEDGER, A_FEW = 0.2, 1 / 3, 0.25, 12, 48
# How close the next try for a ledger aims, and how many tries there are.
CLOSE, LEDGER_TRIES = 0.95, 4
# A work log's share of the room beside a model's summary, and the most for files and commands that have no place in it.
# It gets more if the model's summary leaves room, and less if that is too long.
LOG_SHARE, MAX_LOG_SHARE = 0.35, 0.5
LOG_SHARES = (0.7, 0.6, MAX_LOG_SHARE, 0.45, LOG_SHARE, 0.25, 0.15, 0.08)
# The shares of returned text and of the contents; about how many tokens a line of the contents takes.
RETURNED_SHARE, CONTENTS_SHARE, CONTENTS_LINE = 0.15, 0.1, 16
COVERS_LITTLE = 0.25
# A summary is checked for the most needed statements, up to this share of its room. A summary with too few of them is
# cut to the second share.
CHECKED_SHARE, POOR_SHARE = 0.5, 0.5
SHORTENED = "the end of the summary was left out: with its marks it was too long"


class NoSummary(Exception):
    """An answer that is not worth keeping; the message says why."""


class SummaryWriter(Struct):
    store: Store
    session: ChatSession
    source: SummaryInput
    writers: Sequence[TurnContext]
    """Models to ask, in order; empty if no model can summarise."""
    most: int
    """The room of summary and ledger as they are sent, in tokens."""
    wanted: SummaryOptions
    message: str | None = None
    timeout_s: float = 300.0
    ready: SideAnswer | None = None
    """An answer requested ahead, for the same messages."""
    notes: list[str] = field(default_factory=list)
    """Problems, for the user."""
    _parts: dict[str, SideAnswer] = field(default_factory=dict)
    _was_ahead: bool = False
    _overflowed: bool = False
    _made_of: int = 1
    _ledger_room: int = 0
    """Room that a model's summary should leave to the ledger."""
    _log: str = ""
    """The work log that precedes a model's summary."""
    _returned: list[KeyStatement] = field(default_factory=list)
    _for_contents: int = 0
    """Room for the contents, in tokens."""
    _poor: tuple[Checked, SideAnswer] | None = None
    """An answer with too few statements; another is requested once."""
    _is_poor: bool = False
    """True if the summary has fewer than half of the statements it was checked for: the ledger may take all the
    remaining room."""

    async def run(self, emit: Emit) -> WrittenSummary:
        """Writes the summary; reports each request, and work that takes long."""
        try:
            written = await self._write(emit)
            if written.text and (written.set_aside or self.source.set_aside):
                written = replace(written, contents=await self._contents(written))
            return written
        finally:
            trim_text_caches()

    async def _write(self, emit: Emit) -> WrittenSummary:
        await self._shown(self._open(), emit)
        attempts = [self.writers[0], self.writers[-1]] if self.writers else []
        for number, writer in enumerate(attempts):
            try:
                answer = await self._attempt(number, writer, emit)
                return await self._checked(await self._by_model(await self._better(answer)))
            except (NoSummary, RectoError) as why:
                self.notes.append(f"attempt {number + 1} by {writer.model.name} failed: {why}")
                self._overflowed = isinstance(why, Overflow)
                if is_hopeless(why) and writer is self.writers[-1]:
                    break
        if self._poor:
            self._is_poor = True
            return await self._checked(await self._by_model(self._poor[1]))
        return await self._shown(self._without_model(), emit)

    async def _open(self) -> None:
        if not self.writers:  # nobody else reads what is loaded
            await self.source.read(MOST_READ)
        self._ledger_room = int(self.most * LEDGER_SHARE) if self.most >= WORTH_DIVIDING else 0
        work = await asyncio.to_thread(lambda: self.source.work_log)
        if work and self.most >= WORTH_DIVIDING:
            self._log = work.render(int(self.most * LOG_SHARE), self.source.count, int(self.most * MAX_LOG_SHARE))
            least = min(self._ledger_room, int(self.most * LEAST_SHARE))
            self._ledger_room = max(least, self._ledger_room - self.source.count(self._log))
        await self._bring_back(self.most)
        for_log = self.source.count(self._log) if self._log else 0
        room = self.wanted.tokens - self._ledger_room - for_log - self._beside
        days, has_log = self.source.days, bool(self._log)
        self.wanted = replace(self.wanted, tokens=max(LEAST_WANTED, room), days=days, has_log=has_log)

    async def _shown(self, work: Coroutine[Any, Any, T], emit: Emit) -> T:
        """Reports progress about every half second."""
        task = asyncio.create_task(work)
        try:
            while not (await asyncio.wait([task], timeout=PATIENCE_S))[0]:
                await emit(SummaryProgress(self.source.seen, self.source.covered))
            return await task
        finally:
            task.cancel()

    # -- asking a model

    async def _attempt(self, number: int, writer: TurnContext, emit: Emit) -> SideAnswer:
        """Asks on the conversation's own prefix if that is possible and new, else with a transcript."""
        is_first = number == 0 or writer is not self.writers[0] or bool(self.wanted.missed)
        has_current = bool(self.source.answering)
        question, text = await self._riding(writer, has_current=has_current) if is_first else (None, "")
        asked = SummarizedText(self.source.tokens, text)
        if self.ready is not None:
            ready, self.ready = self.ready, None
            answer = await self._accepted(ready, asked)
            self._was_ahead = True
        elif question is not None:
            await emit(self._requested(question, 1, 1))
            answer = await self._ask(question, asked)
        else:
            return await self._by_slices(writer, emit, shorter=number > 0)
        self.source.seen = self.source.covered
        return answer

    async def _riding(self, writer: TurnContext, *, has_current: bool = False) -> tuple[SideCall | None, str]:
        """The question after the conversation's own prefix, with the longest prompt that fits."""
        source, because = self.source, "sums up the beginning of the conversation, on its own prefix"
        if source.entries is None or source.token_cache is not writer.token_cache:
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

    async def write_ahead(self, last: str, compaction: int | None) -> None:
        """Requests the summary on the conversation's own prefix, if possible. The answer stays with its request until a
        compaction takes it."""
        source, writer = self.source, self.writers[0] if self.writers else None
        # this runs after every turn, and `_open` takes a while
        if writer is None or source.entries is None or source.token_cache is not writer.token_cache:
            return
        await self._open()
        question, _ = await self._riding(writer)
        if question is not None:
            ahead = replace(question, ahead=last, compaction=compaction, because="sums up what will soon be covered")
            await call_model(ahead, self.store, self.session, None, self.timeout_s, purpose="ahead")

    async def _by_slices(self, writer: TurnContext, emit: Emit, *, shorter: bool) -> SideAnswer:
        """Uses as many calls as the model's window needs, and merges the parts level by level."""
        instructions = Instructions(SUMMARIZER_INSTRUCTIONS)
        slices = _Slices(
            writer,
            await build_preamble(writer.token_cache, writer.parameters, instructions),
            self.wanted.tokens,
            SLACK * (TIGHT if self._overflowed else 1),
        )
        asked = summary_prompt(self.wanted, above=False, has_former=bool(self.source.former), shorter=shorter)
        texts = await self._transcript(slices, asked)
        while True:
            parts = await self._read(slices, texts, asked, emit)
            if len(parts) == 1:
                return parts[0]
            self._made_of = max(self._made_of, len(parts))
            asked = merge_prompt(self.wanted, shorter=shorter)
            told = [f"Part {place} of {len(parts)}:\n{part.text}" for place, part in enumerate(parts, 1)]
            texts = await slices.runs(told, asked)
            if not 0 < len(texts) < len(parts):
                raise NoSummary("its window is too small to merge two summaries")

    async def _read(self, slices: "_Slices", texts: Sequence[str], asked: str, emit: Emit) -> list[SideAnswer]:
        """Texts that an earlier attempt has summarised are not sent again."""
        for place, text in enumerate(texts, 1):
            if text not in self._parts:
                because = f"sums up part {place} of {len(texts)}, as a transcript"
                question = await slices.question(f"{text}\n\n{asked}", because)
                await emit(self._requested(question, place, len(texts)))
                size = question.order.count.tokens if len(texts) > 1 else max(self.source.tokens, 1)
                self._parts[text] = await self._ask(question, SummarizedText(size, asked, text))
        return [self._parts[text] for text in texts]

    async def _transcript(self, slices: "_Slices", asked: str) -> list[str]:
        source, writer = self.source, slices.writer
        await source.read(min(MOST_READ, MOST_SLICES * writer.budget.limit * CHARACTERS_PER_TOKEN))
        told = [f"Earlier summary:\n{source.former}"] if source.former else []
        runs = await slices.runs([*told, *source.texts], asked)
        if not runs:
            raise NoSummary(f"the window of {writer.model.name} has no room for what is to be summed up")
        if len(runs) > MOST_SLICES:
            raise NoSummary(f"{len(runs)} calls would be needed to read it all")
        return runs

    async def _ask(self, question: SideCall, asked: SummarizedText) -> SideAnswer:
        answer = await call_model(question, self.store, self.session, self.message, self.timeout_s)
        return await self._accepted(answer, asked)

    async def _accepted(self, answer: SideAnswer, asked: SummarizedText) -> SideAnswer:
        tokens = await self._sent_size(answer.text)
        why = reject_reason(
            answer.text, asked, finish=answer.finish, called=answer.called, tokens=tokens, max_tokens=self.most
        )
        if why:
            raise NoSummary(why)
        return answer

    def _requested(self, question: SideCall, part: int, of: int) -> SummaryRequested:
        return SummaryRequested(question.tokens, question.context.budget.limit, question.context.model.name, part, of)

    async def _better(self, answer: SideAnswer) -> SideAnswer:
        """This answer or the previous one. If the first has too few statements, another with the missing ones is
        requested."""
        checked = await self._figures(answer.text)
        if checked.is_poor and not self._poor:
            self._poor, self._was_ahead = (checked, answer), False
            self._parts.clear()
            room = int((self.most - self._for_contents) * LEDGER_SHARE)
            missed = await asyncio.to_thread(ledger_lines, checked.lost, room, self.source.count)
            self.wanted = replace(self.wanted, missed=missed)
            raise NoSummary(_how_much(checked))
        if self._poor and len(self._poor[0].kept) > len(checked.kept):
            checked, answer = self._poor
        self._is_poor = checked.is_poor
        if checked.is_poor:
            self.notes.append(f"{_how_much(checked)}: what it leaves out is quoted after it")
        return answer

    async def _figures(self, text: str) -> Checked:
        """Checks a model's summary for the most needed statements with figures."""
        covered, former = await self.source.gathered(), self.source.before.statements
        room = int((self.most - self._for_contents) * CHECKED_SHARE)
        try:
            return await asyncio.to_thread(lambda: check_figures(text, covered.since(former), room, self.source.count))
        except Exception:  # `_checked` will fail too, and reports it to the user
            log.exception("the statements of a summary could not be compared")
            return Checked([], [])

    # -- its text

    async def _by_model(self, answer: SideAnswer) -> WrittenSummary:
        # a model may repeat the frame of the former summary
        lines = [line for line in answer.text.strip().splitlines() if line not in (RETURNED, *self.source.contents)]
        text = without_work_log("\n".join(lines))
        if not (text or self._log):
            raise NoSummary("it tells nothing but a work log")
        await self._bring_back(self.most - await self._sent_size(text))
        work = self.source.work_log if self._log else None
        for share in LOG_SHARES if work else ():
            self._log = work.render(int(self.most * share), self.source.count) if work else ""
            whole = f"{self._log}\n\n{text}"
            if self._log and await self._whole_size(whole) <= self.most - self._ledger_room:
                return replace(self._written(whole, "model"), made=answer.made)
        self._log = ""
        return replace(self._written(text, "model"), made=answer.made)

    async def _without_model(self) -> WrittenSummary:
        """The last resorts: neither can fail, and both fit."""
        source, extract = self.source, partial(self.source.extract, keep=self.wanted.keep)
        await source.read(MOST_READ)
        text, made_by = await self._longest(extract), "extractive"
        if not text:
            text, made_by = await self._longest(source.truncate), "truncated"
        return await self._checked(self._written(text, made_by if text else "discard"))

    async def _longest(self, make: Callable[[int], Awaitable[str]]) -> str:
        """Tries `make` a few times with more or less room."""
        most, best = self.most, ""
        aim = most - self._beside
        for _ in range(MOST_TRIES):
            text = await make(aim)
            tokens = await self._whole_size(text)
            if tokens > most:
                if best:
                    break
                aim = min(aim - 1, int(aim * most / tokens * 0.95))
                continue
            if len(text) <= len(best):
                break
            best = text
            if tokens >= most * USED:
                break
            aim = int(aim * min(most / max(1, tokens), 4) * 0.98)
        return best

    def _written(self, text: str, made_by: str) -> WrittenSummary:
        source, notes, text = self.source, self.notes, with_returned(text, self._returned) if text else ""
        if left := source.unread.count:
            read = f"the summary read {source.seen:,} of {source.covered:,} messages in time"
            notes = [*notes, f"{read}; the next compaction reads on, and search finds the other {left:,} too"]
        checks = {"covered": source.covered, "seen": source.seen}
        checks |= {"parts": self._made_of} if self._made_of > 1 else {}
        checks |= {"ahead": 1} if self._was_ahead else {}
        whole = source.work_log.whole_beside(text) if source.work_log else ""
        found = WrittenSummary(text, made_by, notes=tuple(notes), checks=checks, work_log=whole)
        return replace(found, read=source.read_ranges, unread=source.unread.ranges)

    async def _sent_size(self, text: str, lines: Sequence[str] = (), contents: Sequence[str] = ()) -> int:
        return await as_sent(self.source.token_cache, text, self.source.archived, lines, contents)

    async def _whole_size(self, text: str) -> int:
        """The size with returned text and the room for contents."""
        return await self._sent_size(with_returned(text, self._returned)) + self._for_contents

    # -- what was set aside

    async def _bring_back(self, most: int) -> None:
        """Chooses what returns, within its share of the room and within `most` tokens."""
        source, self._for_contents = self.source, 0
        if self.most < WORTH_DIVIDING or not source.former:
            return
        self._returned = await source.returning(min(most, int(self.most * RETURNED_SHARE)))
        # a small range makes no room for more contents at the expense of the former summary
        more = CONTENTS_LINE if source.size * source.density > self.most * COVERS_LITTLE else 0
        if source.set_aside and (more or source.contents):
            lines = source.count("\n".join((CONTENTS_BEGIN, *source.contents)))
            self._for_contents = min(int(self.most * CONTENTS_SHARE), lines + more)

    @property
    def _beside(self) -> int:
        """Tokens of returned text and of the contents."""
        return self.source.count(with_returned("", self._returned)) + self._for_contents

    async def _contents(self, written: WrittenSummary) -> tuple[str, ...]:
        """The topics of all that is set aside."""
        source = self.source
        aside = written.set_aside if source.contents else (*source.set_aside, *written.set_aside)
        limit = int(self.most * CONTENTS_SHARE)

        def fits(lines: Sequence[str]) -> bool:
            return source.count("\n".join((CONTENTS_BEGIN, *lines))) <= limit

        while self.most >= WORTH_DIVIDING and limit > CONTENTS_LINE:
            lines = await asyncio.to_thread(add_to_contents, source.contents, aside, fits)
            if await self._sent_size(written.text, written.ledger, lines) <= self.most:
                return lines
            limit = limit * 3 // 4
        return ()

    # -- checked against what it covers

    async def _checked(self, written: WrittenSummary) -> WrittenSummary:
        if not written.text:
            return written
        try:
            return await self._verified(written, self.most - self._for_contents)
        except Exception as why:  # an unverified summary is worth more than none
            log.exception("a summary could not be verified")
            source, note = self.source, f"the summary was not checked: {type(why).__name__}: {why}"
            most = self.most - self._for_contents
            held = await fitting_ledger(source.token_cache, written.text, source.before.ledger, source.archived, most)
            return replace(written, notes=(*written.notes, note), ledger=held, places=source.before.places)

    async def _verified(self, written: WrittenSummary, most: int) -> WrittenSummary:
        by_model = written.made_by == "model"
        found = await self._compared(written.text, is_trusted=not by_model)
        while found.invented and await self._sent_size(found.text) > most:
            found = await self._compared(_without_last(found.text), is_trusted=False)
            written = replace(written, notes=tuple(dict.fromkeys((*written.notes, SHORTENED))))
        if self._is_poor and by_model:
            found = await self._compared(await asyncio.to_thread(self._thinned, found, most), is_trusted=False)
        lines = await self._ledger(found, most) if by_model else ()
        before, known = self.source.before, self.source.set_aside
        told = "\n".join((found.text, *lines))
        aside = await asyncio.to_thread(
            find_dropped, before.summary, before.statements, told, found.lost, known, by_sentence=not by_model
        )
        checks = written.checks | found.counts(lines)
        return replace(written, text=found.text, ledger=lines, places=found.places, checks=checks, set_aside=aside)

    async def _compared(self, text: str, *, is_trusted: bool) -> VerifiedSummary:
        """Original sentences are trusted: only the conversation's own messages contain them. The user's request counts
        as said, and the work log is made of what was said and done."""
        covered, beside = await self.source.gathered(), (self.wanted.keep, self._log, *self.source.beside)
        if not is_trusted:
            beside = (*beside, await asyncio.to_thread(self.source.dates_meant))
        before = self.source.before
        former = replace(before, ledger=(*before.ledger, *(each.head + each.text for each in self._returned)))
        return await asyncio.to_thread(verify_summary, text, covered, former, beside, mark=not is_trusted)

    def _thinned(self, found: VerifiedSummary, most: int) -> str:
        """Removes sentences that contain no statement, from the last on, until half of the room is free for missing
        statements. The work log before and returned text after stay."""
        written, returned, behind = found.text.partition(RETURNED)
        begins = len(written) - len(split_work_log(written)[1]) if self._log else 0
        room = most - self.source.count(written[:begins])
        excess = self.source.count(found.text[begins:]) - int(room * POOR_SHARE)
        for each in reversed(segments(written)):
            if excess <= 0 or each.start < begins:
                break
            if not split_stated(each.text, found.kept)[0]:
                written = written[: each.start].rstrip(" ") + written[each.end :]
                excess -= self.source.count(each.text)
        lines = [line for line in written[begins:].splitlines() if any(map(str.isalnum, line))]
        return written[:begins] + "\n".join(lines) + (f"\n\n{returned}{behind}" if returned else "")

    async def _ledger(self, found: VerifiedSummary, most: int) -> tuple[str, ...]:
        """As many lines as fit: estimated, then counted."""
        base = await self._sent_size(found.text, [""])
        left = most - base
        room = aim = left if self._is_poor else min(left, max(A_FEW, int(base * OF_SUMMARY)))
        for _ in range(LEDGER_TRIES if room >= LEAST_LEDGER and found.lost else 0):
            lines = await asyncio.to_thread(ledger_lines, found.lost, aim, self.source.count)
            used = await self._sent_size(found.text, lines) - base if lines else 0
            if used <= room:
                return lines
            aim = int(aim * room / used * CLOSE)
        return ()


class _Slices(Struct, frozen=True):
    """A model that reads a transcript in parts."""

    writer: TurnContext
    preamble: Preamble
    tokens: int
    """The length of its answers."""
    share: float
    """Share of its room that is used."""

    async def question(self, text: str, because: str) -> SideCall:
        asked = (await count_texts(self.writer, [text]))[0]
        return SideCall(self.writer, self.preamble, (), asked, because, self.tokens)

    async def runs(self, texts: Sequence[str], order: str) -> list[str]:
        """Joins texts into parts; none if the prompt leaves no room."""
        empty = await self.question(order, "")
        room = self.writer.budget.limit - empty.tokens - (empty.parameters.max_tokens or 0)
        room = int(room * self.share) - 16
        if room < SMALLEST_ROOM:
            return []
        fitting = [part for text in texts for part in await self._fitting(text, room)]
        tokens = [counted.count.tokens + 1 for counted in await count_texts(self.writer, fitting)]
        return ["\n".join(run) for run in group_by_size(fitting, tokens, room)]

    async def _fitting(self, text: str, room: int) -> list[str]:
        """Halves the text until each part fits. Parts that are clearly too long are not counted: counting at every step
        would take longer than reading."""
        may_fit = len(text) <= MANY_CHARACTERS * room
        if len(text) < 2 or (may_fit and (await count_texts(self.writer, [text]))[0].count.tokens < room):
            return [text]
        return [part for half in split_in_half(text) for part in await self._fitting(half, room)]


def _how_much(checked: Checked) -> str:
    number = len(checked.kept) + len(checked.lost)
    return f"the summary tells {len(checked.kept)} of the {number} statements that it was checked for"


def without_work_log(text: str) -> str:
    """The log is made from actions, never taken from an answer."""
    while (stripped := text.strip()).startswith(WORK_LOG_BEGINS):
        text = split_work_log(stripped)[1]
    return stripped


def _without_last(text: str) -> str:
    """The text without its last sentence; a single sentence is cut."""
    found = segments(text)
    return text[: found[-1].start].rstrip(" \n\t-*#>") if len(found) > 1 else cut_to_fit(text, len(text) * 9 // 10, len)
