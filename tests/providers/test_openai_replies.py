"""Replies in OpenAI's format, written for a client and read again by our own reader."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.providers import wire_values as wv

from recto.chat.blocks import Block, Text, Thinking, ToolCall
from recto.chat.message import Usage
from recto.errors import (
    Busy,
    DoesNotFit,
    Invalid,
    NoKey,
    NotFound,
    Overflow,
    RateLimited,
    RectoError,
    Refused,
    Unreachable,
)
from recto.providers.client import ReplyHead
from recto.providers.http import EventReader, ReportedError, RequestTarget, ServerEvent, from_status, from_stream
from recto.providers.model import Attempt, Done, ReplyPart, TextPart, ThinkingPart
from recto.providers.openai import OpenAIReader
from recto.providers.openai_client import OpenAIReplyWriter, openai_error, write_openai_reply
from recto.wire import dumpb

HEAD = ReplyHead("chatcmpl-1", "acme:m", 1_800_000_000)
TARGET = RequestTarget("acme", "http://127.0.0.1/v1", "m")
REPLIES = wv.replies(st.builds(Thinking, wv.TEXTS))
FINISHES = st.sampled_from(["stop", "length", "refusal"])


def ended(blocks: tuple[Block, ...], finish: str, usage: Usage | None) -> Done:
    """As every reader tells it: a reply that calls a tool ends with that."""
    called = finish == "stop" and any(isinstance(block, ToolCall) for block in blocks)
    return Done("tool_calls" if called else finish, usage)


def streamed(parts: list[ReplyPart], *, include_usage: bool = True) -> list[ReplyPart]:
    """Written, sent as bytes, and read."""
    writer, events, reader = OpenAIReplyWriter(HEAD, include_usage=include_usage), EventReader(), OpenAIReader()
    sent = b"".join(event.encoded for part in parts for event in writer.write(part))
    return [part for event in [*events.feed(sent), *events.end()] for part in reader.read(event)]


@given(REPLIES, FINISHES, st.none() | wv.USAGES)
def test_a_stream_that_we_write_reads_the_same(blocks: tuple[Block, ...], finish: str, usage: Usage | None) -> None:
    done = ended(blocks, finish, usage)
    assert wv.gathered(streamed([*wv.parts_of(blocks), done])) == (blocks, [done])


@given(REPLIES, FINISHES, st.none() | wv.USAGES)
def test_a_whole_reply_that_we_write_reads_the_same(
    blocks: tuple[Block, ...], finish: str, usage: Usage | None
) -> None:
    done = ended(blocks, finish, usage)
    assert wv.gathered(OpenAIReader().whole(write_openai_reply(HEAD, blocks, done))) == (blocks, [done])


def test_a_stream_has_the_usage_only_where_it_was_asked_for() -> None:
    parts: list[ReplyPart] = [TextPart("Hi"), Done("stop", Usage(3, 1))]
    assert streamed(parts, include_usage=False)[-1] == Done("stop", None)
    writer = OpenAIReplyWriter(HEAD, include_usage=True)
    *chunks, done = [event.data for part in parts for event in writer.write(part)]
    assert done == "[DONE]"
    assert [json.loads(chunk)["usage"] is None for chunk in chunks] == [True, True, True, False]
    assert json.loads(chunks[-1])["choices"] == []


def test_an_attempt_is_not_told() -> None:
    assert OpenAIReplyWriter(HEAD).write(Attempt(1, "busy", 1.0)) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ((Thinking("hm", "sign"), Text("Yes")), (Thinking("hm"), Text("Yes"))),
        ((Thinking("", redacted="data"), Text("Yes")), (Text("Yes"),)),
        ((Text("Yes"), Thinking("hm"), Text("No")), (Thinking("hm"), Text("YesNo"))),
    ],
)
def test_what_a_whole_reply_has_no_place_for_is_lost(before: tuple[Block, ...], after: tuple[Block, ...]) -> None:
    reply = write_openai_reply(HEAD, before, Done("pause_turn"))
    assert wv.gathered(OpenAIReader().whole(reply)) == (after, [Done("stop")])


ERRORS: list[tuple[Exception, int, str, str | None, type[RectoError]]] = [
    (Invalid("stop must be a list.", field="stop"), 400, "invalid_request_error", None, Refused),
    (DoesNotFit("x", needed=2, room=1, largest="m"), 400, "invalid_request_error", "context_length_exceeded", Overflow),
    (Overflow("too long"), 400, "invalid_request_error", "context_length_exceeded", Overflow),
    (Refused("no"), 400, "invalid_request_error", None, Refused),
    (NoKey("needs a key"), 401, "invalid_request_error", "invalid_api_key", Refused),
    (NotFound("no such model", model="m"), 404, "invalid_request_error", "model_not_found", Refused),
    (RateLimited("slow down", retry_after_s=7), 429, "rate_limit_error", "rate_limit_exceeded", RateLimited),
    (Unreachable("gone"), 503, "server_error", None, Unreachable),
    (Busy("locked"), 503, "server_error", None, Unreachable),
    (ValueError("secret"), 500, "server_error", None, Unreachable),
]


@pytest.mark.parametrize(("error", "status", "kind", "code", "read_as"), ERRORS)
def test_an_error_has_its_status_and_is_read_as_what_it_is(
    error: Exception, status: int, kind: str, code: str | None, read_as: type[RectoError]
) -> None:
    reply = openai_error(error)
    told = reply.body["error"]
    assert (reply.status, told["type"], told["code"]) == (status, kind, code)
    assert told["param"] == ("stop" if isinstance(error, Invalid) else None)
    assert "secret" not in told["message"]
    assert type(from_status(TARGET, reply.status, dumpb(reply.body), reply.headers).error) is read_as


def test_a_wish_to_wait_is_handed_on() -> None:
    assert openai_error(RateLimited("slow down", retry_after_s=7.2)).headers == {"retry-after": "7"}


def test_an_error_inside_a_stream_is_read_as_one() -> None:
    writer, reader = OpenAIReplyWriter(HEAD), OpenAIReader()
    for event in writer.write(ThinkingPart("hm")):
        reader.read(event)
    [event] = writer.error(Overflow("too long"))
    with pytest.raises(ReportedError) as why:
        reader.read(event)
    assert isinstance(from_stream(TARGET, why.value.payload).error, Overflow)


@pytest.mark.parametrize("reply", [{"error": {"message": "no"}}, {"choices": [], "error": {"code": 500}}])
def test_a_whole_reply_may_be_an_error(reply: Any) -> None:
    with pytest.raises(ReportedError):
        OpenAIReader().whole(reply)


def test_a_server_that_tells_its_timings_all_along_gives_the_usage_so_far() -> None:
    timings = {"cache_n": 136, "prompt_n": 365, "predicted_n": 56}
    chunk = {"choices": [{"delta": {"content": "renamed"}}], "timings": timings}
    (part,) = OpenAIReader().read(ServerEvent(json.dumps(chunk)))
    assert part == TextPart("renamed", Usage(input=501, output=56, cache_read=136))
    (part,) = OpenAIReader().read(ServerEvent(json.dumps({**chunk, "timings": {"prompt_n": "many"}})))
    assert part == TextPart("renamed")
