"""A project that came from somewhere: what it may set by itself, what it may set once it is trusted, and what never."""

import os
import re
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Script

from recto.agents.agent_file import agent_specs
from recto.agents.agents import Agents
from recto.api.blocking import open_desk
from recto.errors import Invalid
from recto.settings import settings
from recto.settings.project_access import CAPS, FREE, NEEDS_TRUST, ONLY_STRICTER
from recto.settings.settings import set_setting

ROOT = Path(__file__).parents[1]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / ".recto").mkdir(parents=True)
    return folder


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def says(project: Path, text: str) -> Path:
    return write(project / ".recto/config.toml", text)


def load(home: Path, project: Path, **flags: Any) -> settings.Settings:
    return settings.load(home, project, {}, flags)


def trust(home: Path, project: Path, *names: str) -> list[str]:
    return [each.name for each in Agents(home, project).trust_settings(names)]


def test_every_setting_says_whether_a_project_may_set_it() -> None:
    known = {spec.key for spec in (*settings.specs(), *agent_specs())}
    groups = (set(NEEDS_TRUST), set(ONLY_STRICTER), set(CAPS), set(FREE))
    assert set.union(*groups) == known
    assert sum(map(len, groups)) == len(known), "each is in one group"


def test_the_documentation_lists_every_setting_with_what_a_project_may_do() -> None:
    page = (ROOT / "docs" / "sources.md").read_text()
    table = page[page.index("## What a project may set") :].split("\n## ")[0]
    rows = [line.split(" | ")[0] for line in table.splitlines() if line.startswith("| ")]
    cells = [re.findall(r"`([a-z_.]+)`", first) for first in rows]
    assert [set(keys) for keys in cells if keys] == [set(NEEDS_TRUST), set(ONLY_STRICTER), set(CAPS), set(FREE)]


@pytest.mark.parametrize("key", NEEDS_TRUST)
def test_what_decides_who_hears_and_what_is_read_needs_trust_once(home: Path, project: Path, key: str) -> None:
    value, before = "openai:theirs", settings.Settings().get(key)
    write(project / value, "x")
    group, _, name = key.rpartition(".")
    says(project, f'{f"[{group}]" if group else ""}\n{name} = "{value}"\n')
    loaded = load(home, project)
    assert loaded.get(key) == before
    assert loaded.notes == {
        key: f"{project}/.recto/config.toml: {key} = '{value}' is ignored, because it decides {NEEDS_TRUST[key]}: "
        "`recto config trust` accepts it"
    }
    assert trust(home, project) == [key]
    loaded = load(home, project)
    assert loaded.get(key) in (value, str(project / value))
    assert loaded.origin(key) == str(project / ".recto/config.toml")
    assert not loaded.notes


def test_trust_is_bound_to_the_value_and_to_the_project(home: Path, project: Path, tmp_path: Path) -> None:
    says(project, 'model = "openai:a"\n')
    trust(home, project)
    other = tmp_path / "copy"
    says(other, 'model = "openai:a"\n')
    assert "model" in load(home, other).notes
    says(project, 'model = "openai:b"\n')
    assert "model" in load(home, project).notes
    says(project, 'model = "openai:a"\n')
    assert load(home, project).model == "openai:a"


def test_a_link_that_leads_elsewhere_is_another_value(home: Path, project: Path) -> None:
    says(project, 'vault = "notes"\n')
    (project / "one").mkdir()
    (project / "two").mkdir()
    (project / "notes").symlink_to("one")
    trust(home, project)
    assert load(home, project).vault == str(project / "one")
    (project / "notes").unlink()
    (project / "notes").symlink_to("two")
    assert "vault" in load(home, project).notes


@pytest.mark.parametrize("key", ["vault", "system_prompt_file"])
@pytest.mark.parametrize("value", ["/etc/hostname", "../secret", "~/.ssh/id_rsa", "link", "sub/../../secret", "~"])
def test_paths_stay_inside_the_project_whatever_is_trusted(home: Path, project: Path, key: str, value: str) -> None:
    write(project.parent / "secret", "s3cret")
    (project / "link").symlink_to("../secret")
    (project / "sub").mkdir()
    says(project, f'{key} = "{value}"\n')
    assert trust(home, project) == []
    with pytest.raises(Invalid, match="points outside the project"):
        trust(home, project, key)
    loaded = load(home, project)
    assert loaded.get(key) == ""
    assert "points outside the project and is ignored" in loaded.notes[key]


@pytest.mark.parametrize(("key", "stricter"), ONLY_STRICTER.items())
def test_a_project_cannot_give_itself_rights(home: Path, project: Path, key: str, stricter: bool | str) -> None:
    group, _, name = key.rpartition(".")
    table = f"[{group}]\n" if group else ""
    words = {"references.auto": ('"never"', '"always"'), "context.learn_facts": ('"off"', '"on"')}
    strict, wide = words.get(key, (str(stricter).lower(), str(not stricter).lower()))
    wider = f"{table}{name} = {wide}\n"
    write(home / "config.toml", f"{table}{name} = {strict}\n")
    says(project, wider)
    loaded = load(home, project)
    assert loaded.get(key) == stricter
    assert f"only you can switch {'off' if stricter is True else 'on'} {key}, with an option" in loaded.notes[key]
    says(project, f"{table}{name} = {strict}\n")
    write(home / "config.toml", wider)
    assert load(home, project).get(key) == stricter, "it may be stricter than the user"
    says(project, wider)
    assert not load(home, project).notes, "what changes nothing is no matter"


@pytest.mark.parametrize("key", CAPS)
def test_a_project_may_lower_a_limit_and_never_raise_it(home: Path, project: Path, key: str) -> None:
    table, _, name = key.partition(".")
    scale = 1000 if key == "reply.max_characters" else 1

    def file(number: int) -> str:
        return f"[{table}]\n{name} = {number * scale}\n"

    says(project, file(2))
    assert load(home, project).get(key) == 2 * scale, "where the user has set no limit"
    write(home / "config.toml", file(3))
    assert load(home, project).get(key) == 2 * scale
    for more in (4, 0) if table == "spend" else (4,):
        says(project, file(more))
        loaded = load(home, project)
        assert loaded.get(key) == 3 * scale
        assert f"only you can raise {key}, with an option" in loaded.notes[key]
    assert load(home, project, **{key: 9 * scale}).get(key) == 9 * scale


def test_settings_that_lie_outside_the_project_are_ignored(home: Path, project: Path, tmp_path: Path) -> None:
    outside = write(tmp_path / "outside/config.toml", 'system_prompt = "theirs"\n')
    (project / ".recto/config.toml").symlink_to(outside)
    loaded = load(home, project)
    assert loaded.origin("system_prompt") == "default"
    assert "the file itself is outside the project" in loaded.notes["system_prompt"]
    write(tmp_path / "elsewhere/agent.toml", 'system_prompt = "theirs"\n')
    (project / ".recto/agents").mkdir()
    (project / ".recto/agents/clerk").symlink_to(tmp_path / "elsewhere")
    agent = Agents(home, project).read("clerk")
    assert agent.system_prompt is None
    assert "the file itself is outside the project" in agent.notes[0]


@pytest.mark.parametrize("kind", ["pipe", "device", "large"])
def test_settings_are_read_from_ordinary_files_alone(home: Path, project: Path, kind: str) -> None:
    path = project / ".recto/config.toml"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        path.write_bytes(b"#" * 2_000_001)
    with pytest.raises(Invalid, match=r"cannot read .*config\.toml: it is "):
        load(home, project)


def test_what_the_user_says_needs_no_trust_and_ends_the_note(home: Path, project: Path) -> None:
    says(project, 'model = "openai:theirs"\n')
    assert not load(home, project, model="openai:mine").notes
    assert not settings.load(home, project, {"RECTO_MODEL": "openai:mine"}).notes
    write(home / "config.toml", 'model = "openai:mine"\nvault = "~/notes"\n')
    loaded = load(home, project)
    assert (loaded.model, list(loaded.notes)) == ("openai:mine", ["model"])


def test_a_home_inside_the_project_is_the_users_own(project: Path) -> None:
    says(project, 'model = "openai:mine"\n')
    loaded = load(project / ".recto", project)
    assert loaded.model == "openai:mine"
    assert not loaded.notes


def test_who_sets_a_value_for_the_project_trusts_it(home: Path, project: Path) -> None:
    set_setting("model", "openai:mine", home=home, project=project)
    assert load(home, project).model == "openai:mine"
    for key, value in (("vault", str(project.parent)), ("tools.allow_write", "true")):
        with pytest.raises(Invalid, match=key):
            set_setting(key, value, home=home, project=project)
    assert load(home, project).origin("vault") == "default"


AGENT = """
description = "Answers letters"
model = "openai:theirs"
system_prompt_file = "prompt.md"
[context]
summary_model = "openai:theirs"
confirm = false
threshold = 0.5
"""


def test_agents_of_a_project_keep_the_same_rules(home: Path, project: Path) -> None:
    folder = project / ".recto/agents/clerk"
    write(folder / "agent.toml", AGENT)
    write(folder / "prompt.md", "You are theirs.")
    agents = Agents(home, project)
    agent = agents.read("clerk")
    assert (agent.model, agent.system_prompt, agent.description) == ("", None, "Answers letters")
    assert dict(agent.context) == {"context.threshold": 0.5}
    assert sum("`recto config trust` accepts it" in note for note in agent.notes) == 3
    assert trust(home, project) == ["clerk/model", "clerk/system_prompt_file", "clerk/context.summary_model"]
    agent = agents.read("clerk")
    assert (agent.model, agent.system_prompt) == ("openai:theirs", "You are theirs."), "without opening it anew"
    assert agent.context["context.summary_model"] == "openai:theirs"
    write(folder / "agent.toml", AGENT.replace("openai:theirs", "openai:others"))
    assert agents.read("clerk").model == ""


def test_an_agents_prompt_file_stays_inside_the_project(home: Path, project: Path) -> None:
    write(project.parent / "secret", "s3cret")
    for value in ("../../../../secret", "~/.ssh/id_rsa", "/etc/hostname"):
        write(project / ".recto/agents/clerk/agent.toml", f'system_prompt_file = "{value}"\n')
        agent = Agents(home, project).read("clerk")
        assert agent.system_prompt is None
        assert "points outside the project" in agent.notes[0]


def test_who_makes_or_changes_an_agent_of_the_project_trusts_the_values(home: Path, project: Path) -> None:
    agents = Agents(home, project)
    agents.create("clerk", in_project=True, model="openai:mine")
    assert agents.read("clerk").model == "openai:mine"
    agents.set_value("clerk", "model", "openai:other")
    assert agents.read("clerk").model == "openai:other"
    with pytest.raises(Invalid, match="points outside"):
        agents.set_value("clerk", "system_prompt_file", "/etc/hostname")


def test_without_trust_the_chat_goes_on_and_tells(home: Path, project: Path, script: Script) -> None:
    theirs, mine = script({"text": "Theirs."}), script({"text": "Mine."})
    write(home / "config.toml", f'model = "{mine}"\n')
    says(project, f'model = "{theirs}"\nvault = "~/.ssh"\n')
    with open_desk(home=home, project=project) as desk:
        talk = desk.conversation()
        first, second = talk.ask("hello"), talk.ask("hello")
    assert (first.text, desk.vault) == ("Mine.", None)
    assert sum("is ignored" in note for note in first.notes) == 2
    assert not any("is ignored" in note for note in second.notes), "once is enough"
    trust(home, project, "model")
    with open_desk(home=home, project=project) as desk:
        assert desk.conversation().ask("hello").text == "Theirs."
