"""What calls of the endpoint cost: every call is charged to its key before it is made, by any route and in any mode."""

import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.conftest import Script
from tests.providers.conftest import Loopback
from tests.serve.conftest import Endpoint, Start, Upstream, asked, assistant, user
from tests.serve.test_access import made
from tests.serve.test_endless_replies import settled

Json = Any
PRICE = {"input": 100.0, "output": 1000.0}
COST = 0.02
"""Of one reply: 100 tokens in, 10 out."""
USAGE = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
REPLY = {
    "id": "up-1",
    "choices": [{"index": 0, "message": assistant("7 metres."), "finish_reason": "stop"}],
    "usage": USAGE,
}
MODES = ("manage", "record")


@pytest.fixture
def upstream(upstream: Upstream) -> Upstream:
    """Its calls have a price."""
    return lambda *answers, prices=PRICE: upstream(*(answers or [Loopback.whole(REPLY)]), prices=prices)


def spent(server: Endpoint, key: str) -> float:
    return server.gateway.store.charges.spent_today(key)


def reported(server: Endpoint) -> float:
    (total,) = server.run(server.desk.spending("total"))
    return float(total.cost_usd + total.open_usd)


@pytest.mark.parametrize(("mode", "database"), [*((mode, "sqlite") for mode in MODES), ("record", "postgresql")])
def test_requests_at_the_same_time_spend_no_more_than_their_key_may(
    endpoint: Start, upstream: Upstream, request: Any, monkeypatch: Any, mode: str, database: str
) -> None:
    if database == "postgresql":
        monkeypatch.setenv("RECTO_DB", request.getfixturevalue("postgresql")())
    provider = upstream()
    server = endpoint("mine:m-1", needs_key=True)
    headers = made(server, "cap", spend_day=0.05) | {"x-recto-mode": mode}

    def ask(number: int) -> int:
        long = user(f"How long is boat {number}?" + " boat" * 100)
        return server.chat(long, headers=headers, max_tokens=10).status_code

    with ThreadPoolExecutor(10) as pool:
        codes = list(pool.map(ask, range(20)))
    assert set(codes) <= {200, 429}
    assert 0 < codes.count(200) == len(asked(provider)) <= 2
    assert spent(server, "cap") == pytest.approx(codes.count(200) * COST) == reported(server)


def test_no_header_takes_a_key_out_of_its_mode_or_its_limit(endpoint: Start, upstream: Upstream) -> None:
    provider = upstream()
    server = endpoint("mine:m-1", needs_key=True)
    fixed = made(server, "cap", spend_day=0.05, mode="record")
    refused = server.chat(user("How long?"), headers=fixed | {"x-recto-mode": "manage"})
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "x-recto-mode")
    assert server.chat(user("How long?"), headers=fixed, max_tokens=10).headers["x-recto-mode"] == "record"
    free = made(server, "free", spend_day=0.05) | {"x-recto-mode": "record"}
    codes = [server.chat(user("How long?"), headers=free, max_tokens=10).status_code for _ in range(4)]
    assert codes == [200, 200, 429, 429]
    assert len(asked(provider)) == 3


def test_embeddings_count_for_the_limit_and_in_the_reports(endpoint: Start, upstream: Upstream) -> None:
    provider = upstream(prices={"input": 1000.0})
    server = endpoint("mine:m-1", needs_key=True)
    headers = made(server, "cap", spend_day=0.12)
    codes = [server.post("embeddings", headers, model="mine:e-1", input="boat").status_code for _ in range(4)]
    assert codes == [200, 200, 429, 429], "50 tokens cost 5 cents; the bound is a token for each byte of the body"
    assert len(asked(provider)) == 2
    assert spent(server, "cap") == pytest.approx(0.1) == reported(server)
    (homeless,) = server.run(server.desk.spending("conversation"))
    assert (homeless.name, homeless.cost_usd) == ("no conversation", pytest.approx(0.1))
    (used,) = server.run(server.desk.token_use("purpose"))
    assert (used.name, used.requests, used.input, used.cost_usd) == ("embeddings", 2, 100, pytest.approx(0.1))
    assert server.run(server.desk.conversations()) == []


def test_a_key_with_a_limit_asks_no_model_without_a_price(endpoint: Start, upstream: Upstream) -> None:
    provider = upstream(prices=None)
    server = endpoint("mine:m-1", needs_key=True)
    headers = made(server, "cap", spend_day=5.0)
    for mode in MODES:
        refused = server.chat(user("How long?"), headers=headers | {"x-recto-mode": mode})
        assert (refused.status_code, "price of mine:m-1 is unknown" in refused.text) == (400, True)
    vectors = server.post("embeddings", headers, model="mine:e-1", input="boat")
    assert (vectors.status_code, len(asked(provider))) == (400, 0)
    assert server.chat(user("How long?"), headers=made(server, "other")).status_code == 200


def test_a_reply_without_a_length_is_as_long_as_the_limit_allows(endpoint: Start, upstream: Upstream) -> None:
    provider = upstream()
    server = endpoint("mine:m-1", needs_key=True)
    small, large = (made(server, f"{most}", spend_day=most) for most in (0.5, 50.0))
    response = server.chat(user("How long?"), headers=small)
    length = json.loads(provider.received[-1].body)["max_tokens"]
    assert response.headers["x-recto-max-tokens"] == str(length)
    assert 64 <= length < 500, "a thousand tokens out cost a dollar"
    assert server.chat(user("How long?"), headers=large).status_code == 200
    assert "max_tokens" not in json.loads(provider.received[-1].body)
    recorded = server.chat(user("How long?"), headers=made(server, "recorded", spend_day=0.5, mode="record"))
    assert recorded.status_code == 429, "not a byte is changed"


def test_a_field_that_may_raise_the_price_is_refused_under_a_limit(endpoint: Start, upstream: Upstream) -> None:
    provider = upstream()
    server = endpoint("mine:m-1", needs_key=True)
    headers = made(server, "cap", spend_day=5.0)
    fields: Json = {"models": ["dear"], "service_tier": "priority", "web_search_options": {}}
    for mode in MODES:
        for name, value in fields.items():
            asks = {"headers": headers | {"x-recto-mode": mode}, "max_tokens": 10, name: value}
            refused = server.chat(user("How long?"), **asks)
            assert (refused.status_code, refused.json()["error"]["param"], len(asked(provider))) == (400, name, 0)
    body = b'{"model":"mine:m-1","max_tokens":9000,"messages":[{"role":"user","content":"x"}],"max_tokens":1}'
    passing = headers | {"x-recto-mode": "record"}
    refused = server.client.post("/v1/chat/completions", content=body, headers=passing)
    assert (refused.status_code, refused.json()["error"]["param"], len(asked(provider))) == (400, "max_tokens", 0)
    assert server.chat(user("How long?"), headers=made(server, "free"), **fields).status_code == 200


def test_a_call_that_the_provider_refused_or_never_got_costs_nothing(
    endpoint: Start, upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    upstream(Loopback.error(418, {"error": "a teapot"}))
    monkeypatch.setenv("RECTO_GONE_BASE_URL", "http://127.0.0.1:9/v1")
    server = endpoint("mine:m-1", {"reply.tries": 1}, needs_key=True)
    headers = made(server, "cap", spend_day=0.05)
    for mode in MODES:
        for model in ("mine:m-1", *["gone:m-1"] * 5):
            in_mode = headers | {"x-recto-mode": mode}
            failed = server.chat(user("How long?"), headers=in_mode, model=model, max_tokens=10)
            assert failed.status_code >= 400
            assert spent(server, "cap") == 0.0, "it is settled before the client hears of it"
    assert reported(server) == 0.0


def test_a_stream_that_reports_no_usage_is_counted(endpoint: Start, upstream: Upstream) -> None:
    chunk = {"id": "x", "choices": [{"index": 0, "delta": {"content": "seven " * 30}, "finish_reason": None}]}
    last = {"id": "x", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    upstream(Loopback.events(chunk, last, "[DONE]"))
    server = endpoint("mine:m-1", needs_key=True)
    for model, least, most in (("mine:m-1", 0.03, 0.06), ("mine:gpt-5-x", 0.1, 0.2)):
        headers = made(server, model, spend_day=5.0, mode="record")
        answer = server.chat(user("How long?"), headers=headers, model=model, stream=True, max_tokens=100)
        assert "seven" in answer.text
        assert least < spent(server, model) < most, "what a model thinks unseen counts with its bound"


WRITTEN = "seven " * 30


def test_several_replies_without_usage_are_counted_once_each(endpoint: Start, upstream: Upstream) -> None:
    chunks = [
        {"id": "x", "choices": [{"index": number, "delta": {"content": WRITTEN}, "finish_reason": "stop"}]}
        for number in range(5)
    ]
    upstream(Loopback.events(*chunks, "[DONE]"))
    server = endpoint("mine:m-1", needs_key=True)
    headers = made(server, "cap", spend_day=5.0, mode="record")
    assert server.chat(user("How long?"), headers=headers, stream=True, n=5, max_tokens=100).status_code == 200
    assert 0.15 < spent(server, "cap") < 0.3


def test_a_reply_in_one_piece_that_nobody_waits_for_counts_with_its_bound(endpoint: Start, upstream: Upstream) -> None:
    provider = upstream(Loopback.nothing("hanging"))
    server = endpoint("mine:m-1", needs_key=True, on_disconnect="stop")
    headers = made(server, "cap", spend_day=5.0, mode="record")
    body = {"model": "mine:m-1", "max_tokens": 1000, "messages": [user("How long?")]}
    request = server.client.build_request("POST", "/v1/chat/completions", json=body, headers=headers)
    head = "".join(f"{name}: {value}\r\n" for name, value in request.headers.items())
    with socket.create_connection((request.url.host, request.url.port or 80)) as client:
        client.sendall(f"POST /v1/chat/completions HTTP/1.1\r\n{head}\r\n".encode() + request.content)
        while not asked(provider):
            time.sleep(0.01)
    server.run(settled(server))
    assert 1.0 < spent(server, "cap") < 1.1


@pytest.mark.parametrize("mode", MODES)
def test_an_answer_that_nobody_can_read_is_not_free(endpoint: Start, upstream: Upstream, mode: str) -> None:
    upstream(Loopback.stream(b"data: {half of\n\n"))
    server = endpoint("mine:m-1", needs_key=True)
    headers = made(server, "cap", spend_day=5.0, mode=mode)
    server.chat(user("How long?"), headers=headers, stream=True, max_tokens=1000)
    assert spent(server, "cap") > (0.0 if mode == "manage" else 1.0)


def test_a_call_whose_process_died_stays_counted(endpoint: Start, upstream: Upstream) -> None:
    upstream()
    server = endpoint("mine:m-1", needs_key=True)
    made(server, "cap", spend_day=0.05)
    server.gateway.store.charges.begin("cap", "mine:m-1", "embeddings", 0.04)
    assert spent(server, "cap") == 0.04 == reported(server)


def test_a_summary_counts_for_the_limit_of_its_key(endpoint: Start, script: Script) -> None:
    prices = {"input": 1.0, "output": 1.0}
    steps = ({"text": "A long answer. " * 40}, {"text": "They talked of boats.", "when": "summary"})
    server = endpoint(script(*steps, limit=1200, prices=prices), needs_key=True)
    headers = made(server, "cap", spend_day=1.0) | {"x-recto-conversation": "boats"}
    said: list[Json] = []
    for number in range(8):
        said.append(user(f"Tell me of boat {number}. " + "It is old. " * 20))
        said.append(assistant(server.chat(*said, headers=headers).json()["choices"][0]["message"]["content"]))
    purposes = {each.name for each in server.run(server.desk.spending("purpose"))}
    assert "summary" in purposes
    assert spent(server, "cap") == pytest.approx(reported(server))
