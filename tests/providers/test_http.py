"""The way to a provider, over a real server on loopback, in both wire formats."""

import asyncio
import json
import socket
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
from tests.providers import wire_values as wv
from tests.providers.conftest import Answer, End, Loopback, OneModel

from recto.chat.blocks import ToolCall
from recto.chat.message import Usage
from recto.errors import NoKey, Overflow, ProviderError, RateLimited, Refused, Unreachable
from recto.providers.anthropic import AnthropicProvider
from recto.providers.http import MAX_EVENT_BYTES, RETRY_POLICY, RetryPolicy, Transport
from recto.providers.model import Attempt, Done, ReplyPart, TextPart
from recto.providers.openai import OpenAIProvider
from recto.providers.remote import RemoteProvider
from recto.wire import Json, dumpb

BODY = dumpb({"model": "gpt-x", "stream": True, "messages": [{"role": "user", "content": "Grüße 😀"}]})


@dataclass(frozen=True)
class Speaker:
    """A provider, and what its server says."""

    provider: type[RemoteProvider]
    begins: tuple[Json, ...]
    ends: tuple[Json, ...]
    overloaded: Json

    def whole(self, text: str, *, calls: bool = False) -> Json:
        """The reply that the server gives where it does not stream."""
        if self.provider is AnthropicProvider:
            called = [{"type": "tool_use", "id": "a", "name": "look", "input": {"at": "hill"}}] * calls
            content = [*[{"type": "text", "text": text}] * bool(text), *called]
            stop, usage = "tool_use" if calls else "end_turn", {"input_tokens": 7, "output_tokens": 2}
            return {"type": "message", "role": "assistant", "content": content, "stop_reason": stop, "usage": usage}
        message: dict[str, Json] = {"role": "assistant", "content": text or None}
        if calls:
            function = {"name": "look", "arguments": '{"at":"hill"}'}
            message["tool_calls"] = [{"id": "a", "type": "function", "function": function}]
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
        return {"object": "chat.completion", "choices": [choice], "usage": {"prompt_tokens": 7, "completion_tokens": 2}}

    @property
    def reply(self) -> tuple[Json, ...]:
        return self.begins + self.ends


OPENAI = Speaker(
    OpenAIProvider,
    ({"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]},
     {"choices": [{"index": 0, "delta": {"content": "Grüße"}}]}),
    ({"choices": [{"index": 0, "delta": {"content": " 😀"}}]},
     {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
     "[DONE]"),
    {"error": {"message": "Overloaded", "code": 503}},
)  # fmt: skip
ANTHROPIC = Speaker(
    AnthropicProvider,
    ({"type": "message_start", "message": {"content": []}},
     {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
     {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Grüße"}}),
    ({"type": "ping"},
     {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": " 😀"}},
     {"type": "content_block_stop", "index": 0},
     {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
     {"type": "message_stop"}),
    {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
)  # fmt: skip
REPLY = [TextPart("Grüße"), TextPart(" 😀"), Done("stop")]


@pytest.fixture(params=[OPENAI, ANTHROPIC], ids=["openai", "anthropic"])
def speaker(request: pytest.FixtureRequest) -> Speaker:
    assert isinstance(request.param, Speaker)
    return request.param


@dataclass
class Talk:
    """What came of asking once: parts, the error, the waits between tries, what the server saw."""

    parts: list[ReplyPart]
    error: ProviderError | None
    waits: list[float]
    server: Loopback

    @property
    def attempts(self) -> list[Attempt]:
        return [part for part in self.parts if isinstance(part, Attempt)]


Ask = Callable[..., Talk]


@pytest.fixture
def ask(speaker: Speaker) -> Ask:
    def ask(
        *answers: Answer, times: int = 1, retry_policy: RetryPolicy = RETRY_POLICY, key: str | None = "sk-1"
    ) -> Talk:
        async def go() -> Talk:
            waits: list[float] = []

            async def sleep(seconds: float) -> None:
                waits.append(seconds)

            async with Loopback(*answers) as server:
                transport = Transport(retry_policy, sleep)
                provider = speaker.provider(
                    "acme", server.url, key, OneModel(), key_variable="ACME_KEY", transport=transport
                )
                talk = Talk([], None, waits, server)
                try:
                    for _ in range(times):
                        async for part in provider.stream(BODY, "reply"):
                            talk.parts.append(part)
                except ProviderError as error:
                    talk.error = error
                finally:
                    await provider.close()
                return talk

        return asyncio.run(go())

    return ask


def test_a_reply_streams_and_the_bytes_arrive_exactly(ask: Ask, speaker: Speaker) -> None:
    talk = ask(Loopback.events(*speaker.reply))
    assert talk.parts == REPLY
    assert talk.server.received[0].body == BODY


def test_the_key_travels_in_its_header_only(ask: Ask, speaker: Speaker) -> None:
    received = ask(Loopback.events(*speaker.reply)).server.received[0]
    header = {"openai": ("authorization", "Bearer sk-1"), "anthropic": ("x-api-key", "sk-1")}
    name, value = header["openai" if speaker is OPENAI else "anthropic"]
    assert received.headers[name] == value
    assert received.target == ("/v1/chat/completions" if speaker is OPENAI else "/v1/messages")
    assert received.headers["content-type"] == "application/json"


@pytest.mark.parametrize(("key", "error"), [(None, NoKey), ("sk-…", Refused)])
def test_without_a_key_that_a_header_can_carry_nothing_is_sent(
    ask: Ask, key: str | None, error: type[ProviderError]
) -> None:
    talk = ask(Loopback.events("[DONE]"), key=key)
    assert type(talk.error) is error
    assert not talk.error.sent
    assert "ACME_KEY" in talk.error.message
    assert talk.server.received == []


def test_a_limit_is_waited_for_as_the_server_wishes(ask: Ask, speaker: Speaker) -> None:
    slow = Loopback.error(429, {"error": {"message": "slow down"}}, retry_after="7")
    talk = ask(slow, Loopback.events(*speaker.reply))
    assert talk.waits == [7.0]
    [attempt] = talk.attempts
    assert (attempt.number, attempt.wait_s) == (1, 7.0)
    assert talk.parts == [attempt, *REPLY]
    assert [each.body for each in talk.server.received] == [BODY, BODY]


def test_a_wish_that_is_longer_than_our_patience_ends_at_once(ask: Ask, speaker: Speaker) -> None:
    talk = ask(Loopback.error(429, {}, retry_after="3600"), Loopback.events(*speaker.reply))
    assert isinstance(talk.error, RateLimited)
    assert (talk.error.retry_after_s or 0) > 60
    assert talk.waits == []


@pytest.mark.parametrize(
    ("status", "kind"), [(408, Unreachable), (503, Unreachable), (529, Unreachable), (429, RateLimited)]
)
def test_server_errors_and_limits_are_tried_four_times_with_growing_waits(
    ask: Ask, status: int, kind: type[ProviderError]
) -> None:
    talk = ask(Loopback.error(status, {"error": {"message": "oops"}}))
    assert type(talk.error) is kind
    assert not talk.error.partial
    assert len(talk.server.received) == 4
    assert talk.waits == sorted(talk.waits)
    assert talk.waits == [attempt.wait_s for attempt in talk.attempts]


@pytest.mark.parametrize(
    ("status", "payload", "kind"),
    [
        (429, {"message": "no money", "code": "insufficient_quota"}, Refused),
        (404, {"message": "not here"}, Refused),
        (400, {"message": "prompt is too long: 9 tokens > 8 maximum"}, Overflow),
    ],
)
def test_what_no_retry_can_help_is_asked_once(ask: Ask, status: int, payload: Json, kind: type[ProviderError]) -> None:
    talk = ask(Loopback.error(status, {"error": payload}))
    assert type(talk.error) is kind
    assert len(talk.server.received) == 1


def test_a_connection_closed_before_the_first_token_is_tried_again(ask: Ask, speaker: Speaker) -> None:
    answers = (
        Loopback.nothing("closed"),
        Loopback.events(speaker.begins[0], end="aborted"),
        Loopback.events(*speaker.reply),
    )
    talk = ask(*answers)
    assert [part for part in talk.parts if not isinstance(part, Attempt)] == REPLY
    assert len(talk.attempts) == 2
    assert talk.waits[0] == 0.0  # a pooled connection that had died needs a fresh one, not time


@pytest.mark.parametrize("end", ["closed", "aborted", "whole"])
def test_a_stream_broken_after_the_first_token_is_unreachable_and_never_tried_again(
    ask: Ask, speaker: Speaker, end: End
) -> None:
    talk = ask(Loopback.events(*speaker.begins, end=end))
    assert isinstance(talk.error, Unreachable)
    assert talk.error.partial
    assert talk.parts == [TextPart("Grüße")]
    assert len(talk.server.received) == 1


def test_a_connection_that_breaks_after_the_finish_loses_nothing(ask: Ask, speaker: Speaker) -> None:
    assert ask(Loopback.events(*speaker.reply[:-1], end="closed")).parts == REPLY
    assert ask(Loopback.events(*speaker.reply[:-1])).parts == REPLY


def test_an_error_inside_the_stream_after_a_token_is_raised_as_partial(ask: Ask, speaker: Speaker) -> None:
    talk = ask(Loopback.events(*speaker.begins, speaker.overloaded))
    assert isinstance(talk.error, Unreachable)
    assert talk.error.partial
    assert "Overloaded" in talk.error.message


@pytest.mark.parametrize("chunk", [b"data: what?\n\n", b"data: 7\n\n", b'data: {"choices"\n\n', b"data: [[1]]\n\n"])
def test_garbage_inside_the_stream_is_unreachable(ask: Ask, speaker: Speaker, chunk: bytes) -> None:
    begun = Loopback.events(*speaker.begins).chunks
    for chunks, partial in (((chunk,), False), ((*begun, chunk), True)):
        talk = ask(Loopback.stream(*chunks))
        assert isinstance(talk.error, Unreachable)
        assert talk.error.partial is partial
        assert len(talk.server.received) == 1


NO_STREAMS = {
    "bytes": Loopback.stream(b"\x00\xff\x00\xff"),
    "a page": Loopback.page(200, "<html><title>Welcome to the hotel</title></html>"),
    "lines of a page": Loopback.stream(b"<html>\n<p>Log in first</p>\n</html>"),
    "a page without an end": Loopback.stream(*[b"<p>more</p>\n" * 10_000] * 5, end="hanging"),
    "a line without an end": Loopback.stream(*[b"x" * (MAX_EVENT_BYTES // 8)] * 9),
    "an empty object": Loopback.whole({}),
    "no choices": Loopback.whole({"choices": []}),
    "no content": Loopback.whole({"content": None}),
    "another reply": Loopback.whole({"choices": [{"text": "x"}]}),
    "a number": Loopback.whole(5),
}


@pytest.mark.parametrize("what", NO_STREAMS)
def test_what_is_no_reply_is_unreachable_and_says_what_to_check(ask: Ask, what: str) -> None:
    talk = ask(NO_STREAMS[what])
    assert isinstance(talk.error, Unreachable)
    assert "address" in talk.error.message
    assert len(talk.server.received) == 1


@pytest.mark.parametrize("kind", ["application/json", "text/plain; charset=latin-1", ""])
def test_a_stream_under_another_content_type_is_read_all_the_same(ask: Ask, speaker: Speaker, kind: str) -> None:
    assert ask(replace(Loopback.events(*speaker.reply), headers={"content-type": kind})).parts == REPLY


def test_a_reply_in_one_piece_has_its_calls_and_usage(ask: Ask, speaker: Speaker) -> None:
    pretty = json.dumps(speaker.whole("", calls=True), indent=2).encode()
    talk = ask(replace(Loopback.whole({}), chunks=(pretty[:70], pretty[70:])))
    assert wv.gathered(talk.parts) == ((ToolCall("a", "look", '{"at":"hill"}'),), [Done("tool_calls", Usage(7, 2))])


USAGE: list[Json] = ["x", [], [1], -1, True, {"input_tokens": "x", "prompt_tokens": "7"},
    {"input_tokens": 1e999, "prompt_tokens": {}},
    {"prompt_tokens": 7, "completion_tokens": [], "prompt_tokens_details": 5},
    {"prompt_tokens": None, "input_tokens": [1]}, {"input_tokens": -3, "prompt_tokens": -3}]  # fmt: skip


PING = b'event: ping\ndata: {"type": "ping"}\n\n'
EMPTY_OPENAI = {"choices": [{"index": 0, "delta": {"content": ""}}]}
EMPTY_ANTHROPIC = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": ""}}


@pytest.mark.parametrize("begun", [False, True])
def test_a_server_that_only_says_that_it_lives_or_nothing_is_given_up(ask: Ask, speaker: Speaker, begun: bool) -> None:
    empty = b"data: " + json.dumps(EMPTY_OPENAI if speaker is OPENAI else EMPTY_ANTHROPIC).encode() + b"\n\n"
    again = b": keep-alive\n\n" + PING + empty * begun
    answer = Loopback.events(*speaker.begins) if begun else Loopback.stream()
    talk = ask(replace(answer, again=again), retry_policy=RetryPolicy(read_s=0.4))
    assert isinstance(talk.error, Unreachable)
    assert "silent" in talk.error.message
    assert talk.error.partial is begun
    assert len(talk.server.received) == 1


@pytest.mark.parametrize("wish", ["inf", "nan", "-5", "1e400", "9" * 400, "Wed, 21 Oct 2015 07:28:00 GMT", ""])
def test_a_wish_that_makes_no_sense_never_makes_a_wait_without_end(ask: Ask, speaker: Speaker, wish: str) -> None:
    for name in ("retry_after", "retry_after_ms"):
        talk = ask(Loopback.error(429, {}, **{name: wish}), Loopback.events(*speaker.reply))
        assert all(0 < wait_s <= 60 for wait_s in talk.waits)
        if talk.error:
            assert isinstance(talk.error, RateLimited)
            assert (talk.error.retry_after_s or 0) <= 24 * 3600


async def test_nobody_listening_is_unreachable(speaker: Speaker) -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    with socket.create_server(("127.0.0.1", 0)) as nobody:
        url = "http://{}:{}".format(*nobody.getsockname())
    provider = speaker.provider("acme", url, "k", OneModel(), transport=Transport(sleep=sleep))
    with pytest.raises(Unreachable, match=url) as caught:
        [part async for part in provider.stream(BODY, "reply")]
    assert not caught.value.sent
    assert len(waits) == 3
    await provider.close()


def test_a_proxy_of_the_environment_is_not_for_loopback(
    ask: Ask, speaker: Speaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert ask(Loopback.events(*speaker.reply)).parts == REPLY


def test_a_last_event_without_its_blank_line_counts(ask: Ask, speaker: Speaker) -> None:
    *chunks, last = Loopback.events(*speaker.reply).chunks
    assert ask(Loopback.stream(*chunks, last.rstrip(b"\n"))).parts == REPLY
