"""Tools of real MCP servers, called by scripted models through the whole walk of a message."""

import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Open, Script

from recto.api.blocking import Talk
from recto.chat.blocks import ToolResult
from recto.events import ApprovalAsked, ToolStarted
from recto.sources.tools import CANCELLED

PARTS = Path(__file__).parents[1] / "mcp" / "parts"


def server(part: str, *args: str, **said: Any) -> dict[str, Any]:
    return {"command": sys.executable, "args": [str(PARTS / part), *args], "approval": "allow", **said}


def configure(tmp_path: Path, **servers: dict[str, Any]) -> None:
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    (home / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


def results(talk: Talk) -> list[ToolResult]:
    return [result for message in talk.messages() for result in message.results]


def test_a_model_calls_tools_of_a_server_all_at_once_and_gets_results_in_order(
    desk: Open, script: Script, tmp_path: Path
) -> None:
    configure(tmp_path, plain=server("plain.py"))
    calls = [call("plain__add", a=1, b=2), call("plain__fail"), call("plain__add", a=20, b=22), call("nothing")]
    at = desk(script({"tool_calls": calls}, {"text": "3 and 42"}))
    talk = at.conversation()
    reply = talk.ask("add them")
    told = results(talk)
    assert [each.is_error for each in told] == [False, True, False, True]
    assert told[0].text.strip() == "3"
    assert "tool fail" in told[1].text
    assert "there is no tool nothing" in told[3].text
    tools = next(each for each in reply.window.sections if each.name == "tools")
    assert {pick.server for pick in tools.picks} == {"plain"}
    assert {"add", "fail"} <= {pick.name for pick in tools.picks}
    assert at.verify() == [(id, None) for id, _ in at.verify()]


def test_what_is_sent_of_a_server_is_rebuilt_after_it_has_vanished(desk: Open, script: Script, tmp_path: Path) -> None:
    configure(tmp_path, plain=server("plain.py"))
    model = script({"text": "ok"})
    at = desk(model)
    reply = at.conversation().ask("hello")
    body = at.rebuild(reply.request_id)
    assert b"plain__add" in body
    configure(tmp_path)
    later = desk(model)
    assert b"plain__add" not in later.rebuild(later.conversation().ask("hello").request_id)
    assert later.rebuild(reply.request_id) == body


def test_pictures_and_long_texts_are_kept_whole(desk: Open, script: Script, tmp_path: Path) -> None:
    configure(tmp_path, plain=server("plain.py"))
    calls = [call("plain__show"), call("plain__big", size=2_000_000)]
    at = desk(script({"tool_calls": calls}, {"text": "ok"}, limit=60_000))
    talk = at.conversation()
    talk.ask("show me")
    shown, big = results(talk)
    kind, _, sha256 = shown.media[0].partition(" ")
    assert kind == "image/png"
    assert at.store.blobs.get(sha256) == b"\x89PNG"
    assert "[image: image/png" in shown.text
    assert len(big.text) < 70_000
    assert len(at.store.blobs.get(big.whole)) > 1_900_000


def test_a_server_whose_tools_are_to_be_asked_for_is_asked_for(desk: Open, script: Script, tmp_path: Path) -> None:
    configure(tmp_path, plain=server("plain.py", approval="ask", tools={"fail": {"approval": "deny"}}))
    calls = [call("plain__add", a=1, b=2), call("plain__fail")]
    talk = desk(script({"tool_calls": calls}, {"text": "ok"})).conversation()
    asked = []
    for event in talk.stream("add"):
        if isinstance(event, ApprovalAsked):
            asked.append(str(event.tool.id))
            event.allow()
    assert asked == ["tool:plain/add"]
    first, second = results(talk)
    assert (first.approval, second.is_error) == ("allowed", True)
    assert "plain__fail" in second.text


def test_a_server_that_dies_is_a_tool_error_and_not_a_dead_chat(desk: Open, script: Script, tmp_path: Path) -> None:
    configure(tmp_path, odd=server("odd.py"))
    talk = desk(script({"tool_calls": [call("odd__die")]}, {"text": "a pity"})).conversation()
    assert talk.ask("die").text == "a pity"
    assert results(talk)[0].is_error


def test_stopping_a_turn_cancels_its_calls_and_closes_them(desk: Open, script: Script, tmp_path: Path) -> None:
    configure(tmp_path, plain=server("plain.py"))
    seen = tmp_path / "seen"
    talk = desk(script({"tool_calls": [call("plain__wait", path=str(seen))]}, {"text": "ok"})).conversation()
    events = talk.stream("wait")
    for event in events:
        if isinstance(event, ToolStarted):
            while not seen.exists():
                time.sleep(0.01)
            break
    events.close()
    assert results(talk)[0].text == CANCELLED
    for _ in range(1000):
        if seen.read_text() == "cancelled":
            break
        time.sleep(0.01)
    assert seen.read_text() == "cancelled"
    assert talk.ask("and now?").text == "ok"


def test_a_projects_server_runs_only_once_it_is_trusted(
    desk: Open, script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    (project / ".recto").mkdir(parents=True)
    (project / ".mcp.json").write_text(json.dumps({"mcpServers": {"plain": server("plain.py")}}))
    monkeypatch.chdir(project)
    model = script({"text": "ok"})
    at = desk(model)
    reply = at.conversation().ask("hello")
    assert any("was not started: `recto sources trust plain`" in note for note in reply.notes)
    assert not any(each.name == "tools" for each in reply.window.sections)
    at.trust("plain")
    assert any(each.name == "tools" for each in at.conversation().ask("hello").window.sections)
    (project / ".mcp.json").write_text(json.dumps({"mcpServers": {"plain": server("plain.py", "other")}}))
    assert any("was not started" in note for note in at.conversation().ask("hello").notes)


def test_tools_of_one_name_on_two_servers_are_told_apart(desk: Open, script: Script, tmp_path: Path) -> None:
    configure(tmp_path, one=server("plain.py"), two=server("plain.py", tools={"fail": {"enabled": False}}))
    calls = [call("one__add", a=1, b=1), call("two__add", a=2, b=2)]
    talk = desk(script({"tool_calls": calls}, {"text": "ok"}, limit=30_000)).conversation()
    reply = talk.ask("add")
    assert [each.text.strip() for each in results(talk)] == ["2", "4"]
    tools = next(each for each in reply.window.sections if each.name == "tools")
    fails = [pick.server for pick in tools.picks if pick.name == "fail"]
    assert fails == ["one"]
