"""Whole tables: many rows at once, in any order, with references that are checked when all are there."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Table, insert, inspect
from sqlalchemy.exc import DBAPIError, IntegrityError

from recto.store.dialect import SQLITE, driver_connection


def insert_rows(connection: Connection, table: Table, rows: Sequence[Any]) -> None:
    """Many rows with all columns of the table, in their order; PostgreSQL copies them in one stream."""
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
    """Rows may come in any order on this connection, until `check_references`. Outside of a transaction."""
    if connection.dialect.name == SQLITE:
        driver_connection(connection).execute("PRAGMA foreign_keys = OFF")
        return
    with connection.begin():
        inspected = inspect(connection)
        for table in inspected.get_table_names():
            for key in inspected.get_foreign_keys(table):
                connection.exec_driver_sql(f"ALTER TABLE {table} DROP CONSTRAINT {key['name']}")


def check_references(connection: Connection, tables: Sequence[Table]) -> list[str]:
    """The tables with rows that refer to a missing one; where there are none, references hold again."""
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
    """New rows get numbers after those that were copied. SQLite does so by itself."""
    if connection.dialect.name == SQLITE:
        return
    for table in tables:
        if "n" in table.c:
            sequence = f"pg_get_serial_sequence('{table.name}', 'n')"
            connection.exec_driver_sql(f"SELECT setval({sequence}, max(n)) FROM {table.name} HAVING max(n) > 0")
        connection.exec_driver_sql(f"ANALYZE {table.name}")
