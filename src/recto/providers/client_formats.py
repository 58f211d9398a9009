"""ClientFormat: one wire format from the client's side: its requests and messages in, replies and errors out.

Also takes a client's body apart without changing a byte: to pass it on with another model, to store repeated messages
once, and to bound its cost. Only this file and those of each format know its JSON.
"""

from collections.abc import Callable, Mapping, Sequence
from json import JSONDecoder
from typing import Protocol

from msgspec import Struct

from recto.chat.blocks import Block
from recto.errors import Invalid
from recto.providers import anthropic_client, openai_client
from recto.providers.anthropic import AnthropicFormat, AnthropicReader
from recto.providers.client import ClientRequest, ErrorReply, ReplyHead
from recto.providers.http import BAD_DATA, ReplyReader, ServerEvent
from recto.providers.model import Done, Model, ReplyPart, VocabularyCounter
from recto.providers.openai import INSTRUCTION_ROLES, OpenAIFormat, OpenAIReader
from recto.window.request import Entry, Format, Piece, PieceKind
from recto.wire import Json, dumps


class ReplyWriter(Protocol):
    def write(self, part: ReplyPart) -> list[ServerEvent]: ...

    def error(self, error: Exception) -> list[ServerEvent]: ...


class ClientFormat(Struct, frozen=True):
    format: Format
    reader: Callable[[], ReplyReader]
    read_request: Callable[..., ClientRequest]
    read_messages: Callable[[Sequence[Json]], list[list[Entry]]]
    """The entries for each message."""
    write_reply: Callable[[ReplyHead, Sequence[Block], Done], Json]
    open_writer: Callable[[ReplyHead, bool], ReplyWriter]
    """Takes a head, and whether the client wants the usage at the end of a stream."""
    error: Callable[[Exception], ErrorReply]
    reply_prefix: str
    instructions: tuple[str, ...]
    """Roles of messages that are instructions; empty if these are separate from the messages."""
    bounded: frozenset[str] = frozenset()
    """Fields that cannot raise a request's cost above its input and longest reply."""

    @property
    def name(self) -> str:
        return self.format.name


OPENAI = ClientFormat(
    OpenAIFormat(),
    OpenAIReader,
    openai_client.read_openai_request,
    openai_client.read_openai_messages,
    openai_client.write_openai_reply,
    lambda head, include_usage: openai_client.OpenAIReplyWriter(head, include_usage=include_usage),
    openai_client.openai_error,
    "chatcmpl-",
    INSTRUCTION_ROLES,
    openai_client.BOUNDED,
)
ANTHROPIC = ClientFormat(
    AnthropicFormat(),
    AnthropicReader,
    anthropic_client.read_anthropic_request,
    anthropic_client.read_anthropic_messages,
    anthropic_client.write_anthropic_reply,
    lambda head, include_usage: anthropic_client.AnthropicReplyWriter(head),
    anthropic_client.anthropic_error,
    "msg_",
    (),
    anthropic_client.BOUNDED,
)
CLIENT_FORMATS = {each.name: each for each in (OPENAI, ANTHROPIC)}
# Message parts that only one of the formats has.
_OPENAI_PARTS = frozenset({"image_url", "file", "input_audio", "refusal"})
_ANTHROPIC_PARTS = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document"})


def client_format_of(messages: Sequence[Json], tools: Sequence[Json] = (), provider: str = "") -> ClientFormat:
    """The format of messages and tools; that of the provider if both are possible."""
    for message in (*tools, *messages):
        if not isinstance(message, Mapping):
            raise Invalid(f"messages and tools must be objects in the API's format, not {type(message).__name__}")
        content = message.get("content")
        kinds = {part.get("type") for part in content if isinstance(part, Mapping)} if isinstance(content, list) else ()
        if "input_schema" in message or _ANTHROPIC_PARTS.intersection(kinds):
            return ANTHROPIC
        is_openai = message.get("role") in ("tool", *INSTRUCTION_ROLES) or "tool_calls" in message
        if is_openai or "function" in message or _OPENAI_PARTS.intersection(kinds):
            return OPENAI
    return ANTHROPIC if provider == ANTHROPIC.name else OPENAI


def with_text(message: Json, text: str, call: str = "") -> Json:
    """A client's message with another text, otherwise unchanged; `call` names the tool result to change."""
    content = message.get("content")
    if not isinstance(content, list):
        return {**message, "content": text}
    results = [part.get("tool_use_id") for part in content if isinstance(part, Mapping)]
    if call and call in results:
        place = results.index(call)
        return {**message, "content": [*content[:place], {**content[place], "content": text}, *content[place + 1 :]]}
    others = [part for part in content if not isinstance(part, Mapping) or part.get("type") != "text"]
    return {**message, "content": [{"type": "text", "text": text}, *others]}


def read_client_reply(reply: Json) -> list[ReplyPart]:
    """A whole reply as a client got it from a provider, in either format. Raises Invalid for anything else."""
    for format in CLIENT_FORMATS.values():
        try:
            parts = format.reader().whole(reply)
        except BAD_DATA:
            continue
        if parts and isinstance(parts[-1], Done):
            return parts
    raise Invalid("the reply is not in the format of OpenAI's or Anthropic's API")


# -- bodies

_SPACE = " \t\n\r"
_DIVIDED: Mapping[str, PieceKind] = {"messages": "message", "tools": "tool"}


def body_members(text: str) -> list[tuple[str, int, int]]:
    """The members of a JSON object: name, and start and end of the value."""
    decode, found = JSONDecoder().raw_decode, list[tuple[str, int, int]]()
    try:
        at = _after(text, _skip(text, 0), "{")
        while text[(at := _skip(text, at))] != "}":
            name, at = decode(text, at)
            start = _skip(text, _after(text, _skip(text, at), ":"))
            end = decode(text, start)[1]  # the decoded value is freed immediately: it may be large
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
    """The same bytes with another model; unchanged if it is the same."""
    text = body.decode()
    for name, start, end in body_members(text):
        if name == "model" and text[start:end] != dumps(model):
            return f"{text[:start]}{dumps(model)}{text[end:]}".encode()
    return body


def body_pieces(body: bytes) -> tuple[Piece, ...]:
    """The body in pieces that join to it byte for byte: each message and each tool is one."""
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
            # a comma belongs to the item after it
            pieces.append(Piece(_DIVIDED[name], between(done, stop)))
            done = stop
            at = _skip(text, stop)
            at = _skip(text, at + 1) if text[at] == "," else at
    pieces.append(Piece("tail", between(done, None)))
    return tuple(pieces)


# -- the cost of a body

# What our counts cover. Anything else, such as a file that the provider fetches itself, may fill the window.
_MEASURED = frozenset({"text", "refusal", "image_url", "image", "thinking", "redacted_thinking"})
_MEASURED |= {"tool_use", "tool_result", "search_result"}
_INLINE_SOURCES = frozenset({"base64", "text", "content"})


def body_tokens(body: bytes, format: Format, model: Model) -> int:
    """Our count of a request's input, including what the provider may ignore."""
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
