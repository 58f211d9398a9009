"""What replies and side calls cost, and the limits that stop a call before it is made."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Open, Script

from recto.api.blocking import Talk
from recto.errors import SpendLimit, Unreachable
from recto.events import TextDelta
from recto.store.spending import Spent

DEAR = {"input": 1000.0, "output": 10_000.0}
"""A thousandth of a dollar for a token in, a hundredth for one out."""
USAGE = {"input": 100, "output": 10}
REPLY = {"text": "Yes.", "usage": USAGE}
COST = 0.2


def near(amount: float) -> Any:
    return pytest.approx(amount)


@pytest.fixture
def sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    path = tmp_path / "sent.jsonl"
    monkeypatch.setenv("RECTO_SCRIPTED_LOG", str(path))
    return lambda: len(path.read_bytes().splitlines()) if path.exists() else 0


def until_stopped(talk: Talk, text: str) -> SpendLimit:
    for _ in range(20):
        try:
            talk.ask(text)
        except SpendLimit as why:
            return why
    raise AssertionError("nothing stopped it")


def test_a_reply_tells_what_it_cost(desk: Open, script: Script) -> None:
    prices = {"input": 1000, "output": 10_000, "cache_read": 100, "cache_write": 1250, "reasoning": 20_000}
    usage = {"input": 100, "output": 10, "cache_read": 40, "cache_write": 20, "reasoning": 5}
    reply = desk(script({"text": "Yes.", "usage": usage}, prices=prices)).conversation().ask("hello")
    assert reply.cost == reply.usage.cost_usd == pytest.approx(0.040 + 0.004 + 0.025 + 0.050 + 0.100)


def test_without_a_price_the_cost_is_unknown_and_not_nothing(desk: Open, script: Script) -> None:
    opened = desk(script(REPLY))
    reply = opened.conversation().ask("hello")
    assert reply.cost is None
    (spent,) = opened.spending("model")
    assert (spent.requests, spent.cost_usd, spent.unpriced) == (1, 0.0, 1)


def test_without_a_reported_usage_our_own_counts_are_priced(desk: Open, script: Script) -> None:
    reply = desk(script({"text": "Yes.", "usage": None}, prices=DEAR)).conversation().ask("hello")
    assert not reply.usage.reported
    assert reply.cost == pytest.approx(reply.usage.input * 0.001 + reply.usage.output * 0.01)


def test_a_reply_that_was_stopped_is_paid_for(desk: Open, script: Script) -> None:
    opened = desk(script({"text": "one never", "delay_s": 600}, prices=DEAR))
    talk = opened.conversation()
    events = talk.stream("hello")
    for event in events:
        if isinstance(event, TextDelta):
            break
    events.close()
    stopped = talk.messages()[-1]
    assert stopped.status == "stopped"
    assert stopped.usage is not None
    assert stopped.usage.cost_usd is not None
    (spent,) = opened.spending("conversation")
    assert spent.cost_usd == stopped.usage.cost_usd > 0
    assert (spent.open_usd, spent.unpriced) == (0, 0)


def test_a_call_that_failed_before_its_answer_costs_nothing(desk: Open, script: Script) -> None:
    opened = desk(script({"error": "unreachable"}, prices=DEAR))
    with pytest.raises(Unreachable):
        opened.conversation().ask("hello")
    (spent,) = opened.spending("day")
    assert (spent.requests, spent.cost_usd, spent.open_usd, spent.unpriced) == (1, 0.0, 0.0, 0)


def test_summaries_are_counted_by_purpose(desk: Open, script: Script) -> None:
    summary = {"text": "They spoke of boats.", "when": "summary", "usage": {"input": 1000, "output": 0}}
    opened = desk(script(REPLY, summary, prices=DEAR))
    talk = opened.conversation()
    for number in range(8):
        talk.ask(f"question {number} " + "and more of it " * 60)
    talk.compact()
    assert opened.spending("purpose", conversation=talk.id) == [
        Spent("reply", 8, near(8 * COST)),
        Spent("summary", 1, near(1.0)),
    ]
    (conversation,) = opened.spending("conversation")
    assert (conversation.name, conversation.cost_usd) == (talk.id, near(8 * COST + 1))


def test_a_limit_stops_before_the_call_and_keeps_the_message(
    desk: Open, script: Script, sent: Callable[[], int]
) -> None:
    model = script(REPLY, prices=DEAR)
    talk = desk(model, spend__conversation=2, reply__max_tokens=50).conversation()
    talk.ask("hello")
    before = sent()
    told = until_stopped(talk, "again")
    assert (told.key, told.limit) == ("spend.conversation", 2)
    assert told.spent <= 2 < told.spent + told.at_most
    assert told.at_most > 0.5, "fifty tokens out, and all that goes in"
    assert sent() - before == round(told.spent / COST) - 1
    assert "`recto context set spend.conversation AMOUNT` raises that" in told.message
    assert told.message.endswith(f"; your message is kept in {talk.name}")
    assert "\n" not in told.message
    assert [(each.role, each.text) for each in talk.messages()][-1] == ("user", "again")
    again = desk(model, reply__max_tokens=50).conversation(talk.id, settings={told.key: 100})
    assert again.ask("and now?").text == "Yes."


def test_yesterday_does_not_count_for_today(desk: Open, script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = desk(script(REPLY, prices=DEAR), spend__day=0.9, reply__max_tokens=10)
    with monkeypatch.context() as patch:
        patch.setattr("recto.turn.planned_request.now", lambda: "2026-01-31T12:00:00.000Z")
        for _ in range(4):
            opened.conversation().ask("hello")
    opened.conversation().ask("hello")
    days = opened.spending("day")
    assert [(each.requests, each.cost_usd) for each in days] == [(4, near(4 * COST)), (1, near(COST))]
    assert opened.spending("day", since="2026-06-01") == days[1:]
    for _ in range(3):
        opened.conversation().ask("hello")
    with pytest.raises(SpendLimit, match=r"for today \(spend.day\)"):
        opened.conversation().ask("hello")


def test_turns_at_the_same_time_share_the_limit(desk: Open, script: Script, sent: Callable[[], int]) -> None:
    """Each could cost 1.2 dollars: of the eight that begin together only two fit into three dollars."""
    model = script({"text": "Yes.", "hang_s": 1, "usage": {"input": 100, "output": 100}}, prices=DEAR)
    opened = [desk(model, spend__day=3, reply__max_tokens=110) for _ in range(4)]
    ended: list[str] = []

    def ask(number: int) -> None:
        try:
            opened[number % 4].conversation().ask("hello")
            ended.append("replied")
        except SpendLimit:
            ended.append("stopped")

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(ended) == ["replied"] * 2 + ["stopped"] * 6
    assert sent() == 2


def test_a_limit_that_is_reached_leaves_the_summary_to_chosen_sentences(desk: Open, script: Script) -> None:
    summary = {"text": "They spoke of boats.", "when": "summary"}
    model = script(REPLY, summary, prices={"input": 1000, "output": 0})
    talk = desk(model).conversation()
    for number in range(8):
        talk.ask(f"The mast of boat {number} is {number + 10} metres tall. " + "And more of it. " * 30)
    limited = desk(model, spend__conversation=1).conversation(talk.id)
    block = limited.compact()
    assert block.made_by == "extractive"
    (note,) = [note for note in block.notes if "spend.conversation" in note]
    assert "could cost" in note


def test_a_price_that_is_unknown_is_told_where_there_is_a_limit(desk: Open, script: Script) -> None:
    model = script({"text": "Yes."})
    assert not desk(model).conversation().ask("hello").notes
    talk = desk(model, spend__day=1).conversation()
    told = f"the price of {model} is unknown, so its cost counts toward no spending limit; set `prices` in models.toml"
    assert talk.ask("hello").notes == (told,)
    assert talk.ask("again").notes == ()
