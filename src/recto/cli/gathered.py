"""Gathered: the documents of question and reply, told once the reply is whole."""

from pathlib import Path

from recto.chat.blocks import References
from recto.chat.message import Message
from recto.chat.references import once
from recto.cli.references import FOLD, references_shown
from recto.events import Event, Referenced, Replied


class Gathered:
    """Hears a turn; after its last reply it has lines to show."""

    def __init__(self, *, is_terminal: bool) -> None:
        self._asked: Message | None = None
        self._is_terminal = is_terminal

    def hear(self, event: Event) -> list[str]:
        if isinstance(event, Referenced):
            self._asked = event.message
        if isinstance(event, Replied) and not event.message.calls:
            return shown([*([self._asked] if self._asked else ()), event.message], is_terminal=self._is_terminal)
        return []


def shown(messages: list[Message], *, is_terminal: bool, fold: int | None = FOLD) -> list[str]:
    """The documents of messages, each once, in lines."""
    found = once(each for message in messages for each in message.references)
    blocks = [block for message in messages for block in message.blocks if isinstance(block, References)]
    root = next((Path(block.vault) for block in blocks if block.vault), None)
    return references_shown(found, root, fold=fold, is_terminal=is_terminal)
