"""A round of tool calls: all at once, each result stored as it comes, in the end one for every call, in their order."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace

from recto.chat.blocks import Block, ToolCall, ToolResult
from recto.chat.growth import result_step
from recto.chat.message import Message, Role, Tokens
from recto.events import Event, ToolFinished, ToolStarted
from recto.sources.tools import CANCELLED, Ran, Toolbox
from recto.walk.approving import Approving
from recto.walk.reply import Incoming

Weigh = Callable[[Role, tuple[Block, ...]], Awaitable[int | None]]
Keep = Callable[[Ran], Awaitable[ToolResult]]
"""The result, with what of it the store keeps besides."""


async def run_calls(
    incoming: Incoming, toolbox: Toolbox, calls: tuple[ToolCall, ...], approving: Approving, keep: Keep
) -> AsyncGenerator[Event, None]:
    """Runs the calls into `incoming`, which the caller closes with `close_calls`, however this ends."""
    async with aclosing(approving.ask(toolbox, calls)) as events:
        async for event in events:
            yield event
    may_run = []
    for call in calls:
        if refused := approving.refused(call):
            await incoming.add(result_step(refused))
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
                result = await _take(incoming, task.result(), approving, keep)
                yield ToolFinished(call, result)
    finally:
        for task, call in running.items():
            # a thread that writes cannot be stopped half-way: what it did is what the model must know
            if toolbox.writes(call):
                await _take(incoming, await task, approving, keep)
            else:
                task.cancel()


async def _take(incoming: Incoming, ran: Ran, approving: Approving, keep: Keep) -> ToolResult:
    result = replace(await keep(ran), approval=approving.verdicts.get(ran.result.call_id, ""))
    await incoming.add(result_step(result))
    return result


async def close_calls(incoming: Incoming, calls: Sequence[ToolCall], approving: Approving, weigh: Weigh) -> Message:
    """Every call gets its one result; those that never came are closed as denied, where the user had said so, or as
    cancelled. `weigh` tells their tokens."""
    came = {block.call_id: block for block in incoming.blocks if isinstance(block, ToolResult)}
    for call in calls:
        if call.id not in came:
            cancelled = ToolResult(call.id, call.name, CANCELLED, is_error=True)
            came[call.id] = approving.refused(call) or cancelled
            await incoming.add(result_step(came[call.id]))
    results = tuple(came[call.id] for call in calls)
    message = await incoming.finish("done", blocks=results, tokens=Tokens(await weigh("tool", results)))
    assert message is not None
    return message
