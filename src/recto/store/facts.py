"""Facts: what is remembered between conversations. Every change gets a new revision, for indexes to follow. A forgotten
fact leaves its number and none of its words; one about a note also leaves a hash, so that it stays forgotten.
"""

import json
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import msgspec
from msgspec.structs import asdict
from sqlalchemy import Connection, bindparam, func, insert, or_, select, update

from recto.chat.message import now
from recto.errors import NotFound
from recto.store.database import Database
from recto.store.dialect import in_list, overwrite_deleted
from recto.store.fact import EarlierText, FactKind, MemoryFact, NoteReference, checked_text
from recto.store.prepared_statement import Statement
from recto.store.rows import AnyRow
from recto.store.schema import facts

_LATEST = Statement(select(func.max(facts.c.revision)))
_SINCE = Statement(
    select(facts).where(facts.c.revision > bindparam("since")).order_by(facts.c.revision).limit(bindparam("most"))
)
_SOME = Statement(select(facts).where(in_list(facts.c.n, "numbers"), facts.c.forgotten.is_(None)))
_ONE = Statement(select(facts).where(facts.c.n == bindparam("number")))
_OF_NOTE = Statement(select(facts).where(facts.c.note_key == bindparam("key")))


_REMEMBERED = select(facts).where(facts.c.forgotten.is_(None))


class Facts:
    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, fact: MemoryFact) -> MemoryFact:
        with self._database.write() as connection:
            row = _row(fact) | {"created": fact.created or now(), "revision": _next(connection)}
            number = connection.execute(insert(facts).values(row)).inserted_primary_key[0]  # type: ignore[index]
            return _read(connection, number)

    def change(self, number: int, **values: Any) -> MemoryFact:
        """Changes fields of a fact. Raises NotFound."""
        with self._database.write() as connection:
            known = _read(connection, number)
            _update(connection, known.number, {name: _column(name, value) for name, value in values.items()})
            return _read(connection, number)

    def used(self, numbers: Iterable[int]) -> None:
        """Counts a use, which does not concern the index. Facts about notes count uses of the note instead."""
        with self._database.write() as connection:
            for number in numbers:
                values = {"uses": facts.c.uses + 1, "last_used": now()}
                connection.execute(update(facts).where(facts.c.n == number, facts.c.note.is_(None)).values(values))

    def keep_note(self, note: NoteReference, learned_by: str, uses: int, last_used: str) -> None:
        """Stores a fact about a frequently used note. One that the user forgot or changed stays so."""
        counted = {"uses": uses, "last_used": last_used}
        with self._database.write() as connection:
            row = _OF_NOTE(connection, key=note.key).first()
            if row is None:
                fact = MemoryFact(0, checked_text(note.text), "reference", now(), learned_by, note=note)
                values = _row(fact) | counted | {"revision": _next(connection)}
                connection.execute(insert(facts).values(values))
            elif not row.forgotten:
                known = _fact(row)
                connection.execute(update(facts).where(facts.c.n == row.n).values(counted))
                if known.note != note and not known.history:
                    _update(connection, row.n, {"text": checked_text(note.text), "note": _column("note", note)})

    def of_note(self, key: str) -> MemoryFact | None:
        """The fact about a note. Raises NotFound if it was forgotten."""
        row = self._database.first(_OF_NOTE, key=key)
        if row is not None and row.forgotten:
            raise NotFound("the fact about this note was forgotten", number=row.n)
        return _fact(row) if row else None

    def notes(self) -> list[MemoryFact]:
        return [_fact(row) for row in self._database.rows(_REMEMBERED.where(facts.c.note_key.is_not(None)))]

    def forget(self, number: int) -> MemoryFact:
        """Removes every word of a fact, including its history. Raises NotFound."""
        with self._database.write() as connection:
            overwrite_deleted(connection)
            known = _read(connection, number)
            nothing = dict.fromkeys(("topic", "message", "conversation", "note"))
            _update(connection, number, {"text": "", "forgotten": now(), "history": "[]", **nothing})
            connection.execute(update(facts).where(facts.c.replaced_by == number).values(replaced_by=None))
        return known

    def fact(self, number: int) -> MemoryFact:
        """Raises NotFound, also for a forgotten one."""
        with self._database.read() as connection:
            return _read(connection, number)

    def some(self, numbers: Sequence[int]) -> dict[int, MemoryFact]:
        return {row.n: _fact(row) for row in self._database.rows(_SOME, numbers=list(numbers))}

    def learned_from(self, message: str) -> list[int]:
        found = map(_fact, self._database.rows(_REMEMBERED.where(facts.c.message == message).order_by(facts.c.n)))
        return [fact.number for fact in found if fact.said_by == "user"]

    def of_topics(self, topics: Collection[int]) -> list[MemoryFact]:
        """The current facts about these topics, newest first."""
        query = _REMEMBERED.where(facts.c.topic.in_(topics), facts.c.replaced_by.is_(None))
        return [_fact(row) for row in self._database.rows(query.order_by(facts.c.created.desc(), facts.c.n.desc()))]

    def join_topics(self, numbers: Sequence[int]) -> int:
        """Merges the topics of these facts, and of all that share one with them."""
        with self._database.write() as connection:
            found = connection.execute(select(facts.c.n, facts.c.topic).where(facts.c.n.in_(numbers))).all()
            first = min(int(row.topic or row.n) for row in found)
            topics = [row.topic for row in found if row.topic]
            connection.execute(
                update(facts).where(or_(facts.c.n.in_(numbers), facts.c.topic.in_(topics))).values(topic=first)
            )
        return first

    def all(self, kind: FactKind | None = None, *, replaced: bool = True, limit: int | None = None) -> list[MemoryFact]:
        """Newest first."""
        query = _REMEMBERED.order_by(facts.c.n.desc()).limit(limit)
        query = query.where(facts.c.kind == kind) if kind else query
        query = query if replaced else query.where(facts.c.replaced_by.is_(None))
        return [_fact(row) for row in self._database.rows(query)]

    def count(self) -> int:
        return int(self._database.scalar(select(func.count()).where(facts.c.forgotten.is_(None))))

    @property
    def revision(self) -> int:
        return int(self._database.scalar(_LATEST) or 0)

    def changed_since(self, revision: int, most: int) -> tuple[list[tuple[int, MemoryFact | None]], int]:
        """Numbers of facts changed after a revision, with the facts (None if forgotten), and the last revision among
        them."""
        rows = self._database.rows(_SINCE, since=revision, most=most)
        found = [(row.n, None if row.forgotten else _fact(row)) for row in rows]
        return found, rows[-1].revision if rows else revision


def _read(connection: Connection, number: int) -> MemoryFact:
    row = _ONE(connection, number=number).first()
    if row is None or row.forgotten:
        raise NotFound(f"there is no fact {number}; `recto memory list` shows them", number=number)
    return _fact(row)


def _update(connection: Connection, number: int, values: dict[str, Any]) -> None:
    connection.execute(update(facts).where(facts.c.n == number).values(values | {"revision": _next(connection)}))


def _next(connection: Connection) -> int:
    return (_LATEST(connection).scalar() or 0) + 1


def _row(fact: MemoryFact) -> dict[str, Any]:
    values = {name: _column(name, value) for name, value in asdict(fact).items()}
    del values["number"]
    return values | {"note_key": fact.note.key if fact.note else None}


def _column(name: str, value: Any) -> Any:
    if name == "history":
        return json.dumps([[each.text, each.until] for each in value], ensure_ascii=False)
    if name == "note" and value is not None:
        return msgspec.json.encode(value).decode()
    return value


def _fact(row: AnyRow) -> MemoryFact:
    history = () if row.history == "[]" else tuple(EarlierText(*each) for each in json.loads(row.history))
    note = msgspec.json.decode(row.note, type=NoteReference) if row.note else None
    learned = (row.n, row.text, row.kind, row.created, row.learned_by, row.conversation, row.message)
    used = (row.last_used, row.uses, row.confidence, row.replaced_by, row.topic)
    return MemoryFact(*learned, *used, history, note)
