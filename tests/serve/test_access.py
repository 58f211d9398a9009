"""Keys: who may ask, how much and how often; nobody sees what is another's."""

from typing import Any

import pytest
from tests.conftest import Script
from tests.serve.conftest import Endpoint, Start, assistant, user

from recto.errors import Invalid, NotFound
from recto.store.store import Store

LONG = "She is seven metres long and two metres wide, as far as I can tell."


def made(server: Endpoint, name: str, **limits: Any) -> dict[str, str]:
    """The headers of a client with a new key."""
    _, secret = server.desk.store.access_keys.add(name, **limits)
    return {"authorization": f"Bearer {secret}"}


def test_a_key_is_stored_by_its_hash_alone(tmp_path: Any) -> None:
    with Store(tmp_path / "recto.db") as store:
        key, secret = store.access_keys.add("laptop", models=("openai:*",), spend_day=5.0)
        assert store.access_keys.find(secret) == key
        assert store.access_keys.find("recto-other") is None
        with pytest.raises(Invalid, match="there is a key laptop already"):
            store.access_keys.add("laptop")
    assert secret.encode() not in (tmp_path / "recto.db").read_bytes()
    with Store(tmp_path / "recto.db") as store:
        assert store.access_keys.remove("laptop") == key
        with pytest.raises(NotFound):
            store.access_keys.remove("laptop")


def test_nobody_is_served_without_a_key(endpoint: Start, script: Script) -> None:
    server = endpoint(script({"text": "Yes."}), needs_key=True)
    headers = made(server, "laptop")
    for wrong in ({}, {"authorization": "Bearer recto-wrong"}, {"x-api-key": "x"}):
        refused = server.chat(user("One?"), headers=wrong)
        assert (refused.status_code, refused.json()["error"]["code"]) == (401, "invalid_api_key")
    assert server.chat(user("One?"), headers=headers).status_code == 200
    secret = headers["authorization"].removeprefix("Bearer ")
    assert server.chat(user("One?"), headers={"x-api-key": secret}).status_code == 200
    assert server.client.get("/v1/models").status_code == 401
    server.desk.store.access_keys.remove("laptop")
    assert server.chat(user("One?"), headers=headers).status_code == 401


def test_no_key_sees_anothers_conversation_by_id_by_name_or_by_chain(endpoint: Start, script: Script) -> None:
    server = endpoint(script({"text": LONG}), needs_key=True)
    ada, bob = made(server, "ada"), made(server, "bob")
    first = server.chat(user("How long?"), headers={**ada, "x-recto-conversation": "boat"})
    home = first.headers["x-recto-conversation"]
    history = (user("How long?"), assistant(LONG), user("And deep?"))
    by_chain = server.chat(*history, headers=bob)
    by_id = server.chat(user("And deep?"), headers={**bob, "x-recto-conversation": home})
    by_name = server.chat(user("And deep?"), headers={**bob, "x-recto-conversation": "boat"})
    assert home not in {each.headers["x-recto-conversation"] for each in (by_chain, by_id, by_name)}
    assert server.said(home) == ["How long?", LONG]
    assert server.chat(*history, headers=ada).headers["x-recto-conversation"] == home


def test_a_key_asks_its_models_alone(endpoint: Start, script: Script) -> None:
    server = endpoint(script({"text": "Yes."}), needs_key=True)
    headers = made(server, "laptop", models=("openai:*",))
    refused = server.chat(user("One?"), headers=headers)
    assert refused.status_code == 400
    assert "may not ask" in refused.json()["error"]["message"]
    assert server.client.get("/v1/models", headers=headers).json()["data"] == []


def test_a_key_asks_no_more_often_than_it_may(endpoint: Start, script: Script) -> None:
    server = endpoint(script({"text": "Yes."}), needs_key=True)
    headers = made(server, "laptop", requests_per_minute=2)
    codes = [server.chat(user("One?"), headers=headers) for _ in range(3)]
    assert [each.status_code for each in codes] == [200, 200, 429]
    assert int(codes[-1].headers["retry-after"]) >= 1


def test_memory_and_facts_of_the_home_are_no_clients(endpoint: Start, script: Script, tmp_path: Any, sent: Any) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "memory.md").write_text("My dog is called Rex.")
    server = endpoint(script({"text": "Yes."}))
    server.desk.facts.learn("My cat is called Mia.")
    server.chat(user("What is my cat called? And my dog?"))
    assert "Rex" not in str(sent()[0])
    assert "Mia" not in str(sent()[0])
