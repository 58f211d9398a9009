"""Tools on offer: they turn a call into a result, here or on a server. A tool's failure is a result that the model can
read."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, ClassVar

from msgspec import Struct

from recto.base.text import clean
from recto.chat.blocks import ToolCall, ToolResult
from recto.errors import RectoError
from recto.sources.source import Approval, Include, Tool
from recto.sources.tool_definition import ServerIdentity, ToolDefinition

# The tools of `recall/`, named here for agents' lists of tools.
RECALL, REMEMBER, RECALL_FACTS, FORGET_FACT = "recall", "remember", "recall_facts", "forget_fact"


def _tool(name: str, about: str, properties: dict[str, Any], *required: str, include: Include = "agent") -> Tool:
    schema = {"type": "object", "properties": properties}
    return Tool(name, about, schema | ({"required": [*required]} if required else {}), include)


RECALL_TOOL = _tool(
    RECALL,
    "Bring back archived messages of this conversation, verbatim.",
    {
        "query": {"type": "string", "description": "what to look for"},
        "messages": {"type": "array", "items": {"type": "string"}, "description": "their numbers, such as #57"},
        "offset": {"type": "integer", "description": "where to go on in a long one"},
    },
    include="always",
)
REMEMBER_TOOL = _tool(
    REMEMBER,
    "Remember one lasting fact for later conversations, in the user's own words and language. What a document says "
    "only if the user asks for that, in its words. Nothing that rules say.",
    {
        "text": {"type": "string", "description": "one statement that can be understood alone"},
        "kind": {"type": "string", "enum": ["preference", "person", "project", "decision", "reference", "other"]},
        "replaces": {"type": "integer", "description": "the number of a fact that is no longer true"},
    },
    "text",
)
RECALL_FACTS_TOOL = _tool(
    RECALL_FACTS, "Look up what is remembered from earlier conversations.", {"query": {"type": "string"}}, "query"
)
FORGET_FACT_TOOL = _tool(
    FORGET_FACT, "Forget a remembered fact, when the user asks for it.", {"number": {"type": "integer"}}, "number"
)

log = logging.getLogger(__name__)
CANCELLED = "cancelled: the call was stopped before a result came"
_RAN = ("", "allowed", "always")
"""Answers after which a tool runs."""

Arguments = Mapping[str, Any]


def has_run(result: ToolResult) -> bool:
    """False for a call that was denied, that nobody could allow, or that was stopped."""
    return result.approval in _RAN and result.text != CANCELLED


class Media(Struct, frozen=True):
    """A tool's output other than text: an image, a sound, a file."""

    media_type: str
    data: bytes


class ToolOutput(Struct, frozen=True):
    text: str
    is_error: bool = False
    media: tuple[Media, ...] = ()


class LocalTool(Struct, frozen=True):
    """A tool that runs in a thread of this process."""

    tool: Tool
    run: Callable[[Arguments], str]
    writes: bool = False
    """It changes files: such calls run one after another, in order, and to the end."""
    approval: Approval = "allow"

    @property
    def definition(self) -> ToolDefinition:
        """The definition without its text: the user installed its code, and a release may reword it."""
        return ToolDefinition(self.tool.server, self.tool.id.name)


class RemoteTool(Struct, frozen=True):
    """A tool of a server. Cancelling it cancels the call on the server."""

    writes: ClassVar[bool] = False
    tool: Tool
    call: Callable[[Arguments], Awaitable[ToolOutput]]
    """Calls the tool; fails without running it if the server now describes it differently."""
    current: Callable[[], Awaitable["RemoteTool | None"]]
    """Returns the tool as its server describes it now, or None if it is gone. Starts the server."""
    reached: ServerIdentity
    approval: Approval = "ask"
    is_named: bool = False
    """True if `approval` was set for this tool, not for its whole server."""
    timeout_s: float | None = None
    """Longest run of one call; None uses the setting."""
    before_s: float = 0.0
    """Time allowed before a call runs, such as the start of its server; `call` itself then keeps the time."""

    @property
    def definition(self) -> ToolDefinition:
        tool = self.tool
        return ToolDefinition(tool.server, tool.id.name, tool.description, tool.schema, self.reached)


class CallerTool(Struct, frozen=True):
    """A tool that the caller of a turn runs: its calls are handed back, and the next message carries the results."""

    writes: ClassVar[bool] = False
    tool: Tool
    approval: Approval = "allow"

    @property
    def definition(self) -> ToolDefinition:
        return ToolDefinition(self.tool.server, self.tool.id.name)


RunnableTool = LocalTool | RemoteTool | CallerTool


class ToolOutcome(Struct, frozen=True):
    """A finished call: the result as the model reads it, and what else is kept of it."""

    result: ToolResult
    whole: str | None = None
    """The whole text, if the result holds only its beginning."""
    media: tuple[Media, ...] = ()


class Toolbox:
    """The tools on offer, by their names for models."""

    def __init__(
        self, runnables: Sequence[RunnableTool], *, timeout_s: float = 60.0, longest: int | None = None
    ) -> None:
        self._runnables = {runnable.tool.name: runnable for runnable in runnables}
        self._timeout_s, self._longest = timeout_s, longest
        self._writing = asyncio.Lock()

    @property
    def tools(self) -> tuple[Tool, ...]:
        return tuple(runnable.tool for runnable in self._runnables.values())

    def runnable(self, name: str) -> RunnableTool | None:
        return self._runnables.get(name)

    async def update(self, name: str) -> None:
        """Update a tool to its server's current description. Failures here recur when the call is made."""
        runnable = self._runnables.get(name)
        if isinstance(runnable, RemoteTool):
            try:
                found = await asyncio.wait_for(runnable.current(), runnable.before_s)
            except (RectoError, TimeoutError):
                return
            except Exception:  # a broken server must not end the chat
                log.exception("the tool %s could not be looked up", name)
                return
            self._runnables[name] = found or runnable

    def is_callers(self, call: ToolCall) -> bool:
        return isinstance(self._runnables.get(call.name), CallerTool)

    def writes(self, call: ToolCall) -> bool:
        return call.name in self._runnables and self._runnables[call.name].writes

    async def run(self, call: ToolCall) -> ToolOutcome:
        runnable = self._runnables.get(call.name)
        patience = (runnable.timeout_s if isinstance(runnable, RemoteTool) else None) or self._timeout_s
        try:
            outcome = await self._outcome(call, runnable, patience)
        except RectoError as why:
            outcome = ToolOutput(why.message, is_error=True)
        except TimeoutError:
            outcome = ToolOutput(f"no result within {patience:g} s", is_error=True)
        except Exception as why:  # a broken tool must not end the chat
            log.exception("the tool %s failed", call.name)
            outcome = ToolOutput(f"the tool failed: {type(why).__name__}: {why}", is_error=True)
        text, whole = clean(outcome.text)[0], None
        if self._longest is not None and len(text) > self._longest:
            whole = text
            text = f"{text[: self._longest]}\n[cut here: {len(text):,} characters in all, which are kept]"
        return ToolOutcome(ToolResult(call.id, call.name, text, outcome.is_error), whole, outcome.media)

    async def _outcome(self, call: ToolCall, runnable: RunnableTool | None, patience: float) -> ToolOutput:
        if runnable is None:
            name = call.name or "without a name"
            raise RectoError(f"there is no tool {name}; there are: {', '.join(self._runnables) or 'none'}")
        assert not isinstance(runnable, CallerTool)
        given = arguments_of(call, runnable.tool)
        if isinstance(runnable, RemoteTool):
            return await asyncio.wait_for(runnable.call(given), patience + runnable.before_s)
        if runnable.writes:
            async with self._writing:
                return ToolOutput(await asyncio.to_thread(runnable.run, given))
        return ToolOutput(await asyncio.wait_for(asyncio.to_thread(runnable.run, given), patience))


def arguments_of(call: ToolCall, tool: Tool) -> Arguments:
    """The model's arguments; a readable error if they are not an object or lack a required one."""
    try:
        given = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError) as why:
        raise RectoError(f"the arguments are not JSON ({why}); send an object as the schema says") from why
    if not isinstance(given, dict):
        raise RectoError("the arguments must be a JSON object as the schema says")
    required = tool.schema.get("required", ())
    names = [name for name in required if isinstance(name, str)] if isinstance(required, list | tuple) else []
    if missing := [name for name in names if name not in given]:
        raise RectoError(f"missing argument: {', '.join(missing)}")
    return given
