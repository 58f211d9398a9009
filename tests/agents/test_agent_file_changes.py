from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.agents.conftest import Write

from recto.agents import agent_file
from recto.agents.agents import Agents
from recto.errors import Invalid, NotFound
from recto.sources.source import SourceId


def test_an_include_is_written_into_the_users_file_and_comments_stay(agents: Agents, yours: Write) -> None:
    yours("rules/House style.md", "text")
    file = yours("agent.toml", '# mine\nmodel = "a:b" # the small one\n')
    assert agents.set_include("clerk", SourceId("rule", "House style"), "always") == file
    assert file.read_text() == '# mine\nmodel = "a:b" # the small one\n\n[include]\n"rule:House style" = "always"\n'
    assert agents.read("clerk").rules[0].include == "always"
    agents.set_include("clerk", "rule:house STYLE", "agent")
    assert file.read_text().count("tyle") == 1
    assert agents.read("clerk").rules[0].include == "agent"


def test_servers_and_tools_get_an_include_too(agents: Agents, yours: Write) -> None:
    file = yours("agent.toml", '[mcpServers.github]\ncommand = "npx"\n')
    agents.set_include("clerk", "github", "agent")
    agents.set_include("clerk", SourceId("tool", "create_issue", "github"), "manual")
    agents.set_include("clerk", "tool:recto", "manual")
    agents.set_include("clerk", "tool:read_document", "always")
    for line in ("tool:github", "tool:github/create_issue", "tool:recto", "tool:recto/read_document"):
        assert f'"{line}" = ' in file.read_text()
    agent = agents.read("clerk")
    github, own = agent.server("github"), agent.server("recto")
    assert github is not None
    assert own is not None
    assert (github.include, github.include_of("create_issue")) == ("agent", "manual")
    assert (own.include, own.include_of("read_document")) == ("manual", "always")
    assert not agent.notes


def test_a_source_that_the_agent_lacks_cannot_be_included(agents: Agents, yours: Write) -> None:
    yours("rules/style.md", "text")
    for id in ("rule:stile", "ref:style", "tool:github/x", "tool:recal"):
        with pytest.raises(NotFound):
            agents.set_include("clerk", id, "always")
    with pytest.raises(Invalid):
        agents.set_include("clerk", "rule:style", "often")


def test_a_source_of_the_project_is_changed_in_the_project(
    agents: Agents, home: Path, project: Path, yours: Write, theirs: Write
) -> None:
    yours("rules/mine.md", "text")
    theirs("rules/theirs.md", "text")
    (project / ".mcp.json").write_text('{"mcpServers": {"git": {"command": "git-server"}}}')
    mine, other = home / "agents/clerk/agent.toml", project / ".recto/agents/clerk/agent.toml"
    assert agents.set_include("clerk", "rule:mine", "always") == mine
    assert agents.set_value("clerk", "model", "a:b") == mine
    assert agents.set_include("default", "git", "agent") == project / ".recto/agents/default/agent.toml"
    assert agents.set_include("clerk", "rule:theirs", "always") == other
    # now that the project has a file, it is the one that counts
    assert agents.set_include("clerk", "rule:mine", "agent") == other
    assert agents.set_value("clerk", "model", "c:d") == other
    agent = agents.read("clerk")
    assert ([rule.include for rule in agent.rules], agent.model) == (["agent", "always"], "c:d")


def test_a_setting_is_written_where_the_file_has_it(agents: Agents, yours: Write) -> None:
    prompt = yours("agent.toml", 'system_prompt_file = "x.md"\n')
    agents.set_value("clerk", "system_prompt", "Be kind.")
    assert prompt.read_text() == 'system_prompt = "Be kind."\n', "one prompt key removes the other"
    yours("agent.toml", '[context]\nstrategy = "discard"\n')
    agents.set_value("clerk", "context.budgets.tools", "0.2")
    agents.set_value("clerk", "context.use_facts", "off")
    agent = agents.read("clerk")
    said = {"context.strategy": "discard", "context.budgets.tools": 0.2, "context.use_facts": False}
    assert (agent.context, agent.notes) == (said, ())


def test_a_setting_can_be_unset(agents: Agents, yours: Write, theirs: Write) -> None:
    mine = yours("agent.toml", '# why\n[context]\nstrategy = "hybrid"\nthreshold = 0.7\n')
    other = theirs("agent.toml", "[context]\nthreshold = 0.8\n")
    assert agents.unset("clerk", "context.threshold") == other
    assert agents.read("clerk").context["context.threshold"] == 0.7
    assert agents.unset("clerk", "context.threshold") == mine
    assert agents.unset("clerk", "context.strategy") == mine
    assert not agents.read("clerk").context
    assert "# why" in mine.read_text()
    with pytest.raises(NotFound, match=r"the agent clerk does not set context\.threshold"):
        agents.unset("clerk", "context.threshold")
    with pytest.raises(Invalid, match=r"did you mean context\.threshold\?"):
        agents.unset("clerk", "context.thresold")


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("modell", "a:b", "did you mean model?"),
        ("context.threshold", "9", "it takes a number from 0.1 to 1"),
        ("context.low_water", "0.9", "it takes a number below 0.85"),
        ("context.use_facts", "perhaps", "true or false"),
        ("reply.tries", "3", "an agent has no setting reply.tries"),
    ],
)
def test_a_wrong_setting_is_refused_and_nothing_is_written(
    agents: Agents, yours: Write, key: str, value: str, said: str
) -> None:
    file = yours("agent.toml", "# as it was\n")
    with pytest.raises(Invalid) as caught:
        agents.set_value("clerk", key, value)
    assert said in caught.value.message
    assert file.read_text() == "# as it was\n"


def test_a_broken_file_is_reported_and_not_changed(agents: Agents, yours: Write) -> None:
    yours("rules/style.md", "text")
    file = yours("agent.toml", "model = \n")
    changes: tuple[Callable[[], Path], ...] = (
        lambda: agents.set_value("clerk", "model", "a:b"),
        lambda: agents.set_include("clerk", "rule:style", "always"),
        lambda: agents.unset("clerk", "model"),
    )
    for change in changes:
        with pytest.raises(Invalid, match=r"not valid TOML.*fix it first"):
            change()
    assert file.read_text() == "model = \n"
    yours("agent.toml", "include = 3\n")
    with pytest.raises(Invalid, match="include must be a table; fix it first"):
        agents.set_include("clerk", "rule:style", "always")


lines = st.sampled_from(
    [
        *("# a comment", "", 'description = "what"', 'model = "x:y" # small', "# [context]"),
        *("[context]", "threshold = 0.9", "budgets.tools = 0.1", "[include]", '"rule:style" = "always"'),
        *("[mcpServers.a]", 'command = "x"', "[context.budgets]", "system = 0.1", "[mcpServers.b]"),
    ]
)
changes = st.sampled_from(
    [
        *(("model", "a:b"), ("context.threshold", 0.7), ("context.strategy", "hybrid"), ("context.use_facts", False)),
        ("description", "d"),
    ]
)


@given(st.lists(lines, max_size=12), changes)
def test_a_change_changes_one_thing_and_keeps_every_comment(given_lines: list[str], change: tuple[str, Any]) -> None:
    text = "\n".join(given_lines) + "\n"
    path, (key, value) = Path("agent.toml"), change
    before = agent_file.read_agent_file("agent.toml", text.encode(), is_yours=True)
    if any("is not valid TOML" in note for note in before.notes):
        return
    try:
        changed = agent_file.with_setting(text, path, key, value)
    except Invalid:  # a table that is none, or a file spread out oddly
        return
    after = agent_file.read_agent_file("agent.toml", changed.encode(), is_yours=True)
    full = agent_file.agent_spec(key, "").key
    assert dict(after.values) == {**before.values, full: value}
    assert (after.include, after.servers) == (before.include, before.servers)
    assert changed.count("# a comment") == text.count("# a comment")
    gone = agent_file.without_setting(changed, path, full)
    assert gone is not None
    assert full not in agent_file.read_agent_file("agent.toml", gone.encode(), is_yours=True).values
