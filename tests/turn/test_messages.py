"""Blocks and options of one call: attachments, parameters, and tools that the caller runs."""

import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Open, Script

from recto.api.blocking import Desk
from recto.base.ids import new_id
from recto.chat.blocks import Image, Text, Thinking, ToolCall, ToolResult
from recto.chat.message import Message
from recto.errors import Invalid, NotFound
from recto.events import ToolCallsPending
from recto.sources.source import Tool

# one red pixel
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)
WEATHER = Tool("weather", "Says the weather of a place.", {"type": "object", "properties": {"place": {}}})
CALL = {"tool_calls": [{"name": "weather", "arguments": {"place": "Bergen"}, "id": "w1"}]}
NOTE = {"tool_calls": [{"name": "read_document", "arguments": {"path": "Boat.md"}, "id": "r1"}, CALL["tool_calls"][0]]}


def body(desk: Desk, request: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(desk.rebuild(request))
    return read


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    path = tmp_path / "boat.png"
    path.write_bytes(PNG)
    return path


# -- attachments


def test_an_image_reaches_a_model_that_takes_images_and_is_kept_by_its_hash(
    desk: Open, script: Script, picture: Path
) -> None:
    at = desk(script({"text": "a boat"}, attachments=True))
    talk = at.conversation()
    reply = talk.ask("What is this?", attachments=[picture])
    parts = body(at, reply.request_id)["messages"][-1]["content"]
    assert {
        "type": "image_url",
        "image_url": {"url": f"data:image/png;base64,{base64.b64encode(PNG).decode()}"},
    } in parts
    (image,) = [block for block in talk.messages()[0].blocks if isinstance(block, Image)]
    assert (image.base64, image.name) == ("", "boat.png")
    assert at.store.blobs.get(image.sha256) == PNG
    assert not reply.window.exact, "the tokens of an image are an estimate"
    again = talk.ask("And now?")
    assert base64.b64encode(PNG).decode() in at.rebuild(again.request_id).decode(), "it stays in the history"
    assert at.verify() == [(reply.request_id, None), (again.request_id, None)]


def test_a_model_that_takes_no_images_gets_a_line_in_its_place_and_the_user_a_note(
    desk: Open, script: Script, picture: Path
) -> None:
    at = desk(script({"text": "I cannot see it"}))
    reply = at.conversation().ask("What is this?", attachments=[picture])
    content = body(at, reply.request_id)["messages"][-1]["content"]
    assert content == "[boat.png is attached, but this model cannot read images.]What is this?"
    assert any("does not accept images: boat.png is not sent" in note for note in reply.notes)


def test_text_files_are_read_by_every_model_and_pdfs_by_those_that_take_files(
    desk: Open, script: Script, tmp_path: Path
) -> None:
    (tmp_path / "log.txt").write_text("all well")
    (tmp_path / "plan.pdf").write_bytes(b"%PDF-1.7 plan")
    attachments = [tmp_path / "log.txt", tmp_path / "plan.pdf"]
    takes, does_not = desk(script({"text": "ok"}, attachments=True)), desk(script({"text": "ok"}))
    sent = body(takes, takes.conversation().ask("Read these.", attachments=attachments).request_id)["messages"][-1]
    assert any("all well" in part.get("text", "") for part in sent["content"])
    assert any(part["type"] == "file" for part in sent["content"])
    content = body(does_not, does_not.conversation().ask("Read.", attachments=attachments).request_id)["messages"][-1]
    assert "all well" in content["content"]
    assert "[plan.pdf is attached, but this model cannot read files.]" in content["content"]


def test_what_cannot_be_attached_is_refused_before_anything_is_stored(
    desk: Open, script: Script, tmp_path: Path
) -> None:
    talk = desk(script({"text": "ok"})).conversation()
    (tmp_path / "program").write_bytes(b"\x7fELF\0\0\0")
    (tmp_path / "empty.txt").touch()
    os.mkfifo(tmp_path / "pipe")
    refused: dict[Any, str] = {
        tmp_path / "program": "program is neither text nor an image nor a PDF",
        tmp_path / "empty.txt": r"empty\.txt is empty",
        tmp_path: "is not a file and cannot be attached",
        tmp_path / "pipe": "is not a file and cannot be attached",
        "/dev/zero": "is not a file and cannot be attached",
        7: "an attachment must be a path, an Image or a File, not 7",
    }
    for given, why in refused.items():
        with pytest.raises(Invalid, match=why):
            talk.ask("Read.", attachments=[given])
    with pytest.raises(NotFound):
        talk.ask("Read.", attachments=[tmp_path / "gone.png"])
    assert talk.id is None


def test_the_name_of_an_attachment_cannot_break_its_line(desk: Open, script: Script, tmp_path: Path) -> None:
    named = tmp_path / "a\nb\x1b[31m.png"
    named.write_bytes(PNG)
    at = desk(script({"text": "ok"}))
    reply = at.conversation().ask("What is this?", attachments=[named])
    content = body(at, reply.request_id)["messages"][-1]["content"]
    assert content.startswith("[a b [31m.png is attached, but this model cannot read images.]")


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (None, "a message must be text or a list of blocks, not None"),
        ([{"type": "text"}], "cannot contain {'type': 'text'}"),
        ([Text(7)], "must be a text, not 7"),  # type: ignore[arg-type]
        ([Thinking("hm")], "a thinking block"),
        ([Text("  ")], "the message is empty"),
        ([Image("image/png", "no base64!")], "not valid base64"),
        ([ToolResult("x", "y", "z")], "no tool call of this conversation waits"),
    ],
)
def test_what_a_user_cannot_give_is_refused(desk: Open, script: Script, given: Any, why: str) -> None:
    with pytest.raises(Invalid, match=why):
        desk(script({"text": "ok"})).conversation().ask(given)


# -- parameters


def test_what_one_call_asks_for_holds_for_that_call_alone(desk: Open, script: Script) -> None:
    at = desk(script({"text": "ok"}))
    talk, other = at.conversation(), script({"text": "from the other"})
    reply = talk.ask("one", temperature=0.1, max_tokens=77, stop=["END"], top_p=0.5, model=other)
    sent = body(at, reply.request_id)
    assert (sent["temperature"], sent["max_tokens"], sent["stop"], sent["top_p"]) == (0.1, 77, ["END"], 0.5)
    assert reply.text == "from the other"
    after = body(at, talk.ask("two").request_id)
    assert "stop" not in after
    assert after["model"] != sent["model"]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"temprature": 1}, "there is no option temprature; there are: model"),
        ({"temperature": 7}, "temperature must be a number from 0 to 2, not 7"),
        ({"top_p": "high"}, "top_p must be a number from 0 to 1"),
        ({"max_tokens": 0}, "max_tokens must be a whole number from 1 on"),
        ({"stop": [""]}, "stop must be texts that are not empty"),
        ({"reasoning_effort": "huge"}, "reasoning_effort must be one of"),
        ({"response_format": {}}, "response_format must be a ResponseFormat"),
        ({"tool_choice": "never"}, "tool_choice must be a NamedTool, or one of"),
        ({"tools": ["weather"]}, "tools must be Tool values, not 'weather'"),
        ({"tools": [Tool("two words", "", {"type": "object"})]}, "cannot be called 'two words'"),
        ({"tools": [Tool("weather", "", {"type": object})]}, "the schema of the tool weather is not JSON"),
    ],
)
def test_an_option_that_cannot_be_is_refused_before_anything_is_stored(
    desk: Open, script: Script, options: Any, why: str
) -> None:
    talk = desk(script({"text": "ok"})).conversation()
    with pytest.raises(Invalid, match=why):
        talk.ask("hello", **options)
    assert talk.id is None


# -- tools of the caller


def test_calls_of_the_callers_tools_are_handed_back_and_go_on_with_their_results(desk: Open, script: Script) -> None:
    at = desk(script(CALL, {"text": "It rains."}))
    talk = at.conversation()
    asked = talk.ask("How is the weather in Bergen?", tools=[WEATHER])
    (call,) = asked.pending_calls
    assert (call.name, json.loads(call.arguments)) == ("weather", {"place": "Bergen"})
    assert talk.messages()[-1].status == "pending"
    reply = talk.ask([ToolResult(call.id, call.name, "rain")], tools=[WEATHER])
    assert (reply.text, reply.pending_calls) == ("It rains.", ())
    before, after = (body(at, each.request_id)["messages"] for each in (asked, reply))
    assert after[: len(before)] == before, "the turn goes on where it was"
    assert after[-1] == {"role": "tool", "tool_call_id": "w1", "content": "rain"}
    assert [message.role for message in talk.messages()] == ["user", "assistant", "tool", "assistant"]
    assert {message.status for message in talk.messages()} == {"done"}


def test_pending_calls_survive_the_process_that_asked(desk: Open, script: Script) -> None:
    model = script(CALL)
    first = desk(model).conversation()
    first.ask("How is the weather?", tools=[WEATHER])
    later = desk(script({"text": "It rains."})).conversation(first.id)
    reply = later.ask([ToolResult("w1", "", "rain")], tools=[WEATHER])
    assert reply.text == "It rains."
    assert later.messages()[2].results[0].name == "weather"


def test_a_message_without_results_closes_the_calls_that_wait(desk: Open, script: Script) -> None:
    at = desk(script(CALL, {"text": "Never mind."}))
    talk = at.conversation()
    talk.ask("How is the weather?", tools=[WEATHER])
    reply = talk.ask("Forget it.")
    closed = talk.messages()[2].results[0]
    assert closed.is_error
    assert closed.text.startswith("cancelled")
    assert body(at, reply.request_id)["messages"][-1]["content"] == "Forget it."


def test_tools_of_ours_run_beside_those_that_are_handed_back(desk: Open, script: Script, tmp_path: Path) -> None:
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault" / "Boat.md").write_text("Sorrel.")
    at = desk(script(NOTE, {"text": "Sorrel, in the rain."}), vault=tmp_path / "vault")
    talk = at.conversation()
    events = list(talk.stream("Which boat, what weather?", tools=[WEATHER]))
    (pending,) = [event for event in events if isinstance(event, ToolCallsPending)]
    assert [call.name for call in pending.calls] == ["weather"]
    again = desk(script({"text": "Sorrel, in the rain."}), vault=tmp_path / "vault").conversation(talk.id)
    reply = again.ask([ToolResult("w1", "weather", "rain")], tools=[WEATHER])
    tools = [each for each in body(at, reply.request_id)["messages"] if each["role"] == "tool"]
    assert [each["tool_call_id"] for each in tools] == ["r1", "w1"]
    assert "Sorrel." in tools[0]["content"]


def test_a_result_for_another_call_is_refused_and_nothing_is_stored(desk: Open, script: Script) -> None:
    talk = desk(script(CALL, {"text": "It rains."})).conversation()
    talk.ask("How is the weather?", tools=[WEATHER])
    rain = ToolResult("w1", "", "rain")
    for given, why in (
        ([ToolResult("other", "", "rain")], "no tool call 'other' waits"),
        ([rain, ToolResult("w1", "", "sun")], "a tool call has only one result"),
    ):
        with pytest.raises(Invalid, match=why):
            talk.ask(given, tools=[WEATHER])
    assert [message.role for message in talk.messages()] == ["user", "assistant"]
    talk.ask([rain], tools=[WEATHER])
    talk.undo()
    with pytest.raises(Invalid, match="no tool call of this conversation waits"):
        talk.ask([rain], tools=[WEATHER])


def test_two_who_answer_the_same_calls_get_a_branch_each_and_a_note(desk: Open, script: Script) -> None:
    first = desk(script(CALL, {"text": "It rains."})).conversation()
    first.ask("How is the weather?", tools=[WEATHER])
    second = desk(script({"text": "It snows."})).conversation(first.id)
    first.ask([ToolResult("w1", "", "rain")], tools=[WEATHER])
    reply = second.ask([ToolResult("w1", "", "snow")], tools=[WEATHER])
    assert reply.text == "It snows."
    assert any("branch" in note for note in reply.notes), reply.notes


def test_a_tool_of_the_caller_takes_the_place_of_ours_of_its_name(desk: Open, script: Script, tmp_path: Path) -> None:
    (tmp_path / "vault").mkdir()
    mine = Tool("read_document", "Mine.", {"type": "object"})
    at = desk(script({"text": "ok"}), vault=tmp_path / "vault")
    reply = at.conversation().ask("hello", tools=[mine])
    tools = [tool["function"] for tool in body(at, reply.request_id)["tools"] if tool["function"]["name"] == mine.name]
    assert [tool["description"] for tool in tools] == ["Mine."]


def test_ids_that_a_server_repeats_in_every_reply_are_sent_once_each(
    desk: Open, script: Script, tmp_path: Path
) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "Welcome.md").write_text("Hello.")
    call = {"tool_calls": [{"id": "call_0", "name": "read_document", "arguments": {"path": "Welcome.md"}}]}
    at = desk(script(call, call, {"text": "one"}, call, {"text": "two"}), vault=tmp_path / "notes")
    talk = at.conversation()
    talk.ask("first")
    reply = talk.ask("second")
    calls = [call.id for message in talk.messages() for call in message.calls]
    results = [result.call_id for message in talk.messages() for result in message.results]
    assert len(set(calls)) == 3
    assert calls[0] == "call_0"
    assert results == calls
    sent = at.rebuild(reply.request_id).decode()
    assert all(id in sent for id in calls)


def with_calls(*ids: str) -> tuple[Message, Message]:
    """A reply with calls, and their results, as an import may store them."""
    calls = tuple(ToolCall(id, "weather", json.dumps({"n": n})) for n, id in enumerate(ids))
    results = tuple(ToolResult(id, "weather", f"result {n}") for n, id in enumerate(ids))
    return Message(new_id(), "assistant", calls), Message(new_id(), "tool", results)


def sent_pairs(at: Desk, request: str) -> list[tuple[str, str, str]]:
    """Id, arguments and result of each call in a request."""
    messages = body(at, request)["messages"]
    results = [(message["tool_call_id"], message["content"]) for message in messages if message["role"] == "tool"]
    calls = [call for message in messages for call in message.get("tool_calls", ())]
    assert [call["id"] for call in calls] == [id for id, _ in results]
    return [(call["id"], call["function"]["arguments"], text) for call, (_, text) in zip(calls, results, strict=True)]


def test_stored_ids_that_repeat_are_unique_when_sent_and_the_same_for_everybody(desk: Open, script: Script) -> None:
    model = script({"text": "ok"}, limit=50_000)
    at = desk(model)
    talk = at.conversation()
    talk.ask("Start.")
    stored = [*with_calls("X", "X", "X_2", "X"), *with_calls("X_2", "X"), *with_calls("X_2", "X")]
    at.store.tree.append_all(talk.id or "", stored)
    first = at.conversation(talk.id)
    before = first.ask("And now?")
    sent = sent_pairs(at, before.request_id)
    assert len({id for id, _, _ in sent}) == 8
    assert [id for id, _, _ in sent][:4] == ["X", "X_3", "X_2", "X_4"], "none is the id of another call"
    assert all(text == f"result {json.loads(arguments)['n']}" for _, arguments, text in sent)
    again = first.ask("And then?")
    anew = desk(model).conversation(talk.id).ask("And at last?")
    assert sent_pairs(at, again.request_id) == sent_pairs(at, anew.request_id) == sent
    assert at.record(anew.request_id).account.broken_by is None
    assert [call.id for message in stored for call in message.calls].count("X") == 5, "the store keeps them"
