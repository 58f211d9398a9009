"""Approving: whether a tool may run: as its settings say, as the user said before, or as the user says now."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Collection
from dataclasses import dataclass, field
from typing import Literal

from recto.chat.blocks import ToolCall, ToolResult
from recto.events import ApprovalAsked, Event, Noticed, Unanswered
from recto.sources.session import Session
from recto.sources.source import SourceId, Tool
from recto.sources.tools import Toolbox, arguments_of

Verdict = Literal["", "allowed", "always", "denied", "unanswered", "forbidden"]
MAY_RUN = ("", "allowed", "always")
SAID = {
    "denied": "denied: the user did not let this call run",
    "unanswered": "denied: this tool runs only after the user was asked, and nobody could be asked",
    "forbidden": "denied: the settings forbid this tool",
}


@dataclass(slots=True)
class Approving:
    session: Session
    allowed: Collection[str]
    """Servers and tools that may run as long as this front end stands here."""
    answers: bool
    """Somebody can be asked."""
    remember: Callable[[SourceId], Awaitable[object]]
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    """By the ids of calls."""

    async def ask(self, toolbox: Toolbox, calls: tuple[ToolCall, ...]) -> AsyncGenerator[Event, None]:
        """Settles all calls, one after another, in their order."""
        for call in calls:
            tool = toolbox.tool(call.name)
            verdict = self._known(toolbox, call, tool)
            if verdict is None and tool is not None:
                if self.answers:
                    asked = ApprovalAsked(call, tool)
                    yield asked
                    verdict = await self._answer(asked, tool)
                if verdict is None:
                    verdict = "unanswered"
                    yield Noticed(_unanswered(tool))
            self.verdicts[call.id] = verdict or ""

    def _known(self, toolbox: Toolbox, call: ToolCall, tool: Tool | None) -> Verdict | None:
        """What needs no asking; None for what does. A call that must fail is not worth a question."""
        approval = toolbox.approval(call)
        if tool is None or approval == "allow" or not _can_run(call, tool):
            return ""
        if approval == "deny":
            return "forbidden"
        is_allowed = tool.server in self.allowed or f"{tool.server}/{tool.id.name}" in self.allowed
        return "always" if is_allowed or self.session.allows(tool.id) else None

    async def _answer(self, asked: ApprovalAsked, tool: Tool) -> Verdict | None:
        try:
            answer = await asked.answered()
        except Unanswered:
            return None
        if answer == "always":
            self.session = self.session.allow(tool.id)
            await self.remember(tool.id)
        return answer

    def refused(self, call: ToolCall) -> ToolResult | None:
        """The result of a call that may not run; None for one that may."""
        verdict = self.verdicts.get(call.id, "")
        if verdict in MAY_RUN:
            return None
        return ToolResult(call.id, call.name, SAID[verdict], is_error=True, approval=verdict)


def _can_run(call: ToolCall, tool: Tool) -> bool:
    try:
        arguments_of(call, tool)
    except Exception:  # whatever is wrong with them, the call says it
        return False
    return True


def _unanswered(tool: Tool) -> str:
    name = f"{tool.server}/{tool.id.name}"
    return (
        f'{name} was not run: nobody could be asked; `--allow-tool {name}`, or `approval = "allow"` in agent.toml, '
        "lets it run"
    )
