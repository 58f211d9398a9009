"""TokenCache: entries become wire bytes and are counted, once per content and counter; the store remembers counts."""

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from recto.chat.blocks import Block, File, Image, Text, ToolResult
from recto.concurrency import StoreThread
from recto.providers.attachments import without_unsupported
from recto.providers.model import Model
from recto.store.blobs import Blobs, TokenCounts
from recto.window.count import ZERO, Count, TokenCounter
from recto.window.request import Entry, Format, Piece, defuse


@dataclass(frozen=True, slots=True)
class Counted:
    """An entry as bytes, with what they cost."""

    entry: Entry
    wire: tuple[bytes, ...]
    count: Count


class TokenCache:
    def __init__(
        self,
        format: Format,
        model: Model,
        counter: TokenCounter,
        store_thread: StoreThread,
        counts: TokenCounts,
        blobs: Blobs,
    ) -> None:
        self.format = format
        self.model = model
        self.counter = counter
        self._store_thread = store_thread
        self._counts = counts
        self._blobs = blobs
        self._known: dict[bytes, Count] = {}
        self._unsaved: dict[bytes, Count] = {}

    async def count(self, entries: Sequence[Entry]) -> list[Counted]:
        sent = [await self._with_data(without_unsupported(entry, self.model)) for entry in entries]
        wires = [tuple(self.format.entry(self._defused(entry), self.model.provider)) for entry in sent]
        pieces = [Piece("message", data) for wire in wires for data in wire]
        counts = iter(await self.count_pieces(pieces))
        return [
            Counted(entry, wire, next(counts) if len(wire) == 1 else sum((next(counts) for _ in wire), ZERO))
            for entry, wire in zip(entries, wires, strict=True)
        ]

    async def _with_data(self, entry: Entry) -> Entry:
        """With the bytes of images and files that the store keeps."""
        if not any(isinstance(block, Image | File) and block.sha256 for block in entry.blocks):
            return entry
        return replace(entry, blocks=tuple([await self._filled(block) for block in entry.blocks]))

    async def _filled(self, block: Block) -> Block:
        if not isinstance(block, Image | File) or not block.sha256 or block.base64:
            return block
        data = await self._store_thread.do(self._blobs.get, block.sha256)
        return replace(block, base64=base64.b64encode(data).decode())

    async def count_pieces(self, pieces: Sequence[Piece]) -> list[Count]:
        hashes = [hashlib.sha256(piece.data).digest() for piece in pieces]
        missing = [digest for digest in hashes if digest not in self._known]
        if missing:
            self._known.update(await self._store_thread.do(self._counts.find, self.counter.key, missing))
            await self._measure({d: p for d, p in zip(hashes, pieces, strict=True) if d not in self._known})
        return [self._known[digest] for digest in hashes]

    async def _measure(self, fresh: dict[bytes, Piece]) -> None:
        if fresh:
            counted = dict(zip(fresh, await self.counter.count(list(fresh.values())), strict=True))
            self._known |= counted
            # an estimate made because a tokenizer failed must not outlive the failure
            if self.counter.note is None:
                self._unsaved |= counted

    def save(self) -> None:
        """Stores new counts. Runs in the store's thread, inside a transaction."""
        unsaved, self._unsaved = self._unsaved, {}
        self._counts.save(self.counter.key, unsaved)

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
