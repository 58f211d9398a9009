"""SummaryCheck: verifies a new summary against what it covers. Unsupported facts are marked, lost facts go into the
ledger, and both together stay within the summary's room. A failure here never ends the chat.
"""

import asyncio
import logging
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from recto.compaction.summary_input import SummaryInput
from recto.sentences.segments import segments
from recto.summary.ledger import ledger_lines
from recto.summary.set_aside import RETURNED, find_dropped
from recto.summary.truncation import cut_to_fit
from recto.summary.verification import Checked, VerifiedSummary, check_figures, split_stated, verify_summary
from recto.summary.work_log import split_work_log
from recto.turn.preamble import Preamble
from recto.turn.token_cache import TokenCache
from recto.window.compaction_block import WrittenSummary, next_block
from recto.window.window import summary_entry

log = logging.getLogger(__name__)

# What a ledger may take beside a model's summary: so much of the room, and of the summary's own tokens.
SHARE, OF_SUMMARY = 0.2, 1 / 3
# Below this many tokens the summary may use all of the room; the ledger gets what is left.
WORTH_DIVIDING = 160
LEAST = 12
# A short summary may still have a ledger of one or two statements.
A_FEW = 48
# How close the next try aims, and how many tries there are.
CLOSE, TRIES = 0.95, 4
# So much of the room stays to a summary that tells too little.
POOR_SHARE = 0.5
# A summary is checked for the most needed statements that take so much of its room.
CHECKED_SHARE = 0.5


SHORTENED = "the end of the summary was left out: with its marks it was too long"


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
    is_poor: bool = False
    """It tells fewer than half of what it was checked for: the ledger may take all the room that is left."""

    async def figures(self, text: str) -> Checked:
        """Which of the most needed statements with figures a model's summary tells."""
        covered, former = await self.source.gathered(), self.source.before.statements
        room = int(self.most * CHECKED_SHARE)
        try:
            return await asyncio.to_thread(lambda: check_figures(text, covered.since(former), room, self.source.count))
        except Exception:  # `check` meets it again, and tells the user
            log.exception("the statements of a summary could not be compared")
            return Checked([], [])

    async def missing(self, checked: Checked) -> tuple[str, ...]:
        """What a summary lost, as lines for the model that is asked again."""
        return await asyncio.to_thread(ledger_lines, checked.lost, int(self.most * SHARE), self.source.count)

    @property
    def share(self) -> int:
        """How much room a model's summary should leave to the ledger."""
        return int(self.most * SHARE) if self.most >= WORTH_DIVIDING else 0

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
            found = await self._compared(_without_last(found.text), is_trusted=False)
            written = replace(written, notes=tuple(dict.fromkeys((*written.notes, SHORTENED))))
        by_model = written.made_by == "model"
        if self.is_poor and by_model:
            found = await self._compared(await asyncio.to_thread(self._thinned, found), is_trusted=False)
        lines = await self._ledger(found) if by_model else ()
        checks = written.checks | found.counts(lines)
        before, known = self.source.before, self.source.set_aside
        told = "\n".join((found.text, *lines))
        aside = await asyncio.to_thread(
            find_dropped, before.summary, before.statements, told, found.lost, known, by_sentence=not by_model
        )
        return replace(written, text=found.text, ledger=lines, places=found.places, checks=checks, set_aside=aside)

    def _thinned(self, found: VerifiedSummary) -> str:
        """The summary without sentences that tell no statement, the last first, until half of the room is free for
        what it does not tell. The work log before it and what returns behind it stay."""
        written, returned, behind = found.text.partition(RETURNED)
        begins = len(written) - len(split_work_log(written)[1]) if self.work_log else 0
        room = self.most - self.source.count(written[:begins])
        excess = self.source.count(found.text[begins:]) - int(room * POOR_SHARE)
        for each in reversed(segments(written)):
            if excess <= 0 or each.start < begins:
                break
            if not split_stated(each.text, found.kept)[0]:
                written = written[: each.start].rstrip(" ") + written[each.end :]
                excess -= self.source.count(each.text)
        lines = [line for line in written[begins:].splitlines() if any(map(str.isalnum, line))]
        return written[:begins] + "\n".join(lines) + (f"\n\n{returned}{behind}" if returned else "")

    async def _compared(self, text: str, *, is_trusted: bool) -> VerifiedSummary:
        """Original sentences are trusted: only the conversation's own messages contain them."""
        covered, beside = await self.source.gathered(), (self.keep, self.work_log, *self.source.beside)
        if not is_trusted:
            beside = (*beside, await asyncio.to_thread(self.source.dates_meant))
        before = self.source.before
        former = replace(before, ledger=(*before.ledger, *self.returned)) if self.returned else before
        return await asyncio.to_thread(verify_summary, text, covered, former, beside, mark=not is_trusted)

    async def _ledger(self, found: VerifiedSummary) -> tuple[str, ...]:
        """As many lines as fit: estimated, then counted."""
        base = await self._as_sent(found.text, [""])
        left = self.most - base
        room = aim = left if self.is_poor else min(left, max(A_FEW, int(base * OF_SUMMARY)))
        best: tuple[str, ...] = ()
        for _ in range(TRIES if room >= LEAST and found.lost else 0):
            lines = await asyncio.to_thread(ledger_lines, found.lost, aim, self.source.count)
            used = await self._as_sent(found.text, lines) - base if lines else 0
            if used <= room:
                best = lines if len("".join(lines)) >= len("".join(best)) else best
            if not lines or used <= room:
                break
            aim = int(aim * room / max(1, used) * CLOSE)
        return best

    async def _fitting(self, text: str, lines: Sequence[str]) -> tuple[str, ...]:
        return await fitting_ledger(self.source.token_cache, text, lines, self.source.archived, self.most)

    async def _as_sent(self, text: str, lines: Sequence[str] = ()) -> int:
        return await as_sent(self.source.token_cache, text, self.source.archived, lines)


def _without_last(text: str) -> str:
    """Without its last sentence; of a single one, its beginning."""
    found = segments(text)
    return text[: found[-1].start].rstrip(" \n\t-*#>") if len(found) > 1 else cut_to_fit(text, len(text) * 9 // 10, len)


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
