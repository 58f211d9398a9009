"""Messages that are said while a reply comes: stored at once, sent as soon as possible, never lost."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tests.conftest import Open, Script

from recto.api.blocking import Talk
from recto.api.talk import AsyncTalk
from recto.chat.blocks import Image, Text, ToolResult
from recto.errors import Invalid, NotFound, ProviderError
from recto.events import Appended, Event, Replied, TextDelta, ToolFinished
from recto.sources.source import Tool

READ = {"tool_calls": [{"name": "read_document", "arguments": {"path": "Boat.md"}}]}


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    place = tmp_path / "notes"
    place.mkdir()
    (place / "Boat.md").write_text("The boat is red.", "utf-8")
    return place


def said(talk: Talk) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in talk.messages()]


async def streamed(talk: AsyncTalk, text: str, at: type[Event], do: Callable[[], Awaitable[object]]) -> list[Event]:
    """The events of a turn in which something is done at the first event of a kind. A blocking talk would not do: its
    turn runs ahead of whoever takes the events."""
    events = list[Event]()
    async for event in talk.stream(text):
        if isinstance(event, at) and not any(isinstance(each, at) for each in events):
            await do()
        events.append(event)
    return events


def test_a_message_that_is_queued_while_a_reply_comes_is_the_next_turn(desk: Open, script: Script) -> None:
    at = desk(script({"text": "First answer."}, {"text": "Second answer."}))
    talk = at.conversation()
    events = at.run(streamed(talk.asynchronous, "One?", TextDelta, lambda: talk.asynchronous.queue("Two?")))
    appended = [event for event in events if isinstance(event, Appended)]
    assert [(event.message.text, event.waited) for event in appended] == [("One?", 0), ("Two?", 1)]
    assert said(talk) == [
        ("user", "One?"),
        ("assistant", "First answer."),
        ("user", "Two?"),
        ("assistant", "Second answer."),
    ]
    assert talk.waiting() == []


def test_in_a_tool_loop_it_enters_before_the_next_request(desk: Open, script: Script, vault: Path) -> None:
    at = desk(script(READ, {"text": "Red, and blue is noted."}), vault=vault)
    talk = at.conversation()
    asked, later = "Which colour is the boat?", lambda: talk.asynchronous.queue("I would like blue.")
    events = at.run(streamed(talk.asynchronous, asked, ToolFinished, later))
    replies = [event.message.text for event in events if isinstance(event, Replied)]
    assert [role for role, _ in said(talk)] == ["user", "assistant", "tool", "user", "assistant"]
    assert replies == ["", "Red, and blue is noted."]
    assert said(talk)[3] == ("user", "I would like blue.")


def test_messages_that_wait_together_enter_as_one(desk: Open, script: Script) -> None:
    model = script({"text": "Yes."})
    first = desk(model).conversation()
    first.queue("One.")
    first.queue("Two.")
    talk = desk(model).conversation(first.id)
    assert [each.text for each in talk.waiting()] == ["One.", "Two."], "they outlive the process"
    assert talk.ask("Three?").text == "Yes."
    assert said(talk) == [("user", "One.\n\nTwo.\n\nThree?"), ("assistant", "Yes.")]


def test_it_can_be_taken_back_before_it_enters(desk: Open, script: Script) -> None:
    talk = desk(script({"text": "Yes."})).conversation()
    first, second = talk.queue("One."), talk.queue("Two.")
    assert talk.take_back().id == second.id
    assert talk.take_back(first.id).text == "One."
    with pytest.raises(NotFound, match="no message is waiting"):
        talk.take_back()
    talk.ask("Three?")
    assert said(talk)[0] == ("user", "Three?")


def test_what_waits_is_sent_without_another_message(desk: Open, script: Script) -> None:
    talk = desk(script({"text": "Yes."})).conversation()
    talk.queue("Two?")
    assert [event.message.text for event in talk.stream() if isinstance(event, Replied)] == ["Yes."]
    with pytest.raises(Invalid, match="the message is empty"):
        list(talk.stream())


def test_what_waits_stays_when_the_reply_fails(desk: Open, script: Script) -> None:
    at = desk(script({"text": "Yes."}, {"error": "unreachable"}, {"text": "Here."}), reply__tries=1)
    talk = at.conversation()
    talk.ask("One?")
    failing = streamed(talk.asynchronous, "Two?", Appended, lambda: talk.asynchronous.queue("Three?"))
    with pytest.raises(ProviderError):
        at.run(failing)
    assert [each.text for each in talk.waiting()] == ["Three?"]
    assert talk.ask("Four?").text == "Here."


def test_a_picture_can_wait_and_a_tool_result_cannot(desk: Open, script: Script) -> None:
    talk = desk(script({"text": "Yes."})).conversation()
    waiting = talk.queue("See this.", attachments=[Image("image/png", base64="aGVsbG8=")])
    assert [type(block) for block in waiting.blocks] == [Image, Text]
    assert talk.waiting()[0].blocks == waiting.blocks
    with pytest.raises(Invalid, match="only a message can wait"):
        talk.queue([ToolResult("x", "y", "z")])
    with pytest.raises(Invalid, match="empty"):
        talk.queue("  ")


def test_what_waits_does_not_close_calls_that_were_handed_back(desk: Open, script: Script) -> None:
    ask = Tool("ask", "Asks the caller.", {"type": "object", "properties": {}})
    model = script({"tool_calls": [{"name": "ask", "arguments": {}}]}, {"text": "Thank you both."})
    talk = desk(model).conversation()
    calls = talk.ask("Go.", tools=[ask]).pending_calls
    talk.queue("And this.")
    assert [each.text for each in talk.waiting()] == ["And this."]
    assert talk.ask([ToolResult(calls[0].id, "ask", "42")], tools=[ask]).text == "Thank you both."
    assert [role for role, _ in said(talk)] == ["user", "assistant", "tool", "user", "assistant"]
