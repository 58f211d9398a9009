"""Which messages reach the session, and what the user learns about the others."""

from pathlib import Path

import pytest

from recto.mcp.connection_state import RAW_TOOLS, ConnectionState, StderrLog


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
