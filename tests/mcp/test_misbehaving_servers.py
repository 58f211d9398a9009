"""MCP servers that exit, hang, flood or break the protocol: the user gets a sentence or the model an error, and the
chat continues."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.mcp.conftest import Made, is_alive, odd, tools_of, until

from recto.chat.blocks import ToolCall
from recto.errors import RectoError
from recto.mcp import server_connection, transports
from recto.mcp.transports import INVALID_ARGUMENTS
from recto.sources.tools import Media, RemoteTool, Toolbox

pytestmark = pytest.mark.anyio
Tools = dict[str, RemoteTool]


@pytest.fixture
async def tools(made: Made) -> Tools:
    return await tools_of(made(), odd())


async def test_a_server_that_exits_fails_the_call_and_starts_again_at_the_next(made: Made) -> None:
    servers = made()
    tools = await tools_of(servers, odd())
    first = (await tools["pid"].call({})).text
    died = await tools["die"].call({})
    assert died.is_error
    assert died.text == (
        "the MCP server odd ended (exit code 3) (stderr: out of luck); the call was in progress and is not repeated"
    )
    assert [(state.state, state.pid) for state in servers.statuses()] == [("stopped", None)]
    assert set(await tools_of(servers, odd())) == set(tools)
    assert (await tools["pid"].call({})).text != first


async def test_a_killed_server_is_reported_with_its_signal(made: Made, tmp_path: Path) -> None:
    servers, file = made(), tmp_path / "hangs"
    tools = await tools_of(servers, odd())
    calls = [asyncio.ensure_future(tools["hang"].call({"path": str(file)})) for _ in range(2)]
    await until(file.exists)
    pid = servers.statuses()[0].pid
    assert pid
    os.kill(pid, signal.SIGKILL)
    for outcome in await asyncio.gather(*calls):
        assert outcome.is_error
        assert "ended (signal 9)" in outcome.text


async def test_a_call_that_killed_its_server_is_not_repeated(tools: Tools, tmp_path: Path) -> None:
    file = tmp_path / "count"
    assert (await tools["count"].call({"path": str(file)})).is_error
    assert (await tools["pid"].call({})).text
    assert file.read_text() == "1"


async def test_a_server_that_always_exits_is_restarted_less_and_less_often(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_connection, "FIRST_RETRY_S", 0.2)
    monkeypatch.setattr(server_connection, "MAX_RETRY_S", 50.0)
    servers = made()
    tools = await tools_of(servers, odd())
    told = ""
    for _ in range(20):
        try:
            assert (await tools["die"].call({})).is_error
        except RectoError as why:
            told = why.message
            break
    assert "ended (exit code 3)" in told
    assert told.endswith(" s")
    assert "it can start again in " in told


async def test_a_server_that_hangs_is_started_again_before_the_time_of_the_next_call_begins(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_connection, "PING_TIMEOUT_S", 0.1)
    servers, began = made(), list[int | None]()

    class Watched:
        def __getattr__(self, name: str) -> Any:
            return getattr(asyncio, name)

        def timeout(self, after: float) -> asyncio.Timeout:
            began.append(servers.statuses()[0].pid)
            return asyncio.timeout(after)

    tools, hasty = await tools_of(servers, odd()), await tools_of(servers, odd(timeout_s=0.1))
    pid = int((await tools["pid"].call({})).text)
    monkeypatch.setattr(server_connection, "asyncio", Watched())
    ran = await Toolbox([*hasty.values()]).run(ToolCall("1", "odd__hang", f'{{"path": "{tmp_path / "hangs"}"}}'))
    assert (ran.result.text, ran.result.is_error) == ("no result within 0.1 s", True)
    again = int((await tools["pid"].call({})).text)
    assert again != pid
    assert not is_alive(pid)
    assert began == [pid, again]


async def test_a_server_that_still_answers_after_a_cancelled_call_stays(tools: Tools) -> None:
    pid = (await tools["pid"].call({})).text
    slow = asyncio.ensure_future(tools["garbage"].call({"lines": 3_000}))
    await asyncio.sleep(0.05)
    slow.cancel()
    with pytest.raises(asyncio.CancelledError):
        await slow
    assert (await tools["pid"].call({})).text == pid


async def test_invalid_lines_are_skipped_and_reported_once(made: Made) -> None:
    servers, config = made(), odd("chatty")
    offer = await servers.offer([config], None)
    assert offer.notes == ("the MCP server odd sent a line that is not valid, skipped: Welcome to the odd server!",)
    tools = {remote.tool.own_name: remote for remote in offer.tools}
    assert (await tools["garbage"].call({"lines": 2_500})).text == "after the garbage"
    assert (await servers.offer([config], None)).notes == (
        "the MCP server odd sent 2,500 lines that are not valid, skipped: this is not JSON",
    )
    assert (await servers.offer([config], None)).notes == ()


async def test_a_flood_of_notifications_neither_ends_the_call_nor_stops_the_others(made: Made) -> None:
    servers = made()
    flooding, quiet = await tools_of(servers, odd()), await tools_of(servers, odd(name="quiet"))
    flood = asyncio.ensure_future(flooding["flood"].call({"lines": 5_000}))
    others = [await quiet["pid"].call({}) for _ in range(20)]
    assert not any(other.is_error for other in others)
    assert (await flood).text == "after the flood"


async def test_a_line_without_an_end_stops_the_server(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transports, "MAX_MESSAGE_BYTES", 4_000_000)
    servers = made()
    tools = await tools_of(servers, odd())
    outcome = await tools["endless"].call({})
    assert outcome.is_error
    assert "was stopped: it sent a line of more than 8 MB" in outcome.text
    assert (await tools["pid"].call({})).text


async def test_a_result_that_is_too_large_is_an_error_of_that_call_alone(
    tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transports, "MAX_MESSAGE_BYTES", 4_000_000)
    pid = await tools["pid"].call({})
    calls = [tools["huge"].call({"size": size}) for size in (10, 5_000_000, 3_000_000)]
    small, large, fits = await asyncio.gather(*calls)
    assert (large.text, large.is_error) == (
        "the call failed on the MCP server odd: the result is larger than 4 MB",
        True,
    )
    assert (len(small.text), len(fits.text)) == (10, 3_000_000)
    assert await tools["pid"].call({}) == pid


async def test_arguments_that_cannot_be_sent_are_an_error_of_that_call_alone(tools: Tools) -> None:
    calls = [tools["huge"].call({"size": 9, "x": text}) for text in ("fine", "\ud800")]
    fine, half = await asyncio.gather(*calls)
    assert fine.text == "x" * 9
    assert half.is_error
    assert half.text == f"the call was not sent to the MCP server odd: {INVALID_ARGUMENTS}"


def _read(log: Path) -> str:
    """For a moment after a full log is set aside there is none."""
    try:
        return log.read_text()
    except FileNotFoundError:
        return ""


async def test_stderr_of_a_server_goes_to_its_log_only(
    tools: Tools, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert (await tools["noise"].call({})).text == "after the noise"
    log = tmp_path / "home" / "servers" / "odd.log"
    await until(lambda: _read(log).endswith("last words\n"))
    assert log.stat().st_size <= 1_000_000
    assert log.with_suffix(".old.log").stat().st_size <= 1_000_000
    assert capfd.readouterr() == ("", "")


async def test_invalid_tools_are_ignored_with_a_note_and_the_rest_is_offered(made: Made) -> None:
    offer = await made().offer([odd("strange")], None)
    tools = {remote.tool.own_name: remote.tool for remote in offer.tools}
    assert list(tools) == ["good", "loop", "untyped", "odd.name/with spaces"]
    assert tools["odd.name/with spaces"].name.startswith("odd_odd_name_with_spaces_")
    assert len(tools["good"].description) == 8_000
    assert tools["loop"].schema["properties"]["self"] == {"$ref": "#"}
    assert tools["untyped"].schema == {}
    assert offer.notes == (
        "MCP server odd: tool good is listed twice, and the first is used",
        "MCP server odd: tool number 3 is ignored: it has no name",
        "MCP server odd: tool number 4 is ignored: it has no name",
        "MCP server odd: tool number 5 is ignored: it is not an object",
        "MCP server odd: tool flat is ignored: its schema is not an object",
        "MCP server odd: 1 more problem with its tools",
    )


async def test_a_server_with_an_invalid_list_did_not_start(made: Made) -> None:
    offer = await made().offer([odd("wrong")], None)
    assert not offer.tools
    assert offer.notes[0].startswith("the MCP server odd did not start: its response is not valid: tools")


async def test_results_that_are_not_valid_are_errors_that_the_model_can_read(tools: Tools) -> None:
    for name, told in {
        "invalid": "the MCP server odd sent a result that is not valid: content",
        "shapeless": "the server's answer does not follow the protocol",
        "deep": "the server's answer does not follow the protocol",
        "refuse": "the MCP server odd answered with an error: not today",
        "beg": "was stopped: it sent more than 100 requests without waiting for answers",
    }.items():
        outcome = await tools[name].call({})
        assert outcome.is_error
        assert told in outcome.text
    assert (await tools["pid"].call({})).text


async def test_the_valid_parts_of_a_result_are_kept(tools: Tools) -> None:
    assert (await tools["half"].call({})).text == "half \N{REPLACEMENT CHARACTER} of one"
    assert (await tools["structured"].call({})).text == '{"sum": 3}'
    broken = await tools["broken_image"].call({})
    assert broken.text == (
        "[image: image/png, not valid base64, left out]\n\n"
        "[file file:///a.bin: application/octet-stream, 3 bytes, kept]"
    )
    assert broken.media == (Media("application/octet-stream", b"\0\1\2"),)


async def test_requests_of_a_server_are_refused_and_reported_once(made: Made) -> None:
    servers, config = made(), odd()
    tools = await tools_of(servers, config)
    assert (await tools["capabilities"].call({})).text == "{}"
    methods = ["sampling/createMessage", "roots/list", "sampling/createMessage", "system/takeOver"]
    answers = (await tools["ask"].call({"methods": methods})).text.split(" / ")
    assert answers == [
        "Sampling not supported",
        "List roots not supported",
        "Sampling not supported",
        "Method not found",
    ]
    assert (await servers.offer([config], None)).notes == (
        "the MCP server odd asked to generate text with the model: refused",
        "the MCP server odd asked to list your folders: refused",
        "the MCP server odd asked to use system/takeOver: refused",
    )
    await tools["ask"].call({"methods": methods})
    assert (await servers.offer([config], None)).notes == ()


async def test_a_list_that_changes_all_the_time_is_refreshed_now_and_then(made: Made) -> None:
    servers, config = made(), odd()
    tools = await tools_of(servers, config)
    assert (await tools["restless"].call({})).text == "restless"
    assert set(await tools_of(servers, config)) == set(tools)
