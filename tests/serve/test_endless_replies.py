"""Replies without end at the endpoint: what is stored and held in memory has a limit, whatever a client does."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from tests.providers.conftest import Loopback
from tests.serve.conftest import Endpoint, Start, Upstream, text_of, user

from recto.providers.client_formats import OPENAI
from recto.providers.model import ReplyLimit, ReplyMeter
from recto.serve.passing import HeardReply
from recto.wire import dumps

Json = Any
WORDS = "words that go on and on " * 10
AGAIN = f"data: {dumps({'choices': [{'index': 0, 'delta': {'content': WORDS}}]})}\n\n".encode() * 20
MOST = 64 * 128


@pytest.fixture
def endless(upstream: Upstream) -> Loopback:
    return upstream(replace(Loopback.stream(AGAIN), again=AGAIN))


async def settled(server: Endpoint) -> None:
    while running := list(server.gateway._running):
        await asyncio.wait(running)


@pytest.mark.parametrize("mode", ["record", "passthrough"])
def test_a_client_that_leaves_ends_a_stream_that_is_passed_on(endpoint: Start, endless: Loopback, mode: str) -> None:
    server = endpoint("mine:m-1", on_disconnect="finish")
    body = {"model": "mine:m-1", "stream": True, "max_tokens": 10, "messages": [user("hello")]}
    with server.client.stream("POST", "/v1/chat/completions", json=body, headers={"x-recto-mode": mode}) as response:
        passed, home = 0, response.headers.get("x-recto-conversation")
        for chunk in response.iter_bytes():
            passed += len(chunk)
            if passed > 3 * MOST:
                break  # more than is stored, and not a byte changed
    assert endless.left.wait(300)
    server.run(settled(server))
    if home:
        kept = server.messages(home)[-1]
        assert (kept.status, len(kept.text)) == ("stopped", MOST)
        assert "10 tokens that were asked for" in (kept.error or "")


def test_what_is_counted_of_a_passed_reply_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recto.serve.passing.MAX_EVENT_BYTES", 100_000)
    unknown = f"data: {dumps({'choices': [{'index': 0, 'delta': {'content': 'x', 'odd': WORDS}}]})}\n\n".encode()
    for event, most in ((AGAIN, 2 * MOST), (unknown, 101_000)):
        heard = HeardReply(ReplyMeter(ReplyLimit(), 10), OPENAI.reader())
        for _ in range(5_000):
            heard.add(event)
        assert heard.is_over
        assert not heard.is_read
        assert heard.sent_chars == len(heard.text) < most


@pytest.mark.parametrize("mode", ["manage", "record"])
def test_a_client_gets_a_managed_or_translated_reply_as_one_that_was_too_long(
    endpoint: Start, endless: Loopback, mode: str
) -> None:
    server = endpoint("mine:m-1")
    body: Json = {"max_tokens": 10, "messages": [user("hello")]}
    if mode == "manage":
        response = server.post("chat/completions", **body)
        assert response.json()["choices"][0]["finish_reason"] == "length"
        text = text_of(response)
    else:
        response = server.post("messages", {"x-recto-mode": mode}, **body)
        assert response.json()["stop_reason"] == "max_tokens"
        text = response.json()["content"][0]["text"]
    assert len(text) == MOST
    kept = server.messages(response.headers["x-recto-conversation"])[-1]
    assert (kept.status, kept.text) == ("stopped", text)
    assert endless.left.wait(300)


def test_a_provider_waits_for_a_client_that_reads_slowly(
    endpoint: Start, endless: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recto.serve.passing.MOST_UNREAD", 4)
    server = endpoint("mine:m-1", {"reply.max_characters": 100_000}, mode="passthrough")
    body = {"model": "mine:m-1", "stream": True, "messages": [user("hello")]}
    with server.client.stream("POST", "/v1/chat/completions", json=body) as response:
        for _, chunk in zip(range(20), response.iter_bytes(), strict=False):
            assert chunk
    assert endless.left.wait(300)
