"""Facts that are learned by themselves after a reply, as the settings say."""

from typing import Any

import pytest
from tests.conftest import Open, Script

from recto.events import Event, FactLearned, FactProposed

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
    at = desk(script(OK), context__learn_facts="on")
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
    at = desk(script(OK), context__learn_facts="ask")
    events = heard(at.conversation(), SAID, answer)
    assert isinstance(events[0], FactProposed)
    assert (events[0].text, at.facts.count) == (SAID, count)


def test_where_nobody_can_be_asked_nothing_is_learned(desk: Open, script: Script) -> None:
    at = desk(script(OK), context__learn_facts="ask")
    at.conversation().ask(SAID)
    assert at.facts.count == 0


def test_what_a_memory_file_says_is_not_learned_again(desk: Open, script: Script, tmp_path: Any) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home/memory.md").write_text("My sister Anna lives in Berlin.")
    at = desk(script(OK), context__learn_facts="on")
    at.conversation().ask(SAID)
    assert at.facts.count == 0


@pytest.mark.parametrize("switch", ["context__use_facts", "context__memory_integration"])
def test_memory_that_is_off_learns_nothing(desk: Open, script: Script, switch: str) -> None:
    at = desk(script(OK), context__learn_facts="on", **{switch: False})
    at.conversation().ask(SAID)
    assert at.facts.count == 0


def test_what_the_user_asks_to_remember_is_learned(desk: Open, script: Script) -> None:
    at = desk(script(OK), context__learn_facts="on")
    assert heard(at.conversation(), "Remember: the gate code is 4711.") == [FactLearned(1, "The gate code is 4711.")]
