"""SummaryCheck: verifies a new summary against what it covers. Unsupported facts are marked, lost facts go into the
ledger, and both together stay within the summary's room. A failure here never ends the chat.
"""

import asyncio
import logging
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from recto.compaction.summary_input import SummaryInput
from recto.summary.ledger import ledger_items
from recto.summary.ledger_selection import ledger_lines
from recto.summary.levels import find_dropped
from recto.summary.truncation import cut_to_fit
from recto.summary.verification import VerifiedSummary, verify_summary
from recto.turn.preamble import Preamble
from recto.turn.token_cache import TokenCache
from recto.window.compaction_block import WrittenSummary, next_block
from recto.window.window import summary_entry

log = logging.getLogger(__name__)

# The ledger's share of the room if there are enough facts to fill it: bench/summary.py.
SHARE = 0.4
# Below this many tokens the summary may use all of the room; the ledger gets what is left.
WORTH_DIVIDING = 160
LEAST = 12
# When the ledger counts as full, how close the next try aims, and how many tries there are.
FULL, CLOSE, TRIES = 0.96, 0.985, 6
# A model's summary that keeps none of so many facts has failed.
MANY_FACTS = 20


class SummaryCheck(Struct, frozen=True):
    source: SummaryInput
    most: int
    """The room of summary and ledger as they are sent, in tokens."""
    keep: str = ""
    """The user's wish for the summary: its words count as said."""
    work_log: str = ""
    """It is made of what was said and done."""
    returned: tuple[str, ...] = ()
    """Lines that were set aside before and stand in the summary again."""

    async def missed(self, text: str) -> tuple[str, ...]:
        """The most important facts, if there are many and a summary keeps none of them."""
        covered, before = await self.source.gathered(), self.source.before
        try:
            found = await asyncio.to_thread(verify_summary, text, covered, before, mark=False)
        except Exception:  # `check` meets it again, and tells the user
            log.exception("the facts of a summary could not be compared")
            return ()
        # of a single long text, a summary may well tell what it is about
        if found.kept or len(found.lost) < MANY_FACTS or len(self.source.messages) < 2:
            return ()
        return await asyncio.to_thread(ledger_lines, found.lost, int(self.most * SHARE), self.source.count)

    async def share(self) -> int:
        """How much room the summary should leave to the ledger, by the number of facts."""
        if self.most < WORTH_DIVIDING:
            return 0
        covered, count = await self.source.gathered(), self.source.count
        entries = covered.told(self.source.former)
        needed = sum(count(entry.text) + 1 for entry in entries) + 4 * len({entry.number for entry in entries})
        # the facts that the former summary states are still there if it is
        needed += sum(count(line) + 1 for line in self.source.before.ledger)
        return min(int(self.most * SHARE), needed)

    async def check(self, written: WrittenSummary) -> WrittenSummary:
        if not written.text:
            return written
        try:
            return await self._checked(written)
        except Exception as why:  # an unverified summary is worth more than none
            log.exception("a summary could not be verified")
            before = self.source.before
            held = await self._fitting(written.text, before.ledger)
            note = f"the summary was not checked: {type(why).__name__}: {why}"
            return replace(written, notes=(*written.notes, note), ledger=held, places=before.places)

    async def _checked(self, written: WrittenSummary) -> WrittenSummary:
        found = await self._compared(written.text, is_trusted=written.made_by != "model")
        while found.invented and await self._as_sent(found.text) > self.most:
            shorter = cut_to_fit(found.text, len(found.text) * 9 // 10, len)
            found = await self._compared(shorter, is_trusted=False)
        lines = await self._ledger(found)
        checks = written.checks | found.counts(lines)
        former, known, by_sentence = self.source.before, self.source.set_aside, written.made_by != "model"
        aside = await asyncio.to_thread(find_dropped, former, found, lines, known, by_sentence=by_sentence)
        return replace(written, text=found.text, ledger=lines, places=found.places, checks=checks, set_aside=aside)

    async def _compared(self, text: str, *, is_trusted: bool) -> VerifiedSummary:
        """Original sentences are trusted: only the conversation's own messages contain them."""
        covered, beside = await self.source.gathered(), (self.keep, self.work_log, *self.source.beside)
        beside = (*beside, *self.source.contents)
        if not is_trusted:
            beside = (*beside, await asyncio.to_thread(self.source.dates_meant))
        before = self.source.before
        former = replace(before, ledger=(*before.ledger, *self.returned)) if self.returned else before
        return await asyncio.to_thread(verify_summary, text, covered, former, beside, mark=not is_trusted)

    async def _ledger(self, found: VerifiedSummary) -> tuple[str, ...]:
        """As many lines as fit: estimated, then counted, until the room is used or nothing is left."""
        base = await self._as_sent(found.text, [""])
        room = aim = self.most - base
        best: tuple[str, ...] = ()
        for _ in range(TRIES if room >= LEAST and found.lost else 0):
            lines = await asyncio.to_thread(ledger_lines, found.lost, aim, self.source.count)
            used = await self._as_sent(found.text, lines) - base if lines else 0
            if used <= room:
                best = lines if len("".join(lines)) >= len("".join(best)) else best
            if (
                not lines
                or room * FULL <= used <= room
                or (used <= room and len(ledger_items(lines)) >= len(found.items))
            ):
                break
            aim = int(aim * room / max(1, used) * CLOSE)
        return best

    async def _fitting(self, text: str, lines: Sequence[str]) -> tuple[str, ...]:
        return await fitting_ledger(self.source.token_cache, text, lines, self.source.archived, self.most)

    async def _as_sent(self, text: str, lines: Sequence[str] = ()) -> int:
        return await as_sent(self.source.token_cache, text, self.source.archived, lines)


def instructions_text(preamble: Preamble) -> str:
    """What the summariser has read besides the conversation: a summary may draw on it."""
    return "\n".join([*(tool.text for tool, _ in preamble.tools), preamble.instructed.text]).replace("\\n", " ")


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
    """As many of the latest ledger lines as fit beside a given summary."""
    kept = list(lines)
    while kept and await as_sent(token_cache, text, archived, kept) > most:
        del kept[: max(1, len(kept) // 4)]
    return tuple(kept)
