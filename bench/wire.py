"""Conversations as the OpenAI format sends them: what goes to the peers and comes back from all of us, and its weight.

Used on both sides, so it knows neither recto nor any peer.
"""

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

Wire = dict[str, Any]
"""One message: role, content, tool_calls or tool_call_id."""

# OpenAI's own rule for chat: so much around every message.
FRAME = 3


@dataclass(frozen=True, slots=True)
class Limits:
    """The same for everyone, in tokens."""

    most: int
    """What a request may hold."""
    trigger: int
    """Where a summary is made."""
    keep: int
    """How much of the latest messages stays beside it."""

    def to_json(self) -> dict[str, int]:
        return asdict(self)


@cache
def _encoder() -> Callable[[str], list[int]]:
    from splintr import Tokenizer  # a vocabulary of megabytes

    return Tokenizer.from_pretrained("o200k_base").encode_ordinary


@cache
def tokens(text: str) -> int:
    """In o200k. Remembered: every bench meets its texts again and again."""
    return len(_encoder()(text))


def encoded(text: str) -> tuple[int, ...]:
    return tuple(_encoder()(text))


def texts(message: Wire) -> list[str]:
    """All that a model reads of a message: its content, and its calls with their ids."""
    content = message.get("content") or ""
    parts = [content] if isinstance(content, str) else [part.get("text") or "" for part in content]
    for call in message.get("tool_calls") or ():
        parts += [call["id"], call["function"]["name"], call["function"]["arguments"]]
    return [*parts, message["tool_call_id"]] if "tool_call_id" in message else parts


def weight(message: Wire) -> int:
    return FRAME + tokens(message["role"]) + sum(map(tokens, texts(message)))


def weights(messages: Iterable[Wire]) -> int:
    """Of a whole request: its messages, and the reply that is primed."""
    return FRAME + sum(map(weight, messages))


def numbered(summary: str, number: int) -> str:
    """The nth summary of a conversation: no two are the same, as in life, so that no cache takes one for another."""
    return f"{number}. {summary}"
