"""What is sent of a message that is larger than the window: its ends, and its middle condensed."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import Open, Script

from recto.api.blocking import Desk
from recto.compaction.condensed import LongText, divide, extract_middle, question_in, sentences_about
from recto.events import ContextCompacted, Event, Replied, Sent, SummaryRequested

FILLER = [f"Row {number} of the report says that nothing much has happened on that day." for number in range(600)]
FACT = "The sluice at Norderfeld was closed for 41 hours."
OTHER = "Mrs Kowalczyk has decided to replace the pump before winter."
QUESTION = "How long was the sluice closed?"


def report() -> str:
    return "\n".join([QUESTION, *FILLER[:300], FACT, *FILLER[300:400], OTHER, *FILLER[400:], "That is all of it."])


def quarter(text: str) -> int:
    return len(text) // 4


def of(kind: type, events: list[Event]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


def sent_text(at: Desk, events: list[Event]) -> str:
    return str(json.loads(at.rebuild(of(Sent, events)[0].request))["messages"][-1]["content"])


# -- the text


def test_both_ends_are_verbatim_and_the_middle_answers_the_question() -> None:
    text = report()
    made, _ = LongText(text, "01A", question_in(text)).condensed(900, quarter)
    assert quarter(made) <= 900
    assert made.startswith(f"{QUESTION}\n{FILLER[0]}")
    assert made.endswith(f"{FILLER[-1]}\nThat is all of it.")
    assert FACT in made
    assert OTHER in made
    assert made.index(FACT) < made.index(OTHER)
    assert "kept as message 01A" in made


def test_the_question_is_found_at_the_end_too() -> None:
    text = f"{' '.join(FILLER)}\n\n{QUESTION}"
    assert question_in(text) == QUESTION
    assert question_in("") == ""


def test_a_question_in_the_middle_brings_its_answer() -> None:
    text = "\n".join([*FILLER[:40], "Where is the spare key?", "Under the blue pot.", *FILLER[40:80]])
    assert sentences_about(text, "where do we keep the spare key", 60, quarter) == [
        "Where is the spare key?",
        "Under the blue pot.",
    ]


def test_a_sentence_brings_what_it_announces() -> None:
    how = ["To mend the tide table, run this:", "```", "make tides", "```"]
    text = "\n".join([*FILLER[:40], *how, *FILLER[40:80]])
    assert sentences_about(text, "how is the tide table mended", 60, quarter) == [how[0], how[2]]


def test_no_sentence_of_the_middle_stands_twice() -> None:
    text = "\n".join([*FILLER[:40], *["Does the order matter?"] * 3, *FILLER[40:80]])
    made = extract_middle(text, "Does the order matter?", 400, quarter, 160)
    assert made.count("Does the order matter?") == 1


def test_without_room_for_a_middle_the_ends_get_all() -> None:
    made, middle = LongText(report(), "01A", QUESTION).condensed(80, quarter)
    assert middle == ""
    assert quarter(made) <= 80
    assert made.startswith("How long")


@given(st.text(max_size=1000), st.integers(1, 200))
def test_a_condensed_text_is_within_its_limit(text: str, limit: int) -> None:
    made, _ = LongText(text, "01A", question_in(text)).condensed(limit, quarter)
    assert quarter(made) <= limit


@given(st.text(max_size=400), st.floats(0, 0.4))
def test_a_division_leaves_nothing_out_but_space(text: str, share: float) -> None:
    parts = divide(text, int(len(text) * share))
    assert "".join((parts.beginning + parts.middle + parts.end).split()) == "".join(text.split())


# -- through the engine


def test_the_recall_tool_finds_what_the_middle_leaves_out_in_the_same_turn(desk: Open, script: Script) -> None:
    call = {"tool_calls": [{"name": "recall", "arguments": {"query": "row 433 of the report"}}]}
    at = desk(script(call, {"text": "so it is"}, {"error": "unreachable", "when": "summary"}, limit=4000))
    talk = at.conversation()
    events = list(talk.stream(report()))
    body = json.loads(at.rebuild(of(Sent, events)[0].request))
    assert "recall" in [tool["function"]["name"] for tool in body["tools"]]
    assert "the recall tool searches all of it" in body["messages"][-1]["content"]
    assert FILLER[433] not in body["messages"][-1]["content"]
    [result] = [result for message in talk.messages() for result in message.results]
    assert not result.is_error
    assert FILLER[433] in result.text
    assert of(Replied, events)[-1].message.text == "so it is"


def test_sentences_are_chosen_without_a_model_and_a_note_says_so(desk: Open, script: Script) -> None:
    at = desk(script({"text": "ok"}, limit=4000))
    talk = at.conversation()
    events = list(talk.stream(report()))
    assert not of(SummaryRequested, events)
    assert FACT in sent_text(at, events)
    [compacted] = of(ContextCompacted, events)
    assert compacted.excerpts == 1
    assert any("the middle of your message is shortened to chosen sentences" in note for note in compacted.notes)
    assert talk.messages()[0].text == report()


def test_a_draft_shows_the_condensed_text_and_asks_no_model(desk: Open, script: Script) -> None:
    at = desk(script({"text": "ok"}, limit=4000))
    talk = at.conversation()
    planned = talk.window(report())
    assert planned.total <= 4000
    assert "its middle condensed" in planned.sections[-1].picks[-1].because
    assert not at.store.records.ids(talk.id)


@pytest.mark.untraced
def test_a_condensed_message_is_found_by_its_number_until_it_is_archived(desk: Open, script: Script) -> None:
    call = {"tool_calls": [{"name": "recall", "arguments": {"messages": ["#1"], "offset": 20_000}}]}
    at = desk(script(call, {"text": "read"}, {"error": "unreachable", "when": "summary"}, limit=4000))
    talk = at.conversation()
    talk.ask(report())
    [result] = [result for message in talk.messages() for result in message.results]
    assert report()[20_100:20_200] in result.text
    assert talk.summary_block().messages_archived == 0
