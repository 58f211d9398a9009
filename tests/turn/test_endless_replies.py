"""Replies without end: what came is kept, with the reason why it ends there; no call of it runs; the provider stops."""

from dataclasses import replace
from typing import Any

import pytest
from tests.conftest import Open, Script, Serve
from tests.providers.conftest import Loopback

from recto.api.blocking import Talk
from recto.chat.blocks import Thinking
from recto.errors import Unreachable
from recto.events import Noticed, ToolStarted
from recto.wire import dumps

Json = Any
CUT = "The reply was cut off here:"
OPENAI, ANTHROPIC = "mine:m-1", "anthropic:claude-sonnet-4-5"


def openai(delta: Json) -> bytes:
    return f"data: {dumps({'choices': [{'index': 0, 'delta': delta}]})}\n\n".encode() * 20


def anthropic(type: str, **delta: str) -> bytes:
    data = {"type": "content_block_delta", "index": 0, "delta": {"type": type, **delta}}
    return f"event: content_block_delta\ndata: {dumps(data)}\n\n".encode() * 20


def anthropic_start(**block: Json) -> bytes:
    started = {"type": "content_block_start", "index": 0, "content_block": block}
    return f"data: {dumps({'type': 'message_start', 'message': {}})}\n\ndata: {dumps(started)}\n\n".encode()


WORDS = "words that go on and on " * 10
ENDLESS = [
    pytest.param(OPENAI, b"", openai({"content": WORDS}), id="openai text"),
    pytest.param(OPENAI, b"", openai({"reasoning_content": WORDS}), id="openai thinking"),
    pytest.param(
        OPENAI,
        openai({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "delete_document"}}]}),
        openai({"tool_calls": [{"index": 0, "function": {"arguments": WORDS}}]}),
        id="openai arguments",
    ),
    pytest.param(
        ANTHROPIC,
        anthropic_start(type="text", text=""),
        anthropic("text_delta", text=WORDS),
        id="anthropic text",
    ),
    pytest.param(
        ANTHROPIC,
        anthropic_start(type="thinking", thinking=""),
        anthropic("thinking_delta", thinking=WORDS),
        id="anthropic thinking",
    ),
    pytest.param(
        ANTHROPIC,
        anthropic_start(type="tool_use", id="a", name="delete_document", input={}),
        anthropic("input_json_delta", partial_json=WORDS),
        id="anthropic arguments",
    ),
]


@pytest.fixture
def talk_to(desk: Open, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> Any:
    def start(model: str, *answers: Any) -> tuple[Talk, Loopback]:
        missing = Loopback.error(404, {})
        server = serve(missing, routes={"/v1/chat/completions": [*answers], "/v1/messages": [*answers]})
        monkeypatch.setenv("RECTO_MINE_BASE_URL", server.url)
        monkeypatch.setenv("RECTO_ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
        settings = {"reply.max_tokens": 100, "reply.max_characters": 20_000, "reply.tries": 1}
        return desk(model, **settings).conversation(), server

    return start


@pytest.mark.parametrize(("model", "head", "again"), ENDLESS)
def test_a_stream_without_end_is_cut_off_and_kept(talk_to: Any, model: str, head: bytes, again: bytes) -> None:
    stream = replace(Loopback.stream(head or again), again=again)
    talk, server = talk_to(model, stream, Loopback.whole({}))
    events = list(talk.stream("hello"))
    assert server.left.wait(30), "the connection is closed, so that the provider stops"
    [note] = [event.text for event in events if isinstance(event, Noticed) and CUT in event.text]
    assert not any(isinstance(event, ToolStarted) for event in events)
    reply = talk.messages()[-1]
    assert (reply.role, reply.status, reply.error) == ("assistant", "stopped", note)
    thought = "".join(block.text for block in reply.blocks if isinstance(block, Thinking))
    arguments = "".join(call.arguments for call in reply.calls)
    assert WORDS in reply.text + thought + arguments
    assert len(reply.text + thought + arguments) <= 20_000


def test_thousands_of_calls_in_one_reply_are_not_run(talk_to: Any) -> None:
    calls = [{"id": f"call_{n}", "function": {"name": "look", "arguments": "{}"}} for n in range(20_000)]
    message = {"role": "assistant", "content": "I look.", "tool_calls": calls}
    talk, server = talk_to(OPENAI, Loopback.whole({"choices": [{"message": message, "finish_reason": "tool_calls"}]}))
    events = list(talk.stream("hello"))
    assert any("more than 256 tools" in event.text for event in events if isinstance(event, Noticed))
    assert (talk.messages()[-1].text, talk.messages()[-1].role) == ("I look.", "assistant")
    assert sum(each.target.endswith("/completions") for each in server.received) == 1


@pytest.mark.parametrize("finish", ["length", "tool_calls"])
def test_a_call_at_which_the_provider_ran_out_of_tokens_does_not_run(desk: Open, script: Script, finish: str) -> None:
    calls = [{"name": "remember", "arguments": {"text": "The mast is tall."}}, {"name": "remember", "arguments": ""}]
    talk = desk(script({"tool_calls": calls, "finish": finish}, {"text": "Well."})).conversation()
    started = [event for event in talk.stream("hello") if isinstance(event, ToolStarted)]
    assert len(started) == (1 if finish == "length" else 2)
    assert talk.messages()[-1].text == "Well."


@pytest.mark.parametrize(
    "again", [b": still here\n" * 5_000, b"\n" * 50_000, b"x" * 50_000], ids=["comments", "lines", "line"]
)
def test_bytes_without_end_and_without_a_reply_are_an_error(
    talk_to: Any, monkeypatch: pytest.MonkeyPatch, again: bytes
) -> None:
    monkeypatch.setattr("recto.providers.http.MAX_EVENT_BYTES", 300_000)
    talk, server = talk_to(OPENAI, replace(Loopback.stream(b"{"), again=again))
    with pytest.raises(Unreachable, match="without a part of a reply"):
        talk.ask("hello")
    assert server.left.wait(30)


def test_arguments_nested_without_end_do_no_harm(talk_to: Any) -> None:
    deep = '{"a":' * 90_000
    called = openai({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "look", "arguments": deep}}]})
    ended = b'data: {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}\n\n'
    spoken = Loopback.events({"choices": [{"delta": {"content": "Well."}, "finish_reason": "stop"}]}, "[DONE]")
    talk, _ = talk_to(OPENAI, Loopback.stream(called[: len(called) // 20], ended), spoken)
    list(talk.stream("hello", max_tokens=4_000))
    assert talk.messages()[-1].text == "Well."


def test_a_summary_without_end_is_cut_off(desk: Open, script: Script) -> None:
    endless = {"text": "word " * 100_000, "when": "summary"}
    here = desk(script({"text": "A reply. " * 40}, endless, limit=1500))
    talk = here.conversation()
    for number in range(4):
        talk.ask(f"Question {number}: how tall is the mast of the boat {number}? " * 5)
    talk.compact()
    outcomes = [here.record(request).outcome for request, _ in here.verify()]
    summaries = [outcome["text"] for outcome in outcomes if "text" in outcome]
    assert summaries
    assert all(len(text) < 300_000 for text in summaries)
