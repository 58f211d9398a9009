"""A client that speaks OpenAI's chat completions: reads its requests and messages, and writes our replies and errors.

A request that OpenAIFormat wrote reads back with the same values, except for what the format cannot express: whether a
result is an error, thinking and its budget, names of text files, `made` of blocks. Attachments of tool results read
back as a user message. A written reply loses signatures, redacted thinking, the order of text and thinking, and finish
reasons that the format lacks.
"""

import base64
from collections.abc import Mapping, Sequence
from typing import get_args

from msgspec.structs import replace

from recto.base.text import clean
from recto.chat.blocks import Block, File, Image, Made, Text, Thinking, ToolCall, ToolResult
from recto.chat.message import Usage
from recto.errors import NoKey, NotFound, RateLimited, SpendLimit
from recto.providers.attachments import IMAGE_TYPES, PDF, split_data_url
from recto.providers.client import (
    CLIENT,
    ClientRequest,
    ErrorReply,
    Fields,
    ReplyHead,
    error_headers,
    is_too_long,
    joined,
    parsed,
    sentence_of,
    status_of,
    unique,
)
from recto.providers.http import ServerEvent
from recto.providers.model import Attempt, CallPart, Done, ReplyPart, TextPart, ThinkingPart
from recto.providers.openai import DONE, INSTRUCTION_ROLES
from recto.sources.source import Tool
from recto.window.request import Effort, Entry, NamedTool, Parameters, ResponseFormat, ResponseType, ToolChoice
from recto.wire import Json, dumps

ROLES = (*INSTRUCTION_ROLES, "user", "assistant", "tool")
TOOL_CHOICES: tuple[ToolChoice, ...] = get_args(ToolChoice)
EFFORTS: tuple[Effort, ...] = get_args(Effort)
RESPONSE_TYPES: tuple[ResponseType, ...] = get_args(ResponseType)
UNSERVED: Mapping[str, tuple[object, ...]] = {
    "n": (1,),
    "logprobs": (False,),
    "top_logprobs": (0,),
    "modalities": (["text"],),
    "functions": ([],),
    "audio": (),
    "function_call": (),
}
# Fields that cannot raise a request's cost above its input and longest reply.
BOUNDED = frozenset({"model", "messages", "stream", "stream_options", "max_tokens", "max_completion_tokens", "n"})
BOUNDED |= {"temperature", "top_p", "top_k", "min_p", "stop", "seed", "frequency_penalty", "presence_penalty"}
BOUNDED |= {"logit_bias", "logprobs", "top_logprobs", "tools", "tool_choice", "parallel_tool_calls", "functions"}
BOUNDED |= {"function_call", "response_format", "reasoning_effort", "verbosity", "user", "metadata", "store"}
BOUNDED |= {"safety_identifier", "service_tier", "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention"}
EMPTY_SCHEMA: Mapping[str, Json] = {"type": "object", "properties": {}}


def read_openai_request(body: bytes, made: Made | None = None) -> ClientRequest:
    """Raises Invalid, naming the field, for a request that we cannot serve. `made` is set on the thinking that the
    client sends back. Unknown fields become `Parameters.extra`."""
    fields = parsed(body)
    model = fields.needed_text("model")
    system, entries = _messages(fields, made)
    tools, choice = _tools(fields)
    stream, options = bool(fields.flag("stream")), fields.object("stream_options")
    parameters = _parameters(fields, choice)
    for name in ("tool_choice", "parallel_tool_calls"):
        if not tools and name in parameters.given():
            fields.refuse(name, "is only allowed with tools")
    fields.only(UNSERVED)
    parameters = replace(parameters, extra=fields.rest())
    include_usage = bool(options and options.flag("include_usage"))
    return ClientRequest(model, entries, system, tools, parameters, stream, include_usage)


def _parameters(fields: Fields, choice: ToolChoice | NamedTool | None) -> Parameters:
    new, old = fields.whole("max_completion_tokens"), fields.whole("max_tokens")
    return Parameters(
        max_tokens=old if new is None else new,
        temperature=fields.number("temperature", 2),
        tool_choice=choice,
        top_p=fields.number("top_p", 1),
        stop=fields.texts("stop"),
        response_format=_response_format(fields.object("response_format")),
        reasoning_effort=fields.choice("reasoning_effort", EFFORTS),
        parallel_tool_calls=fields.flag("parallel_tool_calls"),
    )


def _response_format(format: Fields | None) -> ResponseFormat | None:
    if format is None:
        return None
    kind: ResponseType = format.needed_choice("type", RESPONSE_TYPES)
    if kind != "json_schema":
        return ResponseFormat(kind)
    shape = format.needed_object("json_schema")
    name, description = shape.needed_text("name"), shape.text("description") or ""
    return ResponseFormat(kind, shape.mapping("schema"), name, description, shape.flag("strict"))


# -- tools


def _tools(fields: Fields) -> tuple[tuple[Tool, ...], ToolChoice | NamedTool | None]:
    tools = unique(fields, [_tool(tool) for tool in fields.objects("tools")])
    names = {tool.name for tool in tools}
    raw = fields.raw("tool_choice")
    if raw is None or raw in TOOL_CHOICES:
        return tools, raw
    choice = Fields(raw, "tool_choice")
    choice.choice("type", ("function",))
    return tools, NamedTool(_tool_name(choice, names))


def _tool_name(fields: Fields, names: set[str]) -> str:
    function = fields.needed_object("function")
    name = function.needed_text("name")
    return name if name in names else function.refuse("name", f"{name!r} is not one of the tools")


def _tool(fields: Fields) -> Tool:
    if fields.text("type") != "function":
        fields.refuse("type", "must be function")
    function = fields.needed_object("function")
    name, description = function.needed_text("name"), function.text("description") or ""
    return Tool(name, description, function.mapping("parameters") or EMPTY_SCHEMA, server=CLIENT)


# -- messages


def _messages(fields: Fields, made: Made | None) -> tuple[str, tuple[Entry, ...]]:
    """The leading instructions as one text, and the other messages. Consecutive tool results become one entry."""
    messages = fields.items("messages")
    if not messages:
        fields.refuse("messages", "must have at least one message")
    system: list[str] = []
    entries: list[Entry] = []
    for entry in _entries(fields, messages, made):
        if entry.role == "system" and not entries:
            system.append(joined(entry.blocks))
        elif entry.role == "tool" and entries and entries[-1].role == "tool":
            entries[-1] = Entry("tool", entries[-1].blocks + entry.blocks)
        elif entry.blocks:
            entries.append(entry)
    if not entries:
        fields.refuse("messages", "must have at least one user or assistant message with content")
    return "\n\n".join(text for text in system if text), tuple(entries)


def read_openai_messages(messages: Sequence[Json], made: Made | None = None) -> list[list[Entry]]:
    """The entries for each message. Unknown fields are accepted."""
    return [[entry] for entry in _entries(Fields({}), messages, made)]


def _entries(fields: Fields, messages: Sequence[Json], made: Made | None) -> list[Entry]:
    calls: dict[str, str] = {}
    return [
        _plain(message) or _message(fields.item("messages", number, message), calls, made)
        for number, message in enumerate(messages)
    ]


def _plain(message: Json) -> Entry | None:
    """A role and a text, as in most messages: a fast path, because clients resend all of them each time."""
    if not isinstance(message, dict) or len(message) != 2:
        return None
    role, content = message.get("role"), message.get("content")
    if role not in ("user", "assistant") or not isinstance(content, str) or not content:
        return None
    return Entry(role, (Text(clean(content)[0]),))


def _message(message: Fields, calls: dict[str, str], made: Made | None) -> Entry:
    role = message.needed_choice("role", ROLES)
    if role == "tool":
        return Entry("tool", (_result(message, calls),))
    if role == "assistant":
        return Entry("assistant", _assistant_blocks(message, calls, made))
    return Entry("user", _content(message)) if role == "user" else Entry("system", _content(message, only_text=True))


def _assistant_blocks(message: Fields, calls: dict[str, str], made: Made | None) -> tuple[Block, ...]:
    """OpenAI has no field for thinking; clients of DeepSeek and others send it back as `reasoning_content`."""
    thought = message.text("reasoning_content") or message.text("reasoning")
    message.only({"audio": (), "function_call": ()})
    blocks: list[Block] = [Thinking(thought, made=made)] if thought else []
    blocks += _content(message, only_text=True, may_lack=True)
    if refusal := message.text("refusal"):
        blocks.append(Text(refusal))
    found = [_call(call) for call in message.objects("tool_calls")]
    calls |= {call.id: call.name for call in found}
    return (*blocks, *found)


def _call(call: Fields) -> ToolCall:
    if call.text("type") not in ("function", None):
        call.refuse("type", "must be function")
    id, function = call.needed_text("id"), call.needed_object("function")
    return ToolCall(id, function.needed_text("name"), clean(function.text("arguments") or "")[0])


def _result(message: Fields, calls: Mapping[str, str]) -> ToolResult:
    id = message.needed_text("tool_call_id")
    if id not in calls:
        message.refuse("tool_call_id", f"{id!r} is not the id of an earlier tool call")
    blocks = _content(message)
    attached = tuple(block for block in blocks if isinstance(block, Image | File))
    return ToolResult(id, calls[id], joined(blocks), attachments=attached)


def _content(message: Fields, *, only_text: bool = False, may_lack: bool = False) -> tuple[Block, ...]:
    if message.raw("content") is None and not may_lack:
        message.refuse("content", "is missing")
    content = message.content("content")
    if isinstance(content, str):
        return (Text(content),) if content else ()
    return tuple(_part(part, only_text) for part in content)


def _part(part: Fields, only_text: bool) -> Block:
    kind = part.needed_choice("type", ("text", "refusal") if only_text else ("text", "image_url", "file"))
    if kind == "image_url":
        return _image(part.needed_object("image_url"))
    if kind == "file":
        return _file(part.needed_object("file"))
    return Text(clean(part.text(kind) or "")[0])


def _image(fields: Fields) -> Image:
    url = fields.needed_text("url")
    if data := split_data_url(url):
        if data[0] not in IMAGE_TYPES:
            fields.refuse("url", f"must be one of {', '.join(IMAGE_TYPES)}, not {data[0]}")
        return Image(data[0], fields.base64("url", data[1]))
    if not url.startswith(("http://", "https://")):
        fields.refuse("url", "must be an http address or a data URL with base64")
    return Image("", "", url=url)


def _file(fields: Fields) -> File:
    if fields.text("file_id"):
        fields.refuse("file_id", "is not supported here; send the file as file_data")
    name, data = fields.text("filename") or "file", fields.needed_text("file_data")
    media_type, content = split_data_url(data) or (PDF, data)
    content = fields.base64("file_data", content)
    if media_type == PDF:
        return File(name, "", media_type, base64=content)
    if not media_type.startswith("text/"):
        fields.refuse("file_data", f"must be a PDF or a text, not {media_type}")
    return File(name, clean(base64.b64decode(content))[0], media_type)


# -- writing

WRITTEN_FINISHES = {"stop": "stop", "length": "length", "tool_calls": "tool_calls", "refusal": "content_filter"}


def write_openai_reply(head: ReplyHead, blocks: Sequence[Block], done: Done) -> Json:
    """A whole reply. Thinking is written as `reasoning_content`, which most servers of this format use."""
    text = joined(blocks, "")
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
        # if usage is requested, every chunk has the field
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
