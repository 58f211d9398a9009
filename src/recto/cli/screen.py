"""The listener for terminals: finished Markdown is printed for good, only the unfinished tail is redrawn.

Nothing ever scrolls while it may still change, so a reply longer than the screen is neither torn nor doubled.
"""

import sys
import termios
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from types import TracebackType
from typing import Self

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.live import Live
from rich.rule import Rule
from rich.segment import Segment
from rich.spinner import Spinner
from rich.text import Text

from recto.cli.listen import in_words
from recto.cli.markdown import Growing, Page, last_lines
from recto.cli.picture import draw_window
from recto.cli.show import visible
from recto.events import (
    ContextCompacted,
    Event,
    Replied,
    Sent,
    TextDelta,
    ThinkingDelta,
    ToolStarted,
)

REFRESHES_PER_S = 12
PATIENCE_S = 0.3
"""Nothing is said about a wait that is shorter."""


class Screen:
    def __init__(self, console: Console, *, thinking: bool = False, shows_context: bool = False) -> None:
        self._console = console
        self._thinking = thinking
        self._shows_context = shows_context
        self._reply = Growing()
        self._thought = ""
        self._last = ""
        """What was printed last, a block of the reply or a line beside it: an empty line goes between the two."""
        self._waiting = Waiting("getting ready")
        self._live = Live(
            self, console=console, auto_refresh=False, transient=True, redirect_stdout=False, redirect_stderr=False
        )
        # rich's own refreshing may draw between the two halves of a print, which then erases the wrong lines
        self._lock = threading.Lock()
        self._is_over = threading.Event()
        self._ticker = threading.Thread(target=self._tick, name="recto-screen", daemon=True)
        self._open = ExitStack()

    def __enter__(self) -> Self:
        self._open.enter_context(silent_keys())
        self._open.enter_context(self._live)
        self._ticker.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._is_over.set()
        self._ticker.join()
        rest, self._reply = self._reply.end(), Growing()
        self._waiting = Waiting("")
        self._open.close()
        self._end_thought()
        self._print_blocks(rest)
        if kind is KeyboardInterrupt:
            self._line("stopped; what came is kept")
        elif kind is not None and self._last:
            self._console.print()

    def _tick(self) -> None:
        while not self._is_over.wait(1 / REFRESHES_PER_S):
            with self._lock:
                self._live.refresh()

    def hear(self, event: Event) -> None:
        with self._lock:
            self._tell(event)
            self._wait_for(event)

    def _tell(self, event: Event) -> None:
        match event:
            case TextDelta(text=text):
                self._end_thought()
                self._print_blocks(self._reply.add(visible(text)))
            case ThinkingDelta(text=text) if self._thinking:
                self._think(visible(text))
            case Replied():
                self._end_thought()
                self._print_blocks(self._reply.end())
            case ContextCompacted():
                self._print_line(Rule(Text(in_words(event) or "", "dim"), style="dim"))
            case Sent() if self._shows_context:
                self._shows_context = False
                draw_window(self._console, event.window.to_json())
            case _:
                if words := in_words(event):
                    self._line(words)

    def _wait_for(self, event: Event) -> None:
        label = {Sent: "thinking", ToolStarted: "working"}.get(type(event), self._waiting.label)
        if label != self._waiting.label or isinstance(event, TextDelta | ThinkingDelta):
            self._waiting = Waiting(label)

    def _print_blocks(self, blocks: list[str]) -> None:
        for block in blocks:
            if self._last:
                self._console.print()
            self._console.print(Page(block))
            self._last = "block"

    def _think(self, text: str) -> None:
        *lines, self._thought = (self._thought + text).split("\n")
        for line in lines:
            self._print_line(Text(line, "dim italic"))

    def _end_thought(self) -> None:
        if self._thought:
            self._think("\n")

    def _line(self, text: str) -> None:
        self._print_line(Text(f"· {visible(text)}", "dim"))

    def _print_line(self, line: RenderableType) -> None:
        if self._last == "block":
            self._console.print()
        self._console.print(line)
        self._last = "line"

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The bottom of the screen: what may still change."""
        most = max(4, console.size.height - 3)
        if tail := self._reply.tail:
            if self._last:
                yield Text()
            yield Bottom(Page(last_lines(tail, most)), most)
        elif self._thought:
            yield Bottom(Text(self._thought, "dim italic"), most)
        else:
            yield self._waiting


class Bottom:
    """Only the last lines of something, however tall it is."""

    def __init__(self, shown: RenderableType, most: int) -> None:
        self._shown, self._most = shown, most

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = console.render_lines(self._shown, options, pad=False)
        for line in lines[-self._most :]:
            yield from line
            yield Segment.line()


class Waiting:
    """A spinner with a word and the seconds, once the wait is long enough to wonder."""

    def __init__(self, label: str) -> None:
        self.label = label
        self._since = time.monotonic()
        self._spinner = Spinner("dots", style="dim")

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        waited_s = time.monotonic() - self._since
        if self.label and waited_s >= PATIENCE_S:
            seconds = f" {waited_s:.0f} s" if waited_s >= 3 else ""
            self._spinner.update(text=Text(f"{self.label}…{seconds}", "dim"))
            yield self._spinner


@contextmanager
def silent_keys() -> Iterator[None]:
    """Keys that are pressed meanwhile do not show up in the middle of the reply; they wait for the next prompt."""
    try:
        place = sys.stdin.fileno()
        before = termios.tcgetattr(place)
    except (OSError, ValueError, termios.error):
        yield  # no terminal to quieten
        return
    quiet = [*before[:3], before[3] & ~termios.ECHO, *before[4:]]
    termios.tcsetattr(place, termios.TCSADRAIN, quiet)
    try:
        yield
    finally:
        with suppress(termios.error):
            termios.tcsetattr(place, termios.TCSADRAIN, before)
