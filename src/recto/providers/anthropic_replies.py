"""Replies in Anthropic's format: reads a provider's events, and writes our own replies and errors.

The format cannot express arguments that are not a JSON object (in a whole reply), an unknown usage, or finish reasons
other than its own: a written reply loses them.
"""

from collections.abc import Sequence

from recto.base.ids import new_id
from recto.chat.blocks import Block, Text, Thinking, ToolCall
from recto.chat.message import Usage
from recto.errors import Unreachable
from recto.providers.client import ErrorReply, ReplyHead, error_headers, is_too_long, sentence_of, status_of
from recto.providers.http import ReportedError
from recto.providers.model import (
    UNREADABLE_USAGE,
    Attempt,
    CallPart,
    Done,
    ReplyPart,
    TextPart,
    ThinkingPart,
    call_text,
    reported_count,
)
from recto.providers.request_fields import json_arguments
from recto.providers.sse import ServerEvent
from recto.wire import Json, dumps, loads

FINISHES = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
}
WRITTEN_FINISHES = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "refusal": "refusal"}
ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    404: "not_found_error",
    429: "rate_limit_error",
}


class AnthropicReader:
    """Reads the events of one reply in order."""

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
        """The later number wins, because each event repeats the totals so far."""
        self._has_usage |= bool(usage) if not isinstance(usage, dict) else usage.get("input_tokens") is not None
        found = usage.items() if isinstance(usage, dict) else ()
        self._counts |= {name: count for name, value in found if (count := reported_count(value)) is not None}

    def _usage(self) -> Usage | None:
        counts = self._counts
        if "input_tokens" not in counts:
            return UNREADABLE_USAGE if self._has_usage else None
        read, write = counts.get("cache_read_input_tokens", 0), counts.get("cache_creation_input_tokens", 0)
        return Usage(counts["input_tokens"] + read + write, counts.get("output_tokens", 0), read, write)


def read_anthropic_reply(body: bytes) -> list[ReplyPart]:
    """A whole reply, as the parts that its stream would yield."""
    return AnthropicReader().whole(loads(body))


# -- writing for a client


def write_anthropic_reply(head: ReplyHead, blocks: Sequence[Block], done: Done) -> Json:
    """A whole reply."""
    content = [item for block in blocks if (item := _written_block(block)) is not None]
    return {**_written_head(head), "content": content, **_written_end(done), "usage": _written_usage(done.usage)}


def _written_block(block: Block) -> Json:
    if isinstance(block, Text):
        return {"type": "text", "text": block.text} if block.text else None
    if isinstance(block, ToolCall):
        return {"type": "tool_use", "id": block.id, "name": block.name, "input": json_arguments(block.arguments)}
    if not isinstance(block, Thinking):
        return None
    if block.redacted:
        return {"type": "redacted_thinking", "data": block.redacted}
    return {"type": "thinking", "thinking": block.text, "signature": block.signature or ""}


class AnthropicReplyWriter:
    """Writes one reply as stream events. A failed attempt yields none: for the client the reply has not begun.

    Content blocks are sequential, so all parts of a tool call must come before the next call.
    """

    def __init__(self, head: ReplyHead) -> None:
        self._head = head
        self._begun = False
        self._open = ""
        """The type of the open block."""
        self._index = -1
        self._call = -1

    def write(self, part: ReplyPart) -> list[ServerEvent]:
        if isinstance(part, Attempt):
            return []
        events = [] if self._begun else [self._start_message()]
        self._begun = True
        if isinstance(part, TextPart):
            return events + (self._added("text", {"type": "text_delta", "text": part.text}) if part.text else [])
        if isinstance(part, ThinkingPart):
            return events + self._thought(part)
        if isinstance(part, CallPart):
            return events + self._called(part)
        ended = {"type": "message_delta", "delta": _written_end(part), "usage": _written_usage(part.usage)}
        return [*events, *self._close(), _event(ended), _event({"type": "message_stop"})]

    def error(self, error: Exception) -> list[ServerEvent]:
        """The events for an error after the reply has begun; before that, the HTTP status reports it."""
        return [_event(anthropic_error(error).body)]

    def _start_message(self) -> ServerEvent:
        nothing = {"stop_reason": None, "stop_sequence": None, "usage": _written_usage(None)}
        return _event({"type": "message_start", "message": {**_written_head(self._head), "content": [], **nothing}})

    def _thought(self, part: ThinkingPart) -> list[ServerEvent]:
        if part.redacted is not None:
            block = {"type": "redacted_thinking", "data": part.redacted}
            return [*self._opened(block), *self._close()]
        events: list[ServerEvent] = []
        if part.text:
            events += self._added("thinking", {"type": "thinking_delta", "thinking": part.text})
        if part.signature:
            events += self._added("thinking", {"type": "signature_delta", "signature": part.signature})
            events += self._close()
        return events

    def _called(self, part: CallPart) -> list[ServerEvent]:
        events: list[ServerEvent] = []
        if part.index > self._call:
            events += self._opened({"type": "tool_use", "id": part.id, "name": part.name, "input": {}})
            self._call = part.index
        elif part.index != self._call or self._open != "tool_use":
            raise Unreachable("The provider mixes the parts of two tool calls; ask again.")
        if part.arguments:
            events.append(self._delta({"type": "input_json_delta", "partial_json": part.arguments}))
        return events

    def _added(self, kind: str, delta: Json) -> list[ServerEvent]:
        """The delta in a block of its kind; opens one where another kind is open."""
        empty: dict[str, Json] = {"type": kind, kind: ""} | ({"signature": ""} if kind == "thinking" else {})
        opened = [] if self._open == kind else self._opened(empty)
        return [*opened, self._delta(delta)]

    def _opened(self, block: Json) -> list[ServerEvent]:
        closed = self._close()
        self._open, self._index = block["type"], self._index + 1
        return [*closed, _event({"type": "content_block_start", "index": self._index, "content_block": block})]

    def _delta(self, delta: Json) -> ServerEvent:
        return _event({"type": "content_block_delta", "index": self._index, "delta": delta})

    def _close(self) -> list[ServerEvent]:
        if not self._open:
            return []
        self._open = ""
        return [_event({"type": "content_block_stop", "index": self._index})]


def _event(data: Json) -> ServerEvent:
    return ServerEvent(dumps(data), data["type"])


def _written_head(head: ReplyHead) -> dict[str, Json]:
    return {"id": head.id, "type": "message", "role": "assistant", "model": head.model}


def _written_end(done: Done) -> dict[str, Json]:
    return {"stop_reason": WRITTEN_FINISHES.get(done.finish, "end_turn"), "stop_sequence": None}


def _written_usage(usage: Usage | None) -> Json:
    """The format requires a usage, so an unknown one is written as 0."""
    known = usage or Usage()
    return {
        "input_tokens": max(0, known.input - known.cache_read - known.cache_write),
        "cache_creation_input_tokens": known.cache_write,
        "cache_read_input_tokens": known.cache_read,
        "output_tokens": known.output,
    }


def anthropic_error(error: Exception) -> ErrorReply:
    status, sentence = status_of(error), sentence_of(error)
    # clients recognise a prompt that is too long by these words alone
    message = f"prompt is too long: {sentence}" if is_too_long(error) else sentence
    kind = ERROR_TYPES.get(status, "api_error")
    body = {"type": "error", "error": {"type": kind, "message": message}, "request_id": None}
    return ErrorReply(status, body, error_headers(error))
