"""Endpoint: any OpenAI-compatible `/v1/embeddings`. Knows an address and a key, not whose they are."""

import json
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from recto.errors import NoVectors
from recto.search.embedder import Address, checked, load_numpy
from recto.text import clean

if TYPE_CHECKING:
    from httpx2 import Client, Response

    from recto.search.embedder import Vectors

MOST_TEXTS = 64
MOST_CHARACTERS = 100_000
# fits 512 tokens of nearly any text, the least that models for this read
SHORT = 1_000
FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 20.0
AGAIN = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
TOO_LONG = re.compile(r"too (long|large|many)|exceed|max(imum)?[ _](context|input|token|length)|context.length", re.I)
LOCAL = re.compile(r"http://(localhost|127\.[\d.]+|\[::1\])(:\d+)?(/|$)", re.IGNORECASE)


class _Again(Exception):
    """This try failed, another may not; `wait_s` where the server said how long to wait."""

    def __init__(self, message: str, wait_s: float | None = None) -> None:
        super().__init__(message)
        self.wait_s = wait_s


class _TooLong(Exception):
    """The server reads less than it was sent."""


class Endpoint:
    """All or nothing: when a later batch fails, what came before is lost. Call it with as much as may be lost."""

    def __init__(self, name: str, address: Address, *, timeout_s: float = 30.0, tries: int = 3) -> None:
        """`name` is provider:model."""
        self.name = self.key = name
        self._provider, _, self._model = name.partition(":")
        self._address, self._timeout_s, self._tries = address, timeout_s, tries
        self._lock, self._closed = threading.Lock(), threading.Event()
        self._http: Client | None = None
        self._width = 0

    def embed(self, texts: Sequence[str]) -> "Vectors":
        """A text that says nothing gets zeros; to learn how many, a full stop is sent if nothing else was before."""
        np = load_numpy()
        said = [number for number, text in enumerate(texts) if text.strip()]
        sent = [clean(texts[number])[0] for number in said] or ["."] * (not self._width)
        rows = [self._batch(batch) for batch in _batches(sent)]
        vectors: Vectors = np.zeros((len(texts), self._width), np.float32)
        if said:
            vectors[said] = np.concatenate(rows)
        return vectors

    def close(self) -> None:
        self._closed.set()
        with self._lock:
            if self._http is not None:
                self._http.close()

    def _batch(self, texts: list[str]) -> "Vectors":
        try:
            answer = self._tried(texts)
        except _TooLong as why:
            try:
                answer = self._tried([text[:SHORT] for text in texts])
            except _TooLong:
                raise NoVectors(str(why)) from why
        return self._same_width(checked(self._rows(answer, len(texts)), texts))

    def _tried(self, texts: list[str]) -> Any:
        for number in range(self._tries):
            try:
                return self._once(texts)
            except _Again as why:
                wait_s = FIRST_WAIT_S * 2**number if why.wait_s is None else why.wait_s
                last = number + 1 == self._tries or wait_s > LONGEST_WAIT_S
                if last or self._closed.wait(wait_s):
                    raise NoVectors(str(why)) from why
        raise NoVectors(f"{self._provider} was not asked.")

    def _once(self, texts: list[str]) -> Any:
        import httpx2  # slow, and only to ask

        body = {"model": self._model, "input": texts, "encoding_format": "float"}
        try:
            response = self._client().post(f"{self._address.url}/embeddings", json=body)
        except httpx2.TimeoutException as why:
            raise NoVectors(f"{self._provider} did not answer within {self._timeout_s:g} s; try again later.") from why
        except (httpx2.InvalidURL, httpx2.UnsupportedProtocol, httpx2.LocalProtocolError) as why:
            raise NoVectors(f"{self._provider} cannot be asked ({why}); check its address and key.") from why
        except (httpx2.HTTPError, RuntimeError) as why:  # the latter from a client that was closed meanwhile
            raise _Again(
                f"{self._provider} cannot be reached ({str(why) or type(why).__name__}); check that it runs."
            ) from why
        if not response.is_success:
            raise self._failure(response)
        return _json(response.content)

    def _client(self) -> "Client":
        import httpx2  # slow, and only to ask

        with self._lock:
            if self._closed.is_set():
                raise NoVectors(f"{self._provider} is no longer asked: its embedder was closed.")
            if self._http is None:
                headers = {"user-agent": "recto", **_authorization(self._address.key)}
                # a proxy from the environment is for the world, not for a server on this machine
                direct = dict.fromkeys(("all://localhost", "all://127.0.0.0/8", "all://[::1]"))
                # without TLS there is nothing to verify, and reading the certificates takes a quarter of a second
                secure = not LOCAL.match(self._address.url)
                self._http = httpx2.Client(timeout=self._timeout_s, headers=headers, mounts=direct, verify=secure)
            return self._http

    def _failure(self, response: "Response") -> Exception:
        status, said = response.status_code, self._said(response.content)
        detail = f": {said}" if said else "."
        if status in (401, 403):
            check = (
                f"the key in {self._address.key_variable}" if self._address.key_variable else "whether it wants a key"
            )
            return NoVectors(f"{self._provider} refused access; check {check}{detail}")
        if status in (400, 413, 422, 500) and (status == 413 or TOO_LONG.search(said)):
            return _TooLong(f"{self._provider} counts a text as too long for {self._model}{detail}")
        if status == 404:
            return NoVectors(f"{self._provider} makes no vectors with {self._model}; check its name{detail}")
        if status in AGAIN:
            return _Again(f"{self._provider} failed with status {status}{detail}", _wait_s(response.headers))
        return NoVectors(f"{self._provider} refused the request with status {status}{detail}")

    def _said(self, content: bytes) -> str:
        """The server's own words on one line, without the key if it repeats that."""
        answer = _json(content)
        while isinstance(answer, dict):
            answer = next((answer[name] for name in ("error", "message", "detail") if answer.get(name)), "")
        text = " ".join(str(answer or "").split())[:300]
        return text.replace(self._address.key, "***") if self._address.key else text

    def _rows(self, answer: Any, count: int) -> list[Any]:
        """The vectors in the order of the texts, whatever order they came in."""
        try:
            found = {_index(entry, place): entry["embedding"] for place, entry in enumerate(answer["data"])}
        except (TypeError, KeyError, AttributeError) as why:
            raise NoVectors(f"{self._provider} did not answer with vectors; check its address.") from why
        if sorted(found, key=str) != sorted(range(count), key=str) or None in found.values():
            there = sum(row is not None for row in found.values())
            raise NoVectors(f"{self._provider} gave {there} vectors for {count} texts, not one for each.")
        return [found[number] for number in range(count)]

    def _same_width(self, vectors: "Vectors") -> "Vectors":
        width = vectors.shape[1]
        with self._lock:
            self._width = self._width or width
        if width != self._width or not width:
            raise NoVectors(f"{self._provider} gave vectors of {width} numbers where they had {self._width} before.")
        return vectors


def _batches(texts: list[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    room = MOST_CHARACTERS
    for text in texts:
        if batch and (len(batch) == MOST_TEXTS or len(text) > room):
            yield batch
            batch, room = [], MOST_CHARACTERS
        batch.append(text)
        room -= len(text)
    if batch:
        yield batch


def _authorization(key: str | None) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"} if key else {}


def _json(content: bytes) -> Any:
    """None for what is not JSON."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def _index(entry: Any, place: int) -> Any:
    """Some servers leave it out: then they keep the order."""
    index = entry.get("index")
    return place if index is None else index


def _wait_s(headers: Mapping[str, str]) -> float | None:
    wish = headers.get("retry-after", "").strip()
    return float(wish) if re.fullmatch(r"\d{1,9}(\.\d*)?", wish) else None
