"""`recto sources`: what there is, what goes along, how it comes in, and which servers may run."""

import io
import json
import sys
from pathlib import Path

import pytest
from rich.console import Console
from tests.cli.conftest import Run, failure, one, rows
from tests.cli.harbour import write_agent, write_server, write_source
from tests.conftest import Script

from recto.cli.drawing.sources import draw_items
from recto.sources.overrides import SourceStatus


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    """The default agent, in the project."""
    folder = tmp_path / ".recto/agents/default"
    write_agent(folder)
    return folder


@pytest.fixture
def begun(agent: Path, run: Run, script: Script) -> str:
    """The id of a conversation with this agent."""
    return str(one(run("ask", "-m", script({"text": "Yes."}), "hello", "--json"))["conversation"])


def listed(run: Run, *options: str) -> dict[str, dict[str, object]]:
    return {row.get("id") or row["name"]: row for row in rows(run("sources", "list", "--json", *options))}


# -- what there is


def test_those_of_another_agent_are_listed_as_a_new_conversation_would_have_them(
    run: Run, begun: str, home: Path
) -> None:
    write_source(home / "agents/clerk", "rule", "polite", "Be polite.", include="always")
    write_source(home / "agents/clerk", "rule", "off", "Nothing.", include="always", enabled=False)
    write_source(home / "agents/clerk", "reference", "loud", "Shout.", include="sometimes")
    found = listed(run, "--agent", "clerk", "--kind", "rule")
    assert [(name, row["enabled"]) for name, row in found.items()] == [("rule:off", False), ("rule:polite", True)]
    assert list(listed(run, "--agent", "clerk", "--kind", "reference")) == ["reference:loud"]
    assert "sometimes" in run("sources", "list", "--agent", "clerk").stderr
    assert run("sources", "list", "-c", begun).stdout.startswith("agent default, conversation #1\n")
    for wrong, code in ((["--agent", "clerk", "-c", begun], 2), (["--agent", "clrk"], 1), (["-c", "01X"], 1)):
        failure(run("sources", "list", *wrong), code)


def drawn(listed: SourceStatus) -> list[str]:
    console = Console(file=io.StringIO(), force_terminal=True, color_system=None, width=60)
    draw_items(console, [listed])
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


# -- what goes along


def test_a_source_is_added_whatever_its_mode_and_stays(run: Run, begun: str) -> None:
    run("sources", "add", "rule:my tests", "ref:prices")
    found = listed(run)
    assert [found[name]["mode"] for name in ("rule:my tests", "reference:prices")] == ["manual", "manual"]
    assert found["reference:prices"]["since"]
    run("ask", "--continue", "again")
    assert b"A night is 20 euros." in run("request", "rebuild").stdout_bytes


def test_a_removed_source_comes_back_as_manual(run: Run, begun: str) -> None:
    gone = one(run("sources", "remove", "rule:style", "--json"))
    assert (gone["conversation"], gone["mode"], gone["removed"]) == (begun, None, True)
    back = one(run("sources", "add", "rule:style", "-c", begun, "--json"))
    assert (back["mode"], back["include"], back["removed"]) == ("manual", "always", False)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("add rule:stile", "did you mean rule:style?"),
        ("add style", "write rule:NAME, ref:NAME or tool:SERVER/NAME"),
        ("add tool:nowhere/x", "tool:nowhere/x"),
        ("add ref:prices -c 01X", "there is no conversation 01X"),
        ("add ref:prices rule:nope", "there is no rule:nope"),
        ("add ref:prices ref:prices", "already: added 20"),
        ("add ref:prices rule:style", "already: it is always included"),
        ("remove rule:style ref:prices", "reference:prices is not in this conversation"),
        ("remove rule:style rule:style", "rule:style is not in this conversation"),
    ],
)
def test_of_several_all_are_taken_or_none(run: Run, begun: str, words: str, said: str) -> None:
    before = listed(run)
    told = failure(run("sources", *words.split()))
    assert (said in told, told.count("\n")) == (True, 1)
    assert listed(run) == before


# -- how it comes in


def test_a_mode_is_written_into_the_agents_file_which_is_told(run: Run, agent: Path) -> None:
    file = agent / "agent.toml"
    for mode in ("agent", "always"):
        told = one(run("sources", "mode", "ref:prices", mode, "--json"))
        assert told == {"id": "reference:prices", "include": mode, "agent": "default", "file": str(file)}
        assert listed(run)["reference:prices"]["include"] == mode
    assert "prices" in file.read_text()


def test_a_mode_of_what_there_is_not_is_refused(run: Run, agent: Path) -> None:
    for name, said in (
        ("ref:price", "did you mean prices?"),
        ("tool:github/x", "github"),
        ("prices", "is not the name of a source"),
        ("tool:read_documents", "did you mean read_document?"),
        ("tool:recto/read_documents", "did you mean read_document?"),
        ("tool:zzz", "has no tool zzz"),
    ):
        assert said in failure(run("sources", "mode", name, "agent"))
    failure(run("sources", "mode", "ref:prices", "sometimes"), 2)
    assert not (agent / "agent.toml").exists()


# -- servers


def test_a_server_of_the_project_runs_once_it_is_trusted(run: Run, agent: Path, tmp_path: Path) -> None:
    origin = write_server(tmp_path)
    command = f"HARBOUR_KEY=… {sys.executable} {tmp_path / 'harbour.py'}"
    told = run("sources", "list")
    assert (
        f"harbour  untrusted: `recto sources trust harbour` lets it run\n  {command}\n  from {origin}\n" in told.stdout
    )
    assert "note: the project's MCP server harbour was not started" in told.stderr
    assert f"  runs     {command.replace('…', 'hush')}" in run("sources", "trust", "harbour").stdout.splitlines()
    found = listed(run)
    tool, server = found["tool:harbour/berth"], found["harbour"]
    assert (tool["called"], tool["approval"], tool["mode"], tool["enabled"]) == (
        "harbour__berth",
        "ask",
        "always",
        True,
    )
    assert (server["tools"], server["runs"], server["is_yours"], server["origin"]) == (2, command, False, str(origin))
    assert "hush" not in json.dumps(found)
    gone = one(run("sources", "distrust", "harbour", "--json"))
    assert (gone["server"], gone["trusted"]) == ("harbour", False)
    assert list(listed(run, "--kind", "tool")) == ["harbour"]


def test_tools_are_added_and_given_modes_by_server_and_name(run: Run, home: Path, begun: str) -> None:
    write_server(home, include="manual", tools={"wait": {"approval": "deny"}, "berth": {"approval": "allow"}})
    lines = run("sources", "list").stdout.splitlines()
    assert "○ tool:harbour/berth  [Manual]  runs without asking  Books a berth for a boat." in lines
    assert not any("tool:harbour/wait" in line for line in lines), "what never runs is not offered"
    assert one(run("sources", "add", "tool:harbour/berth", "--json"))["mode"] == "manual"
    assert "harbour has no tool bert" in failure(run("sources", "mode", "tool:harbour/bert", "agent"))
    run("sources", "mode", "tool:harbour/berth", "always")
    assert "comes in always" in run("sources", "mode", "tool:harbour/wait", "always").stdout
    run("sources", "mode", "tool:harbour", "agent")
    write_server(home, include="manual")
    found = listed(run, "--kind", "tool")
    assert [found[f"tool:harbour/{name}"]["include"] for name in ("berth", "wait")] == ["always", "always"]
    run("sources", "mode", "tool:harbour/wait", "agent")
    assert listed(run, "--kind", "tool")["tool:harbour/wait"]["include"] == "agent"


def test_only_a_server_of_the_project_can_be_trusted(run: Run, home: Path) -> None:
    origin = write_server(home)
    for command in ("trust", "distrust"):
        told = failure(run("sources", command, "harbour"))
        assert f"harbour is your own and needs no trust; `enabled` in {origin}" in told
        assert "has no MCP server nope" in failure(run("sources", command, "nope"))


def test_what_looks_like_a_key_is_hidden_unless_it_has_to_be_judged(run: Run, tmp_path: Path) -> None:
    (tmp_path / ".recto").mkdir()
    servers = {
        "far": {"url": "https://example.test/mcp\u202e", "headers": {"Authorization": "Bearer hush"}},
        "near": {"command": "fetch", "args": ["--token", "hush", "a b"], "cwd": "/srv"},
    }
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    told = run("sources", "list").stdout
    assert "  https://example.test/mcp\\u202e with the headers Authorization\n" in told
    assert "  fetch --token … 'a b' in /srv\n" in told.replace("'…'", "…")
    assert "hush" not in told
    assert "runs     fetch --token hush 'a b' in /srv\n" in run("sources", "trust", "near").stdout
