"""Replies that are being written on a database server. Each names its process, which holds a lease as long as it lives:
another process ends the replies of one that died, with what had come of them."""

from sqlalchemy import Connection, bindparam, delete, insert, select

from recto.store.database import Database
from recto.store.prepared_statement import Statement
from recto.store.schema import messages, open_replies

_OPEN = Statement(insert(open_replies).values(message=bindparam("message"), process=bindparam("process")))
_CLOSE = Statement(delete(open_replies).where(open_replies.c.message == bindparam("message")))
LEFT = "the server that wrote this reply ended before it was complete"


def lease_of(process: str) -> str:
    return f"recto process {process}"


def note_open(database: Database, connection: Connection, number: int) -> None:
    """This process has begun to write a reply."""
    if database.file is None:
        database.keep_lease(lease_of(database.instance))
        _OPEN(connection, message=number, process=database.instance)


def note_closed(database: Database, connection: Connection, number: int) -> None:
    if database.file is None:
        _CLOSE(connection, message=number)


def left_replies(database: Database) -> list[str]:
    """The ids of replies whose process is gone."""
    with database.read() as connection:
        query = select(open_replies.c.process, messages.c.id).join(messages, messages.c.n == open_replies.c.message)
        rows = connection.execute(query.where(open_replies.c.process != database.instance)).all()
    gone = set()
    for process in {row.process for row in rows}:
        with database.hold(lease_of(process)) as is_free:
            if is_free:
                gone.add(process)
    return [row.id for row in rows if row.process in gone]
