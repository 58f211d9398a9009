"""Replies in progress: those that a process writes on a database server, and those that endpoint clients wait for. Each
names its process, which holds a lease while it lives, so others notice its death.
"""

from datetime import UTC, datetime, timedelta

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from recto.chat.message import now, stored_time
from recto.store.database import Database
from recto.store.prepared_statement import Statement
from recto.store.rows import PLACE_OF
from recto.store.schema import awaited_replies, messages, open_replies

# Most SDKs time out after ten minutes, then ask again.
ASKS_AGAIN = timedelta(minutes=15)
LEFT = "the server that wrote this reply ended before it was complete"

_OPEN = Statement(insert(open_replies).values(message=bindparam("message"), process=bindparam("process")))
_CLOSE = Statement(delete(open_replies).where(open_replies.c.message == bindparam("message")))
_AWAITED = awaited_replies.c
_FIND = Statement(select(_AWAITED.process, _AWAITED.asked).where(_AWAITED.message == bindparam("number")))
_ADD = Statement(
    insert(awaited_replies).values(message=bindparam("number"), process=bindparam("by"), asked=bindparam("at"))
)
_REMOVE = Statement(delete(awaited_replies).where(_AWAITED.message == bindparam("number")))
_REMOVE_OLD = Statement(delete(awaited_replies).where(_AWAITED.asked < bindparam("before")))
_LOSE = Statement(update(awaited_replies).where(_AWAITED.message == bindparam("number")).values(process=""))


def _lease_of(process: str) -> str:
    return f"recto process {process}"


def note_open(database: Database, connection: Connection, number: int) -> None:
    if database.file is None:
        database.keep_lease(_lease_of(database.instance))
        _OPEN(connection, message=number, process=database.instance)


def note_closed(database: Database, connection: Connection, number: int) -> None:
    if database.file is None:
        _CLOSE(connection, message=number)


def left_replies(database: Database) -> list[str]:
    query = select(open_replies.c.process, messages.c.id).join(messages, messages.c.n == open_replies.c.message)
    rows = database.rows(query.where(open_replies.c.process != database.instance))
    gone = set()
    for process in {row.process for row in rows}:
        with database.hold(_lease_of(process)) as is_free:
            if is_free:
                gone.add(process)
    return [row.id for row in rows if row.process in gone]


class AwaitedReplies:
    """First questions of clients whose reply was not fully delivered. A client that repeats one has lost its reply; one
    that repeats it after a reply begins another conversation."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._here: set[str] = set()

    def begin(self, message: str) -> None:
        """Records that a client waits for the reply to its first message."""
        with self._database.write() as connection:
            if self._database.file is None:
                self._database.keep_lease(_lease_of(self._database.instance))
            number = PLACE_OF(connection, id=message).first().n
            _REMOVE_OLD(connection, before=_oldest())
            _REMOVE(connection, number=number)
            _ADD(connection, number=number, by=self._database.instance, at=now())
        self._here.add(message)

    def end(self, message: str, *, is_delivered: bool) -> None:
        """The reply was fully delivered, or will not be: the client has gone, or the reply is incomplete."""
        with self._database.write() as connection:
            if place := PLACE_OF(connection, id=message).first():
                (_REMOVE if is_delivered else _LOSE)(connection, number=place.n)
        # not before: until then another request would think the client gone
        self._here.discard(message)

    def is_lost(self, message: str) -> bool:
        """True if a client asked this recently, got no complete reply, and none is on its way."""
        with self._database.read() as connection:
            place = PLACE_OF(connection, id=message).first()
            row = _FIND(connection, number=place.n).first() if place else None
        if row is None or row.asked < _oldest():
            return False
        if row.process == self._database.instance:
            return message not in self._here
        if not row.process:
            return True
        with self._database.hold(_lease_of(row.process)) as is_free:
            return is_free


def _oldest() -> str:
    return stored_time((datetime.now(UTC) - ASKS_AGAIN).isoformat())
