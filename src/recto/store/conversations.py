"""Conversations: their rows: made, listed, renamed, archived, moved to the trash and back. Knows no single message."""

from collections.abc import Collection
from typing import Any, Literal

from msgspec.structs import replace
from sqlalchemy import ColumnElement, and_, insert, or_, select, update

from recto import wire
from recto.base.ids import new_id
from recto.chat.conversation import Conversation, ConversationState
from recto.chat.message import now
from recto.errors import NotFound
from recto.store.database import Database
from recto.store.rows import conversation_of, conversation_row
from recto.store.schema import client_conversations, conversations, messages, requests
from recto.store.statements import CONVERSATION, CONVERSATION_NUMBERS, CONVERSATION_WAS_SENT

IdKind = Literal["conversation", "message", "request"]
_LATEST = (conversations.c.updated.desc(), conversations.c.n.desc())
_ARE: dict[ConversationState, ColumnElement[bool]] = {
    "active": and_(conversations.c.archived.is_(None), conversations.c.deleted.is_(None)),
    "archived": and_(conversations.c.archived.is_not(None), conversations.c.deleted.is_(None)),
    "deleted": conversations.c.deleted.is_not(None),
}
_TABLES = {"conversation": conversations, "message": messages, "request": requests}
# Follows every digit of an id.
_AFTER_DIGITS = "~"


class Conversations:
    def __init__(self, database: Database) -> None:
        self._database = database

    def create(
        self, *, id: str = "", title: str = "", agent: str = "default", details: dict[str, Any] | None = None
    ) -> Conversation:
        stamp = now()
        made = Conversation(id or new_id(), title, None, stamp, stamp, agent, details or {})
        with self._database.write() as connection:
            values = {"id": made.id, "title": title, "agent": agent, "created": stamp, "updated": stamp}
            query = insert(conversations).values(**values, details=wire.dumps(made.details))
            number = connection.execute(query.returning(conversations.c.n)).scalar_one()
        return replace(made, number=number)

    def conversation(self, id: str) -> Conversation:
        with self._database.read() as connection:
            return conversation_of(conversation_row(connection, id))

    def conversation_numbered(self, number: int) -> Conversation:
        """The conversation that people know by this number."""
        with self._database.read() as connection:
            row = connection.execute(CONVERSATION.where(conversations.c.n == number)).first()
        if row is None:
            raise NotFound(f"there is no conversation #{number}; `recto conversations list` shows those there are")
        return conversation_of(row)

    def conversation_numbers(self, ids: Collection[str]) -> dict[str, int]:
        """Conversations that there are, id -> number."""
        with self._database.read() as connection:
            return {row.id: row.n for row in CONVERSATION_NUMBERS(connection, ids=list(ids))}

    def latest(self, *, unsent: bool = True) -> Conversation | None:
        """The active conversation that changed last; without `unsent`, of those that can be gone on with."""
        query = CONVERSATION.where(_ARE["active"]).order_by(*_LATEST).limit(1)
        if not unsent:
            query = query.where(or_(conversations.c.head.is_(None), CONVERSATION_WAS_SENT))
        with self._database.read() as connection:
            row = connection.execute(query).first()
        return conversation_of(row) if row else None

    def was_sent(self, id: str) -> bool:
        """Whether anything of a conversation was ever sent, or answered elsewhere."""
        with self._database.read() as connection:
            return (
                connection.execute(CONVERSATION.where(conversations.c.id == id, CONVERSATION_WAS_SENT)).first()
                is not None
            )

    def conversations(
        self,
        *,
        limit: int | None = 100,
        since: str | None = None,
        before: str | None = None,
        state: ConversationState | None = None,
        owner: str | None = None,
    ) -> list[Conversation]:
        """The latest first, in one state or in any; of one owner's clients, or all."""
        query = CONVERSATION.order_by(*_LATEST).limit(limit)
        if owner is not None:
            own = select(client_conversations.c.conversation).where(client_conversations.c.owner == owner)
            query = query.where(conversations.c.n.in_(own))
        if state:
            query = query.where(_ARE[state])
        if since:
            query = query.where(conversations.c.updated >= since)
        if before:
            query = query.where(conversations.c.updated < before)
        with self._database.read() as connection:
            return [conversation_of(row) for row in connection.execute(query)]

    def ids_beginning(self, kind: IdKind, start: str, *, most: int, home: str | None = None) -> list[str]:
        """Ids that begin so; of messages and requests only those of the conversation `home`, where it is given."""
        table = _TABLES[kind]
        query = select(table.c.id).where(table.c.id >= start, table.c.id < start + _AFTER_DIGITS)
        if home:
            query = query.join(conversations).where(conversations.c.id == home)
        with self._database.read() as connection:
            return list(connection.execute(query.order_by(table.c.id).limit(most)).scalars())

    def change(self, id: str, *, title: str | None = None, details: dict[str, Any] | None = None) -> Conversation:
        """Changes the title, and merges settings into the conversation's details; None removes one."""
        with self._database.write() as connection:
            row = conversation_row(connection, id)
            merged = wire.loads(row.details) | (details or {})
            remaining = {name: value for name, value in merged.items() if value is not None}
            connection.execute(
                update(conversations)
                .where(conversations.c.n == row.n)
                .values(title=row.title if title is None else title, details=wire.dumps(remaining))
            )
            return conversation_of(conversation_row(connection, id))

    def archive(self, id: str, *, is_archived: bool = True) -> Conversation:
        """Archives a conversation, or takes it out of the archive."""
        return self._set(id, archived=now() if is_archived else None)

    def delete(self, id: str, *, is_deleted: bool = True) -> Conversation:
        """Moves a conversation to the trash, or back to where it was before."""
        return self._set(id, deleted=now() if is_deleted else None)

    def _set(self, id: str, **values: str | None) -> Conversation:
        with self._database.write() as connection:
            row = conversation_row(connection, id)
            connection.execute(update(conversations).where(conversations.c.n == row.n).values(**values))
            return conversation_of(conversation_row(connection, id))
