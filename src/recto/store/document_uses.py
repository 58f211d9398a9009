"""DocumentUses: which documents the messages of which conversations refer to, how often, and when."""

from collections.abc import Sequence

from msgspec import Struct
from sqlalchemy import Connection, bindparam, delete, func, insert, select

from recto.chat.blocks import Block, References, ReferenceType
from recto.store.database import Database
from recto.store.prepared_statement import Statement
from recto.store.schema import conversations, messages, uses
from recto.store.usage_totals import (
    DocumentTotal,
    Progress,
    UsageTotals,
    documents_anew,
    forget_totals,
    kept_documents,
)

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


class RecentUses(Struct, frozen=True):
    """The latest uses of one document."""

    count: int
    """Of all its uses."""
    named: int
    """How many of the latest are the user's own."""
    found: int
    """How many of the latest are by a search or a tool."""
    conversations: int
    last: str


class DocumentUses:
    def __init__(self, database: Database) -> None:
        self._database, self._kept_totals = database, UsageTotals(database)

    def totals(self, vault: str, progress: Progress | None = None, *, has_days: bool = True) -> list[DocumentTotal]:
        """The uses of documents of a vault (its folder) by conversation and month; broken links do not count. Without
        `has_days` the months may be those of another zone."""
        found = self._kept_totals.read(
            lambda connection: kept_documents(connection, vault), progress, has_days=has_days
        )
        if found is None:
            with self._database.read() as connection:
                return documents_anew(connection, vault)
        return found

    def uses(self, vault: str | None = None, conversation: str | None = None) -> list[DocumentUse]:
        """All uses, oldest first; optionally only of a vault (its folder) or in a conversation."""
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
        with self._database.read() as connection:
            return [
                DocumentUse(folder, path, wikilink, "direct" if direct else "search", home, message, created)
                for folder, path, wikilink, direct, home, message, created in connection.execute(query)
                # of one conversation's few uses: the database would begin with all uses of the vault
                if vault is None or folder == vault
            ]

    @property
    def newest(self) -> int:
        """The number of the latest use; grows with every use."""
        with self._database.read() as connection:
            return int(_NEWEST(connection).scalar() or 0)

    def used_between(self, after: int, last: int) -> Sequence[tuple[str, str]]:
        """The documents whose uses have these numbers, by vault and path."""
        with self._database.read() as connection:
            return [(row.vault, row.path) for row in _BETWEEN(connection, after=after, last=last)]

    def recent(self, vault: str, path: str, most: int) -> RecentUses:
        """Of conversations in the trash only the count."""
        with self._database.read() as connection:
            count = int(_COUNT(connection, vault=vault, path=path).scalar() or 0)
            rows = _LATEST(connection, vault=vault, path=path, most=most).all()
        named, homes = sum(bool(row.direct) for row in rows), {row.conversation for row in rows}
        last = max((row.created for row in rows), default="")
        return RecentUses(count, named, len(rows) - named, len(homes), last)


def note_uses(connection: Connection, number: int, blocks: tuple[Block, ...]) -> None:
    """Stores the documents that a message refers to, in place of those stored before."""
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
