"""The prompt of the chat: history, several lines, completion, and the toolbar below. Knows no engine."""

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import Completer, merge_completers
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import has_focus
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.styles import Style

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


class HistoryFile(FileHistory):
    """Typed lines, kept in a file that only the user can read. When the file cannot be used, there is no history."""

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


def open_prompt(
    home: Path, completers: Sequence[Completer], toolbar: Callable[[], FormattedText]
) -> PromptSession[str]:
    return PromptSession(
        FormattedText([("class:mark", MARK)]),
        multiline=True,
        prompt_continuation=FormattedText([("", " " * len(MARK))]),
        history=HistoryFile(home / HISTORY_FILE),
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
    """Whether Enter takes a name from the menu into a message. A slash command from the menu runs at once."""
    state = buffer.complete_state
    return state is not None and state.current_completion is not None and not buffer.text.startswith("/")
