"""AccessKeys: who may use the endpoint. ClientMessages: the owner of each conversation, and how its messages are
recognised when a client sends them back. Every look-up is by owner: nobody finds another's conversations.
"""

import hashlib
import secrets
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct
from sqlalchemy import Connection, bindparam, delete, insert, select, update

from recto import wire
from recto.chat.chain import Print
from recto.chat.message import now
from recto.errors import Invalid, NotFound
from recto.store.database import Database
from recto.store.prepared_statement import Statement, given
from recto.store.replies import LEFT, left_replies
from recto.store.rows import PLACE_OF, conversation_row, message_row
from recto.store.schema import access_keys, client_conversations, client_messages, conversations, messages, requests

PREFIX = "recto-"
KEY_BYTES = 32
MOST_CANDIDATES = 20


class AccessKey(Struct, frozen=True):
    """The permissions of a key. The key itself is not here: only its hash is stored."""

    name: str
    created: str
    models: tuple[str, ...] = ()
    """Allowed models, by name or ending in `*`; all if empty."""
    spend_day: float | None = None
    """US dollars per day."""
    requests_per_minute: int | None = None
    mode: str = ""
    """How its requests are handled; empty means as the server is set."""


class AccessKeys:
    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, name: str, **limits: Any) -> tuple[AccessKey, str]:
        """The new key, and its secret, which is not stored."""
        if not name.strip() or len(name) > 100:
            raise Invalid("a key needs a name of at most 100 characters", name=name)
        key, secret = AccessKey(name.strip(), now(), **limits), PREFIX + secrets.token_urlsafe(KEY_BYTES)
        details = {each: value for each, value in wire.without_defaults(key).items() if each not in ("name", "created")}
        with self._database.write() as connection:
            if connection.execute(select(access_keys.c.n).where(access_keys.c.name == key.name)).first():
                raise Invalid(f"there is a key {key.name} already; remove it first, or take another name", name=name)
            values = {"name": key.name, "sha256": _hash(secret), "created": key.created, "details": wire.dumps(details)}
            connection.execute(insert(access_keys).values(**values))
        return key, secret

    def all(self) -> list[AccessKey]:
        return [_key(row) for row in self._database.rows(select(access_keys).order_by(access_keys.c.n))]

    def find(self, secret: str) -> AccessKey | None:
        """Looked up by hash, so that the time taken reveals nothing about other keys."""
        row = self._database.first(select(access_keys).where(access_keys.c.sha256 == _hash(secret)))
        return _key(row) if row else None

    def remove(self, name: str) -> AccessKey:
        """Its conversations stay."""
        with self._database.write() as connection:
            row = connection.execute(select(access_keys).where(access_keys.c.name == name)).first()
            if row is None:
                raise NotFound(f"there is no key {name}; `recto serve keys list` lists all of them", name=name)
            connection.execute(delete(access_keys).where(access_keys.c.n == row.n))
        return _key(row)


def _hash(secret: str) -> bytes:
    # a key has 256 random bits: a slow hash would add nothing
    return hashlib.sha256(secret.encode()).digest()


def _key(row: Any) -> AccessKey:
    details: dict[str, Any] = wire.loads(row.details)
    return AccessKey(row.name, row.created, **details | {"models": tuple(details.get("models", ()))})


_owned = (
    select(messages.c.id, conversations.c.id.label("home"))
    .join(client_messages, messages.c.n == client_messages.c.message)
    .join(conversations, conversations.c.n == messages.c.conversation)
    .where(client_messages.c.owner == bindparam("owner"), conversations.c.deleted.is_(None))
    .order_by(messages.c.n.desc())
    .limit(MOST_CANDIDATES)
)
_BY_CHAIN = Statement(_owned.where(client_messages.c.chain == bindparam("print")))
_BY_PRINT = Statement(_owned.where(client_messages.c.print == bindparam("print")))
_CHAIN_OF = Statement(
    select(client_messages.c.chain)
    .join(messages, messages.c.n == client_messages.c.message)
    .where(messages.c.id == bindparam("id"))
)
_RECHAIN = Statement(
    update(client_messages).where(client_messages.c.message == bindparam("number")).values(chain=bindparam("new"))
)
_ADD = Statement(insert(client_messages).values(given(client_messages)))


class KnownMessage(Struct, frozen=True):
    id: str
    print: Print
    chain: Print


class OwnedMessage(Struct, frozen=True):
    id: str
    conversation: str


class ClientMessages:
    def __init__(self, database: Database) -> None:
        self._database = database

    def own(self, conversation: str, owner: str, name: str | None = None) -> None:
        with self._database.write() as connection:
            home = conversation_row(connection, conversation).n
            connection.execute(insert(client_conversations).values(conversation=home, owner=owner, name=name))

    def named(self, owner: str, name: str) -> str | None:
        """The owner's conversation with this id, or with this name from its client."""
        query = select(conversations.c.id).join(client_conversations).where(client_conversations.c.owner == owner)
        found: str | None = self._database.scalar(query.where(conversations.c.id == name))
        return found or self._database.scalar(query.where(client_conversations.c.name == name))

    def owner(self, conversation: str) -> str | None:
        """None for a conversation without a client."""
        query = select(client_conversations.c.owner).join(conversations).where(conversations.c.id == conversation)
        found: str | None = self._database.scalar(query)
        return found

    def add(self, owner: str, known: Sequence[KnownMessage]) -> None:
        with self._database.write() as connection:
            for each in known:
                number = PLACE_OF(connection, id=each.id).first().n
                _ADD(connection, message=number, owner=owner, print=each.print, chain=each.chain)

    def rechain(self, message: str, chain: Print) -> None:
        """For a client that now sends other words before a message."""
        with self._database.write() as connection:
            _RECHAIN(connection, number=PLACE_OF(connection, id=message).first().n, new=chain)

    def chain(self, message: str) -> Print | None:
        found: Print | None = self._database.scalar(_CHAIN_OF, id=message)
        return found

    def by_chain(self, owner: str, chain: Print) -> list[OwnedMessage]:
        """Messages with this chain, newest first."""
        return self._found(_BY_CHAIN, owner, chain)

    def by_print(self, owner: str, print: Print) -> list[OwnedMessage]:
        return self._found(_BY_PRINT, owner, print)

    def _found(self, statement: Statement, owner: str, print: Print) -> list[OwnedMessage]:
        return [OwnedMessage(row.id, row.home) for row in self._database.rows(statement, owner=owner, print=print)]

    def reply_to(self, owner: str, request: str) -> OwnedMessage | None:
        query = (
            select(messages.c.id, conversations.c.id.label("home"))
            .join(requests, requests.c.n == messages.c.request)
            .join(conversations, conversations.c.n == messages.c.conversation)
            .join(client_conversations, client_conversations.c.conversation == conversations.c.n)
            .where(requests.c.id == request, client_conversations.c.owner == owner, conversations.c.deleted.is_(None))
        )
        row = self._database.first(query)
        return OwnedMessage(row.id, row.home) if row else None

    def is_answered(self, message: str) -> bool:
        """True if a reply follows a message, directly or after a compaction, unless a dead server left it
        unfinished."""
        with self._database.read() as connection:
            found = list(_replies(connection, message_row(connection, message).n))
        whole = [row for row in found if not (row.status == "stopped" and LEFT in row.details)]
        if self._database.file is None and whole and all(row.status == "unfinished" for row in whole):
            left = left_replies(self._database)
            whole = [row for row in whole if row.id not in left]
        return bool(whole)


def _replies(connection: Connection, number: int) -> Iterator[Any]:
    columns = (messages.c[name] for name in ("n", "id", "role", "status", "details"))
    for row in connection.execute(select(*columns).where(messages.c.parent == number)).all():
        if row.role == "assistant":
            yield row
        elif row.role == "system":
            yield from _replies(connection, row.n)
