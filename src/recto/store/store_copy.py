"""Copies a whole store into another database, row by row, numbers included: from SQLite to PostgreSQL, or back.

One state of the source is copied. Tables are compared with their copies in stretches, and only differences are written,
so an interrupted copy can be continued. Until it has the source's hash, the target is marked, and nothing else opens
it.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from sqlalchemy import ColumnElement, Connection, Table, delete, func, insert, inspect, select, text, tuple_
from sqlalchemy.exc import DBAPIError, IntegrityError

from recto.errors import Busy, Invalid, NotFound, StoreError
from recto.store.database import Database, copy_mark
from recto.store.dialect import SQLITE, driver_connection, file_of, url_of
from recto.store.marker import NewestMessage, StoreMarker
from recto.store.migrations import REVISIONS
from recto.store.schema import conversations, messages, metadata

Tell = Callable[[int, int], object]
"""Called with the number of rows done and the total; each row counts once when copied and once when compared."""
Key = tuple[Any, ...]
# Rows read, compared and written at once; fewer attachments, since one may have megabytes.
BATCH, BLOB_BATCH = 2000, 50


class StoreCopy(Struct, frozen=True):
    rows: Mapping[str, int]
    written: int
    """Rows that were missing from the target, or different."""
    sha256: str


def copy_store(source: Path | str, target: Path | str, tell: Tell | None = None) -> StoreCopy:
    """Raises Invalid if the target holds anything but a copy of the source."""
    if _place(source) == _place(target):
        raise Invalid("--from and --to are the same store")
    if (file := file_of(url_of(source))) and not file.exists():
        raise NotFound(f"there is no store {file}")
    with closing(Database(source)) as origin, origin.read() as reading:
        mark = copy_mark(_first_ids(reading))
        with closing(Database(target, copied=mark)) as other, other.hold("recto store copy") as is_alone:
            if not is_alone:
                raise Busy(f"another process is copying a store into {other.name}")
            return _Copying(reading, other, mark, tell).run()


def _place(location: Path | str) -> str:
    url = url_of(location)
    return str(file.resolve()) if (file := file_of(url)) else str(url)


def _first_ids(connection: Connection) -> Sequence[str]:
    """Identifies a store while its first conversation exists."""
    firsts = [select(table.c.id).order_by(table.c.n).limit(1) for table in (conversations, messages)]
    return [str(connection.execute(each).scalar() or "") for each in firsts]


class _Copying:
    def __init__(self, source: Connection, target: Database, mark: str, tell: Tell | None) -> None:
        self._source, self._database, self._mark, self._tell = source, target, mark, tell
        self._tables = list(metadata.tables.values())
        self._counts: dict[str, int] = {
            each.name: source.execute(select(func.count()).select_from(each)).scalar_one() for each in self._tables
        }
        self._done = self._written = 0

    def run(self) -> StoreCopy:
        with self._database.translate_errors(), self._database.engine.connect() as connection:
            connection.detach()  # its settings are for the copy alone
            connection.execution_options(write=True)
            if self._is_begun(connection):
                hashes = {each.name: self._copied(connection, each) for each in self._tables}
                found = self._hashes(connection)
                if wrong := [name for name in hashes if hashes[name] != found[name]]:
                    raise StoreError(
                        f"{self._database.name} does not match the source ({', '.join(wrong)} differ): "
                        "the copy stays marked as unfinished"
                    )
                self._end(connection)
            else:
                found = self._hashes(connection)
                if found != self._hashes(self._source):
                    raise Invalid(f"{self._database.name} holds other data: copy into an empty database")
        whole = hashlib.sha256("".join(found[each.name] for each in self._tables).encode())
        return StoreCopy(self._counts, self._written, whole.hexdigest())

    def _is_begun(self, connection: Connection) -> bool:
        """Marks an empty target, or finds it marked; False if it holds anything else."""
        with connection.begin():
            version = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
            if version != self._mark:
                if any(connection.execute(select(each).limit(1)).first() for each in self._tables):
                    return False
                connection.execute(text("UPDATE alembic_version SET version_num = :mark"), {"mark": self._mark})
        release_references(connection)
        return True

    def _copied(self, connection: Connection, table: Table) -> str:
        """Makes the target's table the same; returns the hash of its rows."""
        digest, last = hashlib.sha256(), None
        for rows in _stretches(self._source, table):
            before, last = last, _key(table, rows[-1])
            digest.update(_encoded(rows))
            stretch = _between(table, before, last)
            with connection.begin():
                there = connection.execute(_ordered(table).where(*stretch)).all()
                if there != rows:
                    if there:
                        connection.execute(delete(table).where(*stretch))
                    insert_rows(connection, table, rows)
                    self._written += len(rows)
            self._step(len(rows))
        with connection.begin():
            connection.execute(delete(table).where(*_between(table, last, None)))
        return digest.hexdigest()

    def _hashes(self, connection: Connection) -> dict[str, str]:
        return {each.name: self._hash(connection, each) for each in self._tables}

    def _hash(self, connection: Connection, table: Table) -> str:
        digest = hashlib.sha256()
        for rows in _stretches(connection, table):
            digest.update(_encoded(rows))
            if connection is not self._source:
                self._step(len(rows))
        if connection is not self._source:
            connection.commit()
        return digest.hexdigest()

    def _step(self, rows: int) -> None:
        self._done += rows
        if self._tell:
            self._tell(self._done, 2 * sum(self._counts.values()))

    def _end(self, connection: Connection) -> None:
        last = select(messages.c.n, messages.c.id).order_by(messages.c.n.desc()).limit(1)
        newest = self._source.execute(last).first()
        with connection.begin():
            loose = check_references(connection, self._tables)
            if loose:
                raise StoreError(f"rows of {', '.join(loose)} refer to rows that are missing: run `recto store check`")
            number_on(connection, self._tables)
            connection.execute(text("UPDATE alembic_version SET version_num = :found"), {"found": REVISIONS[-1]})
        if self._database.file and newest:
            StoreMarker(self._database.file).write(NewestMessage(*newest))


def _stretches(connection: Connection, table: Table) -> Iterator[Sequence[Any]]:
    last, most = None, BLOB_BATCH if table.name == "kept" else BATCH
    while rows := connection.execute(_ordered(table).where(*_between(table, last, None)).limit(most)).all():
        yield rows
        last = _key(table, rows[-1])


def _ordered(table: Table) -> Any:
    return select(table).order_by(*table.primary_key.columns)


def _between(table: Table, after: Key | None, until: Key | None) -> list[ColumnElement[bool]]:
    place = tuple_(*table.primary_key.columns)
    return [
        *([place > tuple_(*after)] if after is not None else []),
        *([place <= tuple_(*until)] if until is not None else []),
    ]


def _key(table: Table, row: Any) -> Key:
    return tuple(getattr(row, column.name) for column in table.primary_key.columns)


def _encoded(rows: Sequence[Any]) -> bytes:
    return b"".join(msgspec.msgpack.encode(tuple(row)) for row in rows)


# -- whole tables: many rows at once, in any order, with references checked at the end


def insert_rows(connection: Connection, table: Table, rows: Sequence[Any]) -> None:
    """Inserts rows with all columns of the table, in their order; PostgreSQL copies them in one stream."""
    if connection.dialect.name == SQLITE:
        connection.execute(insert(table), [row._asdict() for row in rows])
        return
    names = ", ".join(connection.dialect.identifier_preparer.quote(column.name) for column in table.columns)
    statement = f"COPY {table.name} ({names}) FROM STDIN"
    driver = driver_connection(connection)
    try:
        with driver.cursor() as cursor, cursor.copy(statement) as copying:
            for row in rows:
                copying.write_row(row)
    except connection.dialect.loaded_dbapi.Error as why:
        raise DBAPIError(statement, None, why) from why


def release_references(connection: Connection) -> None:
    """Lets rows come in any order on this connection, until `check_references`. Outside a transaction."""
    if connection.dialect.name == SQLITE:
        driver_connection(connection).execute("PRAGMA foreign_keys = OFF")
        return
    with connection.begin():
        inspected = inspect(connection)
        for table in inspected.get_table_names():
            for key in inspected.get_foreign_keys(table):
                connection.exec_driver_sql(f"ALTER TABLE {table} DROP CONSTRAINT {key['name']}")


def check_references(connection: Connection, tables: Sequence[Table]) -> list[str]:
    """The tables with rows that refer to missing ones; if there are none, references are enforced again."""
    if connection.dialect.name == SQLITE:
        return sorted({str(row[0]) for row in connection.exec_driver_sql("PRAGMA foreign_key_check")})
    for table in tables:
        for key in table.foreign_keys:
            (column, to), name = (key.parent.name, key.column), f"{table.name}_{key.parent.name}_fkey"
            try:
                connection.exec_driver_sql(
                    f"ALTER TABLE {table.name} ADD CONSTRAINT {name} "
                    f"FOREIGN KEY ({column}) REFERENCES {to.table.name} ({to.name})"
                )
            except IntegrityError:
                return [table.name]
    return []


def number_on(connection: Connection, tables: Sequence[Table]) -> None:
    """Makes new rows continue the copied numbers. SQLite does so by itself."""
    if connection.dialect.name == SQLITE:
        return
    for table in tables:
        if "n" in table.c:
            sequence = f"pg_get_serial_sequence('{table.name}', 'n')"
            connection.exec_driver_sql(f"SELECT setval({sequence}, max(n)) FROM {table.name} HAVING max(n) > 0")
        connection.exec_driver_sql(f"ANALYZE {table.name}")
