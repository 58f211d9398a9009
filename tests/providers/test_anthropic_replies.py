"""Replies in Anthropic's format, written for a client and read again by our own reader."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.providers import wire_values as wv

from recto.chat.blocks import Block, Text, Thinking, ToolCall
from recto.chat.message import Usage
from recto.errors import (
    DoesNotFit,
    Invalid,
    NoKey,
    NotFound,
    Overflow,
    RateLimited,
    RectoError,
    Refused,
    StoreError,
    Unreachable,
)
from recto.providers.anthropic import AnthropicReader
from recto.providers.anthropic_client import (
    AnthropicReplyWriter,
    anthropic_error,
    write_anthropic_reply,
)
from recto.providers.client import ReplyHead
from recto.providers.http import EventReader, ReportedError, RequestTarget, from_status, from_stream
from recto.providers.model import Attempt, CallPart, Done, ReplyPart, TextPart
from recto.wire import dumpb, loads

HEAD = ReplyHead("msg_1", "acme:m")
TARGET = RequestTarget("acme", "http://127.0.0.1/v1", "m")
THOUGHTS = st.builds(Thinking, wv.TEXTS, st.none() | wv.IDS) | wv.IDS.map(lambda data: Thinking("", redacted=data))
FINISHES = st.sampled_from(["stop", "length", "tool_calls", "refusal"])


def streamed(parts: list[ReplyPart]) -> list[ReplyPart]:
    """Written, sent as bytes, and read."""
    writer, events, reader = AnthropicReplyWriter(HEAD), EventReader(), AnthropicReader()
    sent = b"".join(event.encoded for part in parts for event in writer.write(part))
    return [part for event in [*events.feed(sent), *events.end()] for part in reader.read(event)]


@given(wv.replies(THOUGHTS), FINISHES, wv.USAGES)
def test_a_stream_that_we_write_reads_the_same(blocks: tuple[Block, ...], finish: str, usage: Usage) -> None:
    done = Done(finish, usage)
    assert wv.gathered(streamed([*wv.parts_of(blocks), done])) == (blocks, [done])


@given(wv.replies(THOUGHTS), FINISHES, wv.USAGES)
def test_a_whole_reply_that_we_write_reads_the_same(blocks: tuple[Block, ...], finish: str, usage: Usage) -> None:
    done = Done(finish, usage)
    reply = write_anthropic_reply(HEAD, blocks, done)
    assert wv.gathered(AnthropicReader().whole(reply)) == (blocks, [done])


@given(st.lists(st.builds(Text, wv.TEXTS) | THOUGHTS, max_size=6))
def test_thinking_and_texts_keep_their_order(blocks: list[Block]) -> None:
    parts = [*wv.parts_of(tuple(blocks)), Done("stop", Usage())]
    assert wv.gathered(streamed(parts)) == wv.gathered(parts)


def test_the_blocks_of_a_stream_are_numbered_opened_and_closed() -> None:
    writer = AnthropicReplyWriter(HEAD)
    parts: list[ReplyPart] = [
        TextPart("Hi"),
        CallPart(0, "a", "look"),
        CallPart(0, arguments="{}"),
        CallPart(1, "b", "look"),
        Done("stop"),
    ]
    events = [loads(event.data) for part in parts for event in writer.write(part)]
    assert [(event["type"].removeprefix("content_block_"), event.get("index")) for event in events] == [
        ("message_start", None),
        *[("start", 0), ("delta", 0), ("stop", 0)],
        *[("start", 1), ("delta", 1), ("stop", 1)],
        *[("start", 2), ("stop", 2)],
        *[("message_delta", None), ("message_stop", None)],
    ]


def test_calls_that_are_mixed_up_end_the_stream_with_a_sentence() -> None:
    writer = AnthropicReplyWriter(HEAD)
    for part in (CallPart(0, "a", "look"), CallPart(1, "b", "look")):
        writer.write(part)
    with pytest.raises(Unreachable, match="two tool calls"):
        writer.write(CallPart(0, arguments="{}"))


def test_an_attempt_is_not_told() -> None:
    assert AnthropicReplyWriter(HEAD).write(Attempt(1, "busy", 1.0)) == []


def test_what_the_format_has_no_place_for_is_lost() -> None:
    before = (ToolCall("c", "look", "[1"),)
    reply = write_anthropic_reply(HEAD, before, Done("pause", None))
    assert wv.gathered(AnthropicReader().whole(reply)) == ((ToolCall("c", "look", "{}"),), [Done("stop", Usage())])
    assert wv.gathered(streamed([*wv.parts_of(before), Done("pause", None)])) == (before, [Done("stop", Usage())])


ERRORS: list[tuple[Exception, int, str, type[RectoError]]] = [
    (Invalid("stop_sequences must be a list.", field="stop_sequences"), 400, "invalid_request_error", Refused),
    (DoesNotFit("x", needed=2, room=1, largest="m"), 400, "invalid_request_error", Overflow),
    (Overflow("x"), 400, "invalid_request_error", Overflow),
    (Refused("no"), 400, "invalid_request_error", Refused),
    (NoKey("needs a key"), 401, "authentication_error", Refused),
    (NotFound("no such model", model="m"), 404, "not_found_error", Refused),
    (RateLimited("slow down", retry_after_s=7), 429, "rate_limit_error", RateLimited),
    (Unreachable("gone"), 503, "api_error", Unreachable),
    (StoreError("full"), 500, "api_error", Unreachable),
    (ValueError("secret"), 500, "api_error", Unreachable),
]


@pytest.mark.parametrize(("error", "status", "kind", "read_as"), ERRORS)
def test_an_error_has_its_status_and_is_read_as_what_it_is(
    error: Exception, status: int, kind: str, read_as: type[RectoError]
) -> None:
    reply = anthropic_error(error)
    assert (reply.status, reply.body["type"], reply.body["error"]["type"]) == (status, "error", kind)
    assert "secret" not in reply.body["error"]["message"]
    assert type(from_status(TARGET, reply.status, dumpb(reply.body), reply.headers).error) is read_as


def test_an_error_inside_a_stream_is_read_as_one() -> None:
    [event] = AnthropicReplyWriter(HEAD).error(Overflow("x"))
    assert event.name == "error"
    with pytest.raises(ReportedError) as why:
        AnthropicReader().read(event)
    assert isinstance(from_stream(TARGET, why.value.payload).error, Overflow)
    with pytest.raises(ReportedError):
        AnthropicReader().whole(loads(event.data))
