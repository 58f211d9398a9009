"""The names of the formats, the import options, and ImportReport, the result. Light, because every command that opens
a store needs it."""

from collections.abc import Callable, Generator, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, TypedDict, get_args

from msgspec import Struct

if TYPE_CHECKING:
    from recto.chat.conversation import Conversation
    from recto.store.conversation_copy import StoredItem

ExportFormat = Literal["json", "markdown", "html"]
EXPORT_FORMATS: tuple[ExportFormat, ...] = get_args(ExportFormat)
ImportFormat = Literal["recto", "openai", "chatgpt", "claude", "librechat", "llm"]
IMPORT_FORMATS: tuple[ImportFormat, ...] = get_args(ImportFormat)
Outcome = Literal["added", "extended", "unchanged", "different", "empty"]
"""`unchanged`: already in the store. `different`: there with other content, which stays. `empty`: without messages."""
Tell = Callable[[int, int], object]
"""Called with the amount done and the total."""
Place = str | Path


class ExportOptions(TypedDict, total=False):
    format: ExportFormat
    """json (the default), markdown or html."""
    everything: bool


class ImportOptions(TypedDict, total=False):
    format: ImportFormat | None
    progress: Tell | None


class IncomingConversation(Struct, frozen=True):
    """A conversation with everything that it owns. `items` can be iterated once."""

    conversation: "Conversation"
    items: "Iterable[StoredItem]"
    place: str
    position: int = 0
    """Progress through the file, out of the source's `size`."""
    is_complete: bool = False
    """With its records: stored as it is or not at all. From other programs only the messages are known, and a later
    export of the same conversation adds to it."""
    notes: tuple[str, ...] = ()


class ConversationSource(Protocol):
    """A file with conversations. Each call of `conversations` reads it from the beginning."""

    name: ImportFormat
    size: int
    """The maximum of `position`."""

    def conversations(self) -> Generator[IncomingConversation, None, None]: ...


class ImportedConversation(Struct, frozen=True):
    id: str
    title: str
    outcome: Outcome
    messages: int
    notes: tuple[str, ...] = ()


class ImportReport(Struct, frozen=True):
    format: ImportFormat
    conversations: tuple[ImportedConversation, ...]

    def count(self, *outcomes: Outcome) -> int:
        return sum(each.outcome in outcomes for each in self.conversations)

    @property
    def messages(self) -> int:
        return sum(each.messages for each in self.conversations)
