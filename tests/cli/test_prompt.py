"""The prompt of the chat: keys and completion."""

from pathlib import Path

from prompt_toolkit.application import create_app_session
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput
from tests.cli.test_completion import boat, vault

from recto.cli.completion import LinkCompleter, SlashCompleter
from recto.cli.questions import open_prompt
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
