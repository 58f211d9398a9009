"""Seen: what is let through to the session, and what is told of the rest."""

import asyncio
from pathlib import Path

import pytest

from recto.servers.seen import RAW, Seen
from recto.servers.tail import LINES, LONGEST, Tail


@pytest.fixture
def seen(tmp_path: Path) -> Seen:
    return Seen("x", Tail(tmp_path / "x.log"), lambda: None)


def test_what_a_result_asks_for_is_told_too(seen: Seen) -> None:
    wishes = {"a": {"method": "elicitation/create"}, "b": "nothing", "c": {"method": "roots/list"}}
    result = {"resultType": "input_required", "inputRequests": wishes}
    assert seen.result(1, result) is result
    assert seen.take_news() == [
        "the MCP server x asked to put a question to you: refused",
        "the MCP server x asked to do None: refused",
        "the MCP server x asked to see your folders: refused",
    ]
    assert seen.take_news() == []


def test_only_the_answer_to_a_list_is_mended(seen: Seen) -> None:
    tools = [{"name": "a", "inputSchema": 7}, 3]
    seen.requested(1, "tools/list")
    seen.requested(2, "tools/call")
    assert seen.result(2, {"tools": tools}) == {"tools": tools}
    mended = {"tools": [{"name": "a", "inputSchema": {"type": "object"}}], "_meta": {RAW: tools}}
    assert seen.result(1, {"tools": tools}) == mended
    assert seen.result(1, {"tools": tools}) == {"tools": tools}


def test_a_server_that_thinks_of_ever_new_wishes_is_not_told_about_for_ever(seen: Seen) -> None:
    for number in range(1_000):
        seen.asked(1, f"wish/{number}")
        seen.answered(1)
    assert len(seen.take_news()) == 100
    assert not seen.broken


def drained(path: Path, *chunks: bytes) -> Tail:
    async def drain() -> Tail:
        stream, tail = asyncio.StreamReader(), Tail(path)
        for chunk in chunks:
            stream.feed_data(chunk)
        stream.feed_eof()
        await tail.drain(stream)
        return tail

    return asyncio.run(drain())


def test_the_last_lines_are_remembered_and_long_ones_cut(tmp_path: Path) -> None:
    lines = [f"line {number}\n".encode() for number in range(100)]
    tail = drained(tmp_path / "a" / "x.log", *lines, b"\xff" + b"y" * 10_000, b"\n\n", b"the end")
    assert len(tail.lines) == LINES + 1
    assert (len(tail.lines[-2]), tail.lines[-1]) == (LONGEST, "the end")
    assert tail.said.startswith("line 99 / \N{REPLACEMENT CHARACTER}y")


def test_a_log_that_cannot_be_written_is_no_reason_to_fail(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert drained(tmp_path / "file" / "x.log", b"said\n").said == "said"
