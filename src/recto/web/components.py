"""The parts of the page that run in the browser: HTML with buttons that act, the list of messages, the composer."""

from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import msgspec
from nicegui.element import Element
from nicegui.events import GenericEventArguments

from recto.web.live_turn import TurnChange

Deed = dict[str, Any]
"""What the user did: `do` names it, the rest are the data of the button or form."""
Act = Callable[[Deed], Coroutine[Any, Any, None]]


class Fragment(Element, component="assets/fragment.js"):
    """HTML from a template. Whatever in it has `data-do` acts when it is clicked, sent or changed."""

    def __init__(self, html: str = "", act: Act | None = None, *, tag: str = "div") -> None:
        super().__init__()
        self._props["html"], self._props["tag"] = html, tag
        if act:
            self.on("do", _acting(act))

    def show(self, html: str) -> None:
        """Puts other HTML in its place; what is open in it stays open."""
        if html != self._props["html"]:
            self._props["html"] = html
            self.update()


class MessageList(Element, component="assets/messages.js"):
    """Messages, older ones above, which are asked for when the user scrolls there; below them the running turn."""

    def __init__(self, items: Sequence[dict[str, str]], more: bool, act: Act) -> None:
        super().__init__()
        self._props["items"], self._props["more"] = list(items), more
        self.on("do", _acting(act))

    def show(self, items: Sequence[dict[str, str]], *, more: bool) -> None:
        """Another conversation, from its end."""
        self.run_method("show", list(items), more)

    def patch(self, order: Sequence[str], changed: Sequence[dict[str, str]], *, more: bool) -> None:
        """The messages in this order; those that are new or have changed, with their HTML."""
        self.run_method("patch", list(order), list(changed), more)

    def draw(self, changes: Sequence[TurnChange]) -> None:
        self.run_method("draw", msgspec.to_builtins(changes))

    def set_turn(self, changes: Sequence[TurnChange] | None, failure: str) -> None:
        """The running turn as a whole, or None where nothing runs."""
        self.run_method("setTurn", None if changes is None else msgspec.to_builtins(changes), failure)

    def jump(self, id: str) -> None:
        self.run_method("jump", id)


class Composer(Element, component="assets/composer.js"):
    """Where the user writes. The text stays in the browser until it is sent, and over a reload."""

    def __init__(self, key: str, visit: int, act: Act, *, running: bool) -> None:
        super().__init__()
        self._props["start"], self._props["visit"], self._props["busy"] = key, visit, running
        self.on("do", _acting(act))

    def set_place(self, key: str, visit: int, *, running: bool, is_same: bool = False) -> None:
        """Which conversation is written to, and whether a reply is coming. The same one may have got a number: what is
        being written stays. `visit` comes back with what is sent."""
        self.run_method("setPlace", key, visit, running, is_same)

    def accept(self, key: str) -> None:
        """What was sent from there has arrived; until then the browser keeps it."""
        self.run_method("accepted", key)

    def offer(self, request: int, found: Sequence[dict[str, str]]) -> None:
        """Completions for what was typed."""
        self.run_method("offer", request, list(found))

    def edit(self, kind: str, id: str, words: str, text: str) -> None:
        """Another text for something that was said; what was being written comes back afterwards."""
        self.run_method("edit", kind, id, words, text)

    def put(self, text: str, key: str) -> None:
        """A text to go on from in a conversation, now or once it is shown; nothing that was typed is lost."""
        self.run_method("put", text, key)


def _acting(act: Act) -> Callable[[GenericEventArguments], Coroutine[Any, Any, None]]:
    async def heard(event: GenericEventArguments) -> None:
        if isinstance(event.args, dict):
            await act(event.args)

    return heard
