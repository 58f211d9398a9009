"""Checking: a summary that was written is compared with what it covers; what nobody said is marked, what was lost goes
into the ledger, and both together stay within the summary's room. Whatever goes wrong here, the chat goes on.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from recto.summary import ledger
from recto.summary.check import Checked, check
from recto.summary.shorten import cut_to
from recto.walk.covering import Covering
from recto.walk.opening import Opening
from recto.walk.scale import Scale
from recto.window.compact import Written, next_block
from recto.window.window import summary_entry

# What of the room is the ledger's where there are facts enough to fill it: bench/facts.py.
SHARE = 0.4
# Below this, in tokens, all of the room is the summary's; what it leaves may still be used.
WORTH_DIVIDING = 160
LEAST = 12
# How much of the ledger's room is used, and how close to it the next try aims.
FULL, CLOSE, TRIES = 0.96, 0.985, 6


@dataclass(frozen=True, slots=True)
class Checking:
    covering: Covering
    most: int
    """The room of summary and ledger, as they are sent."""
    keep: str = ""
    """What the user wants in the summary: it may be told."""

    async def share(self) -> int:
        """What a summary should leave of the room, by the facts there are: none of it is kept free for nothing."""
        if self.most < WORTH_DIVIDING:
            return 0
        covered = await self.covering.gathered()
        leads = [*covered.leads.values(), *self.covering.before.leads]
        count = self.covering.count
        needed = sum(count(lead.item) + 1 for lead in leads) + 4 * len({lead.said for lead in leads})
        return min(int(self.most * SHARE), needed)

    async def check(self, written: Written) -> Written:
        if not written.text:
            return written
        try:
            return await self._checked(written)
        except Exception as why:
            # an unchecked summary is worth more than none
            before = self.covering.before
            held = await self._fitting(written.text, before.ledger)
            note = f"the summary was not checked: {type(why).__name__}: {why}"
            return replace(written, notes=(*written.notes, note), ledger=held, places=before.places)

    async def _checked(self, written: Written) -> Written:
        found = await self._compared(written.text, is_trusted=written.made_by != "model")
        while found.invented and await self._as_sent(found.text) > self.most:
            shorter = cut_to(found.text, len(found.text) * 9 // 10, len)
            found = await self._compared(shorter, is_trusted=False)
        lines = await self._ledger(found)
        return replace(
            written, text=found.text, ledger=lines, places=found.places, checks=written.checks | found.counts(lines)
        )

    async def _compared(self, text: str, *, is_trusted: bool) -> Checked:
        """Sentences of the originals are trusted: nobody but the people of the conversation wrote them."""
        covered, beside = await self.covering.gathered(), (self.keep, *self.covering.beside)
        return await asyncio.to_thread(check, text, covered, self.covering.before, beside, marks=not is_trusted)

    async def _ledger(self, found: Checked) -> tuple[str, ...]:
        """As many lines as fit; estimated first, then weighed, until the room is used or there is no more to say."""
        base = await self._as_sent(found.text, [""])
        room = aim = self.most - base
        best: tuple[str, ...] = ()
        for _ in range(TRIES if room >= LEAST and found.lost else 0):
            lines = await asyncio.to_thread(ledger.lines, found.lost, aim, self.covering.count)
            used = await self._as_sent(found.text, lines) - base if lines else 0
            if used <= room:
                best = lines if len("".join(lines)) >= len("".join(best)) else best
            if not lines or room * FULL <= used <= room or (used <= room and len(_items(lines)) >= len(found.lost)):
                break
            aim = int(aim * room / max(1, used) * CLOSE)
        return best

    async def _fitting(self, text: str, lines: Sequence[str]) -> tuple[str, ...]:
        return await fitting(self.covering.scale, text, lines, self.covering.archived, self.most)

    async def _as_sent(self, text: str, lines: Sequence[str] = ()) -> int:
        return await as_sent(self.covering.scale, text, self.covering.archived, lines)


def instructions(opening: Opening) -> str:
    """What a summariser has read besides the conversation: from these too it may tell."""
    pieces = [piece.data.decode(errors="replace") for piece in opening.pieces if piece.kind in ("system", "tool")]
    return "\n".join(pieces).replace("\\n", " ")


def _items(lines: Sequence[str]) -> list[str]:
    return [item for line in lines for item in line.split(ledger.BETWEEN)]


async def as_sent(scale: Scale, text: str, archived: int, lines: Sequence[str] = ()) -> int:
    """What a summary of this text takes in the conversation's window, frame, ledger and all."""
    entry = summary_entry(next_block(None, Written(text, ledger=tuple(lines)), messages_archived=archived))
    return (await scale.weigh([entry]))[0].count.tokens if entry else 0


async def fitting(scale: Scale, text: str, lines: Sequence[str], archived: int, most: int) -> tuple[str, ...]:
    """As many of the latest lines as have room beside a text that somebody else wrote."""
    kept = list(lines)
    while kept and await as_sent(scale, text, archived, kept) > most:
        del kept[: max(1, len(kept) // 4)]
    return tuple(kept)
