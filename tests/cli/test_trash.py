"""Putting conversations away and removing them, from the command line."""

import pytest
from tests.cli.conftest import Run, failure, one, rows
from tests.cli.terminal import Terminal
from tests.conftest import Script


@pytest.fixture
def made(run: Run, script: Script) -> None:
    model = script({"text": "Yes."})
    for title in ("Apple planning", "The mast"):
        run("ask", "-m", model, title)


pytestmark = pytest.mark.usefixtures("made")


def titles(run: Run, *options: str) -> list[str]:
    return [row["title"] for row in rows(run("conversations", "list", "--json", *options))]


def test_a_deleted_conversation_is_in_the_trash_until_it_is_emptied(run: Run) -> None:
    assert one(run("conversations", "delete", "1", "--json"))["deleted"]
    assert (titles(run), titles(run, "--trash")) == (["The mast"], ["Apple planning"])
    assert "is in the trash" in failure(run("chat", "-c", "1", input="hello\n"))
    assert run("conversations", "restore", "apple").stdout == "conversation #1 is back: Apple planning\n"
    run("conversations", "delete", "apple")
    assert "--yes removes it without asking" in failure(run("conversations", "empty-trash", input="yes\n"))
    assert run("conversations", "empty-trash", "--older-than", "2").stdout == "there is nothing to remove\n"
    assert one(run("conversations", "empty-trash", "--yes", "--json")) == {"removed": 1}
    assert titles(run, "--trash") == []
    assert "there is no conversation #1" in failure(run("conversations", "restore", "1"))
    assert run("request", "verify", "--all").exit_code == 0


def test_only_a_typed_yes_empties_the_trash(run: Run, terminal: type[Terminal]) -> None:
    run("conversations", "delete", "1")
    for answer, outcome in (("\r", "nothing was removed"), ("y\r", "nothing was removed")):
        asked = terminal("conversations", "empty-trash")
        assert "#1  Apple planning" in asked.wait_for("Remove 1 conversation for good? Type yes: ")
        asked.settle()
        asked.type(answer)
        asked.wait_for(outcome)
        assert asked.code() == 0
    asked = terminal("conversations", "empty-trash")
    asked.wait_for("Type yes: ")
    asked.settle()
    asked.type("yes\r")
    asked.wait_for("1 conversation removed for good")
    assert asked.code() == 0
    assert titles(run, "--trash") == []
