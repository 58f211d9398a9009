"""StderrLog: what a server writes to stderr: the last lines in memory, the rest in a log file of limited size."""

import asyncio
import os
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Self

from recto.chat.message import now
from recto.text import clean

MAX_LINES, MAX_LINE_CHARS = 20, 500
MAX_LOG_BYTES = 1_000_000
"""A log file that reaches this size is rotated."""
_PAUSE_S = 0.1


class StderrLog:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines: deque[str] = deque(maxlen=MAX_LINES)
        self._rest = b""

    @property
    def lines(self) -> list[str]:
        last = _clean_line(self._rest)
        return [*self._lines, last] if last else list(self._lines)

    @property
    def last_lines(self) -> str:
        """The last three lines as one text; empty where there are none."""
        return " / ".join(self.lines[-3:])

    async def drain(self, stream: asyncio.StreamReader) -> None:
        with _LogFile(self._path) as file:
            while chunk := await stream.read(65536):
                self._add(chunk)
                if file.write(chunk):
                    # a server that writes without end must not take the whole processor
                    await asyncio.sleep(_PAUSE_S)

    def _add(self, chunk: bytes) -> None:
        first, *more = chunk.split(b"\n")
        self._rest = (self._rest + first)[: 4 * MAX_LINE_CHARS]
        if not more:
            return
        for raw in (self._rest, *more[:-1][-MAX_LINES:]):
            if line := _clean_line(raw):
                self._lines.append(line)
        self._rest = more[-1][: 4 * MAX_LINE_CHARS]


class _LogFile:
    """Appends, because a second process may run a server of the same name. Keeps one rotated file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = self._open()
        self.write(f"[{now()}: started by process {os.getpid()}]\n".encode())

    def write(self, chunk: bytes) -> bool:
        """Returns whether the file was full and had to be rotated."""
        if is_full := self._file.tell() + len(chunk) > MAX_LOG_BYTES:
            self._file.close()
            with suppress(OSError):
                self._path.replace(self._path.with_suffix(".old.log"))
            self._file = self._open()
        with suppress(OSError):  # a full disk must not block the server
            self._file.write(chunk)
        return is_full

    def _open(self) -> BinaryIO:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            return open(os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab", buffering=0)
        except OSError:
            return open(os.devnull, "ab", buffering=0)  # a server starts even if its log cannot be written

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def _clean_line(raw: bytes) -> str:
    text = clean(raw)[0].strip()
    return text if len(text) <= MAX_LINE_CHARS else text[: MAX_LINE_CHARS - 1] + "…"
