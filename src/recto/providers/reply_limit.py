"""ReplyLimit: how much of a reply is read. A provider that goes on without end is cut off there.

Counts characters, not tokens, because that costs nothing. No honest reply is cut: the limit is what the requested
tokens can hold at most, and thinking, which some providers count beside them, has a limit of its own.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from msgspec import Struct
from msgspec.structs import replace

from recto.providers.model import Attempt, CallPart, Done, ReplyPart, TextPart, ThinkingPart

# The longest token of the vocabularies that Recto counts with: a run of 128 spaces (o200k, Llama 3, Qwen 3) or dots.
CHARACTERS_PER_TOKEN = 128
# Some servers round up a small number of tokens.
FEWEST_TOKENS = 64


class ReplyLimit(Struct, frozen=True):
    """The limits that do not depend on the tokens that a request asks for."""

    characters: int = 4_000_000
    """Of the thinking, and of the rest of a reply whose tokens are not limited."""
    calls: int = 256
    """Tool calls in one reply."""


class ReplyMeter:
    """Counts one reply against its limit. `note` says why it was cut off."""

    def __init__(self, limit: ReplyLimit, max_tokens: int | None) -> None:
        most = max(max_tokens, FEWEST_TOKENS) * CHARACTERS_PER_TOKEN if max_tokens else limit.characters
        self._limit, self._max_tokens = limit, max_tokens
        self._left, self._left_to_think = most, max(most, limit.characters)
        self._most, self._most_to_think = self._left, self._left_to_think
        self._calls = -1
        self.note = ""

    def take(self, part: ReplyPart) -> ReplyPart | None:
        """The part, or as much of it as is within the limit; None if that is nothing."""
        if self.note:
            return None
        if isinstance(part, ThinkingPart):
            return self._thinking(part)
        if isinstance(part, Attempt | Done):
            return part
        if isinstance(part, CallPart):
            self._calls = max(self._calls, part.index)
            if self._calls >= self._limit.calls:
                self.note = f"{_ENDS} the model called more than {self._limit.calls:,} tools (tools.call_limit)."
                return None
        size = _size(part)
        # an empty part counts too: an endless stream of them is a reply without end
        self._left -= max(1, size)
        if self._left >= 0:
            return part
        self.note = self._too_long()
        return _beginning(part, max(0, size + self._left))

    def _thinking(self, part: ThinkingPart) -> ThinkingPart | None:
        hidden = len(part.signature or "") + len(part.redacted or "")
        self._left_to_think -= max(1, len(part.text) + hidden)
        if self._left_to_think >= 0:
            return part
        self.note = (
            f"{_ENDS} the model thought for more than {self._most_to_think:,} characters (reply.max_characters)."
        )
        kept = part.text[: max(0, len(part.text) + hidden + self._left_to_think)]
        return ThinkingPart(kept) if kept and not hidden else None

    def _too_long(self) -> str:
        if self._max_tokens:
            return f"{_ENDS} it is longer than the {self._max_tokens:,} tokens that were asked for can be."
        return f"{_ENDS} it is longer than {self._most:,} characters (reply.max_characters)."


_ENDS = "The reply was cut off here:"


def _size(part: TextPart | CallPart) -> int:
    return len(part.text) if isinstance(part, TextPart) else len(part.id) + len(part.name) + len(part.arguments)


def _beginning(part: TextPart | CallPart, size: int) -> ReplyPart | None:
    """Of a call whatever fits of its arguments: it is not run."""
    if isinstance(part, TextPart):
        return replace(part, text=part.text[:size]) if size else None
    size -= len(part.id) + len(part.name)
    return replace(part, arguments=part.arguments[:size]) if size > 0 else None


async def limited(
    parts: AsyncGenerator[ReplyPart], limit: ReplyLimit, max_tokens: int | None
) -> AsyncGenerator[ReplyPart]:
    """The parts of a reply. One that is too long ends with Done and a note, and its provider is not read any more."""
    meter = ReplyMeter(limit, max_tokens)
    async with aclosing(parts):
        async for part in parts:
            if taken := meter.take(part):
                yield taken
            if meter.note:
                yield Done("length", note=meter.note)
                return
