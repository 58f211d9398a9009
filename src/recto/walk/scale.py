"""Scale: entries become wire bytes and get their weight. Weighed once per content and meter; the store remembers."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from recto.chat.blocks import Block, File, Text, ToolResult
from recto.providers.model import Model
from recto.store.clerk import Clerk
from recto.store.counts import Counts
from recto.window.count import ZERO, Count, Meter
from recto.window.defuse import defuse
from recto.window.request import Entry, Format, Piece


@dataclass(frozen=True, slots=True)
class Weighed:
    """An entry as bytes, with what they cost."""

    entry: Entry
    wire: tuple[bytes, ...]
    count: Count


class Scale:
    def __init__(self, format: Format, model: Model, meter: Meter, clerk: Clerk, counts: Counts) -> None:
        self.format = format
        self.model = model
        self.meter = meter
        self._clerk = clerk
        self._counts = counts
        self._known: dict[bytes, Count] = {}
        self._unsaved: dict[bytes, Count] = {}

    async def weigh(self, entries: Sequence[Entry]) -> list[Weighed]:
        wires = [tuple(self.format.entry(self._defused(entry), self.model.provider)) for entry in entries]
        pieces = [Piece("message", data) for wire in wires for data in wire]
        counts = iter(await self.weigh_pieces(pieces))
        return [
            Weighed(entry, wire, next(counts) if len(wire) == 1 else sum((next(counts) for _ in wire), ZERO))
            for entry, wire in zip(entries, wires, strict=True)
        ]

    async def weigh_pieces(self, pieces: Sequence[Piece]) -> list[Count]:
        hashes = [hashlib.sha256(piece.data).digest() for piece in pieces]
        missing = [digest for digest in hashes if digest not in self._known]
        if missing:
            self._known.update(await self._clerk.do(self._counts.find, self.meter.key, missing))
            await self._measure({d: p for d, p in zip(hashes, pieces, strict=True) if d not in self._known})
        return [self._known[digest] for digest in hashes]

    async def _measure(self, fresh: dict[bytes, Piece]) -> None:
        if fresh:
            counted = dict(zip(fresh, await self.meter.measure(list(fresh.values())), strict=True))
            self._known |= counted
            # an estimate made because a tokenizer failed must not outlive the failure
            if self.meter.note is None:
                self._unsaved |= counted

    def save(self) -> None:
        """Stores what was measured since the last time; called from the store's thread, within its transaction."""
        unsaved, self._unsaved = self._unsaved, {}
        self._counts.save(self.meter.key, unsaved)

    def defused(self, text: str) -> str:
        return defuse(text, self.model.control) if self.model.control else text

    def _defused(self, entry: Entry) -> Entry:
        if not self.model.control:
            return entry
        return replace(entry, blocks=tuple(self._defused_block(block) for block in entry.blocks))

    def _defused_block(self, block: Block) -> Block:
        if isinstance(block, Text | File | ToolResult):
            return replace(block, text=self.defused(block.text))
        return block
