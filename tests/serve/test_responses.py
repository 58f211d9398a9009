"""`/v1/responses`: a client says only what is new, and everything else stands in the store."""

from collections.abc import Callable
from typing import Any

import httpx2
from tests.conftest import Script
from tests.serve.conftest import Endpoint, Start, user

Json = Any
Sent = Callable[[], list[Json]]


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


def test_no_key_goes_on_from_anothers_reply(endpoint: Start, script: Script) -> None:
    server = endpoint(script({"text": "Yes."}), needs_key=True)
    secrets = [server.desk.store.access_keys.add(name)[1] for name in ("ada", "bob")]
    ada, bob = ({"authorization": f"Bearer {secret}"} for secret in secrets)
    first = respond(server, "One?", headers=ada).json()["id"]
    assert respond(server, "Two?", headers=bob, previous_response_id=first).status_code == 404
    assert respond(server, "Two?", headers=ada, previous_response_id=first).status_code == 200
