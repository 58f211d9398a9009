"""CallerTools: the tools that a caller brings with one call and runs itself. They come last in the preamble."""

from dataclasses import replace

from recto.settings import ToolSettings
from recto.sources.selection import OfferedTool, Selection, StablePicks
from recto.sources.tools import CallerTool
from recto.turn.pickers import Picker, TurnInput
from recto.turn.tool_filter import can_call

SERVER = "caller"


class CallerTools(Picker):
    def __init__(self, turn: TurnInput, settings: ToolSettings) -> None:
        super().__init__()
        self._turn, self._settings = turn, settings

    async def stable(self) -> StablePicks:
        tools = self._turn.options.tools
        if tools and not can_call(self._turn.resolved, self._settings):
            return StablePicks(notes=(f"{self._turn.resolved.model.name} cannot call tools: yours are not offered",))
        given = [replace(tool, server=SERVER) for tool in {tool.name: tool for tool in tools}.values()]
        offered = [OfferedTool(CallerTool(tool), Selection(tool, "always", "given with this call")) for tool in given]
        return StablePicks(tools=tuple(offered))
