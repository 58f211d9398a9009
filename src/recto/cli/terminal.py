"""The terminal itself: keys, signals, the user's editor, file links, progress bars and text that is safe to show.

Knows no conversation. `recto --help` imports this module, so it imports nothing heavy.
"""

import signal
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click

from recto.cli import show
from recto.errors import Invalid

if TYPE_CHECKING:
    from rich.progress import Progress

# How stdin fails when it is closed or not a terminal.
UNUSABLE = (AttributeError, OSError, ValueError, termios.error)
ENDING = (signal.SIGTERM, signal.SIGHUP)
# A second signal within this time is ignored, so that the first can close everything.
CLOSING_S = 10.0

InterruptHandler = Callable[[int, FrameType | None], object]
Tell = Callable[[int, int], None]


# -- text


def revealed(text: str, but: str = "") -> str:
    """The text with every unprintable character escaped, except those in `but`: nothing that a user has to judge may be
    hidden."""
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() or sign in but else _number(sign) for sign in text)


def _number(sign: str) -> str:
    return f"\\u{ord(sign):04x}" if ord(sign) < 0x10000 else f"\\U{ord(sign):08x}"


def in_one_line(path: str) -> str:
    """A path without control characters: a file name may contain line ends."""
    return show.visible(path).replace("\n", "\N{REPLACEMENT CHARACTER}")


def to_file(shown: str, place: Path, *, is_terminal: bool | None = None) -> str:
    """The text as a link to the file, or the text alone. `is_terminal` defaults to stdout's."""
    if is_terminal is None:
        is_terminal = sys.stdout.isatty() and not show.is_plain()
    text = in_one_line(shown)
    return f"\x1b]8;;{place.as_uri()}\x1b\\{text}\x1b]8;;\x1b\\" if is_terminal else text


# -- keys


@contextmanager
def echo(is_on: bool) -> Iterator[None]:
    """Turn the echo of keys on or off. While it is off, pressed keys wait for the next prompt."""
    try:
        place = sys.stdin.fileno()
        before = termios.tcgetattr(place)
    except UNUSABLE:
        yield
        return
    local = before[3] | termios.ECHO if is_on else before[3] & ~termios.ECHO
    termios.tcsetattr(place, termios.TCSADRAIN, [*before[:3], local, *before[4:]])
    try:
        yield
    finally:
        with suppress(termios.error):
            termios.tcsetattr(place, termios.TCSADRAIN, before)


def forget_keys() -> None:
    """Drop keys pressed before a question was shown, so that they do not answer it."""
    with suppress(*UNUSABLE):
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


# -- signals


def end_in_order() -> None:
    """Turn SIGTERM and SIGHUP into SystemExit in the main thread, so that MCP servers stop and messages are stored. A
    signal that is already ignored, as under nohup, stays ignored."""
    began: list[float] = []

    def end(number: int, frame: FrameType | None) -> None:
        if began and time.monotonic() - began[-1] < CLOSING_S:
            return
        began.append(time.monotonic())
        raise SystemExit(128 + number)

    for each in ENDING:
        if signal.getsignal(each) is signal.SIG_DFL:
            signal.signal(each, end)


def ignore_interrupt(number: int, frame: FrameType | None) -> None:
    """Ignore Ctrl-C. Unlike SIG_IGN, child processes do not inherit this."""


@contextmanager
def on_interrupt(handler: InterruptHandler) -> Iterator[None]:

    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


# -- the user's editor


def edited(text: str) -> str | None:
    """Let the user edit the text; None if it is unchanged. Invalid if the editor fails."""
    from recto.base.text import clean  # only to edit

    with on_interrupt(ignore_interrupt):
        try:
            changed = click.edit(f"{text.rstrip()}\n".encode(), extension=".md")
        except (click.ClickException, OSError, ValueError) as why:
            said = why.format_message() if isinstance(why, click.ClickException) else str(why)
            raise Invalid(f"the text could not be edited ({said}): set EDITOR to an editor that works") from why
    new = clean(changed)[0].strip() if changed is not None else text.strip()
    return None if new == text.strip() else new


# -- progress

SUMMING = "summing up conversations"
"""The label of the bar while reports sum up conversations."""


@contextmanager
def bar(label: str) -> Iterator[Tell | None]:
    """A progress bar on stderr; yields a function of the number done and the total. The bar appears at its first call.
    Yields None if stderr is not a terminal."""
    if not sys.stderr.isatty() or show.is_plain():
        yield None
        return
    with ExitStack() as stack:
        drawn: list[Progress] = []

        def tell(done: int, total: int) -> None:
            if not drawn:
                drawn.append(stack.enter_context(_new_progress()))
                drawn[0].add_task(label)
            drawn[0].update(drawn[0].task_ids[0], completed=done, total=total)

        yield tell


def _new_progress() -> "Progress":
    # rich: a tenth of a second
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=show.console(err=True), transient=True)
