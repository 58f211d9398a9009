"""Cache marks where they pay, through the whole engine and over a real connection, in Anthropic's format."""

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Open, Serve
from tests.providers.conftest import Answer, Loopback

from recto.api.blocking import Desk, Talk

MARK = b',"cache_control":{"type":"ephemeral"}'


def said(text: str, stop: str = "end_turn", *blocks: dict[str, Any]) -> Answer:
    """A reply as Anthropic streams it: a text, then other blocks."""
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {"usage": {"input_tokens": 10, "output_tokens": 1}}}
    ]
    for index, block in enumerate(({"type": "text", "text": ""}, *blocks)):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        if index == 0:
            delta = {"type": "text_delta", "text": text}
            events.append({"type": "content_block_delta", "index": 0, "delta": delta})
        events.append({"type": "content_block_stop", "index": index})
    events.append({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 5}})
    events.append({"type": "message_stop"})
    return Loopback.stream(*(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in events))


@pytest.fixture
def over_loopback(
    desk: Open, serve: Serve, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[..., tuple[list[bytes], Desk, Talk]]:
    """Sends messages to a server that gives these answers; what it received, and where it is kept."""
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "Page.md").write_text("The mast is 9 m tall.")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key")

    def run(answers: list[Answer], messages: list[str], **settings: Any) -> tuple[list[bytes], Desk, Talk]:
        server = serve(*answers, routes={})
        monkeypatch.setenv("RECTO_ANTHROPIC_BASE_URL", server.url)
        at = desk("anthropic:claude-sonnet-4-5", vault=vault, **settings)
        talk = at.conversation()
        for text in messages:
            talk.ask(text)
        return [received.body for received in server.received if received.body], at, talk

    return run


def marked_roles(body: bytes) -> list[str]:
    """Where the marks stand: tools, system, or the place of a message from the end."""
    data = json.loads(body)
    places = ["tools"] * sum("cache_control" in tool for tool in data.get("tools", ()))
    places += ["system"] * sum("cache_control" in block for block in data.get("system", ()))
    for place, message in enumerate(data["messages"]):
        if any("cache_control" in block for block in message["content"]):
            places.append(str(place - len(data["messages"])))
    return places


def test_short_windows_are_not_marked(over_loopback: Callable[..., Any]) -> None:
    bodies, _, _ = over_loopback([said("fine")], ["hello", "again"], tools__enabled=False)
    assert all(MARK not in body for body in bodies)


def test_long_windows_are_marked_behind_what_comes_again(over_loopback: Callable[..., Any]) -> None:
    long = "Some words that fill the window a little. " * 200
    bodies, at, talk = over_loopback([said("fine")], [long, "and now?", "and then?"], system_prompt="Be kind. " * 500)
    assert marked_roles(bodies[0]) == ["system", "-1"]
    assert marked_roles(bodies[2]) == ["system", "-2", "-1"]
    records = [at.record(id) for id in at.store.records.ids(talk.id)]
    assert [record.account.broken_by for record in records] == [None] * 3
    assert [at.rebuild(record.id) for record in records] == bodies
    for before, after in pairwise(body.replace(MARK, b"") for body in bodies):
        assert after.startswith(before[: before.rindex(b',"max_tokens"') - 1]), "marks aside, a byte prefix"


def test_a_message_with_something_picked_for_it_alone_is_not_marked(over_loopback: Callable[..., Any]) -> None:
    long = "Some words that fill the window a little. " * 200
    bodies, _, _ = over_loopback([said("fine")], [long, "How tall is it in [[Page]]?"])
    assert marked_roles(bodies[1]) == ["-2"]


def test_within_a_tool_loop_the_last_round_is_marked(over_loopback: Callable[..., Any]) -> None:
    long = "Some words that fill the window a little. " * 200
    call = {"type": "tool_use", "id": "t1", "name": "read_document", "input": {"path": "Page.md"}}
    bodies, _, _ = over_loopback(
        [said("fine"), said("", "tool_use", call), said("9 m")], [long, "How tall is [[Page]]?"]
    )
    assert marked_roles(bodies[2]) == ["-4", "-1"]


def test_a_summary_request_is_marked_where_the_conversation_ends_and_calls_no_tool(
    over_loopback: Callable[..., Any],
) -> None:
    long = "".join(f"Boat K-{n}7 lies in the harbour of town number {n}. " for n in range(60))
    settings = {"context__max_prompt_tokens": 6600, "reply__max_tokens": 500, "context__recall_ratio": 0}
    settings["context__prepare_at"] = 0
    messages = [long + str(n) for n in range(8)]
    bodies, at, talk = over_loopback([said("Facts: 14 boats, and some more that was said.")], messages, **settings)
    asked, *_ = [body for body in bodies if b"Answer with the summary alone" in body]
    data = json.loads(asked)
    assert data["tool_choice"] == {"type": "none"}
    assert data["temperature"] == 0.3
    assert marked_roles(asked) == ["-2"]
    assert any(block.made_by == "model" for block in talk.compactions())
    assert all(difference is None for _, difference in at.verify())
