"""The statements that every turn runs. Building and compiling one takes longer than running it: both happen once."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import (
    Connection,
    CursorResult,
    Dialect,
    Executable,
    Select,
    Table,
    bindparam,
    delete,
    insert,
    literal,
    select,
    text,
    update,
)

from recto.store.schema import conversations, deltas, messages, meters, pieces, requests


class Prepared:
    """A statement as its database's own SQL, with the order of its parameters: running it is all that is left to do."""

    def __init__(self, statement: Any) -> None:
        self._statement = statement
        self._compiled: dict[str, tuple[str, tuple[str, ...], Mapping[str, Any]]] = {}

    def __call__(self, connection: Connection, **values: Any) -> CursorResult[Any]:
        sql, names, constants = self._compiled.get(connection.dialect.name) or self._compile(connection.dialect)
        given = tuple([values[name] if name in values else constants[name] for name in names])
        return connection.exec_driver_sql(sql, given)

    def _compile(self, dialect: Dialect) -> tuple[str, tuple[str, ...], Mapping[str, Any]]:
        compiled = self._statement.compile(dialect=dialect)
        done = str(compiled), tuple(compiled.positiontup or ()), dict(compiled.params)
        self._compiled[dialect.name] = done
        return done


def _every(table: Table, **special: Any) -> Executable:
    """An insert of all columns but the number, each from a parameter of its name unless told otherwise."""
    plain: dict[str, Any] = {column.name: bindparam(column.name) for column in table.columns if column.name != "n"}
    return insert(table).values(plain | special)


_parents = messages.alias("parents")
_heads = messages.alias("heads")

MESSAGE = (
    select(
        *(messages.c[name] for name in ("n", "id", "depth", "said", "compaction", "role", "status", "created")),
        messages.c.blocks,
        messages.c.details,
        messages.c.priority,
        _parents.c.id.label("parent_id"),
        requests.c.id.label("request_id"),
    )
    .outerjoin(_parents, _parents.c.n == messages.c.parent)
    .outerjoin(requests, requests.c.n == messages.c.request)
)
MESSAGE_BY_ID = Prepared(MESSAGE.where(messages.c.id == bindparam("id")))

_at = messages.alias("at")
COMPACTION_AT = Prepared(MESSAGE.join(_at, _at.c.compaction == messages.c.n).where(_at.c.id == bindparam("id")))

COMPACTION_BLOCKS_AT = Prepared(
    select(messages.c.blocks).join(_at, _at.c.compaction == messages.c.n).where(_at.c.id == bindparam("id"))
)

CONVERSATION = select(
    conversations,
    _heads.c.id.label("head_id"),
    _heads.c.said.label("said"),
    _heads.c.depth.label("depth"),
    _heads.c.compaction.label("compaction"),
).outerjoin(_heads, _heads.c.n == conversations.c.head)
CONVERSATION_BY_ID = Prepared(CONVERSATION.where(conversations.c.id == bindparam("id")))


# What a window needs of a message. The parent's id is that of the next row on the path.
BARE = select(
    *(messages.c[name] for name in ("n", "id", "depth", "said", "role", "status", "created", "blocks", "parent")),
    messages.c.priority,
)


def _path(columns: Select[Any]) -> Select[Any]:
    """Up the parents from one message, newest first. The depth must fall, so a cycle in damaged data ends."""
    start = (
        select(messages.c.n, messages.c.parent, messages.c.depth, literal(1).label("step"))
        .where(messages.c.id == bindparam("start"))
        .cte("path", recursive=True)
    )
    up = messages.alias("up")
    path = start.union_all(
        select(up.c.n, up.c.parent, up.c.depth, start.c.step + 1)
        .join(start, up.c.n == start.c.parent)
        .where(up.c.depth < start.c.depth, start.c.step < bindparam("most"), up.c.id != bindparam("until"))
    )
    return columns.join(path, path.c.n == messages.c.n).order_by(path.c.step)


PATH = Prepared(_path(MESSAGE))
BARE_PATH = Prepared(_path(BARE))
ID_OF = Prepared(select(messages.c.id).where(messages.c.n == bindparam("n")))
REQUEST_OF = Prepared(
    select(requests.c.id).join(messages, messages.c.request == requests.c.n).where(messages.c.id == bindparam("id"))
)

INSERT_MESSAGE = Prepared(
    _every(messages, request=select(requests.c.n).where(requests.c.id == bindparam("request_id")).scalar_subquery())
)
COVER_ITSELF = Prepared(update(messages).where(messages.c.n == bindparam("number")).values(compaction=messages.c.n))
MOVE_HEAD = Prepared(
    update(conversations)
    .where(conversations.c.n == bindparam("home"))
    .values(head=bindparam("new_head"), updated=bindparam("new_updated"), title=bindparam("new_title"))
)
SET_DETAILS = Prepared(
    update(messages).where(messages.c.id == bindparam("message")).values(details=bindparam("new_details"))
)
SET_PRIORITY = Prepared(
    update(messages)
    .where(messages.c.id == bindparam("message"))
    .values(priority=bindparam("new_priority"))
    .returning(messages.c.n)
)
FINISH = Prepared(
    update(messages)
    .where(messages.c.id == bindparam("message"), messages.c.status == "unfinished")
    .values(
        status=bindparam("new_status"),
        blocks=bindparam("new_blocks"),
        details=bindparam("new_details"),
        priority=bindparam("new_priority"),
    )
    .returning(messages.c.n)
)
INSERT_DELTA = Prepared(
    _every(deltas, message=select(messages.c.n).where(messages.c.id == bindparam("id")).scalar_subquery())
)
DELETE_DELTAS = Prepared(delete(deltas).where(deltas.c.message == bindparam("number")))
INSERT_WORDS = Prepared(text("INSERT INTO words(rowid, text) VALUES (:n, :text)"))
# A walk of bare numbers, as deep as the two messages lie apart.
IS_ANCESTOR = Prepared(
    text(
        "WITH RECURSIVE path(n, parent, depth) AS (SELECT n, parent, depth FROM messages WHERE n = :head UNION ALL "
        "SELECT up.n, up.parent, up.depth FROM messages up JOIN path ON up.n = path.parent "
        "WHERE up.depth < path.depth AND up.depth >= :depth) SELECT 1 FROM path WHERE n = :target"
    )
)

KNOWN_PIECES = select(pieces.c.sha256, pieces.c.n).where(pieces.c.sha256.in_(bindparam("hashes", expanding=True)))
INSERT_PIECES = insert(pieces).returning(pieces.c.n, sort_by_parameter_order=True)
INSERT_REQUEST = Prepared(
    _every(
        requests,
        conversation=select(conversations.c.n).where(conversations.c.id == bindparam("home")).scalar_subquery(),
        message=select(messages.c.n).where(messages.c.id == bindparam("answers")).scalar_subquery(),
        outcome="{}",
    )
)
REQUEST_BY_ID = Prepared(select(requests).where(requests.c.id == bindparam("id")))
LATEST_REQUEST = Prepared(
    select(requests.c.id)
    .join(conversations)
    .where(conversations.c.id == bindparam("id"), requests.c.purpose == bindparam("purpose"))
    .order_by(requests.c.n.desc())
    .limit(1)
)
# A request and its bases back to a full list, oldest first; the last row is the request itself.
CHAIN = Prepared(
    text(
        "WITH RECURSIVE bases(n, base, kept, added, chain) AS ("
        "SELECT n, base, kept, added, chain FROM requests WHERE id = :id UNION ALL "
        "SELECT r.n, r.base, r.kept, r.added, r.chain FROM requests r JOIN bases ON r.n = bases.base "
        "WHERE r.chain < bases.chain) SELECT kept, added FROM bases ORDER BY chain"
    )
)
SET_OUTCOME = Prepared(
    update(requests).where(requests.c.id == bindparam("request")).values(outcome=bindparam("new_outcome"))
)

METER_BY_KEY = Prepared(select(meters.c.n).where(meters.c.key == bindparam("key")))
