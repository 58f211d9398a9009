"""Choosing a conversation from a list at a terminal: words that are typed search titles and messages."""

import shutil
from collections.abc import Iterable
from typing import TYPE_CHECKING

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from recto.cli import show
from recto.cli.questions import STYLE
from recto.cli.terminal import forget_keys
from recto.cli.trash import titled
from recto.errors import NotFound, RectoError

if TYPE_CHECKING:
    from recto.api.blocking import Desk
    from recto.chat.conversation import Conversation

# Conversations that the list offers, and rows of it that are seen at once.
OFFERED, ROWS = 50, 12
MARK = "conversation › "
HELP = "type words to search · ↑↓ and Enter choose · Esc leaves"
# With fewer columns the list has no times, so that titles have room, and the help is shorter.
NARROW, SHORT_HELP = 60, "words search · Enter takes · Esc leaves"
# What the menu draws beside a row.
FRAME = 4


class ConversationCompleter(Completer):
    """The latest conversations, or those that words find; a number or a title stands for itself."""

    def __init__(self, desk: "Desk") -> None:
        self._desk = desk

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        typed = document.text
        for each in self._found(typed.strip()):
            yield Completion(f"#{each.number}", -len(typed), _row(each, shutil.get_terminal_size().columns))

    def _found(self, typed: str) -> "list[Conversation]":
        try:
            if typed and not typed.startswith("#"):
                return self._desk.find_conversations(typed, limit=OFFERED)
            return self._desk.conversations(limit=OFFERED)
        except RectoError:  # a list that cannot be read must not end the prompt
            return []


def _row(each: "Conversation", columns: int) -> str:
    head = f"#{each.number}  " if columns < NARROW else f"{show.when(each.updated)}  #{each.number}  "
    return head + show.shortened(titled(each), columns - len(head) - FRAME)


def _help() -> str:
    return SHORT_HELP if shutil.get_terminal_size().columns < NARROW else HELP


def choose_conversation(desk: "Desk") -> int | None:
    """The number of the conversation that the user chooses; None for none."""
    if not desk.conversations(limit=1):
        raise NotFound("there is no conversation yet: `recto chat` starts one")
    prompt: PromptSession[str] = PromptSession(
        FormattedText([("class:mark", MARK)]),
        completer=ConversationCompleter(desk),
        complete_while_typing=True,
        complete_in_thread=True,
        reserve_space_for_menu=ROWS,
        key_bindings=_keys(),
        bottom_toolbar=_help,
        style=STYLE,
    )
    forget_keys()
    while True:
        try:
            named = prompt.prompt(pre_run=lambda: get_app().current_buffer.start_completion()).strip()
            if not named:
                return None
            return desk.conversation(named).number
        except (KeyboardInterrupt, EOFError):
            return None
        except RectoError as why:
            show.note(why.message)


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter")
    def take(event: KeyPressEvent) -> None:
        """Takes the chosen one, or the first that is offered."""
        buffer = event.current_buffer
        state = buffer.complete_state
        if state and state.completions and not state.current_completion:
            buffer.apply_completion(state.completions[0])
        buffer.validate_and_handle()

    @keys.add("escape", eager=True)
    def leave(event: KeyPressEvent) -> None:
        event.app.exit(exception=EOFError)

    return keys
