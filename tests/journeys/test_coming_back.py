"""Coming back to a conversation, and changing one's mind, at a real terminal."""

from pathlib import Path

import pytest
from tests.cli.conftest import terminal  # noqa: F401  a fixture
from tests.cli.terminal import Terminal
from tests.conftest import Script

from recto.api.blocking import open_desk


@pytest.fixture
def model(script: Script, monkeypatch: pytest.MonkeyPatch) -> str:
    name = script({"text": "They ripen in autumn."})
    monkeypatch.setenv("RECTO_MODEL", name)
    return name


@pytest.fixture
def told(model: str) -> None:
    with open_desk() as desk:
        for text in ("Apple planning", "When was the mast stepped?"):
            desk.conversation().ask(text)


pytestmark = pytest.mark.usefixtures("told")


def test_going_on_shows_the_title_and_the_last_exchange(terminal: type[Terminal]) -> None:  # noqa: F811
    chat = terminal("chat", "--continue")
    shown = chat.wait_for("They ripen in autumn.")
    assert "When was the mast stepped?" in shown
    assert "› When was the mast stepped?" in shown
    chat.wait_for("tokens")
    chat.settle()
    chat.type("/switch apple\r")
    chat.wait_for("› Apple planning")
    chat.settle()
    chat.type("\x04")
    chat.wait_for("recto chat -c 1 continues this conversation")
    assert chat.code() == 0


def test_an_old_message_is_changed_in_the_editor(
    terminal: type[Terminal],  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nsed -i "s/planning/pie/" "$1"\n')
    editor.chmod(0o755)
    monkeypatch.setenv("EDITOR", str(editor))
    chat = terminal("chat", "-c", "1")
    chat.wait_for("tokens")
    chat.settle()
    chat.type("/edit 1\r")
    chat.wait_for("They ripen in autumn.")
    chat.settle()
    chat.type("/regenerate\r")
    chat.wait_for("They ripen in autumn.")
    chat.settle()
    chat.type("\x04")
    assert chat.code() == 0
    with open_desk() as desk:
        talk = desk.conversation(1)
        assert [message.text for message in talk.messages()] == ["Apple pie", "They ripen in autumn."]
        assert len(talk.branches()) == 3
