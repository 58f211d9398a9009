"""Slices: a long transcript cut into parts that fit the summariser's window beside prompt and answer."""

from collections.abc import Sequence

from msgspec import Struct

from recto.summary.prompt import SUMMARIZER_INSTRUCTIONS, SummaryOptions, group_by_size, split_in_half
from recto.turn.context import TurnContext
from recto.turn.preamble import Instructions, Preamble, build_preamble
from recto.turn.side_call import SideCall, count_texts

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
