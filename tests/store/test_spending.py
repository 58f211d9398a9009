"""Costs and tokens of all calls, summed in every way."""

import time

import pytest
from tests.store.test_source_uses import Chat

from recto.base.ids import new_id
from recto.chat.blocks import Text
from recto.chat.message import Message, Usage
from recto.store.spending import Spent, SpentBy, TokenUse
from recto.store.store import Store

GROUPS: tuple[SpentBy, ...] = ("total", "day", "model", "conversation", "purpose")


def test_costs_are_summed_by_day_model_conversation_and_purpose(store: Store) -> None:
    one, two = Chat(store), Chat(store)
    first, second = one.send(one.ask("Hello"), day=1), one.send(one.ask("and"), purpose="summary", day=2)
    third = two.send(two.ask("Hi"), day=2)
    store.records.outcome(first, cost_usd=0.5)
    store.records.outcome(third, cost_usd=0.25)
    assert store.spending.by("total") == [store.spending.total()] == [Spent("", 3, 0.75, 1)]
    assert [(each.name, each.requests) for each in store.spending.by("day")] == [("2026-03-01", 1), ("2026-03-02", 2)]
    store.records.outcome(second, cost_usd=1.0)
    assert store.spending.by("conversation") == [Spent(one.id, 2, 1.5), Spent(two.id, 1, 0.25)]
    assert store.spending.by("purpose", two.id) == [Spent("reply", 1, 0.25)]
    assert store.spending.by("model", since="2026-03-02") == [Spent("a:b", 2, 1.25)]
    assert store.spending.total(since="2027") == Spent()


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
    found = [store.spending.tokens(group) for group in GROUPS]
    assert found == [store.spending.tokens(group, conversation=chat.id) for group in GROUPS]
    (total,), days, (model,), (home,), purposes = found
    assert (total.requests, total.input, total.output, total.cache_read, total.cost_usd) == (2, 130, 15, 40, 0.75)
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
        assert store.spending.tokens(group) == [TokenUse(name, 1, 0.25, input=100, output=10)]
    assert store.spending.total(store.tree.create().id) == Spent()


@pytest.mark.parametrize(("zone", "day"), [("UTC", "2026-03-01"), ("Pacific/Kiritimati", "2026-03-02")])
def test_days_are_those_of_the_users_clock(store: Store, zone: str, day: str, monkeypatch: pytest.MonkeyPatch) -> None:
    chat = Chat(store)
    store.records.outcome(chat.send(chat.ask("Hello"), day=1), cost_usd=0.5)  # at noon
    with monkeypatch.context() as patch:
        patch.setenv("TZ", zone)
        time.tzset()
        assert [each.name for each in (*store.spending.by("day"), *store.spending.tokens("day"))] == [day, day]
    time.tzset()
