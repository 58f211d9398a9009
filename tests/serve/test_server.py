"""The server as a process: it starts as the command says, and ends without losing a reply; clients may go away."""

import json
import signal
import time
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.cli.conftest import Run, failure
from tests.cli.preloaded import PipedCommand, Preloaded
from tests.conftest import Open, Script
from tests.serve.conftest import Start, user

LONG = " ".join(f"word{number}" for number in range(40))


def until(holds: Callable[[], bool]) -> None:
    """Waits for something that is bound to come."""
    while not holds():
        time.sleep(0.01)


@pytest.fixture
def process(tmp_path: Path, preloaded: Preloaded) -> Iterator[Callable[..., tuple[PipedCommand, str]]]:
    started: list[PipedCommand] = []

    def start(*arguments: str) -> tuple[PipedCommand, str]:
        running = preloaded.start_piped("serve", "--open", "--port", "0", *arguments, folder=tmp_path)
        started.append(running)
        line = running.stdout.readline()
        return running, line.split()[2].removesuffix("/v1")

    yield start
    for each in started:
        each.end()


@pytest.mark.untraced
def test_a_server_that_is_told_to_end_finishes_its_replies(process: Any, script: Script, desk: Open) -> None:
    model = script({"text": LONG, "delay_s": 0.02})
    running, url = process("--model", model)
    with (
        httpx2.Client(base_url=url, timeout=60) as client,
        client.stream(
            "POST",
            "/v1/chat/completions",
            json={"model": "recto", "stream": True, "messages": [user("Count.")]},
        ) as response,
    ):
        lines = response.iter_lines()
        next(line for line in lines if "word3" in line)
        running.send_signal(signal.SIGTERM)
        told = "".join(lines)
    assert "word39" in told
    assert running.wait() == 0
    latest = desk(model).latest()
    assert latest is not None
    assert latest.messages()[-1].text == LONG


@pytest.mark.parametrize(("setting", "is_whole"), [("finish", True), ("stop", False)])
def test_the_reply_to_a_client_that_has_gone_is_finished_or_stopped(
    endpoint: Start, script: Script, setting: str, is_whole: bool
) -> None:
    # slow enough that a client that left is seen before the end of what is to be stopped
    server = endpoint(script({"text": LONG, "delay_s": 0.02 if is_whole else 0.5}), on_disconnect=setting)
    body = {"model": server.model, "stream": True, "messages": [user("Count.")]}
    with server.client.stream("POST", "/v1/chat/completions", json=body) as response:
        home = response.headers["x-recto-conversation"]
        next(line for line in response.iter_lines() if "word3" in line)
    until(lambda: server.gateway.running == 0)
    said = server.said(home)[-1]
    assert said.startswith("word0 word1")
    assert (said == LONG) is is_whole


def test_a_client_that_waits_for_a_whole_reply_may_go_away(endpoint: Start, script: Script) -> None:
    server = endpoint(script({"text": LONG, "delay_s": 0.02}))
    body = json.dumps({"model": server.model, "messages": [user("Count.")]})
    client = HTTPConnection(server.url.removeprefix("http://"))
    client.request("POST", "/v1/chat/completions", body, {"content-type": "application/json"})
    until(lambda: server.gateway.running == 1)
    client.close()
    until(lambda: server.gateway.running == 0)
    (home,) = server.run(server.desk.conversations())
    assert server.said(home.id) == ["Count.", LONG]


def test_what_cannot_be_served_is_said_in_one_sentence(run: Run, endpoint: Start, script: Script) -> None:
    taken = endpoint(script({"text": "Yes."})).url.rpartition(":")[2]
    for arguments, said in (
        ("--host 0.0.0.0 --open", "--open is only for this machine"),
        ("--open --host 203.0.113.1", "--open is only for this machine"),
        ("", "there is no key yet"),
        ("--open --fallback x", "--fallback takes MODEL=OTHER"),
        (f"--open --port {taken}", "cannot listen at 127.0.0.1"),
    ):
        assert said in failure(run("serve", *arguments.split()))
