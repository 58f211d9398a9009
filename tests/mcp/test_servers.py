"""McpServers: ordinary servers offer their tools, run them and end; a server that may not run does not."""

import asyncio
import sys
import threading
from collections.abc import Awaitable
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.mcp.conftest import PARTS, Made, in_a_process, is_alive, odd, plain, tools_of, until

from recto.base.concurrency import LoopThread
from recto.chat.blocks import ToolCall
from recto.errors import RectoError
from recto.mcp.allowed_tools import Trust
from recto.mcp.servers import ToolOffer
from recto.sources.server_config import ServerConfig, ToolConfig
from recto.sources.source import SourceId
from recto.sources.tools import Media, Toolbox, ToolOutput

pytestmark = pytest.mark.anyio


async def test_a_server_offers_its_tools_and_runs_them(made: Made) -> None:
    servers = made()
    tools = await tools_of(servers, plain(approval="allow", include="agent", timeout_s=7.0))
    add = tools["add"]
    assert (add.tool.name, add.tool.id) == ("plain__add", SourceId("tool", "add", "plain"))
    assert (add.tool.description, add.tool.include, add.approval, add.timeout_s) == (
        "Adds two numbers.",
        "agent",
        "allow",
        7.0,
    )
    assert add.tool.schema["required"] == ["a", "b"]
    assert (await add.call({"a": 1, "b": 2})).text == "3"


async def test_every_kind_of_content_is_converted(made: Made) -> None:
    tools = await tools_of(made(), plain())
    shown = await tools["show"].call({})
    assert shown.text.split("\n\n") == [
        "first",
        "[image: image/png, 4 bytes, kept]",
        "note://one\na note",
        "[resource: two, note://two]",
        "last",
    ]
    assert shown.media == (Media("image/png", b"\x89PNG"),)
    failed = await tools["fail"].call({})
    assert failed.is_error
    assert "fail" in failed.text
    assert (await tools["add"].call({"a": "x"})).is_error
    assert len((await tools["big"].call({"size": 50_000_000})).text) > 49_000_000


async def test_a_server_sees_only_its_own_environment(made: Made, tmp_path: Path) -> None:
    servers = made({"SECRET": "s3cret", "WHO": "you"})
    tools = await tools_of(servers, plain(env={"GREETING": "hello ${WHO}"}, cwd=str(tmp_path)))
    *names, where, greeting = (await tools["environment"].call({})).text.split("\n")
    assert "SECRET" not in names
    assert {"PATH", "GREETING"} <= set(names)
    assert (where, greeting) == (str(tmp_path), "hello you")


async def test_a_cancelled_call_is_cancelled_on_the_server(made: Made, tmp_path: Path) -> None:
    servers, file = made(), tmp_path / "waits"
    tools = await tools_of(servers, plain())
    running = asyncio.ensure_future(tools["wait"].call({"path": str(file)}))
    await until(file.exists)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await until(lambda: file.read_text() == "cancelled")
    assert (await tools["add"].call({"a": 2, "b": 2})).text == "4"


async def test_a_tool_that_is_added_is_in_a_later_offer(made: Made) -> None:
    servers, config = made(), plain()
    await (await tools_of(servers, config))["learn"].call({"name": "dance"})
    for _ in range(3_000):
        if "dance" in (tools := await tools_of(servers, config)):
            break
        await asyncio.sleep(0.01)
    assert (await tools["dance"].call({})).text == "learnt"


async def test_a_change_of_an_older_server_is_in_the_next_offer_and_in_the_cache(made: Made) -> None:
    servers, config = made(), odd()
    tools = await tools_of(servers, config)
    assert "learnt" not in tools
    await tools["learn"].call({})
    assert "learnt" in await tools_of(servers, config)
    servers.close()
    assert "learnt" in await tools_of(made(), config)


async def test_all_pages_of_a_list_are_read(made: Made) -> None:
    tools = await tools_of(made(), odd("many"))
    assert list(tools) == [f"tool-{number}" for number in range(25)]


async def test_a_server_without_tools_offers_none(made: Made) -> None:
    assert await made().offer([odd("none")], None) == ToolOffer()


async def test_servers_keep_the_order_of_their_configs_and_disabled_tools_are_left_out(made: Made) -> None:
    two = odd("many", "b", tools={"tool-3": ToolConfig(enabled=False), "tool-4": ToolConfig(include="manual")})
    offer = await made().offer([two, odd("many", "a")], None)
    assert [remote.tool.server for remote in offer.tools] == ["b"] * 24 + ["a"] * 25
    assert [remote.tool.include for remote in offer.tools[3:5]] == ["manual", "always"]


def test_a_cached_list_is_offered_without_a_server_and_without_the_sdk(made: Made, tmp_path: Path) -> None:
    asyncio.run(tools_of(made(), odd("many")))
    done = in_a_process(
        tmp_path / "home",
        "offer = asyncio.run(made.offer([odd('many')], None)); state = made.statuses()[0]",
        "heavy = {'mcp', 'anyio', 'pydantic'} & set(sys.modules)",
        "print(len(offer.tools), state.state, state.tools, heavy, offer.notes)",
    )
    assert done.stdout == "25 stopped 25 set() ()\n"


async def test_a_fresh_offer_asks_the_server(made: Made) -> None:
    servers, config = made(), odd("many")
    await tools_of(servers, config)
    again = made()
    assert await tools_of(again, config)
    assert again.statuses()[0].state == "stopped"
    assert await tools_of(again, config, fresh=True)
    assert again.statuses()[0].state == "running"
    assert await tools_of(again, config, fresh=True)


async def test_a_cached_list_starts_its_server_at_the_first_call(made: Made) -> None:
    await tools_of(made(), odd())
    servers = made()
    tools = await tools_of(servers, odd())
    assert (await tools["pid"].call({})).text
    assert [state.state for state in servers.statuses()] == ["running"]


async def test_many_calls_run_at_once_from_many_loops(made: Made) -> None:
    servers = made()
    tools = await tools_of(servers, plain())
    sums = await asyncio.gather(*(tools["add"].call({"a": number, "b": 1}) for number in range(20)))
    assert [int(each.text) for each in sums] == list(range(1, 21))
    assert (await asyncio.to_thread(asyncio.run, _called(tools["add"].call({"a": 1, "b": 1})))) == "2"


async def _called(work: Awaitable[ToolOutput]) -> str:
    return (await work).text


async def test_a_changed_command_restarts_a_server_and_a_changed_approval_does_not(made: Made) -> None:
    servers, config = made(), odd()
    first = (await (await tools_of(servers, config))["pid"].call({})).text
    allowed = await tools_of(servers, replace(config, approval="allow"))
    assert allowed["pid"].approval == "allow"
    assert (await allowed["pid"].call({})).text == first
    changed = await tools_of(servers, replace(config, env={"A": "b"}))
    assert (await changed["pid"].call({})).text != first
    await until(lambda: not is_alive(int(first)))


async def test_a_projects_server_runs_only_when_it_is_trusted(made: Made, tmp_path: Path) -> None:
    config = odd(is_yours=False)
    await tools_of(made(), replace(config, is_yours=True))
    servers = made()
    servers.wake([config], tmp_path)
    offer = await servers.offer([config], tmp_path)
    assert offer == ToolOffer(
        notes=("the project's MCP server odd was not started: `recto sources trust odd` lets it run",)
    )
    assert [state.state for state in servers.statuses()] == ["untrusted"]
    Trust(tmp_path / "home").trust(config, tmp_path)
    offered = {remote.tool.own_name: remote for remote in (await servers.offer([config], tmp_path)).tools}
    pid = int((await offered["pid"].call({})).text)
    Trust(tmp_path / "home").distrust("odd", tmp_path)
    assert not (await servers.offer([config], tmp_path)).tools
    assert servers.statuses()[0].state == "untrusted"
    await until(lambda: not is_alive(pid))


async def test_servers_that_cannot_start_are_reported_and_the_others_offered(made: Made) -> None:
    configs = [
        odd("many"),
        ServerConfig("keyless", command="run", args=("${API_KEY_OF_NOBODY}",)),
        ServerConfig("lost", command="/no/such/program"),
        ServerConfig("off", command="run", enabled=False),
        ServerConfig("recto", include="agent"),
        odd("stillborn", "still"),
    ]
    servers = made()
    offer = await servers.offer(configs, None)
    assert len(offer.tools) == 25
    assert offer.notes == (
        "the MCP server keyless was not started: API_KEY_OF_NOBODY is not set in the environment",
        "the MCP server lost did not start: there is no /no/such/program; its tools are missing",
        "the MCP server still did not start: it ended (stderr: no such database); its tools are missing",
    )
    states = {state.name: state.state for state in servers.statuses()}
    assert states == {"odd": "running", "keyless": "failed", "lost": "failed", "off": "off", "still": "failed"}


async def test_name_conflicts_are_reported(made: Made) -> None:
    offer = await made().offer([odd("many"), odd("none"), odd("many", "recto")], None)
    assert len(offer.tools) == 25
    assert offer.notes == (
        "there are two MCP servers named odd: the first is used",
        "an MCP server cannot be named recto: that is the name of the built-in tools",
    )


async def test_a_server_that_does_not_start_is_reported_and_not_waited_for_again(made: Made, tmp_path: Path) -> None:
    servers, log = made(), tmp_path / "home" / "servers" / "odd.log"
    offered = asyncio.ensure_future(servers.offer([odd("mute")], None))
    await until(lambda: log.exists() and "thinking hard" in log.read_text())
    (connection,) = servers._connections.values()
    assert connection._ready
    servers._loop_thread.soon(partial(connection._on_start_timeout, connection._ready))  # as its clock would
    told = "the MCP server odd did not start within 600 s (stderr: thinking hard); its tools are missing"
    assert await offered == ToolOffer(notes=(told,))
    assert servers.statuses()[0].state == "failed"
    assert (await servers.offer([odd("mute")], None)).notes == (told,)


async def test_a_server_that_fails_loses_its_cached_list(made: Made, tmp_path: Path) -> None:
    switch = tmp_path / "switch.py"
    switch.write_text((PARTS / "odd.py").read_text())
    config = ServerConfig("odd", command=sys.executable, args=("-S", str(switch), "many"))
    await tools_of(made(), config)
    switch.write_text("import sys; sys.exit('gone')")
    servers = made()
    tools = await tools_of(servers, config)
    with pytest.raises(RectoError, match="did not start: it ended"):
        await tools["tool-1"].call({})
    offer = await servers.offer([config], None)
    assert not offer.tools
    assert "its tools are missing" in offer.notes[0]
    assert not (await made().offer([config], None)).tools


async def test_woken_servers_start_in_the_background(made: Made) -> None:
    servers = made()
    servers.wake([odd("many"), ServerConfig("wrong"), odd("stillborn", "still")], None)
    await until(lambda: {state.state for state in servers.statuses()} == {"running", "failed"})
    servers.wake([odd("many")], None)
    assert await tools_of(servers, odd("many"))


async def test_a_start_that_is_stopped_keeps_the_cached_list_and_leaves_no_process(made: Made) -> None:
    await tools_of(made(), odd("many"))
    servers = made()
    servers.wake([odd("many")], None)
    await asyncio.sleep(0.05)
    servers.close()
    assert await tools_of(servers, odd("many"))
    assert servers.statuses()[0].state == "stopped"


async def test_a_start_continues_when_its_caller_is_cancelled(made: Made) -> None:
    servers = made()
    offered = asyncio.ensure_future(servers.offer([odd("many")], None))
    await until(lambda: servers.statuses() and servers.statuses()[0].state != "stopped")
    offered.cancel()
    with suppress(asyncio.CancelledError):
        await offered
    await until(lambda: servers.statuses()[0].state == "running")


async def test_the_children_of_a_server_end_with_it(made: Made) -> None:
    servers = made()
    tools = await tools_of(servers, odd())
    child = int((await tools["child"].call({})).text)
    pid = int((await tools["pid"].call({})).text)
    assert is_alive(child)
    servers.close()
    servers.close()
    await until(lambda: not is_alive(child) and not is_alive(pid))


async def test_a_server_that_will_not_end_is_killed(made: Made) -> None:
    servers = made()
    tools = await tools_of(servers, odd())
    pid = int((await tools["pid"].call({})).text)
    await tools["stubborn"].call({})
    servers.close()
    await until(lambda: not is_alive(pid))


async def test_closing_ends_running_calls_with_a_sentence(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recto.mcp.servers.CLOSE_TIMEOUT_S", 60)
    servers, file = made(), tmp_path / "hangs"
    tools = await tools_of(servers, odd())
    running = asyncio.ensure_future(tools["hang"].call({"path": str(file)}))
    await until(file.exists)
    await asyncio.to_thread(servers.close)
    outcome = await running
    assert outcome.is_error
    assert outcome.text == "the MCP server odd was stopped; the call was in progress and is not repeated"
    assert "recto-servers" not in [thread.name for thread in threading.enumerate()]


async def test_servers_that_were_closed_can_be_used_again(made: Made) -> None:
    servers = made()
    await tools_of(servers, odd())
    servers.close()
    assert (await (await tools_of(servers, odd()))["pid"].call({})).text


def test_a_program_that_does_not_close_leaves_no_server_behind(tmp_path: Path) -> None:
    tools = "{each.tool.own_name: each for each in (await made.offer([odd()], None)).tools}"
    done = in_a_process(
        tmp_path,
        f"async def pid(): print((await ({tools})['pid'].call({{}})).text)",
        "asyncio.run(pid())",
    )
    assert done.stderr == ""
    assert not is_alive(int(done.stdout))


async def test_a_toolbox_runs_tools_of_servers_and_cuts_long_results(made: Made) -> None:
    tools = await tools_of(made(), plain())
    box = Toolbox(list(tools.values()), timeout_s=30.0, longest=1_000)
    ran = await box.run(ToolCall("1", "plain__big", '{"size": 100000}'))
    assert "[cut here: 99,988 characters in all" in ran.result.text
    assert ran.whole
    assert len(ran.whole) == 99_988


async def test_your_server_runs_no_code_of_the_current_folder(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloned = tmp_path / "cloned"
    cloned.mkdir()
    (cloned / "odd_server.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    monkeypatch.chdir(cloned)
    config = ServerConfig("odd", command=sys.executable, args=("-m", "odd_server"))
    offer = await made().offer([config], cloned)
    assert "No module named odd_server" in offer.notes[0]
    assert not (tmp_path / "ran").exists()


async def test_your_server_runs_in_a_private_folder_of_recto(made: Made, tmp_path: Path) -> None:
    folder = tmp_path / "home" / "servers"
    tools = await tools_of(made(), plain())
    assert (await tools["environment"].call({})).text.split("\n")[-2] == str(folder)
    assert folder.stat().st_mode & 0o777 == 0o700


async def test_denied_tools_are_not_offered(made: Made) -> None:
    config = odd("many", tools={"tool-3": ToolConfig(approval="deny")})
    assert "tool-3" not in await tools_of(made(), config)
    allowed = {"tool-3": ToolConfig(approval="allow")}
    assert list(await tools_of(made(), replace(config, approval="deny", tools=allowed))) == ["tool-3"]


async def test_running_servers_can_be_refreshed(made: Made) -> None:
    servers, config = made(), odd()
    servers.refresh()
    tools = await tools_of(servers, config)
    await tools["learn_quietly"].call({})
    assert "learnt" not in await tools_of(servers, config)
    await asyncio.to_thread(servers.refresh)
    assert "learnt" in await tools_of(servers, config)


async def test_two_programs_write_to_one_log(made: Made, tmp_path: Path) -> None:
    log = tmp_path / "home" / "servers" / "plain.log"
    one, other = made(), made()
    for servers in (one, other, one):
        assert await tools_of(servers, plain(), fresh=True)
    await until(lambda: log.read_text().count("plain is up") == 2)
    assert log.read_text().count("started by process") == 2


async def test_a_failed_start_is_logged_with_its_traceback(made: Made, caplog: pytest.LogCaptureFixture) -> None:
    await made().offer([ServerConfig("lost", command="/no/such/program")], None)
    (record,) = (record for record in caplog.records if record.name.startswith("recto.mcp"))
    assert record.getMessage() == "the session with the MCP server lost failed"
    assert record.exc_info


def test_a_failed_start_prints_nothing(tmp_path: Path) -> None:
    lost = "ServerConfig('lost', command='/no/such/program')"
    done = in_a_process(tmp_path, f"asyncio.run(made.offer([{lost}], None)); made.close()")
    assert (done.stdout, done.stderr) == ("", "")


async def test_a_caller_learns_that_the_servers_were_stopped_even_if_they_do_not_end_in_time() -> None:
    thread = LoopThread(lambda: None)
    waiting = asyncio.ensure_future(thread.run(asyncio.Event().wait()))
    await until(lambda: thread._loop)
    assert not await asyncio.to_thread(thread.close, asyncio.sleep(3600), 0.01)
    with pytest.raises(RectoError, match="stopped before an answer came"):
        await waiting
