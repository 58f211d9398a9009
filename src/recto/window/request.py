"""Request: what is sent, as pieces of exact bytes, with the reasons. The body is the pieces joined; nothing else."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from recto.chat.blocks import Block
from recto.chat.message import Role
from recto.sources.source import Tool

PieceKind = Literal["head", "tool", "system", "message", "join", "tail"]
Purpose = Literal["reply", "summary"]


@dataclass(frozen=True, slots=True)
class Piece:
    """Some bytes of a body. Only tools, system and messages cost tokens of their own."""

    kind: PieceKind
    data: bytes

    @property
    def sha256(self) -> bytes:
        return hashlib.sha256(self.data).digest()


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

    def given(self) -> dict[str, Any]:
        values = {name: getattr(self, name) for name in ("max_tokens", "temperature", "thinking_budget")}
        return {name: value for name, value in values.items() if value is not None}


class Format(Protocol):
    """A wire format: how entries become bytes. Pure; the same input gives the same bytes.

    body = opening pieces + entry pieces, a comma before each but the first of the list + closing piece.
    """

    name: str

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

    @property
    def body(self) -> bytes:
        return b"".join(piece.data for piece in self.pieces)

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.body).hexdigest()

    def beginning(self, count: int) -> bytes:
        """The sha256 of the first pieces' bytes."""
        return hashlib.sha256(b"".join(piece.data for piece in self.pieces[:count])).digest()
