"""Statements that every turn runs. Building and compiling one takes longer than running it, so both happen once."""

from typing import Any

from sqlalchemy import (
    ColumnElement,
    Select,
    Table,
    bindparam,
    delete,
    exists,
    func,
    insert,
    literal,
    or_,
    select,
    update,
)

from recto.store.dialect import TEXT, in_list, raw_bytes
from recto.store.prepared_statement import InsertStatement, Statement
from recto.store.schema import conversations, deltas, messages, pieces, requests


def _columns(table: Table, **special: Any) -> dict[str, Any]:
    """Values for all columns but `n`: each from a parameter of the same name, unless given in `special`."""
    plain: dict[str, Any] = {column.name: bindparam(column.name) for column in table.columns if column.name != "n"}
    return plain | special


_parents = messages.alias("parents")
_heads = messages.alias("heads")


MESSAGE = (
    select(
        *(messages.c[name] for name in ("n", "id", "conversation", "depth", "said", "compaction", "role", "status")),
        messages.c.branch,
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
MESSAGE_BY_ID = Statement(MESSAGE.where(messages.c.id == bindparam("id")))
BLOCKS_BY_NUMBER = Statement(select(messages.c.n, messages.c.blocks).where(in_list(messages.c.n, "numbers")))
DEPTHS_BY_IDS = Statement(select(messages.c.id, messages.c.depth).where(in_list(messages.c.id, "ids")))
PLACE_OF = Statement(select(messages.c.n, messages.c.depth).where(messages.c.id == bindparam("id")))
CHILDREN = Statement(
    select(messages.c.id)
    .join(_parents, _parents.c.n == messages.c.parent)
    .where(_parents.c.id == bindparam("id"), messages.c.role == bindparam("role"))
)
MESSAGES_BY_IDS = Statement(MESSAGE.where(in_list(messages.c.id, "ids")).order_by(messages.c.depth))

_at = messages.alias("at")
COMPACTION_AT = Statement(MESSAGE.join(_at, _at.c.compaction == messages.c.n).where(_at.c.id == bindparam("id")))

COMPACTION_BLOCKS_AT = Statement(
    select(messages.c.blocks).join(_at, _at.c.compaction == messages.c.n).where(_at.c.id == bindparam("id"))
)

CONVERSATION = select(
    conversations,
    _heads.c.id.label("head_id"),
    _heads.c.said.label("said"),
    _heads.c.depth.label("depth"),
    _heads.c.compaction.label("compaction"),
    _heads.c.branch,
).outerjoin(_heads, _heads.c.n == conversations.c.head)
CONVERSATION_BY_ID = Statement(CONVERSATION.where(conversations.c.id == bindparam("id")))
CONVERSATIONS_BY_IDS = Statement(CONVERSATION.where(in_list(conversations.c.id, "ids")))
CONVERSATION_NUMBERS = Statement(
    select(conversations.c.id, conversations.c.n).where(in_list(conversations.c.id, "ids"))
)


# The columns that a window needs. The parent's id is that of the next row on the path.
BARE = select(
    *(messages.c[name] for name in ("n", "id", "depth", "said", "role", "status", "created", "blocks", "parent")),
    messages.c.priority,
    messages.c.details.not_like('{"has_time":false%').label("has_time"),
)


# The same for messages found by number or place, with parent, conversation and branch. All joins are outer ones, so
# that the query plan starts with messages and reads them in the requested order.
NUMBERED = (
    BARE.add_columns(
        messages.c.branch,
        messages.c.conversation,
        conversations.c.id.label("home"),
        _parents.c.id.label("parent_id"),
    )
    .outerjoin(conversations, conversations.c.n == messages.c.conversation)
    .outerjoin(_parents, _parents.c.n == messages.c.parent)
)
BY_NUMBER = Statement(NUMBERED.where(in_list(messages.c.n, "numbers")).order_by(messages.c.n))
AFTER = Statement(NUMBERED.where(messages.c.n > bindparam("number")).order_by(messages.c.n).limit(bindparam("most")))
NEWEST_NUMBER = Statement(select(func.max(messages.c.n)))
_ON_BRANCH = (messages.c.conversation == bindparam("home"), messages.c.branch == bindparam("branch"))
STRETCH = Statement(
    NUMBERED.where(*_ON_BRANCH, messages.c.depth.between(bindparam("first"), bindparam("last"))).order_by(
        messages.c.depth
    )
)
SAID_AT = Statement(select(messages.c.said).where(*_ON_BRANCH, messages.c.depth == bindparam("depth")))


def _path(columns: Select[Any]) -> Select[Any]:
    """The messages from `start` up to the root, newest first. The depth must decrease, so damaged data cannot loop."""
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


def _trail(head: ColumnElement[bool]) -> Select[Any]:
    """The branches of paths, each with the head of its path: the parent of a branch's first message is on the next
    one."""
    trail = (
        select(messages.c.id.label("head"), messages.c.branch, messages.c.depth)
        .where(head)
        .cte("trail", recursive=True)
    )
    first, up = messages.alias("first"), messages.alias("up")
    hop = select(trail.c.head, up.c.branch, up.c.depth).select_from(trail).join(first, first.c.n == trail.c.branch)
    trail = trail.union_all(hop.join(up, up.c.n == first.c.parent).where(up.c.depth < trail.c.depth))
    return select(trail.c.head, trail.c.branch, trail.c.depth).order_by(trail.c.depth.desc())


def _set_aside() -> Select[Any]:
    """The Compactions on the path up to and with `at`, newest first, deeper than `after`. Each message
    stores its newest one, so the walk goes from Compaction to Compaction."""
    last = messages.alias("last")
    walk = (
        select(messages.c.n, messages.c.parent, messages.c.depth)
        .join(last, last.c.compaction == messages.c.n)
        .where(last.c.id == bindparam("at"), messages.c.depth > bindparam("after"))
        .cte("walk", recursive=True)
    )
    parent, up = messages.alias("parent"), messages.alias("up")
    hop = select(up.c.n, up.c.parent, up.c.depth).select_from(walk).join(parent, parent.c.n == walk.c.parent)
    hop = hop.join(up, up.c.n == parent.c.compaction).where(up.c.depth < walk.c.depth, up.c.depth > bindparam("after"))
    walk = walk.union_all(hop)
    blocks = raw_bytes(messages.c.blocks).label("blocks")
    return select(blocks).join(walk, walk.c.n == messages.c.n).order_by(walk.c.depth.desc())


PATH = Statement(_path(MESSAGE))
SET_ASIDE = Statement(_set_aside())
TRAIL = Statement(_trail(messages.c.id == bindparam("head")))
TRAILS = Statement(_trail(in_list(messages.c.id, "heads")))
BARE_PATH = Statement(_path(BARE))
# The columns for the messages that a record refers to.
_SAID = select(
    messages.c.id,
    messages.c.said,
    messages.c.role,
    messages.c.depth,
    (messages.c.compaction == messages.c.n).label("cut"),
)
SAID_PATH = Statement(_path(_SAID))
SAID_BY_IDS = Statement(_SAID.where(in_list(messages.c.id, "ids")))
ID_OF = Statement(select(messages.c.id).where(messages.c.n == bindparam("n")))
REQUEST_OF = Statement(
    select(requests.c.id).join(messages, messages.c.request == requests.c.n).where(messages.c.id == bindparam("id"))
)

_request = select(requests.c.n).where(requests.c.id == bindparam("request_id")).scalar_subquery()
# Inserts nothing where a message with this id is already stored.
INSERT_MESSAGE = InsertStatement(
    lambda insert: (
        insert(messages)
        .values(_columns(messages, request=_request))
        .on_conflict_do_nothing(index_elements=[messages.c.id])
    )
)
HAS_CHILD = Statement(select(messages.c.n).where(messages.c.parent == bindparam("parent")).limit(1))
BEGIN_BRANCH = Statement(update(messages).where(messages.c.n == bindparam("number")).values(branch=messages.c.n))
COVER_ITSELF = Statement(update(messages).where(messages.c.n == bindparam("number")).values(compaction=messages.c.n))
MOVE_HEAD = Statement(
    update(conversations)
    .where(conversations.c.n == bindparam("home"))
    .values(head=bindparam("new_head"), updated=bindparam("new_updated"), title=bindparam("new_title"))
)
BRING_BACK = Statement(
    update(conversations).where(conversations.c.n == bindparam("home")).values(archived=None, deleted=None)
)
SET_DETAILS = Statement(
    update(messages).where(messages.c.id == bindparam("message")).values(details=bindparam("new_details"))
)
SET_BLOCKS = Statement(
    update(messages)
    .where(messages.c.id == bindparam("message"))
    .values(blocks=bindparam("new_blocks"))
    .returning(messages.c.n)
)
SET_PRIORITY = Statement(
    update(messages)
    .where(messages.c.id == bindparam("message"))
    .values(priority=bindparam("new_priority"))
    .returning(messages.c.n)
)
SET_STATUS = Statement(
    update(messages).where(messages.c.id == bindparam("message")).values(status=bindparam("new_status"))
)
FINISH = Statement(
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
# Nothing grows that is finished: another thread may have stored the whole meanwhile.
_growing = select(messages.c.n, bindparam("growth", type_=TEXT)).where(
    messages.c.id == bindparam("id"), messages.c.status == "unfinished"
)
INSERT_DELTA = Statement(insert(deltas).from_select(["message", "growth"], _growing))
DELETE_DELTAS = Statement(delete(deltas).where(deltas.c.message == bindparam("number")))

# Messages as the dictionary of what quotes them.
_QUOTED = select(messages.c.n, messages.c.id, messages.c.blocks)
_before = messages.c.n == select(_at.c.parent).where(_at.c.id == bindparam("last")).scalar_subquery()
QUOTED = Statement(_QUOTED.where(messages.c.status != "unfinished", or_(_before, in_list(messages.c.id, "ids"))))
QUOTED_BY_NUMBERS = Statement(_QUOTED.where(in_list(messages.c.n, "numbers")))
KNOWN_PIECES = Statement(select(pieces.c.sha256, pieces.c.n).where(in_list(pieces.c.sha256, "hashes")))
INSERT_PIECE = InsertStatement(insert(pieces).values(_columns(pieces)))
INSERT_REQUEST = Statement(
    insert(requests).values(
        _columns(
            requests,
            conversation=select(conversations.c.n).where(conversations.c.id == bindparam("home")).scalar_subquery(),
            message=select(messages.c.n).where(messages.c.id == bindparam("answers")).scalar_subquery(),
            outcome="{}",
        )
    )
)
# A quotation mark inside a text of the JSON has a backslash before it, so no error message looks like the field.
WAS_SENT = requests.c.outcome.not_like('%"not_sent":true%')
_said = messages.alias("said")
# An imported conversation has replies and no requests.
CONVERSATION_WAS_SENT = or_(
    exists().where(_said.c.conversation == conversations.c.n, _said.c.role == "assistant"),
    exists().where(requests.c.conversation == conversations.c.n, WAS_SENT),
)
REQUEST_BY_ID = Statement(select(requests).where(requests.c.id == bindparam("id")))
# The columns that rebuilding needs.
REBUILT = select(
    *(requests.c[name] for name in ("n", "id", "base", "kept", "chain", "sha256", "size", "account")),
    raw_bytes(requests.c.added).label("added"),
    raw_bytes(requests.c.marks).label("marks"),
)
REBUILT_BY_IDS = Statement(REBUILT.where(in_list(requests.c.id, "ids")))
BASE_BY_NUMBER = Statement(select(requests.c.id, requests.c.chain).where(requests.c.n == bindparam("n")))
PIECES = Statement(select(pieces.c.n, pieces.c.sha256, pieces.c.data).where(in_list(pieces.c.n, "numbers")))
# The newest request for a reply before this one in its conversation.
_later = requests.alias("later")
REQUEST_BEFORE = Statement(
    select(requests.c.id)
    .join(_later, _later.c.conversation == requests.c.conversation)
    .where(_later.c.id == bindparam("id"), requests.c.n < _later.c.n, requests.c.purpose == "reply")
    .order_by(requests.c.n.desc())
    .limit(1)
)
REQUEST_FOR = Statement(
    select(requests.c.id)
    .join(messages, messages.c.n == requests.c.message)
    .where(messages.c.id == bindparam("id"))
    .order_by(requests.c.n.desc())
    .limit(1)
)
LATEST_REQUEST = Statement(
    select(requests.c.id)
    .join(conversations)
    .where(conversations.c.id == bindparam("id"), requests.c.purpose == bindparam("purpose"))
    .order_by(requests.c.n.desc())
    .limit(1)
)


def _chain() -> Select[Any]:
    """A request and its bases back to a full list, oldest first; the last row is the request itself."""
    columns = ("base", "kept", "added", "chain")
    bases = (
        select(*(requests.c[name] for name in columns))
        .where(requests.c.id == bindparam("id"))
        .cte("bases", recursive=True)
    )
    base = requests.alias("before")
    further = select(*(base.c[name] for name in columns)).join(bases, base.c.n == bases.c.base)
    # `chain` decreases from request to base, so damaged data cannot loop
    bases = bases.union_all(further.where(base.c.chain < bases.c.chain))
    return select(bases.c.kept, raw_bytes(bases.c.added).label("added")).order_by(bases.c.chain)


CHAIN = Statement(_chain())
SET_OUTCOME = Statement(
    update(requests)
    .where(requests.c.id == bindparam("request"))
    .values(outcome=bindparam("new_outcome"), cost=bindparam("new_cost"))
)
