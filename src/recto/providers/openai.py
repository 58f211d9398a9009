"""OpenAI's chat completions, the format of many servers: turns entries into bytes, and the provider that sends them.

Replies are in openai_replies.py, requests of our own clients in openai_requests.py. Knows neither the network nor where
the facts about a model come from. Does not use the vendor's SDK, because the bytes are counted, compared and recorded
before they are sent.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from urllib.parse import urlsplit

from msgspec import Struct

from recto.chat.blocks import Block, File, Image, Text, ToolCall, ToolResult
from recto.providers.attachments import as_text, data_url, openai_image_tokens, pdf_tokens, split_data_url
from recto.providers.http import Transport
from recto.providers.openai_replies import OpenAIReader
from recto.providers.remote import ModelLookup, RemoteProvider
from recto.providers.request_fields import json_arguments, object_schema, sent_id, sent_name
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
    """llama.cpp then tells its usage with every token, and not only at the end."""
    ids: re.Pattern[str] = re.compile(r"[!-~]+")
    """The ids of tool calls that are sent back as they came. Gateways keep more in an id than its name."""


PLAIN = Dialect()
# OpenAI's reasoning models refuse max_tokens, its other models accept both; Mistral refuses unknown fields
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
        """Thinking cannot be requested in this format; thinking that a model returns by itself is still read."""
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
        item = _read(data)
        if "function" in item:
            return "tool"
        return "system" if item.get("role") in INSTRUCTION_ROLES else "message"

    def system_text(self, data: bytes) -> str:
        content = _read(data).get("content")
        return content if isinstance(content, str) else dumps(content)

    def tool_name(self, data: bytes) -> str:
        return str(_read(data).get("function", {}).get("name"))

    def contents(self, piece: Piece, model: str) -> Contents:
        if piece.kind == "tool":
            return Contents((piece.data.removeprefix(b",").decode(),), is_plain=False)
        message = loads(piece.data)
        role, content = message.get("role", ""), message.get("content")
        texts, flat = _read_content(content)
        if name := message.get("name"):
            texts, flat = [*texts, name], flat + 1
        others = [value for key, value in message.items() if key not in ("role", "content", "name")]
        texts += [value if isinstance(value, str) else dumps(value) for value in others]
        is_plain = role in PLAIN_ROLES and isinstance(content, str) and len(message) == 2
        return Contents(tuple(texts), role, flat, is_plain)


def _read(data: bytes) -> dict[str, Json]:
    try:
        item = loads(data.removeprefix(b","))
    except ValueError:
        return {}
    return item if isinstance(item, dict) else {}


def _read_content(content: Json) -> tuple[list[str], int]:
    """The texts of a content, and the tokens of its images and files."""
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
    """As the model wrote them where that is a JSON object: the server's cache knows those bytes."""
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
    ids = [sent_id(result.call_id, dialect.ids) for result in results]
    sent = [
        dumpb({"role": "tool", "tool_call_id": id, "content": result.text})
        for id, result in zip(ids, results, strict=True)
    ]
    attached = [part for result in results for part in _attached(result)]
    return [*sent, dumpb({"role": "user", "content": attached})] if attached else sent


def _attached(result: ToolResult) -> list[Json]:
    if not result.attachments:
        return []
    content = _content([Text(f"From {result.name} ({result.call_id}):"), *result.attachments])
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def _content(blocks: Sequence[Block]) -> Json:
    """A plain string, or a list of parts where there are images or files."""
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


class OpenAIProvider(RemoteProvider):
    def __init__(
        self,
        name: str,
        base_url: str,
        key: str | None,
        catalog: ModelLookup,
        *,
        key_variable: str | None = None,
        dialect: Dialect | None = None,
        transport: Transport | None = None,
        is_custom: bool = False,
    ) -> None:
        super().__init__(
            name, base_url, key, catalog, key_variable=key_variable, transport=transport, is_custom=is_custom
        )
        dialect = dialect or DIALECTS.get(urlsplit(self.base_url).hostname or "", PLAIN)
        self.format, self.length_field = OpenAIFormat(dialect), dialect.max_tokens_field
        self.reader = OpenAIReader

    @property
    def url(self) -> str:
        return f"{self.base_url}/chat/completions"

    @property
    def list_urls(self) -> tuple[str, ...]:
        """Besides the format's own: those of LiteLLM and LM Studio, which tell windows."""
        root = self.base_url.removesuffix("/v1")
        more = (f"{root}/model/info", f"{root}/api/v0/models") if self.is_custom else ()
        return (f"{self.base_url}/models", *more)

    def headers(self, key: str | None) -> Mapping[str, str]:
        return {"authorization": f"Bearer {key}"} if key else {}
