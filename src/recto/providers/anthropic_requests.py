"""Reads a client's message request in Anthropic's format into our values. Sends nothing, and knows no conversation.

A request that AnthropicFormat wrote reads back as the same values, except for what the format cannot express: the names
of text files, the name and strictness of a response schema, `json_object`, and `made` of blocks other than thinking.
System messages after the first message read back as user messages.
"""

from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from recto.base.text import clean
from recto.chat.blocks import Block, File, Image, Made, Text, Thinking, ToolCall, ToolResult
from recto.providers.anthropic import MIN_THINKING_BUDGET, TOOL_CHOICES
from recto.providers.attachments import IMAGE_TYPES, PDF
from recto.providers.client import CLIENT, ClientRequest
from recto.providers.request_fields import Fields, parsed
from recto.sources.source import Tool
from recto.window.request import Entry, NamedTool, Parameters, ResponseFormat, ThinkingMode, ToolChoice
from recto.wire import Json, dumps

ROLES = ("user", "assistant", "system")
EFFORTS = ("low", "medium", "high", "xhigh", "max")
CHOICES: dict[str, ToolChoice] = {"auto": "auto", "none": "none", "any": "required"}
THINKING = ("enabled", "adaptive", "between_tools", "disabled")
# Accepted and ignored. `top_k` is refused by current models anyway.
IGNORED = (
    "metadata",
    "service_tier",
    "inference_geo",
    "cache_control",
    "diagnostics",
    "speed",
    "top_k",
    "user_profile_id",
    "workspace_id",
)
# Fields that cannot make a request cost more than its input and its longest reply.
BOUNDED = frozenset(
    [
        "model",
        "messages",
        "system",
        "max_tokens",
        "stream",
        "temperature",
        "top_p",
        "top_k",
        "stop_sequences",
        "tools",
        "tool_choice",
        "thinking",
        "output_config",
        "metadata",
        "cache_control",
        "service_tier",
    ]
)
SHOWN = ("text", "image", "document", "search_result")
BlockReader = Callable[[Fields, str], list[Block]]
"""Reads one block of a type."""
ANSWERED = ("text", "thinking", "redacted_thinking", "tool_use")


def read_anthropic_request(body: bytes, made: Made | None = None, *, pass_on: bool = False) -> ClientRequest:
    """Raises Invalid, naming the field, for a request that Anthropic refuses or we cannot serve. `made` is set on the
    thinking that the client sends back; thinking without it is not forwarded. `pass_on`: fields that have no meaning
    here become `Parameters.extra`."""
    fields = parsed(body, item=".{}", lenient=pass_on)
    model = fields.needed_text("model")
    system = _system(fields)
    entries = _messages(fields, made)
    tools = tuple(_tool(tool) for tool in fields.objects("tools"))
    if len({tool.name for tool in tools}) < len(tools):
        fields.refuse("tools", "must have different names")
    parameters = _parameters(fields, tools)
    stream = bool(fields.flag("stream"))
    fields.only("container")
    if pass_on:
        fields.ignore("cache_control")  # we set our own marks, and a fifth is refused
        parameters = replace(parameters, extra=fields.rest())
    fields.ignore(*IGNORED)
    fields.end()
    return ClientRequest(model, entries, system, tools, parameters, stream)


def _system(fields: Fields) -> str:
    blocks = _blocks(fields, "system", ("text",), _shown)
    return "\n\n".join(block.text for block in blocks if isinstance(block, Text))


# -- parameters


def _parameters(fields: Fields, tools: Sequence[Tool]) -> Parameters:
    max_tokens = fields.whole("max_tokens") or fields.refuse("max_tokens", "is missing")
    choice, parallel = _tool_choice(fields, {tool.name for tool in tools})
    budget, thinking = _thinking(fields, max_tokens)
    output = fields.object("output_config")
    effort = output.choice("effort", EFFORTS) if output else None
    response_format = _response_format(output.object("format")) if output else None
    if output:
        output.end()
    return Parameters(
        max_tokens=max_tokens,
        temperature=fields.number("temperature", 0, 1),
        thinking_budget=budget,
        tool_choice=choice,
        top_p=fields.number("top_p", 0, 1),
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
    kind = thinking.choice("type", THINKING) or thinking.refuse("type", "is missing")
    thinking.ignore("display")
    budget = thinking.whole("budget_tokens", MIN_THINKING_BUDGET) if kind == "enabled" else None
    thinking.end()
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
    fields.end()
    return ResponseFormat("json_schema", schema if schema is not None else fields.refuse("schema", "is missing"))


def _tool_choice(fields: Fields, names: set[str]) -> tuple[ToolChoice | NamedTool | None, bool | None]:
    """The tool choice, and whether parallel calls are allowed."""
    choice = fields.object("tool_choice")
    if choice is None:
        return None, None
    if not names:
        fields.refuse("tool_choice", "is only allowed with tools")
    kind = choice.choice("type", (*TOOL_CHOICES.values(), "tool")) or choice.refuse("type", "is missing")
    no_parallel = choice.flag("disable_parallel_tool_use") if kind != "none" else None
    name = choice.needed_text("name") if kind == "tool" else ""
    choice.end()
    if kind == "tool" and name not in names:
        choice.refuse("name", f"{name!r} is not one of the tools")
    return NamedTool(name) if kind == "tool" else CHOICES[kind], None if no_parallel is None else not no_parallel


def _tool(fields: Fields) -> Tool:
    if fields.text("type") not in (None, "custom"):
        fields.refuse("type", "must be custom: tools that run at Anthropic are not supported here")
    name, description = fields.needed_text("name"), fields.text("description") or ""
    schema = fields.mapping("input_schema")
    fields.ignore(
        "cache_control", "strict", "allowed_callers", "defer_loading", "eager_input_streaming", "input_examples"
    )
    fields.end()
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
    """Each message as the entries that it stands for. Unknown fields are accepted."""
    calls: dict[str, str] = {}
    fields = Fields({"messages": list(messages)}, item=".{}", lenient=True).objects("messages")
    return [_message(message, calls, made) for message in fields]


def _message(message: Fields, calls: dict[str, str], made: Made | None) -> list[Entry]:
    """One entry, or two where a user message has tool results and other blocks."""
    role = message.choice("role", ROLES) or message.refuse("role", "is missing")
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
        message.end()
        both = (Entry("tool", results), Entry("user", blocks))
        return [entry for entry in both if entry.blocks]
    message.end()
    return [Entry(role, blocks)] if blocks else []


def _blocks(fields: Fields, name: str, kinds: Sequence[str], read: BlockReader) -> tuple[Block, ...]:
    """A text, or a list of blocks of these types."""
    content = fields.raw(name)
    if content is None or isinstance(content, str):
        return (Text(clean(content)[0]),) if content else ()
    if not isinstance(content, list):
        fields.refuse(name, "must be a text or a list of blocks")
    found: list[Block] = []
    for part in fields.objects(name):
        kind = part.choice("type", kinds) or part.refuse("type", "is missing")
        part.ignore("cache_control", "citations")
        found += read(part, kind)
        part.end()
    return tuple(found)


def _user_blocks(part: Fields, kind: str, calls: Mapping[str, str]) -> list[Block]:
    if kind != "tool_result":
        return _shown(part, kind)
    id = part.needed_text("tool_use_id")
    if id not in calls:
        part.refuse("tool_use_id", f"{id!r} is not the id of an earlier tool call")
    blocks, is_error = _blocks(part, "content", SHOWN, _shown), bool(part.flag("is_error"))
    part.ignore("toolset_name")
    text = "\n".join(block.text for block in blocks if isinstance(block, Text))
    attached = tuple(block for block in blocks if isinstance(block, Image | File))
    return [ToolResult(id, calls[id], text, is_error, attachments=attached)]


def _assistant_blocks(part: Fields, kind: str, made: Made | None) -> list[Block]:
    if kind == "thinking":
        return [Thinking(part.text("thinking") or "", part.text("signature") or None, made=made)]
    if kind == "redacted_thinking":
        return [Thinking("", redacted=part.needed_text("data"), made=made)]
    if kind == "text":
        return _shown(part, kind)
    part.ignore("caller", "toolset_name")
    id, name, arguments = part.needed_text("id"), part.needed_text("name"), part.mapping("input")
    return [ToolCall(id, name, clean(dumps(arguments or {}))[0])]


def _shown(part: Fields, kind: str) -> list[Block]:
    """Text, images and documents, from a user or a tool."""
    if kind == "text":
        text = clean(part.text("text") or "")[0]
        return [Text(text)] if text else part.refuse("text", "must not be empty")
    if kind == "image":
        part.ignore("transformations")
        return [_image(part.needed_object("source"))]
    if kind == "document":
        name, context = part.text("title") or "document", part.text("context")
        document = _document(part.needed_object("source"), name)
        return [*([Text(context)] if context else []), *document]
    title, source = part.needed_text("title"), part.needed_text("source")
    return [File(f"{title} ({source})", _texts(_blocks(part, "content", ("text",), _shown)))]


def _image(source: Fields) -> Image:
    kind = source.choice("type", ("base64", "url")) or source.refuse("type", "is missing")
    if kind == "url":
        image = Image("", "", url=source.needed_text("url"))
    else:
        media_type = source.choice("media_type", IMAGE_TYPES) or source.refuse("media_type", "is missing")
        image = Image(media_type, source.base64("data", source.needed_text("data")))
    source.end()
    return image


def _document(source: Fields, name: str) -> list[Block]:
    kind = source.choice("type", ("base64", "url", "text", "content")) or source.refuse("type", "is missing")
    documents: list[Block]
    if kind == "url":
        documents = [File(name, "", PDF, url=source.needed_text("url"))]
    elif kind == "base64":
        media_type = source.choice("media_type", (PDF,)) or source.refuse("media_type", "is missing")
        data = source.base64("data", source.needed_text("data"))
        documents = [File(name, "", media_type, base64=data)]
    elif kind == "text":
        source.ignore("media_type")
        documents = [File(name, clean(source.needed_text("data"))[0])]
    else:
        blocks = _blocks(source, "content", ("text", "image"), _shown)
        documents = [File(name, _texts(blocks)), *(block for block in blocks if isinstance(block, Image))]
    source.end()
    return documents


def _texts(blocks: Sequence[Block]) -> str:
    return "\n".join(block.text for block in blocks if isinstance(block, Text))
