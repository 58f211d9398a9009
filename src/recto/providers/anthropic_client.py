"""A client that speaks Anthropic's messages API: reads its requests and messages, and writes our replies and errors.

A request that AnthropicFormat wrote reads back with the same values, except for what the format cannot express: names
of text files, name and strictness of a response schema, `json_object`, and `made` of blocks other than thinking. System
messages after the first message read back as user messages. A written reply loses arguments that are not a JSON object
(in a whole reply), an unknown usage, and finish reasons that the format lacks.
"""

from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from recto.base.text import clean
from recto.chat.blocks import Block, File, Image, Made, Text, Thinking, ToolCall, ToolResult
from recto.chat.message import Usage
from recto.errors import Unreachable
from recto.providers.anthropic import MIN_THINKING_BUDGET, TOOL_CHOICES
from recto.providers.attachments import IMAGE_TYPES, PDF
from recto.providers.client import (
    CLIENT,
    ClientRequest,
    ErrorReply,
    Fields,
    ReplyHead,
    error_headers,
    is_too_long,
    joined,
    json_arguments,
    parsed,
    sentence_of,
    status_of,
    unique,
)
from recto.providers.http import ServerEvent
from recto.providers.model import Attempt, CallPart, Done, ReplyPart, TextPart, ThinkingPart
from recto.sources.source import Tool
from recto.window.request import Entry, NamedTool, Parameters, ResponseFormat, ThinkingMode, ToolChoice
from recto.wire import Json, dumps

ROLES = ("user", "assistant", "system")
EFFORTS = ("low", "medium", "high", "xhigh", "max")
CHOICES: dict[str, ToolChoice] = {"auto": "auto", "none": "none", "any": "required"}
THINKING = ("enabled", "adaptive", "between_tools", "disabled")
# Fields that cannot raise a request's cost above its input and longest reply.
BOUNDED = frozenset({"model", "messages", "system", "max_tokens", "stream", "temperature", "top_p", "top_k", "tools"})
BOUNDED |= {"stop_sequences", "tool_choice", "thinking", "output_config", "metadata", "cache_control", "service_tier"}
SHOWN = ("text", "image", "document", "search_result")
ANSWERED = ("text", "thinking", "redacted_thinking", "tool_use")
BlockReader = Callable[[Fields, str], list[Block]]


def read_anthropic_request(body: bytes, made: Made | None = None) -> ClientRequest:
    """Raises Invalid, naming the field, for a request that we cannot serve. `made` is set on the thinking that the
    client sends back; thinking without it is not forwarded. Unknown fields become `Parameters.extra`."""
    fields = parsed(body, item=".{}")
    model = fields.needed_text("model")
    system = joined(_blocks(fields, "system", ("text",), _shown), "\n\n")
    entries = _messages(fields, made)
    tools = unique(fields, [_tool(tool) for tool in fields.objects("tools")])
    parameters = _parameters(fields, tools)
    stream = bool(fields.flag("stream"))
    fields.only({"container": ()})
    fields.raw("cache_control")  # we set our own marks, and a fifth is rejected
    return ClientRequest(model, entries, system, tools, replace(parameters, extra=fields.rest()), stream)


# -- parameters


def _parameters(fields: Fields, tools: Sequence[Tool]) -> Parameters:
    max_tokens = fields.whole("max_tokens") or fields.refuse("max_tokens", "is missing")
    choice, parallel = _tool_choice(fields, {tool.name for tool in tools})
    budget, thinking = _thinking(fields, max_tokens)
    output = fields.object("output_config")
    effort = output.choice("effort", EFFORTS) if output else None
    response_format = _response_format(output.object("format")) if output else None
    return Parameters(
        max_tokens=max_tokens,
        temperature=fields.number("temperature", 1),
        thinking_budget=budget,
        tool_choice=choice,
        top_p=fields.number("top_p", 1),
        stop=fields.texts("stop_sequences"),
        response_format=response_format,
        reasoning_effort=effort,
        thinking=thinking,
        parallel_tool_calls=parallel,
    )


def _thinking(fields: Fields, max_tokens: int) -> tuple[int | None, ThinkingMode | None]:
    thinking = fields.object("thinking")
    if thinking is None:
        return None, None
    kind = thinking.needed_choice("type", THINKING)
    budget = thinking.whole("budget_tokens", MIN_THINKING_BUDGET) if kind == "enabled" else None
    if kind != "enabled":
        return None, kind
    if budget is None or budget >= max_tokens:
        thinking.refuse("budget_tokens", f"must be a whole number from {MIN_THINKING_BUDGET} on and below max_tokens")
    return budget, None


def _response_format(fields: Fields | None) -> ResponseFormat | None:
    if fields is None:
        return None
    if fields.text("type") != "json_schema":
        fields.refuse("type", "must be json_schema")
    schema = fields.mapping("schema")
    return ResponseFormat("json_schema", schema if schema is not None else fields.refuse("schema", "is missing"))


def _tool_choice(fields: Fields, names: set[str]) -> tuple[ToolChoice | NamedTool | None, bool | None]:
    """The tool choice, and whether parallel calls are allowed."""
    choice = fields.object("tool_choice")
    if choice is None:
        return None, None
    if not names:
        fields.refuse("tool_choice", "is only allowed with tools")
    kind = choice.needed_choice("type", (*TOOL_CHOICES.values(), "tool"))
    no_parallel = choice.flag("disable_parallel_tool_use") if kind != "none" else None
    name = choice.needed_text("name") if kind == "tool" else ""
    if kind == "tool" and name not in names:
        choice.refuse("name", f"{name!r} is not one of the tools")
    return NamedTool(name) if kind == "tool" else CHOICES[kind], None if no_parallel is None else not no_parallel


def _tool(fields: Fields) -> Tool:
    if fields.text("type") not in (None, "custom"):
        fields.refuse("type", "must be custom: tools that run at Anthropic are not supported here")
    name, description = fields.needed_text("name"), fields.text("description") or ""
    schema = fields.mapping("input_schema")
    if schema is None or schema.get("type") != "object":
        fields.refuse("input_schema", "must be a schema of type object")
    return Tool(name, description, schema, server=CLIENT)


# -- messages


def _messages(fields: Fields, made: Made | None) -> tuple[Entry, ...]:
    messages = fields.objects("messages")
    if not messages:
        fields.refuse("messages", "must have at least one message")
    entries: list[Entry] = []
    calls: dict[str, str] = {}
    for message in messages:
        entries += _message(message, calls, made)
    if not entries:
        fields.refuse("messages", "must have at least one message with content")
    return tuple(entries)


def read_anthropic_messages(messages: Sequence[Json], made: Made | None = None) -> list[list[Entry]]:
    """The entries for each message. Unknown fields are accepted."""
    calls: dict[str, str] = {}
    fields = Fields({"messages": list(messages)}, item=".{}").objects("messages")
    return [_message(message, calls, made) for message in fields]


def _message(message: Fields, calls: dict[str, str], made: Made | None) -> list[Entry]:
    """One entry, or two if a user message has tool results and other blocks."""
    role = message.needed_choice("role", ROLES)
    if message.raw("content") is None:
        message.refuse("content", "is missing")
    blocks: tuple[Block, ...]
    if role == "assistant":
        blocks = _blocks(message, "content", ANSWERED, lambda part, kind: _assistant_blocks(part, kind, made))
        calls |= {block.id: block.name for block in blocks if isinstance(block, ToolCall)}
    elif role == "system":
        blocks = _blocks(message, "content", ("text",), _shown)
    else:
        read = _blocks(message, "content", (*SHOWN, "tool_result"), lambda part, kind: _user_blocks(part, kind, calls))
        blocks = tuple(block for block in read if not isinstance(block, ToolResult))
        results = tuple(block for block in read if isinstance(block, ToolResult))
        both = (Entry("tool", results), Entry("user", blocks))
        return [entry for entry in both if entry.blocks]
    return [Entry(role, blocks)] if blocks else []


def _blocks(fields: Fields, name: str, kinds: Sequence[str], read: BlockReader) -> tuple[Block, ...]:
    content = fields.content(name)
    if isinstance(content, str):
        return (Text(content),) if content else ()
    return tuple(block for part in content for block in read(part, part.needed_choice("type", kinds)))


def _user_blocks(part: Fields, kind: str, calls: Mapping[str, str]) -> list[Block]:
    if kind != "tool_result":
        return _shown(part, kind)
    id = part.needed_text("tool_use_id")
    if id not in calls:
        part.refuse("tool_use_id", f"{id!r} is not the id of an earlier tool call")
    blocks, is_error = _blocks(part, "content", SHOWN, _shown), bool(part.flag("is_error"))
    attached = tuple(block for block in blocks if isinstance(block, Image | File))
    return [ToolResult(id, calls[id], joined(blocks), is_error, attachments=attached)]


def _assistant_blocks(part: Fields, kind: str, made: Made | None) -> list[Block]:
    if kind == "thinking":
        return [Thinking(part.text("thinking") or "", part.text("signature") or None, made=made)]
    if kind == "redacted_thinking":
        return [Thinking("", redacted=part.needed_text("data"), made=made)]
    if kind == "text":
        return _shown(part, kind)
    id, name, arguments = part.needed_text("id"), part.needed_text("name"), part.mapping("input")
    return [ToolCall(id, name, clean(dumps(arguments or {}))[0])]


def _shown(part: Fields, kind: str) -> list[Block]:
    """Text, images and documents, from a user or a tool."""
    if kind == "text":
        text = clean(part.text("text") or "")[0]
        return [Text(text)] if text else part.refuse("text", "must not be empty")
    if kind == "image":
        return [_image(part.needed_object("source"))]
    if kind == "document":
        name, context = part.text("title") or "document", part.text("context")
        document = _document(part.needed_object("source"), name)
        return [*([Text(context)] if context else []), *document]
    title, source = part.needed_text("title"), part.needed_text("source")
    return [File(f"{title} ({source})", joined(_blocks(part, "content", ("text",), _shown)))]


def _image(source: Fields) -> Image:
    if source.needed_choice("type", ("base64", "url")) == "url":
        return Image("", "", url=source.needed_text("url"))
    media_type = source.needed_choice("media_type", IMAGE_TYPES)
    return Image(media_type, source.base64("data", source.needed_text("data")))


def _document(source: Fields, name: str) -> list[Block]:
    kind = source.needed_choice("type", ("base64", "url", "text"))
    if kind == "url":
        return [File(name, "", PDF, url=source.needed_text("url"))]
    if kind == "base64":
        media_type = source.needed_choice("media_type", (PDF,))
        return [File(name, "", media_type, base64=source.base64("data", source.needed_text("data")))]
    return [File(name, clean(source.needed_text("data"))[0])]


# -- writing

WRITTEN_FINISHES = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "refusal": "refusal"}
ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    404: "not_found_error",
    429: "rate_limit_error",
}


def write_anthropic_reply(head: ReplyHead, blocks: Sequence[Block], done: Done) -> Json:
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
        self._index = -1
        self._call = -1

    def write(self, part: ReplyPart) -> list[ServerEvent]:
        if isinstance(part, Attempt):
            return []
        events = [] if self._begun else [self._begin()]
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

    def _begin(self) -> ServerEvent:
        self._begun = True
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
        """The delta in a block of its kind; opens one if necessary."""
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
    # clients recognise the error only by these words
    message = f"prompt is too long: {sentence}" if is_too_long(error) else sentence
    kind = ERROR_TYPES.get(status, "api_error")
    body = {"type": "error", "error": {"type": kind, "message": message}, "request_id": None}
    return ErrorReply(status, body, error_headers(error))
