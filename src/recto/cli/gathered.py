"""Gathered: the documents of question and reply, told once the reply is whole."""

from pathlib import Path

from recto.chat.blocks import References
from recto.chat.message import Message
from recto.chat.references import once
from recto.cli.references import FOLD, references_shown
from recto.events import Event, Referenced, Replied


class Gathered:
    """Hears a turn; after its last reply it has lines to show."""

    def __init__(self, *, is_terminal: bool, hint: str = "") -> None:
        self._asked: Message | None = None
        self._is_terminal, self._hint = is_terminal, hint

    def hear(self, event: Event) -> list[str]:
        if isinstance(event, Referenced):
            self._asked = event.message
        if isinstance(event, Replied) and not event.message.calls:
            messages = [*([self._asked] if self._asked else ()), event.message]
            return shown(messages, is_terminal=self._is_terminal, hint=self._hint)
        return []


def shown(messages: list[Message], *, is_terminal: bool, fold: int | None = FOLD, hint: str = "") -> list[str]:
    """The documents of messages, each once, in lines."""
    found = once(each for message in messages for each in message.references)
    blocks = [block for message in messages for block in message.blocks if isinstance(block, References)]
    places = {
        each.relative_path: Path(block.vault) / each.relative_path
        for block in blocks
        for each in block.references
        if block.vault and each.relative_path
    }
    return references_shown(found, places, fold=fold, is_terminal=is_terminal, hint=hint)
