"""Requests with large bodies: a process of their own answers them, and clients notice nothing of it."""

import asyncio
import json
import re
import time
from asyncio.subprocess import Process
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import httpx2
import pytest
from tests.conftest import Script
from tests.serve.conftest import Start, assistant, events_of, text_of, user

from recto.serve.connections import BodyLimits
from recto.serve.workers import MEDIUM_BYTES, SMALL_BYTES

NO_EMBEDDER = {"search.embedder": "none"}
LARGE = "The quick brown fox jumps over the lazy dog. " * (SMALL_BYTES // 40)
DEEP = (950, 100_000)


def test_a_large_request_is_answered_by_a_worker_as_any_other(endpoint: Start, script: Script) -> None:
    model = script({"text": "One."}, {"text": "Two."}, limit=200_000)
    server = endpoint(model, NO_EMBEDDER, has_workers=True)
    first = server.chat(user(LARGE))
    assert (first.status_code, text_of(first)) == (200, "One.")
    more = (user(LARGE), assistant("One."), user("And?"))
    streamed = server.chat(*more, stream=True)
    said = [choice["delta"].get("content") for event in events_of(streamed) for choice in event["choices"]]
    assert "".join(filter(None, said)) == "Two."
    home = first.headers["x-recto-conversation"]
    # the server itself goes on where its worker stopped
    last = server.chat(assistant("Two."), user("Then?"), headers={"x-recto-conversation": home})
    assert last.headers["x-recto-conversation"] == streamed.headers["x-recto-conversation"] == home
    assert server.said(home) == [LARGE, "One.", "And?", "Two.", "Then?", "One."]
    # its requests are counted, it serves nobody else, and it ends with its server
    assert server.gateway.workers is not None
    worker = server.gateway.workers._medium
    assert worker._client is not None
    assert httpx2.get(worker._client.base_url.join("/health")).status_code == 403
    while not re.search(r'recto_requests_total{.*status="200"} 3', server.client.get("/metrics").text):
        pass
    process = worker._process
    server.stop()
    assert process is not None
    assert process.returncode == 0


def test_a_worker_that_dies_costs_its_requests_alone(endpoint: Start, script: Script) -> None:
    server = endpoint(script({"text": "Fine.", "hang_s": 3600}), NO_EMBEDDER, has_workers=True)
    assert server.gateway.workers is not None
    worker = server.gateway.workers._large

    def chunks() -> Iterator[bytes]:
        yield json.dumps({"model": server.model, "messages": [user("x" * SMALL_BYTES)]}).encode()
        while worker._process is None:
            time.sleep(0.01)
        worker._process.kill()
        while worker.is_running:
            time.sleep(0.01)
        yield b" "

    failed = server.client.post("/v1/chat/completions", content=chunks())
    assert (failed.status_code, failed.json()["error"]["type"]) == (503, "server_error")
    assert server.client.get("/health").status_code == 200


def test_of_the_largest_bodies_a_key_has_one_at_a_time(endpoint: Start, script: Script) -> None:
    server = endpoint(script({"text": "Fine."}, limit=2_000_000), NO_EMBEDDER, has_workers=True)
    workers, sizes = server.gateway.workers, list[int]()
    assert workers is not None
    body = json.dumps({"model": server.model, "messages": [user("x" * 1000)]}).encode() + b" " * MEDIUM_BYTES

    def send(content: Any) -> int:
        status: int = server.client.post("/v1/chat/completions", content=content).status_code
        return status

    def first() -> Iterator[bytes]:
        yield body
        second.append(pool.submit(send, iter([body, b" "])))
        while not any(turn._waiters for turn in workers._turns.values()) and not second[0].done():
            time.sleep(0.01)
        sizes.append(workers._large._running)
        yield b" "

    with ThreadPoolExecutor() as pool:
        second = list[Future[int]]()
        assert send(first()) == 200
        assert second[0].result() == 200
    assert sizes == [1]


def test_a_worker_ends_when_nobody_needs_it_and_starts_again(
    endpoint: Start, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = endpoint(script({"text": "Fine."}, limit=200_000), NO_EMBEDDER, has_workers=True)
    assert server.gateway.workers is not None
    worker, started, start = server.gateway.workers._medium, list[Process](), asyncio.create_subprocess_exec

    async def noted(*command: Any, **more: Any) -> Process:
        started.append(await start(*command, **more))
        return started[-1]

    monkeypatch.setattr(asyncio, "create_subprocess_exec", noted)
    monkeypatch.setattr("recto.serve.workers.IDLE_S", 0.0)
    for _ in range(2):
        assert text_of(server.chat(user(LARGE))) == "Fine."
        while worker._process is not None:
            time.sleep(0.01)
    server.stop()
    assert [process.returncode for process in started] == [0, 0]


@pytest.mark.parametrize("is_declared", [True, False])
def test_a_body_above_the_limit_is_refused_unread(endpoint: Start, script: Script, is_declared: bool) -> None:
    limits = BodyLimits(body_bytes=MEDIUM_BYTES)
    server = endpoint(script({"text": "Fine."}), NO_EMBEDDER, has_workers=is_declared, limits=limits)
    body = json.dumps({"model": server.model, "messages": [user("x" * MEDIUM_BYTES)]}).encode()
    sent: Any = body if is_declared else iter([body[:1000], body[1000:]])
    refused = server.client.post("/v1/chat/completions", content=sent)
    assert refused.status_code == 413
    assert "larger than the 1,048,576 bytes" in refused.json()["error"]["message"]


def test_json_that_is_nested_too_deeply_is_refused_as_the_clients_mistake(endpoint: Start, script: Script) -> None:
    server = endpoint(script({"text": "Fine."}), NO_EMBEDDER)
    found = set()
    for depth in DEEP:
        nested = "[" * depth + "]" * depth
        tool = f'{{"name":"f","parameters":{{"x":{nested}}}}}'
        tools = f'"tools":[{{"type":"function","function":{tool}}}],'
        for odd in (f'"metadata":{nested},', tools, f'"messages":{nested},'):
            body = f'{{"model":"{server.model}",{odd}"messages":[{{"role":"user","content":"Hi"}}]}}'
            for mode in ("manage", "record", "passthrough"):
                for path in ("chat/completions", "responses", "embeddings", "messages"):
                    headers = {"x-recto-mode": mode}
                    found.add(server.client.post(f"/v1/{path}", content=body.encode(), headers=headers).status_code)
    assert found <= {200, 400, 404}
