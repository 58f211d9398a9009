"""Memory files in the window: whole among the rules, or by the sections that a message needs where they are long."""

import shutil
from pathlib import Path

import pytest
from tests.conftest import Open, Script

from recto.api.blocking import Talk
from recto.sources.source import Pick
from recto.window.window import Window

OK = {"text": "ok"}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that desks are opened in: a repository."""
    (tmp_path / "work/.git").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


def memory(window: Window, section: str = "rules") -> list[Pick]:
    return [pick for each in window.sections if each.name == section for pick in each.picks if pick.kind == "memory"]


def write_all(tmp_path: Path, project: Path) -> None:
    folder = tmp_path / "home/agents/default"
    folder.mkdir(parents=True)
    (tmp_path / "home/memory.md").write_text("My name is Ada.")
    (folder / "memory.md").write_text("Be formal.")
    (project / "AGENTS.md").write_text("Use tabs.")


def test_memory_of_user_agent_and_project_stands_among_the_rules(
    desk: Open, script: Script, project: Path, tmp_path: Path
) -> None:
    write_all(tmp_path, project)
    at = desk(script(OK))
    reply = at.conversation().ask("hello")
    found = memory(reply.window)
    assert [(pick.name, pick.because) for pick in found] == [
        ("memory.md", "your own memory"),
        ("agents/default/memory.md", "the agent's memory"),
        ("AGENTS.md", "the project's memory"),
    ]
    (rules,) = [each for each in reply.window.sections if each.name == "rules"]
    assert sum(pick.tokens for pick in found) == rules.tokens > 0
    body = at.rebuild(reply.request_id).decode()
    assert body.index("My name is Ada.") < body.index("Be formal.") < body.index("Use tabs.")
    # the text of each is kept by its hash
    assert at.engine.store.blobs.get(found[-1].sha256 or "") == b"Use tabs."


@pytest.mark.parametrize(
    ("switch", "left"),
    [
        ("context__use_user_memory", 2),
        ("context__use_agent_memory", 2),
        ("context__use_project_memory", 2),
        ("context__memory_integration", 0),
    ],
)
def test_each_memory_can_be_switched_off(
    desk: Open, script: Script, project: Path, tmp_path: Path, switch: str, left: int
) -> None:
    write_all(tmp_path, project)
    window = desk(script(OK), **{switch: False}).conversation().window("hello")
    assert len(memory(window)) == left


def test_a_changed_file_is_in_the_next_window(desk: Open, script: Script, project: Path) -> None:
    file = project / "AGENTS.md"
    file.write_text("Use tabs.")
    at = desk(script(OK))
    talk = at.conversation()
    talk.ask("one")
    file.write_text("Use spaces, always.")
    assert b"Use spaces" in at.rebuild(talk.ask("two").request_id)
    file.unlink()
    assert not memory(talk.ask("three").window)


def long_file(project: Path) -> None:
    topics = {"Database": "Migrations run with alembic.", "Deployment": "Deploy on Tuesdays with the green button."}
    filler = {f"Part {number}": f"Module {number} draws widget {number}. " * 30 for number in range(20)}
    text = "\n\n".join(f"# {heading}\n{body}" for heading, body in (topics | filler).items())
    (project / "AGENTS.md").write_text(text)


def test_of_a_long_file_the_sections_that_the_message_needs_come_in(desk: Open, script: Script, project: Path) -> None:
    long_file(project)
    at = desk(script(OK, limit=8000))
    talk = at.conversation()
    reply = talk.ask("How do we run database migrations with alembic?")
    assert not memory(reply.window)
    assert memory(reply.window, "memory")[0].name == "AGENTS.md › Database"
    assert b"Migrations run with alembic." in at.rebuild(reply.request_id)
    assert "AGENTS.md is long for this window: only the sections that bear on a message are sent" in reply.notes
    assert not memory(talk.ask("thanks!").window, "memory")


def test_a_bad_import_is_told_once_for_each_change(desk: Open, script: Script, project: Path) -> None:
    (project / "AGENTS.md").write_text("See @missing.md")
    problem = "the memory file missing.md, which AGENTS.md imports, is not read: it does not exist"
    at = desk(script(OK))
    assert problem in at.conversation().ask("one").notes
    again = at.conversation()
    assert problem in again.window("two").notes, "who looks is shown"
    assert problem not in again.ask("two").notes
    (project / "AGENTS.md").write_text("See @missing.md for more.")
    assert problem in at.conversation().ask("three").notes


def test_a_conversation_keeps_the_memory_of_the_folder_it_was_begun_in(
    desk: Open, script: Script, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "AGENTS.md").write_text("Use tabs.")
    (tmp_path / "other").mkdir()
    (tmp_path / "other/AGENTS.md").write_text("Use spaces.")
    talk = desk(script(OK)).conversation()
    talk.ask("one")
    monkeypatch.chdir(tmp_path / "other")
    at = desk(script(OK))
    assert b"Use tabs." in at.rebuild(at.conversation(talk.id).ask("two").request_id)
    assert b"Use spaces." in at.rebuild(at.conversation().ask("one").request_id)
    shutil.rmtree(project)
    gone = at.conversation(talk.id).ask("three")
    assert f"the folder of this conversation, {project}, is not there, nor is its memory" in gone.notes


def test_a_project_may_switch_memory_off_and_not_on(desk: Open, script: Script, project: Path, tmp_path: Path) -> None:
    (project / "AGENTS.md").write_text("Use tabs.")
    (project / ".recto").mkdir()
    (project / ".recto/config.toml").write_text("[context]\nuse_user_memory = true\nuse_project_memory = false\n")
    (tmp_path / "home").mkdir()
    (tmp_path / "home/config.toml").write_text("[context]\nuse_user_memory = false\n")
    (tmp_path / "home/memory.md").write_text("I am Ada.")
    talk: Talk = desk(script(OK)).conversation()
    assert not memory(talk.window("hello"))
