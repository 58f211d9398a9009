"""DocumentUses: the documents that messages refer to: how often, when, and in which conversations."""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct
from sqlalchemy import Connection, bindparam, delete, distinct, func, insert, select

from recto.chat.blocks import Block, References, ReferenceType
from recto.store.database import Database
from recto.store.prepared_statement import Statement
from recto.store.schema import conversations, messages, uses

Grouping = Literal["document", "conversation"]

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


class DocumentTally(Struct, frozen=True):
    """Uses of one document, or in one conversation."""

    name: str
    uses: int = 0
    direct: int = 0
    search: int = 0
    documents: int = 0
    conversations: int = 0
    last: str | None = None


class RecentUses(Struct, frozen=True):
    count: int
    named: int
    """Those of the latest by the user."""
    found: int
    """Those of the latest by a search or a tool."""
    conversations: int
    last: str


class DocumentUses:
    def __init__(self, database: Database) -> None:
        self._database = database

    def tally(self, vault: str, by: Grouping = "document") -> list[DocumentTally]:
        """The uses of documents of a vault (its folder), without broken links; the most used first."""
        name = (uses.c.path if by == "document" else conversations.c.id).label("name")
        count, direct, last = func.count(), func.sum(uses.c.direct), func.max(messages.c.created)
        columns = (name, count, direct, count - direct, func.count(distinct(uses.c.path)))
        query = (
            select(*columns, func.count(distinct(messages.c.conversation)), last)
            .select_from(uses)
            .join(messages, messages.c.n == uses.c.message)
            .join(conversations, conversations.c.n == messages.c.conversation)
            .where(uses.c.vault == vault, uses.c.path.is_not(None))
            .group_by(name)
            .order_by(count.desc(), last.desc(), name)
        )
        return [DocumentTally(*row) for row in self._database.rows(query)]

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
        connection.execute(delete(uses).where(uses.c.message == number))
        connection.execute(insert(uses), rows)
