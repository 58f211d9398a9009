"""What was summed for reports holds as long as nothing changes, and is summed again when something does."""

import re
import time

import pytest
from msgspec.structs import replace
from tests.store.test_plans import plans
from tests.store.test_source_uses import API, LONG_AGO, STYLE, Chat, stat

from recto.base.ids import new_id
from recto.chat.blocks import DocumentReference, References, Text
from recto.chat.message import Message
from recto.sources.advice import AgentTotals
from recto.store.source_uses import SourceUse
from recto.store.spending import Spent, SpentBy
from recto.store.store import Store
from recto.store.token_use import token_use
from recto.store.usage_totals import BATCH

BUDGET = DocumentReference("[[Budget]]", "Money/Budget.md")
FOUND = DocumentReference("[[Boat]]", "Boat.md", reference_type="search")
BROKEN = DocumentReference("[[Nowhere]]", None)
JANUARY = "2026-01-31T23:30:00.000Z"


def say(store: Store, home: str, *references: DocumentReference, parent: str | None = None, at: str = JANUARY) -> str:
    block = References(references, vault="/notes")
    said = Message(new_id(), "user", (Text("about it"), block), parent=parent, created=at)
    return store.tree.append(home, said).message.id


def documents(store: Store) -> list[tuple[str, int, int]]:
    return sorted((each.path, each.uses, each.direct) for each in store.document_uses.totals("/notes"))


def test_what_is_said_after_a_report_is_in_the_next_one(store: Store) -> None:
    home = store.tree.create().id
    first = say(store, home, BUDGET, BROKEN)
    assert documents(store) == [("Money/Budget.md", 1, 1)], "broken links do not count"
    say(store, home, BUDGET, FOUND, parent=first)
    say(store, store.tree.create().id, FOUND)
    assert documents(store) == [("Boat.md", 1, 0), ("Boat.md", 1, 0), ("Money/Budget.md", 2, 2)]


def test_a_message_that_refers_to_something_else_now_is_summed_again(store: Store) -> None:
    home = store.tree.create().id
    message = store.tree.message(say(store, home, BUDGET))
    documents(store)
    store.tree.refer(replace(message, blocks=(Text("about it"), References((FOUND,), vault="/notes"))))
    assert documents(store) == [("Boat.md", 1, 0)]


def test_a_request_that_never_left_does_not_count_any_more(store: Store) -> None:
    chat = Chat(store)
    request = chat.send(chat.ask("Hello"), SourceUse(STYLE, "always", 40))
    assert stat(store, STYLE).replies == 1
    store.records.outcome(request, not_sent=True)
    assert store.source_uses.stats() == []
    assert store.source_uses.totals() == []


def test_a_sign_that_is_found_later_counts(store: Store) -> None:
    chat = Chat(store)
    request = chat.send(chat.ask("Hello"), SourceUse(API, "agent", 40))
    assert stat(store, API).used == 0
    store.source_uses.signs(request, {API: "quoted"})
    assert stat(store, API).used == 1


def test_an_emptied_trash_takes_its_sums_along(store: Store) -> None:
    chat = Chat(store)
    chat.turn("Hello", {API: "quoted"})
    say(store, chat.id, BUDGET, parent=chat.head)
    assert documents(store)
    assert store.source_uses.stats()
    store.tree.delete(chat.id)
    store.trash.empty("9")
    assert documents(store) == []
    assert store.source_uses.stats() == []


def test_a_zone_that_changed_moves_uses_to_another_month(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    say(store, store.tree.create().id, BUDGET)
    try:
        for zone, month in (("UTC", "2026-01"), ("Asia/Kathmandu", "2026-02"), ("UTC", "2026-01")):
            monkeypatch.setenv("TZ", zone)
            time.tzset()
            assert [total.month for total in store.document_uses.totals("/notes")] == [month]
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_zone_that_changed_moves_costs_to_another_day_and_no_sum_changes(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = Chat(store)
    store.records.outcome(chat.send(chat.ask("Hello"), day=1), cost_usd=0.5)  # at noon
    try:
        for zone, day in (("UTC", "2026-03-01"), ("Pacific/Kiritimati", "2026-03-02")):
            monkeypatch.setenv("TZ", zone)
            time.tzset()
            groups: tuple[SpentBy, ...] = ("total", "model", "conversation", "purpose")
            for group in groups:
                assert [each.cost_usd for each in store.spending.by(group)] == [0.5]
                assert [each.cost_usd for each in token_use(store.database, group)] == [0.5]
            assert [each.name for each in token_use(store.database, "day")] == [day]
            assert [each.name for each in store.spending.by("day")] == [day]
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_store_that_is_read_only_is_summed_without_keeping_it(store: Store) -> None:
    chat = Chat(store)
    chat.turn("Hello", {API: "quoted"})
    say(store, chat.id, BUDGET, parent=chat.head)
    with store.database.read() as connection:
        connection.exec_driver_sql("PRAGMA query_only = 1")
    assert documents(store) == [("Money/Budget.md", 1, 1)]
    assert stat(store, API).used == 1
    assert store.source_uses.totals() == [AgentTotals("default", 1, 1)]
    with store.database.read() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM summed_conversations").scalar() == 0


def test_many_conversations_are_summed_in_parts_and_told(store: Store) -> None:
    for _ in range(2 * BATCH + 1):
        say(store, store.tree.create().id, BUDGET)
    told: list[tuple[int, int]] = []
    assert len(store.document_uses.totals("/notes", lambda done, of: told.append((done, of)))) == 2 * BATCH + 1
    assert told == [(BATCH, 2 * BATCH + 1), (2 * BATCH, 2 * BATCH + 1)]


def test_a_report_reads_no_request_and_no_message_of_what_is_summed(store: Store) -> None:
    chat = Chat(store)
    chat.turn("Hello", {API: "quoted"})
    store.source_uses.stats()
    with plans(store) as steps:
        store.source_uses.stats()
        store.source_uses.totals()
        store.document_uses.totals("/notes")
        store.spending.by("day")
    assert steps
    assert not [step for step in steps if re.match(r"SCAN (messages|requests|uses|source_uses)\b", step)], steps


def test_costs_are_those_of_the_requests_themselves(store: Store) -> None:
    one, two = Chat(store), Chat(store)
    first, second = one.send(one.ask("Hello"), day=1), one.send(one.ask("and"), purpose="summary", day=2)
    third = two.send(two.ask("Hi"), day=2)
    groups: tuple[SpentBy, ...] = ("total", "day", "model", "conversation", "purpose")

    def costs(since: str | None = None) -> list[list[Spent]]:
        return [store.spending.by(group, since=since) for group in groups]

    assert costs() == costs(LONG_AGO)
    store.records.outcome(first, cost_usd=0.5)
    store.records.outcome(third, cost_usd=0.25)
    assert costs() == costs(LONG_AGO)
    assert store.spending.by("total") == [Spent("", 3, 0.75, 1)]
    assert [(each.name, each.requests) for each in store.spending.by("day")] == [("2026-03-01", 1), ("2026-03-02", 2)]
    store.records.outcome(second, cost_usd=1.0)
    assert costs() == costs(LONG_AGO)


def test_an_empty_store_cost_nothing(store: Store) -> None:
    assert store.spending.by("total") == [Spent()]
    assert store.spending.by("day") == []
