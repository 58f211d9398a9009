"""The chat's prompt: history, several lines, word wrap, toolbar; and choosing a conversation from a searchable list.
Knows no engine."""

import logging
import re
import shutil
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from signal import default_int_handler
from typing import TYPE_CHECKING, NamedTuple

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, merge_completers
from prompt_toolkit.document import Document
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import Always, has_focus
from prompt_toolkit.formatted_text import FormattedText, StyleAndTextTuples
from prompt_toolkit.formatted_text.utils import fragment_list_to_text
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout.processors import Processor, Transformation, TransformationInput
from prompt_toolkit.layout.utils import explode_text_fragments
from prompt_toolkit.styles import Style

from recto.base.home_files import HISTORY_FILE, create_private_file
from recto.cli import show
from recto.cli.drawing.results import titled
from recto.cli.show import width_of
from recto.cli.terminal import forget_keys, on_interrupt
from recto.errors import NotFound, RectoError

if TYPE_CHECKING:
    from recto.api.blocking import Desk
    from recto.chat.conversation import Conversation

MARK, PLAIN_MARK = "› ", "> "
STYLE = Style.from_dict(
    {"mark": "bold ansicyan", "bottom-toolbar": "noreverse ansibrightblack", "full": "ansiyellow", "due": "ansired"}
)
# Conversations in the list, and its visible rows.
OFFERED, ROWS = 50, 12
LIST_MARK = "conversation › "
HELP = "type words to search · ↑↓ and Enter choose · Esc leaves"
# With fewer columns the list has no times, and the help is shorter.
NARROW, SHORT_HELP = 60, "words search · Enter takes · Esc leaves"
# Cells that the menu draws beside a row.
FRAME = 4
_PART = re.compile(r"\S+|\s")

log = logging.getLogger(__name__)


# -- what is typed


class HistoryFile(FileHistory):
    """Typed lines in a file that only the user can read. If it cannot be used, there is no history."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        with suppress(OSError):
            create_private_file(path)

    def load_history_strings(self) -> Iterable[str]:
        try:
            return super().load_history_strings()
        except OSError:
            return []

    def store_string(self, string: str) -> None:
        with suppress(OSError):
            super().store_string(string)


class PlainPrompt:
    """A prompt for screen readers: whole lines, nothing redrawn. A trailing backslash adds a line."""

    def __init__(self, home: Path) -> None:
        self.history = HistoryFile(home / HISTORY_FILE)

    def prompt(self, default: str = "") -> str:
        """Raises KeyboardInterrupt and EOFError like the other prompt. `default` goes before the typed text."""
        lines = [default] if default else []
        with on_interrupt(default_int_handler):
            while (line := input(PLAIN_MARK)).endswith("\\"):
                lines.append(line[:-1])
        said = "\n".join((*lines, line))
        if said.strip():
            self.history.append_string(said)
        return said


def open_prompt(
    home: Path, completers: Sequence[Completer], toolbar: Callable[[], FormattedText]
) -> PromptSession[str]:
    session: PromptSession[str] = PromptSession(
        FormattedText([("class:mark", MARK)]),
        multiline=True,
        prompt_continuation=FormattedText([("", " " * len(MARK))]),
        history=HistoryFile(home / HISTORY_FILE),
        completer=merge_completers(completers),
        complete_while_typing=True,
        complete_in_thread=True,
        reserve_space_for_menu=5,
        key_bindings=_chat_keys(),
        bottom_toolbar=toolbar,
        style=STYLE,
        input_processors=[WordWrap(len(MARK))],
    )
    # as an option of the session it would turn off completion while typing
    session.default_buffer.enable_history_search = Always()
    return session


def _chat_keys() -> KeyBindings:
    keys = KeyBindings()
    at_prompt = has_focus(DEFAULT_BUFFER)

    @keys.add("enter", filter=at_prompt)
    def send(event: KeyPressEvent) -> None:
        buffer, state = event.current_buffer, event.current_buffer.complete_state
        # Enter inserts a name from the menu into a message, but runs a slash command
        if state is not None and state.current_completion is not None and not buffer.text.startswith("/"):
            buffer.complete_state = None
        elif buffer.document.text_before_cursor.endswith("\\"):
            buffer.delete_before_cursor()
            buffer.newline(copy_margin=False)
        else:
            buffer.validate_and_handle()

    @keys.add("escape", "enter", filter=at_prompt)
    def add_line(event: KeyPressEvent) -> None:
        event.current_buffer.newline(copy_margin=False)

    @keys.add("up", filter=at_prompt)
    def up(event: KeyPressEvent) -> None:
        _close_empty_menu(event.current_buffer)
        event.current_buffer.auto_up(count=event.arg)

    @keys.add("down", filter=at_prompt)
    def down(event: KeyPressEvent) -> None:
        _close_empty_menu(event.current_buffer)
        event.current_buffer.auto_down(count=event.arg)

    return keys


def _close_empty_menu(buffer: Buffer) -> None:
    """Close the empty menu that is open while names are looked up: the arrows would do nothing in it."""
    if buffer.complete_state and not buffer.complete_state.completions:
        buffer.complete_state = None


# -- words kept whole


class RowBreaks(NamedTuple):
    padding: dict[int, int]
    """Place of each word that begins a row -> the blanks that fill the previous row."""
    unseen: set[int]
    """Places of blanks that would begin a row."""


def row_breaks(text: str, width: int) -> RowBreaks:
    """Break a line into rows between words; a word longer than a row is cut."""
    breaks = RowBreaks({}, set())
    column = 0
    for part in _PART.finditer(text):
        size, is_blank = width_of(part[0]), part[0].isspace()
        if column >= width and is_blank:
            breaks.unseen.add(part.start())
            continue
        column = 0 if column >= width else column
        if is_blank or size > width:
            column = (column + size - 1) % width + 1 if size else column
        elif column + size > width:
            breaks.padding[part.start()] = width - column
            column = size
        else:
            column += size
    return breaks


class WordWrap(Processor):
    """Wraps the input between words; prompt_toolkit would cut them anywhere."""

    def __init__(self, prefix: int) -> None:
        """`prefix`: cells before each row."""
        self._prefix = prefix

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        given = transformation_input
        width = given.width - self._prefix
        breaks = row_breaks(fragment_list_to_text(given.fragments), width) if width > 1 else None
        return _broken(given.fragments, breaks) if breaks and any(breaks) else Transformation(given.fragments)


def _broken(fragments: StyleAndTextTuples, breaks: RowBreaks) -> Transformation:
    shown: StyleAndTextTuples = []
    places: list[int] = []
    added = 0
    for at, fragment in enumerate(explode_text_fragments(fragments)):
        if at in breaks.padding:
            shown.append(("", " " * breaks.padding[at]))
            added += breaks.padding[at]
        places.append(at + added)
        if at in breaks.unseen:
            added -= 1
        else:
            shown.append(fragment)

    def to_display(place: int) -> int:
        return places[place] if place < len(places) else place + added

    def to_source(place: int) -> int:
        return max(0, bisect_right(places, place) - 1) if place <= places[-1] else place - added

    return Transformation(shown, to_display, to_source)


# -- choosing a conversation


class ConversationCompleter(Completer):
    """The latest conversations, or those found by words, number or title."""

    def __init__(self, desk: "Desk") -> None:
        self._desk = desk

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        typed, columns = document.text, shutil.get_terminal_size().columns
        for each in self._found(typed.strip()):
            head = f"#{each.number}  " if columns < NARROW else f"{show.when(each.updated)}  #{each.number}  "
            row = head + show.shortened(titled(each), columns - len(head) - FRAME)
            yield Completion(f"#{each.number}", -len(typed), row)

    def _found(self, typed: str) -> "list[Conversation]":
        try:
            if typed and not typed.startswith("#"):
                return self._desk.find_conversations(typed, limit=OFFERED)
            return self._desk.conversations(limit=OFFERED)
        except RectoError:  # an unreadable list must not end the prompt
            log.debug("conversations could not be listed", exc_info=True)
            return []


def choose_conversation(desk: "Desk") -> int | None:
    """Let the user choose a conversation. Returns its number, or None."""
    if not desk.conversations(limit=1):
        raise NotFound("there is no conversation yet: `recto chat` starts one")
    prompt: PromptSession[str] = PromptSession(
        FormattedText([("class:mark", LIST_MARK)]),
        completer=ConversationCompleter(desk),
        complete_while_typing=True,
        complete_in_thread=True,
        reserve_space_for_menu=ROWS,
        key_bindings=_list_keys(),
        bottom_toolbar=lambda: SHORT_HELP if shutil.get_terminal_size().columns < NARROW else HELP,
        style=STYLE,
    )
    forget_keys()
    while True:
        try:
            named = prompt.prompt(pre_run=lambda: get_app().current_buffer.start_completion()).strip()
            return desk.conversation(named).number if named else None
        except (KeyboardInterrupt, EOFError):
            return None
        except RectoError as why:
            show.note(why.message)


def _list_keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter")
    def take(event: KeyPressEvent) -> None:
        """Accept the selected one, or the first."""
        buffer = event.current_buffer
        state = buffer.complete_state
        if state and state.completions and not state.current_completion:
            buffer.apply_completion(state.completions[0])
        buffer.validate_and_handle()

    @keys.add("escape", eager=True)
    def leave(event: KeyPressEvent) -> None:
        event.app.exit(exception=EOFError)

    return keys
