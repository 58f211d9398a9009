"""Which messages of a server reach the session, what the user learns about the others, and what is kept of stderr."""

import asyncio
from pathlib import Path

import pytest

from recto.mcp.connection_state import MAX_LINE_CHARS, MAX_LINES, RAW_TOOLS, ConnectionState, StderrLog


@pytest.fixture
def state(tmp_path: Path) -> ConnectionState:
    return ConnectionState("x", StderrLog(tmp_path / "x.log"), lambda: None)


def test_requests_inside_a_result_are_reported(state: ConnectionState) -> None:
    wishes = {"a": {"method": "elicitation/create"}, "b": "nothing", "c": {"method": "roots/list"}}
    result = {"resultType": "input_required", "inputRequests": wishes}
    assert state.on_result(1, result) is result
    assert state.take_notices() == [
        "the MCP server x asked to ask you a question: refused",
        "the MCP server x asked to use None: refused",
        "the MCP server x asked to list your folders: refused",
    ]
    assert state.take_notices() == []


def test_only_the_result_of_a_list_request_is_simplified(state: ConnectionState) -> None:
    tools = [{"name": "a", "inputSchema": 7}, 3]
    state.on_request_sent(1, "tools/list")
    state.on_request_sent(2, "tools/call")
    assert state.on_result(2, {"tools": tools}) == {"tools": tools}
    mended = {"tools": [{"name": "a", "inputSchema": {"type": "object"}}], "_meta": {RAW_TOOLS: tools}}
    assert state.on_result(1, {"tools": tools}) == mended
    assert state.on_result(1, {"tools": tools}) == {"tools": tools}


def test_the_number_of_notices_about_a_server_is_limited(state: ConnectionState) -> None:
    for number in range(1_000):
        state.on_request_received(1, f"wish/{number}")
        state.on_response_sent(1)
    assert len(state.take_notices()) == 100
    assert not state.violation


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
