"""MCP servers that exit, hang, flood or break the protocol: the user gets a sentence or the model an error, and the
chat continues."""

import asyncio
from pathlib import Path

import pytest
from tests.mcp.conftest import Made, is_alive, odd, tools_of, until

from recto.chat.blocks import ToolCall
from recto.mcp import server_connection
from recto.mcp.client import INVALID_ARGUMENTS
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
    assert died.text == ("the MCP server odd ended (stderr: out of luck); the call was in progress and is not repeated")
    assert [state.state for state in servers.statuses()] == ["stopped"]
    assert set(await tools_of(servers, odd())) == set(tools)
    assert (await tools["pid"].call({})).text != first


async def test_a_call_that_killed_its_server_is_not_repeated(tools: Tools, tmp_path: Path) -> None:
    file = tmp_path / "count"
    assert (await tools["count"].call({"path": str(file)})).is_error
    assert (await tools["pid"].call({})).text
    assert file.read_text() == "1"


async def test_a_server_that_hangs_is_started_again_at_the_next_call(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_connection, "PING_TIMEOUT_S", 0.1)
    servers = made()
    tools, hasty = await tools_of(servers, odd()), await tools_of(servers, odd(timeout_s=0.1))
    pid = int((await tools["pid"].call({})).text)
    ran = await Toolbox([*hasty.values()]).run(ToolCall("1", "odd__hang", f'{{"path": "{tmp_path / "hangs"}"}}'))
    assert (ran.result.text, ran.result.is_error) == ("no result within 0.1 s", True)
    again = int((await tools["pid"].call({})).text)
    assert again != pid
    assert not is_alive(pid)


async def test_a_server_that_still_answers_after_a_cancelled_call_stays(tools: Tools) -> None:
    pid = (await tools["pid"].call({})).text
    slow = asyncio.ensure_future(tools["garbage"].call({"lines": 100_000}))
    await asyncio.sleep(0.05)
    slow.cancel()
    with pytest.raises(asyncio.CancelledError):
        await slow
    assert (await tools["pid"].call({})).text == pid


async def test_lines_that_are_not_valid_are_skipped(made: Made) -> None:
    tools = await tools_of(made(), odd("chatty"))
    assert (await tools["garbage"].call({"lines": 2_500})).text == "after the garbage"


async def test_a_flood_of_notifications_neither_ends_the_call_nor_stops_the_others(made: Made) -> None:
    servers = made()
    flooding, quiet = await tools_of(servers, odd()), await tools_of(servers, odd(name="quiet"))
    flood = asyncio.ensure_future(flooding["flood"].call({"lines": 5_000}))
    others = [await quiet["pid"].call({}) for _ in range(20)]
    assert not any(other.is_error for other in others)
    assert (await flood).text == "after the flood"


async def test_a_line_without_an_end_stops_the_server(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recto.mcp.client.MAX_MESSAGE_BYTES", 4_000_000)
    tools = await tools_of(made(), odd())
    outcome = await tools["endless"].call({})
    assert outcome.is_error
    assert "was stopped: it sent a line of more than 4 MB" in outcome.text
    assert (await tools["pid"].call({})).text


async def test_arguments_that_cannot_be_sent_are_an_error_of_that_call_alone(tools: Tools) -> None:
    calls = [tools["huge"].call({"size": 9, "x": text}) for text in ("fine", "\ud800")]
    fine, half = await asyncio.gather(*calls)
    assert fine.text == "x" * 9
    assert half.is_error
    assert half.text == f"the call was not sent to the MCP server odd: {INVALID_ARGUMENTS}"


async def test_a_server_with_an_invalid_list_did_not_start(made: Made) -> None:
    offer = await made().offer([odd("wrong")], None)
    assert not offer.tools
    assert offer.notes[0].startswith("the MCP server odd did not start: its response is not valid: tools")


async def test_results_that_are_not_valid_are_errors_that_the_model_can_read(tools: Tools) -> None:
    for name, told in {
        "invalid": "the MCP server odd sent a result that is not valid: content",
        "refuse": "the MCP server odd answered with an error: not today",
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


async def test_requests_of_a_server_are_refused(made: Made) -> None:
    tools = await tools_of(made(), odd())
    assert (await tools["capabilities"].call({})).text == "{}"
    answers = (await tools["ask"].call({"methods": ["sampling/createMessage", "roots/list"]})).text.split(" / ")
    assert answers == ["Sampling not supported", "List roots not supported"]


async def test_stderr_of_a_server_goes_to_its_log_only(
    made: Made, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "home" / "servers" / "odd.log"
    for _ in range(2):
        servers = made()
        assert (await (await tools_of(servers, odd(), fresh=True))["noise"].call({})).text == "after the noise"
        await until(lambda: log.read_text().endswith("last words\n"))
        servers.close()
    assert log.with_suffix(".old.log").stat().st_size > 1_000_000
    assert log.read_text().count("started by process") == 1
    assert capfd.readouterr() == ("", "")


async def test_a_list_that_changes_all_the_time_is_refreshed_now_and_then(made: Made) -> None:
    servers, config = made(), odd()
    tools = await tools_of(servers, config)
    assert (await tools["restless"].call({})).text == "restless"
    assert set(await tools_of(servers, config)) == set(tools)
