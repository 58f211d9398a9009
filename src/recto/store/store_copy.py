"""Copies a whole store into an empty database, numbers included: from SQLite to PostgreSQL, or back.

One state of the source is copied, in one transaction of the target: all of it or nothing. Tables come in the order of
the schema, in which a row refers only to earlier ones, except messages to the requests of replies.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Select, Table, bindparam, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from recto.errors import Invalid, NotFound, StoreError
from recto.store.database import Database
from recto.store.dialect import SQLITE, file_of, url_of
from recto.store.schema import messages, metadata

Tell = Callable[[int, int], object]
"""Called with the number of rows done and the total."""
TABLES = tuple(metadata.tables.values())
# Rows read and written at once; fewer attachments, since one may have megabytes.
BATCH, BLOB_BATCH = 2000, 50


def copy_store(source: Path | str, target: Path | str, tell: Tell | None = None) -> Mapping[str, int]:
    """Returns the number of rows by table. Raises Invalid if the target holds anything."""
    if _place(source) == _place(target):
        raise Invalid("--from and --to are the same store")
    if (file := file_of(url_of(source))) and not file.exists():
        raise NotFound(f"there is no store {file}")
    with closing(Database(source)) as origin, origin.read() as reading, closing(Database(target)) as other:
        counts = {each.name: reading.execute(select(func.count()).select_from(each)).scalar_one() for each in TABLES}
        with other.write() as writing:
            if any(writing.execute(select(each).limit(1)).first() for each in TABLES):
                raise Invalid(f"{other.name} holds other data: copy into an empty database")
            try:
                for done in _copy_rows(reading, writing):
                    if tell:
                        tell(done, sum(counts.values()))
            except IntegrityError as why:
                raise StoreError(f"rows of {origin.name} refer to missing rows: run `recto store check`") from why
            newest = select(messages.c.n, messages.c.id).order_by(messages.c.n.desc()).limit(1)
            if row := writing.execute(newest).first():
                other.note_newest(*row)
    return counts


def _place(location: Path | str) -> str:
    url = url_of(location)
    return str(file.resolve()) if (file := file_of(url)) else str(url)


def _copy_rows(reading: Connection, writing: Connection) -> Iterator[int]:
    done = 0
    for table in TABLES:
        for some in _read(reading, select(table).order_by(*table.primary_key.columns), table):
            # a reply is a child of the message that its request answers
            own = {"request": None} if table is messages else {}
            writing.execute(insert(table), [{**row, **own} for row in some])
            done += len(some)
            yield done
        if writing.dialect.name != SQLITE and "n" in table.c:
            # new rows continue the copied numbers; SQLite does so by itself
            sequence = f"pg_get_serial_sequence('{table.name}', 'n')"
            writing.exec_driver_sql(f"SELECT setval({sequence}, max(n)) FROM {table.name} HAVING max(n) > 0")
    answered = select(messages.c.n.label("number"), messages.c.request).where(messages.c.request.is_not(None))
    link = update(messages).where(messages.c.n == bindparam("number")).values(request=bindparam("request"))
    for links in _read(reading, answered, messages):
        writing.execute(link, [dict(each) for each in links])


def _read(connection: Connection, query: Select[Any], table: Table) -> Iterator[Sequence[Any]]:
    options = {"yield_per": BLOB_BATCH if table.name == "kept" else BATCH}  # a server sends no more at once
    return connection.execute(query, execution_options=options).mappings().partitions()
