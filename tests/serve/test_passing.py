"""The mode `record`: not a byte is changed on the way."""

import json
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.providers.conftest import Loopback
from tests.serve.conftest import Endpoint, Start, Upstream, asked, assistant, events_of, user

from recto.errors import Invalid
from recto.providers.client_formats import body_pieces, with_model

Json = Any
USAGE = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}
REPLY = {
    "id": "up-1",
    "odd": {"field": [1]},
    "choices": [{"index": 0, "message": assistant("7 metres."), "finish_reason": "stop", "logprobs": {"x": 1}}],
    "usage": USAGE,
}
# spaces, order and unknown fields as no library writes them
BODY = b'{ "messages" : [ {"content":"How long?",  "role":"user", "odd": 1}\n ], "n":1 , "model":"m-1","top_k": 5 }'


def post(server: Endpoint, body: bytes) -> httpx2.Response:
    return server.client.post("/v1/chat/completions", content=body, headers={"x-recto-mode": "record"})


def test_not_a_byte_of_a_request_or_a_reply_is_changed(endpoint: Start, upstream: Upstream) -> None:
    provider = upstream(Loopback.whole(REPLY))
    server = endpoint("mine:m-1")
    response = post(server, BODY.replace(b"m-1", b"mine:m-1"))
    assert asked(provider) == [BODY]
    assert response.json() == REPLY
    assert response.headers["x-recto-mode"] == "record"


def test_a_model_with_another_api_is_refused(endpoint: Start, upstream: Upstream) -> None:
    provider = upstream(Loopback.whole(REPLY))
    server = endpoint("mine:m-1")
    refused = server.post("messages", {"x-recto-mode": "record"}, max_tokens=9, messages=[user("How long?")])
    assert (refused.status_code, "Use the mode manage" in refused.text, asked(provider)) == (400, True, [])


def test_what_is_recorded_rebuilds_to_the_bytes_that_were_sent(endpoint: Start, upstream: Upstream) -> None:
    provider = upstream(Loopback.whole(REPLY))
    server = endpoint("mine:m-1")
    first = post(server, BODY.replace(b"m-1", b"mine:m-1"))
    more = [user("How long?"), assistant("7 metres."), user("How wide?")]
    second = post(server, json.dumps({"model": "mine:m-1", "messages": more}).encode())
    for response, body in zip((first, second), asked(provider), strict=True):
        assert server.run(server.desk.rebuild(response.headers["x-recto-request"])) == body
    home = first.headers["x-recto-conversation"]
    assert home == second.headers["x-recto-conversation"]
    assert server.said(home) == ["How long?", "7 metres.", "How wide?", "7 metres."]
    assert all(problem is None for _, problem in server.run(server.desk.verify()))
    record = server.run(server.desk.record(first.headers["x-recto-request"]))
    assert record.outcome["finish"] == "stop"


def test_a_stream_is_passed_on_and_recorded(endpoint: Start, upstream: Upstream) -> None:
    chunk = {"id": "x", "choices": [{"index": 0, "delta": {"content": "7 metres."}, "finish_reason": None}]}
    last = {"id": "x", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": USAGE, "odd": 1}
    upstream(Loopback.events(chunk, last, "[DONE]"))
    server = endpoint("mine:m-1")
    body = json.dumps({"model": "mine:m-1", "stream": True, "messages": [user("How long?")]}).encode()
    response = post(server, body)
    assert events_of(response) == [chunk, last]
    assert server.said(response.headers["x-recto-conversation"]) == ["How long?", "7 metres."]


def test_an_error_of_the_provider_is_passed_on_and_the_message_is_kept(endpoint: Start, upstream: Upstream) -> None:
    upstream(Loopback.error(418, {"error": {"message": "a teapot"}}))
    server = endpoint("mine:m-1")
    response = post(server, BODY.replace(b"m-1", b"mine:m-1"))
    assert (response.status_code, response.json()) == (418, {"error": {"message": "a teapot"}})
    assert server.said(response.headers["x-recto-conversation"]) == ["How long?"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from(["model", "messages", "tools", "more", "x"])


@given(st.dictionaries(NAMES, JSON, max_size=5), st.sampled_from([None, 1, "\t"]))
def test_any_body_is_made_up_of_its_pieces(data: dict[str, Json], indent: Any) -> None:
    body = json.dumps(data, indent=indent, ensure_ascii=False).encode()
    pieces = body_pieces(body)
    assert b"".join(piece.data for piece in pieces) == body
    items = sum(len(data[name]) for name in ("messages", "tools") if isinstance(data.get(name), list))
    assert sum(piece.kind in ("message", "tool") for piece in pieces) == items
    changed = json.loads(with_model(body, "other"))
    assert changed == data | ({"model": "other"} if "model" in data else {})


@pytest.mark.parametrize("body", [b"[]", b"{", b'{"a" 1}', b'"x"', b""])
def test_a_body_that_is_no_object_is_refused(body: bytes) -> None:
    with pytest.raises(Invalid):
        body_pieces(body)
