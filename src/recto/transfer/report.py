"""The names of the formats, and ImportReport: what became of an import. Light, because every command that opens a store
needs the names."""

from collections.abc import Callable
from pathlib import Path
from typing import Literal, TypedDict, get_args

from msgspec import Struct

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
