"""Bodies that no client should send: what is wrong with one is said to its client, and nothing fails unexpectedly."""

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Script
from tests.serve.conftest import Start, user

from recto.errors import Invalid, Refused, StoreError
from recto.providers.client_formats import ANTHROPIC, OPENAI
from recto.providers.openai_responses import read_responses_request
from recto.serve.connections import BodyLimits
from recto.serve.gateway import LARGE_BYTES

Json = Any
PIXEL = "iVBORw0KGgo="
SCHEMA = {"type": "object", "properties": {"boat": {"type": "string"}}}
CHAT = {
    "model": "recto",
    "messages": [
        {"role": "system", "content": "Be short."},
        {
            "role": "user",
            "name": "ada",
            "content": [
                {"type": "text", "text": "How long?"},
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}", "detail": "low"}},
                {"type": "file", "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{PIXEL}"}},
            ],
        },
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "7 metres"},
        {"role": "user", "content": "And wide?"},
    ],
    "tools": [{"type": "function", "function": {"name": "look", "description": "Looks.", "parameters": SCHEMA}}],
    "tool_choice": {"type": "function", "function": {"name": "look"}},
    "response_format": {"type": "json_schema", "json_schema": {"name": "boat", "schema": SCHEMA, "strict": True}},
    "stream": False,
    "max_tokens": 10,
    "temperature": 1,
    "top_p": 1,
    "stop": ["x"],
    "n": 1,
    "seed": 1,
}
MESSAGES = {
    "model": "recto",
    "max_tokens": 2000,
    "system": [{"type": "text", "text": "Be short.", "cache_control": {"type": "ephemeral"}}],
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "How long?"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
                {"type": "document", "title": "a", "source": {"type": "text", "media_type": "text/plain", "data": "x"}},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "s"},
                {"type": "tool_use", "id": "t1", "name": "look", "input": {"boat": "x"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "t1",
                    "content": [{"type": "text", "text": "7"}],
                    "is_error": False,
                }
            ],
        },
    ],
    "tools": [{"name": "look", "description": "Looks.", "input_schema": SCHEMA}],
    "tool_choice": {"type": "tool", "name": "look"},
    "thinking": {"type": "enabled", "budget_tokens": 1024},
    "stop_sequences": ["x"],
    "metadata": {"user_id": "u"},
    "temperature": 1,
}
RESPONSES = {
    "model": "recto",
    "instructions": "Be short.",
    "input": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "How long?"}]},
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "7"},
        {"role": "user", "content": "And wide?"},
    ],
    "tools": [{"type": "function", "name": "look", "description": "Looks.", "parameters": SCHEMA}],
    "text": {"format": {"type": "json_schema", "name": "boat", "schema": SCHEMA}},
    "reasoning": {"effort": "low"},
    "max_output_tokens": 10,
    "temperature": 1,
    "stream": False,
}
WRONG: tuple[Json, ...] = (None, 0, -1, 1.5, True, "", "x", [], [None], ["x"], {}, {"type": "x"})
READERS: dict[str, tuple[Json, Callable[[bytes], object]]] = {
    "/v1/chat/completions": (CHAT, OPENAI.read_request),
    "/v1/messages": (MESSAGES, ANTHROPIC.read_request),
    "/v1/responses": (RESPONSES, read_responses_request),
}


def broken(value: Json) -> Iterator[Json]:
    """The value with something wrong at each of its places, one at a time: missing, null, or of another type."""
    items = (
        list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else []
    )
    for at, inner in items:
        copy = value.copy()
        del copy[at]
        yield copy
        for each in (*WRONG, *broken(inner)):
            changed = value.copy()
            changed[at] = each
            yield changed


@pytest.mark.parametrize("route", READERS)
def test_a_reader_refuses_what_is_wrong_at_any_place_and_names_it(route: str) -> None:
    whole, read = READERS[route]
    read(json.dumps(whole).encode())
    for body in (*WRONG, *broken(whole)):
        with suppress(Invalid):
            read(json.dumps(body).encode())


@pytest.mark.slow
@pytest.mark.parametrize("route", [*READERS, "/v1/embeddings"])
def test_no_body_makes_the_server_fail(endpoint: Start, script: Script, route: str) -> None:
    server = endpoint(script({"text": "7 metres."}))
    whole = READERS[route][0] if route in READERS else {"model": "recto", "input": "boat"}
    top = [*WRONG, *(body for body in broken({**whole, "messages": [user("x")]} if "messages" in whole else whole))]
    first = (
        [{**whole, "messages": [each]} for each in broken({"role": "user", "content": "x"})]
        if "messages" in whole
        else []
    )
    for mode in ("manage", "record"):
        for body in (top + first)[:: 1 if mode == "record" else 5]:
            found = server.client.post(route, json=body, headers={"x-recto-mode": mode})
            assert found.status_code < 500, (mode, body, found.text)


def test_a_message_without_content_is_refused_by_its_name(endpoint: Start, script: Script) -> None:
    server = endpoint(script({"text": "Yes."}))
    for route, field in (("/v1/chat/completions", "messages[0].content"), ("/v1/messages", "messages.0.content")):
        for message in ({"role": "user"}, {"role": "user", "content": None}):
            refused = server.client.post(route, json={"model": server.model, "max_tokens": 9, "messages": [message]})
            assert (refused.status_code, refused.json()["error"]["message"]) == (400, f"{field} is missing.")


def test_of_large_bodies_a_key_has_one_at_a_time(endpoint: Start, script: Script) -> None:
    server = endpoint(script({"text": "Fine."}, limit=2_000_000), {"search.embedder": "none"})
    body = json.dumps({"model": server.model, "messages": [user("x" * 1000)]}).encode() + b" " * LARGE_BYTES

    def send(content: Any) -> int:
        status: int = server.client.post("/v1/chat/completions", content=content).status_code
        return status

    def first() -> Iterator[bytes]:
        yield body
        second.append(pool.submit(send, iter([body, b" "])))
        while not server.gateway._large[""]._waiters:
            time.sleep(0.01)
        yield b" "

    with ThreadPoolExecutor() as pool:
        second = list[Future[int]]()
        assert send(first()) == 200
        assert second[0].result() == 200


@pytest.mark.parametrize("is_declared", [True, False])
def test_a_body_above_the_limit_is_refused_unread(endpoint: Start, script: Script, is_declared: bool) -> None:
    server = endpoint(script({"text": "Fine."}), limits=BodyLimits(body_bytes=LARGE_BYTES))
    body = json.dumps({"model": server.model, "messages": [user("x" * LARGE_BYTES)]}).encode()
    sent: Any = body if is_declared else iter([body[:1000], body[1000:]])
    refused = server.client.post("/v1/chat/completions", content=sent)
    assert refused.status_code == 413
    assert "larger than the 1,048,576 bytes" in refused.json()["error"]["message"]


@pytest.mark.parametrize("depth", [950, 100_000])
def test_json_that_is_nested_too_deeply_is_refused_as_the_clients_mistake(
    endpoint: Start, script: Script, depth: int
) -> None:
    server, found = endpoint(script({"text": "Fine."}), {"search.embedder": "none"}), set()
    nested = "[" * depth + "]" * depth
    tool = f'{{"name":"f","parameters":{{"x":{nested}}}}}'
    tools = f'"tools":[{{"type":"function","function":{tool}}}],'
    for odd in (f'"metadata":{nested},', tools, f'"messages":{nested},'):
        body = f'{{"model":"{server.model}",{odd}"messages":[{{"role":"user","content":"Hi"}}]}}'
        for mode in ("manage", "record"):
            for path in ("chat/completions", "responses", "embeddings", "messages"):
                headers = {"x-recto-mode": mode}
                found.add(server.client.post(f"/v1/{path}", content=body.encode(), headers=headers).status_code)
    assert found <= {200, 400, 404}


def test_what_nobody_foresaw_is_in_the_log_with_its_traceback(
    endpoint: Start, script: Script, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    server = endpoint(script({"text": "Yes."}))
    monkeypatch.setattr(server.gateway, "mode_of", lambda *_: 1 // 0)
    failed = server.chat(user("One?"))
    assert (failed.status_code, "ZeroDivisionError" in failed.text) == (500, False)
    assert any(each.exc_info and each.exc_info[0] is ZeroDivisionError for each in caplog.records)


def test_errors_of_the_server_itself_are_logged_and_not_shown(
    endpoint: Start, script: Script, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    server = endpoint(script({"text": "Yes."}))
    secret = "cannot reach postgresql+psycopg://ada@db.internal/recto"

    def unreachable(*_: object) -> None:
        raise StoreError(secret)

    monkeypatch.setattr(server.gateway.store.tree, "newest_number", unreachable)
    ready = server.client.get("/ready")
    monkeypatch.setattr(server.gateway, "mode_of", unreachable)
    answers = [ready, server.chat(user("One?"))]
    assert [each.status_code for each in answers] == [503, 503]
    assert not any("ada" in each.text or "internal" in each.text for each in answers)
    assert caplog.text.count(secret) >= 2


def test_a_models_toml_that_cannot_be_read_shows_no_path_to_clients(
    endpoint: Start, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "models.toml").write_text("[broken")
    server = endpoint("openai:gpt-4o")
    answers = [server.chat(user("One?"), headers={"x-recto-mode": mode}) for mode in ("manage", "record")]
    answers += [server.client.get("/v1/models"), server.post("embeddings", model="x", input="")]
    assert {each.status_code for each in answers} == {500}
    assert not any(str(tmp_path) in each.text or "models.toml" in each.text for each in answers)
    assert str(tmp_path) in caplog.text


@pytest.mark.parametrize("mode", ["manage", "record"])
def test_no_spelling_of_a_script_names_a_file_of_the_server(endpoint: Start, script: Script, mode: str) -> None:
    secret = script({"text": "a secret"})
    server = endpoint(script({"text": "Yes."}))
    rest = secret.removeprefix("scripted")
    spaced = (secret, f" {secret}", f"{secret} ", f"\t{secret}", f"\u00a0{secret}")
    for asked in (*spaced, f"SCRIPTED{rest}", f" sCRIPTED{rest}"):
        refused = server.chat(user("?"), model=asked, headers={"x-recto-mode": mode})
        assert (refused.status_code, "a secret" in refused.text) == (404, False)


def test_a_key_for_one_providers_models_asks_them_by_any_name(endpoint: Start, script: Script) -> None:
    server = endpoint(script({"text": "Yes."}), needs_key=True)
    key, _ = server.desk.store.access_keys.add("laptop", models=("openai:gpt-4o*",))
    assert server.gateway.model_for(key, " gpt-4o ") == "gpt-4o"
    with pytest.raises(Refused):
        server.gateway.model_for(key, "openai:o3")
