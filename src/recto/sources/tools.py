"""Tools that run here: a call comes in, a result goes out. A tool's failure is a result that the model can read."""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from recto.chat.blocks import ToolCall, ToolResult
from recto.errors import RectoError
from recto.sources.source import Tool

RECALL = "recall"
"""The tool that brings archived messages back."""
CANCELLED = "cancelled: the call was stopped before a result came"


@dataclass(frozen=True, slots=True)
class Runnable:
    tool: Tool
    run: Callable[[Mapping[str, Any]], str]
    writes: bool = False
    """It changes files: those that do run one after another, in the order of their calls, and to their end."""


class Toolbox:
    """The tools on offer, by name."""

    def __init__(self, runnables: list[Runnable], *, timeout_s: float = 60.0) -> None:
        self._runnables = {runnable.tool.name: runnable for runnable in runnables}
        self._timeout_s = timeout_s
        self._writing = asyncio.Lock()

    @property
    def tools(self) -> tuple[Tool, ...]:
        return tuple(runnable.tool for runnable in self._runnables.values())

    def writes(self, call: ToolCall) -> bool:
        return call.name in self._runnables and self._runnables[call.name].writes

    async def run(self, call: ToolCall) -> ToolResult:
        try:
            if self.writes(call):
                async with self._writing:
                    text = await asyncio.to_thread(self._run, call)
            else:
                text = await asyncio.wait_for(asyncio.to_thread(self._run, call), self._timeout_s)
        except RectoError as why:
            return ToolResult(call.id, call.name, why.message, is_error=True)
        except TimeoutError:
            return ToolResult(call.id, call.name, f"no result within {self._timeout_s:g} s", is_error=True)
        except Exception as why:  # whatever a tool does wrong must not end the chat
            return ToolResult(call.id, call.name, f"the tool failed: {type(why).__name__}: {why}", is_error=True)
        return ToolResult(call.id, call.name, text)

    def _run(self, call: ToolCall) -> str:
        runnable = self._runnables.get(call.name)
        if runnable is None:
            raise RectoError(f"there is no tool {call.name}; there are: {', '.join(self._runnables) or 'none'}")
        return runnable.run(_arguments(call, runnable.tool))


def _arguments(call: ToolCall, tool: Tool) -> Mapping[str, Any]:
    try:
        given = json.loads(call.arguments or "{}")
    except ValueError as why:
        raise RectoError(f"the arguments are not JSON ({why}); send an object as the schema says") from why
    if not isinstance(given, dict):
        raise RectoError("the arguments must be a JSON object as the schema says")
    missing = [name for name in tool.schema.get("required", ()) if name not in given]
    if missing:
        raise RectoError(f"missing argument: {', '.join(missing)}")
    return given
