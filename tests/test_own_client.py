"""Conversations whose requests the caller sends: extend, prepare, record, through the blocking door."""

import json
from typing import Any

import pytest
from tests.conftest import Open, Script

import recto
from recto.api.blocking import Talk

Json = Any
HISTORY: list[Json] = [
    {"role": "system", "content": "You are a shipwright."},
    {"role": "user", "content": "How long is she?"},
    {"role": "assistant", "content": "7 metres."},
]
TOOL = recto.Tool("read", "Reads a file.", {"type": "object", "properties": {}})
CALL = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"n":1}'}}


@pytest.fixture
def talk(desk: Open, script: Script) -> Talk:
    return desk(script({"text": "never asked"}, limit=2000)).conversation()


def texts(talk: Talk) -> list[str]:
    return [message.text for message in talk.messages() if not message.compaction]


def reply(text: str, **more: Any) -> Json:
    message = {"role": "assistant", "content": text, **more}
    usage = {"prompt_tokens": 40, "completion_tokens": 5, "total_tokens": 45}
    return {"id": "x", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage}


def test_the_same_list_is_stored_once(talk: Talk) -> None:
    assert talk.extend(HISTORY).stored == 2
    assert talk.extend(HISTORY).stored == 0
    more = [*HISTORY, {"role": "user", "content": "How wide?"}]
    assert talk.extend(more).stored == 1
    assert texts(talk) == ["How long is she?", "7 metres.", "How wide?"]


def test_a_message_that_differs_is_a_branch_and_both_stay(talk: Talk) -> None:
    talk.extend([*HISTORY, {"role": "user", "content": "How wide?"}])
    edited = [*HISTORY, {"role": "user", "content": "How deep?"}]
    assert talk.extend(edited).branched
    assert texts(talk)[-1] == "How deep?"
    assert talk.extend([*HISTORY, {"role": "user", "content": "How wide?"}]) == recto.ExtendedPath(0, branched=True)
    assert texts(talk)[-1] == "How wide?"
    assert len(talk.branches()) == 2


def test_a_message_that_comes_back_in_other_words_is_noted_and_sent_as_stored(talk: Talk) -> None:
    talk.extend(HISTORY)
    reworded = [HISTORY[0], {"role": "user", "content": "How long is she? (9:02)"}, HISTORY[2]]
    extended = talk.extend([*reworded, {"role": "user", "content": "How wide?"}])
    assert extended.stored == 1
    assert extended.notes == ("message #1 came back in other words, and the stored ones are sent: “” → “ (9:02)”",)
    prepared = talk.prepare()
    assert prepared.messages[1]["content"] == "How long is she?"
    assert extended.notes[0] in prepared.notes


def test_a_prepared_request_is_recorded_and_nothing_is_sent(talk: Talk, desk: Open) -> None:
    talk.extend(HISTORY)
    prepared = talk.prepare("How wide?")
    assert prepared.messages == [*HISTORY, {"role": "user", "content": "How wide?"}]
    assert (prepared.tools, prepared.system, prepared.archived) == ([], None, 0)
    assert prepared.because == "everything fits"
    again = desk(None)
    assert json.loads(again.rebuild(prepared.request_id))["messages"] == prepared.messages
    assert again.verify([prepared.request_id]) == [(prepared.request_id, None)]
    assert texts(talk)[-1] == "How wide?"


def test_a_reply_is_stored_with_its_usage(talk: Talk) -> None:
    prepared = talk.prepare("How wide?")
    told = talk.record(prepared, reply("2 metres."))
    assert (told.text, told.request_id) == ("2 metres.", prepared.request_id)
    assert (told.usage.input, told.usage.output) == (40, 5)
    assert texts(talk) == ["How wide?", "2 metres."]
    assert talk.prepare("And deep?").messages[-2:] == [
        {"role": "assistant", "content": "2 metres."},
        {"role": "user", "content": "And deep?"},
    ]


@pytest.mark.parametrize("wrong", [None, 7, {"choices": "no"}, {"hello": 1}])
def test_what_is_no_reply_is_refused_and_can_be_given_again(talk: Talk, wrong: Any) -> None:
    prepared = talk.prepare("One?")
    with pytest.raises(recto.Invalid):
        talk.record(prepared, wrong)
    assert talk.record(prepared, "Yes.").text == "Yes."
    with pytest.raises(recto.Invalid, match="recorded already"):
        talk.record(prepared, "Yes.")


def test_tool_calls_wait_for_their_results(talk: Talk) -> None:
    prepared = talk.prepare("Read it.", tools=[TOOL])
    assert [tool["function"]["name"] for tool in prepared.tools] == ["read"]
    told = talk.record(prepared, reply("", tool_calls=[CALL]))
    assert [call.id for call in told.pending_calls] == ["c1"]
    prepared = talk.prepare([recto.ToolResult("c1", "read", "all is well")], tools=[TOOL])
    assert prepared.messages[-1] == {"role": "tool", "tool_call_id": "c1", "content": "all is well"}
    assert talk.record(prepared, "All is well.").text == "All is well."


def test_a_full_window_is_compacted_without_a_model(talk: Talk) -> None:
    prepared = talk.prepare("The first plank costs 20 euros.")
    for number in range(40):
        talk.record(prepared, f"Plank {number} is noted. " * 4)
        prepared = talk.prepare(f"Plank {number} of the hull costs {number * 7} euros, we decided. " * 3)
    assert prepared.archived > 10
    assert prepared.messages[1]["content"].startswith("[Summary of the earlier conversation")
    assert prepared.tokens < 2000
    block = talk.compaction()
    assert block is not None
    assert block.made_by == "extractive"


def test_a_function_of_the_caller_writes_the_summary(talk: Talk) -> None:
    asked: list[list[Json]] = []

    async def summarize(messages: list[Json]) -> str:
        asked.append(messages)
        return "They talked about planks of the hull and what each of them costs in euros."

    prepared = talk.prepare("The first plank costs 20 euros.", summarizer=summarize)
    for number in range(20):
        talk.record(prepared, f"Plank {number} is noted. " * 8)
        prepared = talk.prepare(f"Plank {number} of the hull: we decided. " * 8, summarizer=summarize)
    assert asked
    assert "They talked about planks" in prepared.messages[1]["content"]
