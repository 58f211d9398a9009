"""Vectors over HTTP, from a real server on loopback with scripted answers."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from recto.errors import NoVectors
from recto.search.embedding_endpoint import (
    MAX_BATCH_TEXTS,
    TRUNCATED_CHARS,
    EmbeddingAddress,
    EmbeddingEndpoint,
)

Answer = tuple[int, dict[str, str], bytes]
Rule = Callable[[list[str]], Answer]


def says(payload: Any, status: int = 200, **headers: str) -> Answer:
    return status, {name.replace("_", "-"): value for name, value in headers.items()}, json.dumps(payload).encode()


def vector(text: str) -> list[float]:
    return [float(len(text)), 1.0, 0.0]


def vectors(texts: list[str]) -> Answer:
    """As OpenAI answers, but the last one first."""
    rows = [{"object": "embedding", "index": number, "embedding": vector(text)} for number, text in enumerate(texts)]
    return says({"object": "list", "data": rows[::-1], "model": "m", "usage": {"prompt_tokens": 1}})


def _always(answer: Answer, texts: list[str]) -> Answer:
    return answer


class Server:
    """Gives its answers in order, then vectors."""

    def __init__(self) -> None:
        self.rules: list[Rule] = []
        self.bodies: list[Any] = []
        self.headers: list[dict[str, str]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                outer.bodies.append(body | {"path": self.path})
                outer.headers.append({name.lower(): value for name, value in self.headers.items()})
                rule = outer.rules.pop(0) if outer.rules else vectors
                status, headers, content = rule(body["input"])
                self.send_response(status)
                for name, value in {"content-length": str(len(content)), **headers}.items():
                    self.send_header(name, value)
                with suppress(ConnectionError):  # the client may have gone
                    self.end_headers()
                    self.wfile.write(content)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.01,))
        self.thread.start()

    def answers(self, *answers: Answer) -> None:
        self.rules = [partial(_always, answer) for answer in answers]

    @property
    def inputs(self) -> list[list[str]]:
        return [body["input"] for body in self.bodies]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.http.server_port}/v1"

    def close(self) -> None:
        self.http.shutdown()
        self.thread.join()
        self.http.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


@pytest.fixture
def endpoint(server: Server) -> Iterator[EmbeddingEndpoint]:
    endpoint = EmbeddingEndpoint("box:m:v2", EmbeddingAddress(server.url, "s3cret-key", "BOX_API_KEY"), timeout_s=5)
    yield endpoint
    endpoint.close()


def test_vectors_come_back_in_the_order_of_their_texts(server: Server, endpoint: EmbeddingEndpoint) -> None:
    found = endpoint.embed(["a", "four", "sixteen letters!"])
    assert found[:, 0].tolist() == sorted(found[:, 0])
    assert found[1].tolist() == pytest.approx([4 / 17**0.5, 1 / 17**0.5, 0])
    (body,) = server.bodies
    assert body == {
        "model": "m:v2",
        "input": ["a", "four", "sixteen letters!"],
        "encoding_format": "float",
        "path": "/v1/embeddings",
    }
    assert server.headers[0]["authorization"] == "Bearer s3cret-key"


def test_without_an_index_the_order_is_trusted(server: Server, endpoint: EmbeddingEndpoint) -> None:
    server.answers(says({"data": [{"embedding": [1, 0]}, {"index": None, "embedding": [0, 1]}]}))
    assert endpoint.embed(["a", "b"]).tolist() == [[1, 0], [0, 1]]


def test_without_a_key_none_is_sent(server: Server) -> None:
    endpoint = EmbeddingEndpoint("box:m", EmbeddingAddress(server.url))
    endpoint.embed(["a"])
    endpoint.close()
    assert "authorization" not in server.headers[0]


def test_many_texts_go_in_batches(server: Server, endpoint: EmbeddingEndpoint) -> None:
    texts = ["x" * (number % 7 + 1) for number in range(MAX_BATCH_TEXTS * 2 + 5)]
    found = endpoint.embed(texts)
    assert [len(batch) for batch in server.inputs] == [MAX_BATCH_TEXTS, MAX_BATCH_TEXTS, 5]
    assert [text for batch in server.inputs for text in batch] == texts
    assert (found[7] == found[0]).all()


def test_an_empty_text_gets_zeros(endpoint: EmbeddingEndpoint) -> None:
    assert endpoint.embed(["", "a", " \n"]).any(1).tolist() == [False, True, False]
    assert len(endpoint.embed([])) == 0


def test_text_that_cannot_be_sent_is_cleaned(server: Server, endpoint: EmbeddingEndpoint) -> None:
    endpoint.embed(["a\ud800b\x00c"])
    assert server.inputs == [["a\ufffdb\ufffdc"]]


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_server_is_called_again(server: Server, endpoint: EmbeddingEndpoint, status: int) -> None:
    server.answers(says({"error": {"message": "slow down"}}, status))
    assert endpoint.embed(["a"]).shape == (1, 3)
    assert len(server.bodies) == 2


def test_retries_are_limited(server: Server, endpoint: EmbeddingEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recto.search.embedding_endpoint.FIRST_RETRY_S", 0.01)
    server.answers(*[says({"error": {"message": "slow down"}}, 429)] * 9)
    with pytest.raises(NoVectors, match=r"status 429.*slow down"):
        endpoint.embed(["a"])
    assert len(server.bodies) == 3


def test_closing_ends_a_wait(server: Server, endpoint: EmbeddingEndpoint) -> None:
    server.answers(says({}, 503))
    threading.Timer(0.1, endpoint.close).start()
    with pytest.raises(NoVectors, match="was closed"):
        endpoint.embed(["a"])
    assert len(server.bodies) == 1


@pytest.mark.parametrize(
    ("answer", "because"),
    [
        (says({"error": "Incorrect key s3cret-key"}, 401), r"check the key in BOX_API_KEY .*Incorrect key \*\*\*"),
        (says({"error": "model not found"}, 404), "check .* the model m:v2: .*model not found"),
        ((200, {}, b"<html>Welcome</html>"), "did not answer with vectors; check its address"),
        (says({"data": [{"index": 0}]}), "did not answer with vectors"),
        (says({"data": [{"index": 0, "embedding": [1]}]}), "returned 1 vectors for 2 texts"),
        (says({"data": [{"index": [], "embedding": [1]}, {"index": 1}]}), "did not answer with vectors"),
        (says({"data": [{"embedding": [1]}, {"embedding": [float("nan")]}]}), "NaN or infinity"),
        (says({"data": [{"embedding": [1]}, {"embedding": [1, 2]}]}), "different lengths"),
        (says({"data": [{"embedding": []}, {"embedding": []}]}), "vectors of different lengths"),
    ],
)
def test_every_failure_is_one_sentence(
    server: Server, endpoint: EmbeddingEndpoint, answer: Answer, because: str
) -> None:
    server.answers(answer)
    with pytest.raises(NoVectors, match=because) as caught:
        endpoint.embed(["a", "b"])
    assert "\n" not in caught.value.message
    assert "s3cret-key" not in caught.value.message


def test_a_text_that_is_too_long_is_cut_and_sent_again(server: Server, endpoint: EmbeddingEndpoint) -> None:
    server.answers(says({"error": {"message": "This model's maximum context length is 512 tokens"}}, 400))
    assert endpoint.embed(["x" * 9_000, "y"]).shape == (2, 3)
    assert server.inputs[1] == ["x" * TRUNCATED_CHARS, "y"]


def test_it_is_cut_only_once(server: Server, endpoint: EmbeddingEndpoint) -> None:
    server.answers(*[says({"error": {"message": "input is too long"}}, 413)] * 9)
    with pytest.raises(NoVectors, match="input is too long"):
        endpoint.embed(["x" * 9_000])
    assert len(server.bodies) == 2


def test_a_silent_server_runs_into_the_timeout(server: Server) -> None:
    over = threading.Event()
    server.rules = [lambda texts: (over.wait(60), vectors(texts))[1]]
    endpoint = EmbeddingEndpoint("box:m", EmbeddingAddress(server.url), timeout_s=0.1)
    with pytest.raises(NoVectors, match=r"did not answer within 0\.1 s"):
        endpoint.embed(["a"])
    over.set()
    endpoint.close()


@pytest.mark.parametrize(
    ("url", "because"),
    [
        ("http://127.0.0.1:1/v1", "cannot be reached"),
        ("nonsense", "cannot be called"),
        ("http://127.0.0.1:port/v1", "cannot be called"),
    ],
)
def test_a_wrong_address_is_one_sentence(url: str, because: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recto.search.embedding_endpoint.FIRST_RETRY_S", 0.01)
    endpoint = EmbeddingEndpoint("box:m", EmbeddingAddress(url))
    with pytest.raises(NoVectors, match=because):
        endpoint.embed(["a"])
    endpoint.close()
