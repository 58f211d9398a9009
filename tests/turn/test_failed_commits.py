"""A commit that fails leaves an open talk where the store is: once the fault is gone it goes on, without being opened
again."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from itertools import product
from pathlib import Path

import pytest
from tests.conftest import Open, Script, mostly_slow

from recto.api.blocking import Desk, Talk
from recto.errors import StoreError

pytestmark = pytest.mark.untraced

# Every table that a turn or a change writes to.
WRITES = (
    "INSERT ON messages",
    "UPDATE ON messages",
    "UPDATE ON conversations",
    "INSERT ON requests",
    "UPDATE ON requests",
    "INSERT ON counts",
    "INSERT ON deltas",
)
CHANGES: dict[str, Callable[[Talk], object]] = {
    "ask": lambda talk: talk.ask("One more question about the boat?"),
    "ask with a compaction": lambda talk: talk.ask("word " * 1500),
    "compact": lambda talk: talk.compact(),
    "pin": lambda talk: talk.pin("#3"),
    "unpin": lambda talk: talk.unpin("#1"),
    "edit_summary": lambda talk: talk.edit_summary("My own words."),
    "clear": lambda talk: talk.clear(),
    "uncompact": lambda talk: talk.uncompact(),
    "undo": lambda talk: talk.undo(),
    "fork": lambda talk: talk.fork("#2"),
    "set_priority": lambda talk: talk.set_priority("#1", 9),
    "use_strategy": lambda talk: talk.use_strategy("hybrid"),
    "use": lambda talk: talk.use(f"{talk.model}.other"),
}


@contextmanager
def failing_commits(desk: Desk, write: str) -> Iterator[None]:
    """Every transaction that does this fails at its very end: SQLite checks a deferred key when it commits."""
    with closing(sqlite3.connect(desk.home / "recto.db", isolation_level=None)) as connection:
        connection.execute("CREATE TABLE fault (n REFERENCES messages(n) DEFERRABLE INITIALLY DEFERRED)")
        connection.execute(f"CREATE TRIGGER failing AFTER {write} BEGIN INSERT INTO fault VALUES (-1); END")
        try:
            yield
        finally:
            connection.execute("DROP TRIGGER failing")
            connection.execute("DROP TABLE fault")


@pytest.fixture
def talk(desk: Open, script: Script) -> Talk:
    reads = {"tool_calls": [{"name": "recall", "arguments": {"query": "boat"}}]}
    steps = [{"text": "Fine. " * 20}] * 10
    model = script(*steps, reads, {"text": "Good."}, {"text": "They talked of a boat.", "when": "summary"}, limit=2500)
    Path(f"{model.removeprefix('scripted:')}.other").write_text('[{"text": "Other."}]')
    opened = desk(model, context__reserved_response_tokens=60)
    talk = opened.conversation()
    for number in range(6):
        talk.ask(f"Message {number} about the boat. " * 8)
    talk.compact()
    talk.pin("#1")
    for number in range(6, 9):
        talk.ask(f"Message {number} about the boat. " * 8)
    return talk


def state(talk: Talk) -> tuple[object, ...]:
    return talk.head, talk.strategy, talk.compaction(), [message.id for message in talk.messages()], talk.model


QUICK = {*((write, "ask") for write in WRITES)}
QUICK |= {
    ("INSERT ON messages", "compact"),
    ("INSERT ON requests", "ask with a compaction"),
    ("UPDATE ON conversations", "pin"),
}


@pytest.mark.parametrize("case", mostly_slow(product(WRITES, CHANGES), QUICK), ids=" in ".join)
def test_an_open_talk_goes_on_after_a_failed_commit(talk: Talk, desk: Open, case: tuple[str, str]) -> None:
    write, what = case
    again = desk(None)
    before, failures = state(talk), []
    with failing_commits(again, write):
        try:
            CHANGES[what](talk)
        except StoreError as why:
            failures.append(why.message)
    assert all("FOREIGN KEY" in failure for failure in failures)
    assert state(talk) == state(again.conversation(talk.id)), "the talk is where the store is"
    assert not failures or what.startswith("ask") or state(talk) == before, "all or nothing"
    known = [message.id for message in talk.messages()]
    reply = talk.ask("And now?")
    path = [message.id for message in talk.messages()]
    assert path[-1] == reply.message.id
    assert path[: len(known)] == known, "nothing is lost"
    assert not [text for _, text in again.verify() if text]


@pytest.mark.parametrize("write", ["INSERT ON conversations", "INSERT ON messages"])
def test_a_new_talk_begins_after_a_failed_commit(desk: Open, script: Script, write: str) -> None:
    opened = desk(script({"text": "Yes."}))
    talk = opened.conversation()
    with failing_commits(opened, write), pytest.raises(StoreError):
        talk.ask("hello")
    assert talk.ask("hello again").text == "Yes."
    assert [message.text for message in talk.messages()] == ["hello again", "Yes."]
