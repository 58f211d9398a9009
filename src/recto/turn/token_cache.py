"""TokenCache: turns entries into wire bytes and counts them, once per content and counter; the store keeps the counts.

Counts are kept uncalibrated. A turn reads them through a copy with its own calibration."""

import base64
import copy
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Self

from msgspec import Struct
from msgspec.structs import replace

from recto.chat.blocks import Block, File, Image, References, Text, Thinking, ToolCall, ToolResult
from recto.chat.message import Role, Tokens
from recto.providers.attachments import without_unsupported
from recto.providers.model import Model
from recto.store.store import Store
from recto.window.calibration import UNCALIBRATED, TokenCalibration
from recto.window.count import ZERO, Count, TokenCounter, proportional_shares
from recto.window.request import Entry, Format, Piece, defuse

# Counts in memory: those of a few windows. The store has the others.
MAX_KNOWN = 8192
# Texts this small are counted without looking in the store.
FEW_PIECES, FEW_BYTES = 8, 8_000


class Counted(Struct, frozen=True):
    entry: Entry
    wire: tuple[bytes, ...]
    count: Count
    base: Count

    def rescaled(self, factor: float) -> "Counted":
        return self if self.base.exact else replace(self, count=self.base.scaled(factor))


def total_of(entries: Iterable[Counted]) -> int:
    return sum([entry.count.tokens for entry in entries])


class TokenCache:
    def __init__(self, format: Format, model: Model, counter: TokenCounter, store: Store) -> None:
        self.format = format
        self.model = model
        self.counter = counter
        self._store = store
        self.calibration = UNCALIBRATED
        self.root = self
        """The cache that this one shares its counts with."""
        self._known: dict[bytes, Count] = {}
        self._unsaved: dict[bytes, Count] = {}

    def calibrated(self, calibration: TokenCalibration) -> Self:
        made = copy.copy(self)
        made.calibration = calibration
        return made

    def with_window(self, window: int) -> Self:
        made = copy.copy(self)
        made.model = replace(self.model, window=window, window_from="chosen for this plan")
        return made

    @property
    def factor(self) -> float:
        return self.calibration.factor

    async def count(self, entries: Sequence[Entry], *, keep: bool = True) -> list[Counted]:
        """`keep` stores the counts, if the entries may be counted again."""
        sent = [await self._with_data(without_unsupported(entry, self.model)) for entry in entries]
        wires = [tuple(self.format.entry(self._defused(entry.with_sent_ids), self.model.provider)) for entry in sent]
        pieces = [Piece("message", data) for wire in wires for data in wire]
        counts = iter(await self._base_counts(pieces, keep=keep))
        bases = [next(counts) if len(wire) == 1 else sum((next(counts) for _ in wire), ZERO) for wire in wires]
        return [
            Counted(entry, wire, base.scaled(self.factor), base)
            for entry, wire, base in zip(entries, wires, bases, strict=True)
        ]

    async def tokens_of(self, text: str) -> int:
        """The tokens of a text as a message of its own."""
        return (await self.count([Entry("user", (Text(text),))]))[0].count.tokens

    async def _with_data(self, entry: Entry) -> Entry:
        """Fills in the bytes of stored images and files."""
        filled: list[Block] = []
        for block in entry.blocks:
            if isinstance(block, Image | File) and block.sha256 and not block.base64:
                data = await self._store.do(self._store.blobs.get, block.sha256)
                block = replace(block, base64=base64.b64encode(data).decode())
            filled.append(block)
        return replace(entry, blocks=tuple(filled))

    async def count_pieces(self, pieces: Sequence[Piece]) -> list[Count]:
        return [count.scaled(self.factor) for count in await self._base_counts(pieces)]

    async def _base_counts(self, pieces: Sequence[Piece], *, keep: bool = True) -> list[Count]:
        hashes = [hashlib.sha256(piece.data).digest() for piece in pieces]
        found = {digest: self._known[digest] for digest in hashes if digest in self._known}
        missing = {digest: piece for digest, piece in zip(hashes, pieces, strict=True) if digest not in found}
        if missing:
            stored = await self._stored(missing)
            found |= stored
            fresh = {digest: piece for digest, piece in missing.items() if digest not in found}
            counted = dict(zip(fresh, await self.counter.count(list(fresh.values())), strict=True)) if fresh else {}
            # an estimate made because a tokenizer failed must not outlive the failure
            if keep and self.counter.note is None:
                self._unsaved |= counted
            found |= counted
            if len(self._known) > MAX_KNOWN:
                self._known.clear()
            self._known |= found
        return [found[digest] for digest in hashes]

    async def _stored(self, pieces: Mapping[bytes, Piece]) -> dict[bytes, Count]:
        """New messages have no stored counts, and small ones are faster to count again."""
        size = sum(len(piece.data) for piece in pieces.values())
        if self.counter.is_quick and len(pieces) <= FEW_PIECES and size < FEW_BYTES:
            return {}
        return await self._store.do(self._store.token_counts.find, self.counter.key, list(pieces))

    def save(self) -> None:
        """Runs in the store's thread, inside a transaction."""
        unsaved = {}
        while self._unsaved:  # one by one: another turn may be adding to it
            digest, count = self._unsaved.popitem()
            unsaved[digest] = count
        self._store.token_counts.save(self.counter.key, unsaved)

    def defused(self, text: str) -> str:
        return defuse(text, self.model.control) if self.model.control else text

    def _defused(self, entry: Entry) -> Entry:
        if not self.model.control:
            return entry
        with_text = (Text, File, ToolResult)
        defused = (
            replace(each, text=self.defused(each.text)) if isinstance(each, with_text) else each
            for each in entry.blocks
        )
        return replace(entry, blocks=tuple(defused))


async def message_tokens(cache: TokenCache, role: Role, blocks: tuple[Block, ...], own: int | None = None) -> Tokens:
    """`own`: the message's count, if known. Its blocks add up to it, except for thinking that is not sent back."""
    if own is None:
        sent = tuple(block for block in blocks if not isinstance(block, References))
        own = (await cache.count([Entry(role, sent)]))[0].count.tokens
    shares = (own,) if len(blocks) == 1 else await _shares(cache, role, blocks, own)
    calls = sum(share for block, share in zip(blocks, shares, strict=True) if isinstance(block, ToolCall))
    return Tokens(own, tools=calls if role == "assistant" else None, blocks=shares if len(blocks) > 1 else ())


async def _shares(cache: TokenCache, role: Role, blocks: tuple[Block, ...], own: int) -> tuple[int, ...]:
    """Shares of the count: a message is counted as one text."""
    entries = [Entry(role, (Text(block.told) if isinstance(block, References) else block,)) for block in blocks]
    frame, *counts = [each.count.tokens for each in await cache.count([Entry(role, (Text(""),)), *entries])]
    alone = [max(0, tokens - frame) for tokens in counts]
    shares = proportional_shares(own, alone) if any(alone) else [0] * len(blocks)
    return tuple(
        [
            await _thought(cache, block) if isinstance(block, Thinking) and not tokens else share
            for block, tokens, share in zip(blocks, alone, shares, strict=True)
        ]
    )


async def _thought(cache: TokenCache, block: Thinking) -> int:
    counted = await cache.count([Entry("user", (Text(text),)) for text in ("", block.text)])
    return max(0, counted[1].count.tokens - counted[0].count.tokens)
