import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.agents.agent import Agent
from recto.agents.agents import Agents
from recto.agents.server_table import merge_server_table, read_server_tables
from recto.sources.server_config import ServerConfig, ToolConfig


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    """A home and a project, each with a folder of the agent clerk."""
    home, project = tmp_path / "home", tmp_path / "project"
    for folder in (home, project / ".recto"):
        (folder / "agents" / "clerk").mkdir(parents=True)
    return home, project


def read(
    places: tuple[Path, Path],
    *,
    yours: str = "",
    theirs: str = "",
    shared: Mapping[str, Any] | None = None,
    their_shared: Mapping[str, Any] | None = None,
) -> Agent:
    """The agent when its files say this."""
    home, project = places
    for folder, text, servers in ((home, yours, shared), (project / ".recto", theirs, their_shared)):
        (folder / "agents/clerk/agent.toml").write_text(text)
        root = home if folder == home else project
        if servers is not None:
            (root / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    return Agents(home, project).read("clerk")


def server(agent: Agent, name: str) -> ServerConfig:
    found = agent.server(name)
    assert found is not None, agent.notes
    return found


WHOLE = """
[mcpServers.github]
type = "stdio"
command = "npx"
args = ["-y", "server-${FLAVOUR:-github}"]
env = { GITHUB_TOKEN = "${GITHUB_TOKEN}", PORT = 8080 }
cwd = "/somewhere"
include = "agent"
approval = "deny"
timeout_s = 5
[mcpServers.github.tools.create_issue]
include = "manual"
approval = "allow"
enabled = false
[mcpServers.weather]
type = "streamable-http"
url = "https://weather.example/mcp"
headers = { Authorization = "Bearer ${WEATHER}" }
disabled = true
"""


def test_servers_are_read_in_the_format_of_other_tools_with_our_keys(places: tuple[Path, Path]) -> None:
    agent = read(places, yours=WHOLE)
    origin = str(places[0] / "agents/clerk/agent.toml")
    assert not agent.notes
    assert agent.servers == (
        ServerConfig(
            "github",
            command="npx",
            args=("-y", "server-${FLAVOUR:-github}"),
            env={"GITHUB_TOKEN": "${GITHUB_TOKEN}", "PORT": "8080"},
            cwd="/somewhere",
            include="agent",
            approval="deny",
            timeout_s=5.0,
            tools={"create_issue": ToolConfig("manual", "allow", False)},
            origin=origin,
        ),
        ServerConfig(
            "weather",
            url="https://weather.example/mcp",
            headers={"Authorization": "Bearer ${WEATHER}"},
            enabled=False,
            origin=origin,
        ),
    )


def test_a_mcp_json_is_read_for_every_agent_and_may_hold_what_others_read(places: tuple[Path, Path]) -> None:
    shared = {"git": {"command": "git-server", "alwaysAllow": ["push"], "timeout": 9}}
    home, project = places
    agent = read(places, shared=shared, their_shared={"db": {"url": "http://127.0.0.1:9/mcp"}})
    assert not agent.notes
    assert [(each.name, each.is_yours, each.origin) for each in agent.servers] == [
        ("git", True, str(home / ".mcp.json")),
        ("db", False, str(project / ".mcp.json")),
    ]
    assert server(agent, "git").approval_of("push") == "ask"
    assert Agents(home, project).read("default").servers == agent.servers


def test_agent_toml_wins_over_mcp_json_and_the_project_over_the_user(places: tuple[Path, Path]) -> None:
    def command(which: str) -> str:
        return f'[mcpServers.git]\ncommand = "{which}"\n'

    layers: dict[str, Any] = {"shared": {"git": {"command": "a"}}}
    assert server(read(places, **layers), "git").command == "a"
    layers["their_shared"] = {"git": {"command": "b"}}
    assert server(read(places, **layers), "git").command == "b"
    layers["yours"] = command("c")
    found = server(read(places, **layers), "git")
    assert (found.command, found.is_yours) == ("c", True)
    layers["theirs"] = command("d")
    found = server(read(places, **layers), "git")
    assert (found.command, found.is_yours) == ("d", False)


def test_a_table_without_a_target_overrides_a_server_key_by_key(places: tuple[Path, Path]) -> None:
    shared = {"git": {"command": "git-server", "env": {"A": "1", "B": "2"}, "tools": {"push": {"approval": "deny"}}}}
    more = '[mcpServers.git]\ninclude = "agent"\nenv = { B = "3" }\ntools.push.include = "manual"\n'
    found = server(read(places, shared=shared, yours=more), "git")
    assert (found.command, found.env) == ("git-server", {"A": "1", "B": "3"})
    assert (found.include, found.tool("push")) == ("agent", ToolConfig("manual", "deny"))
    assert (found.is_yours, found.origin) == (True, str(places[0] / ".mcp.json"))


def test_a_project_may_tighten_your_servers(places: tuple[Path, Path]) -> None:
    shared = {"git": {"command": "git-server", "approval": "allow"}}
    stricter = '[mcpServers.git]\napproval = "ask"\ninclude = "agent"\n[mcpServers.git.tools.push]\nenabled = false\n'
    agent = read(places, shared=shared, theirs=stricter)
    found = server(agent, "git")
    assert (found.is_yours, found.approval, found.include) == (True, "ask", "agent")
    assert not found.tool("push").enabled
    assert not agent.notes


@pytest.mark.parametrize(
    ("said", "looser"),
    [
        ({}, 'approval = "allow"'),
        ({"approval": "deny"}, 'approval = "ask"'),
        ({}, 'tools.push.approval = "allow"'),
        ({"tools": {"push": {"approval": "deny"}}}, 'tools.push.approval = "ask"'),
        ({"tools": {"push": {"enabled": False}}}, "tools.push.enabled = true"),
        ({"disabled": True}, "enabled = true"),
    ],
)
def test_a_project_cannot_loosen_your_servers(places: tuple[Path, Path], said: dict[str, Any], looser: str) -> None:
    shared = {"git": {"command": "git-server", **said}}
    before = server(read(places, shared=shared), "git")
    agent = read(places, shared=shared, theirs=f"[mcpServers.git]\n{looser}\n")
    after = server(agent, "git")
    assert (after.approval_of("push"), after.enabled) == (before.approval_of("push"), before.enabled)
    assert after.tool("push").enabled == before.tool("push").enabled
    assert any("only you can set it" in note for note in agent.notes)


def test_a_project_that_changes_the_target_of_your_server_owns_it(places: tuple[Path, Path]) -> None:
    shared = {"git": {"command": "git-server"}}
    found = server(read(places, shared=shared, theirs='[mcpServers.git]\nargs = ["--evil"]\n'), "git")
    assert not found.is_yours
    assert found.origin == str(places[1] / ".recto/agents/clerk/agent.toml")


def test_the_built_in_tools_have_a_server_of_their_own(places: tuple[Path, Path]) -> None:
    agent = read(places, yours='[mcpServers.recto]\ninclude = "agent"\ntools.read_document.include = "always"\n')
    own = server(agent, "recto")
    assert (own.include_of("recall"), own.include_of("read_document")) == ("agent", "always")
    assert not agent.notes
    for line in ('command = "x"', 'env = { A = "b" }'):
        agent = read(places, yours=f"[mcpServers.recto]\n{line}\n")
        assert "recto is the name of the built-in tools" in agent.notes[0]


def test_a_project_cannot_allow_built_in_tools(places: tuple[Path, Path]) -> None:
    agent = read(places, theirs='[mcpServers.recto]\napproval = "allow"\n')
    assert server(agent, "recto").approval is None
    assert "only you can set it" in agent.notes[0]


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({}, "it has neither a command nor a url"),
        ({"args": ["x"]}, "it has neither a command nor a url"),
        ({"command": "x", "url": "y"}, "it has both a command and a url"),
        ({"command": ["npx", "x"]}, "Expected `str`, got `array` - at `$.command`"),
        ({"command": "x", "args": ["hush", 7]}, "Expected `str`, got `int` - at `$.args[1]`"),
        ({"command": "x", "env": {"TOKEN": ["hush"]}}, "at `$.env[...]`"),
        ({"command": "x", "env": "hush"}, "at `$.env`"),
        ({"url": "x", "type": "sse"}, "its type does not fit: stdio needs a command"),
        ({"url": "x", "type": "stdio"}, "its type does not fit"),
        (7, "Expected `object`, got `int`"),
        ({"command": "x", "include": "often"}, "at `$.include`"),
        ({"command": "x", "timeout_s": 0}, "Expected `float` >= 1.0 - at `$.timeout_s`"),
        ({"command": "x", "enabled": "no"}, "Expected `bool`, got `str` - at `$.enabled`"),
        ({"command": "x", "tools": {"push": {"approval": "yes"}}}, "at `$.tools[...].approval`"),
    ],
)
def test_an_invalid_server_is_noted_and_does_not_run(places: tuple[Path, Path], entry: Any, said: str) -> None:
    agent = read(places, shared={"odd": entry, "git": {"command": "git-server"}})
    (note,) = agent.notes
    assert said in note
    assert note.startswith(str(places[0] / ".mcp.json"))
    assert "hush" not in note
    assert [each.name for each in agent.servers if each.enabled] == ["git"]


def test_a_table_with_a_mistake_disables_the_server_it_was_to_limit(places: tuple[Path, Path]) -> None:
    shared = {"git": {"command": "git-server", "approval": "allow"}}
    agent = read(places, shared=shared, yours='[mcpServers.git]\napproval = "denny"\n')
    assert not server(agent, "git").enabled
    assert "it is disabled" in agent.notes[0]


@pytest.mark.parametrize("name", ["", "a/b", " a", "-", "a" * 65, "a\nb", ".."])
def test_a_bad_server_name_says_what_is_allowed(places: tuple[Path, Path], name: str) -> None:
    agent = read(places, shared={name: {"command": "x"}})
    assert not agent.servers
    assert "use letters, digits, spaces, _, . and - in its name" in agent.notes[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is not valid JSON"),
        ("[" * 5000, "is not valid JSON"),
        ("[]", "has no servers"),
        ("{}", 'write {"mcpServers": {NAME: {…}}}'),
        ('{"mcpServers": []}', "mcpServers must be a table"),
        ("\0" * 99, "is not text"),
    ],
)
def test_an_invalid_mcp_json_is_noted(places: tuple[Path, Path], text: str, said: str) -> None:
    (places[1] / ".mcp.json").write_text(text)
    agent = read(places)
    (note,) = agent.notes
    assert said in note
    assert str(places[1] / ".mcp.json") in note


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
entries = st.dictionaries(
    st.sampled_from(["command", "args", "env", "cwd", "url", "headers", "type", "include", "approval", "enabled"])
    | st.sampled_from(["disabled", "timeout_s", "tools", "odd"]),
    json_values | st.sampled_from(["allow", "ask", "deny", "agent"]),
    max_size=6,
)
RANK = ("allow", "ask", "deny")


@given(entries, entries)
def test_a_project_never_loosens_your_servers_whatever_the_files_say(mine: Any, theirs: Any) -> None:
    notes: list[str] = []
    servers: dict[str, ServerConfig] = {}
    for entry, is_yours in (({**mine, "command": "x", "url": ""}, True), ({**theirs, "command": "", "url": ""}, False)):
        tables, wrong = read_server_tables({"git": entry}, "file", is_yours=is_yours, strict=True)
        notes += wrong
        before = servers.get("git")
        for table in tables:
            merge_server_table(servers, table, notes)
        after = servers.get("git")
        if before and after:
            assert RANK.index(after.approval_of("push")) >= RANK.index(before.approval_of("push"))
            assert before.enabled or not after.enabled
            assert after.is_yours or {"args", "env", "cwd", "headers"} & set(theirs)
