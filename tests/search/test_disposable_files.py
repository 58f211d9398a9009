"""Whatever happens to a file that can be made again, searches and turns go on, and nobody sees a traceback."""

import logging
import os
import random
import shutil
import sqlite3
import string
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from tests.conftest import Script

from recto.api.blocking import Desk, open_desk
from recto.errors import Busy, RectoError, StoreError
from recto.search import disposable_file
from recto.search.finder import Finder
from recto.search.keyword_index import IndexItem, KeywordIndex, Passage
from recto.search.query import Query

WORDS = [
    "".join(random.Random(number).choices(string.ascii_lowercase, k=2 + number % 7)) + "a" for number in range(400)
]


# -- one file


def all_passages(index: KeywordIndex) -> list[Passage]:
    return list(index.passages(number for number, _ in index.hashes(None)).values())


@pytest.fixture
def index(tmp_path: Path) -> Iterator[KeywordIndex]:
    index = KeywordIndex(tmp_path / "search.db")
    index.add({"talk": [IndexItem(number, f"The mast of boat {number}.") for number in range(50)]}, {"done": "50"})
    yield index
    index.close()


def make_folder(path: Path) -> None:
    path.mkdir()
    (path / "mine.txt").write_text("kept")


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm"])
@pytest.mark.parametrize(
    "block", [make_folder, lambda path: path.symlink_to("nowhere/at/all"), lambda path: path.symlink_to("/dev/null")]
)
def test_what_is_in_the_place_of_an_index_makes_room(
    tmp_path: Path, index: KeywordIndex, block: Callable[[Path], None], suffix: str
) -> None:
    index.close()
    for each in tmp_path.iterdir():
        each.unlink()
    block(tmp_path / f"search.db{suffix}")
    again = KeywordIndex(tmp_path / "search.db")
    again.add({"talk": [IndexItem(51, "The mast of another boat.")]})
    assert len(Finder(again).find(Query("mast", "talk")).hits) == 1
    again.close()
    assert [path.read_text() for path in tmp_path.rglob("mine.txt")] == ["kept"] * (block is make_folder)


def change(index: KeywordIndex, *statements: str) -> None:
    """As another program would."""
    with closing(sqlite3.connect(index.file.path, isolation_level=None)) as db:
        for statement in statements:
            db.execute(statement)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE passages SET who = CAST(x'ff80fe' AS TEXT)",
        "UPDATE passages SET words = 'many'",
        "DROP TABLE passages",
        "UPDATE lanes SET last = n",
        "UPDATE marks SET value = 'fifty' WHERE name = 'done'",
    ],
)
def test_damage_that_sqlite_does_not_see_empties_an_index(tmp_path: Path, index: KeywordIndex, damage: str) -> None:
    change(index, damage)
    index.close()
    again = KeywordIndex(tmp_path / "search.db")
    Finder(again).find(Query("mast", "talk"))
    again.add({"talk": [IndexItem(51, "The mast of another boat.")]})
    assert again.parsed_mark("done", int, 0) == 0
    assert len(all_passages(again)) <= 1
    assert "was damaged" in again.file.rebuild_reason
    again.close()


def test_an_index_that_fails_again_is_not_rebuilt_again(index: KeywordIndex) -> None:
    change(index, "DROP TABLE passages")
    assert index.queue_end == 50
    assert all_passages(index) == []
    change(index, "DROP TABLE passages")
    with pytest.raises(StoreError, match="no such table"):
        all_passages(index)
    assert index.file.read("SELECT count(*) FROM shelves") == [(0,)]


def test_a_lock_and_a_full_disk_are_no_damage(
    index: KeywordIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with index.file.in_use() as db:
        db.execute(f"PRAGMA max_page_count={db.execute('PRAGMA page_count').fetchone()[0]}")
    with pytest.raises(StoreError, match="full"):
        index.add({"talk": [IndexItem(60 + number, f"{number} " * 500) for number in range(50)]})
    monkeypatch.setattr(disposable_file, "BUSY_S", 0.01)
    index.close()
    with closing(sqlite3.connect(index.file.path, isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(Busy):
            index.add({"talk": [IndexItem(200, "Fresh.")]})
    assert (index.file.rebuild_reason, len(all_passages(index))) == ("", 50)


# -- a whole home


def flip(path: Path, chance: random.Random) -> None:
    with path.open("r+b") as file:
        for _ in range(chance.choice([1, 3, 30, 300])):
            file.seek(chance.randrange(path.stat().st_size))
            file.write(bytes([chance.randrange(256)]))


def flip_letters(path: Path, chance: random.Random) -> None:
    """Bytes that are no UTF-8, where texts are."""
    content = bytearray(path.read_bytes())
    letters = [at for at, byte in enumerate(content) if chr(byte).isalnum()]
    for at in chance.sample(letters, min(len(letters), chance.choice([3, 30, 300]))):
        content[at] = 0xFF
    path.write_bytes(content)


def truncate(path: Path, chance: random.Random) -> None:
    os.truncate(path, chance.randrange(path.stat().st_size))


def zero_pages(path: Path, chance: random.Random) -> None:
    with path.open("r+b") as file:
        for _ in range(chance.choice([1, 4])):
            file.seek(4096 * chance.randrange(max(1, path.stat().st_size // 4096)))
            file.write(bytes(4096))


def swap_pages(path: Path, chance: random.Random) -> None:
    content, count = path.read_bytes(), max(1, path.stat().st_size // 4096)
    with path.open("r+b") as file:
        for _ in range(2):
            at = 4096 * chance.randrange(count)
            file.seek(4096 * chance.randrange(count))
            file.write(content[at : at + 4096])


def other_database(path: Path, chance: random.Random) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("PRAGMA user_version=99")
        db.execute(chance.choice(["CREATE TABLE marks (x)", "CREATE TABLE notes (x)", "CREATE VIEW gists AS SELECT 1"]))


def text_file(path: Path, chance: random.Random) -> None:
    path.write_text("Dear diary, " * chance.randrange(1000))


def alter_tables(path: Path, chance: random.Random) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        query = "SELECT type, name FROM sqlite_master WHERE sql NOT NULL AND name NOT LIKE '%\\_%' ESCAPE '\\'"
        kind, name = chance.choice(db.execute(query).fetchall())
        db.execute(f"DROP {kind} {name}")


def alter_values(path: Path, chance: random.Random) -> None:
    """Values of other types, where the schema lets them in."""
    with closing(sqlite3.connect(path)) as db:
        plain = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE TABLE %'"
        for (table,) in db.execute(plain).fetchall():
            columns = [row[1] for row in db.execute(f"PRAGMA table_info('{table}')")]
            odd = chance.choice(["'x'", "x'ff00ff'", "CAST(x'fffe41' AS TEXT)", "-1", "9e300", "9223372036854775807"])
            try:
                db.execute(f"UPDATE '{table}' SET \"{chance.choice(columns)}\" = {odd}")
                db.commit()
            except sqlite3.Error:
                db.rollback()


def folder(path: Path, chance: random.Random) -> None:
    path.unlink()
    path.mkdir()


DAMAGES: list[Callable[[Path, random.Random], None]] = [
    *([flip] * 4),
    *([flip_letters] * 3),
    *([alter_values] * 3),
    truncate,
    zero_pages,
    swap_pages,
    other_database,
    text_file,
    alter_tables,
    folder,
]
NOTICED = {"truncate", "other_database", "text_file", "alter_tables", "folder"}
FILES = ("search.db", "facts.db", "sources.db", "vaults/*/search.db", "vaults/*/catalog.db", "vaults/*/gists.db")
MESSAGES, TRIALS = 8, 15


@pytest.fixture
def home(tmp_path: Path, script: Script, model: str) -> Path:
    vault = tmp_path / "notes"
    vault.mkdir()
    chance = random.Random(1)
    for number in range(12):
        said = " ".join(chance.choices(WORDS, k=80))
        (vault / f"Boat {number}.md").write_text(f"# Boat {number}\n\n{said}. See [[Boat {number // 2}]].\n" * 3)
    with open_desk(vault=vault, model=model, home=tmp_path / "home", settings={"references.gists": True}) as desk:
        talk = desk.conversation()
        for number in range(MESSAGES):
            talk.ask(f"The mast of boat {number} is {' '.join(chance.choices(WORDS, k=200))}. What of [[Boat 3]]?")
            desk.facts.learn(f"Boat {number} has a mast of {number} metres.")
        use(desk)
    return tmp_path / "home"


@pytest.fixture
def model(script: Script) -> str:
    return script({"text": "Noted."}, {"text": "A line.", "when": "gist"})


def use(desk: Desk) -> int:
    """Searches everything; returns how many messages were found. What fails says it in a sentence."""
    for search in (
        lambda: desk.facts.search("mast of boat 7"),
        lambda: desk.vault_search.find_excerpts(WORDS[3]) if desk.vault_search else None,
        lambda: desk.vault_search.find_documents("Boat 4") if desk.vault_search else None,
        lambda: desk.vault.documents() if desk.vault else None,
    ):
        with suppress(RectoError):
            search()
    try:
        return len(desk.search("mast", limit=100, complete=True))
    except RectoError:
        return 0


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 14))])
def test_a_damaged_home_is_searched_and_chats_go_on(
    home: Path, tmp_path: Path, model: str, seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    chance = random.Random(seed)
    for trial in range(TRIALS if seed else 5):
        copy = tmp_path / f"copy {trial}"
        shutil.copytree(home, copy)
        damaged = list[tuple[str, str]]()
        for pattern in chance.sample(FILES, chance.choice([1, 1, 2, 6])):
            for path in copy.glob(pattern):
                damage = chance.choice(DAMAGES)
                damaged.append((pattern, damage.__name__))
                damage(path, chance)
        with open_desk(vault=tmp_path / "notes", model=model, home=copy) as desk:
            assert desk.conversation().ask("Is the mast of boat 7 tall?").text == "Noted."
            first, second = use(desk), use(desk)
            # bytes may change without a trace: then what they held is not found, and nothing else happens
            is_noticed = {each for path, each in damaged if path == "search.db"} <= NOTICED
            assert not is_noticed or second >= MESSAGES, (seed, trial, damaged, first, second)
        assert [record.getMessage() for record in caplog.records] == [], (seed, trial, damaged)
        shutil.rmtree(copy)
