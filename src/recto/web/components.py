"""Elements that run in the browser: HTML with actions, the composer, plots.

Texts of plots reach the browser as data and are drawn on a canvas, never as HTML.
"""

import inspect
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, convert, to_builtins
from nicegui.element import Element
from nicegui.elements import echart
from nicegui.events import GenericEventArguments

Action = dict[str, Any]
"""An action of the user: `do` names it, the rest is the data of the button or form."""
Act = Callable[[Action], Coroutine[Any, Any, None]]
Handler = Callable[[], Awaitable[object]]


def find_handler(actor: object, action: Action) -> Handler | None:
    """The method of an action (`do_save_fact` for `save-fact`), with the data that its parameters name; or None."""
    method = getattr(actor, "do_" + str(action.get("do")).replace("-", "_"), None)
    if method is None:
        return None
    values: dict[str, Any] = {}
    for name, parameter in inspect.signature(method).parameters.items():
        given = action.get(name)
        if parameter.annotation == Action:
            values[name] = action
        elif given not in (None, "") or parameter.default is parameter.empty:
            values[name] = convert("" if given is None else given, parameter.annotation, strict=False)
    return partial(method, **values)


class ActingElement(Element):
    """An element whose events are actions."""

    def __init__(self, act: Act | None, **props: Any) -> None:
        super().__init__()
        self._props.update(props)
        if act:
            self.on("do", partial(_hear, act))


async def _hear(act: Act, event: GenericEventArguments) -> None:
    if isinstance(event.args, dict):
        await act(event.args)


class Fragment(ActingElement, component="assets/fragment.js"):
    """HTML from a template. Elements with `data-do` act when they are clicked, submitted or changed."""

    def __init__(self, html: str = "", act: Act | None = None, *, tag: str = "div") -> None:
        super().__init__(act, html=html, tag=tag)

    def show(self, html: str) -> None:
        """Replace the HTML; open folds stay open."""
        if html != self._props["html"]:
            self._props["html"] = html
            self.update()


class Composer(ActingElement, component="assets/composer.js"):
    """The message field. The browser keeps the text until it is sent, even across a reload."""

    def __init__(self, key: str, act: Act, *, running: bool) -> None:
        super().__init__(act, start=key, busy=running)

    def set_place(self, key: str, *, running: bool, is_same: bool = False) -> None:
        """Set the conversation, which comes back with the message. With `is_same` it only got a number, and the text
        stays."""
        self.run_method("setPlace", key, running, is_same)

    def accept(self, key: str) -> None:
        """Confirm a message, which the browser keeps until then."""
        self.run_method("accepted", key)

    def offer(self, request: int, found: Sequence[dict[str, str]]) -> None:
        """Offer completions of the typed text."""
        self.run_method("offer", request, list(found))

    def edit(self, kind: str, id: str, words: str, text: str) -> None:
        """Edit an earlier message; the draft comes back afterwards."""
        self.run_method("edit", kind, id, words, text)

    def put(self, text: str, key: str) -> None:
        """Add a text to the draft of a conversation, now or once it is shown."""
        self.run_method("put", text, key)


class GraphNode(Struct, frozen=True):
    id: str
    name: str
    size: float
    group: int
    is_gone: bool = False
    is_found: bool = False
    """True if it matches the search."""


Colour = Literal["accent", "soft", "good", "warn", "tools"]


class Series(Struct, frozen=True):
    name: str
    data: Sequence[float | None]
    kind: Literal["bar", "line", "marks"] = "bar"
    colour: Colour = "accent"
    stack: str = ""
    optional: bool = False
    """Leave it out if all values are 0 or missing."""


# ECharts, bundled with NiceGUI.
LIBRARY = Path(echart.__file__ or "").parent / "dist"


class Plot(ActingElement, component="assets/plot.js", esm={"nicegui-echart": str(LIBRARY)}):
    """Bars and lines, or a graph whose nodes open notes, with a label for screen readers."""

    def __init__(self, act: Act | None = None) -> None:
        super().__init__(act, plot=None, graph=None)

    def show(self, label: str, names: Sequence[str], *series: Series, axes: tuple[str, str]) -> None:
        """Draw series over `names`; `axes` has the titles of the bottom and left axes. Draws nothing if all values are
        0 or missing."""
        shown = [each for each in series if any(each.data) or not each.optional]
        plot = {"label": label, "names": names, "across": axes[0], "up": axes[1]}
        is_empty = not any(any(each.data) for each in series)
        self._props["plot"] = None if is_empty else plot | {"series": to_builtins(shown)}
        self.update()

    def show_graph(
        self, label: str, nodes: Sequence[GraphNode], lines: Sequence[tuple[int, int, int]], groups: Sequence[str]
    ) -> None:
        """Draw a graph; `lines` have the indexes of two nodes and a weight."""
        graph = {"label": label, "nodes": to_builtins(nodes), "lines": lines, "groups": groups}
        self._props["graph"] = graph if nodes else None
        self.update()
