"""Statistics over the documents that conversations use: by document, by conversation, by month. Pure."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Literal

from msgspec import Struct

from recto.store.source_uses import DocumentUse

Grouping = Literal["document", "conversation", "month"]


class DocumentTally(Struct, frozen=True):
    """Uses of one document, in one conversation or in one month."""

    name: str
    uses: int = 0
    direct: int = 0
    search: int = 0
    documents: int = 0
    conversations: int = 0
    last: str | None = None

    @classmethod
    def of(cls, name: str, uses: Sequence[DocumentUse]) -> "DocumentTally":
        direct = sum(use.reference_type == "direct" for use in uses)
        documents = len({use.path for use in uses})
        conversations = len({use.conversation for use in uses})
        last = max(use.created for use in uses)
        return cls(name, len(uses), direct, len(uses) - direct, documents, conversations, last)


def _month(use: DocumentUse) -> str:
    """On the user's clock."""
    return datetime.fromisoformat(use.created).astimezone().strftime("%Y-%m")


GROUPINGS: dict[Grouping, Callable[[DocumentUse], str]] = {
    "document": lambda use: use.path or use.wikilink,
    "conversation": lambda use: use.conversation,
    "month": _month,
}


def tally_documents(uses: Iterable[DocumentUse], by: Grouping = "document") -> list[DocumentTally]:
    """The most used first; months from the latest back. Broken links do not count."""
    groups: dict[str, list[DocumentUse]] = {}
    for use in uses:
        if use.path is not None:
            groups.setdefault(GROUPINGS[by](use), []).append(use)
    tallies = [DocumentTally.of(name, group) for name, group in groups.items()]
    if by == "month":
        return sorted(tallies, key=lambda tally: tally.name, reverse=True)
    return sorted(sorted(tallies, key=lambda tally: tally.last or "", reverse=True), key=lambda tally: -tally.uses)


def unnamed_documents(uses: Sequence[DocumentUse], notes: Iterable[str]) -> list[DocumentTally]:
    """Documents that tools found or read and nobody named, the most often first; then those without any use."""
    found = [tally for tally in tally_documents(uses) if not tally.direct]
    used = {use.path for use in uses}
    return [*found, *(DocumentTally(path) for path in notes if path not in used)]
