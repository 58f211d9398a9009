"""EmbeddingEndpoint: any OpenAI-compatible `/v1/embeddings`. Knows only an address and a key."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from recto.base.text import clean, without_key
from recto.errors import NoVectors
from recto.search.embedder import normalize_vectors

if TYPE_CHECKING:
    from httpx2 import Client, Response

    from recto.search.embedder import Vectors

MAX_BATCH_TEXTS = 64
# Nearly every text of this length fits into 512 tokens, the smallest input of common embedding models.
TRUNCATED_CHARS = 1_000
TRIES, FIRST_RETRY_S = 3, 0.5


@dataclass(frozen=True, slots=True)
class EmbeddingAddress:
    """The root of a provider's OpenAI-compatible endpoint, its key, and the variable that holds the key."""

    url: str
    key: str | None = field(default=None, repr=False)
    key_variable: str | None = None


class EmbeddingEndpoint:
    """Each call returns all vectors or fails. If a later batch fails, earlier ones are lost, so keep calls small."""

    def __init__(self, name: str, address: EmbeddingAddress, *, timeout_s: float = 30.0) -> None:
        self.name = self.key = name
        self._provider, _, self._model = name.partition(":")
        self._address, self._timeout_s = address, timeout_s
        self._closed = threading.Event()

    def embed(self, texts: Sequence[str]) -> "Vectors":
        """An empty text gets zeros; a full stop is sent in its place."""
        import numpy as np  # slow import

        sent = [clean(text)[0] if text.strip() else "." for text in texts]
        batches = [sent[at : at + MAX_BATCH_TEXTS] for at in range(0, len(sent), MAX_BATCH_TEXTS)]
        rows = [normalize_vectors(self._rows(self._post(batch)), batch) for batch in batches]
        if len({each.shape[1] for each in rows}) > 1 or not all(each.shape[1] for each in rows):
            raise NoVectors(f"{self._provider} returned vectors of different lengths.")
        vectors: Vectors = np.concatenate(rows or [np.zeros((0, 0), np.float32)])
        vectors[[at for at, text in enumerate(texts) if not text.strip()]] = 0
        return vectors

    def close(self) -> None:
        self._closed.set()
        if "_http" in self.__dict__:
            self._http.close()

    @cached_property
    def _http(self) -> "Client":
        import httpx2  # slow import

        key = self._address.key
        headers = {"user-agent": "recto"} | ({"authorization": f"Bearer {key}"} if key else {})
        # never use a proxy from the environment for a server on this machine
        direct = dict.fromkeys(("all://localhost", "all://127.0.0.0/8", "all://[::1]"))
        return httpx2.Client(timeout=self._timeout_s, headers=headers, mounts=direct)

    def _post(self, texts: list[str]) -> "Response":
        import httpx2  # slow import

        why, url = "", f"{self._address.url}/embeddings"
        for attempt in range(TRIES):
            if self._closed.wait(FIRST_RETRY_S * 2 ** (attempt - 1) if attempt else 0):
                raise NoVectors(f"{self._provider} cannot be called: its embedder was closed.")
            body = {"model": self._model, "input": texts, "encoding_format": "float"}
            try:
                response = self._http.post(url, json=body)
            except httpx2.TimeoutException as failure:
                why = f"{self._provider} did not answer within {self._timeout_s:g} s; try again later."
                raise NoVectors(why) from failure
            except httpx2.ConnectError as failure:
                why = f"{self._provider} cannot be reached ({failure}); check that it is running."
                continue
            except (httpx2.HTTPError, httpx2.InvalidURL, RuntimeError) as failure:
                why = f"{self._provider} cannot be called ({failure}); check its address and key."
                raise NoVectors(why) from failure
            if response.is_success:
                return response
            why, cut = self._refusal(response), [text[:TRUNCATED_CHARS] for text in texts]
            if response.status_code in (400, 413, 422, 500) and cut != texts:  # most likely too long
                texts = cut
            elif response.status_code != 429 and response.status_code < 500:
                break
        raise NoVectors(why)

    def _refusal(self, response: "Response") -> str:
        """The server's message on one line, with the key masked."""
        said = without_key(" ".join(response.text.split()), self._address.key)[:300]
        check = f"the key in {self._address.key_variable or 'your settings'} and the model {self._model}"
        return f"{self._provider} refused the request with status {response.status_code}; check {check}: {said}"

    def _rows(self, response: "Response") -> list[Any]:
        try:
            entries = response.json()["data"]
            # some servers omit the index; they keep the order
            numbered = [(at if each.get("index") is None else each["index"], each) for at, each in enumerate(entries)]
            return [each["embedding"] for _, each in sorted(numbered, key=lambda pair: pair[0])]
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as why:
            raise NoVectors(f"{self._provider} did not answer with vectors; check its address.") from why
