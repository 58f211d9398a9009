"""Replies in the format of OpenAI's chat completions: reads a provider's events, and writes our replies and errors.

The format cannot express signatures, redacted thinking, the order of text and thinking in a whole reply, or finish
reasons other than its own: a written reply loses them.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from recto.base.ids import new_id
from recto.chat.blocks import Block, Text, Thinking, ToolCall
from recto.chat.message import Usage
from recto.errors import NoKey, NotFound, RateLimited, SpendLimit
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
from recto.providers.sse import ServerEvent
from recto.wire import Json, dumps, loads

FINISHES = {"function_call": "tool_calls", "content_filter": "refusal", "max_tokens": "length", "end_turn": "stop"}
WRITTEN_FINISHES = {"stop": "stop", "length": "length", "tool_calls": "tool_calls", "refusal": "content_filter"}
DONE = "[DONE]"


class OpenAIReader:
    """Reads the events of one reply in order."""

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
        so_far = _read_timings(chunk.get("timings"))
        return (
            [replace(part, usage=so_far) if isinstance(part, TextPart) else part for part in parts] if so_far else parts
        )

    def whole(self, reply: Json) -> list[ReplyPart]:
        choices = [
            {**choice, "delta": choice["message"]} for choice in reply.get("choices") or () if choice.get("message")
        ]
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
        if old := delta.get("function_call"):  # the form of calls before there were several
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


def read_openai_reply(body: bytes) -> list[ReplyPart]:
    """A whole reply, as the parts that its stream would yield."""
    return OpenAIReader().whole(loads(body))


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
    details, replied = (
        found if isinstance(found := raw.get(name), dict) else {}
        for name in ("prompt_tokens_details", "completion_tokens_details")
    )
    output, reasoning = (
        reported_count(found) or 0 for found in (raw.get("completion_tokens"), replied.get("reasoning_tokens"))
    )
    # some providers count reasoning beside the completion, and only their total tells
    beside = (reported_count(raw.get("total_tokens")) or 0) - used - output
    return Usage(
        input=used,
        output=output + max(0, beside),
        cache_read=reported_count(details.get("cached_tokens")) or 0,
        reasoning=max(reasoning, beside),
        cache_write=reported_count(details.get("cache_write_tokens")) or 0,
    )


def _read_timings(raw: Json) -> Usage | None:
    """What a llama.cpp server tells with every token, if it is asked to."""
    if not isinstance(raw, dict) or (read := reported_count(raw.get("prompt_n"))) is None:
        return None
    cached = reported_count(raw.get("cache_n")) or 0
    return Usage(input=read + cached, output=reported_count(raw.get("predicted_n")) or 0, cache_read=cached)


# -- writing for a client


def write_openai_reply(head: ReplyHead, blocks: Sequence[Block], done: Done) -> Json:
    """A whole reply. Thinking is written as `reasoning_content`, which most servers of this format use."""
    text = "".join(block.text for block in blocks if isinstance(block, Text))
    message: dict[str, Json] = {"role": "assistant", "content": text or None, "refusal": None}
    if thought := "".join(block.text for block in blocks if isinstance(block, Thinking)):
        message["reasoning_content"] = thought
    if calls := [_written_call(block) for block in blocks if isinstance(block, ToolCall)]:
        message["tool_calls"] = calls
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _written_finish(done)}
    return {**_written_head(head, "chat.completion"), "choices": [choice], "usage": _written_usage(done.usage)}


class OpenAIReplyWriter:
    """Writes one reply as stream events. A failed attempt yields none: for the client the reply has not begun."""

    def __init__(self, head: ReplyHead, *, include_usage: bool = False) -> None:
        self._head, self._include_usage = _written_head(head, "chat.completion.chunk"), include_usage
        self._begun = False

    def write(self, part: ReplyPart) -> list[ServerEvent]:
        if isinstance(part, Attempt):
            return []
        events = [] if self._begun else [self._delta({"role": "assistant", "content": ""})]
        self._begun = True
        if isinstance(part, Done):
            return [*events, *self._end(part)]
        delta = _delta_of(part)
        return [*events, self._delta(delta)] if delta else events

    def error(self, error: Exception) -> list[ServerEvent]:
        """The events for an error after the reply has begun; before that, the HTTP status reports it."""
        return [ServerEvent(dumps(openai_error(error).body))]

    def _end(self, done: Done) -> list[ServerEvent]:
        events = [self._delta({}, _written_finish(done))]
        if self._include_usage:
            events.append(self._event([], _written_usage(done.usage)))
        return [*events, ServerEvent(DONE)]

    def _delta(self, delta: Json, finish: str | None = None) -> ServerEvent:
        return self._event([{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}])

    def _event(self, choices: list[Json], usage: Json = None) -> ServerEvent:
        # where usage is requested, every chunk has the field
        more = {"usage": usage} if self._include_usage else {}
        return ServerEvent(dumps({**self._head, "choices": choices, **more}))


def _delta_of(part: TextPart | ThinkingPart | CallPart) -> Json:
    if isinstance(part, TextPart):
        return {"content": part.text} if part.text else {}
    if isinstance(part, ThinkingPart):
        return {"reasoning_content": part.text} if part.text else {}
    call: dict[str, Json] = {"index": part.index}
    if part.id or part.name:
        call |= {"id": part.id, "type": "function"}
    named = {"name": part.name} if part.name else {}
    return {"tool_calls": [{**call, "function": {**named, "arguments": part.arguments}}]}


def _written_head(head: ReplyHead, kind: str) -> dict[str, Json]:
    return {"id": head.id, "object": kind, "created": head.created, "model": head.model}


def _written_call(call: ToolCall) -> Json:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _written_finish(done: Done) -> str:
    return WRITTEN_FINISHES.get(done.finish, "stop")


def _written_usage(usage: Usage | None) -> Json:
    if usage is None:
        return None
    details = {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write}
    reasoning = {"completion_tokens_details": {"reasoning_tokens": usage.reasoning}} if usage.reasoning else {}
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": details,
        **reasoning,
    }


def openai_error(error: Exception) -> ErrorReply:
    status = status_of(error)
    kind = "invalid_request_error" if status < 429 else "rate_limit_error" if status == 429 else "server_error"
    data = getattr(error, "data", {})
    body = {"message": sentence_of(error), "type": kind, "param": data.get("field") or None, "code": _code(error)}
    return ErrorReply(status, {"error": body}, error_headers(error))


def _code(error: Exception) -> str | None:
    if is_too_long(error):
        return "context_length_exceeded"
    if isinstance(error, NotFound):
        return "model_not_found" if "model" in error.data else "not_found"
    if isinstance(error, RateLimited):
        return "rate_limit_exceeded"
    if isinstance(error, SpendLimit):
        return "insufficient_quota"
    return "invalid_api_key" if isinstance(error, NoKey) else None
