"""Anthropic's messages: entries to bytes, events to Parts, and the provider that uses both.

Knows nothing of the network, nor of where the facts about a model come from.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from recto.chat.blocks import Block, File, Image, Text, Thinking, ToolCall, ToolResult
from recto.chat.message import Usage
from recto.providers.fence import fenced
from recto.providers.http import Reported, Transport
from recto.providers.provider import CallPart, Done, Part, TextPart, ThinkingPart
from recto.providers.remote import Catalog, RemoteProvider
from recto.providers.rooted import rooted
from recto.providers.sse import ServerEvent
from recto.sources.source import Tool
from recto.text import clean
from recto.window.request import Entry, Parameters, Piece
from recto.wire import Json, dumpb, dumps, loads

VERSION = "2023-06-01"
DEFAULT_MAX_TOKENS = 4096  # the API wants a number in every request
LEAST_THINKING = 1024  # the API refuses a smaller budget
UNMARKED = frozenset({"thinking", "redacted_thinking"})  # they are only accepted back as they were made
FINISHES = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
}
_NOT_IN_IDS = re.compile(r"[^a-zA-Z0-9_-]")


class AnthropicFormat:
    name = "anthropic"
    mark_bytes = b',"cache_control":{"type":"ephemeral"}'

    def opening(self, model: str, parameters: Parameters, system: str, tools: Sequence[Tool]) -> list[Piece]:
        lists = [name for name, present in (("tools", tools), ("system", system), ("messages", True)) if present]
        pieces = [Piece("head", b'{"model":' + dumpb(model) + f',"stream":true,"{lists[0]}":['.encode())]
        for number, tool in enumerate(tools):
            pieces.append(Piece("tool", b"," * (number > 0) + dumpb(_tool(tool))))
        if system and tools:
            pieces.append(Piece("join", b'],"system":['))
        if system:
            # as a list, since a plain text has no place for a mark
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
        budget, most = parameters.thinking_budget or 0, parameters.max_tokens
        most = most or DEFAULT_MAX_TOKENS + budget
        # the budget counts to max_tokens and must be smaller; what the user asked for as the most stays the most
        budget = min(budget, most - 1)
        asked: dict[str, Json] = {"max_tokens": most}
        if budget >= LEAST_THINKING:  # thinking and a temperature exclude each other
            asked["thinking"] = {"type": "enabled", "budget_tokens": budget}
        elif parameters.temperature is not None:
            asked["temperature"] = parameters.temperature
        if parameters.tool_choice is not None:
            asked["tool_choice"] = {"type": parameters.tool_choice}
        return Piece("tail", b"]," + dumpb(asked)[1:])

    def mark_place(self, piece: Piece) -> int | None:
        """Before the brace that ends a tool, the system text, or the last block of a message that is not thinking."""
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


def _tool(tool: Tool) -> Json:
    return {"name": tool.name, "description": tool.description, "input_schema": rooted(tool.schema)}


def _item(block: Block, role: str, provider: str) -> Json:
    """The block in this format's words; None for what cannot be sent, or not in this role."""
    if isinstance(block, Text):
        return {"type": "text", "text": block.text} if block.text.strip() else None
    if isinstance(block, File):
        return {"type": "text", "text": fenced(block)}
    if role == "assistant":
        return _own(block, provider)
    if isinstance(block, ToolResult):
        return _result(block)
    if isinstance(block, Image):
        source = {"type": "base64", "media_type": block.media_type, "data": block.base64}
        return {"type": "image", "source": source}
    return None


def _own(block: Block, provider: str) -> Json:
    """What only an assistant says: calls, and thinking where this provider can prove that it is its own."""
    if isinstance(block, ToolCall):
        return {"type": "tool_use", "id": _id(block.id), "name": block.name, "input": _arguments(block.arguments)}
    if not isinstance(block, Thinking) or block.made is None or block.made.provider != provider:
        return None
    if block.redacted:
        return {"type": "redacted_thinking", "data": block.redacted}
    return {"type": "thinking", "thinking": block.text, "signature": block.signature} if block.signature else None


def _result(result: ToolResult) -> Json:
    item: dict[str, Json] = {"type": "tool_result", "tool_use_id": _id(result.call_id)}
    if result.text.strip():
        item["content"] = result.text
    return {**item, "is_error": True} if result.is_error else item


def _id(id: str) -> str:
    """Ids that another provider made may hold what this one refuses."""
    return _NOT_IN_IDS.sub("_", id) or "_"


def _arguments(raw: str) -> dict[str, Any]:
    """The API takes an object only. What a model wrote wrongly is kept in its block; its result says what was wrong."""
    try:
        value = loads(raw)
        dumps(value)  # NaN and infinities can be read but not sent
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


class AnthropicReader:
    """One reply's events, in the order they come."""

    def __init__(self) -> None:
        self._finish: str | None = None
        self._counts: dict[str, int] = {}
        self._block: dict[str, Json] = {}
        self._calls = 0

    def read(self, event: ServerEvent) -> list[Part]:
        data = loads(event.data) if event.data.strip() else {}
        kind = data.get("type")
        if kind == "error" or event.name == "error":
            raise Reported(data)
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

    def end(self) -> list[Part]:
        return [Done(self._finish, self._usage())] if self._finish else []

    def _start(self, block: Json) -> list[Part]:
        self._block = {"type": block["type"], "signature": "", "arguments": "", "input": block.get("input")}
        if block["type"] == "tool_use":
            self._calls += 1
            return [CallPart(self._calls - 1, block["id"], block["name"])]
        if block["type"] == "redacted_thinking":
            return [ThinkingPart(redacted=block["data"])]
        return self._delta({**block, "type": f"{block['type']}_delta"})

    def _delta(self, delta: Json) -> list[Part]:
        kind = delta["type"]
        if kind == "text_delta" and delta.get("text"):
            return [TextPart(delta["text"])]
        if kind == "thinking_delta" and delta.get("thinking"):
            return [ThinkingPart(delta["thinking"])]
        if kind == "signature_delta":
            self._block["signature"] += delta["signature"]
        if kind == "input_json_delta" and delta.get("partial_json"):
            self._block["arguments"] += delta["partial_json"]
            return [CallPart(self._calls - 1, arguments=delta["partial_json"])]
        return []

    def _stop(self) -> list[Part]:
        block, self._block = self._block, {}
        if block.get("type") == "thinking" and block["signature"]:
            return [ThinkingPart(signature=block["signature"])]
        if block.get("type") == "tool_use" and not block["arguments"]:
            return [CallPart(self._calls - 1, arguments=dumps(block["input"] or {}))]
        return []

    def _count(self, usage: Json) -> None:
        """The later number wins: each event repeats the sums so far."""
        self._counts |= {name: value for name, value in (usage or {}).items() if isinstance(value, int)}

    def _usage(self) -> Usage | None:
        counts = self._counts
        if "input_tokens" not in counts:
            return None
        read, write = counts.get("cache_read_input_tokens", 0), counts.get("cache_creation_input_tokens", 0)
        return Usage(counts["input_tokens"] + read + write, counts.get("output_tokens", 0), read, write)


class AnthropicProvider(RemoteProvider):
    def __init__(
        self,
        name: str,
        base_url: str,
        key: str | None,
        catalog: Catalog,
        *,
        key_variable: str | None = "ANTHROPIC_API_KEY",
        transport: Transport | None = None,
    ) -> None:
        super().__init__(name, base_url, key, catalog, key_variable=key_variable, transport=transport)
        self.format = AnthropicFormat()
        self.reader = AnthropicReader

    @property
    def url(self) -> str:
        """With or without the version in base_url: both are in use."""
        return f"{self.base_url}/messages" if self.base_url.endswith("/v1") else f"{self.base_url}/v1/messages"

    def headers(self, key: str | None) -> Mapping[str, str]:
        return {"anthropic-version": VERSION} | ({"x-api-key": key} if key else {})
