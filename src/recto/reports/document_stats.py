"""Statistics over the documents that conversations use: by document, by conversation, by month. Pure."""

from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from msgspec import Struct

from recto.store.document_uses import DocumentTotal

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
    def of(cls, name: str, totals: Sequence[DocumentTotal]) -> "DocumentTally":
        uses, direct = sum(each.uses for each in totals), sum(each.direct for each in totals)
        documents = len({each.path for each in totals})
        conversations = len({each.conversation for each in totals})
        last = max(each.last for each in totals)
        return cls(name, uses, direct, uses - direct, documents, conversations, last)


GROUPINGS: dict[Grouping, Callable[[DocumentTotal], str]] = {
    "document": lambda total: total.path,
    "conversation": lambda total: total.conversation,
    "month": lambda total: total.month,
}


def tally_documents(totals: Iterable[DocumentTotal], by: Grouping = "document") -> list[DocumentTally]:
    """The most used first; months from the latest back."""
    groups: dict[str, list[DocumentTotal]] = {}
    for total in totals:
        groups.setdefault(GROUPINGS[by](total), []).append(total)
    tallies = [DocumentTally.of(name, group) for name, group in groups.items()]
    if by == "month":
        return sorted(tallies, key=lambda tally: tally.name, reverse=True)
    return sorted(sorted(tallies, key=lambda tally: tally.last or "", reverse=True), key=lambda tally: -tally.uses)


def unnamed_documents(totals: Sequence[DocumentTotal], notes: Iterable[str]) -> list[DocumentTally]:
    """Documents that tools found but nobody named, the most often found first; then the unused ones."""
    found = [tally for tally in tally_documents(totals) if not tally.direct]
    used = {total.path for total in totals}
    return [*found, *(DocumentTally(path) for path in notes if path not in used)]
