"""Passes a client's own bytes on to a provider of its format, and the provider's bytes back.

Also takes such a body apart at its messages and tools, so that bodies that repeat them are stored once.
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from json import JSONDecoder
from typing import TYPE_CHECKING

from recto.errors import Invalid, NotFound
from recto.providers.client import ClientRequest
from recto.providers.failure import RequestTarget
from recto.providers.families import VocabularyCounter
from recto.providers.http import BAD_DATA, connection_failure
from recto.providers.model import Model, Provider
from recto.providers.remote import RemoteProvider
from recto.window.request import Format, Piece, PieceKind
from recto.wire import Json, dumps

if TYPE_CHECKING:
    from httpx2 import Response

_SPACE = " \t\n\r"
_DIVIDED: Mapping[str, PieceKind] = {"messages": "message", "tools": "tool"}


def remote_of(provider: Provider) -> RemoteProvider | None:
    """The provider as one that takes any bytes over HTTP; None for those that run in this process."""
    found = getattr(provider, "remote", provider)
    return found if isinstance(found, RemoteProvider) else None


@asynccontextmanager
async def forwarded(provider: RemoteProvider, url: str, body: bytes) -> AsyncGenerator["Response", None]:
    """The provider's answer to these bytes, whatever it is. Unreachable where there is none, with what is known of
    whether the request left."""
    import httpx2  # slow, and only to send

    key = provider.checked_key()
    headers = {"content-type": "application/json", "accept-encoding": "identity", "user-agent": "recto"}
    target = RequestTarget(provider.name, url, "this model", provider.key_variable, key)
    client = provider.transport.client(url)
    try:
        async with client.stream("POST", url, content=body, headers={**headers, **provider.headers(key)}) as response:
            yield response
    except httpx2.HTTPError as why:
        failure = connection_failure(target, why, provider.transport.retry_policy)
        failure.error.sent = failure.was_sent
        raise failure.error from why


def embeddings_url(provider: Provider) -> tuple[RemoteProvider, str]:
    remote = remote_of(provider)
    if remote is None or not remote.url.endswith("/chat/completions"):
        raise NotFound(f"{provider.name} has no embeddings.", provider=provider.name)
    return remote, f"{remote.base_url}/embeddings"


# -- bodies


def body_members(text: str) -> list[tuple[str, int, int]]:
    """The members of a JSON object: each name, and where its value begins and ends."""
    decode, found = JSONDecoder().raw_decode, list[tuple[str, int, int]]()
    try:
        at = _after(text, _skip(text, 0), "{")
        while text[(at := _skip(text, at))] != "}":
            name, at = decode(text, at)
            start = _skip(text, _after(text, _skip(text, at), ":"))
            end = decode(text, start)[1]  # what was read is let go at once: it may be large
            found.append((str(name), start, end))
            at = _skip(text, end)
            at = at + 1 if text[at] == "," else at
    except (ValueError, IndexError, RecursionError) as why:
        raise Invalid("The request is not a JSON object.", field="") from why
    return found


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at


def _after(text: str, at: int, sign: str) -> int:
    if text[at] != sign:
        raise ValueError(f"no {sign}")
    return at + 1


def with_model(body: bytes, model: str) -> bytes:
    """The same bytes with another model, and not a byte changed where it is the same."""
    text = body.decode()
    for name, start, end in body_members(text):
        if name == "model" and text[start:end] != dumps(model):
            return _spliced(body, text, start, end, dumps(model))
    return body


def with_member(body: bytes, name: str, value: Json) -> bytes:
    """The same bytes with one member more, or with another value of one that is there."""
    text = body.decode()
    for known, start, end in body_members(text):
        if known == name:
            return _spliced(body, text, start, end, dumps(value))
    at = _after(text, _skip(text, 0), "{")
    comma = "" if text[_skip(text, at)] == "}" else ","
    return _spliced(body, text, at, at, f"{dumps(name)}:{dumps(value)}{comma}")


def _spliced(body: bytes, text: str, start: int, end: int, new: str) -> bytes:
    """The body with another text at a place of it, which is given in characters; copied once."""
    if not text.isascii():
        start, end = len(text[:start].encode()), len(body) - len(text[end:].encode())
    whole = memoryview(body)
    return b"".join((whole[:start], new.encode(), whole[end:]))


def body_pieces(body: bytes) -> tuple[Piece, ...]:
    """The body in pieces that make it up again, byte for byte: each message and each tool is one."""
    text, decode = body.decode(), JSONDecoder().raw_decode
    pieces, done = list[Piece](), 0

    def between(start: int, end: int | None) -> bytes:
        return body[start:end] if text.isascii() else text[start:end].encode()

    for name, start, _ in body_members(text):
        if name not in _DIVIDED or text[start] != "[":
            continue
        at = _skip(text, start + 1)
        pieces.append(Piece("head" if not pieces else "join", between(done, at)))
        done = at
        while text[at] != "]":
            stop = decode(text, at)[1]
            # a comma belongs to the item behind it
            pieces.append(Piece(_DIVIDED[name], between(done, stop)))
            done = stop
            at = _skip(text, stop)
            at = _skip(text, at + 1) if text[at] == "," else at
    pieces.append(Piece("tail", between(done, None)))
    return tuple(pieces)


# -- what a body can cost

# What our counts measure. Anything else, as a file that the provider fetches itself, may fill the window.
_MEASURED = frozenset(
    {
        "text",
        "refusal",
        "image_url",
        "image",
        "thinking",
        "redacted_thinking",
        "tool_use",
        "tool_result",
        "search_result",
    }
)
_INLINE_SOURCES = frozenset({"base64", "text", "content"})


def body_tokens(body: bytes, format: Format, model: Model) -> int:
    """Our count of the input of a request. Everything in it counts, also what the provider may ignore."""
    counter, tokens = VocabularyCounter(model, format), 0
    for piece in body_pieces(body):
        data = piece.data.lstrip(b", \t\r\n")
        if piece.kind not in ("message", "tool"):
            tokens += counter.text(piece.data.decode()).tokens
            continue
        try:
            tokens += counter.count_piece(Piece(piece.kind, data)).tokens
        except BAD_DATA:
            tokens += len(data)  # no token is shorter than a byte
    return tokens


def is_measured(content: Json) -> bool:
    """Whether our counts measure all of a message's content."""
    if not isinstance(content, list):
        return True
    return all(isinstance(part, dict) and _is_part_measured(part) for part in content)


def _is_part_measured(part: dict[str, Json]) -> bool:
    kind, file, source = part.get("type"), part.get("file"), part.get("source")
    if kind == "file":
        return isinstance(file, dict) and bool(file.get("file_data")) and not file.get("file_id")
    if kind == "document":
        return isinstance(source, dict) and source.get("type") in _INLINE_SOURCES
    return kind in _MEASURED and is_measured(part.get("content"))


def rendered_body(request: ClientRequest, format: Format, provider: str, model: str) -> bytes:
    """A client's request as another format, or a provider without an address, takes it."""
    preamble = format.preamble(model, request.parameters, request.system, request.tools)
    parts = [piece.data for piece in preamble]
    is_first = not format.opened(request.system)
    for entry in request.entries:
        for data in format.entry(entry, provider):
            parts.append(data if is_first else b"," + data)
            is_first = False
    return b"".join((*parts, format.closing(request.parameters).data))
