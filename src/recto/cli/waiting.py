"""Waiting: a spinner with a word and the seconds, once a wait is long enough to wonder."""

import time
from collections.abc import Callable

from rich.console import Console, ConsoleOptions, RenderResult
from rich.spinner import Spinner
from rich.text import Text

from recto.cli.show import visible

PATIENCE_S = 0.3
"""Nothing is said about a wait that is shorter."""

Starting = Callable[[], str]
"""What is being started and may be waited for, in words; empty where nothing is."""


class Waiting:
    def __init__(self, label: str, instead: Starting | None = None) -> None:
        self.label = label
        self._instead = instead
        self._since = time.monotonic()
        self._spinner = Spinner("dots", style="dim")

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        waited_s = time.monotonic() - self._since
        if self.label and waited_s >= PATIENCE_S:
            seconds = f" {waited_s:.0f} s" if waited_s >= 3 else ""
            label = (self._instead and self._instead()) or self.label
            self._spinner.update(text=Text(f"{visible(label)}…{seconds}", "dim"))
            yield self._spinner
