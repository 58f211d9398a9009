"""Tail: what a server says on stderr: its last lines in memory, all of it bounded in a file, none on the terminal."""

import asyncio
import os
from collections import deque
from pathlib import Path
from typing import BinaryIO

from recto.text import clean

LINES, LONGEST = 20, 500
LARGEST = 1_000_000
"""Bytes of the log; then it begins anew."""
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
        with self._opened() as file:
            written = 0
            while chunk := await stream.read(65536):
                self._take(chunk)
                if written + len(chunk) > LARGEST:
                    file.seek(0)
                    file.truncate()
                    written = file.write(b"[what came before is not kept]\n")
                    # a server that writes without end shall not take all of the processor
                    await asyncio.sleep(_PAUSE_S)
                written += file.write(chunk)
                file.flush()

    def _take(self, chunk: bytes) -> None:
        first, *more = chunk.split(b"\n")
        self._rest = (self._rest + first)[: 4 * LONGEST]
        if not more:
            return
        for line in (self._rest, *more[:-1][-LINES:]):
            if told := _line(line):
                self._lines.append(told)
        self._rest = more[-1][: 4 * LONGEST]

    def _opened(self) -> BinaryIO:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            return open(os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb")
        except OSError:
            return open(os.devnull, "wb")  # a log that cannot be written is no reason not to start


def _line(raw: bytes) -> str:
    text = clean(raw)[0].strip()
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
