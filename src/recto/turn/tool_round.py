"""A round of tool calls: each approved or refused, run, and stored with its one result, in the order of the calls."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Sequence
from contextlib import aclosing
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from recto.chat.blocks import Block, ToolCall, ToolResult
from recto.chat.message import Message, Role, Status, Tokens, result_delta
from recto.errors import RectoError
from recto.events import ApprovalAsked, Event, Noticed, ToolFinished, ToolStarted, Unanswered
from recto.settings import ToolSettings
from recto.sources.overrides import SourceOverrides
from recto.sources.source import SourceId, Tool
from recto.sources.tools import CANCELLED, Toolbox, ToolRun, arguments_of
from recto.turn.incoming_message import IncomingMessage
from recto.turn.session import ChatSession

Verdict = Literal["", "allowed", "always", "denied", "unanswered", "forbidden"]
MAX_STEPS = "--max-steps"
MAY_RUN = ("", "allowed", "always")
SAID = {
    "denied": "denied: the user did not let this call run",
    "unanswered": "denied: this tool runs only after the user was asked, and nobody could be asked",
    "forbidden": "denied: the settings forbid this tool",
}


class RoundLimit(Struct, frozen=True):
    """How many rounds of tool calls a turn may have, and what says so."""

    most: int
    setting: str

    @property
    def reached(self) -> Noticed:
        return Noticed(f"stopped after {self.most} rounds of tool calls ({self.setting})")


def round_limit(session: ChatSession, settings: ToolSettings) -> RoundLimit:
    """A run has a limit of its own over all of its turns."""
    if session.run:
        return RoundLimit(session.run.steps_left, MAX_STEPS)
    return RoundLimit(settings.step_limit, "tools.step_limit")


class Approvals(Struct):
    overrides: SourceOverrides
    allowed: Collection[str]
    """Servers and tools that may run without asking as long as the session lasts."""
    can_ask: bool
    """The user can be asked."""
    remember: Callable[[SourceId], Awaitable[object]]
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    """By call id."""

    async def ask(self, toolbox: Toolbox, calls: tuple[ToolCall, ...]) -> AsyncGenerator[Event, None]:
        """Decides about all calls, one after another."""
        for call in calls:
            tool = toolbox.tool(call.name)
            verdict = self._known(toolbox, call, tool)
            if verdict is None and tool is not None:
                if self.can_ask:
                    asked = ApprovalAsked(call, tool)
                    self.verdicts[call.id] = "denied"  # if the turn is stopped at the question
                    yield asked
                    verdict = await self._answer(asked, tool)
                if verdict is None:
                    verdict = "unanswered"
                    yield Noticed(_unanswered(tool))
            self.verdicts[call.id] = verdict or ""

    def _known(self, toolbox: Toolbox, call: ToolCall, tool: Tool | None) -> Verdict | None:
        """The verdict where nobody has to be asked, else None. A call that must fail anyway needs no question."""
        approval = toolbox.approval(call)
        if tool is None or approval == "allow" or not _can_run(call, tool):
            return ""
        if approval == "deny":
            return "forbidden"
        is_allowed = tool.server in self.allowed or f"{tool.server}/{tool.id.name}" in self.allowed
        return "always" if is_allowed or self.overrides.allows(tool.id) else None

    async def _answer(self, asked: ApprovalAsked, tool: Tool) -> Verdict | None:
        try:
            answer = await asked.answered()
        except Unanswered:
            return None
        if answer == "always":
            await self.remember(tool.id)
            self.overrides = self.overrides.allow(tool.id)
        return answer

    def refused(self, call: ToolCall) -> ToolResult | None:
        """The result of a call that may not run; None if it may."""
        verdict = self.verdicts.get(call.id, "")
        if verdict in MAY_RUN:
            return None
        return ToolResult(call.id, call.name, SAID[verdict], is_error=True, approval=verdict)


def _can_run(call: ToolCall, tool: Tool) -> bool:
    try:
        arguments_of(call, tool)
    except RectoError:  # the call itself reports what is wrong with its arguments
        return False
    return True


def _unanswered(tool: Tool) -> str:
    name = f"{tool.server}/{tool.id.name}"
    return (
        f'{name} was not run: nobody could be asked; `--allow-tool {name}`, or `approval = "allow"` in agent.toml, '
        "lets it run"
    )


Weigh = Callable[[Role, tuple[Block, ...]], Awaitable[Tokens]]
Keep = Callable[[ToolRun], Awaitable[ToolResult]]
"""Stores what does not go into the window and returns the result that does."""
Remark = Callable[[Sequence[ToolCall], Sequence[ToolResult]], tuple[ToolResult, ...]]


async def run_calls(
    incoming: IncomingMessage, toolbox: Toolbox, calls: tuple[ToolCall, ...], approvals: Approvals, keep: Keep
) -> AsyncGenerator[Event, None]:
    """Runs the calls into `incoming`, which the caller closes with `close_calls`, however this ends."""
    async with aclosing(approvals.ask(toolbox, calls)) as events:
        async for event in events:
            yield event
    may_run = []
    for call in calls:
        if refused := approvals.refused(call):
            await incoming.add(result_delta(refused))
            yield ToolFinished(call, refused)
        else:
            may_run.append(call)
            yield ToolStarted(call)
    running = {asyncio.create_task(toolbox.run(call)): call for call in may_run}
    try:
        while running:
            finished, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in finished:
                call = running.pop(task)
                result = await _take(incoming, task.result(), approvals, keep)
                yield ToolFinished(call, result)
    finally:
        for task, call in running.items():
            # a thread that writes cannot be stopped half-way, and the model must know what it did
            if toolbox.writes(call):
                await _take(incoming, await task, approvals, keep)
            else:
                task.cancel()


async def _take(incoming: IncomingMessage, ran: ToolRun, approvals: Approvals, keep: Keep) -> ToolResult:
    result = replace(await keep(ran), approval=approvals.verdicts.get(ran.result.call_id, ""))
    await incoming.add(result_delta(result))
    return result


async def close_calls(
    incoming: IncomingMessage,
    calls: Sequence[ToolCall],
    approvals: Approvals,
    count: Weigh,
    note: Callable[[Tokens], None],
    status: Status = "done",
    remark: Remark | None = None,
) -> Message:
    """Every call gets exactly one result: calls that never ran are closed as denied or cancelled. `count` gives the
    tokens of the results, `note` writes them down with the call, `remark` adds what the model should know besides."""
    came = {block.call_id: block for block in incoming.blocks if isinstance(block, ToolResult)}
    for call in calls:
        if call.id not in came:
            cancelled = ToolResult(call.id, call.name, CANCELLED, is_error=True)
            came[call.id] = approvals.refused(call) or cancelled
            await incoming.add(result_delta(came[call.id]))
    results = tuple(came[call.id] for call in calls)
    results = remark(calls, results) if remark else results
    tokens = await count("tool", results)
    message = await incoming.finish(status, blocks=results, tokens=tokens, also=lambda: note(tokens))
    assert message is not None
    return message
