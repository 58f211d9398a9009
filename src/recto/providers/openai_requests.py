"""Reads a client's chat completion request into our values. Sends nothing, and knows no conversation.

A request that OpenAIFormat wrote reads back as the same values, except for what the format cannot express: whether a
result is an error, thinking and its budget, the names of text files, `made` of blocks. Attachments of tool results read
back as a user message.
"""

import base64
from collections.abc import Mapping, Sequence
from typing import get_args

from msgspec.structs import replace

from recto.base.text import clean
from recto.chat.blocks import Block, File, Image, Made, Text, Thinking, ToolCall, ToolResult
from recto.providers.attachments import IMAGE_TYPES, PDF, split_data_url
from recto.providers.client import CLIENT, ClientRequest
from recto.providers.openai import INSTRUCTION_ROLES
from recto.providers.request_fields import Fields, parsed
from recto.sources.source import Tool
from recto.window.request import Effort, Entry, NamedTool, Parameters, ResponseFormat, ResponseType, ToolChoice
from recto.wire import Json

ROLES = (*INSTRUCTION_ROLES, "user", "assistant", "tool")
MAX_STOPS = 4
MAX_TOOLS = 128
TOOL_CHOICES: tuple[ToolChoice, ...] = get_args(ToolChoice)
EFFORTS: tuple[Effort, ...] = get_args(Effort)
RESPONSE_TYPES: tuple[ResponseType, ...] = get_args(ResponseType)
# Accepted and ignored: they do not change the reply.
IGNORED = (
    "user",
    "metadata",
    "store",
    "seed",
    "service_tier",
    "safety_identifier",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "prediction",
    "verbosity",
)
# Accepted only with values that have no effect: our replies have no place for what they ask for.
UNSERVED: Mapping[str, tuple[object, ...]] = {
    "n": (1,),
    "logprobs": (False,),
    "top_logprobs": (0,),
    "modalities": (["text"],),
    "functions": ([],),
    "audio": (),
    "function_call": (),
}
# The same, unless they are passed on: they change the reply and not its form.
NEUTRAL: Mapping[str, tuple[object, ...]] = {
    "frequency_penalty": (0,),
    "presence_penalty": (0,),
    "logit_bias": ({},),
    "moderation": (),
    "web_search_options": (),
}
# Fields that cannot make a request cost more than its input and its longest reply.
BOUNDED = frozenset(
    [
        "model",
        "messages",
        "stream",
        "stream_options",
        "max_tokens",
        "max_completion_tokens",
        "n",
        "temperature",
        "top_p",
        "top_k",
        "min_p",
        "stop",
        "seed",
        "frequency_penalty",
        "presence_penalty",
        "logit_bias",
        "logprobs",
        "top_logprobs",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "functions",
        "function_call",
        "response_format",
        "reasoning_effort",
        "verbosity",
        "user",
        "metadata",
        "store",
        "safety_identifier",
        "service_tier",
        "prompt_cache_key",
        "prompt_cache_options",
        "prompt_cache_retention",
    ]
)


def read_openai_request(body: bytes, made: Made | None = None, *, pass_on: bool = False) -> ClientRequest:
    """Raises Invalid, naming the field, for a request that OpenAI refuses or we cannot serve. `made` is set on the
    thinking that the client sends back. `pass_on`: fields that have no meaning here become `Parameters.extra`."""
    fields = parsed(body, item="[{}]", lenient=pass_on)
    model = fields.needed_text("model")
    system, entries = _messages(fields, made)
    tools, choice = _tools(fields)
    stream = bool(fields.flag("stream"))
    parameters = _parameters(fields, choice)
    for name in ("tool_choice", "parallel_tool_calls"):
        if not tools and name in parameters.given():
            fields.refuse(name, "is only allowed with tools")
    include_usage = _include_usage(fields, stream)
    for name, neutral in UNSERVED.items():
        fields.only(name, *neutral)
    if pass_on:
        parameters = replace(parameters, extra=fields.rest())
    fields.ignore(*IGNORED)
    for name, neutral in NEUTRAL.items() if not pass_on else ():
        fields.only(name, *neutral)
    fields.end()
    return ClientRequest(model, entries, system, tools, parameters, stream, include_usage)


def _include_usage(fields: Fields, stream: bool) -> bool:
    options = fields.object("stream_options")
    if options is None:
        return False
    if not stream:
        fields.refuse("stream_options", "is only allowed when stream is true")
    options.ignore("include_obfuscation")
    include_usage = bool(options.flag("include_usage"))
    options.end()
    return include_usage


# -- parameters


def _parameters(fields: Fields, choice: ToolChoice | NamedTool | None) -> Parameters:
    stop = fields.texts("stop")
    if len(stop) > MAX_STOPS:
        fields.refuse("stop", f"must have at most {MAX_STOPS} texts")
    return Parameters(
        max_tokens=_max_tokens(fields),
        temperature=fields.number("temperature", 0, 2),
        tool_choice=choice,
        top_p=fields.number("top_p", 0, 1),
        stop=stop,
        response_format=_response_format(fields),
        reasoning_effort=fields.choice("reasoning_effort", EFFORTS),
        parallel_tool_calls=fields.flag("parallel_tool_calls"),
    )


def _max_tokens(fields: Fields) -> int | None:
    new, old = fields.whole("max_completion_tokens"), fields.whole("max_tokens")
    if new is not None and old is not None:
        fields.refuse("max_tokens", "and max_completion_tokens cannot both be set")
    return old if new is None else new


def _response_format(fields: Fields) -> ResponseFormat | None:
    format = fields.object("response_format")
    if format is None:
        return None
    kind: ResponseType = format.choice("type", RESPONSE_TYPES) or format.refuse("type", "is missing")
    if kind != "json_schema":
        format.end()
        return ResponseFormat(kind)
    json_schema = format.needed_object("json_schema")
    format.end()
    name, description = json_schema.needed_text("name"), json_schema.text("description") or ""
    schema, strict = json_schema.mapping("schema"), json_schema.flag("strict")
    json_schema.end()
    return ResponseFormat(kind, schema, name, description, strict)


# -- tools


def _tools(fields: Fields) -> tuple[tuple[Tool, ...], ToolChoice | NamedTool | None]:
    """The tools and the tool choice. `allowed_tools` removes all other tools."""
    listed = fields.objects("tools")
    if len(listed) > MAX_TOOLS:
        fields.refuse("tools", f"must have at most {MAX_TOOLS} tools")
    tools = tuple(_tool(tool) for tool in listed)
    names = {tool.name for tool in tools}
    if len(names) < len(tools):
        fields.refuse("tools", "must have different names")
    raw = fields.raw("tool_choice")
    if raw is None or raw in TOOL_CHOICES:
        return tools, raw
    choice = Fields(raw, "tool_choice")
    if choice.choice("type", ("function", "allowed_tools")) == "allowed_tools":
        allowed = choice.needed_object("allowed_tools")
        mode: ToolChoice = allowed.choice("mode", ("auto", "required")) or allowed.refuse("mode", "is missing")
        allowed_names = {_tool_name(tool, names) for tool in allowed.objects("tools")}
        return tuple(tool for tool in tools if tool.name in allowed_names), mode
    return tools, NamedTool(_tool_name(choice, names))


def _tool_name(fields: Fields, names: set[str]) -> str:
    function = fields.needed_object("function")
    name = function.needed_text("name")
    return name if name in names else function.refuse("name", f"{name!r} is not one of the tools")


def _tool(fields: Fields) -> Tool:
    if fields.text("type") != "function":
        fields.refuse("type", "must be function")
    function = fields.needed_object("function")
    fields.end()
    name, description = function.needed_text("name"), function.text("description") or ""
    schema = function.mapping("parameters") or {"type": "object", "properties": {}}
    function.ignore("strict")
    function.end()
    return Tool(name, description, schema, server=CLIENT)


# -- messages


def _messages(fields: Fields, made: Made | None) -> tuple[str, tuple[Entry, ...]]:
    """The leading instructions as one text, and the other messages. Consecutive tool results become one entry."""
    messages = fields.items("messages")
    if not messages:
        fields.refuse("messages", "must have at least one message")
    system: list[str] = []
    entries: list[Entry] = []
    calls: dict[str, str] = {}
    for number, message in enumerate(messages):
        entry = _plain(message) or _message(fields.item("messages", number, message), calls, made)
        if entry.role == "system" and not entries:
            system.append(_joined(entry.blocks))
        elif entry.role == "tool" and entries and entries[-1].role == "tool":
            entries[-1] = Entry("tool", entries[-1].blocks + entry.blocks)
        elif entry.blocks:
            entries.append(entry)
    if not entries:
        fields.refuse("messages", "must have at least one message of a user or an assistant, with content")
    return "\n\n".join(text for text in system if text), tuple(entries)


def _plain(message: Json) -> Entry | None:
    """A role and a text, as most messages are. Clients send all of them each time, so these few steps are worth it."""
    if not isinstance(message, dict) or len(message) != 2:
        return None
    role, content = message.get("role"), message.get("content")
    if role not in ("user", "assistant") or not isinstance(content, str) or not content:
        return None
    return Entry(role, (Text(clean(content)[0]),))


def read_openai_messages(messages: Sequence[Json], made: Made | None = None) -> list[list[Entry]]:
    """Each message as the entries that it stands for. Unknown fields are accepted."""
    calls: dict[str, str] = {}
    fields = Fields({}, lenient=True)
    return [
        [_plain(message) or _message(fields.item("messages", number, message), calls, made)]
        for number, message in enumerate(messages)
    ]


def _joined(blocks: Sequence[Block]) -> str:
    return "\n".join(block.text for block in blocks if isinstance(block, Text))


def _message(message: Fields, calls: dict[str, str], made: Made | None) -> Entry:
    role = message.choice("role", ROLES) or message.refuse("role", "is missing")
    message.ignore("name")
    if role == "tool":
        entry = Entry("tool", (_result(message, calls),))
    elif role == "assistant":
        entry = Entry("assistant", _assistant_blocks(message, calls, made))
    elif role == "user":
        entry = Entry("user", _content(message))
    else:
        entry = Entry("system", _content(message, only_text=True))
    message.end()
    return entry


def _assistant_blocks(message: Fields, calls: dict[str, str], made: Made | None) -> tuple[Block, ...]:
    """OpenAI has no field for thinking; clients of DeepSeek and others send it back as `reasoning_content`."""
    thought = message.text("reasoning_content") or message.text("reasoning")
    refusal = message.text("refusal")
    blocks: list[Block] = [Thinking(thought, made=made)] if thought else []
    message.ignore("reasoning", "annotations")
    message.only("audio")
    message.only("function_call")
    blocks += _content(message, only_text=True, may_lack=True)
    blocks += [Text(refusal)] if refusal else []
    for call in message.objects("tool_calls"):
        blocks.append(_call(call))
    calls |= {block.id: block.name for block in blocks if isinstance(block, ToolCall)}
    return tuple(blocks)


def _call(call: Fields) -> ToolCall:
    call.ignore("index")
    if call.text("type") not in ("function", None):
        call.refuse("type", "must be function")
    id, function = call.needed_text("id"), call.needed_object("function")
    call.end()
    name, arguments = function.needed_text("name"), function.text("arguments") or ""
    function.end()
    return ToolCall(id, name, clean(arguments)[0])


def _result(message: Fields, calls: Mapping[str, str]) -> ToolResult:
    id = message.needed_text("tool_call_id")
    if id not in calls:
        message.refuse("tool_call_id", f"{id!r} is not the id of an earlier tool call")
    blocks = _content(message)
    attached = tuple(block for block in blocks if isinstance(block, Image | File))
    return ToolResult(id, calls[id], _joined(blocks), attachments=attached)


def _content(message: Fields, *, only_text: bool = False, may_lack: bool = False) -> tuple[Block, ...]:
    """A text, or a list of parts."""
    content = message.raw("content")
    if content is None and not may_lack:
        message.refuse("content", "is missing")
    if content is None or isinstance(content, str):
        return (Text(clean(content)[0]),) if content else ()
    if not isinstance(content, list):
        message.refuse("content", "must be a text or a list of parts")
    return tuple(_part(part, only_text) for part in message.objects("content"))


def _part(part: Fields, only_text: bool) -> Block:
    kinds = ("text", "refusal") if only_text else ("text", "image_url", "file")
    kind = part.choice("type", kinds) or part.refuse("type", "is missing")
    part.ignore("prompt_cache_breakpoint")
    block: Block
    if kind == "image_url":
        block = _image(part.needed_object("image_url"))
    elif kind == "file":
        block = _file(part.needed_object("file"))
    else:
        block = Text(clean(part.text(kind) or "")[0])
    part.end()
    return block


def _image(fields: Fields) -> Image:
    url = fields.needed_text("url")
    fields.ignore("detail")
    fields.end()
    if (data := split_data_url(url)) is None:
        return Image("", "", url=url) if url.startswith(("http://", "https://")) else _refuse_url(fields)
    if data[0] not in IMAGE_TYPES:
        fields.refuse("url", f"must be one of {', '.join(IMAGE_TYPES)}, not {data[0]}")
    return Image(data[0], fields.base64("url", data[1]))


def _refuse_url(fields: Fields) -> Image:
    fields.refuse("url", "must be an http address or a data URL with base64")


def _file(fields: Fields) -> File:
    if fields.text("file_id"):
        fields.refuse("file_id", "is not supported here; send the file as file_data")
    name, data = fields.text("filename") or "file", fields.needed_text("file_data")
    fields.end()
    media_type, content = split_data_url(data) or (PDF, data)
    content = fields.base64("file_data", content)
    if media_type == PDF:
        return File(name, "", media_type, base64=content)
    if not media_type.startswith("text/"):
        fields.refuse("file_data", f"must be a PDF or a text, not {media_type}")
    return File(name, clean(base64.b64decode(content))[0], media_type)
