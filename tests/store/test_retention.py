"""Pruning: what nobody has used for long is gone for good; everything else is as it was."""

from collections.abc import Callable

import pytest
from sqlalchemy import func, select, update
from tests.conftest import Open, Script
from tests.store.conftest import is_forgotten, tell_a_secret, told

from recto.api.blocking import Desk
from recto.errors import Invalid, NotFound
from recto.store.schema import conversations, facts, metadata
from recto.store.trash import Trash, time_before

LONG_AGO = "2020-01-01T00:00:00.000Z"


def make_old(desk: Desk, number: int, **columns: str) -> None:
    values = columns or {"updated": LONG_AGO, "created": LONG_AGO}
    with desk.store.database.write() as connection:
        connection.execute(update(conversations).where(conversations.c.n == number).values(**values))


def count(desk: Desk, table: str) -> int:
    with desk.store.database.read() as connection:
        return int(connection.execute(select(func.count()).select_from(metadata.tables[table])).scalar_one())


def test_only_what_was_not_used_for_so_long_goes_with_every_trace(opened: Desk) -> None:
    tell_a_secret(opened)
    make_old(opened, 2)
    report = opened.prune("90d")
    assert [each.number for each in report.found.conversations] == [2]
    assert (report.found.messages, report.found.requests, report.removed) == (4, 2, 1)
    assert [each.number for each in opened.conversations()] == [1]
    is_forgotten(opened)


def test_a_store_of_which_everything_goes_is_empty(opened: Desk) -> None:
    told(opened.conversation(), "one", "two")
    opened.prune("0d")
    left = {name: count(opened, name) for name in metadata.tables} | {"counts": 0, "meters": 0, "source_names": 0}
    assert {name: number for name, number in left.items() if number} == {}


def test_a_dry_run_tells_and_removes_nothing(opened: Desk) -> None:
    told(opened.conversation(), "one")
    make_old(opened, 1)
    report = opened.prune("90d", dry_run=True)
    assert ([each.number for each in report.found.conversations], report.removed) == ([1], 0)
    assert len(opened.conversations()) == 1


def test_one_conversation_can_be_named_also_in_the_trash(opened: Desk) -> None:
    for words in ("one", "two"):
        told(opened.conversation(), words)
    make_old(opened, 1)
    make_old(opened, 2)
    opened.delete("2")
    assert opened.prune("90d", conversation=2).removed == 1
    assert [each.number for each in opened.conversations()] == [1]
    with pytest.raises(NotFound):
        opened.prune("90d", conversation="9")


def test_a_key_takes_only_its_own_conversations(opened: Desk) -> None:
    opened.store.access_keys.add("alice")
    homes = [told(opened.conversation(), words).id or "" for words in ("one", "two", "three")]
    for home, owner in zip(homes, ("alice", "bob", "alice"), strict=True):
        opened.store.client_messages.own(home, owner)
    make_old(opened, 1)
    make_old(opened, 2)
    assert opened.prune("90d", key="alice").removed == 1
    assert [each.number for each in opened.conversations()] == [3, 2]
    assert opened.prune("90d", key="bob").removed == 1, "a key that was removed still has conversations"
    with pytest.raises(NotFound, match="there is no key eve"):
        opened.prune("90d", key="eve")


def test_facts_stay_and_are_counted(opened: Desk) -> None:
    talk = told(opened.conversation(), "one")
    fact = opened.facts.learn("The mast is 14 metres tall").fact
    with opened.store.database.write() as connection:
        connection.execute(update(facts).where(facts.c.n == fact.number).values(conversation=talk.id))
    make_old(opened, 1)
    assert opened.prune("90d").found.facts == 1
    assert [each.text for each in opened.facts.facts()] == ["The mast is 14 metres tall"]


def test_daily_backups_go_where_it_is_asked_for_and_other_copies_are_named(opened: Desk) -> None:
    told(opened.conversation(), "one")
    make_old(opened, 1)
    folder = opened.home / "backups"
    folder.mkdir(exist_ok=True)
    daily, by_hand, replaced = (
        folder / name for name in ("recto-2020-01-01.db", "recto-2020-01-01-120000.db", "replaced-2020.db")
    )
    for file in (daily, by_hand, replaced):
        file.write_bytes(b"copy")
    kept = opened.prune("90d", dry_run=True).copies
    assert set(kept) >= {daily, by_hand, replaced}
    told_first = opened.prune("90d", dry_run=True, backups=True)
    assert daily in told_first.deleted_backups
    assert daily.exists()
    report = opened.prune("90d", backups=True)
    assert daily in report.deleted_backups
    assert set(report.copies) == {by_hand, replaced}
    assert not daily.exists()
    assert by_hand.exists()


def test_what_is_used_meanwhile_stays(opened: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    talk = told(opened.conversation(), "one")
    make_old(opened, 1)
    read = Trash._read_others

    def read_and_send(*args: object) -> None:
        read(*args)  # type: ignore[arg-type]
        told(talk, "two")

    monkeypatch.setattr(Trash, "_read_others", read_and_send)
    assert opened.prune("90d").removed == 0
    assert len(talk.messages()) == 4


@pytest.mark.parametrize("age", ["", "90", "d", "1.5d", "-1d", "90 days", "9999y", "٣d", "1m"])
def test_an_age_that_is_none_is_refused(age: str) -> None:
    with pytest.raises(Invalid):
        time_before(age)


def test_pruning_a_database_server_leaves_the_rest_proved(
    desk: Open, script: Script, postgresql: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECTO_DB", postgresql())
    at = desk(script({"text": "ok"}))
    for _ in range(2):
        told(at.conversation(), "The mast is 14 metres tall, made of spruce, and stands. " * 4, "And then?")
    make_old(at, 1)
    report = at.prune("90d", backups=True)
    assert (report.removed, report.deleted_backups, report.copies) == (1, (), ())
    assert {difference for _, difference in at.verify()} == {None}
    assert [each.number for each in at.conversations()] == [2]
