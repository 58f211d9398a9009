"""A check finds what is wrong in a store, and nothing in a sound one."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.conftest import Open, Script

from recto.store.check import check_store
from recto.store.store import Store


@pytest.fixture
def sound(desk: Open, script: Script, tmp_path: Path) -> Path:
    """A store with a conversation of three turns, a tool round and a blob."""
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "A.md").write_text("# A\n\nThe mast is nine metres tall.\n")
    read = {"tool_calls": [{"name": "read_document", "arguments": {"path": "A.md"}}]}
    at = desk(script(read, {"text": "Nine metres."}), vault=notes)
    talk = at.conversation()
    for said in ("How tall is the mast?", "And [[A]]?", "Thanks."):
        talk.ask(said)
    at.store.blobs.put(b"a blob")
    return tmp_path / "home" / "recto.db"


def problems(path: Path, change: str) -> tuple[str, ...]:
    with closing(sqlite3.connect(path)) as connection:  # without foreign keys, as damage comes
        connection.execute(change)
        connection.commit()
    with Store(path) as store:
        return check_store(store).problems


def test_a_sound_store_has_no_problems_and_tells_its_progress(sound: Path) -> None:
    told: list[tuple[int, int]] = []
    with Store(sound) as store:
        found = check_store(store, lambda done, total: told.append((done, total)))
    assert found.problems == ()
    assert found.counts == {"conversations": 1, "messages": 8, "requests": 4, "blobs": found.counts["blobs"]}
    assert told[-1] == (8 + 4 + found.counts["blobs"],) * 2


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("UPDATE messages SET depth = 7 WHERE n = 3", "is not in its place under its parent"),
        ("UPDATE messages SET parent = NULL WHERE n = 3", "is not in its place under its parent"),
        ("UPDATE messages SET parent = 99 WHERE n = 8", "refers to a missing row of messages"),
        ("UPDATE conversations SET head = 99", "conversation #1 ends with a message that it does not contain"),
        ("UPDATE messages SET blocks = '[{' WHERE n = 2", "cannot be read"),
        ("UPDATE requests SET sha256 = x'00' WHERE n = 2", "does not rebuild"),
        ("UPDATE pieces SET data = x'00ff' WHERE n = 1", "does not rebuild"),
        ("UPDATE kept SET data = x'00ff' WHERE n = 1", "was changed"),
        ("DELETE FROM messages WHERE n = 5", "refers to a missing row of messages"),
    ],
)
def test_each_kind_of_damage_is_found(sound: Path, change: str, problem: str) -> None:
    found = problems(sound, change)
    assert any(problem in each for each in found), json.dumps(found)


def test_damaged_pages_are_found(sound: Path) -> None:
    with Store(sound) as store, store.database.engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        root = connection.exec_driver_sql("SELECT rootpage FROM sqlite_master WHERE name = 'counts'").scalar_one()
        size = connection.exec_driver_sql("PRAGMA page_size").scalar_one()
    with sound.open("r+b") as file:
        file.seek((root - 1) * size)
        file.write(b"\xff" * 8)
    with Store(sound) as store:
        found = check_store(store)
    assert found.problems
    assert not found.counts
