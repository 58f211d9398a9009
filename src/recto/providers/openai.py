"""OpenAI's chat completions, the format of many servers: writes requests as bytes, reads replies, and the provider.

Also Gemini, whose compatible endpoint replies in this format. openai_client.py reads our own clients. Does not use the
vendor's SDK, because the bytes are counted, compared and recorded before they are sent.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from recto.base.ids import new_id
from recto.chat.blocks import Block, File, Image, Text, ToolCall, ToolResult
from recto.chat.message import Usage
from recto.providers.attachments import as_text, data_url, openai_image_tokens, pdf_tokens, split_data_url
from recto.providers.client import json_arguments, object_schema, sent_id, sent_name
from recto.providers.http import ReportedError, ServerEvent
from recto.providers.model import (
    UNREADABLE_USAGE,
    CallPart,
    Done,
    ReplyPart,
    TextPart,
    ThinkingPart,
    call_text,
    reported_count,
)
from recto.providers.remote import RemoteProvider
from recto.sources.source import Tool
from recto.window.request import Contents, Entry, NamedTool, Parameters, Piece, PieceKind, ResponseFormat
from recto.wire import Json, dumpb, dumps, loads

NAME = "openai"
INSTRUCTION_ROLES = ("system", "developer")
PLAIN_ROLES = ("system", "user", "assistant")
UNNAMED = "reply"  # a schema must have a name


class Dialect(Struct, frozen=True):
    """Differences between servers of this format in the fields they accept."""

    max_tokens_field: str = "max_tokens"
    asks_usage: bool = True
    asks_timings: bool = False
    """llama.cpp then reports its usage with every token, not only at the end."""
    ids: re.Pattern[str] = re.compile(r"[!-~]+")
    """Ids of tool calls that can be sent back unchanged. Gateways store more than a name in an id."""


PLAIN = Dialect()
# OpenAI's reasoning models reject max_tokens, its other models accept both; Mistral rejects unknown fields
DIALECTS = {
    "api.openai.com": Dialect(max_tokens_field="max_completion_tokens", ids=re.compile(r"[!-~]{1,40}")),
    "api.mistral.ai": Dialect(asks_usage=False, ids=re.compile(r"[a-zA-Z0-9]{9}")),
}


class OpenAIFormat:
    name = NAME
    mark_bytes = b""
    default_max_tokens: int | None = None

    def __init__(self, dialect: Dialect = PLAIN) -> None:
        self.dialect = dialect

    def preamble(self, model: str, parameters: Parameters, system: str, tools: Sequence[Tool]) -> list[Piece]:
        usage = b',"stream_options":{"include_usage":true}' if self.dialect.asks_usage else b""
        usage += b',"timings_per_token":true' if self.dialect.asks_timings else b""
        head = b'{"model":' + dumpb(model) + b',"stream":true' + usage
        pieces = [Piece("head", head + (b',"tools":[' if tools else b',"messages":['))]
        for number, tool in enumerate(tools):
            pieces.append(Piece("tool", b"," * (number > 0) + dumpb(_tool(tool))))
        if tools:
            pieces.append(Piece("join", b'],"messages":['))
        if system:
            pieces.append(Piece("system", dumpb({"role": "system", "content": system})))
        return pieces

    def opened(self, system: str) -> bool:
        return bool(system)

    def entry(self, entry: Entry, provider: str) -> list[bytes]:
        if entry.role == "tool":
            return _results([block for block in entry.blocks if isinstance(block, ToolResult)], self.dialect)
        if entry.role != "assistant":
            content = _content(entry.blocks)
            return [dumpb({"role": entry.role, "content": content})] if content else []
        message: dict[str, Json] = {"role": entry.role, "content": _text(entry.blocks) or None}
        if calls := [_call(block, self.dialect) for block in entry.blocks if isinstance(block, ToolCall)]:
            message["tool_calls"] = calls
        return [dumpb(message)] if message["content"] or "tool_calls" in message else []

    def closing(self, parameters: Parameters) -> Piece:
        """Thinking cannot be requested in this format; thinking that a model returns anyway is read."""
        fields = {
            self.dialect.max_tokens_field: parameters.max_tokens,
            "temperature": parameters.temperature,
            "tool_choice": _tool_choice(parameters.tool_choice),
            "top_p": parameters.top_p,
            "stop": list(parameters.stop) or None,
            "response_format": _response_format(parameters.response_format),
            "reasoning_effort": parameters.reasoning_effort,
            "parallel_tool_calls": parameters.parallel_tool_calls,
            **parameters.extra,
        }
        written = (f",{dumps(name)}:{dumps(value)}" for name, value in fields.items() if value is not None)
        return Piece("tail", ("]" + "".join(written) + "}").encode())

    def mark_place(self, piece: Piece) -> int | None:
        """None: servers of this format find cached prefixes themselves."""
        return None

    def piece_kind(self, data: bytes) -> PieceKind:
        item = read_item(data)
        if "function" in item:
            return "tool"
        return "system" if item.get("role") in INSTRUCTION_ROLES else "message"

    def system_text(self, data: bytes) -> str:
        content = read_item(data).get("content")
        return content if isinstance(content, str) else dumps(content)

    def tool_name(self, data: bytes) -> str:
        return str(read_item(data).get("function", {}).get("name"))

    def contents(self, piece: Piece, model: str) -> Contents:
        if piece.kind == "tool":
            return Contents((piece.data.removeprefix(b",").decode(),), is_plain=False)
        message = loads(piece.data)
        role, content = message.get("role", ""), message.get("content")
        texts, flat = _texts_and_tokens(content)
        if name := message.get("name"):
            texts, flat = [*texts, name], flat + 1
        others = [value for key, value in message.items() if key not in ("role", "content", "name")]
        texts += [value if isinstance(value, str) else dumps(value) for value in others]
        is_plain = role in PLAIN_ROLES and isinstance(content, str) and len(message) == 2
        return Contents(tuple(texts), role, flat, is_plain)


def read_item(data: bytes) -> dict[str, Any]:
    """A stored item of a body's list; empty if it is not an object."""
    try:
        item = loads(data.removeprefix(b","))
    except ValueError:
        return {}
    return item if isinstance(item, dict) else {}


def _texts_and_tokens(content: Json) -> tuple[list[str], int]:
    if isinstance(content, str):
        return [content], 0
    texts, flat = [], 0
    for part in content or ():
        if part["type"] == "image_url":
            flat += openai_image_tokens((split_data_url(part["image_url"]["url"]) or ("", ""))[1])
        elif part["type"] == "file":
            flat += pdf_tokens((split_data_url(part["file"]["file_data"]) or ("", ""))[1])
        else:
            texts.append(part["text"] if part["type"] == "text" else dumps(part))
    return texts, flat


def _tool(tool: Tool) -> Json:
    function = {"name": tool.name, "description": tool.description, "parameters": object_schema(tool.schema)}
    return {"type": "function", "function": function}


def _call(call: ToolCall, dialect: Dialect) -> Json:
    function = {"name": sent_name(call.name), "arguments": _arguments(call.arguments)}
    return {"id": sent_id(call.id, dialect.ids), "type": "function", "function": function}


def _arguments(raw: str) -> str:
    """Unchanged if they are a JSON object: the server's cache knows those bytes."""
    given = json_arguments(raw)
    return raw if given and given == loads(raw) else dumps(given)


def _tool_choice(choice: str | NamedTool | None) -> Json:
    return {"type": "function", "function": {"name": choice.name}} if isinstance(choice, NamedTool) else choice


def _response_format(format: ResponseFormat | None) -> Json:
    if format is None or format.type != "json_schema":
        return format and {"type": format.type}
    fields: dict[str, Json] = {"name": format.name or UNNAMED, "description": format.description or None}
    fields |= {"schema": None if format.schema is None else dict(format.schema), "strict": format.strict}
    return {"type": "json_schema", "json_schema": {name: value for name, value in fields.items() if value is not None}}


def _results(results: Sequence[ToolResult], dialect: Dialect) -> list[bytes]:
    """One message per result; images and files, which a result cannot hold in this format, follow in one message."""
    sent, attached = list[bytes](), list[Json]()
    for result in results:
        id = sent_id(result.call_id, dialect.ids)
        sent.append(dumpb({"role": "tool", "tool_call_id": id, "content": result.text}))
        if result.attachments:
            content = _content([Text(f"From {result.name} ({result.call_id}):"), *result.attachments])
            attached += [{"type": "text", "text": content}] if isinstance(content, str) else content
    return [*sent, dumpb({"role": "user", "content": attached})] if attached else sent


def _content(blocks: Sequence[Block]) -> Json:
    """A plain string, or a list of parts if there are images or files."""
    if not any(_is_media(block) for block in blocks):
        return _text(blocks)
    parts: list[Json] = []
    for is_media, group in groupby(blocks, _is_media):
        together = list(group)
        if is_media:
            parts += [_media(block) for block in together if isinstance(block, Image | File)]
        elif text := _text(together):
            parts.append({"type": "text", "text": text})
    return parts


def _is_media(block: Block) -> bool:
    return isinstance(block, Image) or (isinstance(block, File) and bool(block.base64))


def _media(block: Image | File) -> Json:
    if isinstance(block, File):
        data = data_url(block.media_type, block.base64)
        return {"type": "file", "file": {"filename": block.name, "file_data": data}}
    return {"type": "image_url", "image_url": {"url": block.url or data_url(block.media_type, block.base64)}}


def _text(blocks: Sequence[Block]) -> str:
    """Joins texts without a separator; files are separated by blank lines."""
    if len(blocks) == 1 and isinstance(blocks[0], Text):  # a fast path for nearly every message of a window
        return blocks[0].text
    paragraphs: list[str] = []
    readable = [block for block in blocks if isinstance(block, Text | File)]
    for _, group in groupby(readable, type):
        together = list(group)
        paragraphs.append("".join(block.text for block in together if isinstance(block, Text)))
        paragraphs += [as_text(block) for block in together if isinstance(block, File)]
    return "\n\n".join(paragraph for paragraph in paragraphs if paragraph)


# -- replies

FINISHES = {"function_call": "tool_calls", "content_filter": "refusal", "max_tokens": "length", "end_turn": "stop"}
DONE = "[DONE]"


class OpenAIReader:
    def __init__(self) -> None:
        self._finish: str | None = None
        self._usage: Usage | None = None
        self._ids: list[str] = []
        self._known_ids: set[str] = set()
        self._place: dict[int, int] = {}

    def read(self, event: ServerEvent) -> list[ReplyPart]:
        data = event.data.strip()
        if data == DONE:
            self._finish = self._finish or "stop"
            return self.end()
        chunk = loads(data) if data else {}
        if event.name == "error" or chunk.get("error"):
            raise ReportedError(chunk)
        self._usage = _read_usage(chunk.get("usage")) or self._usage
        parts = [part for choice in chunk.get("choices") or () for part in self._choice(choice)]
        if so_far := _read_timings(chunk.get("timings")):
            return [replace(part, usage=so_far) if isinstance(part, TextPart) else part for part in parts]
        return parts

    def whole(self, reply: Json) -> list[ReplyPart]:
        given = reply.get("choices") or ()
        choices = [{**choice, "delta": choice["message"]} for choice in given if choice.get("message")]
        parts = self.read(ServerEvent(dumps({**reply, "choices": choices})))
        self._finish = self._finish or ("stop" if choices else None)
        return [*parts, *self.end()]

    def end(self) -> list[ReplyPart]:
        # some servers report stop although they have just called a tool
        finish = "tool_calls" if self._finish == "stop" and self._ids else self._finish
        return [Done(finish, self._usage)] if finish else []

    def _choice(self, choice: Json) -> list[ReplyPart]:
        delta = choice.get("delta") or {}
        parts: list[ReplyPart] = []
        if thought := delta.get("reasoning_content") or delta.get("reasoning"):
            parts.append(ThinkingPart(thought))
        parts += _read_content(delta.get("content")) + _read_content(delta.get("refusal"))
        parts += [self._call_part(call) for call in delta.get("tool_calls") or ()]
        if old := delta.get("function_call"):  # the older form, for a single call
            parts.append(self._call_part({"index": 0, "function": old}))
        reason = "refusal" if delta.get("refusal") else choice.get("finish_reason")
        if reason and self._finish != "refusal":
            self._finish = FINISHES.get(reason, reason)
        return parts

    def _call_part(self, call: Json) -> CallPart:
        function = call.get("function") or call.get("custom") or {}
        given = function.get("arguments", function.get("input"))
        id, name, arguments = map(call_text, (call.get("id"), function.get("name"), given))
        index = self._continued(call.get("index"), id, name)
        if index is not None:
            return CallPart(index, arguments=arguments)
        self._ids.append(id if id and id not in self._known_ids else f"call_{new_id()}")
        self._known_ids.add(self._ids[-1])
        new = len(self._ids) - 1
        self._place[call.get("index", new)] = new
        return CallPart(new, self._ids[new], name, arguments)

    def _continued(self, index: int | None, id: str, name: str) -> int | None:
        """The call that this part continues; None for a new one.

        Some servers omit the index, some send 0 for every call: then a name with another id, or without one, begins a
        new call.
        """
        place = len(self._ids) - 1 if index is None else self._place.get(index, -1)
        if place < 0 or (name and (id != self._ids[place] if id else index is None)):
            return None
        return place


def _read_content(content: Json) -> list[ReplyPart]:
    """Reads a string, or the list of parts that Mistral's reasoning models send."""
    if isinstance(content, str):
        return [TextPart(content)] if content else []
    parts: list[ReplyPart] = []
    for item in content or ():
        if item.get("type") == "thinking":
            parts.append(ThinkingPart("".join(thought["text"] for thought in item["thinking"])))
        elif item.get("text"):
            parts.append(TextPart(item["text"]))
    return parts


def _read_usage(raw: Json) -> Usage | None:
    if not raw or (isinstance(raw, dict) and raw.get("prompt_tokens") is None):  # most chunks have none
        return None
    if not isinstance(raw, dict) or (used := reported_count(raw.get("prompt_tokens"))) is None:
        return UNREADABLE_USAGE
    details, replied = (raw.get(f"{name}_tokens_details") for name in ("prompt", "completion"))
    output, reasoning = _count(raw, "completion_tokens"), _count(replied, "reasoning_tokens")
    # some providers count reasoning separately, and only their total shows it
    beside = _count(raw, "total_tokens") - used - output
    return Usage(
        input=used,
        output=output + max(0, beside),
        cache_read=_count(details, "cached_tokens"),
        reasoning=max(reasoning, beside),
        cache_write=_count(details, "cache_write_tokens"),
    )


def _read_timings(raw: Json) -> Usage | None:
    """The usage that a llama.cpp server reports with every token on request."""
    if not isinstance(raw, dict) or (read := reported_count(raw.get("prompt_n"))) is None:
        return None
    cached = _count(raw, "cache_n")
    return Usage(input=read + cached, output=_count(raw, "predicted_n"), cache_read=cached)


def _count(counts: Json, name: str) -> int:
    return (reported_count(counts.get(name)) if isinstance(counts, dict) else None) or 0


# -- providers


class OpenAIProvider(RemoteProvider):
    reader = OpenAIReader

    def __init__(
        self, name: str, base_url: str, *arguments: Any, dialect: Dialect | None = None, **options: Any
    ) -> None:
        super().__init__(name, base_url, *arguments, **options)
        dialect = dialect or DIALECTS.get(urlsplit(self.base_url).hostname or "", PLAIN)
        self.format, self.length_field = OpenAIFormat(dialect), dialect.max_tokens_field

    @property
    def url(self) -> str:
        return f"{self.base_url}/chat/completions"

    @property
    def list_urls(self) -> tuple[str, ...]:
        """Besides the format's own: those of LiteLLM and LM Studio, which report windows."""
        root = self.base_url.removesuffix("/v1")
        more = (f"{root}/model/info", f"{root}/api/v0/models") if self.is_custom else ()
        return (f"{self.base_url}/models", *more)

    def headers(self, key: str | None) -> Mapping[str, str]:
        return {"authorization": f"Bearer {key}"} if key else {}
