"""The walk of one message, however its reader behaves: leaves early, comes late, or says something meanwhile."""

import asyncio
import itertools
import signal
import threading
from collections.abc import Callable, Iterable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Open, Script
from tests.said import user_sentences
from tests.turn.test_mcp_tools import configure, server

from recto.api.blocking import Desk, Talk
from recto.base.ids import new_id
from recto.chat.blocks import Text
from recto.chat.message import Message
from recto.events import ApprovalAsked, Event, TextDelta

QUESTION = "What is one and two?"
CALL = {"tool_calls": [{"name": "plain__add", "arguments": {"a": 1, "b": 2}}]}
SUMMARY = {"text": "They talked about this and that.", "when": "summary"}
TOLD = ("Appended", "ContextCompacted", "Sent", "ApprovalAsked", "ToolStarted", "ToolFinished", "Sent", "Replied")
"""A turn with a compaction, a call that needs a yes, and an answer; more is told in between."""
TURN = ("Engine", "Exchange", "CompactionWork", "Toolbox", "Talk")
"""Whose tasks end with the turn; a summary that is written ahead goes on."""
Model = Callable[[], str]


@pytest.fixture
def at(desk: Open, script: Script, tmp_path: Path) -> Desk:
    configure(tmp_path, plain=server("plain.py", approval="ask"))
    return desk(script({"text": "unused"}), context__recent_messages_to_keep=4)


@pytest.fixture
def model(script: Script) -> Model:
    return lambda: script(CALL, {"text": "It is three."}, SUMMARY, limit=3000)


def long_talk(at: Desk) -> Talk:
    """One whose next message needs a compaction."""
    made = at.store.tree.create(title="Long")
    roles: Iterable[Any] = itertools.cycle(("user", "assistant"))
    said = (Message(new_id(), role, (Text(text),)) for role, text in zip(roles, user_sentences()[:150], strict=False))
    at.store.tree.append_all(made.id, said)
    return at.conversation(made.id)


def kinds(events: Iterable[Event]) -> list[str]:
    return [type(event).__name__ for event in events]


def is_whole_turn(events: Iterable[Event]) -> bool:
    told = iter(kinds(events))
    return all(name in told for name in TOLD)


def name_of(task: "asyncio.Task[Any]") -> str:
    return getattr(task.get_coro(), "__qualname__", "")


async def hear(talk: Talk, most: int | None, *, wait_s: float = 0, **options: Any) -> list[Event]:
    """The first events of a turn; then its reader leaves, and nothing goes on behind it."""
    found, before = list[Event](), asyncio.all_tasks()
    async with aclosing(talk.asynchronous.stream(QUESTION, **options)) as events:
        async for event in events:
            found.append(event)
            if len(found) == most:
                break
            if isinstance(event, ApprovalAsked):
                event.allow()
            await asyncio.sleep(wait_s)
    assert not [name for name in map(name_of, asyncio.all_tasks() - before) if name.startswith(TURN)]
    return found


def assert_whole(talk: Talk) -> None:
    """Every message is finished, every call has its result, and the session is where the store is."""
    messages = talk.messages(limit=None)
    assert {message.status for message in messages} <= {"done", "stopped"}
    calls = [call.id for message in messages for call in message.calls]
    assert calls == [result.call_id for message in messages for result in message.results]


def test_a_turn_tells_what_it_does_in_order(at: Desk, model: Model) -> None:
    assert is_whole_turn(asyncio.run(hear(long_talk(at), None, model=model())))


def test_whoever_leaves_at_any_event_finds_everything_stored_and_can_go_on(at: Desk, model: Model) -> None:
    whole = kinds(asyncio.run(hear(long_talk(at), None, model=model())))
    # of events of one kind in a row the first stands for all
    for most in (place for place in range(1, len(whole)) if place == 1 or whole[place - 1] != whole[place - 2]):
        talk = long_talk(at)
        told = asyncio.run(hear(talk, most, model=model()))
        assert_whole(talk)
        assert [message.text for message in talk.messages(limit=None)].count(QUESTION) == 1, kinds(told)
        assert talk.session.head == at.store.tree.conversation(talk.id or "").head
        assert kinds(asyncio.run(hear(talk, None, model=model())))[-1] in ("Replied", "Noticed")
        assert_whole(talk)


def test_a_reader_is_never_ahead_of_what_is_told(at: Desk, script: Script) -> None:
    """While nobody takes events, the turn waits: a reply is not read to its end behind the reader's back."""

    async def stopped_at_the_first_words() -> None:
        talk = at.conversation()
        model = script({"text": "one two three four five", "delay_s": 0.001})
        async with aclosing(talk.asynchronous.stream("count", model=model)) as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    await asyncio.sleep(0.05)
                    assert [message.role for message in talk.messages() if message.status == "done"] == ["user"]
                    break

    asyncio.run(stopped_at_the_first_words())


def test_what_is_said_meanwhile_is_answered_by_the_same_stream(at: Desk, script: Script) -> None:
    talk, told = at.conversation(), list[Event]()
    for event in talk.stream("first", model=script({"text": "one two three", "delay_s": 0.01})):
        told.append(event)
        if isinstance(event, TextDelta) and kinds(told).count("TextDelta") == 1:
            talk.queue("second")
    assert kinds(told).count("Replied") == 2
    assert [message.text for message in talk.messages() if message.role == "user"] == ["first", "second"]


def test_ctrl_c_ends_the_blocking_form_and_keeps_what_came(at: Desk, script: Script) -> None:
    talk, model = at.conversation(), script({"text": "one two three four", "after": 2, "until": "/never"})

    def count() -> None:
        for event in talk.stream("count", model=model):
            if isinstance(event, TextDelta) and "two" in event.text:
                threading.Timer(0.05, signal.pthread_kill, [threading.main_thread().ident, signal.SIGINT]).start()

    with pytest.raises(KeyboardInterrupt):
        count()
    stopped = talk.messages()[-1]
    assert (stopped.status, stopped.text) == ("stopped", "one two")
    assert_whole(talk)
