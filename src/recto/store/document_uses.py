"""DocumentUses: the documents that messages refer to: how often, when, and which together."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import combinations, groupby
from typing import Any, Literal

from msgspec import Struct
from sqlalchemy import ColumnElement, Connection, Select, bindparam, delete, func, insert, select

from recto.chat.blocks import Block, References, ReferenceType
from recto.store.database import Database
from recto.store.dialect import in_list
from recto.store.prepared_statement import Statement
from recto.store.rows import AnyRow
from recto.store.schema import conversations, document_pairs, document_totals, messages, requests, uses
from recto.store.usage_totals import MINUTE, Progress, UsageTotals, forget_totals, local_month

Together = Literal["turn", "conversation"]
# The most documents of a turn or conversation that are paired: 4,950 pairs.
MOST_PAIRED = 100

_NEWEST = Statement(select(func.max(uses.c.n)))
_BETWEEN = Statement(
    select(uses.c.vault, uses.c.path)
    .where(uses.c.n > bindparam("after"), uses.c.n <= bindparam("last"), uses.c.path.is_not(None))
    .distinct()
)
_OF_ONE = (uses.c.vault == bindparam("vault"), uses.c.path == bindparam("path"))
_COUNT = Statement(select(func.count()).where(*_OF_ONE))
_LATEST = Statement(
    select(uses.c.direct, messages.c.conversation, messages.c.created)
    .join(messages, messages.c.n == uses.c.message)
    .join(conversations, conversations.c.n == messages.c.conversation)
    .where(*_OF_ONE, conversations.c.deleted.is_(None))
    .order_by(uses.c.n.desc())
    .limit(bindparam("most"))
)


class DocumentUse(Struct, frozen=True):
    """A document that a message refers to; `path` is None for a broken link."""

    vault: str
    path: str | None
    wikilink: str
    reference_type: ReferenceType
    conversation: str
    message: str
    created: str


class DocumentTotal(Struct, frozen=True):
    conversation: str
    vault: str
    path: str
    month: str
    """By the user's clock: 2026-01."""
    uses: int
    direct: int
    first: str
    last: str


class RecentUses(Struct, frozen=True):
    count: int
    named: int
    """Those of the latest by the user."""
    found: int
    """Those of the latest by a search or a tool."""
    conversations: int
    last: str


class UsedTogether(Struct, frozen=True):
    """The number of uses of each document, and of turns or conversations with two of them."""

    uses: Mapping[str, int]
    pairs: Mapping[tuple[str, str], int]


class DocumentUses:
    def __init__(self, database: Database, totals: UsageTotals) -> None:
        self._database, self._totals = database, totals

    def totals(self, vault: str, progress: Progress | None = None, *, has_days: bool = True) -> list[DocumentTotal]:
        """The uses of documents of a vault (its folder) by conversation and month, without broken links. Without
        `has_days` the months may be those of another time zone."""
        return self._totals.read(
            lambda connection: [DocumentTotal(*row) for row in _KEPT(connection, vault=vault)],
            lambda connection: [DocumentTotal(**row) for row in sum_documents(_OF_VAULT(connection, vault=vault))],
            progress,
            has_days=has_days,
        )

    def together(self, vault: str, by: Together = "turn", progress: Progress | None = None) -> UsedTogether:
        """Documents of a vault (its folder) used in the same turn or conversation."""
        return self._totals.read(
            lambda connection: _kept_together(connection, vault, by),
            lambda connection: count_together(_groups(_TOGETHER[by](connection, vault=vault))),
            progress,
            has_days=False,
        )

    def uses(self, vault: str | None = None, conversation: str | None = None) -> list[DocumentUse]:
        """All uses, oldest first; optionally only those of a vault (its folder) or in a conversation."""
        columns = (uses.c.vault, uses.c.path, uses.c.wikilink, uses.c.direct)
        query = (
            select(*columns, conversations.c.id, messages.c.id.label("message"), messages.c.created)
            .join(messages, messages.c.n == uses.c.message)
            .join(conversations, conversations.c.n == messages.c.conversation)
            .order_by(uses.c.message, uses.c.n)
        )
        if conversation is not None:
            home = select(conversations.c.n).where(conversations.c.id == conversation)
            numbers = select(messages.c.n).where(messages.c.conversation == home.scalar_subquery())
            query = query.where(uses.c.message.in_(numbers))
        elif vault is not None:
            query = query.where(uses.c.vault == vault)
        return [
            DocumentUse(folder, path, wikilink, "direct" if direct else "search", home, message, created)
            for folder, path, wikilink, direct, home, message, created in self._database.rows(query)
            # filtered here for one conversation: the database would start with all uses of the vault
            if vault is None or folder == vault
        ]

    @property
    def newest(self) -> int:
        """The number of the latest use; grows with every use."""
        return int(self._database.scalar(_NEWEST) or 0)

    def used_between(self, after: int, last: int) -> Sequence[tuple[str, str]]:
        return [(row.vault, row.path) for row in self._database.rows(_BETWEEN, after=after, last=last)]

    def recent(self, vault: str, path: str, most: int) -> RecentUses:
        """Conversations in the trash only add to the count."""
        with self._database.read() as connection:
            count = int(_COUNT(connection, vault=vault, path=path).scalar() or 0)
            rows = _LATEST(connection, vault=vault, path=path, most=most).all()
        named, homes = sum(bool(row.direct) for row in rows), {row.conversation for row in rows}
        last = max((row.created for row in rows), default="")
        return RecentUses(count, named, len(rows) - named, len(homes), last)


def note_uses(connection: Connection, number: int, blocks: tuple[Block, ...]) -> None:
    """Stores the documents that a message refers to, replacing earlier ones."""
    rows = [
        {
            "message": number,
            "vault": block.vault,
            "path": reference.relative_path,
            "wikilink": reference.wikilink,
            "direct": int(reference.reference_type == "direct"),
        }
        for block in blocks
        if isinstance(block, References)
        for reference in block.references
    ]
    if rows:
        forget_totals(connection, message=number)
        connection.execute(delete(uses).where(uses.c.message == number))
        connection.execute(insert(uses), rows)


# -- by conversation and month


def _documents(home: ColumnElement[Any], condition: ColumnElement[bool]) -> Statement:
    return Statement(
        select(home, uses.c.vault, uses.c.path, uses.c.direct, messages.c.created)
        .join_from(conversations, messages, messages.c.conversation == conversations.c.n)
        .join(uses, uses.c.message == messages.c.n)
        .where(uses.c.path.is_not(None), condition)
    )


_IN_HOMES = _documents(conversations.c.n, in_list(conversations.c.n, "homes"))
_OF_VAULT = _documents(conversations.c.id, uses.c.vault == bindparam("vault"))
_KEPT = Statement(
    select(conversations.c.id, *(document_totals.c[name] for name in DocumentTotal.__struct_fields__[1:]))
    .join(document_totals, document_totals.c.conversation == conversations.c.n)
    .where(document_totals.c.vault == bindparam("vault"))
)


def month_sums(connection: Connection, homes: Sequence[int]) -> list[dict[str, Any]]:
    return sum_documents(_IN_HOMES(connection, homes=homes))


def sum_documents(rows: Iterable[tuple[Any, str, str, int, str]]) -> list[dict[str, Any]]:
    """Sums uses: conversation, vault, path, True if named by the user, time."""
    groups: dict[tuple[Any, ...], list[tuple[int, str]]] = {}
    month = cache(local_month)
    for home, vault, path, direct, created in rows:
        groups.setdefault((home, vault, path, month(created[:MINUTE])), []).append((direct, created))
    return [
        {
            **dict(zip(("conversation", "vault", "path", "month"), key, strict=True)),
            "uses": len(group),
            "direct": sum(direct for direct, _ in group),
            "first": min(created for _, created in group),
            "last": max(created for _, created in group),
        }
        for key, group in groups.items()
    ]


# -- together

# A reply belongs to the turn of the message that its request answers.
_TURN = func.coalesce(requests.c.message, messages.c.n)


def _together(group: ColumnElement[Any], condition: ColumnElement[bool]) -> Statement:
    return Statement(
        select(messages.c.conversation, uses.c.vault, group.label("group"), uses.c.path)
        .select_from(uses)
        .join(messages, messages.c.n == uses.c.message)
        .outerjoin(requests, requests.c.n == messages.c.request)
        .where(condition, uses.c.path.is_not(None))
        .order_by(uses.c.vault, group)
    )


_TOGETHER = {
    by: _together(group, uses.c.vault == bindparam("vault"))
    for by, group in (("turn", _TURN), ("conversation", messages.c.conversation))
}
_TURNS_IN_HOMES = _together(_TURN, in_list(messages.c.conversation, "homes"))


def _kept_sums(table: Any, column: str, *names: str) -> Statement:
    """A column of a vault's stored sums, grouped by others."""
    by = [table.c[name] for name in names]
    query: Select[Any] = select(*by, func.sum(table.c[column]).label(column)).where(table.c.vault == bindparam("vault"))
    return Statement(query.group_by(*by).order_by(by[0]))


_USES, _USES_BY_HOME = (_kept_sums(document_totals, "uses", *by) for by in (("path",), ("conversation", "path")))
_PAIRS = _kept_sums(document_pairs, "turns", "path", "other")


def count_together(groups: Iterable[Sequence[str] | Mapping[str, int]]) -> UsedTogether:
    """`groups` are the documents of each turn or conversation. In a very large group, only the most used are paired."""
    used, pairs = Counter[str](), Counter[tuple[str, str]]()
    for group in groups:
        counts = Counter(group)
        used.update(counts)
        pairs.update(_pairs_of(counts))
    return UsedTogether(used, pairs)


def _pairs_of(counts: Counter[str]) -> Iterator[tuple[str, str]]:
    return combinations(sorted(path for path, _ in counts.most_common(MOST_PAIRED)), 2)


def _groups(rows: Iterable[AnyRow]) -> Iterator[list[str]]:
    for _, group in groupby(rows, key=lambda row: row.group):
        yield [row.path for row in group]


def _kept_together(connection: Connection, vault: str, by: Together) -> UsedTogether:
    if by == "conversation":
        rows = groupby(_USES_BY_HOME(connection, vault=vault), key=lambda row: row.conversation)
        return count_together({row.path: int(row.uses) for row in group} for _, group in rows)
    used = {row.path: int(row.uses) for row in _USES(connection, vault=vault)}
    return UsedTogether(used, {(row.path, row.other): int(row.turns) for row in _PAIRS(connection, vault=vault)})


def pair_sums(connection: Connection, homes: Sequence[int]) -> list[dict[str, Any]]:
    found = Counter[tuple[int, str, str, str]]()
    rows = _TURNS_IN_HOMES(connection, homes=homes)
    for (home, vault, _), group in groupby(rows, key=lambda row: (row.conversation, row.vault, row.group)):
        found.update((home, vault, *pair) for pair in _pairs_of(Counter(row.path for row in group)))
    names = ("conversation", "vault", "path", "other")
    return [{**dict(zip(names, key, strict=True)), "turns": turns} for key, turns in found.items()]
