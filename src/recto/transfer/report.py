"""The names of the formats, what an import reads, and ImportReport: its outcome. Light, because every command that
opens a store needs it."""

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
Outcome = Literal["added", "extended", "unchanged", "kept apart", "empty"]
"""`unchanged`: the store has it already. `empty`: there is no message in it, so it was passed over.
`kept apart`: stored under new ids, beside another that has its ids."""
Tell = Callable[[int, int], object]
"""Called with how much is done, and of how much."""
Place = str | Path


class ExportOptions(TypedDict, total=False):
    format: ExportFormat
    """json (the default), markdown or html."""
    everything: bool
    """All conversations."""


class ImportOptions(TypedDict, total=False):
    format: ImportFormat | None
    """What the file is, where it does not tell itself."""
    as_new: bool
    """Stores those under new ids whose ids others have."""
    progress: Tell | None


class IncomingConversation(Struct, frozen=True):
    """A conversation with everything that it owns. `items` may be read once."""

    conversation: "Conversation"
    items: "Iterable[StoredItem]"
    place: str
    """Where it is in its file, for people."""
    position: int = 0
    """How much of the file is read when it comes."""
    is_complete: bool = False
    """With its records: it is stored as it is or not at all. Of other programs only the messages are known, and a later
    export of the same conversation adds to it."""
    notes: tuple[str, ...] = ()
    """What could not be brought along."""


class ConversationSource(Protocol):
    """A file with conversations. Each call of `conversations` reads it from its beginning."""

    name: ImportFormat
    size: int
    """What `position` counts up to."""

    def conversations(self) -> Generator[IncomingConversation, None, None]: ...


class ImportedConversation(Struct, frozen=True):
    id: str
    title: str
    outcome: Outcome
    messages: int
    """How many were stored."""
    notes: tuple[str, ...] = ()


class ImportReport(Struct, frozen=True):
    format: ImportFormat
    conversations: tuple[ImportedConversation, ...]

    def count(self, *outcomes: Outcome) -> int:
        return sum(each.outcome in outcomes for each in self.conversations)

    @property
    def messages(self) -> int:
        """How many were stored."""
        return sum(each.messages for each in self.conversations)
