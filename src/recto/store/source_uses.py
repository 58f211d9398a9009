"""SourceUses: which rules, references and tools were in each request, and the signs of their use in the reply.

The account of a request has more details of each source; this module answers questions over all requests.
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
    FromClause,
    Select,
    Text,
    bindparam,
    case,
    cast,
    delete,
    func,
    insert,
    literal_column,
    or_,
    select,
    update,
)

from recto.errors import Invalid, NotFound
from recto.sources.advice import SIGNS, AgentTotals, Sign, SourceStats
from recto.sources.source import SENT_KINDS, Mode, SourceId
from recto.store.database import Database
from recto.store.dialect import in_list
from recto.store.prepared_statement import Statement
from recto.store.rows import read_numbered
from recto.store.schema import (
    conversations,
    requests,
    source_names,
    source_totals,
    source_uses,
    summed_conversations,
)
from recto.store.statements import BY_NUMBER
from recto.store.usage_totals import (
    Progress,
    UsageTotals,
    forget_totals,
    replies_by_conversation,
    sums_by_conversation,
)
from recto.store.use_over_time import IS_REPLY


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
_OF_AGENT = or_(_agent == "", conversations.c.agent == _agent)
_WITHIN = (requests.c.created >= bindparam("since"), _OF_AGENT)
_of_conversation = conversations.c.n == requests.c.conversation
_COUNTED = ("replies", "always", "manual", "by_agent", "tokens", "looked", "called", "quoted", "paraphrased")


def _sum(column: ColumnElement[Any]) -> ColumnElement[int]:
    # a sum of sums is a decimal in PostgreSQL
    return cast(func.sum(column), BigInteger)


def _stats(by_conversation: FromClause) -> Select[Any]:
    """The columns of `source_totals` -> sums (one row per source and agent)."""
    each = by_conversation.c
    sums = (
        select(
            conversations.c.agent,
            each.source,
            *(_sum(each[name]).label(name) for name in _COUNTED),
            func.count().label("conversations"),
            func.sum(case((each.manual > 0, 1), else_=0)).label("added"),
            func.max(each.last).label("last"),
            func.max(each.used).label("used"),
        )
        .join_from(by_conversation, conversations, conversations.c.n == each.conversation)
        .where(_OF_AGENT)
        .group_by(conversations.c.agent, each.source)
        .cte("sums")
    )
    latest = (source_uses.c.request == sums.c.last, source_uses.c.source == sums.c.source)
    named = (source_names.c.kind, source_names.c.name, source_names.c.server, sums.c.agent)
    return (
        select(
            *named,
            select(source_uses.c.mode).where(*latest).scalar_subquery().label("mode"),
            *(sums.c[name] for name in (*_COUNTED, "conversations", "added")),
            select(requests.c.created).where(requests.c.n == sums.c.last).scalar_subquery().label("last_in"),
            select(requests.c.created).where(requests.c.n == sums.c.used).scalar_subquery().label("last_used"),
        )
        .join(source_names, source_names.c.n == sums.c.source)
        .order_by(sums.c.replies.desc(), sums.c.tokens.desc(), *named)
    )


def _totals(by_conversation: FromClause) -> Select[Any]:
    """Replies of each conversation -> replies and conversations of each agent."""
    return (
        select(
            conversations.c.agent,
            _sum(by_conversation.c.replies).label("replies"),
            func.count().label("conversations"),
        )
        .join_from(by_conversation, conversations, conversations.c.n == by_conversation.c.conversation)
        .where(_OF_AGENT, by_conversation.c.replies > 0)
        .group_by(conversations.c.agent)
    )


# From the requests themselves, and from the sums that are kept.
_STATS = Statement(_stats(sums_by_conversation(*_WITHIN).cte("by_conversation")))
_KEPT_STATS = Statement(_stats(source_totals))
_TOTALS = Statement(_totals(replies_by_conversation(*_WITHIN).cte("by_conversation")))
_KEPT_TOTALS = Statement(_totals(summed_conversations))
_REPLIES = Statement(
    select(requests.c.id, conversations.c.agent)
    .join(conversations, _of_conversation)
    .where(*IS_REPLY, *_WITHIN)
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
        self._database, self._kept_totals = database, UsageTotals(database)

    def note(self, request: str, rows: Sequence[SourceUse]) -> None:
        """Stores the sources of a request, in place of those stored before; parts of one source are merged."""
        with self._database.write() as connection:
            number = _number(connection, request)
            forget_totals(connection, request=request)
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
            forget_totals(connection, request=request)
            rows = [{"new_sign": sign, "number": number, "of": known[id]} for id, sign in signs.items() if id in known]
            _SIGN.many(connection, rows)

    def of(self, request: str) -> list[SourceUse]:
        """The sources of a request."""
        with self._database.read() as connection:
            return uses_of_request(connection, _number(connection, request))

    def stats(
        self, agent: str | None = None, since: str | None = None, progress: Progress | None = None
    ) -> list[SourceStats]:
        """Statistics per agent and source, those in most replies first."""
        rows = self._read(_KEPT_STATS, _STATS, agent, since, progress)
        return [_stat(row._asdict()) for row in rows]

    def totals(self, agent: str | None = None, since: str | None = None) -> list[AgentTotals]:
        """Per agent, the number of replies with any source, and of their conversations."""
        rows = self._read(_KEPT_TOTALS, _TOTALS, agent, since)
        return [AgentTotals(row.agent, row.replies, row.conversations) for row in rows]

    def _read(
        self,
        kept: Statement,
        anew: Statement,
        agent: str | None,
        since: str | None,
        progress: Progress | None = None,
    ) -> list[Any]:
        """From the kept sums, if the whole time is asked for."""
        if not since:
            rows = self._kept_totals.read(
                lambda connection: kept(connection, agent=agent or "").all(), progress, has_days=False
            )
            if rows is not None:
                return rows
        with self._database.read() as connection:
            return anew(connection, agent=agent or "", since=since or "").all()

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
