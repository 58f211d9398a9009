"""Values of Recto's own endpoint, shared by both wire formats: a client's request, the head of a reply, an error.

Knows no server: the server passes bytes in and sends the result.
"""

from collections.abc import Mapping

from msgspec import Struct, field

from recto.errors import (
    Busy,
    DoesNotFit,
    Invalid,
    NoKey,
    NotFound,
    NoVectors,
    Overflow,
    RateLimited,
    RectoError,
    Refused,
    SpendLimit,
    Unreachable,
)
from recto.sources.source import Tool
from recto.window.request import Entry, Parameters
from recto.wire import Json

CLIENT = "client"
"""The server name of tools that the client runs itself."""

# Looked up by the nearest class of the error tree. Both APIs return 400 for a prompt that is too long.
STATUSES: dict[type[RectoError], int] = {
    Invalid: 400,
    DoesNotFit: 400,
    Overflow: 400,
    Refused: 400,
    NoKey: 401,
    NotFound: 404,
    RateLimited: 429,
    SpendLimit: 429,
    Unreachable: 503,
    NoVectors: 503,
    Busy: 503,
    RectoError: 500,
}
UNEXPECTED = "The request failed unexpectedly; the log says why."


class ClientRequest(Struct, frozen=True):
    """A client's request as our values."""

    model: str
    entries: tuple[Entry, ...]
    system: str = ""
    tools: tuple[Tool, ...] = ()
    parameters: Parameters = field(default_factory=Parameters)
    stream: bool = False
    include_usage: bool = True
    """Whether the client wants the usage at the end of a stream; a whole reply always has it."""


class ReplyHead(Struct, frozen=True):
    """What every reply starts with, whole or streamed."""

    id: str
    model: str
    created: int = 0
    """In seconds since 1970."""


class ErrorReply(Struct, frozen=True):
    status: int
    body: Json
    headers: Mapping[str, str] = field(default_factory=dict)


def status_of(error: Exception) -> int:
    return next((STATUSES[kind] for kind in type(error).__mro__ if kind in STATUSES), 500)


def sentence_of(error: Exception) -> str:
    """The message for the client. Errors outside our tree may contain internals, so their text is not shown."""
    return error.message if isinstance(error, RectoError) else UNEXPECTED


def error_headers(error: Exception) -> dict[str, str]:
    wait_s = error.retry_after_s if isinstance(error, RateLimited) else None
    return {} if wait_s is None else {"retry-after": f"{wait_s:.0f}"}


def is_too_long(error: Exception) -> bool:
    return isinstance(error, DoesNotFit | Overflow)
