"""A round of tool calls: all at once, each result stored as it comes, in the end one for every call, in their order."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

from recto.chat.blocks import Block, ToolCall, ToolResult
from recto.chat.growth import result_step
from recto.chat.message import Message, Role, Tokens
from recto.events import Event, ToolFinished, ToolStarted
from recto.sources.tools import CANCELLED, Toolbox
from recto.walk.reply import Incoming

Weigh = Callable[[Role, tuple[Block, ...]], Awaitable[int | None]]


async def run_calls(incoming: Incoming, toolbox: Toolbox, calls: Sequence[ToolCall]) -> AsyncGenerator[Event, None]:
    """Runs the calls into `incoming`, which the caller closes with `close_calls`, however this ends."""
    for call in calls:
        yield ToolStarted(call)
    running = {asyncio.create_task(toolbox.run(call)): call for call in calls}
    try:
        while running:
            finished, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in finished:
                call, result = running.pop(task), task.result().result
                await incoming.add(result_step(result))
                yield ToolFinished(call, result)
    finally:
        for task, call in running.items():
            # a thread that writes cannot be stopped half-way: what it did is what the model must know
            if toolbox.writes(call):
                await incoming.add(result_step((await task).result))
            else:
                task.cancel()


async def close_calls(incoming: Incoming, calls: Sequence[ToolCall], weigh: Weigh) -> Message:
    """Every call gets its one result; those that never came are closed as cancelled. `weigh` tells their tokens."""
    came = {block.call_id: block for block in incoming.blocks if isinstance(block, ToolResult)}
    for call in calls:
        if call.id not in came:
            came[call.id] = ToolResult(call.id, call.name, CANCELLED, is_error=True)
            await incoming.add(result_step(came[call.id]))
    results = tuple(came[call.id] for call in calls)
    message = await incoming.finish("done", blocks=results, tokens=Tokens(await weigh("tool", results)))
    assert message is not None
    return message
