"""DocumentUses: which documents the messages of which conversations refer to, and when."""

from dataclasses import dataclass

from sqlalchemy import Connection, delete, insert, select

from recto.chat.blocks import Block, References
from recto.chat.document_reference import ReferenceType
from recto.store.database import Database
from recto.store.schema import conversations, messages, uses


@dataclass(frozen=True, slots=True)
class DocumentUse:
    """A document that a message refers to; `path` is None for a broken link."""

    vault: str
    path: str | None
    wikilink: str
    reference_type: ReferenceType
    conversation: str
    message: str
    created: str


class DocumentUses:
    def __init__(self, database: Database) -> None:
        self._database = database

    def uses(self, vault: str | None = None, conversation: str | None = None) -> list[DocumentUse]:
        """All uses, oldest first; optionally only of a vault (its folder) or in a conversation."""
        columns = (uses.c.vault, uses.c.path, uses.c.wikilink, uses.c.direct)
        query = (
            select(*columns, conversations.c.id, messages.c.id.label("message"), messages.c.created)
            .join(messages, messages.c.n == uses.c.message)
            .join(conversations, conversations.c.n == messages.c.conversation)
            .order_by(uses.c.message, uses.c.n)
        )
        if vault is not None:
            query = query.where(uses.c.vault == vault)
        if conversation is not None:
            query = query.where(conversations.c.id == conversation)
        with self._database.read() as connection:
            return [
                DocumentUse(folder, path, wikilink, "direct" if direct else "search", home, message, created)
                for folder, path, wikilink, direct, home, message, created in connection.execute(query)
            ]


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
        connection.execute(delete(uses).where(uses.c.message == number))
        connection.execute(insert(uses), rows)
