"""A store that an earlier revision wrote is read whole, and goes on."""

import hashlib
import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config
from msgspec.structs import replace
from sqlalchemy import create_engine

from recto.chat.blocks import Made, Text
from recto.chat.conversation import Trail
from recto.chat.message import Message, Tokens, Usage
from recto.sources.source import SourceId
from recto.store import migrations
from recto.store.migrations import REVISIONS
from recto.store.source_uses import SourceUse
from recto.store.store import Store
from recto.window.count import Count
from recto.window.request import Piece, Request

MIGRATIONS = Path(migrations.__file__).parent
FIRST = Path(__file__).with_name("revision_0001.sql")
ONE = b',{"role":"user","content":"Where is the boat?"}'
TWO = ',{"role":"assistant","content":"In the härbour."}'.encode()
SYSTEM = b'{"messages":[{"role":"system","content":"Be kind."}'


def shape(path: Path) -> dict[str, object]:
    """Of each table its columns in order, its keys and its kind; of each index its text."""
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
        return {
            name: _table(connection, name, sql) if type == "table" else " ".join(sql.split())
            for type, name, sql in rows
        }


def _table(connection: sqlite3.Connection, name: str, sql: str) -> tuple[object, ...]:
    keys = connection.execute(f"PRAGMA foreign_key_list({name})").fetchall()
    references = sorted(row[2:] for row in keys)
    checks = sorted(re.findall(r"CHECK \([^)]*\)", sql))
    return connection.execute(f"PRAGMA table_info({name})").fetchall(), references, checks, "WITHOUT ROWID" in sql


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with sqlite3.connect(tmp_path / "old.db") as connection:
        connection.executescript(FIRST.read_text("utf-8"))
    connection.close()
    return tmp_path / "old.db"


@pytest.fixture
def old(path: Path) -> Iterator[Store]:
    with Store(path) as store:
        yield store


def test_it_gets_the_shape_of_a_new_one(path: Path, tmp_path: Path) -> None:
    Store(path).close()
    Store(tmp_path / "new.db").close()
    assert shape(path) == shape(tmp_path / "new.db")
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT version_num FROM alembic_version").fetchall() == [(REVISIONS[-1],)]
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    connection.close()


def test_its_conversations_and_branches_are_there(old: Store) -> None:
    [conversation] = old.tree.conversations()
    assert (conversation.title, conversation.head, conversation.messages) == ("Boats", "reply", 4)
    assert conversation.details == {"model": "scripted:boats.json"}
    assert [leaf.id for leaf in old.tree.leaves(conversation.id)] == ["aside", "reply"]
    path = old.tree.page("reply", most=99)
    assert [message.id for message in path] == ["reply", "again", "cut", "answer", "question"]
    assert [message.text for message in path if message.text] == [
        "Still there.", "And now?", "In the härbour.", "Where is the boat?"
    ]  # fmt: skip


def test_its_messages_learn_their_branches_and_its_words_are_gone(old: Store) -> None:
    found = {each.message.id: each.branch for each in old.tree.after(0, most=99)}
    assert found == {"question": 1, "answer": 1, "cut": 1, "again": 1, "reply": 1, "aside": 6}
    assert old.tree.trail("aside") == Trail(((6, 3), (1, 2)))
    with old.database.read() as connection:
        tables = connection.exec_driver_sql("SELECT name FROM sqlite_master WHERE name LIKE 'words%'").all()
    assert tables == []


def test_priorities_move_into_their_column(old: Store, path: Path) -> None:
    found = {message.id: message.priority for id in ("reply", "aside") for message in old.tree.page(id, most=99)}
    assert found == {"question": 8, "answer": 5, "cut": 9, "again": 5, "reply": 7, "aside": 5}
    assert {message.id: message.priority for message in old.tree.bare_page("reply", most=99)} == {
        id: priority for id, priority in found.items() if id != "aside"
    }
    with sqlite3.connect(path) as connection:
        details = [json.loads(text) for (text,) in connection.execute("SELECT details FROM messages")]
    connection.close()
    assert not any("priority" in each for each in details)


def test_everything_else_about_a_message_stays(old: Store) -> None:
    made = Made("scripted", "scripted:boats.json", 0.5)
    assert old.tree.message("answer") == Message(
        "answer",
        "assistant",
        (Text("In the härbour.", made),),
        parent="question",
        depth=2,
        said=2,
        created="2026-01-31T12:00:02.000Z",
        model=made.model,
        provider=made.provider,
        request="request-1",
        usage=Usage(7, 4),
        tokens=Tokens(5, None, 1),
    )
    assert old.tree.message("aside").learning_points == ('say "priority": twice',)
    cut = old.tree.message("cut")
    assert cut.compaction is not None
    assert (cut.context_type, cut.compaction.last, cut.compaction.lifted) == ("summary", "question", ("question",))
    assert old.tree.compactions("reply", limit=9) == [cut]


def test_its_requests_rebuild_and_its_counts_are_found(old: Store) -> None:
    ids = ["request-1", "request-2", "request-3"]
    assert old.records.ids() == ids
    assert [difference for _, difference in old.records.differences(ids)] == [None] * 3
    assert old.records.rebuild("request-2") == SYSTEM + ONE + TWO + b"]}"
    record = old.records.record("request-1")
    assert (record.size, record.account.parameters, record.outcome["reply"]) == (100, {"max_tokens": 9}, "answer")
    [home] = old.tree.conversations()
    assert old.records.latest(home.id) == "request-3"
    assert old.records.latest(home.id, "summary") == "request-2"
    one, two = (hashlib.sha256(data).digest() for data in (ONE, TWO))
    known = old.token_counts.find("o200k_base/chat", [one, two])
    assert known == {two: Count(8, exact=False)}, "an exact count without a checksum is made again"


def test_it_goes_on_as_if_it_were_new(old: Store) -> None:
    [home] = old.tree.conversations()
    reply = old.tree.message("reply")
    old.tree.finish(replace(reply, status="done"))
    asked = Message("next", "user", (Text("Thanks."),), parent="reply", priority=6)
    assert old.tree.append(home.id, asked).moved
    assert [message.priority for message in old.tree.bare_page("next", most=2)] == [6, 7]
    pieces = (
        Piece("head", b'{"messages":['),
        Piece("system", SYSTEM.removeprefix(b'{"messages":['), 5),
        Piece("message", ONE),
        Piece("message", TWO, 1),
        Piece("tail", b"]}"),
    )
    sent = Request(
        "request-4", home.id, "reply", "scripted:boats.json", "openai", {}, pieces, mark_bytes=b"!", stable=4
    )
    old.records.save(sent, "request-3")
    assert old.records.rebuild("request-4") == sent.body
    assert old.records.record("request-4").account.broken_by is None


def test_its_sources_can_be_noted_and_its_texts_kept_from_now_on(old: Store) -> None:
    assert (old.source_uses.stats(), old.source_uses.past("default")) == ([], [])
    assert old.source_uses.of("request-1") == []
    style = SourceId("rule", "style")
    old.source_uses.note("request-1", [SourceUse(style, "always", 7)])
    old.source_uses.signs("request-1", {style: "quoted"})
    [stat] = old.source_uses.stats()
    assert (stat.id, stat.replies, stat.tokens, stat.quoted) == (style, 1, 7, 1)
    assert old.blobs.get(old.blobs.put(b"Be kind.")) == b"Be kind."


def test_its_requests_learn_their_models_and_which_of_them_cost_nothing(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("""UPDATE requests SET outcome = '{"not_sent":true}' WHERE id = 'request-2'""")
    connection.close()
    with Store(path) as old:
        [home] = old.tree.conversations()
        assert old.records.record("request-1").cost_usd is None
        found = {each.name: (each.requests, each.cost_usd, each.unpriced) for each in old.spending.by("model", home.id)}
        assert found == {"scripted:boats.json": (1, 0.0, 1), "unknown": (2, 0.0, 1)}


def test_its_strategies_become_settings_of_their_conversations(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        details = '{"model":"scripted:boats.json","strategy":"hybrid"}'
        connection.execute("UPDATE conversations SET details = ?", (details,))
    connection.close()
    with Store(path) as old:
        [home] = old.tree.conversations()
    assert home.details == {"model": "scripted:boats.json", "settings": {"context.strategy": "hybrid"}}


@pytest.mark.parametrize("revision", REVISIONS[:-1])
def test_a_store_of_any_older_revision_opens(tmp_path: Path, revision: str) -> None:
    path = tmp_path / "of_then.db"
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    engine = create_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
    engine.dispose()
    with Store(path) as store:
        assert store.source_uses.stats() == []
    Store(tmp_path / "new.db").close()
    assert shape(path) == shape(tmp_path / "new.db")
