"""Sourced: which rules, references and tools were in every request, and what its reply shows of them; counted.

The account of a request says the same of each, and more; what is asked about all of them together is answered here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection, bindparam, delete, select, text

from recto import wire
from recto.errors import Invalid, NotFound
from recto.sources.pick import Mode
from recto.sources.source import SourceId
from recto.store.database import Database
from recto.store.queries import BY_NUMBER, Prepared
from recto.store.reading import read_numbered
from recto.store.schema import requests, source_names, source_uses
from recto.uses.stat import SIGNS, Sign, Stat, Total


@dataclass(frozen=True, slots=True)
class Sourced:
    """A source of one request."""

    id: SourceId
    mode: Mode
    tokens: int = 0
    score: float | None = None
    sign: Sign | None = None
    """None until the reply was looked at."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A request that was made for an answer, and whose it was."""

    request: str
    agent: str


_REQUEST = Prepared(select(requests.c.n).where(requests.c.id == bindparam("id")))
# All at once, as one text of JSON: a turn has dozens of them.
_NAMED = Prepared(
    text(
        "SELECT s.n, s.kind, s.name, s.server FROM json_each(:ids) j JOIN source_names s ON "
        "s.kind = json_extract(j.value, '$[0]') AND s.name = json_extract(j.value, '$[1]') "
        "AND s.server = json_extract(j.value, '$[2]')"
    )
)
_NAME = "INSERT INTO source_names (kind, name, server) VALUES (?, ?, ?)"
_FORGET = Prepared(delete(source_uses).where(source_uses.c.request == bindparam("number")))
_NOTE = "INSERT INTO source_uses (request, source, mode, score, tokens, sign) VALUES (?, ?, ?, ?, ?, ?)"
_SIGN = "UPDATE source_uses SET sign = ? WHERE request = ? AND source = ?"
_OF = Prepared(
    select(
        *(source_names.c[name] for name in ("kind", "name", "server")),
        *(source_uses.c[name] for name in ("mode", "tokens", "score", "sign")),
    )
    .join(source_names, source_names.c.n == source_uses.c.source)
    .where(source_uses.c.request == bindparam("number"))
    .order_by(source_uses.c.source)
)
# The rounds of a turn are one reply: the answer to one message.
_WITHIN = "r.purpose = 'reply' AND r.created >= :since AND (:agent = '' OR c.agent = :agent)"
_STATS = Prepared(
    text(
        "WITH sent AS MATERIALIZED (SELECT r.n, r.conversation, c.agent, coalesce(r.message, -r.n) AS message "
        f"FROM requests r JOIN conversations c ON c.n = r.conversation WHERE {_WITHIN}), "
        "turns AS (SELECT sent.agent, u.source, sent.conversation, max(u.mode) AS mode, sum(u.tokens) AS tokens, "
        "max(u.request) AS last, max(CASE u.sign WHEN 'called' THEN 4 WHEN 'quoted' THEN 3 WHEN 'paraphrased' THEN 2 "
        "WHEN '' THEN 1 ELSE 0 END) AS sign "
        "FROM sent CROSS JOIN source_uses u ON u.request = sent.n GROUP BY u.source, sent.message), "
        "sums AS (SELECT agent, source, count(*) AS replies, sum(mode = 'always') AS always, "
        "sum(mode = 'manual') AS manual, sum(mode = 'agent') AS by_agent, sum(tokens) AS tokens, "
        "sum(sign > 0) AS looked, sum(sign = 4) AS called, sum(sign = 3) AS quoted, sum(sign = 2) AS paraphrased, "
        "count(DISTINCT conversation) AS conversations, "
        "count(DISTINCT CASE mode WHEN 'manual' THEN conversation END) AS added, "
        "max(last) AS last, max(CASE WHEN sign > 1 THEN last END) AS used FROM turns GROUP BY agent, source) "
        "SELECT kind, name, server, agent, "
        "(SELECT mode FROM source_uses WHERE request = last AND source = sums.source) AS mode, "
        "replies, always, manual, by_agent, tokens, looked, called, quoted, paraphrased, conversations, added, "
        "(SELECT created FROM requests WHERE n = last) AS last_in, "
        "(SELECT created FROM requests WHERE n = used) AS last_used "
        "FROM sums JOIN source_names ON source_names.n = sums.source "
        "ORDER BY replies DESC, tokens DESC, kind, name, server, agent"
    )
)
_TOTALS = Prepared(
    text(
        "SELECT c.agent, count(DISTINCT coalesce(r.message, -r.n)) AS replies, count(DISTINCT c.n) AS conversations "
        "FROM requests r JOIN conversations c ON c.n = r.conversation "
        f"WHERE {_WITHIN} AND EXISTS (SELECT 1 FROM source_uses u WHERE u.request = r.n) GROUP BY c.agent"
    )
)
_REPLIES = Prepared(
    text(
        "SELECT r.id, c.agent FROM requests r JOIN conversations c ON c.n = r.conversation "
        f"WHERE {_WITHIN} ORDER BY r.n"
    )
)
# Without a sort: the newest are at the end of an index that holds these rows alone.
_LEARNT = Prepared(
    text(
        "SELECT r.message, s.kind, s.name, s.server FROM source_uses u INDEXED BY source_uses_learnt "
        "CROSS JOIN requests r ON r.n = u.request JOIN conversations c ON c.n = r.conversation "
        "JOIN source_names s ON s.n = u.source WHERE u.sign > '' AND u.mode <> 'always' AND c.agent = :agent "
        "AND r.message IS NOT NULL ORDER BY u.request DESC"
    )
)


class SourceUses:
    def __init__(self, database: Database) -> None:
        self._database = database

    def note(self, request: str, rows: Sequence[Sourced]) -> None:
        """What is in a request, in place of what was noted for it before; parts of one source count as one."""
        with self._database.write() as connection:
            number = _number(connection, request)
            _FORGET(connection, number=number)
            whole = _together(rows)
            named = _named(connection, [each.id for each in whole])
            noted = [(number, named[each.id], each.mode, each.score, each.tokens, each.sign) for each in whole]
            if noted:
                connection.exec_driver_sql(_NOTE, noted)

    def signs(self, request: str, signs: Mapping[SourceId, str]) -> None:
        """What the reply shows of the sources; one that was not noted for the request has no row to say it in."""
        for sign in signs.values():
            if sign not in SIGNS:
                raise Invalid(f"{sign!r} is no sign of use; allowed are called, quoted, paraphrased and none ('')")
        with self._database.write() as connection:
            number, known = _number(connection, request), _known(connection, list(signs))
            seen = [(sign, number, known[id]) for id, sign in signs.items() if id in known]
            if seen:
                connection.exec_driver_sql(_SIGN, seen)

    def of(self, request: str) -> list[Sourced]:
        """What was noted for a request."""
        with self._database.read() as connection:
            rows = _OF(connection, number=_number(connection, request)).all()
        return [
            Sourced(SourceId(row.kind, row.name, row.server), row.mode, row.tokens, row.score, row.sign) for row in rows
        ]

    def stats(self, agent: str | None = None, since: str | None = None) -> list[Stat]:
        """Per agent and source, those in the most replies first."""
        with self._database.read() as connection:
            rows = _STATS(connection, agent=agent or "", since=since or "").mappings().all()
        return [_stat(dict(row)) for row in rows]

    def totals(self, agent: str | None = None, since: str | None = None) -> list[Total]:
        """Per agent: all replies with any source, and the conversations they are in."""
        asked = {"agent": agent or "", "since": since or ""}
        with self._database.read() as connection:
            return [Total(row.agent, row.replies, row.conversations) for row in _TOTALS(connection, **asked)]

    def replies(self, agent: str | None = None, since: str | None = None) -> list[Reply]:
        """All requests for an answer, oldest first; those too that were made before sources were noted."""
        with self._database.read() as connection:
            return [Reply(row.id, row.agent) for row in _REPLIES(connection, agent=agent or "", since=since or "")]

    def past(self, agent: str, most: int = 200) -> list[tuple[str, frozenset[SourceId]]]:
        """The latest messages of the user whose replies used sources that are not always in, and which."""
        with self._database.read() as connection:
            learnt = _learnt(connection, agent, most)
            rows = BY_NUMBER(connection, numbers=wire.dumps(list(learnt))).all()
            said = {each.n: each.message.text for each in read_numbered(connection, rows)}
        return [(said[number], frozenset(used)) for number, used in learnt.items() if said.get(number)]


def _learnt(connection: Connection, agent: str, most: int) -> dict[int, set[SourceId]]:
    """By the number of the message, the latest first; reading stops where enough are found."""
    found: dict[int, set[SourceId]] = {}
    rows = _LEARNT(connection, agent=agent)
    for row in rows:
        if row.message not in found and len(found) == most:
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
    """Their numbers; those that are new get one."""
    known = _known(connection, ids)
    fresh = [(id.kind, id.name, id.server) for id in ids if id not in known]
    if fresh:
        connection.exec_driver_sql(_NAME, fresh)
        known = _known(connection, ids)
    return known


def _known(connection: Connection, ids: Sequence[SourceId]) -> dict[SourceId, int]:
    rows = _NAMED(connection, ids=wire.dumps([[id.kind, id.name, id.server] for id in ids]))
    return {SourceId(row.kind, row.name, row.server): row.n for row in rows}


def _together(rows: Sequence[Sourced]) -> list[Sourced]:
    merged: dict[SourceId, Sourced] = {}
    for row in rows:
        before = merged.get(row.id)
        scores = [each.score for each in (before, row) if each is not None and each.score is not None]
        tokens = row.tokens + (before.tokens if before else 0)
        merged[row.id] = replace(before or row, tokens=tokens, score=max(scores, default=None))
    return list(merged.values())


def _stat(row: dict[str, Any]) -> Stat:
    id = SourceId(row.pop("kind"), row.pop("name"), row.pop("server"))
    return Stat(id, **row | {"last_used": row["last_used"] or ""})
