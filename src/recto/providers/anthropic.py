"""Anthropic's messages API: writes requests as bytes, reads replies, and the provider.

anthropic_client.py reads our own clients. Does not use the vendor's SDK, because the bytes are counted, compared and
recorded before they are sent.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from recto.base.ids import new_id
from recto.base.text import clean
from recto.chat.blocks import Block, File, Image, Text, Thinking, ToolCall, ToolResult
from recto.chat.message import Usage
from recto.providers.attachments import anthropic_image_tokens, fenced, is_document, pdf_tokens
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
from recto.providers.openai import read_item
from recto.providers.remote import CountRequest, RemoteProvider
from recto.sources.source import Tool
from recto.window.count import estimate_text
from recto.window.request import Contents, Entry, Format, NamedTool, Parameters, Piece, PieceKind
from recto.wire import Json, dumpb, dumps, loads

NAME = "anthropic"
VERSION = "2023-06-01"
DEFAULT_MAX_TOKENS = 4096  # the API requires a number in every request
MIN_THINKING_BUDGET = 1024  # the API rejects a smaller budget
TOOL_PROMPT = 346  # tokens that the API adds to the system prompt for tools
UNMARKED = frozenset({"thinking", "redacted_thinking"})  # accepted back only unchanged
TOOL_CHOICES = {"auto": "auto", "none": "none", "required": "any"}
EFFORTS = {"none": "low", "minimal": "low"}  # the format's minimum
IDS = re.compile(r"[a-zA-Z0-9_-]+")  # the API rejects others
COUNTED_FIELDS = frozenset({"model", "messages", "system", "tools", "tool_choice", "thinking", "output_config"})
"""The fields of a request that the counting endpoint accepts; it rejects others."""


class AnthropicFormat:
    name = NAME
    mark_bytes = b',"cache_control":{"type":"ephemeral"}'
    default_max_tokens: int | None = DEFAULT_MAX_TOKENS

    def preamble(self, model: str, parameters: Parameters, system: str, tools: Sequence[Tool]) -> list[Piece]:
        lists = [name for name, present in (("tools", tools), ("system", system), ("messages", True)) if present]
        pieces = [Piece("head", b'{"model":' + dumpb(model) + f',"stream":true,"{lists[0]}":['.encode())]
        for number, tool in enumerate(tools):
            pieces.append(Piece("tool", b"," * (number > 0) + dumpb(_tool(tool))))
        if system and tools:
            pieces.append(Piece("join", b'],"system":['))
        if system:
            # as a list, because plain text has no place for a mark
            pieces.append(Piece("system", dumpb({"type": "text", "text": system})))
        if len(lists) > 1:
            pieces.append(Piece("join", b'],"messages":['))
        return pieces

    def opened(self, system: str) -> bool:
        return False

    def entry(self, entry: Entry, provider: str) -> list[bytes]:
        role = "assistant" if entry.role == "assistant" else "user"
        content = [item for block in entry.blocks if (item := _item(block, role, provider)) is not None]
        return [clean(dumps({"role": role, "content": content}))[0].encode()] if content else []

    def closing(self, parameters: Parameters) -> Piece:
        budget = parameters.thinking_budget or 0
        max_tokens = parameters.max_tokens or DEFAULT_MAX_TOKENS + budget
        # the budget is part of max_tokens and must be smaller; the user's max_tokens is never raised
        thinking = _thinking(parameters, min(budget, max_tokens - 1))
        thinks = thinking is not None and thinking["type"] != "disabled"
        fields = {
            "max_tokens": max_tokens,
            "thinking": thinking,
            # thinking and sampling exclude each other
            "temperature": None if thinks else parameters.temperature,
            "top_p": None if thinks else parameters.top_p,
            "tool_choice": _tool_choice(parameters),
            "stop_sequences": list(parameters.stop) or None,
            "output_config": _output_config(parameters) or None,
            **parameters.extra,
        }
        return Piece("tail", b"]," + dumpb({name: value for name, value in fields.items() if value is not None})[1:])

    def mark_place(self, piece: Piece) -> int | None:
        """Before the closing brace of a tool, the system text, or a message's last block that is not thinking."""
        if piece.kind in ("tool", "system"):
            return len(piece.data) - 1
        if piece.kind != "message":
            return None
        end = len(piece.data) - len(b"}]}")
        for item in reversed(loads(piece.data.removeprefix(b","))["content"]):
            if item["type"] not in UNMARKED:
                return end
            end -= len(dumpb(item)) + len(b",")
        return None

    def piece_kind(self, data: bytes) -> PieceKind:
        item = read_item(data)
        if "input_schema" in item:
            return "tool"
        return "system" if "role" not in item and item.get("type") == "text" else "message"

    def system_text(self, data: bytes) -> str:
        return str(read_item(data).get("text", ""))

    def tool_name(self, data: bytes) -> str:
        return str(read_item(data).get("name"))

    def contents(self, piece: Piece, model: str) -> Contents:
        if piece.kind == "tool":
            is_first = not piece.data.startswith(b",")
            return Contents((piece.data.removeprefix(b",").decode(),), flat=TOOL_PROMPT * is_first, is_plain=False)
        message = loads(piece.data)
        if piece.kind == "system":
            return Contents((message["text"],))
        texts: list[str] = []
        flat = sum(_texts_and_tokens(item, model, texts) for item in message["content"])
        return Contents(tuple(texts), message["role"], flat, is_plain=False)


def _texts_and_tokens(item: Json, model: str, texts: list[str]) -> int:
    """Appends the texts of a content block and returns the other tokens it costs."""
    kind = item["type"]
    if kind == "image":
        return anthropic_image_tokens(item["source"].get("data", ""), model)
    if kind == "document":
        texts.append(item.get("title", ""))
        return pdf_tokens(item["source"].get("data", ""))
    if kind == "redacted_thinking":
        return estimate_text(item["data"])
    if kind == "tool_result":
        content = item.get("content", "")
        texts.append(item["tool_use_id"])
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        return sum(_texts_and_tokens(part, model, texts) for part in parts)
    # the model does not read the signature of thinking, so it costs nothing
    texts.append(item[kind] if kind in ("text", "thinking") else dumps(item))
    return 0


def _tool(tool: Tool) -> Json:
    return {"name": tool.name, "description": tool.description, "input_schema": object_schema(tool.schema)}


def _thinking(parameters: Parameters, budget: int) -> dict[str, Json] | None:
    if budget >= MIN_THINKING_BUDGET:
        return {"type": "enabled", "budget_tokens": budget}
    if parameters.thinking == "adaptive":
        # models with adaptive thinking omit the text unless asked for it
        return {"type": "adaptive", "display": "summarized"}
    return {"type": parameters.thinking} if parameters.thinking else None


def _tool_choice(parameters: Parameters) -> dict[str, Json] | None:
    choice, parallel = parameters.tool_choice, parameters.parallel_tool_calls
    if choice is None and parallel is None:
        return None
    if isinstance(choice, NamedTool):
        field: dict[str, Json] = {"type": "tool", "name": choice.name}
    else:
        field = {"type": TOOL_CHOICES[choice or "auto"]}
    return field if parallel is None or choice == "none" else {**field, "disable_parallel_tool_use": not parallel}


def _output_config(parameters: Parameters) -> dict[str, Json]:
    """Effort and response schema. This format cannot request "any JSON object"."""
    effort, response = parameters.reasoning_effort, parameters.response_format
    config: dict[str, Json] = {"effort": EFFORTS.get(effort, effort)} if effort else {}
    if response is not None and response.schema is not None:
        config["format"] = {"type": "json_schema", "schema": dict(response.schema)}
    return config


def _item(block: Block, role: str, provider: str) -> Json:
    """The block as a content item of this format; None if it cannot be sent in this role."""
    if isinstance(block, Text):
        return {"type": "text", "text": block.text} if block.text.strip() else None
    if isinstance(block, File) and (role == "assistant" or not is_document(block)):
        return {"type": "text", "text": fenced(block)}
    if role == "assistant":
        return _assistant_item(block, provider)
    if isinstance(block, ToolResult):
        return _result(block)
    return _media(block) if isinstance(block, Image | File) else None


def _media(block: Image | File) -> Json:
    data = {"type": "base64", "media_type": block.media_type, "data": block.base64}
    source = {"type": "url", "url": block.url} if block.url else data
    if isinstance(block, Image):
        return {"type": "image", "source": source}
    return {"type": "document", "source": source, "title": block.name}


def _assistant_item(block: Block, provider: str) -> Json:
    """Items of assistant messages only: tool calls, and thinking signed by this provider."""
    if isinstance(block, ToolCall):
        called = {"name": sent_name(block.name), "input": json_arguments(block.arguments)}
        return {"type": "tool_use", "id": sent_id(block.id, IDS), **called}
    if not isinstance(block, Thinking) or block.made is None or block.made.provider != provider:
        return None
    if block.redacted:
        return {"type": "redacted_thinking", "data": block.redacted}
    return {"type": "thinking", "thinking": block.text, "signature": block.signature} if block.signature else None


def _result(result: ToolResult) -> Json:
    item: dict[str, Json] = {"type": "tool_result", "tool_use_id": sent_id(result.call_id, IDS)}
    text = result.text if result.text.strip() else ""
    if result.attachments:
        texts = [{"type": "text", "text": text}] if text else []
        item["content"] = [*texts, *(_item(attachment, "user", "") for attachment in result.attachments)]
    elif text:
        item["content"] = text
    return {**item, "is_error": True} if result.is_error else item


# -- replies

FINISHES = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
}


class AnthropicReader:
    def __init__(self) -> None:
        self._finish: str | None = None
        self._counts: dict[str, int] = {}
        self._has_usage = False
        self._block: dict[str, Json] = {}
        self._calls = 0

    def read(self, event: ServerEvent) -> list[ReplyPart]:
        data = loads(event.data) if event.data.strip() else {}
        kind = data.get("type")
        if kind == "error" or event.name == "error":
            raise ReportedError(data)
        if kind == "message_start":
            self._count(data["message"].get("usage"))
        elif kind == "content_block_start":
            return self._start(data["content_block"])
        elif kind == "content_block_delta":
            return self._delta(data["delta"])
        elif kind == "content_block_stop":
            return self._stop()
        elif kind == "message_delta":
            self._count(data.get("usage"))
            reason = data["delta"].get("stop_reason")
            self._finish = FINISHES.get(reason, reason) or self._finish
        elif kind == "message_stop":
            self._finish = self._finish or "stop"
            return self.end()
        return []

    def whole(self, reply: Json) -> list[ReplyPart]:
        if reply.get("type") == "error":
            raise ReportedError(reply)
        events: list[Json] = [{"type": "message_start", "message": reply}]
        for block in reply["content"]:
            events.append({"type": "content_block_start", "content_block": block})
            if block.get("signature"):
                signed = {"type": "signature_delta", "signature": block["signature"]}
                events.append({"type": "content_block_delta", "delta": signed})
            events.append({"type": "content_block_stop"})
        events += [{"type": "message_delta", "delta": reply}, {"type": "message_stop"}]
        return [part for event in events for part in self.read(ServerEvent(dumps(event)))]

    def end(self) -> list[ReplyPart]:
        return [Done(self._finish, self._usage())] if self._finish else []

    def _start(self, block: Json) -> list[ReplyPart]:
        self._block = {"type": block["type"], "signature": [], "input": block.get("input")}
        if block["type"] == "tool_use":
            self._calls += 1
            id, name = call_text(block.get("id")), call_text(block.get("name"))
            return [CallPart(self._calls - 1, id or f"toolu_{new_id()}", name)]
        if block["type"] == "redacted_thinking":
            return [ThinkingPart(redacted=block["data"])]
        return self._delta({**block, "type": f"{block['type']}_delta"})

    def _delta(self, delta: Json) -> list[ReplyPart]:
        kind = delta["type"]
        if kind == "text_delta" and delta.get("text"):
            return [TextPart(delta["text"])]
        if kind == "thinking_delta" and delta.get("thinking"):
            return [ThinkingPart(delta["thinking"])]
        if kind == "signature_delta":
            self._block["signature"].append(delta["signature"])
        if kind == "input_json_delta" and delta.get("partial_json"):
            self._block["has_arguments"] = True
            return [CallPart(self._calls - 1, arguments=delta["partial_json"])]
        return []

    def _stop(self) -> list[ReplyPart]:
        block, self._block = self._block, {}
        if block.get("type") == "thinking" and block["signature"]:
            return [ThinkingPart(signature="".join(block["signature"]))]
        if block.get("type") == "tool_use" and not block.get("has_arguments"):
            return [CallPart(self._calls - 1, arguments=dumps(block["input"] or {}))]
        return []

    def _count(self, usage: Json) -> None:
        """The last number wins, because each event repeats the totals so far."""
        self._has_usage |= bool(usage) if not isinstance(usage, dict) else usage.get("input_tokens") is not None
        found = usage.items() if isinstance(usage, dict) else ()
        self._counts |= {name: count for name, value in found if (count := reported_count(value)) is not None}

    def _usage(self) -> Usage | None:
        counts = self._counts
        if "input_tokens" not in counts:
            return UNREADABLE_USAGE if self._has_usage else None
        read, write = counts.get("cache_read_input_tokens", 0), counts.get("cache_creation_input_tokens", 0)
        return Usage(counts["input_tokens"] + read + write, counts.get("output_tokens", 0), read, write)


class AnthropicProvider(RemoteProvider):
    format: Format = AnthropicFormat()
    reader = AnthropicReader

    def __init__(self, *arguments: Any, key_variable: str | None = "ANTHROPIC_API_KEY", **options: Any) -> None:
        super().__init__(*arguments, key_variable=key_variable, **options)

    @property
    def url(self) -> str:
        """base_url may or may not end with the version: both are in use."""
        return f"{self.base_url}/messages" if self.base_url.endswith("/v1") else f"{self.base_url}/v1/messages"

    def count_request(self, body: bytes) -> CountRequest | None:
        fields = {name: value for name, value in loads(body).items() if name in COUNTED_FIELDS}
        headers = self.headers(self.checked_key())
        return CountRequest(f"{self.url}/count_tokens", headers, dumpb(fields), "input_tokens")

    @property
    def list_urls(self) -> tuple[str, ...]:
        return (f"{self.url.removesuffix('/messages')}/models?limit=1000",)

    def headers(self, key: str | None) -> Mapping[str, str]:
        return {"anthropic-version": VERSION} | ({"x-api-key": key} if key else {})
