"""ClientFormat: one wire format as a client speaks it: its requests and messages in, replies and errors out.

What the JSON of a format looks like is known here and in the files of that format, and nowhere else.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from recto.chat.blocks import Block
from recto.errors import Invalid
from recto.providers.anthropic import AnthropicFormat
from recto.providers.anthropic_replies import (
    AnthropicReader,
    AnthropicReplyWriter,
    anthropic_error,
    write_anthropic_reply,
)
from recto.providers.anthropic_requests import BOUNDED as ANTHROPIC_BOUNDED
from recto.providers.anthropic_requests import read_anthropic_messages, read_anthropic_request
from recto.providers.client import ClientRequest, ErrorReply, ReplyHead
from recto.providers.http import BAD_DATA, ReplyReader
from recto.providers.model import Done, ReplyPart
from recto.providers.openai import INSTRUCTION_ROLES, OpenAIFormat
from recto.providers.openai_replies import OpenAIReader, OpenAIReplyWriter, openai_error, write_openai_reply
from recto.providers.openai_requests import BOUNDED as OPENAI_BOUNDED
from recto.providers.openai_requests import read_openai_messages, read_openai_request
from recto.providers.sse import ServerEvent
from recto.window.request import Entry, Format
from recto.wire import Json


class ReplyWriter(Protocol):
    """Writes one reply as the events of a stream."""

    def write(self, part: ReplyPart) -> list[ServerEvent]: ...

    def error(self, error: Exception) -> list[ServerEvent]: ...


class ClientFormat(Struct, frozen=True):
    format: Format
    reader: Callable[[], ReplyReader]
    """Reads the replies of a provider."""
    read_request: Callable[..., ClientRequest]
    read_messages: Callable[[Sequence[Json]], list[list[Entry]]]
    """Each message as the entries that it stands for."""
    write_reply: Callable[[ReplyHead, Sequence[Block], Done], Json]
    open_writer: Callable[[ReplyHead, bool], ReplyWriter]
    """For a head, and whether the client wants the usage at the end of a stream."""
    error: Callable[[Exception], ErrorReply]
    reply_prefix: str
    """How the ids of replies begin."""
    instructions: tuple[str, ...]
    """Roles of messages that are instructions; empty where these stand beside the messages."""
    bounded: frozenset[str] = frozenset()
    """Fields of a request that cannot make it cost more than its input and its longest reply."""

    @property
    def name(self) -> str:
        return self.format.name


def _anthropic_writer(head: ReplyHead, include_usage: bool) -> ReplyWriter:
    return AnthropicReplyWriter(head)


OPENAI = ClientFormat(
    OpenAIFormat(),
    OpenAIReader,
    read_openai_request,
    read_openai_messages,
    write_openai_reply,
    lambda head, include_usage: OpenAIReplyWriter(head, include_usage=include_usage),
    openai_error,
    "chatcmpl-",
    INSTRUCTION_ROLES,
    OPENAI_BOUNDED,
)
ANTHROPIC = ClientFormat(
    AnthropicFormat(),
    AnthropicReader,
    read_anthropic_request,
    read_anthropic_messages,
    write_anthropic_reply,
    _anthropic_writer,
    anthropic_error,
    "msg_",
    (),
    ANTHROPIC_BOUNDED,
)
CLIENT_FORMATS = {each.name: each for each in (OPENAI, ANTHROPIC)}
# Parts of a message that only one of the formats has.
_OPENAI_PARTS = frozenset({"image_url", "file", "input_audio", "refusal"})
_ANTHROPIC_PARTS = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document"})


def client_format_of(messages: Sequence[Json], tools: Sequence[Json] = (), provider: str = "") -> ClientFormat:
    """The format that messages and tools are written in; that of the provider where they could be of either."""
    for message in (*tools, *messages):
        if not isinstance(message, Mapping):
            raise Invalid(f"messages and tools are objects as the API takes them, not {type(message).__name__}")
        content = message.get("content")
        kinds = {part.get("type") for part in content if isinstance(part, Mapping)} if isinstance(content, list) else ()
        if "input_schema" in message or _ANTHROPIC_PARTS.intersection(kinds):
            return ANTHROPIC
        is_openai = message.get("role") in ("tool", *INSTRUCTION_ROLES) or "tool_calls" in message
        if is_openai or "function" in message or _OPENAI_PARTS.intersection(kinds):
            return OPENAI
    return ANTHROPIC if provider == ANTHROPIC.name else OPENAI


def with_text(message: Json, text: str, call: str = "") -> Json:
    """A client's message with another text, and the rest of it as it is; `call` names the tool result to change."""
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
    """A whole reply as a client got it from a provider, in either format. Invalid for anything else."""
    for format in CLIENT_FORMATS.values():
        try:
            parts = format.reader().whole(reply)
        except BAD_DATA:
            continue
        if parts and isinstance(parts[-1], Done):
            return parts
    raise Invalid("the reply is none that OpenAI's or Anthropic's API gives")
