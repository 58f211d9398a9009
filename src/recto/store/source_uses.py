"""SourceUses: which rules, references and tools were in each request, and the signs of their use in the reply.

The account of a request has more details of each source; this module answers questions over all requests.

DocumentUses: which documents the messages of which conversations refer to, and when.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import (
    BigInteger,
    BindParameter,
    ColumnElement,
    Connection,
    Select,
    Text,
    bindparam,
    case,
    cast,
    delete,
    distinct,
    func,
    insert,
    literal_column,
    or_,
    select,
    update,
)

from recto.chat.blocks import Block, References, ReferenceType
from recto.errors import Invalid, NotFound
from recto.sources.advice import SIGNS, AgentTotals, Sign, SourceStats
from recto.sources.source import SENT_KINDS, Mode, SourceId
from recto.store.database import Database
from recto.store.dialect import in_list
from recto.store.prepared_statement import Statement
from recto.store.rows import read_numbered
from recto.store.schema import conversations, messages, requests, source_names, source_uses, uses
from recto.store.statements import BY_NUMBER, WAS_SENT


class SourceUse(Struct, frozen=True):
    """A source of one request."""

    id: SourceId
    mode: Mode
    tokens: int = 0
    score: float | None = None
    sign: Sign | None = None
    """None until the reply was examined."""


class ReplyRequest(Struct, frozen=True):
    """A request for a reply, and its agent."""

    request: str
    agent: str


_REQUEST = Statement(select(requests.c.n).where(requests.c.id == bindparam("id")))
# Several sources may share a name; the caller tells them apart. The kinds make the index usable.
_NAMED = Statement(
    select(*(source_names.c[name] for name in ("n", "kind", "name", "server"))).where(
        source_names.c.kind.in_([literal_column(f"'{kind}'") for kind in SENT_KINDS]),
        in_list(source_names.c.name, "names"),
    )
)
_ADD_NAME = Statement(insert(source_names).values({name: bindparam(name) for name in ("kind", "name", "server")}))
_FORGET = Statement(delete(source_uses).where(source_uses.c.request == bindparam("number")))
_NOTE = Statement(insert(source_uses).values({column.name: bindparam(column.name) for column in source_uses.columns}))
_SIGN = Statement(
    update(source_uses)
    .where(source_uses.c.request == bindparam("number"), source_uses.c.source == bindparam("of"))
    .values(sign=bindparam("new_sign"))
)
_OF = Statement(
    select(
        *(source_names.c[name] for name in ("kind", "name", "server")),
        *(source_uses.c[name] for name in ("mode", "tokens", "score", "sign")),
    )
    .join(source_names, source_names.c.n == source_uses.c.source)
    .where(source_uses.c.request == bindparam("number"))
    .order_by(source_uses.c.source)
)
_agent: BindParameter[str] = bindparam("agent", type_=Text)
_WITHIN = (
    requests.c.purpose == "reply",
    WAS_SENT,
    requests.c.created >= bindparam("since"),
    or_(_agent == "", conversations.c.agent == _agent),
)
# All rounds of a turn are one reply, because they answer one message.
_REPLY = func.coalesce(requests.c.message, -requests.c.n)
_of_conversation = conversations.c.n == requests.c.conversation


def _count(condition: ColumnElement[bool]) -> ColumnElement[int]:
    return func.sum(case((condition, 1), else_=0))


def _stats() -> Select[Any]:
    """Requests -> turns (one row per source and reply) -> sums (one row per source and agent)."""
    sent = (
        select(requests.c.n, requests.c.conversation, conversations.c.agent, _REPLY.label("message"))
        .join(conversations, _of_conversation)
        .where(*_WITHIN)
        .cte("sent")
        .prefix_with("MATERIALIZED")
    )
    rank = case({"called": 4, "quoted": 3, "paraphrased": 2, "": 1}, value=source_uses.c.sign, else_=0)
    turns = (
        select(
            # a message belongs to one conversation, and that to one agent
            func.max(sent.c.agent).label("agent"),
            func.max(sent.c.conversation).label("conversation"),
            source_uses.c.source,
            func.max(source_uses.c.mode).label("mode"),
            func.sum(source_uses.c.tokens).label("tokens"),
            func.max(source_uses.c.request).label("last"),
            func.max(rank).label("sign"),
        )
        .select_from(sent)
        .join(source_uses, source_uses.c.request == sent.c.n)
        .group_by(source_uses.c.source, sent.c.message)
        .cte("turns")
    )
    is_manual, mode, sign = turns.c.mode == "manual", turns.c.mode, turns.c.sign
    sums = (
        select(
            turns.c.agent,
            turns.c.source,
            func.count().label("replies"),
            _count(mode == "always").label("always"),
            _count(is_manual).label("manual"),
            _count(mode == "agent").label("by_agent"),
            # a sum of sums is a decimal in PostgreSQL
            cast(func.sum(turns.c.tokens), BigInteger).label("tokens"),
            _count(sign > 0).label("looked"),
            _count(sign == 4).label("called"),
            _count(sign == 3).label("quoted"),
            _count(sign == 2).label("paraphrased"),
            func.count(distinct(turns.c.conversation)).label("conversations"),
            func.count(distinct(case((is_manual, turns.c.conversation)))).label("added"),
            func.max(turns.c.last).label("last"),
            func.max(case((sign > 1, turns.c.last))).label("used"),
        )
        .group_by(turns.c.agent, turns.c.source)
        .cte("sums")
    )
    latest = (source_uses.c.request == sums.c.last, source_uses.c.source == sums.c.source)
    counted = ("replies", "always", "manual", "by_agent", "tokens", "looked", "called", "quoted", "paraphrased")
    named = (source_names.c.kind, source_names.c.name, source_names.c.server, sums.c.agent)
    return (
        select(
            *named,
            select(source_uses.c.mode).where(*latest).scalar_subquery().label("mode"),
            *(sums.c[name] for name in (*counted, "conversations", "added")),
            select(requests.c.created).where(requests.c.n == sums.c.last).scalar_subquery().label("last_in"),
            select(requests.c.created).where(requests.c.n == sums.c.used).scalar_subquery().label("last_used"),
        )
        .join(source_names, source_names.c.n == sums.c.source)
        .order_by(sums.c.replies.desc(), sums.c.tokens.desc(), *named)
    )


_STATS = Statement(_stats())
_TOTALS = Statement(
    select(
        conversations.c.agent,
        func.count(distinct(_REPLY)).label("replies"),
        func.count(distinct(conversations.c.n)).label("conversations"),
    )
    .select_from(requests)
    .join(conversations, _of_conversation)
    .where(*_WITHIN, select(source_uses.c.source).where(source_uses.c.request == requests.c.n).exists())
    .group_by(conversations.c.agent)
)
_REPLIES = Statement(
    select(requests.c.id, conversations.c.agent)
    .join(conversations, _of_conversation)
    .where(*_WITHIN)
    .order_by(requests.c.n)
)
# Needs no sort: a partial index holds only these rows in order. Its condition must be repeated literally.
_USED = Statement(
    select(requests.c.message, source_names.c.kind, source_names.c.name, source_names.c.server)
    .select_from(source_uses)
    .join(requests, requests.c.n == source_uses.c.request)
    .join(conversations, _of_conversation)
    .join(source_names, source_names.c.n == source_uses.c.source)
    .where(
        source_uses.c.sign > literal_column("''"),
        source_uses.c.mode != literal_column("'always'"),
        conversations.c.agent == bindparam("agent"),
        requests.c.message.is_not(None),
    )
    .order_by(source_uses.c.request.desc())
)


class SourceUses:
    def __init__(self, database: Database) -> None:
        self._database = database

    def note(self, request: str, rows: Sequence[SourceUse]) -> None:
        """Stores the sources of a request, in place of those stored before; parts of one source are merged."""
        with self._database.write() as connection:
            number = _number(connection, request)
            _FORGET(connection, number=number)
            uses = _merged(rows)
            named = _named(connection, [use.id for use in uses])
            _NOTE.many(connection, [_row(number, named[use.id], use) for use in uses])

    def signs(self, request: str, signs: Mapping[SourceId, str]) -> None:
        """Stores the signs of use in the reply; a source that was not stored for the request is skipped."""
        for sign in signs.values():
            if sign not in SIGNS:
                raise Invalid(f"{sign!r} is not a sign of use; use called, quoted, paraphrased or '' for none")
        with self._database.write() as connection:
            number, known = _number(connection, request), _known(connection, list(signs))
            rows = [{"new_sign": sign, "number": number, "of": known[id]} for id, sign in signs.items() if id in known]
            _SIGN.many(connection, rows)

    def of(self, request: str) -> list[SourceUse]:
        """The sources of a request."""
        with self._database.read() as connection:
            return uses_of_request(connection, _number(connection, request))

    def stats(self, agent: str | None = None, since: str | None = None) -> list[SourceStats]:
        """Statistics per agent and source, those in most replies first."""
        with self._database.read() as connection:
            rows = _STATS(connection, agent=agent or "", since=since or "").all()
        return [_stat(row._asdict()) for row in rows]

    def totals(self, agent: str | None = None, since: str | None = None) -> list[AgentTotals]:
        """Per agent, the number of replies with any source, and of their conversations."""
        with self._database.read() as connection:
            rows = _TOTALS(connection, agent=agent or "", since=since or "").all()
        return [AgentTotals(row.agent, row.replies, row.conversations) for row in rows]

    def replies(self, agent: str | None = None, since: str | None = None) -> list[ReplyRequest]:
        """All requests for a reply, oldest first, including those from before sources were stored."""
        with self._database.read() as connection:
            return [
                ReplyRequest(row.id, row.agent) for row in _REPLIES(connection, agent=agent or "", since=since or "")
            ]

    def past(self, agent: str, most: int = 200) -> list[tuple[str, frozenset[SourceId]]]:
        """The user's latest messages whose replies used chosen sources, with those sources."""
        with self._database.read() as connection:
            used = _used_sources(connection, agent, most)
            rows = BY_NUMBER(connection, numbers=list(used)).all()
            texts = {row.n: row.message.text for row in read_numbered(connection, rows)}
        return [(texts[number], frozenset(sources)) for number, sources in used.items() if texts.get(number)]


def uses_of_request(connection: Connection, number: int) -> list[SourceUse]:
    return [
        SourceUse(SourceId(row.kind, row.name, row.server), row.mode, row.tokens, row.score, row.sign)
        for row in _OF(connection, number=number)
    ]


def _used_sources(connection: Connection, agent: str, limit: int) -> dict[int, set[SourceId]]:
    """Used sources by message number, latest first; reading stops at the limit."""
    found: dict[int, set[SourceId]] = {}
    rows = _USED(connection, agent=agent)
    for row in rows:
        if row.message not in found and len(found) == limit:
            break
        found.setdefault(row.message, set()).add(SourceId(row.kind, row.name, row.server))
    rows.close()
    return found


def _number(connection: Connection, request: str) -> int:
    number = _REQUEST(connection, id=request).scalar()
    if number is None:
        raise NotFound(f"there is no request {request}", id=request)
    return int(number)


def _named(connection: Connection, ids: Sequence[SourceId]) -> dict[SourceId, int]:
    """The numbers of the sources; new ones are added."""
    known = _known(connection, ids)
    if fresh := [{"kind": id.kind, "name": id.name, "server": id.server} for id in ids if id not in known]:
        _ADD_NAME.many(connection, fresh)
        known = _known(connection, ids)
    return known


def _known(connection: Connection, ids: Sequence[SourceId]) -> dict[SourceId, int]:
    rows = _NAMED(connection, names=list(dict.fromkeys(id.name for id in ids)))
    return {SourceId(kind, name, server): number for number, kind, name, server in rows}


def _row(request: int, source: int, use: SourceUse) -> dict[str, Any]:
    return {
        "request": request,
        "source": source,
        "mode": use.mode,
        "score": use.score,
        "tokens": use.tokens,
        "sign": use.sign,
    }


def _merged(rows: Sequence[SourceUse]) -> list[SourceUse]:
    merged: dict[SourceId, SourceUse] = {}
    for row in rows:
        before = merged.get(row.id)
        scores = [use.score for use in (before, row) if use is not None and use.score is not None]
        tokens = row.tokens + (before.tokens if before else 0)
        merged[row.id] = replace(before or row, tokens=tokens, score=max(scores, default=None))
    return list(merged.values())


def _stat(row: dict[str, Any]) -> SourceStats:
    id = SourceId(row.pop("kind"), row.pop("name"), row.pop("server"))
    return SourceStats(id, **row | {"last_used": row["last_used"] or ""})


class DocumentUse(Struct, frozen=True):
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
        if conversation is not None:
            home = select(conversations.c.n).where(conversations.c.id == conversation)
            numbers = select(messages.c.n).where(messages.c.conversation == home.scalar_subquery())
            query = query.where(uses.c.message.in_(numbers))
        elif vault is not None:
            query = query.where(uses.c.vault == vault)
        with self._database.read() as connection:
            return [
                DocumentUse(folder, path, wikilink, "direct" if direct else "search", home, message, created)
                for folder, path, wikilink, direct, home, message, created in connection.execute(query)
                # of one conversation's few uses: the database would begin with all uses of the vault
                if vault is None or folder == vault
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
