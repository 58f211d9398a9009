"""Replies in both formats, written for a client and read again by our own reader."""

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
    StoreError,
    Unreachable,
)
from recto.providers.anthropic_client import AnthropicReplyWriter
from recto.providers.client import ReplyHead
from recto.providers.client_formats import ANTHROPIC, OPENAI, ClientFormat
from recto.providers.http import EventReader, ReportedError, RequestTarget, from_status, from_stream
from recto.providers.model import CallPart, Done, ReplyPart, ThinkingPart
from recto.providers.openai import OpenAIReader
from recto.providers.openai_client import openai_error
from recto.wire import dumpb, loads

HEAD = ReplyHead("reply-1", "acme:m", 1_800_000_000)
TARGET = RequestTarget("acme", "http://127.0.0.1/v1", "m")
THOUGHTS = st.builds(Thinking, wv.TEXTS, st.none() | wv.IDS) | wv.IDS.map(lambda data: Thinking("", redacted=data))
FINISHES = st.sampled_from(["stop", "length", "refusal"])
# a client of OpenAI's format learns no signatures, and may get no usage
EXPRESSIBLE = st.tuples(st.just(OPENAI), wv.replies(st.builds(Thinking, wv.TEXTS)), st.none() | wv.USAGES)
EXPRESSIBLE |= st.tuples(st.just(ANTHROPIC), wv.replies(THOUGHTS), wv.USAGES)
both = pytest.mark.parametrize("format", [OPENAI, ANTHROPIC], ids=lambda each: each.name)


def ended(blocks: tuple[Block, ...], finish: str, usage: Usage | None) -> Done:
    """A reply that calls a tool ends with that."""
    called = finish == "stop" and any(isinstance(block, ToolCall) for block in blocks)
    return Done("tool_calls" if called else finish, usage)


def streamed(format: ClientFormat, parts: list[ReplyPart], *, include_usage: bool = True) -> list[ReplyPart]:
    """Written, sent as bytes, and read."""
    writer, events, reader = format.open_writer(HEAD, include_usage), EventReader(), format.reader()
    sent = b"".join(event.encoded for part in parts for event in writer.write(part))
    return [part for event in [*events.feed(sent), *events.end()] for part in reader.read(event)]


@given(EXPRESSIBLE, FINISHES)
def test_a_reply_that_we_write_reads_the_same(
    reply: tuple[ClientFormat, tuple[Block, ...], Usage | None], finish: str
) -> None:
    format, blocks, usage = reply
    done = ended(blocks, finish, usage)
    assert wv.gathered(streamed(format, [*wv.parts_of(blocks), done])) == (blocks, [done])
    assert wv.gathered(format.reader().whole(format.write_reply(HEAD, blocks, done))) == (blocks, [done])


@given(st.lists(st.builds(Text, wv.TEXTS) | THOUGHTS, max_size=6))
def test_thinking_and_texts_keep_their_order_in_anthropics_format(blocks: list[Block]) -> None:
    parts = [*wv.parts_of(tuple(blocks)), Done("stop", Usage())]
    assert wv.gathered(streamed(ANTHROPIC, parts)) == wv.gathered(parts)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ((Thinking("hm", "sign"), Text("Yes")), (Thinking("hm"), Text("Yes"))),
        ((Thinking("", redacted="data"), Text("Yes")), (Text("Yes"),)),
        ((Text("Yes"), Thinking("hm"), Text("No")), (Thinking("hm"), Text("YesNo"))),
    ],
)
def test_what_openais_format_has_no_place_for_is_lost(before: tuple[Block, ...], after: tuple[Block, ...]) -> None:
    reply = OPENAI.write_reply(HEAD, before, Done("pause_turn"))
    assert wv.gathered(OpenAIReader().whole(reply)) == (after, [Done("stop")])


def test_what_anthropics_format_has_no_place_for_is_lost() -> None:
    before = (ToolCall("c", "look", "[1"),)
    reply = ANTHROPIC.write_reply(HEAD, before, Done("pause", None))
    assert wv.gathered(ANTHROPIC.reader().whole(reply)) == ((ToolCall("c", "look", "{}"),), [Done("stop", Usage())])
    parts = [*wv.parts_of(before), Done("pause", None)]
    assert wv.gathered(streamed(ANTHROPIC, parts)) == (before, [Done("stop", Usage())])


def test_calls_that_are_mixed_up_end_anthropics_stream_with_a_sentence() -> None:
    writer = AnthropicReplyWriter(HEAD)
    for part in (CallPart(0, "a", "look"), CallPart(1, "b", "look")):
        writer.write(part)
    with pytest.raises(Unreachable, match="two tool calls"):
        writer.write(CallPart(0, arguments="{}"))


INVALID = "invalid_request_error"
# Status, OpenAI's type and code, Anthropic's type, and what our own provider makes of it.
ERRORS: list[tuple[Exception, int, str, str | None, str, type[RectoError]]] = [
    (Invalid("stop must be a list.", field="stop"), 400, INVALID, None, INVALID, Refused),
    (DoesNotFit("x", needed=2, room=1, largest="m"), 400, INVALID, "context_length_exceeded", INVALID, Overflow),
    (Overflow("x"), 400, INVALID, "context_length_exceeded", INVALID, Overflow),
    (Refused("no"), 400, INVALID, None, INVALID, Refused),
    (NoKey("needs a key"), 401, INVALID, "invalid_api_key", "authentication_error", Refused),
    (NotFound("no such model", model="m"), 404, INVALID, "model_not_found", "not_found_error", Refused),
    (RateLimited("slow", retry_after_s=7.2), 429, "rate_limit_error", "rate_limit_exceeded", "rate_limit_error",
     RateLimited),
    (Unreachable("gone"), 503, "server_error", None, "api_error", Unreachable),
    (Busy("locked"), 503, "server_error", None, "api_error", Unreachable),
    (StoreError("full"), 500, "server_error", None, "api_error", Unreachable),
    (ValueError("secret"), 500, "server_error", None, "api_error", Unreachable),
]  # fmt: skip


@pytest.mark.parametrize(("error", "status", "openai", "code", "anthropic", "read_as"), ERRORS)
def test_an_error_has_its_status_and_is_read_as_what_it_is(
    error: Exception, status: int, openai: str, code: str | None, anthropic: str, read_as: type[RectoError]
) -> None:
    for format, kind in ((OPENAI, openai), (ANTHROPIC, anthropic)):
        reply = format.error(error)
        assert (reply.status, reply.body["error"]["type"]) == (status, kind)
        assert "secret" not in reply.body["error"]["message"]
        assert reply.headers == ({"retry-after": "7"} if isinstance(error, RateLimited) else {})
        assert type(from_status(TARGET, reply.status, dumpb(reply.body), reply.headers).error) is read_as
    written = openai_error(error).body["error"]
    assert (written["code"], written["param"]) == (code, "stop" if isinstance(error, Invalid) else None)
    assert ANTHROPIC.error(error).body["type"] == "error"


@both
def test_an_error_inside_a_stream_is_read_as_one(format: ClientFormat) -> None:
    writer, reader = format.open_writer(HEAD, True), format.reader()
    for event in writer.write(ThinkingPart("hm")):
        reader.read(event)
    [event] = writer.error(Overflow("too long"))
    with pytest.raises(ReportedError) as why:
        reader.read(event)
    assert isinstance(from_stream(TARGET, why.value.payload).error, Overflow)
    with pytest.raises(ReportedError):
        format.reader().whole(loads(event.data))
