"""An endpoint on loopback in a thread of its own, in front of a model that answers from a script."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import uvicorn
from tests.cli.conftest import run as run
from tests.conftest import Serve
from tests.providers.conftest import Loopback

from recto.api.desk import new_desk
from recto.chat.message import Message
from recto.serve.app import build_app
from recto.serve.connections import bounded_config
from recto.serve.gateway import Gateway, ServeOptions
from recto.serve.server import bound_socket

Json = Any


class Endpoint:
    """A running server, and what its clients need."""

    def __init__(self, home: Path, model: str, options: ServeOptions, **settings: Any) -> None:
        self.model, self.home = model, home
        self._options, self._settings = options, settings
        self._bound = bound_socket("127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._bound.getsockname()[1]}"
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))
        self._thread.start()
        self._ready.wait()
        self.client = httpx2.Client(base_url=self.url, timeout=60)

    async def _serve(self) -> None:
        desk = new_desk(home=self.home, model=self.model, settings=self._settings)
        async with desk:
            self.gateway = Gateway(desk, self._options)
            self.desk = desk
            self._loop = asyncio.get_running_loop()
            self._server = uvicorn.Server(bounded_config(build_app(self.gateway), ws="none"))
            self._ready.set()
            await self._server.serve(sockets=[self._bound])

    def run(self, work: Any) -> Any:
        """Something asynchronous, in the loop of the server."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def stop(self) -> None:
        if self._thread.is_alive():
            self._server.should_exit = True
            self._thread.join()
        self.client.close()

    def chat(self, *messages: Json, headers: dict[str, str] | None = None, **more: Any) -> httpx2.Response:
        return self.post("chat/completions", headers, messages=list(messages), **more)

    def messages(self, conversation: str) -> list[Message]:
        talk = self.run(self.desk.conversation(conversation))
        return [message for message in self.run(talk.messages(limit=None)) if not message.compaction]

    def said(self, conversation: str) -> list[str]:
        return [message.text for message in self.messages(conversation)]

    def branches(self, conversation: str) -> int:
        return len(self.run(self.run(self.desk.conversation(conversation)).branches()))

    def post(self, path: str, headers: dict[str, str] | None = None, **body: Any) -> httpx2.Response:
        return self.client.post(f"/v1/{path}", json={"model": self.model, **body}, headers=headers)


Start = Callable[..., Endpoint]


@pytest.fixture
def endpoint(tmp_path: Path) -> Iterator[Start]:
    started: list[Endpoint] = []

    def start(model: str, settings: dict[str, Any] | None = None, **options: Any) -> Endpoint:
        wanted = ServeOptions(**{"needs_key": False, **options})
        started.append(Endpoint(tmp_path / "home", model, wanted, **(settings or {})))
        return started[-1]

    yield start
    for each in started:
        each.stop()


Upstream = Callable[..., Loopback]


@pytest.fixture
def upstream(serve: Serve, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Upstream:
    """A provider `mine` on loopback, whose models all cost the same."""

    def start(*answers: Any, prices: Json = None) -> Loopback:
        vectors = Loopback.whole({"data": [[0.5]], "usage": {"prompt_tokens": 50, "total_tokens": 50}})
        routes = {"/v1/chat/completions": list(answers), "/v1/embeddings": [vectors]}
        server = serve(Loopback.error(404, {"error": "no such page"}), routes=routes)
        monkeypatch.setenv("RECTO_MINE_BASE_URL", server.url)
        if prices:
            (tmp_path / "home").mkdir(exist_ok=True)
            facts = "\n".join(f"{name} = {price}" for name, price in prices.items())
            table = f'["mine:*"]\nwindow = 8000\n["mine:*".prices]\n{facts}\n["gone:*".prices]\n{facts}\n'
            (tmp_path / "home" / "models.toml").write_text(table)
        return server

    return start


def asked(provider: Loopback) -> list[bytes]:
    """The bodies that a provider was asked with."""
    targets = ("/v1/chat/completions", "/v1/embeddings")
    return [each.body for each in provider.received if each.target in targets]


@pytest.fixture
def sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[Json]]:
    """The bodies that the scripted model got."""
    log = tmp_path / "sent.jsonl"
    monkeypatch.setenv("RECTO_SCRIPTED_LOG", str(log))
    return lambda: [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def user(text: str) -> Json:
    return {"role": "user", "content": text}


def assistant(text: str) -> Json:
    return {"role": "assistant", "content": text}


def text_of(response: httpx2.Response) -> str:
    return str(response.json()["choices"][0]["message"]["content"])


def events_of(response: httpx2.Response) -> list[Json]:
    lines = [line.removeprefix("data: ") for line in response.text.splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]
