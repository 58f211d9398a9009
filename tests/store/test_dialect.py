"""What differs between databases: statements compiled for each, and what drivers report as failures."""

import sqlite3
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy.dialects import postgresql, sqlite

from recto.store.dialect import failure_of
from recto.store.paths import INSERT_MESSAGE
from recto.store.prepared_statement import Statement
from recto.store.rebuild import CHAIN, PIECES
from recto.store.records import KNOWN_PIECES, REBUILT_BY_IDS
from recto.store.rows import BY_NUMBER
from recto.store.store import Store


@pytest.mark.parametrize(
    ("statement", "given", "table"),
    [
        (BY_NUMBER, "[]", "messages"),
        (PIECES, "[]", "pieces"),
        (REBUILT_BY_IDS, "[]", "requests"),
        (KNOWN_PIECES, b"", "pieces"),
    ],
)
def test_what_is_in_a_list_is_looked_up_by_an_index(
    store: Store, statement: Statement, given: object, table: str
) -> None:
    sql = statement.sql(sqlite.dialect()).replace("/*hashes*/", "?")
    with store.database.read() as connection:
        plan = [row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {sql}", (given,) * sql.count("?"))]
    assert any(step.startswith(f"SEARCH {table} USING ") for step in plan), plan


@pytest.mark.parametrize("statement", [BY_NUMBER, CHAIN, INSERT_MESSAGE, KNOWN_PIECES, PIECES])
def test_a_statement_says_the_same_to_each_database_in_its_own_words(statement: Statement) -> None:
    ours = statement.sql(sqlite.dialect())
    theirs = statement.sql(postgresql.dialect())  # type: ignore[no-untyped-call]
    assert "json_each" not in theirs
    assert "BLOB" not in theirs
    assert ("ON CONFLICT" in ours) == ("ON CONFLICT" in theirs)


FAILURES: dict[str, list[int | str | None]] = {
    "busy": [sqlite3.SQLITE_BUSY_SNAPSHOT, sqlite3.SQLITE_LOCKED, "55P03", "40P01"],
    "read-only": [sqlite3.SQLITE_READONLY_DBMOVED, "25006"],
    "full": [sqlite3.SQLITE_FULL, "53100"],
    "damaged": [sqlite3.SQLITE_CORRUPT],
    "failing": [sqlite3.SQLITE_IOERR_FSYNC],
    "cannot open": [sqlite3.SQLITE_CANTOPEN],
    "unreachable": ["08006", "28P01", None],
    "other": [sqlite3.SQLITE_ERROR, "42601"],
}


@pytest.mark.parametrize("failure", FAILURES)
def test_failures_of_both_databases_are_told_apart_by_their_codes(failure: str) -> None:
    for code in FAILURES[failure]:
        error: Any = SimpleNamespace(sqlstate=code)
        if isinstance(code, int):
            error = sqlite3.OperationalError("in whatever language")
            error.sqlite_errorcode = code
        assert failure_of(error) == failure
