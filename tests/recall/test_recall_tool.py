"""The recall tool: a model asks for what is archived, by a question or by number."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Open, Script
from tests.recall.test_picker import REPLY, SUMMARY, TOLD

from recto.api.blocking import Desk, Talk
from recto.events import Sent, ToolFinished
from recto.recall.recall_tool import recall_tool

LONG = "The log of the voyage. " * 600


def conversation(desk: Desk, *more: str) -> Talk:
    talk = desk.conversation()
    for text in (*TOLD, *more, "Thanks.", "Good.", "Fine.", "Right."):
        talk.ask(text)
    talk.compact()
    return talk


def called(desk: Open, script: Script, arguments: dict[str, Any], *more: str) -> tuple[str, bool]:
    """What the tool gives back for these arguments."""
    replies = [REPLY] * (len(TOLD) + len(more) + 4)
    at = desk(script(*replies, {"tool_calls": [{"name": "recall", "arguments": arguments}]}, {"text": "ok"}, SUMMARY))
    talk = conversation(at, *more)
    (done,) = [event for event in talk.stream("Please look it up") if isinstance(event, ToolFinished)]
    return done.result.text, done.result.is_error


def test_a_question_brings_messages_back_verbatim(desk: Open, script: Script) -> None:
    text, failed = called(desk, script, {"query": "how tall is the mast"})
    assert not failed
    assert f"#1 user: {TOLD[0]}" in text


def test_numbers_bring_those_messages_back(desk: Open, script: Script) -> None:
    text, _ = called(desk, script, {"messages": ["#7", "9", "#1-#1"]})
    assert [line.split()[0] for line in text.splitlines() if line.startswith("#")] == ["#1", "#7", "#9"]
    assert TOLD[3] in text


def test_a_number_alone_is_understood_too(desk: Open, script: Script) -> None:
    text, failed = called(desk, script, {"messages": "#1"})
    assert not failed
    assert TOLD[0] in text


def test_an_id_is_as_good_as_a_number(desk: Open, script: Script) -> None:
    at = desk(script(REPLY, SUMMARY))
    talk = conversation(at)
    id = talk.messages(limit=None)[0].id
    tool = recall_tool(at.engine.message_index, at.store, talk.session)
    assert TOLD[0] in tool.run({"messages": [id]})


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "give `query`, or `messages`"),
        ({"query": "  "}, "give `query`, or `messages`"),
        ({"messages": []}, "give `query`, or `messages`"),
        ({"messages": ["#9999"]}, "no archived message"),
        ({"messages": ["nonsense"]}, "no archived message"),
        ({"messages": ["#1"], "offset": "x"}, "offset must be"),
        ({"messages": ["#1"], "offset": 9000}, "has only"),
        ({"messages": ["#23"]}, "it is in the window"),
    ],
)
def test_what_makes_no_sense_is_told_to_the_model(
    desk: Open, script: Script, arguments: dict[str, Any], said: str
) -> None:
    text, failed = called(desk, script, arguments)
    assert failed
    assert said in text


def test_nothing_that_bears_on_it_is_an_answer_too(desk: Open, script: Script) -> None:
    text, failed = called(desk, script, {"query": "photosynthesis chloroplasts"})
    assert not failed
    assert "Nothing archived" in text


def test_a_long_message_comes_page_by_page(desk: Open, script: Script) -> None:
    text, _ = called(desk, script, {"messages": ["#17"]}, LONG)
    assert "more characters; go on with offset 6000]" in text
    rest, _ = called(desk, script, {"messages": ["#17"], "offset": 6000}, LONG)
    assert rest != text


def test_the_tool_is_offered_from_the_first_compaction_on(desk: Open, script: Script) -> None:
    at = desk(script(REPLY, SUMMARY))
    talk = at.conversation()
    for text in (*TOLD, "Thanks.", "Good.", "Fine."):
        talk.ask(text)
    assert "tools" not in json.loads(at.rebuild(talk.ask("and now?").request_id))
    talk.compact()
    offered = json.loads(at.rebuild(talk.ask("and now?").request_id))["tools"]
    assert [tool["function"]["name"] for tool in offered] == ["recall"]
    talk.clear()
    assert "tools" not in json.loads(at.rebuild(talk.ask("and now?").request_id))


def test_it_is_not_offered_where_it_would_take_much_of_the_window(desk: Open, script: Script) -> None:
    at = desk(script(REPLY, SUMMARY, limit=1200))
    talk = conversation(at)
    assert "tools" not in json.loads(at.rebuild(talk.ask("and now?").request_id))


def test_what_it_brought_back_is_neither_summed_up_nor_found_again(
    desk: Open, script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log.jsonl"
    replies = [REPLY] * (len(TOLD) + 4)
    call = {"tool_calls": [{"name": "recall", "arguments": {"query": "how tall is the mast"}}]}
    at = desk(script(*replies, call, {"text": "14 m."}, REPLY, SUMMARY))
    talk = conversation(at)
    monkeypatch.setenv("RECTO_SCRIPTED_LOG", str(log))
    talk.ask("Please look it up")
    for text in ("One.", "Two.", "Three.", "Four."):
        talk.ask(text)
    log.write_bytes(b"")
    talk.compact()
    (asked,) = [line for line in log.read_text().splitlines() if line]
    assert TOLD[0] not in asked
    window = talk.window("How tall is the mast of the Albatross?")
    names = [pick.name for section in window.sections if section.name == "recalled" for pick in section.picks]
    results = {message.id for message in talk.messages(limit=None) if message.role == "tool"}
    assert talk.messages(limit=None)[0].id in names
    assert not results & set(names)


def test_a_turn_with_the_tool_rebuilds(desk: Open, script: Script) -> None:
    at = desk(script(REPLY, SUMMARY))
    talk = conversation(at)
    assert [event for event in talk.stream("How tall is the mast?") if isinstance(event, Sent)]
    assert all(difference is None for _, difference in at.verify())
