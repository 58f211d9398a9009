"""Ask options and the reply: the options of a call, and its result."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence, Set
from pathlib import Path
from string import ascii_letters, digits
from typing import Any, TypedDict, Unpack, get_args

from msgspec import Struct

from recto import wire
from recto.base.text import clean, shown
from recto.chat.blocks import DocumentReference, File, Image, Quote, Text, ToolCall, unique_references
from recto.chat.message import Message, Usage
from recto.errors import Invalid, Unreachable
from recto.events import (
    Branched,
    ContextCompacted,
    Event,
    NotesQuoted,
    Noticed,
    Referenced,
    Replied,
    ToolCallsPending,
)
from recto.settings import settings as configuration
from recto.sources.documents import read_attachment
from recto.sources.source import Tool
from recto.turn.context import CallOptions
from recto.turn.messages import Given
from recto.window.request import Effort, NamedTool, Parameters, ResponseFormat, ToolChoice
from recto.window.window import Window


class Reply(Struct, frozen=True):
    text: str
    message: Message
    window: Window
    request_id: str
    notes: tuple[str, ...] = ()
    asked: Message | None = None
    """The message with the documents that it names."""
    pending_calls: tuple[ToolCall, ...] = ()
    """The caller runs these: the next message carries their results as ToolResult blocks."""
    quotes: tuple[Quote, ...] = ()
    """Quotes from notes."""
    branched: Branched | None = None
    """The point where this message or its reply left the conversation's path, because another client had continued
    it."""
    cost: float | None = None
    """US dollars for all replies of the turn, including those that only called tools; None if a price is unknown."""

    @property
    def references(self) -> tuple[DocumentReference, ...]:
        """The documents of question and reply, each once."""
        return unique_references((*(self.asked.references if self.asked else ()), *self.message.references))

    @property
    def usage(self) -> Usage:
        assert self.message.usage is not None
        return self.message.usage


async def reply_of(events: AsyncGenerator[Event, None]) -> Reply:
    last: Replied | None = None
    pending: tuple[ToolCall, ...] = ()
    asked: Message | None = None
    branched: Branched | None = None
    notes: list[str] = []
    quotes: tuple[Quote, ...] = ()
    costs: list[float | None] = []
    async for event in events:
        if isinstance(event, Replied):
            last = event
            costs.append(event.message.usage.cost_usd if event.message.usage else None)
        elif isinstance(event, Referenced):
            asked = event.message
        elif isinstance(event, NotesQuoted):
            quotes = event.quotes
        elif isinstance(event, Noticed):
            notes.append(event.text)
        elif isinstance(event, ContextCompacted):
            notes.extend(event.notes)
        elif isinstance(event, Branched):
            branched = event
            notes.append(event.text)
        elif isinstance(event, ToolCallsPending):
            pending = event.calls
    if last is None:
        raise Unreachable("the model gave no reply")
    known = [cost for cost in costs if cost is not None]
    cost = sum(known) if len(known) == len(costs) else None
    about = (tuple(notes), asked, pending, quotes, branched, cost)
    return Reply(last.message.text, last.message, last.window, last.request, *about)


Attachment = str | Path | Image | File


class AskOptions(TypedDict, total=False):
    """Options of one call; the rest follows conversation, agent and settings."""

    model: str | None
    strategy: str | None
    temperature: float | None
    top_p: float | None
    max_tokens: int | None
    stop: Sequence[str]
    response_format: ResponseFormat | None
    reasoning_effort: Effort | None
    tool_choice: ToolChoice | NamedTool | None
    tools: Sequence[Tool]
    """Tools that the caller runs: `Reply.pending_calls` has their calls, and the next message takes the results."""
    attachments: Sequence[Attachment]
    """Paths, or blocks."""


def call_options(**given: Unpack[AskOptions]) -> CallOptions:
    """Raises Invalid for an unknown option or an invalid value."""
    if unknown := sorted(given.keys() - AskOptions.__annotations__.keys()):
        raise Invalid(f"there is no option {unknown[0]}; there are: {', '.join(AskOptions.__annotations__)}")
    if (strategy := given.get("strategy")) is not None:
        configuration.check("context.strategy", strategy, "strategy")
    stop, tools = (_listed(name, given.get(name) or ()) for name in ("stop", "tools"))
    parameters = Parameters(
        max_tokens=given.get("max_tokens"),
        temperature=given.get("temperature"),
        top_p=given.get("top_p"),
        stop=stop,
        response_format=given.get("response_format"),
        reasoning_effort=given.get("reasoning_effort"),
        tool_choice=given.get("tool_choice"),
    )
    for name, is_good, allowed in _CHECKS:
        if (value := getattr(parameters, name)) is not None and not is_good(value):
            raise Invalid(f"{name} must be {allowed}, not {shown(value)}", option=name)
    for tool in tools:
        _check_tool(tool)
    return CallOptions(given.get("model"), strategy, parameters, tools)


def _listed(name: str, values: object) -> tuple[Any, ...]:
    """Several values; a text is one."""
    if isinstance(values, str):
        return (values,)
    if not isinstance(values, Sequence | Set) or isinstance(values, bytes):
        raise Invalid(f"{name} must be a list, not {shown(values)}", option=name)
    return tuple(values)


def _is_between(low: float, high: float) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high


_CHECKS: tuple[tuple[str, Callable[[Any], bool], str], ...] = (
    ("temperature", _is_between(0, 2), "a number from 0 to 2"),
    ("top_p", _is_between(0, 1), "a number from 0 to 1"),
    ("max_tokens", lambda value: type(value) is int and value > 0, "a whole number above 0"),
    ("stop", lambda value: all(map(_is_sendable, value)), "texts that are not empty and can be sent"),
    ("response_format", lambda value: isinstance(value, ResponseFormat), "a ResponseFormat"),
    ("reasoning_effort", lambda value: value in get_args(Effort), f"one of {', '.join(get_args(Effort))}"),
    (
        "tool_choice",
        lambda value: isinstance(value, NamedTool) or value in get_args(ToolChoice),
        f"a NamedTool, or one of {', '.join(get_args(ToolChoice))}",
    ),
)


def _is_sendable(text: object) -> bool:
    return isinstance(text, str) and text != "" and not clean(text)[1]


_TOOL_LETTERS = frozenset(f"{ascii_letters}{digits}_-")


def _check_tool(tool: object) -> None:
    if not isinstance(tool, Tool):
        raise Invalid(f"tools must be Tool values, not {shown(tool)}", option="tools")
    if not 0 < len(tool.name) <= 64 or not _TOOL_LETTERS.issuperset(tool.name):
        why = f"a tool cannot be called {shown(tool.name)}: use letters, digits, _ and -, at most 64"
        raise Invalid(why, option="tools", name=tool.name)
    try:
        wire.dumps(dict(tool.schema))
    except (TypeError, ValueError) as why:
        raise Invalid(f"the schema of the tool {tool.name} is not JSON: {why}", option="tools") from why


async def with_attachments(given: Given, attachments: Sequence[Attachment]) -> Given:
    if not attachments:
        return given
    attachments = (
        (attachments,) if isinstance(attachments, Path | Image | File) else _listed("attachments", attachments)
    )
    if wrong := next((each for each in attachments if not isinstance(each, str | Path | Image | File)), None):
        raise Invalid(f"an attachment must be a path, an Image or a File, not {shown(wrong)}", option="attachments")
    blocks = [
        each if isinstance(each, Image | File) else await asyncio.to_thread(read_attachment, each)
        for each in attachments
    ]
    said = (Text(clean(given)[0]),) if isinstance(given, str | bytes) else tuple(given)
    return (*blocks, *said)


def named_agent(given: Given) -> tuple[str, Given]:
    """The agent that the first word of a message names (`@reviewer`), and the message without it; an empty name if
    there is none."""
    if not isinstance(given, str | bytes) or given[:1] not in ("@", b"@"):
        return "", given
    text = given.decode("utf-8", "surrogateescape") if isinstance(given, bytes) else given
    name, rest = text[1:].split(maxsplit=1) if len(text.split()) > 1 else ("", "")
    return name, rest.encode("utf-8", "surrogateescape") if isinstance(given, bytes) else rest
