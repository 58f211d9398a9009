"""Which listener hears a turn: the plain one, or the one for terminals."""

import sys
from collections.abc import Callable

from recto.cli import show
from recto.cli.listen import KEPT, Lines, Listener


def open_listener(
    *,
    thinking: bool = False,
    shows_context: bool = False,
    stopped: str = KEPT,
    starting: Callable[[], str] = lambda: "",
) -> Listener:
    """The one that suits where stdout leads; `stopped` is what Ctrl-C is answered with, `starting` tells what a wait is
    for."""
    if not sys.stdout.isatty():
        return Lines(shows_context=shows_context)
    console = show.console()
    if console.is_dumb_terminal:
        return Lines(shows_context=shows_context)
    from recto.cli.screen import Screen  # rich: a tenth of a second

    return Screen(console, thinking=thinking, shows_context=shows_context, stopped=stopped, starting=starting)
