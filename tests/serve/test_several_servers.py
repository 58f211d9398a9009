"""Several endpoints as processes on one database server: a client may ask any of them, also after one was killed."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import httpx2
import pytest
from tests.cli.preloaded import PipedCommand, Preloaded
from tests.conftest import Script
from tests.serve.conftest import Json, assistant, text_of, user

from recto.chat.message import Message
from recto.store.replies import left_replies
from recto.store.store import Store

LONG = " ".join(f"word{number}" for number in range(400))
pytestmark = pytest.mark.untraced
Server = tuple[PipedCommand, httpx2.Client]


@pytest.fixture
def url(postgresql: Callable[[], str]) -> str:
    return postgresql()


@pytest.fixture
def start(tmp_path: Path, url: str, preloaded: Preloaded) -> Iterator[Callable[[str], Server]]:
    """Each has a home of its own, as on a machine of its own."""
    started: list[Server] = []

    def begin(model: str) -> Server:
        home = str(tmp_path / f"home{len(started)}")
        command = ["serve", "--open", "--port", "0", "--model", model, "--set", "search.embedder=none"]
        running = preloaded.start_piped(*command, environment={**os.environ, "RECTO_HOME": home, "RECTO_DB": url})
        address = running.stdout.readline().split()[2].removesuffix("/v1")
        started.append((running, httpx2.Client(base_url=address, timeout=60)))
        return started[-1]

    yield begin
    for running, client in started:
        client.close()
        running.end()


def chat(client: httpx2.Client, *messages: Json, name: str = "") -> httpx2.Response:
    headers = {"x-recto-conversation": name} if name else None
    return client.post("/v1/chat/completions", json={"model": "recto", "messages": list(messages)}, headers=headers)


def test_a_client_goes_on_at_another_server_and_the_path_has_no_fork(
    start: Callable[[str], Server], script: Script, url: str
) -> None:
    model = script({"text": "The mast of the Albatross is fourteen metres tall."})
    servers = [start(model)[1], start(model)[1]]
    said: list[Json] = []
    homes = set()
    for turn in range(6):
        said.append(user(f"Question {turn}?"))
        response = chat(servers[turn % 2], *said)
        homes.add(response.headers["x-recto-conversation"])
        said.append(assistant(text_of(response)))
    (home,) = homes
    with Store(url) as store:
        assert len(store.tree.leaves(home)) == 1
        head = store.tree.conversation(home).head or ""
        assert [message.text for message in reversed(store.tree.page(head, most=99))] == [m["content"] for m in said]
        assert {difference for _, difference in store.records.differences(store.records.ids())} == {None}


def test_a_request_that_died_with_its_server_is_answered_by_another(
    start: Callable[[str], Server], script: Script, url: str
) -> None:
    (dying, first), (_, second) = start(script({"text": LONG, "delay_s": 0.02})), start(script({"text": "All of it."}))
    body = {"model": "recto", "stream": True, "messages": [user("Count.")]}
    with suppress(httpx2.HTTPError), first.stream("POST", "/v1/chat/completions", json=body) as response:
        home = response.headers["x-recto-conversation"]
        with Store(url) as store:
            while not any("word2" in each.message.text for each in store.tree.after(0, most=9)):
                time.sleep(0.01)
        dying.send_signal(signal.SIGKILL)
    with Store(url) as store:
        while not left_replies(store.database):  # until the database has noticed it too
            time.sleep(0.01)
    again = chat(second, user("Count."))
    assert (text_of(again), again.headers["x-recto-conversation"]) == ("All of it.", home)
    with Store(url) as store:
        stored = [each.message for each in store.tree.after(0, most=99)]
        assert [message.text for message in stored if message.role == "user"] == ["Count."]
        assert "word2" in next(message.text for message in stored if message.role == "assistant"), "what came is kept"


def test_a_first_reply_that_its_client_never_got_whole_is_asked_again_at_another_server(
    start: Callable[[str], Server], script: Script, url: str
) -> None:
    (dying, first), (_, second) = start(script({"text": LONG, "delay_s": 0.002})), start(script({"text": "All of it."}))
    body = {"model": "recto", "stream": True, "messages": [user("Count.")]}
    with first.stream("POST", "/v1/chat/completions", json=body) as response:
        home = response.headers["x-recto-conversation"]
    with Store(url) as store:
        while not any(is_whole_reply(each.message) for each in store.tree.after(0, most=9)):
            time.sleep(0.01)
    dying.send_signal(signal.SIGKILL)
    again = chat(second, user("Count."))
    assert (text_of(again), again.headers["x-recto-conversation"]) == ("All of it.", home)
    assert chat(second, user("Count.")).headers["x-recto-conversation"] != home, "this time the reply was got"
    with Store(url) as store:
        stored = [each.message for each in store.tree.after(0, most=99) if each.home == home]
        assert [message.text for message in stored if message.role == "user"] == ["Count."]
        assert [message.text for message in stored if is_whole_reply(message)] == [LONG, "All of it."], "both are kept"


def is_whole_reply(message: Message) -> bool:
    return (message.role, message.status) == ("assistant", "done")


def test_the_same_new_conversation_asked_of_several_servers_at_once_is_one(
    start: Callable[[str], Server], script: Script, url: str
) -> None:
    model = script({"text": "Yes."})
    servers = [start(model)[1], start(model)[1]]
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(chat, servers[n % 2], user("Is it?"), name="boat") for n in range(8)]
        homes = {each.result().headers["x-recto-conversation"] for each in asked}
    assert len(homes) == 1
    with Store(url) as store:
        assert len(store.tree.conversations()) == 1
        stored = [each.message for each in store.tree.after(0, most=99)]
    assert [message.text for message in stored if message.role == "user"] == ["Is it?"]
