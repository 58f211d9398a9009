"""The stdio transport: lines from any chunks, messages from valid lines, and no process left behind. Errors that Recto
answers in the server's place go to the call that the line belongs to, and to no other."""

import asyncio
import json
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCError, JSONRPCRequest
from tests.mcp.conftest import in_a_process, is_alive

from recto.mcp import transports
from recto.mcp.connection_state import ConnectionState, StderrLog
from recto.mcp.server_target import ServerTarget
from recto.mcp.transports import END_BYTES, LongLine, error_for_long_line

LINES = st.lists(st.binary(max_size=9).map(lambda line: line.replace(b"\n", b"")), max_size=6)


Line = bytes | LongLine | None


def fed(*chunks: bytes) -> list[Line]:
    async def read() -> list[Line]:
        stream = asyncio.StreamReader()
        lines = asyncio.create_task(_all(stream))
        for chunk in chunks:
            stream.feed_data(chunk)
            await asyncio.sleep(0)
        stream.feed_eof()
        return await lines

    return asyncio.run(read())


async def _all(stream: asyncio.StreamReader) -> list[Line]:
    return [bytes(line) if isinstance(line, bytearray) else line async for line in transports._read_lines(stream)]


@given(LINES, st.lists(st.integers(0, 60), max_size=5))
def test_the_lines_are_the_same_whatever_the_chunks(lines: list[bytes], cuts: list[int]) -> None:
    text = b"".join(line + b"\n" for line in lines)
    edges = [0, *sorted(cuts), len(text)]
    chunks = [text[start:end] for start, end in pairwise(edges) if start < end]
    assert fed(*chunks) == lines


def test_the_ends_of_a_long_line_are_kept_and_the_next_lines_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transports, "MAX_MESSAGE_BYTES", 10)
    long = LongLine(b"x" * 6, b"x" * 6 + b"y" * 6, 12)
    assert fed(b"short\n", b"x" * 6, b"y" * 6, b"\nmore\n") == [b"short", long, b"more"]


def test_reading_stops_at_a_line_without_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transports, "MAX_MESSAGE_BYTES", 10)
    assert fed(b"short\n", *(b"x" * 6,) * 4, b"\nmore\n") == [b"short", None]


@given(st.binary(max_size=40))
def test_no_line_can_break_the_reader(line: bytes) -> None:
    transports._parse(line)


@pytest.mark.parametrize("said", [[1], 7, None, {"id": True}, {"id": 1, "method": 3}, {"result": {}}, "[" * 100_000])
def test_an_invalid_message_is_not_parsed(said: Any) -> None:
    assert transports._parse((said if isinstance(said, str) else json.dumps(said)).encode()) is None


def test_a_cancelled_start_leaves_no_process(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    code = f"import os, time; open({str(file)!r}, 'w').write(str(os.getpid())); time.sleep(600)"

    async def give_up() -> None:
        target = ServerTarget("x", command=sys.executable, args=("-S", "-c", code))
        task = asyncio.create_task(transports._start_process(target, {}))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(give_up())
    assert not file.exists() or not is_alive(int(file.read_text() or 0))


def test_a_server_that_does_not_end_in_time_is_killed(tmp_path: Path) -> None:
    done = in_a_process(
        tmp_path,
        "asyncio.run(made.offer([odd()], None)); print(made.statuses()[0].pid)",
        "servers.CLOSE_TIMEOUT_S = 0.2; made._loop_thread.soon(lambda: time.sleep(1)); made.close()",
    )
    assert not is_alive(int(done.stdout))


def test_a_request_that_cannot_be_sent_is_answered_and_the_rest_is_sent(tmp_path: Path) -> None:
    """Against `cat`, which says everything again."""

    async def talk() -> list[Any]:
        seen = ConnectionState("cat", StderrLog(tmp_path / "log"), lambda: None)
        came = []
        async with transports._stdio_transport(ServerTarget("cat", command="cat"), {"PATH": "/usr/bin:/bin"}, seen) as (
            incoming,
            outgoing,
        ):
            for id, text in ((1, "\ud800"), (2, "fine")):
                request = JSONRPCRequest(jsonrpc="2.0", id=id, method="x", params={"a": text})
                await outgoing.send(SessionMessage(request))
                came.append((await incoming.receive()).message)
        return came

    error, echo = asyncio.run(talk())
    assert isinstance(error, JSONRPCError)
    assert (error.id, error.error.message) == (
        1,
        "the arguments contain something that JSON cannot carry, or are nested too deeply",
    )
    assert isinstance(echo, JSONRPCRequest)
    assert (echo.id, echo.params) == (2, {"a": "fine"})


# -- lines that are too long

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["id", "result", "a"]), inner, max_size=3)
    ),
    max_leaves=6,
)
IDS = st.integers(-9, 10**9) | st.text("abc-", max_size=9)


def id_in(line: bytes) -> Any:
    found = error_for_long_line(LongLine.of(line), "why")
    assert found is None or found.message.error.message == "why"  # type: ignore[union-attr]
    return found and found.message.id  # type: ignore[union-attr]


@given(IDS, JSON, st.permutations(["jsonrpc", "id", "result"]), st.sampled_from([None, 2]))
def test_only_the_id_of_the_response_itself_is_found(
    id: int | str, result: Any, order: list[str], indent: int | None
) -> None:
    message = {"jsonrpc": "2.0", "id": id, "result": result}
    line = json.dumps({key: message[key] for key in order}, indent=indent).encode()
    assert id_in(line) == id


@given(IDS, st.binary(max_size=20))
def test_a_request_of_the_server_is_not_a_response(id: int | str, more: bytes) -> None:
    for order in (["jsonrpc", "id", "method"], ["method", "id", "jsonrpc"], ["id", "method"]):
        message = {"jsonrpc": "2.0", "id": id, "method": "roots/list"}
        line = json.dumps({key: message[key] for key in order}).encode()
        assert id_in(line) is None
        assert id_in(line[:-1] + more) is None


@pytest.mark.parametrize("behind", [b"", b', "jsonrpc": "2.0"'])
def test_an_id_after_a_long_result_is_found(behind: bytes) -> None:
    line = b'{"result": {"content": [{"id": 7, "text": "' + b"x" * 3 * END_BYTES + b'"}]}, "id": 12' + behind + b"}\r"
    assert id_in(line) == 12


def test_a_truncated_response_has_no_id() -> None:
    assert id_in(b'{"result": {"a": {"id": 7}') is None
    assert id_in(b'{"result": {"a": "b", "id": 7}}') is None
    assert id_in(b"nonsense") is None


@given(st.lists(st.binary(max_size=3 * END_BYTES), max_size=5))
def test_the_ends_are_the_same_whatever_the_chunks(chunks: list[bytes]) -> None:
    long = LongLine.of(b"first" + b"." * END_BYTES)
    for chunk in chunks:
        long.extend(chunk)
    assert long == LongLine.of(b"first" + b"." * END_BYTES + b"".join(chunks))
