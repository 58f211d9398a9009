"""A pseudo-terminal with the real command behind it."""

import os
import pty
import re
import select
import signal
import termios
import time
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from tests.cli.preloaded import Preloaded

PATIENCE_S = 60.0
WHERE = "\x1b[6n"
# What a prompt turns on when it begins to read keys.
PROMPT = "\x1b[?2004h"
_ESCAPES = re.compile(r"\x1b(\[[0-9;?]*[ -/]*[@-~]|\][^\x07]*\x07|[=>()][0-9AB]?)")


class Terminal:
    starter: ClassVar[Preloaded]

    def __init__(self, *args: str, columns: int = 100) -> None:
        self._master, screen = pty.openpty()
        termios.tcsetwinsize(screen, (30, columns))
        self._command = self.starter.start(args, screen)
        os.close(screen)
        self.process = self._command.process
        self._code: int | None = None
        self._seen = ""
        self.raw = ""
        """Everything that was sent, as it was sent."""

    def type(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def wait_for(self, text: str) -> str:
        """What the screen has been sent up to and with this text; each part is seen once."""
        until = time.monotonic() + PATIENCE_S
        while text not in (plain := _ESCAPES.sub("", self._seen)):
            assert time.monotonic() < until, f"{text!r} never came; there is: {plain!r}"
            assert self._read(), f"{text!r} never came; at the end there is: {plain!r}"
        place = plain.index(text) + len(text)
        self._seen = plain[place:]
        return plain[:place]

    def wait_for_all(self, *texts: str) -> str:
        """What the screen has been sent once all of these have come, in whatever order threads bring them."""
        until = time.monotonic() + PATIENCE_S
        while missing := [text for text in texts if text not in _ESCAPES.sub("", self._seen)]:
            assert time.monotonic() < until, f"{missing} never came; there is: {self._seen!r}"
            assert self._read(), f"{missing} never came; at the end there is: {self._seen!r}"
        shown, self._seen = _ESCAPES.sub("", self._seen), ""
        return shown

    def wait_for_prompt(self) -> None:
        """Waits until keys are read: what a chat shows before its first prompt may look like one."""
        until = time.monotonic() + PATIENCE_S
        while PROMPT not in self.raw:
            assert time.monotonic() < until, f"no prompt came; there is: {self.raw!r}"
            assert self._read(), f"no prompt came; at the end there is: {self.raw!r}"
        self._seen = ""

    def settle(self) -> None:
        """Waits until the command sleeps: a question is shown a moment before the terminal is read, and a signal in
        between would wait for a key."""
        until, still, before = time.monotonic() + PATIENCE_S, 0, ""
        while still < 15:
            assert time.monotonic() < until, "it never came to rest"
            time.sleep(0.02)
            now = self._state()
            still = still + 1 if now.startswith("S") and now == before else 0
            before = now

    def _state(self) -> str:
        """Of the main thread: whether it sleeps (one that waits for a processor does not), and how long it has run."""
        fields = Path(f"/proc/{self.process}/task/{self.process}/stat").read_text().rpartition(")")[2].split()
        return " ".join((fields[0], *fields[11:13]))

    def _read(self) -> bool:
        if select.select([self._master], [], [], 1)[0]:
            try:
                self._take(os.read(self._master, 65536).decode("utf-8", "replace"))
            except OSError:  # how Linux says that the other side is gone
                return False
        return True

    def _take(self, text: str) -> None:
        """As a terminal does, it says where the cursor is when it is asked: the toolbar waits for that."""
        self._seen += text
        self.raw += text
        if self._seen.endswith(WHERE) or WHERE in text:
            self.type("\x1b[1;1R")

    def leave(self) -> None:
        """Ends the chat at its next prompt."""
        self.wait_for("› ")
        self.type("\x04")
        assert self.code() == 0

    def code(self) -> int:
        until = time.monotonic() + PATIENCE_S
        while self._read():
            if time.monotonic() > until:
                os.kill(self.process, signal.SIGKILL)
                raise AssertionError(f"it did not end; there is: {_ESCAPES.sub('', self._seen)!r}")
        return self._wait()

    def _wait(self) -> int:
        if self._code is None:
            self._code = self._command.wait()
        return self._code

    def close(self) -> None:
        if self._code is None:  # else its number may be another's by now
            with suppress(ProcessLookupError):
                os.kill(self.process, signal.SIGKILL)
            self._wait()
        os.close(self._master)
