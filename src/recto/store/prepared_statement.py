"""Statement: compiled once per database and run on the driver's own cursor. SQLAlchemy's result takes longer to set up
than SQLite takes to answer, and a turn runs dozens of statements.
"""

import json
import re
import sqlite3
from collections import namedtuple
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from msgspec import Struct
from sqlalchemy import Connection, Dialect, Executable, Table, bindparam
from sqlalchemy.exc import IntegrityError

from recto.store.dialect import POSTGRESQL, SQLITE, JsonList, driver_connection, run_driver


@lru_cache(maxsize=256)
def _row_type(names: tuple[str, ...]) -> Callable[[Sequence[Any]], Any]:
    # unnamed columns are read by position
    make: Callable[[Sequence[Any]], Any] = namedtuple("Row", names, rename=True)._make  # type: ignore[attr-defined]
    return make


class Rows:
    """Rows as named tuples of their columns."""

    __slots__ = ("_cursor",)

    def __init__(self, cursor: Any) -> None:
        self._cursor = cursor

    def __iter__(self) -> Iterator[Any]:
        return map(_row_type(tuple([column[0] for column in self._cursor.description])), self._cursor)

    def all(self) -> list[Any]:
        return list(self)

    def first(self) -> Any:
        found = next(iter(self), None)
        self._cursor.close()
        return found

    def scalar(self) -> Any:
        row = self._cursor.fetchone()
        self._cursor.close()
        return None if row is None else row[0]

    def close(self) -> None:
        """Needed unless all rows are read."""
        self._cursor.close()

    @property
    def inserted(self) -> int | None:
        """SQLite: the number of the inserted row; None if ON CONFLICT skipped it."""
        return int(self._cursor.lastrowid) if self._cursor.rowcount == 1 else None


Build = Callable[[Callable[[Table], Any]], Executable]


class Statement:
    """A statement that needs ON CONFLICT is passed as a function of the dialect's `insert`."""

    def __init__(self, statement: Executable | Build) -> None:
        self._statement = statement
        self._compiled: dict[str, _Compiled] = {}

    def __call__(self, connection: Connection, **values: Any) -> "Rows":
        sql, parameters = self._for(connection.dialect).bind(values)
        if connection.dialect.name != SQLITE:
            return Rows(run_driver(connection, sql, parameters))
        try:
            return Rows(driver_connection(connection).execute(sql, parameters))
        except sqlite3.IntegrityError as why:
            raise IntegrityError(sql, parameters, why) from why

    def many(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        compiled = self._for(connection.dialect)
        if rows:
            connection.exec_driver_sql(compiled.sql, [compiled.bind(row)[1] for row in rows])

    def sql(self, dialect: Dialect) -> str:
        return self._for(dialect).sql

    def _for(self, dialect: Dialect) -> "_Compiled":
        found = self._compiled.get(dialect.name)
        if found is None:
            found = self._compiled[dialect.name] = _compile(self._built(dialect), dialect)
        return found

    def _built(self, dialect: Dialect) -> Any:
        return self._statement if isinstance(self._statement, Executable) else self._statement(_insert_of(dialect))


class InsertStatement(Statement):
    def number(self, connection: Connection, **values: Any) -> int | None:
        """Returns the number of the new row; None if ON CONFLICT skipped it."""
        done = self(connection, **values)
        # SQLite's driver knows the number, and RETURNING is slower
        number: int | None = done.inserted if connection.dialect.name == SQLITE else done.scalar()
        return number

    def _built(self, dialect: Dialect) -> Any:
        built = super()._built(dialect)
        return built if dialect.name == SQLITE else built.returning(*built.table.primary_key)


class _Compiled(Struct, frozen=True):
    sql: str
    names: tuple[str, ...]
    constants: Mapping[str, Any]
    is_positional: bool
    json_lists: tuple[str, ...]
    spread: str | None
    """SQLite: the name of the list of bytes, which is the last parameter."""

    def bind(self, values: Mapping[str, Any]) -> tuple[str, Any]:
        if self.json_lists:
            values = {**values, **{name: json.dumps(list(values[name])) for name in self.json_lists}}
        constants = self.constants
        if not self.is_positional:
            return self.sql, {name: values[name] if name in values else constants[name] for name in self.names}
        parameters = tuple([values[name] if name in values else constants[name] for name in self.names])
        if self.spread is None:
            return self.sql, parameters
        items = values[self.spread]
        return self.sql.replace(f"/*{self.spread}*/", ",".join("?" * len(items))), (*parameters, *items)


def _compile(statement: Any, dialect: Dialect) -> _Compiled:
    compiled = statement.compile(dialect=dialect)
    sql, names = str(compiled), compiled.bind_names
    lists = re.findall(r"/\*(\w+)\*/", sql)
    assert len(lists) < 2, "one list of bytes"
    assert not lists or "?" not in sql.partition("/*")[2], "and it comes last"
    return _Compiled(
        sql=sql,
        names=tuple(compiled.positiontup) if compiled.positional else tuple(names.values()),
        constants=dict(compiled.params),
        is_positional=bool(compiled.positional),
        json_lists=tuple(name for bind, name in names.items() if isinstance(bind.type, JsonList)),
        spread=lists[0] if lists else None,
    )


def _insert_of(dialect: Dialect) -> Callable[[Table], Any]:
    """The `insert` with ON CONFLICT. Dialects are slow to import, so only the one in use is loaded."""
    if dialect.name == POSTGRESQL:
        from sqlalchemy.dialects.postgresql import insert as postgresql_insert

        return postgresql_insert
    from sqlalchemy.dialects.sqlite import insert as sqlite_insert

    return sqlite_insert


def given(table: Table, **special: Any) -> dict[str, Any]:
    """Values for all columns but `n`: parameters of the same name, except those in `special`."""
    return {column.name: bindparam(column.name) for column in table.columns if column.name != "n"} | special
