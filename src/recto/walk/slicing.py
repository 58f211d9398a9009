"""Slicing: a long text for a summariser, in runs that its own window can read beside the order and the answer."""

from collections.abc import Sequence
from dataclasses import dataclass

from recto.summary.order import SUMMARISER, Wanted, halves, slices
from recto.walk.asking import Question, weigh_text
from recto.walk.opening import Instructions, Opening, open_window
from recto.walk.setup import Ready

# Transcripts are counted message by message; joined they may take a little more.
SLACK = 0.97
# What is left when a provider has said that it counts more than we do.
TIGHT = 0.6
SMALLEST_ROOM = 64


@dataclass(frozen=True, slots=True)
class Slicing:
    writer: Ready
    opening: Opening
    wanted: Wanted
    tight: bool = False

    async def question(self, text: str, because: str) -> Question:
        asked = (await weigh_text(self.writer, [text]))[0]
        return Question(self.writer, self.opening, (), asked, because, self.wanted.tokens)

    async def runs(self, texts: Sequence[str], order: str) -> list[str]:
        """The texts in order, joined; none when there is no room for anything beside the order."""
        empty = await self.question(order, "")
        room = self.writer.budget.limit - empty.tokens - (empty.parameters.max_tokens or 0)
        room = int(room * SLACK * (TIGHT if self.tight else 1)) - 16
        if room < SMALLEST_ROOM:
            return []
        fitting = [part for text in texts for part in await self._fitting(text, room)]
        tokens = [weighed.count.tokens + 1 for weighed in await weigh_text(self.writer, fitting)]
        return ["\n".join(run) for run in slices(fitting, tokens, room)]

    async def _fitting(self, text: str, room: int) -> list[str]:
        """The text, in halves of halves where it is larger than what can be read at once."""
        if (await weigh_text(self.writer, [text]))[0].count.tokens < room or len(text) < 2:
            return [text]
        return [part for half in halves(text) for part in await self._fitting(half, room)]


async def open_slicing(writer: Ready, wanted: Wanted, *, tight: bool) -> Slicing:
    return Slicing(writer, await open_window(writer.scale, writer.parameters, Instructions(SUMMARISER)), wanted, tight)
