"""EmbeddingEndpoint: any OpenAI-compatible `/v1/embeddings`. Knows only an address and a key."""

import json
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from recto.base.text import clean, without_key
from recto.errors import NoVectors
from recto.search.embedder import normalize_vectors

if TYPE_CHECKING:
    from httpx2 import Client, Response

    from recto.search.embedder import Vectors

MAX_BATCH_TEXTS = 64
MAX_BATCH_CHARS = 100_000
# Nearly every text of this length fits into 512 tokens, the smallest input of common embedding models.
TRUNCATED_CHARS = 1_000
FIRST_RETRY_S = 0.5
MAX_RETRY_WAIT_S = 20.0
RETRY_STATUSES = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
TOO_LONG = re.compile(r"too (long|large|many)|exceed|max(imum)?[ _](context|input|token|length)|context.length", re.I)
LOCAL_URL = re.compile(r"http://(localhost|127\.[\d.]+|\[::1\])(:\d+)?(/|$)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class EmbeddingAddress:
    """The root of a provider's OpenAI-compatible endpoint, its key, and the variable that holds the key."""

    url: str
    key: str | None = field(default=None, repr=False)
    key_variable: str | None = None


class _Retryable(Exception):
    """Worth retrying; `wait_s` is set if the server said how long to wait."""

    def __init__(self, message: str, wait_s: float | None = None) -> None:
        super().__init__(message)
        self.wait_s = wait_s


class _TooLong(Exception):
    """A text is longer than the model's input."""


class EmbeddingEndpoint:
    """Each call returns all vectors or fails. If a later batch fails, earlier ones are lost, so keep calls small."""

    def __init__(self, name: str, address: EmbeddingAddress, *, timeout_s: float = 30.0, tries: int = 3) -> None:
        self.name = self.key = name
        self._provider, _, self._model = name.partition(":")
        self._address, self._timeout_s, self._tries = address, timeout_s, tries
        self._lock, self._closed = threading.Lock(), threading.Event()
        self._http: Client | None = None
        self._requests = self._width = 0

    def embed(self, texts: Sequence[str]) -> "Vectors":
        """An empty text gets zeros. If the width is still unknown, a full stop is sent to learn it."""
        import numpy as np  # slow import

        filled = [at for at, text in enumerate(texts) if text.strip()]
        sent = [clean(texts[at])[0] for at in filled] or ["."] * (not self._width)
        rows = [self._embed_batch(batch) for batch in _batches(sent)]
        vectors: Vectors = np.zeros((len(texts), self._width), np.float32)
        if filled:
            vectors[filled] = np.concatenate(rows)
        return vectors

    def close(self) -> None:
        self._closed.set()
        with self._lock:
            self._close_unused()

    def _embed_batch(self, texts: list[str]) -> "Vectors":
        try:
            answer = self._request_with_retries(texts)
        except _TooLong as why:
            try:
                answer = self._request_with_retries([text[:TRUNCATED_CHARS] for text in texts])
            except _TooLong:
                raise NoVectors(str(why)) from why
        return self._check_width(normalize_vectors(self._rows(answer, len(texts)), texts))

    def _request_with_retries(self, texts: list[str]) -> Any:
        for attempt in range(self._tries):
            try:
                return self._request(texts)
            except _Retryable as why:
                wait_s = FIRST_RETRY_S * 2**attempt if why.wait_s is None else why.wait_s
                last = attempt + 1 == self._tries or wait_s > MAX_RETRY_WAIT_S
                if last or self._closed.wait(wait_s):
                    raise NoVectors(str(why)) from why
        raise NoVectors(f"{self._provider} was not called: `tries` is 0.")

    def _request(self, texts: list[str]) -> Any:
        import httpx2  # slow import

        body = {"model": self._model, "input": texts, "encoding_format": "float"}
        try:
            with self._client() as client:
                response = client.post(f"{self._address.url}/embeddings", json=body)
        except httpx2.TimeoutException as why:
            raise NoVectors(f"{self._provider} did not answer within {self._timeout_s:g} s; try again later.") from why
        except (httpx2.InvalidURL, httpx2.UnsupportedProtocol, httpx2.LocalProtocolError) as why:
            raise NoVectors(f"{self._provider} cannot be called ({why}); check its address and key.") from why
        except httpx2.HTTPError as why:
            raise _Retryable(
                f"{self._provider} cannot be reached ({str(why) or type(why).__name__}); check that it is running."
            ) from why
        if not response.is_success:
            raise self._failure(response)
        return _json(response.content)

    @contextmanager
    def _client(self) -> "Iterator[Client]":
        """Share one client. Closing it during a request would leave its connection open, so the last request closes
        it."""
        with self._lock:
            if self._closed.is_set():
                raise NoVectors(f"{self._provider} cannot be called: its embedder was closed.")
            client = self._http = self._http or self._open_client()
            self._requests += 1
        try:
            yield client
        finally:
            with self._lock:
                self._requests -= 1
                self._close_unused()

    def _close_unused(self) -> None:
        if self._http is not None and self._closed.is_set() and not self._requests:
            self._http.close()

    def _open_client(self) -> "Client":
        import httpx2  # slow import

        key = self._address.key
        headers = {"user-agent": "recto"} | ({"authorization": f"Bearer {key}"} if key else {})
        # never use a proxy from the environment for a server on this machine
        direct = dict.fromkeys(("all://localhost", "all://127.0.0.0/8", "all://[::1]"))
        # without TLS there is nothing to verify, and loading the certificates takes a quarter of a second
        secure = not LOCAL_URL.match(self._address.url)
        return httpx2.Client(timeout=self._timeout_s, headers=headers, mounts=direct, verify=secure)

    def _failure(self, response: "Response") -> Exception:
        status, message = response.status_code, self._error_text(response.content)
        suffix = f": {message}" if message else "."
        if status in (401, 403):
            variable = self._address.key_variable
            check = f"the key in {variable}" if variable else "whether it needs a key"
            return NoVectors(f"{self._provider} refused access; check {check}{suffix}")
        if status in (400, 413, 422, 500) and (status == 413 or TOO_LONG.search(message)):
            return _TooLong(f"{self._provider} says a text is too long for {self._model}{suffix}")
        if status == 404:
            return NoVectors(f"{self._provider} has no embedding model {self._model}; check its name{suffix}")
        if status in RETRY_STATUSES:
            return _Retryable(f"{self._provider} failed with status {status}{suffix}", _retry_after_s(response.headers))
        return NoVectors(f"{self._provider} refused the request with status {status}{suffix}")

    def _error_text(self, content: bytes) -> str:
        """The server's error message on one line, with the key masked."""
        answer = _json(content)
        while isinstance(answer, dict):
            answer = next((answer[name] for name in ("error", "message", "detail") if answer.get(name)), "")
        return without_key(" ".join(str(answer or "").split()), self._address.key)[:300]

    def _rows(self, answer: Any, count: int) -> list[Any]:
        try:
            # some servers omit the index; they keep the order
            indexes = (entry.get("index") for entry in answer["data"])
            places = [place if index is None else index for place, index in enumerate(indexes)]
            found = {place: entry["embedding"] for place, entry in zip(places, answer["data"], strict=True)}
        except (TypeError, KeyError, AttributeError) as why:
            raise NoVectors(f"{self._provider} did not answer with vectors; check its address.") from why
        if sorted(found, key=str) != sorted(range(count), key=str) or None in found.values():
            count_found = sum(row is not None for row in found.values())
            raise NoVectors(f"{self._provider} returned {count_found} vectors for {count} texts instead of one each.")
        return [found[at] for at in range(count)]

    def _check_width(self, vectors: "Vectors") -> "Vectors":
        width = vectors.shape[1]
        with self._lock:
            self._width = self._width or width
        if width != self._width or not width:
            raise NoVectors(f"{self._provider} returned vectors of {width} numbers; earlier ones had {self._width}.")
        return vectors


def _batches(texts: list[str]) -> list[list[str]]:
    batches, room = list[list[str]](), 0
    for text in texts:
        if not batches or len(batches[-1]) == MAX_BATCH_TEXTS or len(text) > room:
            batches.append([])
            room = MAX_BATCH_CHARS
        batches[-1].append(text)
        room -= len(text)
    return batches


def _json(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def _retry_after_s(headers: Mapping[str, str]) -> float | None:
    header = headers.get("retry-after", "").strip()
    return float(header) if re.fullmatch(r"\d{1,9}(\.\d*)?", header) else None
