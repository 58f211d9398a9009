"""How many sources were chosen and used over time, what was used together, and the tokens of every day and model."""

from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.store.test_source_uses import API, ISSUE, LONG_AGO, STYLE, Chat
from tests.store.test_usage_totals import BROKEN, BUDGET, FOUND, say

from recto.api.store_reader import StoreReader
from recto.base.ids import new_id
from recto.chat.blocks import References, Text
from recto.chat.message import Message, Usage
from recto.store.source_uses import SourceUse
from recto.store.spending import SpentBy
from recto.store.store import Store
from recto.store.token_use import TokenUse, token_use
from recto.store.usage_totals import UsageTotals
from recto.store.use_over_time import (
    MOST_PAIRED,
    Period,
    SourcePeriod,
    Together,
    count_together,
    documents_together,
    kept_periods,
    kept_together,
    source_periods,
)


def periods(
    store: Store, by: Period = "month", agent: str | None = None, since: str | None = None
) -> list[SourcePeriod]:
    """From the requests themselves, and the same from the sums that are kept."""
    with store.database.read() as connection:
        found = source_periods(connection, by, agent, since)
    if since is None:
        kept = UsageTotals(store.database).read(lambda connection: kept_periods(connection, by, agent))
        assert [each.to_json() for each in kept or ()] == [each.to_json() for each in found]
    return found


def together(store: Store, by: Together = "turn") -> list[list[str]]:
    """As above."""
    with store.database.read() as connection:
        found = list(documents_together(connection, "/notes", by))
    kept = UsageTotals(store.database).read(lambda connection: kept_together(connection, "/notes", by))
    assert kept == count_together(found)
    return [sorted(group) for group in found]


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


def test_all_rounds_of_a_turn_are_one_reply(store: Store) -> None:
    chat = Chat(store)
    asked = chat.ask("Hello")
    for _ in range(3):
        chat.send(asked, SourceUse(API, "agent", 10, 0.5))
    (found,) = periods(store)
    assert (found.replies, found.chosen, found.tokens) == (1, 1, 30)


def test_periods_of_one_agent_leave_the_others_out(store: Store) -> None:
    Chat(store).turn("Hello", {API: "quoted"})
    Chat(store, "boats").turn("Hello", {API: ""})
    (found,) = periods(store, agent="boats")
    assert (found.replies, found.used) == (1, 0)
    assert periods(store, agent="nobody") == []


def test_documents_of_a_message_and_of_its_reply_are_used_together(store: Store) -> None:
    chat = Chat(store)
    asked = say(store, chat.id, BUDGET, BROKEN)
    request = chat.send(asked)
    block = References((FOUND,), vault="/notes")
    reply = Message(new_id(), "assistant", (Text("so"), block), parent=asked, request=request)
    store.tree.append(chat.id, reply)
    say(store, chat.id, BUDGET, parent=reply.id)
    assert together(store) == [["Boat.md", "Money/Budget.md"], ["Money/Budget.md"]]
    assert together(store, "conversation") == [["Boat.md", "Money/Budget.md", "Money/Budget.md"]]


def test_pairs_are_counted_once_for_each_group() -> None:
    found = count_together([["a", "b", "a"], ["b", "a"], ["c"]])
    assert found.uses == {"a": 3, "b": 2, "c": 1}
    assert found.pairs == {("a", "b"): 2}


def test_a_conversation_with_very_many_documents_does_not_pair_them_all() -> None:
    found = count_together([[f"{number:03}" for number in range(3 * MOST_PAIRED)]])
    assert len(found.uses) == 3 * MOST_PAIRED
    assert len(found.pairs) == MOST_PAIRED * (MOST_PAIRED - 1) // 2


def test_tokens_are_those_that_were_reported(store: Store) -> None:
    chat = Chat(store)
    asked = chat.ask("Hello")
    request = chat.send(asked, day=1)
    usage = Usage(100, 10, 40, cost_usd=0.5)
    store.tree.append(
        chat.id, Message(new_id(), "assistant", (Text("so"),), parent=asked, request=request, usage=usage)
    )
    store.records.outcome(request, cost_usd=0.5)
    summary = chat.send(asked, purpose="summary", day=2)
    store.records.outcome(summary, cost_usd=0.25, usage={"input": 30, "output": 5})
    groups: tuple[SpentBy, ...] = ("total", "day", "model", "conversation", "purpose")
    kept = [token_use(store.database, group) for group in groups]
    assert kept == [token_use(store.database, group, since=LONG_AGO) for group in groups]
    assert kept == [token_use(store.database, group, conversation=chat.id) for group in groups]
    (total,), days, (model,), (home,), purposes = kept
    assert total == TokenUse("", 2, 130, 15, 40, 0.75)
    assert [(day.name, day.input) for day in days] == [("2026-03-01", 100), ("2026-03-02", 30)]
    assert (model.name, home.name) == ("a:b", chat.id)
    assert [each.name for each in purposes] == ["reply", "summary"]


def test_an_empty_store_used_no_tokens(store: Store) -> None:
    assert token_use(store.database, "total") == [TokenUse("")]
    assert token_use(store.database, "day") == []
    assert periods(store) == []
    assert together(store) == []


def test_what_was_used_together_since_a_report_is_in_the_next_one(store: Store) -> None:
    first, other = store.tree.create().id, store.tree.create().id
    head = say(store, first, BUDGET, FOUND)
    assert together(store) == [["Boat.md", "Money/Budget.md"]]
    say(store, first, FOUND, BUDGET, parent=head)
    say(store, other, BUDGET, FOUND)
    assert together(store) == [["Boat.md", "Money/Budget.md"]] * 3
    assert len(together(store, "conversation")) == 2
    store.tree.delete(first)
    store.trash.empty("9")
    assert together(store) == [["Boat.md", "Money/Budget.md"]]


def test_a_store_that_is_read_only_is_counted_all_the_same(store: Store, tmp_path: Path) -> None:
    Chat(store).turn("Hello", {API: "quoted"})
    say(store, store.tree.create().id, BUDGET, FOUND)
    with store.database.read() as connection:
        connection.exec_driver_sql("PRAGMA query_only = 1")
    reader = StoreReader(store, tmp_path, None)
    assert [each.replies for each in reader.source_periods()] == [1]
    assert reader.used_together(Path("/notes")).pairs == {("Boat.md", "Money/Budget.md"): 1}
