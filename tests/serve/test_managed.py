"""The mode `manage`: a client's messages are stored once, the planned window is sent, the reply comes back."""

import json
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Script
from tests.serve.conftest import Endpoint, Start, assistant, text_of, user

Json = Any
Sent = Callable[[], list[Json]]
SYSTEM = {"role": "system", "content": "You are a shipwright."}


def test_a_chat_goes_on_in_one_conversation(endpoint: Start, script: Script, sent: Sent) -> None:
    server = endpoint(script({"text": "7 metres."}, {"text": "2 metres."}))
    first = server.chat(SYSTEM, user("How long is she?"))
    assert (first.status_code, text_of(first)) == (200, "7 metres.")
    second = server.chat(SYSTEM, user("How long is she?"), assistant("7 metres."), user("How wide?"))
    assert text_of(second) == "2 metres."
    home = second.headers["x-recto-conversation"]
    assert home == first.headers["x-recto-conversation"]
    assert server.said(home) == ["How long is she?", "7 metres.", "How wide?", "2 metres."]
    assert sent()[1]["messages"] == [SYSTEM, user("How long is she?"), assistant("7 metres."), user("How wide?")]
    request = second.headers["x-recto-request"]
    assert server.run(server.desk.verify([request])) == [(request, None)]


def test_a_history_that_a_client_brings_has_no_times_and_what_it_says_now_has(endpoint: Start, script: Script) -> None:
    server = endpoint(script({"text": "7 metres."}, {"text": "2 metres."}))
    history = [user("She was built last Friday."), assistant("I see."), user("How long is she?")]
    first = server.chat(*history)
    second = server.chat(*history, assistant("7 metres."), user("How wide?"))
    home = second.headers["x-recto-conversation"]
    assert first.headers["x-recto-conversation"] == home
    assert [bool(message.time) for message in server.messages(home)] == [False, False, True, True, True, True]


def test_a_conversation_ten_times_as_long_as_the_window_goes_on(endpoint: Start, script: Script, sent: Sent) -> None:
    summary = {"text": "They talked about planks and what each costs in euros.", "when": "summary"}
    server = endpoint(script({"text": "Noted, that plank is in the list now."}, summary, limit=1500))
    history: list[Json] = []
    compacted, homes = 0, set()
    for number in range(60):
        history.append(user(f"Plank {number} of the hull costs {number * 7} euros, we decided. " * 20))
        response = server.chat(*history)
        assert response.status_code == 200, response.text
        compacted += response.headers["x-recto-compacted"] == "true"
        homes.add(response.headers["x-recto-conversation"])
        history.append(assistant(text_of(response)))
    assert len(homes) == 1
    assert compacted > 3
    assert int(response.headers["x-recto-tokens-before"]) > 10 * 1500
    assert int(response.headers["x-recto-tokens"]) < 1500
    assert len(server.said(homes.pop())) == 120
    assert all(problem is None for _, problem in server.run(server.desk.verify()))


def test_a_request_that_fails_keeps_the_message_and_is_retried(endpoint: Start, script: Script) -> None:
    server = endpoint(script({"error": "unreachable"}, {"text": "7 metres."}))
    first = server.chat(user("How long?"))
    assert first.status_code == 503
    assert first.json()["error"]["type"] == "server_error"
    second = server.chat(user("How long?"))
    assert server.said(second.headers["x-recto-conversation"]) == ["How long?", "7 metres."]
    assert len(server.run(server.desk.conversations())) == 1


def test_the_same_question_again_goes_on_where_its_client_left_before_the_end_of_the_reply(
    endpoint: Start, script: Script, tmp_path: Path
) -> None:
    slow = {"text": "seven metres or so " * 50, "delay_s": 0.005, "after": 3, "until": str(tmp_path / "left")}
    server = endpoint(script(slow, {"text": "7 metres."}))
    body = {"model": server.model, "stream": True, "messages": [user("How long?")]}
    with server.client.stream("POST", "/v1/chat/completions", json=body) as first:
        waiting = server.chat(user("How long?"))
    home = first.headers["x-recto-conversation"]
    assert waiting.headers["x-recto-conversation"] != home, "a client that still listens is another one"
    (tmp_path / "left").touch()
    until_lost(server, home)
    again = server.chat(user("How long?"))
    assert again.headers["x-recto-conversation"] == home
    assert server.said(home)[0] == "How long?"


@pytest.mark.parametrize("is_stream", [True, False])
@pytest.mark.parametrize("on_disconnect", ["finish", "stop"])
def test_the_same_question_again_goes_on_where_its_client_left_before_the_reply_began(
    endpoint: Start, script: Script, tmp_path: Path, is_stream: bool, on_disconnect: str
) -> None:
    steps = {"text": "Seven metres or so.", "until": str(tmp_path / "left")}, {"text": "7 metres."}
    server = endpoint(script(*steps), on_disconnect=on_disconnect)
    leave_at_once(server, {"model": server.model, "stream": is_stream, "messages": [user("How long?")]})
    (home,) = [each.id for each in server.run(server.desk.conversations())]
    until_lost(server, home)
    assert "Seven" not in "".join(server.said(home)), "known before the reply begins"
    again = server.chat(user("How long?"))
    assert again.headers["x-recto-conversation"] == home
    assert server.said(home) == ["How long?", "7 metres."]
    (tmp_path / "left").touch()


def leave_at_once(server: Endpoint, body: Any) -> None:
    """Asks, and closes the connection while the reply has not begun."""
    host, port = server.url.removeprefix("http://").split(":")
    text = json.dumps(body).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(text)}\r\n\r\n"
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(head.encode() + text)
        while not server.gateway.running:
            time.sleep(0.01)


def until_lost(server: Endpoint, home: str) -> None:
    while not server.gateway.store.awaited_replies.is_lost(server.messages(home)[0].id):
        time.sleep(0.01)


def test_an_edit_is_a_branch_and_a_rewording_is_not(endpoint: Start, script: Script, sent: Sent) -> None:
    server = endpoint(script({"text": "She is 7 metres long; I measured her myself."}, {"text": "2 metres."}))
    reply = assistant("She is 7 metres long; I measured her myself.")
    first = server.chat(user("How long? It is 9:00."))
    reworded = server.chat(user("How long? It is 9:05."), reply, user("How wide?"))
    assert reworded.headers["x-recto-conversation"] == first.headers["x-recto-conversation"]
    assert sent()[1]["messages"][0]["content"] == "How long? It is 9:00."
    record = server.run(server.desk.record(reworded.headers["x-recto-request"]))
    assert any("“0” → “5”" in note for note in record.account.notes)
    edited = server.chat(user("How long? It is 9:00."), reply, user("How deep?"))
    assert edited.headers["x-recto-conversation"] == first.headers["x-recto-conversation"]
    assert server.said(edited.headers["x-recto-conversation"])[2] == "How deep?"


def test_a_client_that_cuts_its_history_gets_all_of_it_sent(endpoint: Start, script: Script, sent: Sent) -> None:
    server = endpoint(script({"text": "7 metres."}, {"text": "2 metres."}, {"text": "She draws 1 metre."}))
    server.chat(user("How long?"))
    server.chat(user("How long?"), assistant("7 metres."), user("How wide?"))
    cut = server.chat(user("How wide?"), assistant("2 metres."), user("How deep?"))
    assert server.said(cut.headers["x-recto-conversation"])[:2] == ["How long?", "7 metres."]
    assert len(sent()[2]["messages"]) == 5
    record = server.run(server.desk.record(cut.headers["x-recto-request"]))
    assert any("no longer sends 2 earlier messages" in note for note in record.account.notes)


def test_a_named_conversation_goes_on_from_any_of_its_branches(endpoint: Start, script: Script) -> None:
    server = endpoint(script({"text": "First."}, {"text": "Second."}, {"text": "Third."}, {"text": "Fourth."}))
    named = {"x-recto-conversation": "mine"}
    one = (user("One?"), assistant("First."))
    server.chat(one[0], headers=named)
    server.chat(*one, user("Two?"), headers=named)
    server.chat(*one, user("Or three?"), headers=named)
    last = server.chat(*one, user("Two?"), assistant("Second."), user("Four?"), headers=named)
    home = last.headers["x-recto-conversation"]
    assert server.said(home) == ["One?", "First.", "Two?", "Second.", "Four?", "Fourth."]
    assert server.branches(home) == 2


def test_a_list_that_ends_with_a_reply_is_refused(endpoint: Start, script: Script) -> None:
    refused = endpoint(script({"text": "Yes."})).chat(user("hi"), assistant("I"))
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "messages")
