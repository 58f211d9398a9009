"""Tail: what a server says on stderr: its last lines in memory, all of it bounded in a file, none on the terminal."""

import asyncio
import os
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Self

from recto.chat.message import now
from recto.text import clean

LINES, LONGEST = 20, 500
LARGEST = 1_000_000
"""Bytes of the log; then a new one is begun."""
_PAUSE_S = 0.1


class Tail:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines: deque[str] = deque(maxlen=LINES)
        self._rest = b""

    @property
    def lines(self) -> list[str]:
        last = _line(self._rest)
        return [*self._lines, last] if last else list(self._lines)

    @property
    def said(self) -> str:
        """The last three lines in one, or nothing."""
        return " / ".join(self.lines[-3:])

    async def drain(self, stream: asyncio.StreamReader) -> None:
        with _Log(self._path) as log:
            while chunk := await stream.read(65536):
                self._take(chunk)
                if log.write(chunk):
                    # a server that writes without end shall not take all of the processor
                    await asyncio.sleep(_PAUSE_S)

    def _take(self, chunk: bytes) -> None:
        first, *more = chunk.split(b"\n")
        self._rest = (self._rest + first)[: 4 * LONGEST]
        if not more:
            return
        for line in (self._rest, *more[:-1][-LINES:]):
            if told := _line(line):
                self._lines.append(told)
        self._rest = more[-1][: 4 * LONGEST]


class _Log:
    """Appended to, for a second process may have a server of the same name. One that is full is set aside, in the
    place of the one before."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = self._opened()
        self.write(f"[{now()}: started by process {os.getpid()}]\n".encode())

    def write(self, chunk: bytes) -> bool:
        """Whether it was full."""
        if is_full := self._file.tell() + len(chunk) > LARGEST:
            self._file.close()
            with suppress(OSError):
                self._path.replace(self._path.with_suffix(".old.log"))
            self._file = self._opened()
        with suppress(OSError):  # a full disk must not stop a server from talking
            self._file.write(chunk)
        return is_full

    def _opened(self) -> BinaryIO:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            return open(os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab", buffering=0)
        except OSError:
            return open(os.devnull, "ab", buffering=0)  # a log that cannot be written is no reason not to start

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def _line(raw: bytes) -> str:
    text = clean(raw)[0].strip()
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
