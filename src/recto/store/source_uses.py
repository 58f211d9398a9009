"""SourceUses: the rules, references and tools in each request, and the signs of their use in the reply.

The account of a request has more details of each source; this module answers questions over all requests.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import asdict, replace
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
    literal,
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
from recto.store.rows import BY_NUMBER, WAS_SENT, AnyRow, read_numbered
from recto.store.schema import (
    conversations,
    requests,
    source_days,
    source_names,
    source_totals,
    source_uses,
)
from recto.store.usage_totals import DAY, MINUTE, MONTH, Progress, UsageTotals, forget_totals, local_day

Period = Literal["month", "day"]


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


class SourcePeriod(Struct, frozen=True):
    """The sources of all replies of a month or a day. A reply answers one message, whatever the number of tool
    rounds."""

    name: str
    """2026-01, or 2026-01-31, by the user's clock."""
    replies: int = 0
    included: int = 0
    """Sources in their windows, each once per reply."""
    chosen: int = 0
    looked: int = 0
    """Chosen ones whose reply was examined for signs of use."""
    used: int = 0
    """Chosen ones with signs of use in the reply."""
    score: float | None = None
    tokens: int = 0
    """Of all sources, over all requests."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"score": None if self.score is None else round(self.score, 4)}


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
_IN_HOMES = in_list(requests.c.conversation, "homes")
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
    def __init__(self, database: Database, totals: UsageTotals) -> None:
        self._database, self._totals = database, totals

    def note(self, request: str, sources: Sequence[SourceUse]) -> None:
        """Stores the sources of a request, replacing earlier ones; parts of one source are merged."""
        with self._database.write() as connection:
            number = _number(connection, request)
            forget_totals(connection, request=request)
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
            forget_totals(connection, request=request)
            rows = [{"new_sign": sign, "number": number, "of": known[id]} for id, sign in signs.items() if id in known]
            _SIGN.many(connection, rows)

    def of(self, request: str) -> list[SourceUse]:
        with self._database.read() as connection:
            return uses_of_request(connection, _number(connection, request))

    def stats(
        self, agent: str | None = None, since: str | None = None, progress: Progress | None = None
    ) -> list[SourceStats]:
        """Statistics per agent and source, most replies first."""
        found = []
        for row in self._read(_KEPT_STATS, _STATS, agent, since, progress):
            values = row._asdict() | {"last_used": row.last_used or ""}
            found.append(SourceStats(SourceId(*(values.pop(column.name) for column in _ID)), **values))
        return found

    def periods(
        self,
        by: Period = "month",
        agent: str | None = None,
        since: str | None = None,
        progress: Progress | None = None,
    ) -> list[SourcePeriod]:
        """Earliest first, without periods that have no source."""
        length = MONTH if by == "month" else DAY
        # a stored day is by the user's clock already
        period = cache(lambda time: (local_day(time) if len(time) > DAY else time)[:length])
        rows = self._read(_KEPT_DAYS, _BY_REPLY, agent, since, progress, has_days=True)
        groups = _grouped((period(row.created[:MINUTE]), row) for row in rows)
        return [_period(name, group) for name, group in sorted(groups.items())]

    def _read(
        self,
        kept: Statement,
        anew: Statement,
        agent: str | None,
        since: str | None,
        progress: Progress | None = None,
        *,
        has_days: bool = False,
    ) -> list[Any]:
        """From the stored sums, if no start is given."""
        return self._totals.read(
            None if since else lambda connection: kept(connection, agent=agent or "").all(),
            lambda connection: anew(connection, agent=agent or "", since=since or "").all(),
            progress,
            has_days=has_days,
        )

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


# -- sums: from the requests themselves, or those stored for each conversation


def _count(condition: ColumnElement[bool]) -> ColumnElement[int]:
    return func.sum(case((condition, 1), else_=0))


def _turns(*conditions: ColumnElement[bool]) -> Any:
    """One row per source and reply. The conditions are about requests and their conversations."""
    sent = (
        select(requests.c.n, requests.c.conversation, requests.c.created, _REPLY.label("message"))
        .join(conversations, _of_conversation)
        .where(*_IS_REPLY, *conditions)
        .cte("sent")
        .prefix_with("MATERIALIZED")
    )
    rank = case({"called": 4, "quoted": 3, "paraphrased": 2, "": 1}, value=source_uses.c.sign, else_=0)
    turns = (
        select(
            sent.c.message,
            # a message belongs to one conversation
            func.max(sent.c.conversation).label("conversation"),
            func.min(sent.c.created).label("created"),
            source_uses.c.source,
            func.max(source_uses.c.mode).label("mode"),
            func.max(source_uses.c.score).label("score"),
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


def _by_conversation(*conditions: ColumnElement[bool]) -> Select[Any]:
    turn = _turns(*conditions)
    return select(
        turn.conversation,
        turn.source,
        func.count().label("replies"),
        _count(turn.mode == "always").label("always"),
        _count(turn.mode == "manual").label("manual"),
        _count(turn.mode == "agent").label("by_agent"),
        func.sum(turn.tokens).label("tokens"),
        _count(turn.sign > 0).label("looked"),
        _count(turn.sign == 4).label("called"),
        _count(turn.sign == 3).label("quoted"),
        _count(turn.sign == 2).label("paraphrased"),
        func.max(turn.last).label("last"),
        func.max(case((turn.sign > 1, turn.last))).label("used"),
    ).group_by(turn.conversation, turn.source)


_COUNTED = ("replies", "always", "manual", "by_agent", "tokens", "looked", "called", "quoted", "paraphrased")


def _sum(column: ColumnElement[Any]) -> ColumnElement[int]:
    # a sum of sums is a decimal in PostgreSQL
    return cast(func.sum(column), BigInteger)


def _stats(by_conversation: FromClause) -> Statement:
    """The columns of `source_totals` -> sums (one row per source and agent)."""
    each = by_conversation.c
    sums = (
        select(
            conversations.c.agent,
            each.source,
            *(_sum(each[name]).label(name) for name in _COUNTED),
            func.count().label("conversations"),
            _count(each.manual > 0).label("added"),
            func.max(each.last).label("last"),
            func.max(each.used).label("used"),
        )
        .join_from(by_conversation, conversations, conversations.c.n == each.conversation)
        .where(_OF_AGENT)
        .group_by(conversations.c.agent, each.source)
        .cte("sums")
    )
    latest = (source_uses.c.request == sums.c.last, source_uses.c.source == sums.c.source)
    return Statement(
        select(
            *_ID,
            sums.c.agent,
            select(source_uses.c.mode).where(*latest).scalar_subquery().label("mode"),
            *(sums.c[name] for name in (*_COUNTED, "conversations", "added")),
            select(requests.c.created).where(requests.c.n == sums.c.last).scalar_subquery().label("last_in"),
            select(requests.c.created).where(requests.c.n == sums.c.used).scalar_subquery().label("last_used"),
        )
        .join(source_names, source_names.c.n == sums.c.source)
        .order_by(sums.c.replies.desc(), sums.c.tokens.desc(), *_ID, sums.c.agent)
    )


_STATS, _KEPT_STATS = (_stats(table) for table in (_by_conversation(*_WITHIN).cte("by_conversation"), source_totals))
_SOURCE_SUMS = Statement(_by_conversation(_IN_HOMES))


def source_sums(connection: Connection, homes: Sequence[int]) -> list[Mapping[str, Any]]:
    return [row._asdict() for row in _SOURCE_SUMS(connection, homes=homes)]


_IN_PERIOD = ("replies", "included", "chosen", "looked", "used", "scored", "tokens")


def _by_reply(*conditions: ColumnElement[bool]) -> Select[Any]:
    turn = _turns(*conditions)
    is_chosen = turn.mode == "agent"
    return select(
        func.max(turn.conversation).label("conversation"),
        func.min(turn.created).label("created"),
        literal(1).label("replies"),
        func.count().label("included"),
        _count(is_chosen).label("chosen"),
        _count(is_chosen & (turn.sign > 0)).label("looked"),
        _count(is_chosen & (turn.sign > 1)).label("used"),
        func.sum(case((is_chosen, turn.score))).label("score"),
        _count(is_chosen & turn.score.is_not(None)).label("scored"),
        func.sum(turn.tokens).label("tokens"),
    ).group_by(turn.message)


_BY_REPLY, _BY_REPLY_IN_HOMES = Statement(_by_reply(*_WITHIN)), Statement(_by_reply(_IN_HOMES))
_KEPT_DAYS = Statement(
    select(
        source_days.c.day.label("created"),
        *(func.sum(source_days.c[name]).label(name) for name in (*_IN_PERIOD, "score")),
    )
    .join(conversations, conversations.c.n == source_days.c.conversation)
    .where(_OF_AGENT)
    .group_by(source_days.c.day)
)


def day_sums(connection: Connection, homes: Sequence[int]) -> list[dict[str, Any]]:
    day = cache(local_day)
    rows = _BY_REPLY_IN_HOMES(connection, homes=homes)
    groups = _grouped(((row.conversation, day(row.created[:MINUTE])), row) for row in rows)
    return [{"conversation": home, "day": day, **_sums(group)} for (home, day), group in groups.items()]


_REPLIES_IN_HOMES = Statement(
    select(source_days.c.conversation, _sum(source_days.c.replies))
    .where(in_list(source_days.c.conversation, "homes"))
    .group_by(source_days.c.conversation)
)


def reply_sums(connection: Connection, homes: Sequence[int]) -> list[dict[str, Any]]:
    """Rows of `summed_conversations` for these conversations, when those of `source_days` are stored."""
    replies = dict(_REPLIES_IN_HOMES(connection, homes=homes))
    return [{"conversation": home, "replies": replies.get(home, 0)} for home in homes]


def _grouped(rows: Iterable[tuple[Any, AnyRow]]) -> dict[Any, list[AnyRow]]:
    groups: dict[Any, list[AnyRow]] = {}
    for key, row in rows:
        groups.setdefault(key, []).append(row)
    return groups


def _period(name: str, rows: Sequence[AnyRow]) -> SourcePeriod:
    sums = _sums(rows)
    scored, score = sums.pop("scored"), sums.pop("score")
    return SourcePeriod(name, score=score / scored if scored else None, **sums)


def _sums(rows: Sequence[AnyRow]) -> dict[str, Any]:
    counts = {key: int(sum(getattr(row, key) for row in rows)) for key in _IN_PERIOD}
    return counts | {"score": sum(row.score or 0.0 for row in rows)}
