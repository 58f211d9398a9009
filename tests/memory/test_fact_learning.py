"""Facts that are learned by themselves after a reply, as the settings say."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import Open, Script

from recto.api.blocking import Desk
from recto.events import Event, FactLearned, FactProposed
from recto.memory.fact_learning import is_worth_asking, proposal_order, supported_facts

OK = {"text": "ok"}
SAID = "My sister Anna lives in Berlin."


def heard(talk: Any, said: str, answer: str = "") -> list[Event]:
    events = []
    for event in talk.stream(said):
        if isinstance(event, FactProposed) and answer:
            getattr(event, answer)()
        events.append(event)
    return [event for event in events if isinstance(event, FactLearned | FactProposed)]


def test_nothing_is_learned_unless_it_is_switched_on(desk: Open, script: Script) -> None:
    at = desk(script(OK))
    assert heard(at.conversation(), SAID) == []
    assert at.facts.count == 0


def test_what_is_learned_is_told_and_can_be_taken_back(desk: Open, script: Script) -> None:
    at = desk(script(OK, summarizes=False), context__learn_facts="on")
    talk = at.conversation()
    assert heard(talk, SAID) == [FactLearned(1, SAID)]
    fact, user = at.facts.fact(1), talk.messages()[0]
    assert (fact.message, fact.learned_by, fact.confidence) == (user.id, "Recto", 0.8)
    assert user.learning_points == ("1",)
    assert heard(talk, SAID) == [], "known already"
    at.facts.forget(1)
    assert at.facts.count == 0


@pytest.mark.parametrize(("answer", "count"), [("accept", 1), ("refuse", 0), ("", 0)])
def test_each_fact_is_asked_about(desk: Open, script: Script, answer: str, count: int) -> None:
    at = desk(script(OK, summarizes=False), context__learn_facts="ask")
    events = heard(at.conversation(), SAID, answer)
    assert isinstance(events[0], FactProposed)
    assert (events[0].text, at.facts.count) == (SAID, count)


def test_where_nobody_can_be_asked_nothing_is_learned(desk: Open, script: Script) -> None:
    at = desk(script(OK, summarizes=False), context__learn_facts="ask")
    at.conversation().ask(SAID)
    assert at.facts.count == 0


def test_what_a_memory_file_says_is_not_learned_again(desk: Open, script: Script, tmp_path: Any) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home/memory.md").write_text("My sister Anna lives in Berlin.")
    at = desk(script(OK, summarizes=False), context__learn_facts="on")
    at.conversation().ask(SAID)
    assert at.facts.count == 0


@pytest.mark.parametrize("switch", ["context__use_facts", "context__memory_integration"])
def test_memory_that_is_off_learns_nothing(desk: Open, script: Script, switch: str) -> None:
    at = desk(script(OK, summarizes=False), context__learn_facts="on", **{switch: False})
    at.conversation().ask(SAID)
    assert at.facts.count == 0


# -- by a model


def proposing(*items: dict[str, str]) -> dict[str, Any]:
    return {"text": f"```json\n{json.dumps(items)}\n```", "when": "facts"}


def settled(at: Desk) -> None:
    """Waits for what learns in the background."""
    while at.engine.learner._tasks._tasks:
        time.sleep(0.005)


TRAIN = "I take the train from Leeds to work every morning."


def test_a_model_points_out_facts_behind_the_reply_and_they_are_told_with_the_next_message(
    desk: Open, script: Script
) -> None:
    item = {"quote": "train from Leeds", "fact": "The user's train starts in Leeds", "kind": "other"}
    at = desk(script(OK, proposing(item), tools=False), context__learn_facts="on")
    talk = at.conversation()
    assert heard(talk, f"Hello. {TRAIN}") == []
    settled(at)
    fact = at.facts.fact(1)
    assert (fact.text, fact.message, fact.confidence) == (TRAIN, talk.messages()[0].id, 0.8)
    assert fact.learned_by.startswith("scripted:")
    assert talk.messages()[0].learning_points == ("1",)
    assert heard(talk, "What is two and two?") == [FactLearned(1, TRAIN)]
    at.facts.forget(1)
    assert at.facts.count == 0


def test_who_does_not_wait_for_the_next_message_can_ask_what_was_learned(desk: Open, script: Script) -> None:
    at = desk(script(OK, proposing({"quote": TRAIN})), context__learn_facts="on")
    talk = at.conversation()
    talk.ask(TRAIN)
    settled(at)
    assert list(talk.pending_events()) == [FactLearned(1, TRAIN)]
    assert list(talk.pending_events()) == []
    assert heard(talk, "What is two and two?") == []


def test_what_a_model_costs_is_counted(desk: Open, script: Script) -> None:
    model = script(OK, proposing(), prices={"input": 1000.0, "output": 1000.0})
    at = desk(model, context__learn_facts="on")
    at.conversation().ask(TRAIN)
    settled(at)
    spent = {each.name: each.cost_usd for each in at.spending("purpose")}
    assert spent["facts"] > 0


def test_a_question_and_a_task_cost_nothing(desk: Open, script: Script) -> None:
    at = desk(script(OK, proposing()), context__learn_facts="on")
    for said in ("Where does Anna live?", "Translate: my cat is black", "Fix the bug in my code.", "hi"):
        at.conversation().ask(said)
    settled(at)
    assert {at.record(id).purpose for id in at.store.records.ids()} == {"reply"}


@pytest.mark.parametrize("step", [{"text": "I found nothing."}, {"error": "unreachable"}, {"text": '{"quote": 1}'}])
def test_where_the_model_fails_wording_decides(desk: Open, script: Script, step: dict[str, Any]) -> None:
    at = desk(script(OK, step | {"when": "facts"}), context__learn_facts="on", reply__tries=1)
    at.conversation().ask(SAID)
    settled(at)
    assert [fact.text for fact in at.facts.facts()] == [SAID]


def test_what_the_user_asks_to_remember_waits_for_no_model(desk: Open, script: Script) -> None:
    at = desk(script(OK, proposing()), context__learn_facts="on")
    assert heard(at.conversation(), "Remember: the gate code is 4711.") == [FactLearned(1, "The gate code is 4711.")]


@pytest.mark.parametrize(("answer", "count"), [("accept", 1), ("refuse", 0)])
def test_the_user_is_asked_after_the_next_reply(desk: Open, script: Script, answer: str, count: int) -> None:
    at = desk(script(OK, proposing({"quote": TRAIN})), context__learn_facts="ask")
    talk = at.conversation()
    assert heard(talk, TRAIN, answer) == []
    settled(at)
    assert at.facts.count == 0
    events = heard(talk, "What is two and two?", answer)
    assert isinstance(events[0], FactProposed)
    assert (events[0].text, at.facts.count) == (TRAIN, count)


def test_the_model_can_be_left_out_of_it(desk: Open, script: Script) -> None:
    at = desk(script(OK, proposing({"quote": TRAIN})), context__learn_facts="on", context__learn_by_model=False)
    assert heard(at.conversation(), SAID) == [FactLearned(1, SAID)]
    assert {at.record(id).purpose for id in at.store.records.ids()} == {"reply"}


def test_what_a_rule_says_is_not_learned_from_a_model_either(desk: Open, script: Script, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir(exist_ok=True)
    (tmp_path / "home/memory.md").write_text(TRAIN)
    at = desk(script(OK, proposing({"quote": TRAIN})), context__learn_facts="on")
    at.conversation().ask(TRAIN)
    settled(at)
    assert at.facts.count == 0


# -- what the user's own words support

MESSAGE = "My sister Anna called. She lives in Berlin since 2019, not in Bonn."


def proposed(quote: str, fact: str = "", message: str = MESSAGE) -> list[str]:
    found = supported_facts(json.dumps([{"quote": quote, "fact": fact, "kind": "person"}]), message)
    assert found is not None
    return [each.text for each in found]


def test_a_sentence_is_kept_as_the_user_wrote_it() -> None:
    message = "I keep bees in Graz. Where can I buy frames?"
    assert proposed("keep bees", "The user is a beekeeper", message) == ["I keep bees in Graz."]


def test_a_sentence_that_leans_on_another_is_told_in_words_of_the_message() -> None:
    fact = "My sister Anna lives in Berlin since 2019, not in Bonn"
    assert proposed("She lives in Berlin since 2019, not in Bonn.", fact) == [fact]
    assert proposed("She lives in Berlin", f"The user's {fact[3:]}") == [f"The user's {fact[3:]}"]


@pytest.mark.parametrize(
    ("quote", "fact"),
    [
        ("She lives in Berlin", "My sister Anna lives in Hamburg since 2019, not in Bonn"),
        ("She lives in Berlin", "My sister Anna lives in Berlin since 2020, not in Bonn"),
        ("She lives in Berlin", "My sister Anna lives in Berlin since 2019, in Bonn"),
        ("She lives in Berlin", "Anna"),
        ("She lives in Berlin", ""),
        ("She lives in Hamburg", "My sister Anna lives in Berlin since 2019, not in Bonn"),
        ("", "My sister Anna lives in Berlin"),
    ],
)
def test_what_the_message_does_not_say_is_dropped(quote: str, fact: str) -> None:
    assert proposed(quote, fact) == []


@pytest.mark.parametrize(
    "message",
    [
        "Where does my sister live?",
        "Translate: my brother is a pilot.",
        "If I lived in Rome, I would learn Italian.",
        "> I live in Paris",
        'He said "I live in Rome" to me.',
        "I'm tired today.",
        "Write a poem about my cat.",
        "def f(): return 'my name is Tom'",
        "My house is red.\n" * 9,
        "The build fails on line 40.",
        "Berlin is the capital of Germany.",
        "Die Tabelle hat drei Spalten.",
        "I love it, especially the end.",
        "Thanks for my new password.",
        "I read the article about bees.",
    ],
)
def test_nothing_of_it_can_be_pointed_to(message: str) -> None:
    assert not is_worth_asking(message)
    assert proposed(message.splitlines()[0], message.splitlines()[0], message) == []


@pytest.mark.parametrize(
    "message",
    [
        "Je travaille à Lyon depuis dix ans.",
        "Ik heet Filipa.",
        "Я за освітою ґрунтознавиця, ANOVA робила в Excel ще з дисертації.",
        "أنا نهى، منسقة البيانات (يعني كل إشي مش طبي بطلع عليّ) في مستوصف خيري بحي الرمانة.",
    ],
)
def test_other_languages_are_asked_about(message: str) -> None:
    assert is_worth_asking(message)
    assert proposed(message, message, message) == [message]


@pytest.mark.parametrize("answer", ["", "none", "{}", "[", '{"facts": 3}', "[" * 5000])
def test_an_answer_that_is_no_list_is_known_as_such(answer: str) -> None:
    assert supported_facts(answer, MESSAGE) is None


def test_a_list_may_stand_between_other_words_and_hold_anything() -> None:
    assert supported_facts("Here: ```json\n[]\n```", MESSAGE) == []
    assert supported_facts('[1, null, "x", {}, {"quote": 3}, {"quote": "x", "fact": []}]', MESSAGE) == []


def test_braces_in_a_message_do_not_break_the_order() -> None:
    assert "{a} {0}" in proposal_order("{a} {0}")


@given(st.text(max_size=300), st.text(max_size=60))
def test_any_proposal_can_be_checked(message: str, quote: str) -> None:
    found = supported_facts(json.dumps([{"quote": quote, "fact": quote}]), message)
    assert found is not None
