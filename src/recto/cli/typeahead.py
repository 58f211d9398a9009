"""Typeahead: reads what is typed during a reply. A line grows below the reply; Enter hands it over.

Knows no conversation. Another thread draws the reply, so nothing here writes to the terminal.
"""

import codecs
import os
import re
import select
import sys
import termios
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from recto.cli.terminal import UNUSABLE
from recto.errors import RectoError

# Keys that arrive as several characters: Alt-Enter, up arrow, and all others, which are ignored.
_SEQUENCE = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|O[A-Za-z]|[^\[O])")
_NEW_LINE, _UP = ("\x1b\r", "\x1b\n"), ("\x1b[A", "\x1bOA")
_ERASE, _ERASE_LINE = ("\x7f", "\b"), "\x15"
READ_SIZE = 4096


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
