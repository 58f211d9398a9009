"""The line where the user types: history, several lines, completion, and the toolbar below. Knows no engine."""

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, merge_completers
from prompt_toolkit.document import Document
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import has_focus
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.styles import Style

from recto.cli.complete import FileCompleter, LinkCompleter, OpenVault

MARK = "› "
HISTORY_FILE = "history"
STYLE = Style.from_dict(
    {
        "mark": "bold ansicyan",
        "bottom-toolbar": "noreverse ansibrightblack",
        "full": "ansiyellow",
        "due": "ansired",
    }
)

Commands = Mapping[str, tuple[str, tuple[str, ...]]]
"""Name -> what it is for, and the words that may follow it."""


class KeptHistory(FileHistory):
    """What was typed, kept for the next time; a file that cannot be used costs the history, not the chat."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        with suppress(OSError):
            os.close(os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600))

    def load_history_strings(self) -> Iterable[str]:
        try:
            return super().load_history_strings()
        except OSError:
            return []

    def store_string(self, string: str) -> None:
        with suppress(OSError):
            super().store_string(string)


class SlashCompleter(Completer):
    def __init__(self, commands: Commands) -> None:
        self._commands = commands

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        typed = document.text_before_cursor
        if not typed.startswith("/") or "\n" in typed:
            return
        name, space, word = typed[1:].partition(" ")
        if not space:
            yield from self._names(name)
        elif name in self._commands:
            _, words = self._commands[name]
            yield from (Completion(each, start_position=-len(word)) for each in words if each.startswith(word))

    def _names(self, typed: str) -> Iterable[Completion]:
        for name, (help, _) in self._commands.items():
            if name.startswith(typed):
                yield Completion(f"/{name}", start_position=-len(typed) - 1, display_meta=help)


def open_prompt(
    home: Path,
    commands: Commands,
    toolbar: Callable[[], FormattedText],
    vault: OpenVault = lambda: None,
    project: Path | None = None,
) -> PromptSession[str]:
    completers = [SlashCompleter(commands), LinkCompleter(vault), FileCompleter(vault, project)]
    return PromptSession(
        FormattedText([("class:mark", MARK)]),
        multiline=True,
        prompt_continuation=FormattedText([("", " " * len(MARK))]),
        history=KeptHistory(home / HISTORY_FILE),
        completer=merge_completers(completers),
        complete_while_typing=True,
        complete_in_thread=True,
        reserve_space_for_menu=5,
        key_bindings=_keys(),
        bottom_toolbar=toolbar,
        style=STYLE,
    )


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter", filter=has_focus(DEFAULT_BUFFER))
    def send(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if _is_choosing(buffer):
            buffer.complete_state = None
        elif buffer.document.text_before_cursor.endswith("\\"):
            buffer.delete_before_cursor()
            buffer.newline(copy_margin=False)
        else:
            buffer.validate_and_handle()

    @keys.add("escape", "enter", filter=has_focus(DEFAULT_BUFFER))
    def add_line(event: KeyPressEvent) -> None:
        event.current_buffer.newline(copy_margin=False)

    return keys


def _is_choosing(buffer: Buffer) -> bool:
    """Whether a name in the menu was chosen within a message; a command that was chosen is carried out."""
    state = buffer.complete_state
    return state is not None and state.current_completion is not None and not buffer.text.startswith("/")
