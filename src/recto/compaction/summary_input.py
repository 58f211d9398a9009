"""SummaryInput: everything that a cut newly covers, in the forms that a summariser needs.

Messages loaded for the window are at hand. Of older ones, a compaction reads as much as it has time for; the next one
continues."""

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta

from msgspec import Struct
from msgspec.structs import replace

from recto.chat.blocks import File, MessageRange, Text, ToolResult
from recto.chat.conversation import View, ranges_of, ranges_without
from recto.chat.message import Message
from recto.sentences.words import word_class, words_in
from recto.sources.tools import RECALL
from recto.store.store import Store
from recto.summary.agent_steps import continue_work_log
from recto.summary.extractive_summary import Extraction, PlainMessage, day_of, plain_messages, truncate
from recto.summary.ledger import KeyStatement, ledger_items
from recto.summary.prompt import transcribe
from recto.summary.set_aside import Topic, find_returning, find_topic, split_returned
from recto.summary.verification import CoveredMessages, FormerSummary, former_summary
from recto.summary.work_log import WorkLog, split_work_log
from recto.turn.loaded_view import LoadedView
from recto.turn.planned_request import PlannedRequest
from recto.turn.preamble import Preamble
from recto.turn.token_cache import Counted, TokenCache
from recto.window.compaction_block import WrittenSummary, next_block
from recto.window.count import SUMMARY
from recto.window.plan import Cut
from recto.window.window import summary_entry

# The number of characters that one compaction reads: about half a second of work. A budget of work, not of time, so
# that the same conversation gives the same window on every machine.
MOST_READ = 100_000
# A first summary also reads the beginning, which has the task and its conditions. The newest messages get what is left:
# the chat continues from them.
OLDEST_SHARE = 1 / 3
# Of a text that takes too long to read, this many places are.
PLACES = 8
# At least this share is for messages that are not loaded, so that all are read eventually.
UNLOADED_SHARE = 1 / 4
PAGE = 64
# The most characters of one message that a summariser gets, and the most that are read for choosing sentences.
MOST_OF_ONE, MOST_CHOSEN_FROM = 500_000, 120_000
# The topic comes from the latest messages before the current one: how many, and how many characters of each.
LATEST, MOST_ASKED = 6, 2000
# How many days before and after a message words such as "Friday" or "yesterday" may mean.
_MEANT = range(-7, 8)


class UnreadMessages(Struct):
    """Covered messages that are not loaded and that no summary has read, by their numbers on the path to `head`."""

    store: Store
    head: str
    ranges: tuple[MessageRange, ...] = ()

    @property
    def count(self) -> int:
        return sum(each.length for each in self.ranges)

    async def read(self, characters: int, *, from_start: bool) -> list[Message]:
        """Reads about this many characters: the newest, and with `from_start` the oldest first. `ranges` keeps the
        rest."""
        found: list[Message] = []
        oldest = int(characters * OLDEST_SHARE) if from_start else 0
        for newest, left in ((False, oldest), (True, characters - oldest)):
            while left > 0 and self.ranges:
                first, last = self.ranges[-1 if newest else 0]
                page = (max(first, last - PAGE + 1), last) if newest else (first, min(first + PAGE - 1, last))
                messages = await self.store.do(self.store.tree.numbered_stretch, self.head, *page)
                taken = []
                for message in map(_in_part, reversed(messages) if newest else messages):
                    if left > 0:
                        left -= len(transcribe(message))
                        taken.append(message)
                is_whole = len(taken) == len(messages)
                read = (MessageRange(*page),) if is_whole else ranges_of(message.said for message in taken)
                self.ranges = ranges_without(self.ranges, read)
                found += taken
        return sorted(found, key=lambda message: message.said)


@dataclass(slots=True)
class SummaryInput:
    token_cache: TokenCache
    """The cache of the conversation's own model."""
    before: FormerSummary
    """The previous summary and its ledger."""
    messages: tuple[Message, ...]
    """The loaded messages, oldest first; after `read`, all that were read."""
    unread: UnreadMessages
    """Messages that no summary has read; after `read`, those left for the next compaction."""
    told_up_to: int
    """The number of the last message that the previous Compaction covers."""
    entries: tuple[Counted, ...] | None
    """The covered part as the conversation's requests sent it; None if some of it is not loaded."""
    tokens: int
    """Its tokens in the window."""
    covered: int
    """The number of messages to read: the newly covered ones, and those no summary has read."""
    archived: int
    """The number of messages archived after the cut."""
    answering: int = 0
    """The number of the message that is answered, if covered messages follow it: the window and the entries have it
    verbatim."""
    work_before: str = ""
    """The whole log, if the previous summary has only a part of it."""
    beside: tuple[str, ...] = ()
    """Other text that a summary may draw on: instructions, messages that are still sent."""
    set_aside: tuple[str, ...] = ()
    """Text set aside by earlier Compactions of the path."""
    contents: tuple[str, ...] = ()
    """The topics that the previous Compaction lists."""
    topic: Topic = field(default_factory=dict)
    """The topic of the latest messages."""
    seen: int = 0
    """The number of messages that a summariser got."""
    density: float = field(init=False)
    """Tokens per character."""
    _facts: CoveredMessages | None = None
    _extraction: Extraction | None = None
    _work: tuple[int, WorkLog | None] | None = None
    """The work log, with the number of messages it was made from."""
    _late: frozenset[int] = frozenset()
    """Messages older than the previous summary that are read only now, by number."""

    def __post_init__(self) -> None:
        former = sum(len(text) + 1 for text in (self.before.summary, *self.before.ledger) if text)
        self.density = max(0.2, min(2.0, self.tokens / max(1, self.size + former)))
        self.messages = tuple(map(_in_part, self.messages))

    @property
    def former(self) -> str:
        return self.before.summary

    async def gathered(self) -> CoveredMessages:
        if self._facts is None:
            self._facts = CoveredMessages()
            await asyncio.to_thread(self._facts.add, self.messages)
        return self._facts

    async def read(self, most: int) -> None:
        """Reads about `most` characters, including the loaded messages."""
        if self.seen:
            return
        if self._facts is None:
            self._let_go(most)
        room = max(most - self.size, int(most * UNLOADED_SHARE))
        found = await self.unread.read(room, from_start=not self.former)
        if self.former:
            self._late = frozenset(message.said for message in found if message.said <= self.told_up_to)
        self.messages = tuple(sorted((*found, *self.messages), key=lambda message: message.said))
        self.seen = len(self.messages)
        if self._facts is not None:
            await asyncio.to_thread(self._facts.add, found)

    def _let_go(self, most: int) -> None:
        """Keeps only the newest loaded messages; the others count as not loaded."""
        if self.size <= most:
            return
        kept, size = len(self.messages), 0
        while kept and size < most / 2:
            kept -= 1
            size += len(transcribe(self.messages[kept]))
        given_up = ranges_of(message.said for message in self.messages[:kept])
        self.unread.ranges = tuple(sorted((*self.unread.ranges, *given_up)))
        self.messages = self.messages[kept:]

    @property
    def size(self) -> int:
        """The number of characters."""
        return sum(len(transcribe(message)) for message in self.messages)

    @property
    def read_ranges(self) -> tuple[MessageRange, ...]:
        """The messages that were read; empty if those are all."""
        return ranges_of(message.said for message in self.messages) if self.unread.ranges else ()

    @property
    def texts(self) -> list[str]:
        """A transcript, oldest first, with gaps marked."""
        gaps = {each.first: each.length for each in self.unread.ranges}
        found = ["Older messages, which the earlier summary leaves out:"] if self._late else []
        day = None
        for message in self.messages:
            if (said := day_of(message.time)) != day and said:
                found.append(f"[{said}]")
                day = said
            found += [transcribe(message), f"[{gap} messages left out]" if (gap := gaps.get(message.said + 1)) else ""]
            if message.said == max(self._late, default=0):
                found.append("The conversation after the earlier summary:")
        return [text for text in found if text]

    async def extract(self, most: int, keep: str = "") -> str:
        if self._extraction is None:
            log, told = self.work_log, split_returned(split_work_log(self.former)[1])[0]
            # there is no ledger with chosen sentences
            former = "\n".join(filter(None, (told, *(each.spoken for each in ledger_items(self.before.ledger)))))
            self._extraction = Extraction(self._said(has_log=log is not None), self.count, former, log, keep)
        return await asyncio.to_thread(self._extraction.within, most)

    async def truncate(self, most: int) -> str:
        return truncate(self._said(has_log=False), most, self.count, split_returned(self.former)[0])

    async def returning(self, most: int) -> list[KeyStatement]:
        """Items set aside that bear on the latest messages, within `most` tokens."""
        if not self.set_aside:
            return []
        current = (await self.gathered()).since(self.before.statements)
        return await asyncio.to_thread(find_returning, self.set_aside, self.topic, current, most, self.count)

    @property
    def days(self) -> tuple[str, str]:
        """The days of the first and the last message; empty if unknown."""
        days = [str(day) for message in self.messages if (day := day_of(message.time))]
        return (days[0], days[-1]) if days else ("", "")

    def dates_meant(self) -> str:
        """The days of the messages; around one that names a day, such as "tomorrow", also those that it may mean."""
        found: set[date] = set()
        for message in self.messages:
            if (day := day_of(message.time)) and message.role != "tool":
                text = sampled(message.text)
                names = word_class("days", "weekdays").is_in(words_in(text), text)
                found |= {day + timedelta(days=away) for away in (_MEANT if names else (0,))}
        return "\n".join(map(str, sorted(found)))

    @property
    def work_log(self) -> WorkLog | None:
        """If tools were used; it continues the former log."""
        if self._work is None or self._work[0] != len(self.messages):
            told = [message for message in self.messages if message.said not in self._late]
            former = f"{self.work_before}\n\n{self.former}" if self.work_before else self.former
            log = continue_work_log(former, told, answering=self.answering)
            self._work = (len(self.messages), log)
        return self._work[1]

    def _said(self, *, has_log: bool) -> list[PlainMessage]:
        said = plain_messages(self.messages, has_log=has_log, goes_on=bool(self.former), late=self._late)
        return [replace(message, text=sampled(message.text)) for message in said]

    def count(self, text: str) -> int:
        """Estimates by token density: exact counting may need a server and comes later."""
        return math.ceil(len(text) * self.density)


def sampled(text: str, most: int = MOST_CHOSEN_FROM) -> str:
    """Samples from all over a text that takes too long to read."""
    if len(text) <= most:
        return text
    share = most // PLACES
    starts = [(len(text) - share) * place // (PLACES - 1) for place in range(PLACES)]
    return "\n".join(text[start : start + share] for start in starts)


def _in_part(message: Message) -> Message:
    """Cuts the longest texts: their length alone must not decide how long a compaction takes."""
    if not any(len(getattr(block, "text", "")) > MOST_OF_ONE for block in message.blocks):
        return message
    blocks = tuple(
        replace(block, text=sampled(block.text, MOST_OF_ONE)) if isinstance(block, Text | ToolResult | File) else block
        for block in message.blocks
    )
    return replace(message, blocks=blocks)


def summary_input(
    planned: PlannedRequest, cut: Cut, unread: UnreadMessages, instructions: str, set_aside: tuple[str, ...] = ()
) -> SummaryInput:
    """`instructions`: other text that the summariser has read."""
    loaded, view = planned.loaded, planned.loaded.view
    covered, stays = view.split(cut.last)
    sent, untold = unsummarized(view, cut), view.compaction.unsummarized if view.compaction else ()
    told = tuple(message for message in covered if message.id not in sent)
    ended = tuple(message for message in view.lifted if message.id in untold and message.id not in sent)
    is_at_hand = not unread.ranges and not any(map(_recalls, covered))
    return SummaryInput(
        planned.token_cache,
        before=former_summary(view.compaction),
        messages=(*ended, *told),
        unread=unread,
        told_up_to=loaded.covered_before,
        entries=_prefix(planned, covered) if is_at_hand else None,
        tokens=sum(loaded.counts[message.id] for message in (*ended, *told)) + loaded.counts.get(SUMMARY, 0),
        covered=len(ended) + len(told) + unread.count,
        archived=loaded.archived(cut.last, cut.lifted),
        answering=planned.current.message.said if view.current in sent else 0,
        work_before=view.compaction.work_log if view.compaction else "",
        beside=(instructions, *map(transcribe, (*view.lifted, *stays, planned.current.message))),
        set_aside=set_aside,
        contents=view.compaction.contents if view.compaction else (),
        topic=_topic(planned, cut) if set_aside else {},
    )


def _topic(planned: PlannedRequest, cut: Cut) -> Topic:
    """The topic of the current user message and the latest ones before it."""
    current, (covered, stays) = planned.current.message, planned.loaded.view.split(cut.last)
    latest = [message for message in (*covered, *stays) if message.id != current.id and message.role != "tool"]
    return find_topic(current.text[:MOST_ASKED], [message.text[:MOST_ASKED] for message in latest[-LATEST:]])


def unsummarized(view: View, cut: Cut) -> tuple[str, ...]:
    """The lifted messages that no summary includes: the one that is answered, and those that once were."""
    before = view.compaction.unsummarized if view.compaction else ()
    newly = {message.id for message in view.split(cut.last)[0]} & {view.current}
    return tuple(id for id in cut.lifted if id in before or id in newly)


def instructions_text(preamble: Preamble) -> str:
    """A summary may draw on them, since the summariser reads them too."""
    return "\n".join([*(tool.text for tool, _ in preamble.tools), preamble.instructed.text]).replace("\\n", " ")


def unread_ranges(loaded: LoadedView) -> tuple[MessageRange, ...]:
    """Messages that earlier summaries could not read in time, and those newly covered but not loaded."""
    before, tail = loaded.view.compaction, loaded.view.tail
    ranges = before.unread if before else ()
    if loaded.view.older and tail and loaded.covered_before < tail[0].said - 1:
        return (*ranges, MessageRange(loaded.covered_before + 1, tail[0].said - 1))
    return ranges


def _prefix(planned: PlannedRequest, covered: Sequence[Message]) -> tuple[Counted, ...]:
    """The covered part as earlier requests sent it, so that the provider's cache serves it."""
    loaded, current = planned.loaded, planned.current
    entries = [*loaded.ahead, *([current.counted] if loaded.view.current_is_lifted else ())]
    for message in covered:
        is_current = message.id == loaded.view.current
        entries += [current.counted] if is_current else loaded.counted_units.get(message.id, [])
    return tuple(entries)


def _recalls(message: Message) -> bool:
    """Transcripts leave recalled messages out, since they are already summarised."""
    return any(result.name == RECALL for result in message.results)


# -- sizes


async def as_sent(
    token_cache: TokenCache, text: str, archived: int, lines: Sequence[str] = (), contents: Sequence[str] = ()
) -> int:
    """Tokens of a summary in the conversation's window, with frame, ledger and contents."""
    written = WrittenSummary(text, ledger=tuple(lines), contents=tuple(contents))
    entry = summary_entry(next_block(None, written, messages_archived=archived))
    return (await token_cache.count([entry]))[0].count.tokens if entry else 0


async def fitting_ledger(
    token_cache: TokenCache, text: str, lines: Sequence[str], archived: int, most: int
) -> tuple[str, ...]:
    """As many of the latest lines as fit beside a given summary."""
    kept = list(lines)
    while kept and await as_sent(token_cache, text, archived, kept) > most:
        del kept[: max(1, len(kept) // 4)]
    return tuple(kept)
