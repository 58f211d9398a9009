"""Servers that die, hang, flood, lie or ask for more than they were given: a sentence for the user or an error for the
model, and the chat goes on."""

import asyncio
import os
import signal
from pathlib import Path

import pytest
from tests.servers.conftest import Made, is_alive, odd, tools_of, until

from recto.chat.blocks import ToolCall
from recto.errors import RectoError
from recto.servers import link, pipe
from recto.servers.answer import UNSENT
from recto.sources.tools import Media, Toolbox

pytestmark = pytest.mark.anyio


async def test_a_server_that_dies_is_an_error_of_the_call_and_starts_again_at_the_next(made: Made) -> None:
    servers = made()
    tools = await tools_of(servers, odd())
    first = (await tools["pid"].call({})).text
    died = await tools["die"].call({})
    assert died.is_error
    assert died.text == (
        "the MCP server odd ended (exit code 3) (it said: out of luck); the call was under way and is not repeated"
    )
    assert [(state.state, state.pid) for state in servers.states()] == [("stopped", None)]
    assert set(await tools_of(servers, odd())) == set(tools)
    assert (await tools["pid"].call({})).text != first


async def test_a_server_killed_from_outside_is_told_by_its_signal(made: Made, tmp_path: Path) -> None:
    servers, file = made(), tmp_path / "hangs"
    tools = await tools_of(servers, odd())
    calls = [asyncio.ensure_future(tools["hang"].call({"path": str(file)})) for _ in range(2)]
    await until(file.exists)
    pid = servers.states()[0].pid
    assert pid
    os.kill(pid, signal.SIGKILL)
    for outcome in await asyncio.gather(*calls):
        assert outcome.is_error
        assert "ended (signal 9)" in outcome.text


async def test_a_call_that_killed_its_server_is_not_repeated(made: Made, tmp_path: Path) -> None:
    tools = await tools_of(made(), odd())
    file = tmp_path / "count"
    assert (await tools["count"].call({"path": str(file)})).is_error
    assert (await tools["pid"].call({})).text
    assert file.read_text() == "1"


async def test_a_server_that_always_dies_is_started_ever_more_rarely(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "FIRST_WAIT_S", 0.2)
    monkeypatch.setattr(link, "LONGEST_WAIT_S", 50.0)
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
    assert told.endswith("s at the earliest")
    assert "it starts again in " in told


def test_the_wait_between_two_starts_doubles_up_to_a_minute() -> None:
    assert [link._wait_s(tries) for tries in (1, 2, 3, 6, 7, 8, 1_000)] == [1, 2, 4, 32, 60, 60, 60]


async def test_a_server_that_hangs_is_ended_and_started_anew(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "ANSWER_S", 0.3)
    servers, file = made(), tmp_path / "hangs"
    tools = await tools_of(servers, odd(timeout_s=0.5))
    pid = int((await tools["pid"].call({})).text)
    box = Toolbox([*tools.values()])
    ran = await box.run(ToolCall("1", "odd__hang", f'{{"path": "{file}"}}'))
    assert (ran.result.text, ran.result.is_error) == ("no result within 0.5 s", True)
    again = await tools["pid"].call({})
    assert int(again.text) != pid
    assert not is_alive(pid)


async def test_the_time_of_a_call_begins_when_it_is_sent(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "ANSWER_S", 2.0)
    tools = await tools_of(made(), odd(timeout_s=1.0))
    box = Toolbox([*tools.values()])
    ran = await box.run(ToolCall("1", "odd__hang", f'{{"path": "{tmp_path / "hangs"}"}}'))
    assert ran.result.text == "no result within 1 s"
    again = await box.run(ToolCall("2", "odd__pid", "{}"))
    assert not again.result.is_error


async def test_a_server_that_still_answers_after_a_cancelled_call_stays(made: Made) -> None:
    tools = await tools_of(made(), odd())
    pid = (await tools["pid"].call({})).text
    slow = asyncio.ensure_future(tools["garbage"].call({"lines": 3_000}))
    await asyncio.sleep(0.05)
    slow.cancel()
    with pytest.raises(asyncio.CancelledError):
        await slow
    assert (await tools["pid"].call({})).text == pid


async def test_lines_that_are_no_protocol_are_skipped_and_told_once(made: Made) -> None:
    servers, config = made(), odd("chatty")
    offer = await servers.offer([config], None)
    assert offer.notes == (
        "the MCP server odd sent a line that is not its protocol, skipped: Welcome to the odd server!",
    )
    tools = {remote.tool.own_name: remote for remote in offer.tools}
    assert (await tools["garbage"].call({"lines": 2_500})).text == "after the garbage"
    assert (await servers.offer([config], None)).notes == (
        "the MCP server odd sent 2,500 lines that are not its protocol, skipped: this is not JSON",
    )
    assert (await servers.offer([config], None)).notes == ()


async def test_a_flood_of_notifications_neither_ends_the_call_nor_stops_the_others(made: Made) -> None:
    servers = made()
    flooding, quiet = await tools_of(servers, odd()), await tools_of(servers, odd(name="quiet"))
    flood = asyncio.ensure_future(flooding["flood"].call({"lines": 5_000}))
    others = [await quiet["pid"].call({}) for _ in range(20)]
    assert not any(other.is_error for other in others)
    assert (await flood).text == "after the flood"


async def test_a_line_without_an_end_ends_the_server(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipe, "LONGEST", 4_000_000)
    servers = made()
    tools = await tools_of(servers, odd())
    outcome = await tools["endless"].call({})
    assert outcome.is_error
    assert "was ended: it sent a line of more than 8 MB" in outcome.text
    assert (await tools["pid"].call({})).text


async def test_a_result_that_is_too_large_is_an_error_of_that_call_alone(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipe, "LONGEST", 4_000_000)
    tools = await tools_of(made(), odd())
    pid = await tools["pid"].call({})
    calls = [tools["huge"].call({"size": size}) for size in (10, 5_000_000, 3_000_000)]
    small, large, fits = await asyncio.gather(*calls)
    assert (large.text, large.is_error) == (
        "the call failed on the MCP server odd: the result is larger than 4 MB",
        True,
    )
    assert (len(small.text), len(fits.text)) == (10, 3_000_000)
    assert await tools["pid"].call({}) == pid


async def test_a_result_that_nobody_can_read_fails_at_once(made: Made) -> None:
    tools = await tools_of(made(), odd())
    deep = await tools["deep"].call({})
    assert deep.is_error
    assert deep.text.endswith("the answer of the server does not follow its protocol")
    assert (await tools["pid"].call({})).text


async def test_arguments_that_cannot_be_sent_are_an_error_of_that_call_alone(made: Made) -> None:
    tools = await tools_of(made(), odd())
    calls = [tools["huge"].call({"size": 9, "x": text}) for text in ("fine", "\ud800")]
    fine, half = await asyncio.gather(*calls)
    assert fine.text == "x" * 9
    assert half.is_error
    assert half.text == f"the call was not sent to the MCP server odd: {UNSENT}"


async def test_what_a_server_says_on_stderr_stays_in_its_log(
    made: Made, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    tools = await tools_of(made(), odd())
    assert (await tools["noise"].call({})).text == "after the noise"
    log = tmp_path / "home" / "servers" / "odd.log"
    await until(lambda: log.read_text().endswith("last words\n"))
    assert log.stat().st_size <= 1_000_000
    assert log.with_suffix(".old.log").stat().st_size <= 1_000_000
    assert capfd.readouterr() == ("", "")


async def test_strange_tools_are_left_out_with_a_note_and_the_rest_is_offered(made: Made) -> None:
    offer = await made().offer([odd("strange")], None)
    tools = {remote.tool.own_name: remote.tool for remote in offer.tools}
    assert list(tools) == ["good", "loop", "untyped", "odd.name/with spaces"]
    assert tools["odd.name/with spaces"].name.startswith("odd_odd_name_with_spaces_")
    assert len(tools["good"].description) == 8_000
    assert tools["loop"].schema["properties"]["self"] == {"$ref": "#"}
    assert tools["untyped"].schema == {}
    assert offer.notes == (
        "a tool of the MCP server odd: good is there twice: the first is offered",
        "a tool of the MCP server odd: number 3 has no name: left out",
        "a tool of the MCP server odd: number 4 has no name: left out",
        "a tool of the MCP server odd: number 5 is not an object: left out",
        "a tool of the MCP server odd: flat has a schema that is not an object: left out",
        "of more tools of the MCP server odd there is as much to say: 1",
    )


async def test_a_list_that_is_none_is_a_server_that_did_not_start(made: Made) -> None:
    offer = await made().offer([odd("wrong")], None)
    assert not offer.tools
    assert offer.notes[0].startswith("the MCP server odd did not start: what it sent is not valid: tools")


async def test_results_that_are_not_valid_are_errors_that_the_model_can_read(made: Made) -> None:
    tools = await tools_of(made(), odd())
    invalid, shapeless = await tools["invalid"].call({}), await tools["shapeless"].call({})
    assert invalid.is_error
    assert "the MCP server odd sent a result that is not valid: content" in invalid.text
    assert shapeless.is_error
    assert "does not follow its protocol" in shapeless.text
    refused = await tools["refuse"].call({})
    assert (refused.text, refused.is_error) == ("the MCP server odd answered with an error: not today", True)


async def test_what_can_be_saved_of_a_result_is(made: Made) -> None:
    tools = await tools_of(made(), odd())
    assert (await tools["half"].call({})).text == "half \N{REPLACEMENT CHARACTER} of one"
    assert (await tools["structured"].call({})).text == '{"sum": 3}'
    broken = await tools["broken_image"].call({})
    assert broken.text == (
        "[image: image/png, not valid base64, left out]\n\n"
        "[file file:///a.bin: application/octet-stream, 3 bytes, kept]"
    )
    assert broken.media == (Media("application/octet-stream", b"\0\1\2"),)


async def test_a_server_is_given_no_rights_and_what_it_asks_for_is_refused_and_told_once(made: Made) -> None:
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
        "the MCP server odd asked to have the model write something: refused",
        "the MCP server odd asked to see your folders: refused",
        "the MCP server odd asked to do system/takeOver: refused",
    )
    await tools["ask"].call({"methods": methods})
    assert (await servers.offer([config], None)).notes == ()


async def test_a_server_that_asks_without_end_and_never_listens_is_ended(made: Made) -> None:
    tools = await tools_of(made(), odd())
    outcome = await tools["beg"].call({})
    assert outcome.is_error
    assert "was ended: it asked for more than 100 things at once" in outcome.text


async def test_a_list_that_changes_all_the_time_is_asked_for_now_and_then(made: Made) -> None:
    servers, config = made(), odd()
    tools = await tools_of(servers, config)
    assert (await tools["restless"].call({})).text == "restless"
    assert set(await tools_of(servers, config)) == set(tools)
