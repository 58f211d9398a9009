"""AwaitedReplies: first questions of clients whose reply has not gone out whole. A client that asks one of them again
has lost its reply; one that says the same after it got a reply begins another conversation."""

from datetime import UTC, datetime, timedelta

from sqlalchemy import bindparam, delete, insert, select, update

from recto.chat.message import now, stored_time
from recto.store.database import Database
from recto.store.open_replies import lease_of
from recto.store.prepared_statement import Statement
from recto.store.schema import awaited_replies
from recto.store.statements import PLACE_OF

# Clients wait ten minutes for a reply, as most SDKs do, and then ask again.
ASKS_AGAIN = timedelta(minutes=15)

_TABLE = awaited_replies.c
_FIND = Statement(select(_TABLE.process, _TABLE.asked).where(_TABLE.message == bindparam("number")))
_ADD = Statement(
    insert(awaited_replies).values(message=bindparam("number"), process=bindparam("by"), asked=bindparam("at"))
)
_REMOVE = Statement(delete(awaited_replies).where(_TABLE.message == bindparam("number")))
_REMOVE_OLD = Statement(delete(awaited_replies).where(_TABLE.asked < bindparam("before")))
_LOSE = Statement(update(awaited_replies).where(_TABLE.message == bindparam("number")).values(process=bindparam("by")))


class AwaitedReplies:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._here: set[str] = set()
        """Messages whose clients wait at this process."""

    def begin(self, message: str) -> None:
        """A client waits for the reply to its first message."""
        with self._database.write() as connection:
            if self._database.file is None:
                self._database.keep_lease(lease_of(self._database.instance))
            number = PLACE_OF(connection, id=message).first().n
            _REMOVE_OLD(connection, before=_oldest())
            _REMOVE(connection, number=number)
            _ADD(connection, number=number, by=self._database.instance, at=now())
        self._here.add(message)

    def end(self, message: str, *, is_delivered: bool) -> None:
        """The reply has gone out whole, or will not: the client has gone, or there is no whole reply."""
        with self._database.write() as connection:
            if place := PLACE_OF(connection, id=message).first():
                if is_delivered:
                    _REMOVE(connection, number=place.n)
                else:
                    _LOSE(connection, number=place.n, by="")
        # not before: until then another request would take the client for one that is gone
        self._here.discard(message)

    def is_lost(self, message: str) -> bool:
        """Whether a client asked this lately, and got no whole reply, and none is on its way to it."""
        with self._database.read() as connection:
            place = PLACE_OF(connection, id=message).first()
            row = _FIND(connection, number=place.n).first() if place else None
        if row is None or row.asked < _oldest():
            return False
        if row.process == self._database.instance:
            return message not in self._here
        if not row.process:
            return True
        with self._database.hold(lease_of(row.process)) as is_free:
            return is_free


def _oldest() -> str:
    return stored_time((datetime.now(UTC) - ASKS_AGAIN).isoformat())
