"""Pruning: what nobody has used for long is gone for good; everything else is as it was."""

from collections.abc import Callable

import pytest
from sqlalchemy import func, select, update
from tests.conftest import Open, Script
from tests.store.conftest import is_forgotten, tell_a_secret, told

from recto.api.blocking import Desk
from recto.errors import Invalid
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
    assert [each.number for each in report.conversations] == [2]
    assert (report.messages, report.removed) == (4, 1)
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
    assert ([each.number for each in report.conversations], report.removed) == ([1], 0)
    assert len(opened.conversations()) == 1


def test_facts_and_copies_stay(opened: Desk) -> None:
    talk = told(opened.conversation(), "one")
    fact = opened.facts.learn("The mast is 14 metres tall").fact
    with opened.store.database.write() as connection:
        connection.execute(update(facts).where(facts.c.n == fact.number).values(conversation=talk.id))
    make_old(opened, 1)
    copy = opened.home / "backups" / "recto-2020-01-01.db"
    copy.parent.mkdir(exist_ok=True)
    copy.write_bytes(b"copy")
    report = opened.prune("90d")
    assert report.removed == 1
    assert copy in report.copies
    assert copy.exists()
    assert [each.text for each in opened.facts.facts()] == ["The mast is 14 metres tall"]


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
    report = at.prune("90d")
    assert (report.removed, report.copies) == (1, ())
    assert {difference for _, difference in at.verify()} == {None}
    assert [each.number for each in at.conversations()] == [2]
