"""The statements that every turn runs. Building and compiling one takes longer than running it: both happen once."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    CursorResult,
    Dialect,
    Executable,
    FromClause,
    LargeBinary,
    Select,
    Table,
    bindparam,
    cast,
    delete,
    func,
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


def _branch(table: FromClause) -> ColumnElement[int]:
    """A message without one was written by an older version that ran while the store was migrated: it stands alone."""
    return func.coalesce(func.nullif(table.c.branch, 0), table.c.n).label("branch")


MESSAGE = (
    select(
        *(messages.c[name] for name in ("n", "id", "conversation", "depth", "said", "compaction", "role", "status")),
        _branch(messages),
        messages.c.created,
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
    _branch(_heads),
).outerjoin(_heads, _heads.c.n == conversations.c.head)
CONVERSATION_BY_ID = Prepared(CONVERSATION.where(conversations.c.id == bindparam("id")))


# What a window needs of a message. The parent's id is that of the next row on the path.
BARE = select(
    *(messages.c[name] for name in ("n", "id", "depth", "said", "role", "status", "created", "blocks", "parent")),
    messages.c.priority,
)


# The same for one that is found by number or place: with its parent, its home and its branch. All joins are outer ones,
# so that messages come first and are read in the order they are asked for.
NUMBERED = (
    BARE.add_columns(
        _branch(messages),
        messages.c.conversation,
        conversations.c.id.label("home"),
        _parents.c.id.label("parent_id"),
    )
    .outerjoin(conversations, conversations.c.n == messages.c.conversation)
    .outerjoin(_parents, _parents.c.n == messages.c.parent)
)
# As one text of JSON: a list of parameters would be another statement for each length.
BY_NUMBER = Prepared(
    NUMBERED.where(messages.c.n.in_(select(func.json_each(bindparam("numbers")).table_valued("value").c.value)))
)
AFTER = Prepared(NUMBERED.where(messages.c.n > bindparam("number")).order_by(messages.c.n).limit(bindparam("most")))
NEWEST_NUMBER = Prepared(select(func.max(messages.c.n)))
_ON_BRANCH = (messages.c.conversation == bindparam("home"), messages.c.branch == bindparam("branch"))
STRETCH = Prepared(
    NUMBERED.where(*_ON_BRANCH, messages.c.depth.between(bindparam("first"), bindparam("last"))).order_by(
        messages.c.depth
    )
)
SAID_AT = Prepared(select(messages.c.said).where(*_ON_BRANCH, messages.c.depth == bindparam("depth")))


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


def _trail() -> Select[Any]:
    """From branch to branch: the first message of each knows where it was begun."""
    trail = (
        select(_branch(messages), messages.c.depth)
        .where(messages.c.id == bindparam("head"))
        .cte("trail", recursive=True)
    )
    first, up = messages.alias("first"), messages.alias("up")
    hop = select(_branch(up), up.c.depth).select_from(trail).join(first, first.c.n == trail.c.branch)
    trail = trail.union_all(hop.join(up, up.c.n == first.c.parent).where(up.c.depth < trail.c.depth))
    return select(trail.c.branch, trail.c.depth).order_by(trail.c.depth.desc())


PATH = Prepared(_path(MESSAGE))
TRAIL = Prepared(_trail())
BARE_PATH = Prepared(_path(BARE))
# What a record tells of messages that it names by their ends, or one by one.
_SAID = select(
    messages.c.id,
    messages.c.said,
    messages.c.role,
    messages.c.depth,
    (messages.c.compaction == messages.c.n).label("cut"),
)
SAID_PATH = Prepared(_path(_SAID))
SAID_BY_IDS = Prepared(
    _SAID.where(messages.c.id.in_(select(func.json_each(bindparam("ids")).table_valued("value").c.value)))
)
ID_OF = Prepared(select(messages.c.id).where(messages.c.n == bindparam("n")))
REQUEST_OF = Prepared(
    select(requests.c.id).join(messages, messages.c.request == requests.c.n).where(messages.c.id == bindparam("id"))
)

INSERT_MESSAGE = Prepared(
    _every(messages, request=select(requests.c.n).where(requests.c.id == bindparam("request_id")).scalar_subquery())
)
HAS_CHILD = Prepared(select(messages.c.n).where(messages.c.parent == bindparam("parent")).limit(1))
BEGIN_BRANCH = Prepared(update(messages).where(messages.c.n == bindparam("number")).values(branch=messages.c.n))
COVER_ITSELF = Prepared(update(messages).where(messages.c.n == bindparam("number")).values(compaction=messages.c.n))
MOVE_HEAD = Prepared(
    update(conversations)
    .where(conversations.c.n == bindparam("home"))
    .values(head=bindparam("new_head"), updated=bindparam("new_updated"), title=bindparam("new_title"))
)
SET_DETAILS = Prepared(
    update(messages).where(messages.c.id == bindparam("message")).values(details=bindparam("new_details"))
)
SET_BLOCKS = Prepared(
    update(messages)
    .where(messages.c.id == bindparam("message"))
    .values(blocks=bindparam("new_blocks"))
    .returning(messages.c.n)
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
# What rebuilding needs. Texts as bytes: a damaged one may be no text at all, and one row must not hide the others.
REBUILT = select(
    *(requests.c[name] for name in ("n", "id", "base", "kept", "chain", "sha256", "size", "account")),
    cast(requests.c.added, LargeBinary).label("added"),
    cast(requests.c.marks, LargeBinary).label("marks"),
)
REBUILT_BY_IDS = Prepared(
    REBUILT.where(requests.c.id.in_(select(func.json_each(bindparam("ids")).table_valued("value").c.value)))
)
BASE_BY_NUMBER = Prepared(select(requests.c.id, requests.c.chain).where(requests.c.n == bindparam("n")))
PIECES = Prepared(
    select(pieces.c.n, pieces.c.sha256, pieces.c.data).where(
        pieces.c.n.in_(select(func.json_each(bindparam("numbers")).table_valued("value").c.value))
    )
)
# The newest of a reply before this one, in its conversation.
_later = requests.alias("later")
REQUEST_BEFORE = Prepared(
    select(requests.c.id)
    .join(_later, _later.c.conversation == requests.c.conversation)
    .where(_later.c.id == bindparam("id"), requests.c.n < _later.c.n, requests.c.purpose == "reply")
    .order_by(requests.c.n.desc())
    .limit(1)
)
REQUEST_FOR = Prepared(
    select(requests.c.id)
    .join(messages, messages.c.n == requests.c.message)
    .where(messages.c.id == bindparam("id"))
    .order_by(requests.c.n.desc())
    .limit(1)
)
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
        "WHERE r.chain < bases.chain) SELECT kept, CAST(added AS BLOB) AS added FROM bases ORDER BY chain"
    )
)
SET_OUTCOME = Prepared(
    update(requests).where(requests.c.id == bindparam("request")).values(outcome=bindparam("new_outcome"))
)

METER_BY_KEY = Prepared(select(meters.c.n).where(meters.c.key == bindparam("key")))
