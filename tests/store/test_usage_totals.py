"""Sums for reports hold as long as nothing changes, and are what requests and messages themselves give."""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from msgspec.structs import replace
from tests.store.conftest import execute
from tests.store.test_plans import plans
from tests.store.test_source_uses import API, ISSUE, LONG_AGO, STYLE, Chat

from recto.base.ids import new_id
from recto.chat.blocks import DocumentReference, References, Text
from recto.chat.message import Message, Usage
from recto.store.document_uses import Together, UsedTogether
from recto.store.source_uses import Period, SourcePeriod, SourceUse
from recto.store.spending import Spent, SpentBy, TokenUse
from recto.store.store import Store

BUDGET = DocumentReference("[[Budget]]", "Money/Budget.md")
FOUND = DocumentReference("[[Boat]]", "Boat.md", reference_type="search")
BROKEN = DocumentReference("[[Nowhere]]", None)
JANUARY = "2026-01-31T23:30:00.000Z"
BOTH = ("Boat.md", "Money/Budget.md")
GROUPS: tuple[SpentBy, ...] = ("total", "day", "model", "conversation", "purpose")


def say(store: Store, home: str, *references: DocumentReference, parent: str | None = None, at: str = JANUARY) -> str:
    block = References(references, vault="/notes")
    said = Message(new_id(), "user", (Text("about it"), block), parent=parent, created=at)
    return store.tree.append(home, said).message.id


@contextmanager
def read_only(store: Store) -> Iterator[None]:
    """Nothing is summed, and no sum can be kept: reports read the requests and messages themselves."""
    if store.database.file is None:
        yield
        return
    execute(store, "DELETE FROM summed_conversations")
    try:
        with store.database.read() as connection:
            connection.exec_driver_sql("PRAGMA query_only = 1")
        yield
        with store.database.read() as connection:
            assert connection.exec_driver_sql("SELECT count(*) FROM summed_conversations").scalar() == 0
    finally:
        with store.database.read() as connection:
            connection.exec_driver_sql("PRAGMA query_only = 0")


@contextmanager
def zone(name: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", name)
        time.tzset()
        yield
    time.tzset()


def documents(store: Store) -> list[tuple[str, int, int]]:
    found = store.document_uses.totals("/notes")
    with read_only(store):
        assert sorted(store.document_uses.totals("/notes"), key=repr) == sorted(found, key=repr)
    return sorted((each.path, each.uses, each.direct) for each in found)


def periods(
    store: Store, by: Period = "month", agent: str | None = None, since: str | None = None
) -> list[SourcePeriod]:
    found = store.source_uses.periods(by, agent, since)
    with read_only(store):
        anew = store.source_uses.periods(by, agent, since)
    assert [each.to_json() for each in anew] == [each.to_json() for each in found]
    return found


def together(store: Store, by: Together = "turn") -> UsedTogether:
    found = store.document_uses.together("/notes", by)
    with read_only(store):
        assert store.document_uses.together("/notes", by) == found
    return found


def test_what_is_said_after_a_report_is_in_the_next_one(store: Store) -> None:
    home = store.tree.create().id
    first = say(store, home, BUDGET, BROKEN)
    assert documents(store) == [("Money/Budget.md", 1, 1)], "broken links do not count"
    say(store, home, BUDGET, FOUND, parent=first)
    say(store, store.tree.create().id, FOUND)
    assert documents(store) == [("Boat.md", 1, 0), ("Boat.md", 1, 0), ("Money/Budget.md", 2, 2)]


def test_a_message_that_refers_to_something_else_now_is_summed_again(store: Store) -> None:
    message = store.tree.message(say(store, store.tree.create().id, BUDGET))
    documents(store)
    store.tree.refer(replace(message, blocks=(Text("about it"), References((FOUND,), vault="/notes"))))
    assert documents(store) == [("Boat.md", 1, 0)]


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


def test_a_zone_that_changed_moves_uses_and_costs_to_another_day_and_no_sum_changes(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = Chat(store)
    store.records.outcome(chat.send(chat.ask("Hello"), day=1), cost_usd=0.5)  # at noon
    say(store, store.tree.create().id, BUDGET)
    for name, month, day in (
        ("UTC", "2026-01", "2026-03-01"),
        ("Pacific/Kiritimati", "2026-02", "2026-03-02"),
        ("UTC", "2026-01", "2026-03-01"),
    ):
        with zone(name, monkeypatch):
            assert [total.month for total in store.document_uses.totals("/notes")] == [month]
            for group in GROUPS:
                assert [each.cost_usd for each in store.spending.by(group)] == [0.5]
                assert [each.cost_usd for each in store.spending.tokens(group)] == [0.5]
            assert [each.name for each in store.spending.tokens("day")] == [day]
            assert [each.name for each in store.spending.by("day")] == [day]


def test_a_report_reads_no_request_and_no_message_of_what_is_summed(store: Store) -> None:
    chat = Chat(store)
    chat.turn("Hello", {API: "quoted"})
    store.source_uses.stats()
    with plans(store) as steps:
        store.source_uses.stats()
        store.source_uses.stats()
        store.document_uses.totals("/notes")
        store.spending.by("day")
    assert steps
    assert not [step for step in steps if re.match(r"SCAN (messages|requests|uses|source_uses)\b", step)], steps


def test_costs_are_those_of_the_requests_themselves(store: Store) -> None:
    one, two = Chat(store), Chat(store)
    first, second = one.send(one.ask("Hello"), day=1), one.send(one.ask("and"), purpose="summary", day=2)
    third = two.send(two.ask("Hi"), day=2)

    def costs(since: str | None = None) -> list[list[Spent]]:
        return [store.spending.by(group, since=since) for group in GROUPS]

    assert costs() == costs(LONG_AGO)
    store.records.outcome(first, cost_usd=0.5)
    store.records.outcome(third, cost_usd=0.25)
    assert costs() == costs(LONG_AGO)
    assert store.spending.by("total") == [store.spending.total()] == [Spent("", 3, 0.75, 1)]
    assert [(each.name, each.requests) for each in store.spending.by("day")] == [("2026-03-01", 1), ("2026-03-02", 2)]
    store.records.outcome(second, cost_usd=1.0)
    assert costs() == costs(LONG_AGO)


def test_tokens_are_those_that_were_reported(store: Store) -> None:
    chat = Chat(store)
    asked = chat.ask("Hello")
    request = chat.send(asked, day=1)
    usage = Usage(100, 10, 40, cost_usd=0.5)
    reply = Message(new_id(), "assistant", (Text("so"),), parent=asked, request=request, usage=usage)
    store.tree.append(chat.id, reply)
    store.records.outcome(request, cost_usd=0.5)
    summary = chat.send(asked, purpose="summary", day=2)
    store.records.outcome(summary, cost_usd=0.25, usage={"input": 30, "output": 5})
    kept = [store.spending.tokens(group) for group in GROUPS]
    assert kept == [store.spending.tokens(group, since=LONG_AGO) for group in GROUPS]
    assert kept == [store.spending.tokens(group, conversation=chat.id) for group in GROUPS]
    (total,), days, (model,), (home,), purposes = kept
    assert total == TokenUse("", 2, 130, 15, 40, 0.75)
    assert [(day.name, day.input) for day in days] == [("2026-03-01", 100), ("2026-03-02", 30)]
    assert (model.name, home.name) == ("a:b", chat.id)
    assert [each.name for each in purposes] == ["reply", "summary"]


def test_calls_of_no_conversation_are_in_the_sums(store: Store) -> None:
    number = store.charges.begin("bob", "a:b", "embedding", 0.5)
    assert store.spending.total() == Spent("", 1, 0.0, 0, 0.5)
    store.charges.settle(number, 0.25, Usage(100, 10))
    assert store.charges.spent_today("bob") == 0.25
    for group, name in zip(GROUPS[2:], ("a:b", "no conversation", "embedding"), strict=True):
        assert store.spending.by(group) == [Spent(name, 1, 0.25)]
        assert store.spending.tokens(group) == [TokenUse(name, 1, 100, 10, 0, 0.25)]
    assert store.spending.total(store.tree.create().id) == Spent()


# -- sources over time


def test_chosen_and_used_sources_are_counted_by_day_and_month(store: Store) -> None:
    chat = Chat(store)
    first = chat.send(chat.ask("Hello"), SourceUse(STYLE, "always", 40), SourceUse(API, "agent", 20, 0.8), day=1)
    store.source_uses.signs(first, {STYLE: "", API: "quoted"})
    chat.send(chat.ask("And?"), SourceUse(API, "agent", 20, 0.6), SourceUse(ISSUE, "agent", 5, 0.4), day=2)
    one, two = periods(store, "day")
    assert one == SourcePeriod("2026-03-01", 1, 2, 1, 1, 1, 0.8, 60)
    assert (two.name, two.chosen, two.looked, two.used) == ("2026-03-02", 2, 0, 0)
    assert two.score == pytest.approx(0.5)
    (month,) = periods(store)
    assert (month.name, month.replies, month.included, month.chosen, month.used) == ("2026-03", 2, 4, 3, 1)
    assert periods(store, since="2026-03-02") == [replace(two, name="2026-03")]


# -- documents together


def test_documents_of_a_message_and_of_its_reply_are_used_together(store: Store) -> None:
    chat = Chat(store)
    asked = say(store, chat.id, BUDGET, BROKEN)
    block = References((FOUND,), vault="/notes")
    reply = Message(new_id(), "assistant", (Text("so"), block), parent=asked, request=chat.send(asked))
    store.tree.append(chat.id, reply)
    say(store, chat.id, BUDGET, parent=reply.id)
    uses = {"Boat.md": 1, "Money/Budget.md": 2}
    assert together(store) == together(store, "conversation") == UsedTogether(uses, {BOTH: 1})


def test_what_was_used_together_since_a_report_is_in_the_next_one(store: Store) -> None:
    first, other = store.tree.create().id, store.tree.create().id
    head = say(store, first, BUDGET, FOUND)
    assert together(store).pairs == {BOTH: 1}
    say(store, first, FOUND, BUDGET, parent=head)
    say(store, other, BUDGET, FOUND)
    assert together(store).pairs == {BOTH: 3}
    assert together(store, "conversation").pairs == {BOTH: 2}
    store.tree.delete(first)
    store.trash.empty("9")
    assert together(store).pairs == {BOTH: 1}
