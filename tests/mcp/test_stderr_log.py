"""StderrLog: the last lines stay in memory, and a log that cannot be written is no error."""

import asyncio
from pathlib import Path

from recto.mcp.connection_state import MAX_LINE_CHARS, MAX_LINES, StderrLog


def drained(path: Path, *chunks: bytes) -> StderrLog:
    async def drain() -> StderrLog:
        stream, log = asyncio.StreamReader(), StderrLog(path)
        for chunk in chunks:
            stream.feed_data(chunk)
        stream.feed_eof()
        await log.drain(stream)
        return log

    return asyncio.run(drain())


def test_the_last_lines_are_kept_and_long_ones_cut(tmp_path: Path) -> None:
    lines = [f"line {number}\n".encode() for number in range(100)]
    log = drained(tmp_path / "a" / "x.log", *lines, b"\xff" + b"y" * 10_000, b"\n\n", b"the end")
    assert len(log.lines) == MAX_LINES + 1
    assert (len(log.lines[-2]), log.lines[-1]) == (MAX_LINE_CHARS, "the end")
    assert log.last_lines.startswith("line 99 / \N{REPLACEMENT CHARACTER}y")


def test_a_log_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert drained(tmp_path / "file" / "x.log", b"said\n").last_lines == "said"
