"""CallerTools: the tools that a caller brings with one call and runs itself. They come last in the preamble."""

import re
from dataclasses import replace

from recto.errors import Invalid
from recto.settings import ToolSettings
from recto.sources.selection import OfferedTool, Selection, StablePicks
from recto.sources.tools import CallerTool
from recto.turn.pickers import Picker, TurnInput
from recto.turn.tool_filter import can_call

SERVER = "caller"
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class CallerTools(Picker):
    def __init__(self, turn: TurnInput, settings: ToolSettings) -> None:
        super().__init__()
        self._turn, self._settings = turn, settings

    async def stable(self) -> StablePicks:
        tools = self._turn.options.tools
        if wrong := next((tool.name for tool in tools if not _NAME.fullmatch(tool.name)), None):
            raise Invalid(f"a tool cannot be called {wrong!r}: use letters, digits, _ and -, at most 64", name=wrong)
        if tools and not can_call(self._turn.resolved, self._settings):
            return StablePicks(notes=(f"{self._turn.resolved.model.name} cannot call tools: yours are not offered",))
        given = [replace(tool, server=SERVER) for tool in {tool.name: tool for tool in tools}.values()]
        offered = [OfferedTool(CallerTool(tool), Selection(tool, "always", "given with this call")) for tool in given]
        return StablePicks(tools=tuple(offered))
