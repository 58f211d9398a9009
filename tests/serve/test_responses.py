"""`/v1/responses`: a client says only what is new, and everything else stands in the store."""

from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from tests.conftest import Script
from tests.serve.conftest import Endpoint, Start, events_of, user

Json = Any
Sent = Callable[[], list[Json]]
TOOL = {"type": "function", "name": "read", "parameters": {"type": "object", "properties": {}}}


def respond(server: Endpoint, given: Json, headers: dict[str, str] | None = None, **more: Any) -> httpx2.Response:
    return server.post("responses", headers, input=given, **more)


def text_of(response: httpx2.Response) -> str:
    return "".join(part["text"] for item in response.json()["output"] for part in item.get("content", ()))


def test_a_reply_is_gone_on_from_by_its_id(endpoint: Start, script: Script, sent: Sent) -> None:
    server = endpoint(script({"text": "7 metres."}, {"text": "2 metres."}))
    first = respond(server, "How long is she?")
    assert (first.status_code, text_of(first), first.json()["status"]) == (200, "7 metres.", "completed")
    second = respond(server, [user("How wide?")], previous_response_id=first.json()["id"], instructions="Be brief.")
    assert text_of(second) == "2 metres."
    assert second.json()["previous_response_id"] == first.json()["id"]
    home = first.headers["x-recto-conversation"]
    assert second.headers["x-recto-conversation"] == home
    assert server.said(home) == ["How long is she?", "7 metres.", "How wide?", "2 metres."]
    assert [message["content"] for message in sent()[1]["messages"]] == ["Be brief.", *server.said(home)[:3]]


def test_another_message_after_the_same_reply_is_a_branch(endpoint: Start, script: Script) -> None:
    server = endpoint(script({"text": "7 metres."}))
    first = respond(server, "How long?").json()["id"]
    asked = [respond(server, text, previous_response_id=first) for text in ("Wide?", "Deep?")]
    (home,) = {each.headers["x-recto-conversation"] for each in asked}
    assert server.said(home) == ["How long?", "7 metres.", "Deep?", "7 metres."]
    assert server.branches(home) == 2


def test_tool_calls_and_their_results_are_items(endpoint: Start, script: Script, sent: Sent) -> None:
    call = {"name": "read", "arguments": {"n": 1}, "id": "c1"}
    server = endpoint(script({"tool_calls": [call]}, {"text": "All is well."}))
    first = respond(server, "Read it.", tools=[TOOL], stream=True)
    done = events_of(first)[-1]["response"]
    (item,) = done["output"]
    assert (item["type"], item["call_id"], item["name"]) == ("function_call", "c1", "read")
    result = {"type": "function_call_output", "call_id": "c1", "output": "dry"}
    second = respond(server, [result], tools=[TOOL], previous_response_id=done["id"])
    assert text_of(second) == "All is well."
    assert sent()[1]["messages"][-1] == {"role": "tool", "tool_call_id": "c1", "content": "dry"}


def test_a_client_may_send_everything_itself(endpoint: Start, script: Script) -> None:
    server = endpoint(script({"text": "7 metres."}, {"text": "2 metres."}))
    first = respond(server, "How long?")
    given = [user("How long?"), *first.json()["output"], user("How wide?")]
    second = respond(server, given)
    assert second.headers["x-recto-conversation"] == first.headers["x-recto-conversation"]
    assert len(server.said(second.headers["x-recto-conversation"])) == 4


def test_a_compaction_is_an_item_that_can_be_read(endpoint: Start, script: Script) -> None:
    summary = {"text": "They talked about planks and what each costs in euros.", "when": "summary"}
    server = endpoint(script({"text": "Noted."}, summary, limit=1500))
    previous, items = None, list[Json]()
    for number in range(12):
        asked = f"Plank {number} of the hull costs {number * 7} euros, we decided. " * 12
        reply = respond(server, asked, previous_response_id=previous).json()
        previous = reply["id"]
        items += [item for item in reply["output"] if item["type"] == "compaction"]
    assert items
    assert "They talked about planks" in items[0]["encrypted_content"]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"previous_response_id": "x"}, "previous_response_id is not the id of a reply."),
        ({"input": []}, "input must have at least one message."),
    ],
)
def test_what_cannot_be_served_is_refused(endpoint: Start, script: Script, more: dict[str, Any], said: str) -> None:
    response = endpoint(script({"text": "Yes."})).post("responses", **{"input": "One?", **more})
    assert (response.status_code, response.json()["error"]["message"]) == (400, said)


def test_no_key_goes_on_from_anothers_reply(endpoint: Start, script: Script) -> None:
    server = endpoint(script({"text": "Yes."}), needs_key=True)
    secrets = [server.desk.store.access_keys.add(name)[1] for name in ("ada", "bob")]
    ada, bob = ({"authorization": f"Bearer {secret}"} for secret in secrets)
    first = respond(server, "One?", headers=ada).json()["id"]
    assert respond(server, "Two?", headers=bob, previous_response_id=first).status_code == 404
    assert respond(server, "Two?", headers=ada, previous_response_id=first).status_code == 200
