"""Replies without end at the endpoint: what is stored and held in memory has a limit, whatever a client does."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from tests.providers.conftest import Loopback
from tests.serve.conftest import Endpoint, Start, Upstream, text_of, user

from recto.chat.blocks import written_text
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


def test_a_client_that_leaves_ends_a_stream_that_is_passed_on(endpoint: Start, endless: Loopback) -> None:
    server = endpoint("mine:m-1", on_disconnect="finish")
    body = {"model": "mine:m-1", "stream": True, "max_tokens": 10, "messages": [user("hello")]}
    with server.client.stream(
        "POST", "/v1/chat/completions", json=body, headers={"x-recto-mode": "record"}
    ) as response:
        passed, home = 0, response.headers["x-recto-conversation"]
        for chunk in response.iter_bytes():
            passed += len(chunk)
            if passed > 3 * MOST:
                break  # more than is stored, and not a byte changed
    assert endless.left.wait(300)
    server.run(settled(server))
    kept = server.messages(home)[-1]
    assert (kept.status, len(kept.text)) == ("stopped", MOST)
    assert "10 tokens that were asked for" in (kept.error or "")


def test_what_is_kept_of_a_passed_reply_has_a_bound() -> None:
    heard = HeardReply(ReplyMeter(ReplyLimit(), 10), OPENAI.reader(), is_stream=True)
    for _ in range(50):
        heard.add(AGAIN)
    assert heard.is_over
    assert not heard.is_read
    assert sum(map(len, map(written_text, heard.blocks))) <= MOST


def test_a_client_gets_a_managed_reply_as_one_that_was_too_long(endpoint: Start, endless: Loopback) -> None:
    server = endpoint("mine:m-1")
    response = server.post("chat/completions", max_tokens=10, messages=[user("hello")])
    assert response.json()["choices"][0]["finish_reason"] == "length"
    text = text_of(response)
    assert len(text) == MOST
    kept = server.messages(response.headers["x-recto-conversation"])[-1]
    assert (kept.status, kept.text) == ("stopped", text)
    assert endless.left.wait(300)


def test_a_provider_waits_for_a_client_that_reads_slowly(
    endpoint: Start, endless: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recto.serve.passing.MOST_UNREAD", 4)
    server = endpoint("mine:m-1", {"reply.max_characters": 100_000}, mode="record")
    body = {"model": "mine:m-1", "stream": True, "messages": [user("hello")]}
    with server.client.stream("POST", "/v1/chat/completions", json=body) as response:
        for _, chunk in zip(range(20), response.iter_bytes(), strict=False):
            assert chunk
    assert endless.left.wait(300)
