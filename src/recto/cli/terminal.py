"""The terminal itself: keys, signals, the user's editor, file links, progress bars and text that is safe to show; and
typeahead, which reads what is typed during a reply.

Knows no conversation. `recto --help` imports this module, so it imports nothing heavy.
"""

import codecs
import os
import re
import select
import signal
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from recto.cli import show
from recto.errors import Invalid, RectoError

if TYPE_CHECKING:
    from click._termui_impl import ProgressBar


# How stdin fails when it is closed or not a terminal.
UNUSABLE = (AttributeError, OSError, ValueError, termios.error)
ENDING = (signal.SIGTERM, signal.SIGHUP)
# A second signal within this time is ignored, so that the first can close everything.
CLOSING_S = 10.0

InterruptHandler = Callable[[int, FrameType | None], object]
Tell = Callable[[int, int], None]
# Keys that arrive as several characters: Alt-Enter, up arrow, and all others, which are ignored.
_SEQUENCE = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|O[A-Za-z]|[^\[O])")
_NEW_LINE, _UP = ("\x1b\r", "\x1b\n"), ("\x1b[A", "\x1bOA")
_ERASE, _ERASE_WORD, _ERASE_LINE = ("\x7f", "\b"), "\x17", "\x15"
READ_SIZE = 4096


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


@contextmanager
def bar(label: str) -> Iterator[Tell | None]:
    """A progress bar on stderr; yields a function of the number done and the total. The bar appears at its first call.
    Yields None if stderr is not a terminal."""
    if not sys.stderr.isatty() or show.is_plain():
        yield None
        return
    with ExitStack() as stack:
        drawn: list[ProgressBar[int]] = []

        def tell(done: int, total: int) -> None:
            if not drawn:
                bar: ProgressBar[int] = click.progressbar(length=total, label=label, file=sys.stderr, show_pos=True)
                drawn.append(stack.enter_context(bar))
            drawn[0].length = total
            drawn[0].update(done - drawn[0].pos)

        yield tell


# -- typeahead


class Typeahead:
    def __init__(
        self,
        take: Callable[[str], object],
        take_back: Callable[[], str | None],
        keep: Callable[[str], object],
        text: str = "",
    ) -> None:
        """`take` gets each finished line; `take_back` returns the last one, for up arrow; `keep` gets the rest at the
        end. `text` was typed before."""
        self._take, self._take_back, self._keep = take, take_back, keep
        self.text = text
        """Typed text that was not handed over yet."""
        self._left = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._thread: threading.Thread | None = None
        self._before: list[Any] | None = None
        self._wake: tuple[int, int] | None = None

    def start(self) -> None:
        """Start reading key by key; Ctrl-C is still a signal. Does nothing without a keyboard."""
        try:
            keyboard = sys.stdin.fileno()
            self._before = termios.tcgetattr(keyboard)
        except UNUSABLE:
            return
        local = self._before[3] & ~(termios.ECHO | termios.ICANON)
        termios.tcsetattr(keyboard, termios.TCSADRAIN, [*self._before[:3], local, *self._before[4:]])
        self._wake = os.pipe()
        self._thread = threading.Thread(target=self._read, args=(keyboard, self._wake[0]), name="recto-keys")
        self._thread.start()

    def stop(self) -> None:
        """Restore the terminal."""
        if self._thread is None or self._wake is None or self._before is None:
            return
        os.write(self._wake[1], b".")
        self._thread.join()
        for end in self._wake:
            os.close(end)
        self._thread = self._wake = None
        self._keep(self.text)
        with suppress(*UNUSABLE):
            termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, self._before)

    def _read(self, keyboard: int, wake: int) -> None:
        while wake not in (ready := select.select([keyboard, wake], [], [])[0]):
            try:
                keys = os.read(ready[0], READ_SIZE)
            except OSError:
                return
            if not keys:
                return
            self.feed(self._decoder.decode(keys))

    def feed(self, keys: str) -> None:
        """Handle keys as they arrived. Line ends among them were pasted; only a final one hands the line over."""
        keys, self._left = self._left + keys, ""
        at = 0
        while at < len(keys):
            if keys[at] == "\x1b":
                found = _SEQUENCE.match(keys, at)
                if found is None:
                    self._left = keys[at:]
                    return
                self._press_sequence(found[0])
                at = found.end()
            else:
                self._press(keys[at], is_last=at == len(keys) - 1)
                at += 1

    def _press(self, key: str, *, is_last: bool) -> None:
        if key in "\r\n":
            if is_last:
                self._hand_over()
            elif self.text:
                self.text += "\n"
        elif key in _ERASE:
            self.text = self.text[:-1]
        elif key == _ERASE_LINE:
            self.text = ""
        elif key == _ERASE_WORD:
            self.text = re.sub(r"\S+\s*$", "", self.text)
        elif key.isprintable() or key == "\t":
            self.text += key

    def _press_sequence(self, keys: str) -> None:
        if keys in _NEW_LINE:
            self.text += "\n"
        elif keys in _UP and not self.text:
            self.text = self._take_back() or ""

    def _hand_over(self) -> None:
        text, self.text = self.text, ""
        if text.strip():
            try:
                self._take(text.strip())
            except RectoError:  # keep it visible
                self.text = text
