"""`recto memory`, `/memory`, as a user meets them."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.conftest import Run as Invoke
from tests.conftest import Script

Run = Callable[..., str]


@pytest.fixture
def run(run: Invoke, script: Script, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command and gives what it printed; it must end with this code."""
    monkeypatch.setenv("RECTO_MODEL", script({"text": "ok"}))

    def checked(*args: str, code: int = 0) -> str:
        done = run(*args)
        assert done.exit_code == code, done.output
        return done.output

    return checked


def added(run: Run, *texts: str) -> None:
    for text in texts:
        run("memory", "add", text)


def test_notes_that_are_used_often_are_listed_and_one_that_is_gone_is_told(run: Run, notes: Path) -> None:
    (notes / "Tides.md").write_text("# Tides\n\nWhen the harbour has water.\n")
    for _ in range(3):
        run("ask", "--vault", str(notes), "When is [[Tides]] right?")
    run("vault", "suggest", "--vault", str(notes))
    assert "[[Tides]] (Tides.md): When the harbour has water." in run("memory", "list", "--kind", "reference")
    assert json.loads(run("memory", "show", "1", "--json"))["note"]["path"] == "Tides.md"
    assert str(notes.resolve()) in run("memory", "show", "1")
    (notes / "Tides.md").unlink()
    for command in (("list",), ("search", "water in the harbour"), ("show", "1")):
        assert "the note no longer exists" in run("memory", *command)


def test_facts_go_into_a_file_and_come_back(run: Run, tmp_path: Path) -> None:
    added(run, "My sister Anna lives in Berlin", "We decided to use Postgres")
    file, whole = tmp_path / "facts.md", tmp_path / "facts.json"
    run("memory", "export", "-o", str(file))
    assert "nothing was forgotten" in run("memory", "forget", "1", code=1)
    run("memory", "forget", "1", "2", "--yes")
    run("memory", "forget", "1", "--yes", code=1)
    assert "2 facts remembered, 0 known already" in run("memory", "import", f"@{file}")
    whole.write_text(run("memory", "export", "--format", "json"))
    assert "0 facts remembered, 2 known already" in run("memory", "import", str(whole))


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.json", "{", "is not valid JSON"),
        ("a.json", "7", "does not contain a list of facts"),
        ("a.json", '[{"x": 1}]', "fact 1 has no text"),
        ("a.json", '["ok", ""]', "fact 2: a fact needs a text"),
        ("a.json", '{"format": "recto-facts", "version": 9, "facts": []}', "newer Recto"),
        ("a.md", "# Only a heading\n", "contains no facts"),
        ("a.md", "- " + "x" * 3000, "line 1: a fact is a statement of at most 2,000 characters"),
    ],
)
def test_a_file_that_holds_no_facts_is_refused_whole(run: Run, tmp_path: Path, name: str, text: str, said: str) -> None:
    (tmp_path / name).write_text(text)
    assert said in run("memory", "import", str(tmp_path / name), code=1)
    assert "nothing is remembered yet" in run("memory", "list")


def test_memory_of_a_conversation_is_shown_by_file_and_fact(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "AGENTS.md").write_text("Use tabs.")
    monkeypatch.chdir(folder)
    added(run, "My cat is called Tom")
    out = run("context", "memory", "--message", "What is my cat called?")
    assert "tokens of memory for “What is my cat called?”" in out
    assert "AGENTS.md" in out
    assert "the project's memory" in out
    assert "My cat is called Tom" in out
