"""Request: what is sent, as pieces of exact bytes, with the reasons. The body is the pieces joined, with their marks.

A mark asks a provider to keep what precedes it. Marks move from turn to turn, so pieces are told apart without them.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

from recto.chat.blocks import Block
from recto.chat.message import Role
from recto.sources.source import Tool

PieceKind = Literal["head", "tool", "system", "message", "join", "tail"]
Purpose = Literal["reply", "summary", "gist"]
MOST_MARKS = 4  # Anthropic, the only one that takes marks, refuses a fifth


@dataclass(frozen=True, slots=True)
class Piece:
    """Some bytes of a body. Only tools, system and messages cost tokens of their own."""

    kind: PieceKind
    data: bytes
    """Without a mark: this is what is hashed, counted, compared and stored."""
    mark: int | None = None
    """Where in `data` the format's mark is put when the body is made."""

    @property
    def sha256(self) -> bytes:
        return hashlib.sha256(self.data).digest()

    def sent(self, mark: bytes) -> bytes:
        return self.data if self.mark is None else with_mark(self.data, self.mark, mark)


def with_mark(data: bytes, place: int, mark: bytes) -> bytes:
    return data[:place] + mark + data[place:]


@dataclass(frozen=True, slots=True)
class Entry:
    """One message as the model is to read it: of `message`, or made for this window alone."""

    role: Role
    blocks: tuple[Block, ...]
    message: str | None = None


@dataclass(frozen=True, slots=True)
class Parameters:
    """What is asked of the model besides the window. None leaves it to the provider."""

    max_tokens: int | None = None
    temperature: float | None = None
    thinking_budget: int | None = None
    tool_choice: str | None = None
    """`none` keeps the tools in the window, where the prefix has them, and forbids to call one; only beside tools."""

    def given(self) -> dict[str, Any]:
        names = ("max_tokens", "temperature", "thinking_budget", "tool_choice")
        return {name: value for name in names if (value := getattr(self, name)) is not None}


class Format(Protocol):
    """A wire format: how entries become bytes. Pure; the same input gives the same bytes.

    body = opening pieces + entry pieces, a comma before each but the first of the list + closing piece.
    """

    name: str
    mark_bytes: bytes
    """What a mark is in this format; empty where it has none."""

    def opening(self, model: str, parameters: Parameters, system: str, tools: Sequence[Tool]) -> list[Piece]:
        """Everything before the first entry, `system` included; ends inside the list of messages."""
        ...

    def opened(self, system: str) -> bool:
        """True when the opening already holds a first item of the list, so that every entry needs a comma."""
        ...

    def entry(self, entry: Entry, provider: str) -> list[bytes]:
        """The wire messages of one entry, without commas; none when nothing in it can be sent.

        `provider` is the provider's name: what another provider made verbatim (signatures) is left out.
        """
        ...

    def closing(self, parameters: Parameters) -> Piece: ...

    def mark_place(self, piece: Piece) -> int | None:
        """Where in this piece's data a mark may stand; None where it may not."""
        ...


def marked(pieces: Sequence[Piece], places: Sequence[int], format: Format) -> tuple[Piece, ...]:
    """The pieces with marks at these places and no others, where the format allows one; of too many the last stay."""
    found: dict[int, int] = {}
    for place in sorted(set(places), reverse=True):
        if len(found) < MOST_MARKS and (mark := format.mark_place(pieces[place])) is not None:
            found[place] = mark
    return tuple(
        piece if piece.mark == found.get(place) else replace(piece, mark=found.get(place))
        for place, piece in enumerate(pieces)
    )


@dataclass(frozen=True, slots=True)
class Request:
    """What is about to leave, complete: the bytes and the account of them."""

    id: str
    conversation: str
    purpose: Purpose
    model: str
    format: str
    parameters: Mapping[str, Any]
    pieces: tuple[Piece, ...]
    account: Mapping[str, Any] = field(default_factory=dict)
    """Sections with picks, plan, counts, message ids: what `request show` explains."""
    message: str | None = None
    """The user's message that it answers."""
    created: str = ""
    stable: int = 0
    """How many of the pieces precede what changes with every message."""
    mark_bytes: bytes = b""
    """The format's, put in where a piece has a mark."""

    @property
    def body(self) -> bytes:
        return b"".join([piece.sent(self.mark_bytes) for piece in self.pieces])

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.body).hexdigest()

    def beginning(self, count: int) -> bytes:
        """The sha256 of the first pieces, marks aside; where one ends and the next begins is part of it."""
        return hashlib.sha256(b"".join([b"%d:%b" % (len(p.data), p.data) for p in self.pieces[:count]])).digest()
