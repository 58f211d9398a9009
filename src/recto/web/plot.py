"""Plot: bars, lines and graphs, drawn in the browser with its own colours, light and dark. Values only.

Texts reach the browser as data: the plot writes them on a canvas, never as HTML.
"""

from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, to_builtins
from nicegui.element import Element
from nicegui.elements import echart
from nicegui.events import GenericEventArguments

LIBRARY = Path(echart.__file__ or "").parent / "dist"
"""ECharts, as NiceGUI brings it."""
Colour = Literal["accent", "soft", "good", "warn", "bad", "history", "rules", "tools", "memory", "summary", "system"]


class Series(Struct, frozen=True):
    name: str
    data: Sequence[float | None]
    kind: Literal["bar", "line", "marks", "points"] = "bar"
    """A line joins what follows each other in time; models and strategies have points."""
    colour: Colour = "accent"
    stack: str = ""
    right: bool = False
    """Measured on the axis at the right."""


class PlotData(Struct, frozen=True):
    label: str
    """What the plot shows, for those who do not see it."""
    names: Sequence[str]
    """Of the places on the horizontal axis."""
    series: Sequence[Series]
    across: str = ""
    up: str = ""
    up_right: str = ""


class GraphNode(Struct, frozen=True):
    id: str
    name: str
    size: float
    group: int
    is_gone: bool = False
    is_found: bool = False
    """Matches what the user looks for."""


class GraphData(Struct, frozen=True):
    label: str
    nodes: Sequence[GraphNode]
    lines: Sequence[tuple[int, int, int]]
    """By the places of two nodes, and how strong."""
    groups: Sequence[str]


Chosen = Callable[[str], Coroutine[Any, Any, None]]


class Plot(Element, component="assets/plot.js", esm={"nicegui-echart": str(LIBRARY)}):
    def __init__(self, chosen: Chosen | None = None) -> None:
        super().__init__()
        self._props["plot"], self._props["graph"] = None, None
        if chosen:
            self.on("chosen", _hearing(chosen))

    def show(self, plot: PlotData | None) -> None:
        self._props["plot"] = to_builtins(plot) if plot else None
        self.update()

    def show_graph(self, graph: GraphData | None) -> None:
        self._props["graph"] = to_builtins(graph) if graph else None
        self.update()


def _hearing(chosen: Chosen) -> Callable[[GenericEventArguments], Coroutine[Any, Any, None]]:
    async def heard(event: GenericEventArguments) -> None:
        if isinstance(event.args, str):
            await chosen(event.args)

    return heard
