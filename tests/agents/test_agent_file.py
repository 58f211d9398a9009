import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import tomlkit
from hypothesis import given
from hypothesis import strategies as st
from tests.agents.conftest import Write, only_note

from recto.agents import agent_file
from recto.agents.agent import AgentLayer, merge_layers
from recto.agents.agent_file import BUILT_IN_TOOLS
from recto.agents.agents import Agents
from recto.settings import settings
from recto.sources.tools import FORGET_FACT, RECALL, RECALL_FACTS, REMEMBER
from recto.sources.vault_tools import reading_tools, writing_tools
from recto.vault.vault import Vault
from recto.vault.vault_search import VaultSearch


def test_every_key_of_agent_toml_is_read(agents: Agents, yours: Write) -> None:
    file = yours(
        "agent.toml",
        """
        description = "Answers\\n letters."
        model = "openai:gpt-4o"
        system_prompt = "You answer letters."
        [context]
        strategy = "hybrid"
        threshold = 0.7
        budgets.tools = 0.2
        use_facts = false
        """,
    )
    agent = agents.read("clerk")
    assert not agent.notes
    assert (agent.description, agent.model) == ("Answers letters.", "openai:gpt-4o")
    assert agent.system_prompt == "You answer letters."
    assert agent.context == {
        "context.strategy": "hybrid",
        "context.threshold": 0.7,
        "context.budgets.tools": 0.2,
        "context.use_facts": False,
    }
    assert agent.origins["context.budgets.tools"] == agent.origins["model"] == str(file)


def test_the_project_overrides_the_user_key_by_key(agents: Agents, yours: Write, theirs: Write) -> None:
    mine = yours(
        "agent.toml", 'model = "a:b"\ndescription = "mine"\n[context]\nthreshold = 0.7\nuse_agent_memory = false\n'
    )
    other = theirs("agent.toml", 'model = "c:d"\n[context]\nlow_water = 0.4\nuse_facts = false\n')
    agents.trust_settings()
    agent = agents.read("clerk")
    assert (agent.model, agent.description) == ("c:d", "mine")
    switched = {"context.use_agent_memory": False, "context.use_facts": False}
    assert agent.context == {"context.threshold": 0.7, "context.low_water": 0.4, **switched}
    assert (agent.origins["model"], agent.origins["description"]) == (str(other), str(mine))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("model = ", "agent.toml is not valid TOML"),
        ("model = 7", "model = 7 is not allowed; it takes a text"),
        ('modle = "a:b"', "an agent has no setting modle; did you mean model?"),
        ("colours = 3", "an agent has no setting colours; it has description, model"),
        ("[mcp_servers.x]", "did you mean mcpServers?"),
        (
            '[context]\nstrategy = "hope"',
            "context.strategy = 'hope' is not allowed; it takes discard or summarize or hybrid",
        ),
        ("[context]\nthreshold = 9", "context.threshold = 9 is not allowed; it takes a number from 0.1 to 1"),
        ("[context]\nthresold = 0.9", "did you mean context.threshold?"),
        ('context = "hybrid"', "context must be a table: [context]"),
        ('[context]\nuse_facts = "perhaps"', "context.use_facts = 'perhaps' is not allowed; it takes true or false"),
        ("[context]\nuse_facks = true", "did you mean context.use_facts?"),
        ("[context]\nmax_tokens = 9000", "Unknown setting context.max_tokens. Use context.max_prompt_tokens."),
        ("include = 3", "include must be a table: [include]"),
        ('[include]\n"rule:style" = "sometimes"', "it takes always or manual or agent"),
        ('[include]\n"style" = "always"', "'style' is not the name of a source; write rule:NAME"),
        ('[include]\n"rule:stile" = "always"', "there is no rule:stile; did you mean style?"),
        ('[include]\n"ref:stile" = "always"', "there is no ref:stile"),
        ('[include]\n"tool:github/x" = "always"', "there is no tool:github/x"),
        ('[include]\n"tool:nosuch" = "always"', "include: there is no tool:nosuch"),
        ('[include]\n"tool:recto/x" = "always"', "include: there is no tool:recto/x"),
        ('[include]\n"tool:read_documents" = "always"', "no tool:read_documents; did you mean read_document?"),
        ("mcpServers = 3", "mcpServers must be a table of servers by name"),
    ],
)
def test_a_problem_in_agent_toml_is_one_note_and_the_rest_works(
    agents: Agents, yours: Write, text: str, said: str
) -> None:
    yours("rules/style.md", "Be brief.")
    file = yours("agent.toml", text)
    agent = agents.read("clerk")
    note = only_note(agent)
    assert said in note
    assert str(file) in note
    assert [rule.name for rule in agent.rules] == ["style"]


def test_system_prompt_and_system_prompt_file_set_the_same_value(agents: Agents, yours: Write, theirs: Write) -> None:
    yours("prompt.md", "From a file.")
    yours("agent.toml", 'system_prompt_file = "prompt.md"\nsystem_prompt = "From a text."\n')
    agent = agents.read("clerk")
    assert agent.system_prompt == "From a file."
    assert "are both set; the file is used" in only_note(agent)
    theirs("agent.toml", 'system_prompt = "From the project."\n')
    agent = agents.read("clerk")
    assert agent.system_prompt == "From the project."
    assert "system_prompt_file" not in agent.origins


def test_the_system_prompt_file_is_read_at_every_turn_or_noted(agents: Agents, yours: Write) -> None:
    yours("agent.toml", 'system_prompt_file = "prompt.md"\n')
    agent = agents.read("clerk")
    assert (agent.system_prompt, "there is no such file" in only_note(agent)) == (None, True)
    for text in ("First.", "Second."):
        yours("prompt.md", f"{text}\n")
        agent = agents.read("clerk")
        assert (agent.system_prompt, agent.notes) == (text, ())
    yours("prompt.md", b"\0\0\0")
    assert "is not text" in only_note(agents.read("clerk"))
    (yours("prompt.md", "x")).unlink()
    yours("prompt.md/inner", "")
    for name in ("prompt.md", "a\\u0000b.md", "~nobody-of-this-name/x.md", "x" * 5000, "."):
        yours("agent.toml", f'system_prompt_file = "{name}"\n')
        assert "cannot read" in only_note(agents.read("clerk"))


def test_the_include_table_overrides_front_matter_and_servers(agents: Agents, yours: Write) -> None:
    yours("rules/Style.md", "---\ninclude: manual\n---\ntext")
    yours("references/api.md", "text")
    yours(
        "agent.toml",
        """
        [include]
        "rule:style" = "always"
        "ref:api" = "agent"
        "tool:github" = "agent"
        "tool:github/create_issue" = "manual"
        "tool:read_document" = "manual"
        "tool:recto/find_documents" = "agent"
        [mcpServers.github]
        command = "npx"
        include = "always"
        tools.create_issue = { include = "always", approval = "deny" }
        """,
    )
    agent = agents.read("clerk")
    assert not agent.notes
    assert (agent.rules[0].include, agent.references[0].include) == ("always", "agent")
    github, own = agent.server("github"), agent.server("recto")
    assert github is not None
    assert own is not None
    assert (github.include_of("anything"), github.include_of("create_issue")) == ("agent", "manual")
    assert github.approval_of("create_issue") == "deny"
    assert (own.include_of("read_document"), own.include_of("find_documents")) == ("manual", "agent")
    assert own.include_of("recall") == "always"


toml_values = st.recursive(
    st.booleans() | st.integers(-5, 2000) | st.floats(0, 2) | st.text(max_size=4) | st.dates(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(min_size=1, max_size=4), inner, max_size=3),
    max_leaves=5,
)
tables = st.dictionaries(
    st.sampled_from(["description", "model", "system_prompt", "strategy", "context", "memory", "include", "mcpServers"])
    | st.sampled_from(["system_prompt_file", "odd", "Model"]),
    toml_values
    | st.dictionaries(
        st.sampled_from(
            ["threshold", "strategy", "budgets", "facts", "rule:a", "tool:x", "tool:x/y", "ref:", "recto", "x"]
        ),
        toml_values | st.dictionaries(st.sampled_from(["command", "include", "tools", "args", "env"]), toml_values),
        max_size=3,
    ),
    max_size=5,
)


@given(tables)
def test_whatever_agent_toml_says_there_is_an_agent_and_its_notes_name_the_file(table: dict[str, Any]) -> None:
    text = tomlkit.dumps(table)
    file = agent_file.read_agent_file("x/agent.toml", text.encode("utf-8", "replace"), is_yours=False)
    agent = merge_layers("clerk", [AgentLayer(), AgentLayer(file)])
    assert all("x/agent.toml" in note for note in agent.notes)
    assert set(agent.context) <= {spec.key for spec in settings.specs()}
    json.dumps([agent.notes, [server.to_json() for server in agent.servers]], ensure_ascii=False).encode()


def test_every_built_in_tool_can_be_named(agents: Agents, yours: Write, tmp_path: Path) -> None:
    vault = Vault(tmp_path)
    with closing(vault), closing(VaultSearch(vault, tmp_path / "index.db", lambda: None)) as library:
        tools = [*reading_tools(vault, library), *writing_tools(vault)]
    assert sorted([*(each.tool.name for each in tools), RECALL, REMEMBER, RECALL_FACTS, FORGET_FACT]) == sorted(
        BUILT_IN_TOOLS
    )
    yours("agent.toml", "[include]\n" + "".join(f'"tool:{name}" = "agent"\n' for name in BUILT_IN_TOOLS))
    agent = agents.read("clerk")
    own = agent.server("recto")
    assert own is not None
    assert ({own.include_of(name) for name in BUILT_IN_TOOLS}, agent.notes) == ({"agent"}, ())
