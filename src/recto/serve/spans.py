"""A recorded request as an OpenTelemetry span, by the conventions for generative AI, in the JSON of OTLP.

What was said goes along only where the switch of those conventions asks for it. Pure: sends nothing.
"""

import re
import secrets
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct

from recto.chat.blocks import Block, Text, Thinking, ToolCall, ToolResult
from recto.chat.message import Message
from recto.providers.client_formats import CLIENT_FORMATS
from recto.store.records import Record
from recto.wire import Json, dumps, loads

CLIENT, FAILED = 3, 2
"""The kind of a span for a call to somebody else, and the status of one that failed."""
# Providers that the conventions name otherwise than we do.
PROVIDERS = {"gemini": "gcp.gemini", "mistral": "mistral_ai", "xai": "x_ai"}
PARAMETERS = {
    "temperature": "gen_ai.request.temperature",
    "top_p": "gen_ai.request.top_p",
    "max_tokens": "gen_ai.request.max_tokens",
    "stop": "gen_ai.request.stop_sequences",
    "seed": "gen_ai.request.seed",
}
_PARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?")


class ReplyTrace:
    """What a record does not say about a reply: how it was asked for, and when its first part came."""

    def __init__(self, mode: str, traceparent: str | None, *, is_stream: bool) -> None:
        """`traceparent`: the client's own span, as the header of W3C's trace context names it."""
        self.mode, self.is_stream = mode, is_stream
        found = _PARENT.fullmatch(traceparent or "")
        self.parent = (found[1], found[2]) if found else None
        self.began_ns, self._first_ns = time.time_ns(), 0

    def hear(self) -> None:
        self._first_ns = self._first_ns or time.time_ns()

    @property
    def first_s(self) -> float | None:
        return (self._first_ns - self.began_ns) / 1e9 if self._first_ns else None


class TracedRequest(Struct, frozen=True):
    record: Record
    reply: Message | None
    trace: ReplyTrace
    error: str = ""
    """The kind of error that it ended with."""
    body: bytes = b""
    """What was sent, where that goes along."""


def span_of(traced: TracedRequest) -> Json:
    record, trace = traced.record, traced.trace
    trace_id, parent = trace.parent or (secrets.token_hex(16), "")
    _, _, model = (record.account.model or "").partition(":")
    span = {
        "traceId": trace_id,
        "spanId": secrets.token_hex(8),
        "name": f"chat {model}",
        "kind": CLIENT,
        "startTimeUnixNano": str(_nanoseconds(record.created)),
        "endTimeUnixNano": str(time.time_ns()),
        "attributes": attributes(_facts(traced) | _content(traced)),
    }
    if parent:
        span["parentSpanId"] = parent
    if traced.error:
        span["status"] = {"code": FAILED, "message": str(record.outcome.get("error", ""))}
    return span


def _facts(traced: TracedRequest) -> dict[str, Any]:
    record, trace, reply = traced.record, traced.trace, traced.reply
    provider, _, model = (record.account.model or "").partition(":")
    given, finish = record.account.parameters or {}, record.outcome.get("finish")
    usage = reply.usage if reply and reply.usage and reply.usage.reported else None
    facts: dict[str, Any] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": PROVIDERS.get(provider, provider),
        "gen_ai.request.model": model,
        "gen_ai.response.model": (reply.model or "").partition(":")[2] if reply else None,
        "gen_ai.conversation.id": record.conversation,
        "gen_ai.response.id": record.id,
        "gen_ai.response.finish_reasons": [str(finish)] if finish and not traced.error else None,
        "gen_ai.response.time_to_first_chunk": trace.first_s if trace.is_stream else None,
        "gen_ai.request.stream": True if trace.is_stream else None,
        "error.type": traced.error or None,
        "recto.mode": trace.mode,
        "recto.window.tokens": record.account.total,
        "recto.compaction": record.account.compaction,
        "recto.cost_usd": record.cost_usd,
    }
    facts |= {name: given[ours] for ours, name in PARAMETERS.items() if given.get(ours) is not None}
    if usage:
        facts |= {
            "gen_ai.usage.input_tokens": usage.input,
            "gen_ai.usage.output_tokens": usage.output,
            "gen_ai.usage.cache_read.input_tokens": usage.cache_read or None,
            "gen_ai.usage.cache_creation.input_tokens": usage.cache_write or None,
            "gen_ai.usage.reasoning.output_tokens": usage.reasoning or None,
        }
    return facts


def _content(traced: TracedRequest) -> dict[str, Any]:
    """The messages as they were sent and the reply, as JSON in texts."""
    format = CLIENT_FORMATS.get(traced.record.account.format or "")
    if not traced.body or format is None:
        return {}
    body = loads(traced.body)
    entries = [entry for group in format.read_messages(body.get("messages") or ()) for entry in group]
    said = [{"role": entry.role, "parts": _parts(entry.blocks)} for entry in entries if entry.role != "system"]
    system = [part for entry in entries if entry.role == "system" for part in _parts(entry.blocks)]
    if isinstance(body.get("system"), str):
        system.insert(0, {"type": "text", "content": body["system"]})
    found: dict[str, Any] = {"gen_ai.input.messages": dumps(said)}
    found |= {"gen_ai.system_instructions": dumps(system)} if system else {}
    if traced.reply:
        finish = str(traced.record.outcome.get("finish", ""))
        replied = [{"role": "assistant", "parts": _parts(traced.reply.blocks), "finish_reason": finish}]
        found["gen_ai.output.messages"] = dumps(replied)
    return found


def _parts(blocks: Sequence[Block]) -> list[Json]:
    parts: list[Json] = []
    for block in blocks:
        if isinstance(block, Text):
            parts.append({"type": "text", "content": block.text})
        elif isinstance(block, Thinking):
            parts.append({"type": "reasoning", "content": block.text})
        elif isinstance(block, ToolCall):
            parts.append({"type": "tool_call", "id": block.id, "name": block.name, "arguments": block.arguments})
        elif isinstance(block, ToolResult):
            parts.append({"type": "tool_call_response", "id": block.call_id, "response": block.text})
    return parts


def attributes(values: Mapping[str, Any]) -> list[Json]:
    """Without those that are None."""
    return [{"key": name, "value": _value(value)} for name, value in values.items() if value is not None]


def _value(value: Any) -> Json:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}  # 64 bits are a text in OTLP's JSON
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list | tuple):
        return {"arrayValue": {"values": [_value(each) for each in value]}}
    return {"stringValue": str(value)}


def _nanoseconds(created: str) -> int:
    return int(datetime.fromisoformat(created).timestamp() * 1e9)
