import shutil
from pathlib import Path

import pytest
from tests.agents.conftest import Write, only_note, settle, writer

from recto.agents.agent import Agent, apply_agent
from recto.agents.agents import Agents
from recto.base import file_cache
from recto.errors import Invalid, NotFound
from recto.settings import settings

# -- which there are


def test_the_default_agent_needs_no_file(agents: Agents) -> None:
    assert agents.names() == ["default"]
    assert agents.read("default") == Agent()


def test_agents_of_home_and_project_are_listed_once_with_default_first(
    agents: Agents, home: Path, project: Path
) -> None:
    for folder in (home / "agents/zoe", home / "agents/clerk", project / ".recto/agents/clerk", home / "agents/no way"):
        folder.mkdir(parents=True)
    (home / "agents/a file").write_text("")
    assert agents.names() == ["default", "clerk", "zoe"]


def test_an_unknown_agent_suggests_the_closest_name(agents: Agents, yours: Write) -> None:
    yours("agent.toml", "")
    with pytest.raises(NotFound, match=r"there is no agent clrk: did you mean clerk\?"):
        agents.read("clrk")
    with pytest.raises(NotFound, match=r"there is no agent zzz: `recto agent new zzz` creates it"):
        agents.check("zzz")


def test_a_bad_name_says_what_is_allowed(agents: Agents, tmp_path: Path) -> None:
    for name in ("", "..", "../clerk", "a b", ".hidden", "a/b", "x" * 65, "x" * 100_000):
        with pytest.raises(Invalid, match=r"use letters, digits, _, \. and -, at most 64 characters") as caught:
            agents.read(name)
        assert len(caught.value.message) < 200
    with pytest.raises(NotFound):
        agents.read("x" * 64)
    far = tmp_path / "/".join(["long" * 50] * 30)
    with pytest.raises(Invalid, match=r"^cannot read .*: File name too long$"):
        Agents(far, None).read("clerk")
    assert Agents(far, None).names() == ["default"]


def test_a_home_that_is_the_recto_folder_of_the_project_is_read_once_and_as_yours(project: Path) -> None:
    writer(project / ".recto/agents/clerk")("agent.toml", '[mcpServers.git]\ncommand = "git-server"\n')
    agents = Agents(project / ".recto", project)
    (server,) = agents.read("clerk").servers
    assert server.is_yours


def test_a_project_cannot_use_files_outside_of_it(agents: Agents, theirs: Write, tmp_path: Path) -> None:
    secret = tmp_path / "secret.md"
    secret.write_text("do not tell")
    theirs("agent.toml", 'system_prompt_file = "../../../../secret.md"\n')
    folder = theirs("rules/own.md", "fine").parent
    (folder / "stolen.md").symlink_to(secret)
    (folder / "linked.md").symlink_to(folder / "own.md")
    (folder.parent / "references").symlink_to(tmp_path)
    agent = agents.read("clerk")
    assert agent.system_prompt is None
    assert [rule.name for rule in agent.rules] == ["linked", "own"]
    assert not agent.references
    assert sorted("points outside the project" in note for note in agent.notes) == [True, True, True]


def test_the_user_may_link_whatever_they_like(agents: Agents, yours: Write, tmp_path: Path) -> None:
    (tmp_path / "dotfiles.md").write_text("mine")
    (yours("rules/own.md", "fine").parent / "linked.md").symlink_to(tmp_path / "dotfiles.md")
    yours("agent.toml", f'system_prompt_file = "{tmp_path}/dotfiles.md"\n')
    agent = agents.read("clerk")
    assert ([rule.text for rule in agent.rules], agent.system_prompt) == (["mine", "fine"], "mine")


# -- at every turn


def test_a_changed_file_applies_at_the_next_read(agents: Agents, yours: Write) -> None:
    path = yours("rules/style.md", "one")
    for text in ("two", "six", "ten"):
        agents.read("clerk")
        path.write_text(text)
        assert agents.read("clerk").rules[0].text == text
    path.unlink()
    assert not agents.read("clerk").rules


def test_unchanged_files_are_not_read_again(
    agents: Agents, home: Path, yours: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    yours("agent.toml", 'model = "a:b"\n')
    for number in range(5):
        yours(f"rules/{number}.md", "text")
    settle(home)
    opened: list[str] = []
    real = file_cache._read_bytes
    monkeypatch.setattr(file_cache, "_read_bytes", lambda entry: opened.append(entry.path) or real(entry))  # type: ignore[func-returns-value]
    first = agents.read("clerk")
    assert len(opened) == 6
    assert agents.read("clerk") is first
    changed = yours("rules/3.md", "other")
    opened.clear()
    assert agents.read("clerk").rules[3].text == "other"
    assert opened == [str(changed)]


def test_a_deleted_agent_is_returned_as_last_read(agents: Agents, home: Path, yours: Write) -> None:
    yours("rules/style.md", "Be brief.")
    before = agents.read("clerk")
    shutil.rmtree(home / "agents" / "clerk")
    with pytest.raises(NotFound):
        agents.read("clerk")
    gone = agents.read_or_last("clerk")
    assert gone.rules == before.rules
    assert "the agent clerk no longer exists: the conversation continues with the agent as it was" in only_note(gone)
    bare = Agents(home, None).read_or_last("clerk")
    assert (bare.name, bare.rules) == ("clerk", ())
    assert "continues without its rules, references, tools and settings" in only_note(bare)
    yours("rules/style.md", "Be brief.")
    assert not agents.read_or_last("clerk").notes


# -- settings


def test_an_agent_overrides_context_settings_but_not_options(agents: Agents, home: Path, yours: Write) -> None:
    path = yours("agent.toml", 'model = "x:y"\n[context]\nstrategy = "hybrid"\nthreshold = 0.7\n')
    loaded = settings.load(home, None, {}, {"context.threshold": 0.9})
    own = apply_agent(loaded, agents.read("clerk"))
    assert (own.context.strategy, own.context.threshold, own.model) == ("hybrid", 0.9, loaded.model)
    assert own.origin("context.strategy") == str(path)
    assert apply_agent(loaded, agents.read("default")) == loaded
