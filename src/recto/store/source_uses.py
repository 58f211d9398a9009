"""SourceUses: the rules, references and tools in each request, and the signs of their use in the reply.

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

from recto.errors import Invalid, NotFound
from recto.sources.advice import SIGNS, Sign, SourceStats
from recto.sources.source import SENT_KINDS, Mode, SourceId
from recto.store.database import Database
from recto.store.dialect import in_list
from recto.store.prepared_statement import Statement, given
from recto.store.rows import BY_NUMBER, WAS_SENT, read_numbered
from recto.store.schema import (
    conversations,
    requests,
    source_names,
    source_uses,
)


class SourceUse(Struct, frozen=True):
    id: SourceId
    mode: Mode
    tokens: int = 0
    score: float | None = None
    sign: Sign | None = None
    """None until the reply was examined."""


class ReplyRequest(Struct, frozen=True):
    request: str
    agent: str


_REQUEST = Statement(select(requests.c.n).where(requests.c.id == bindparam("id")))
_ID = tuple(source_names.c[name] for name in ("kind", "name", "server"))
# Several sources may share a name; the caller tells them apart. The kinds make the index usable.
_NAMED = Statement(
    select(source_names.c.n, *_ID).where(
        source_names.c.kind.in_([literal_column(f"'{kind}'") for kind in SENT_KINDS]),
        in_list(source_names.c.name, "names"),
    )
)
_ADD_NAME = Statement(insert(source_names).values(given(source_names)))
_FORGET = Statement(delete(source_uses).where(source_uses.c.request == bindparam("number")))
_NOTE = Statement(insert(source_uses).values(given(source_uses)))
_SIGN = Statement(
    update(source_uses)
    .where(source_uses.c.request == bindparam("number"), source_uses.c.source == bindparam("of"))
    .values(sign=bindparam("new_sign"))
)
_OF = Statement(
    select(*_ID, *(source_uses.c[name] for name in ("mode", "tokens", "score", "sign")))
    .join(source_names, source_names.c.n == source_uses.c.source)
    .where(source_uses.c.request == bindparam("number"))
    .order_by(source_uses.c.source)
)
_agent: BindParameter[str] = bindparam("agent", type_=Text)
_OF_AGENT = or_(_agent == "", conversations.c.agent == _agent)
_WITHIN = (requests.c.created >= bindparam("since"), _OF_AGENT)
_IS_REPLY = (requests.c.purpose == "reply", WAS_SENT)
# All rounds of a turn are one reply, because they answer one message.
_REPLY = func.coalesce(requests.c.message, -requests.c.n)
_of_conversation = conversations.c.n == requests.c.conversation
_REPLIES = Statement(
    select(requests.c.id, conversations.c.agent)
    .join(conversations, _of_conversation)
    .where(*_IS_REPLY, *_WITHIN)
    .order_by(requests.c.n)
)
# Needs no sort: a partial index holds only these rows in order. Its condition must be repeated literally.
_USED = Statement(
    select(requests.c.message, *_ID)
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

    def note(self, request: str, sources: Sequence[SourceUse]) -> None:
        """Stores the sources of a request, replacing earlier ones; parts of one source are merged."""
        with self._database.write() as connection:
            number = _number(connection, request)
            _FORGET(connection, number=number)
            uses = _merged(sources)
            named = _named(connection, [use.id for use in uses])
            about = ("mode", "score", "tokens", "sign")
            rows = [{"source": named[use.id], **{name: getattr(use, name) for name in about}} for use in uses]
            _NOTE.many(connection, [{"request": number, **row} for row in rows])

    def signs(self, request: str, signs: Mapping[SourceId, str]) -> None:
        """Stores the signs of use in the reply; a source not stored for the request is skipped."""
        for sign in signs.values():
            if sign not in SIGNS:
                raise Invalid(f"{sign!r} is not a sign of use; use called, quoted, paraphrased or '' for none")
        with self._database.write() as connection:
            number, known = _number(connection, request), _known(connection, list(signs))
            rows = [{"new_sign": sign, "number": number, "of": known[id]} for id, sign in signs.items() if id in known]
            _SIGN.many(connection, rows)

    def of(self, request: str) -> list[SourceUse]:
        with self._database.read() as connection:
            return uses_of_request(connection, _number(connection, request))

    def stats(self, agent: str | None = None, since: str | None = None) -> list[SourceStats]:
        """Statistics per agent and source, most replies first."""
        found = []
        for row in self._database.rows(_STATS, agent=agent or "", since=since or ""):
            values = row._asdict() | {"last_used": row.last_used or ""}
            found.append(SourceStats(SourceId(*(values.pop(column.name) for column in _ID)), **values))
        return found

    def replies(self, agent: str | None = None, since: str | None = None) -> list[ReplyRequest]:
        """All requests for a reply, oldest first, including those from before sources were stored."""
        rows = self._database.rows(_REPLIES, agent=agent or "", since=since or "")
        return [ReplyRequest(row.id, row.agent) for row in rows]

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
    """Used sources by message number, latest first, up to the limit."""
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


def _merged(rows: Sequence[SourceUse]) -> list[SourceUse]:
    merged: dict[SourceId, SourceUse] = {}
    for row in rows:
        before = merged.get(row.id)
        scores = [use.score for use in (before, row) if use is not None and use.score is not None]
        tokens = row.tokens + (before.tokens if before else 0)
        merged[row.id] = replace(before or row, tokens=tokens, score=max(scores, default=None))
    return list(merged.values())


# -- sums over replies


def _turns() -> Any:
    """One row per source and reply."""
    sent = (
        select(requests.c.n, requests.c.conversation, conversations.c.agent, _REPLY.label("message"))
        .join(conversations, _of_conversation)
        .where(*_IS_REPLY, *_WITHIN)
        .cte("sent")
        .prefix_with("MATERIALIZED")
    )
    rank = case({"called": 4, "quoted": 3, "paraphrased": 2, "": 1}, value=source_uses.c.sign, else_=0)
    turns = (
        select(
            sent.c.message,
            # a message belongs to one conversation
            func.max(sent.c.conversation).label("conversation"),
            func.max(sent.c.agent).label("agent"),
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
    return turns.c


def _count(condition: ColumnElement[bool]) -> ColumnElement[int]:
    return func.sum(case((condition, 1), else_=0))


def _stats() -> Statement:
    turn = _turns()
    counted = {
        "replies": func.count(),
        "always": _count(turn.mode == "always"),
        "manual": _count(turn.mode == "manual"),
        "by_agent": _count(turn.mode == "agent"),
        # a sum of sums is a decimal in PostgreSQL
        "tokens": cast(func.sum(turn.tokens), BigInteger),
        "looked": _count(turn.sign > 0),
        "called": _count(turn.sign == 4),
        "quoted": _count(turn.sign == 3),
        "paraphrased": _count(turn.sign == 2),
        "conversations": func.count(distinct(turn.conversation)),
        "added": func.count(distinct(case((turn.mode == "manual", turn.conversation)))),
    }
    ends = func.max(turn.last).label("last"), func.max(case((turn.sign > 1, turn.last))).label("used")
    labelled = (column.label(name) for name, column in counted.items())
    sums = select(turn.agent, turn.source, *labelled, *ends).group_by(turn.agent, turn.source).cte("sums")
    latest = (source_uses.c.request == sums.c.last, source_uses.c.source == sums.c.source)
    return Statement(
        select(
            *_ID,
            sums.c.agent,
            select(source_uses.c.mode).where(*latest).scalar_subquery().label("mode"),
            *(sums.c[name] for name in counted),
            select(requests.c.created).where(requests.c.n == sums.c.last).scalar_subquery().label("last_in"),
            select(requests.c.created).where(requests.c.n == sums.c.used).scalar_subquery().label("last_used"),
        )
        .join(source_names, source_names.c.n == sums.c.source)
        .order_by(sums.c.replies.desc(), sums.c.tokens.desc(), *_ID, sums.c.agent)
    )


_STATS = _stats()
