"""The line where the user types: history, several lines, completion, and the toolbar below. Knows no engine."""

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import has_focus
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.styles import Style

MARK = "› "
HISTORY_FILE = "history"
STYLE = Style.from_dict({"mark": "bold ansicyan", "bottom-toolbar": "noreverse ansibrightblack", "full": "ansiyellow"})


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
    def __init__(self, commands: dict[str, str]) -> None:
        self._commands = commands

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        typed = document.text_before_cursor
        if not typed.startswith("/") or any(mark in typed for mark in " \n"):
            return
        for name, help in self._commands.items():
            if name.startswith(typed[1:]):
                yield Completion(f"/{name}", start_position=-len(typed), display_meta=help)


def open_prompt(home: Path, commands: dict[str, str], toolbar: Callable[[], FormattedText]) -> PromptSession[str]:
    return PromptSession(
        FormattedText([("class:mark", MARK)]),
        multiline=True,
        prompt_continuation=FormattedText([("", " " * len(MARK))]),
        history=KeptHistory(home / HISTORY_FILE),
        completer=SlashCompleter(commands),
        complete_while_typing=True,
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
        if buffer.document.text_before_cursor.endswith("\\"):
            buffer.delete_before_cursor()
            buffer.newline(copy_margin=False)
        else:
            buffer.validate_and_handle()

    @keys.add("escape", "enter", filter=has_focus(DEFAULT_BUFFER))
    def add_line(event: KeyPressEvent) -> None:
        event.current_buffer.newline(copy_margin=False)

    return keys
