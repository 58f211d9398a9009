"""The prompt of the chat: keys and completion."""

from pathlib import Path

from prompt_toolkit.application import create_app_session
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput
from tests.cli.conftest import Run, rows
from tests.cli.terminal import Terminal
from tests.cli.test_completers import boat, vault
from tests.conftest import Script

from recto.cli.prompt import LinkCompleter, SlashCompleter, open_history, open_prompt
from recto.vault.vault import Vault

__all__ = ["boat", "vault"]


def typed_at_prompt(keys: str, vault: Vault, home: Path) -> str:
    """What is sent when these keys are typed; a `~` waits until the menu is there."""
    home.mkdir(exist_ok=True)
    with create_pipe_input() as pipe, create_app_session(input=pipe, output=DummyOutput()):
        completers = (SlashCompleter({"context": ("", ())}), LinkCompleter(lambda: vault))
        prompt = open_prompt(home, completers, lambda: FormattedText([]))
        first, *rest = keys.split("~")

        def go_on(buffer: Buffer) -> None:
            if rest and buffer.complete_state and buffer.complete_state.completions:
                pipe.send_text(rest.pop(0))

        prompt.default_buffer.on_completions_changed += go_on
        pipe.send_text(first)
        return str(prompt.prompt())


def test_enter_takes_what_was_chosen_and_then_sends(vault: Vault, home: Path) -> None:
    assert typed_at_prompt("see [[budg~\t\r now\r", vault, home) == "see [[Budget]] now"
    assert typed_at_prompt("/cont~\t\r", vault, home) == "/context"


def chat_after(terminal: type[Terminal], model: str, home: Path, *typed: str) -> Terminal:
    """A chat whose history has these lines, at its prompt."""
    home.mkdir(exist_ok=True)
    history = open_history(home / "history")
    for line in typed:
        history.store_string(line)
    chat = terminal("chat", "-m", model)
    chat.wait_for_prompt()
    return chat


def sent(chat: Terminal, run: Run) -> str:
    chat.wait_for("Yes.")
    chat.wait_for("› ")
    chat.type("\x04")
    assert chat.code() == 0
    return str(rows(run("conversations", "show", "--json"))[0]["text"])


def test_ctrl_r_searches_what_was_typed_before(terminal: type[Terminal], script: Script, run: Run, home: Path) -> None:
    chat = chat_after(terminal, script({"text": "Yes."}), home, "which fuse\nfor the pump?", "who owns her?")
    chat.type("\x12fus")
    chat.wait_for("which fuse")
    chat.type("\r")
    chat.settle()
    chat.type("\r")
    assert sent(chat, run) == "which fuse\nfor the pump?"


def test_the_arrow_up_finds_lines_that_begin_as_typed(
    terminal: type[Terminal], script: Script, run: Run, home: Path
) -> None:
    chat = chat_after(terminal, script({"text": "Yes."}), home, "which fuse?", "who owns her?", "which engine?", "then")
    chat.settle()
    chat.type("which\x1b[A")
    chat.wait_for("engine?")
    chat.type("\x1b[A")
    chat.wait_for("fuse?")
    chat.type("\x1b[B")
    chat.wait_for("engine?")
    chat.type("\r")
    assert sent(chat, run) == "which engine?"


def test_what_is_typed_while_a_reply_comes_is_in_the_history(
    terminal: type[Terminal], script: Script, run: Run, home: Path, tmp_path: Path
) -> None:
    slow = {"text": "A long one", "after": 1, "until": str(tmp_path / "typed")}
    chat = chat_after(terminal, script(slow, {"text": "Yes."}), home)
    chat.type("first\r")
    chat.wait_for("A")
    chat.type("meanwhile\r")
    chat.wait_for("waiting: meanwhile")
    (tmp_path / "typed").touch()
    sent(chat, run)
    assert list(open_history(home / "history").load_history_strings()) == ["meanwhile", "first"]
