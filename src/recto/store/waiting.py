"""WaitingMessages: messages sent while a reply came, until they enter the conversation or are taken back."""

from msgspec import Struct
from sqlalchemy import Connection, bindparam, delete, insert, select

from recto import wire
from recto.base.ids import new_id
from recto.chat.blocks import Block, Text
from recto.chat.message import now
from recto.errors import NotFound
from recto.store.database import Database
from recto.store.prepared_statement import Statement
from recto.store.rows import BRING_BACK, AnyRow, conversation_row
from recto.store.schema import conversations, waiting


class WaitingMessage(Struct, frozen=True, tag_field="type", tag="waiting", forbid_unknown_fields=True):
    """Also a line of an export."""

    id: str
    blocks: tuple[Block, ...]
    created: str

    @property
    def text(self) -> str:
        return "\n".join(block.text for block in self.blocks if isinstance(block, Text))


_ROWS = select(waiting.c.id, waiting.c.blocks, waiting.c.created).order_by(waiting.c.n)
_OF = Statement(_ROWS.join(conversations).where(conversations.c.id == bindparam("home")))
_REMOVE = Statement(delete(waiting).where(waiting.c.id == bindparam("message")))


class WaitingMessages:
    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, conversation: str, blocks: tuple[Block, ...]) -> WaitingMessage:
        made = WaitingMessage(new_id(), blocks, now())
        with self._database.write() as connection:
            home = conversation_row(connection, conversation).n
            insert_waiting(connection, home, made)
            # the user's words list a conversation again, hidden or in the trash
            BRING_BACK(connection, home=home)
        return made

    def of(self, conversation: str) -> list[WaitingMessage]:
        """Oldest first."""
        with self._database.read() as connection:
            return _found(connection, conversation)

    def take(self, conversation: str) -> list[WaitingMessage]:
        """Removes and returns all of a conversation."""
        with self._database.write() as connection:
            taken = _found(connection, conversation)
            for each in taken:
                _REMOVE(connection, message=each.id)
        return taken

    def take_back(self, conversation: str, id: str | None = None) -> WaitingMessage:
        """Removes and returns one, by default the newest."""
        with self._database.write() as connection:
            found = [each for each in _found(connection, conversation) if id in (None, each.id)]
            if not found:
                raise NotFound("no message is waiting" if id is None else f"no message {id} is waiting", id=id)
            _REMOVE(connection, message=found[-1].id)
        return found[-1]


def insert_waiting(connection: Connection, home: int, message: WaitingMessage) -> None:
    values = {"id": message.id, "created": message.created, "blocks": wire.blocks_to_json(message.blocks)}
    connection.execute(insert(waiting).values(conversation=home, **values))


def waiting_in(connection: Connection, home: int) -> list[WaitingMessage]:
    """The messages waiting in the conversation with this number, oldest first."""
    return [_waiting(row) for row in connection.execute(_ROWS.where(waiting.c.conversation == home))]


def _found(connection: Connection, conversation: str) -> list[WaitingMessage]:
    return [_waiting(row) for row in _OF(connection, home=conversation)]


def _waiting(row: AnyRow) -> WaitingMessage:
    return WaitingMessage(row.id, wire.blocks_from_json(row.blocks), row.created)
