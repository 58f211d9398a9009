"""Statistics over the documents that conversations use: by document, by conversation, by month, and together. Pure."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from typing import Literal

from msgspec import Struct

from recto.store.usage_totals import DocumentTotal

Grouping = Literal["document", "conversation", "month"]
# So many documents of one conversation are paired: each with each makes 4,950 pairs.
MOST_PAIRED = 100


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
    """Documents that tools found or read and nobody named, the most often first; then those without any use."""
    found = [tally for tally in tally_documents(totals) if not tally.direct]
    used = {total.path for total in totals}
    return [*found, *(DocumentTally(path) for path in notes if path not in used)]


class UsedTogether(Struct, frozen=True):
    """How often each document was used, and in how many turns or conversations two of them were."""

    uses: Mapping[str, int]
    pairs: Mapping[tuple[str, str], int]


def count_together(groups: Iterable[Sequence[str]]) -> UsedTogether:
    """`groups` are the documents of each turn or conversation. Of a group with very many, the most used are paired."""
    uses, pairs = Counter[str](), Counter[tuple[str, str]]()
    for group in groups:
        counts = Counter(group)
        uses.update(counts)
        pairs.update(combinations(sorted(path for path, _ in counts.most_common(MOST_PAIRED)), 2))
    return UsedTogether(uses, pairs)
