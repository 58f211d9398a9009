"""Approvals: decides which tool calls may run, from settings, options and the user's answers."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from typing import Literal

from msgspec import Struct, field

from recto.chat.blocks import ToolCall, ToolResult
from recto.errors import RectoError
from recto.events import ApprovalAsked, Noticed, Unanswered
from recto.mcp.allowed_tools import AllowedTools
from recto.sources.overrides import SourceOverrides
from recto.sources.source import Tool
from recto.sources.tool_definition import ToolChange, ToolDefinition
from recto.sources.tools import RemoteTool, RunnableTool, Toolbox, arguments_of
from recto.turn.emitting import Emit

log = logging.getLogger(__name__)

Verdict = Literal["", "allowed", "always", "denied", "unanswered", "changed", "forbidden"]
MAY_RUN = ("", "allowed", "always")
SAID = {
    "denied": "denied: the user did not let this call run",
    "unanswered": "denied: this tool runs only after the user was asked, and nobody could be asked",
    "changed": "denied: this tool has changed since the user allowed it, and nobody could be asked about the change",
    "forbidden": "denied: the settings forbid this tool",
}


class Approvals(Struct):
    overrides: SourceOverrides
    allowed: Collection[str]
    """Servers and tools that may run without asking during this session."""
    can_ask: bool
    accepted: AllowedTools
    remember: Callable[[ToolDefinition], Awaitable[object]]
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    """By call id."""

    async def ask(self, toolbox: Toolbox, calls: tuple[ToolCall, ...], emit: Emit) -> None:
        """Decides about each call in turn, using the tools' current definitions."""
        await asyncio.gather(*map(toolbox.update, {call.name for call in calls if self._may_run(toolbox, call)}))
        for call in calls:
            runnable = toolbox.runnable(call.name)
            verdict, change = await self._known(call, runnable)
            if verdict is None and runnable is not None:
                if self.can_ask:
                    asked = ApprovalAsked(call, runnable.tool, change)
                    self.verdicts[call.id] = "denied"  # in case the turn is stopped at the question
                    await emit(asked)
                    verdict = await self._answer(asked, runnable)
                if verdict is None:
                    verdict = "changed" if change else "unanswered"
                    await emit(Noticed(_unanswered(runnable.tool, change)))
            self.verdicts[call.id] = verdict or ""

    def _may_run(self, toolbox: Toolbox, call: ToolCall) -> bool:
        """True if the call can be made and may be allowed: only then is its server worth starting."""
        runnable = toolbox.runnable(call.name)
        if runnable is None or runnable.approval == "deny" or not _can_run(call, runnable.tool):
            return False
        return self.can_ask or self._is_named(runnable) or runnable.definition.id in self.overrides.allowed

    def _is_named(self, runnable: RunnableTool) -> bool:
        """True if settings or options allow the tool by name."""
        tool = runnable.tool
        named = tool.server in self.allowed or f"{tool.server}/{tool.id.name}" in self.allowed
        return runnable.approval == "allow" or named

    async def _known(self, call: ToolCall, runnable: RunnableTool | None) -> tuple[Verdict | None, ToolChange | None]:
        """The verdict, or None if the user must be asked, and how the tool has changed since it was allowed. Calls that
        must fail anyway need no question."""
        if runnable is None or (not isinstance(runnable, RemoteTool) and runnable.approval == "allow"):
            return "", None
        if runnable.approval == "deny":
            return "forbidden", None
        if not _can_run(call, runnable.tool):
            return "", None
        definition = runnable.definition
        if self._is_named(runnable):
            change = await asyncio.to_thread(self._change, runnable)
            return (None, change) if change else ("" if runnable.approval == "allow" else "always", None)
        if (sha256 := self.overrides.allowed.get(definition.id)) is None:
            return None, None
        change = None if sha256 == definition.sha256 else await asyncio.to_thread(self._since, definition, sha256)
        return (None, change) if change else ("always", None)

    def _change(self, runnable: RunnableTool) -> ToolChange | None:
        return self.accepted.change(runnable.definition) if isinstance(runnable, RemoteTool) else None

    def _since(self, definition: ToolDefinition, sha256: str) -> ToolChange | None:
        """How a tool differs from the one always allowed in the conversation; None if the user accepted the change. An
        imported conversation names a definition that was never accepted here."""
        before = self.accepted.known(definition, sha256)
        is_accepted = before is not None and self.accepted.change(definition) is None
        return None if is_accepted else ToolChange(before, definition)

    async def _answer(self, asked: ApprovalAsked, runnable: RunnableTool) -> Verdict | None:
        try:
            answer = await asked.answered()
        except Unanswered:
            return None
        if answer == "always":
            definition = runnable.definition
            if isinstance(runnable, RemoteTool):
                await asyncio.to_thread(self._accept, definition)
            if not self._is_named(runnable):
                await self.remember(definition)
                self.overrides = self.overrides.allow(definition)
        return answer

    def _accept(self, definition: ToolDefinition) -> None:
        try:
            self.accepted.accept([definition])
        except RectoError:  # this call was allowed; the next one asks again
            log.exception("what was allowed about %s could not be kept", definition.id)

    def refused(self, call: ToolCall) -> ToolResult | None:
        """The result of a call that may not run, else None."""
        verdict = self.verdicts.get(call.id, "")
        if verdict in MAY_RUN:
            return None
        return ToolResult(call.id, call.name, SAID[verdict], is_error=True, approval=verdict)


def _can_run(call: ToolCall, tool: Tool) -> bool:
    try:
        arguments_of(call, tool)
    except RectoError:  # the call itself reports invalid arguments
        return False
    return True


def _unanswered(tool: Tool, change: ToolChange | None) -> str:
    name = f"{tool.server}/{tool.id.name}"
    if change:
        return f"{change.text}, so it was not run; `recto sources trust {tool.server}` shows and accepts the change"
    return (
        f'{name} was not run: nobody could be asked; `--allow-tool {name}`, or `approval = "allow"` in agent.toml, '
        "lets it run"
    )
