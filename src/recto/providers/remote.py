"""RemoteProvider: the shared part of providers over HTTP: key, catalog, transport, the server's list of models.

Subclasses know the format. Also passes a client's own bytes on to such a provider.
"""

import asyncio
import re
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from json import JSONDecoder
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from recto.errors import Invalid, NoKey, NotFound, Refused, Unreachable
from recto.providers.http import ReplyReader, RequestTarget, Transport, connection_failure
from recto.providers.model import Model, Provider, ReplyPart, VocabularyCounter, reported_count
from recto.window.count import TokenCounter
from recto.window.request import Format, Purpose
from recto.wire import Json, dumpb, loads

if TYPE_CHECKING:
    from httpx2 import AsyncClient, Response

BODY_START = '{"model":'
PROBE_S = 2.0
MAX_LIST_BYTES = 16 * 1024 * 1024


class ModelLookup(Protocol):
    def find(self, provider: str, id: str) -> Model: ...


class RemoteProvider(ABC):
    format: Format
    length_field: str = "max_tokens"
    """Its API's name for the longest reply."""
    reader: Callable[[], ReplyReader]

    def __init__(
        self,
        name: str,
        base_url: str,
        key: str | None,
        catalog: ModelLookup,
        *,
        key_variable: str | None = None,
        is_key_stored: bool = False,
        transport: Transport | None = None,
        is_custom: bool = False,
    ) -> None:
        """`is_custom`: the user set the address, so its server knows more about its models than any table."""
        self.name, self.base_url, self.catalog = name, _address(name, base_url), catalog
        self.key_variable, self.transport, self.is_custom = key_variable, transport or Transport(), is_custom
        self._key = (key or "").strip() or None
        place = (
            f"the key that you stored with `recto keys set {name}`" if is_key_stored else f"the key in {key_variable}"
        )
        self._key_place = place if key_variable else ""
        self.listed = ModelList(self.ask, self.list_urls)

    @property
    @abstractmethod
    def url(self) -> str:
        """The URL that requests are posted to."""

    @property
    @abstractmethod
    def list_urls(self) -> tuple[str, ...]:
        """The URLs that list models; the later ones report windows that the first may not."""

    @abstractmethod
    def headers(self, key: str | None) -> Mapping[str, str]:
        """The headers of the format, including the key."""

    async def model(self, name: str) -> Model:
        """The facts of the catalog; the server is asked if the user set its address, or nothing else is known."""
        model = self.known(name)
        if model.window_from == "models.toml" or (model.window is not None and not self.is_custom):
            return model
        found = await self.listed.about(model.id)
        return found.applied(model) if found else model

    def known(self, name: str) -> Model:
        return self.catalog.find(self.name, name.removeprefix(f"{self.name}:"))

    async def offered(self) -> list[Model]:
        """The models that the server lists. Raises Unreachable."""
        return [found.applied(self.known(found.id)) for found in await self.listed.all()]

    @property
    def root(self) -> str:
        """The address without the /v1 of the OpenAI format."""
        return self.base_url.removesuffix("/v1")

    async def ask_root(self, path: str, body: Json = None, wait_s: float = PROBE_S) -> tuple[int, Json]:
        return await self.ask(f"{self.root}{path}", body, wait_s)

    async def ask(self, url: str, body: Json = None, wait_s: float = PROBE_S) -> tuple[int, Json]:
        """The status and the answer of a server to a short question. Raises Unreachable."""
        try:
            key = self.checked_key()
        except (NoKey, Refused) as why:
            raise Unreachable(why.message) from why
        headers = {"user-agent": "recto", "content-type": "application/json", **self.headers(key)}
        content = None if body is None else dumpb(body)
        return await ask_json(self.transport.client(url), url, headers, content, wait_s)

    async def count_tokens(self, body: bytes, wait_s: float) -> int | None:
        """The provider's own count of a request; None without one, or without a key. Raises Unreachable."""
        return None

    async def counter(self, model: Model) -> TokenCounter:
        return VocabularyCounter(model, self.format)

    async def stream(self, body: bytes, purpose: Purpose) -> AsyncGenerator[ReplyPart]:
        target, headers = self._target(self.url, _model_in(body))
        headers["accept"] = "text/event-stream"
        async with aclosing(self.transport.post_stream(target, headers, body, self.reader)) as parts:
            async for part in parts:
                yield part

    def _target(self, url: str, model: str) -> tuple[RequestTarget, dict[str, str]]:
        key = self.checked_key()
        # some servers delay a stream in order to compress it
        common = {"content-type": "application/json", "accept-encoding": "identity", "user-agent": "recto"}
        return RequestTarget(self.name, url, model, self._key_place, key), {**common, **self.headers(key)}

    @asynccontextmanager
    async def forwarded(self, url: str, body: bytes) -> AsyncGenerator["Response", None]:
        """The provider's answer to a client's own bytes, whatever it is. Raises Unreachable, with what is known of
        whether the request left."""
        import httpx2  # slow, and only to send

        target, headers = self._target(url, "this model")
        try:
            async with self.transport.client(url).stream("POST", url, content=body, headers=headers) as response:
                yield response
        except httpx2.HTTPError as why:
            raise connection_failure(target, why, self.transport.retry_policy).error from why

    async def close(self) -> None:
        await self.transport.close()

    def checked_key(self) -> str | None:
        return checked_key(self.name, self._key, self.key_variable)


def checked_key(provider: str, key: str | None, variable: str | None) -> str | None:
    """The key, if there is one. Raises NoKey if the variable must have it, and Refused if it cannot be a key."""
    if key is None and variable:
        advice = f"set {variable} in the environment, or store it with `recto keys set {provider}`"
        raise NoKey(f"{provider} needs a key; {advice}.", variable=variable)
    if key and not (key.isascii() and key.isprintable()):
        place = f"The key in {variable}" if variable else f"The key of {provider}"
        refused = Refused(f"{place} contains characters that no key has; copy it again.")
        refused.sent = False
        raise refused
    return key


def _address(provider: str, base_url: str) -> str:
    address = base_url.strip().rstrip("/")
    try:
        parts = urlsplit(address)
        # reading the port validates it
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good:
        shown = re.sub(r"//[^/]*@", "//***@", base_url)
        raise Invalid(f"base_url of {provider} must be an address like http://localhost:8080/v1, not {shown!r}.")
    return address


def _model_in(body: bytes) -> str:
    """The model's name, which is at the start of our bodies; the rest is not parsed."""
    start = body[:2000].decode("utf-8", "ignore")
    try:
        found = start.startswith(BODY_START)
        return str(JSONDecoder().raw_decode(start, len(BODY_START))[0]) if found else "this model"
    except ValueError:
        return "this model"


def remote_of(provider: Provider) -> RemoteProvider | None:
    """The provider if it takes any bytes over HTTP; None if it runs in this process."""
    return provider if isinstance(provider, RemoteProvider) else None


def embeddings_url(provider: Provider) -> tuple[RemoteProvider, str]:
    remote = remote_of(provider)
    if remote is None or not remote.url.endswith("/chat/completions"):
        raise NotFound(f"{provider.name} has no embeddings.", provider=provider.name)
    return remote, f"{remote.base_url}/embeddings"


async def ask_json(
    client: "AsyncClient", url: str, headers: Mapping[str, str], content: bytes | None = None, wait_s: float = PROBE_S
) -> tuple[int, Json]:
    """The status and the answer, which is None if it is not JSON or far too long. `content` is posted. Raises
    Unreachable."""
    import httpx2  # slow, and only to ask

    body, method = bytearray(), "GET" if content is None else "POST"
    try:
        async with asyncio.timeout(wait_s), client.stream(method, url, headers=headers, content=content) as response:
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > MAX_LIST_BYTES:
                    return response.status_code, None
    except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError) as why:
        raise Unreachable(f"The server at {url} cannot be reached; check that it runs.") from why
    return response.status_code, json_or_none(bytes(body))


def json_or_none(content: bytes) -> Json:
    try:
        return loads(content)
    except (ValueError, RecursionError):
        return None


# -- the models that a server lists: `/v1/models` and its variants of vLLM, LM Studio, LiteLLM, llama.cpp, OpenRouter,
# Groq, Mistral, Together and Anthropic

SMALLEST_WINDOW, LARGEST_WINDOW = 256, 100_000_000
# The first reported one counts: the current window comes before the model's maximum.
WINDOW_FIELDS = (
    "loaded_context_length",
    "max_model_len",
    "n_ctx",
    "context_window",
    "context_length",
    "max_input_tokens",
    "max_context_length",
    "max_context_window_tokens",
    "n_ctx_train",
)
OUTPUT_FIELDS = ("max_output_tokens", "max_completion_tokens", "max_output_length")
INNER = ("meta", "model_info", "top_provider", "limits", "capabilities")
NAMES = ("id", "model_name", "key", "name")
FREE_FAILURES, LONGEST_PAUSE_S = 3, 60.0

Ask = Callable[[str], Awaitable[tuple[int, Json]]]
"""Asks a URL; returns the status and the JSON answer."""


class ListedModel(Struct, frozen=True):
    id: str
    window: int | None = None
    max_output: int | None = None
    is_loaded: bool = True
    """False for a model that its server loads on demand, perhaps with a smaller window."""

    def applied(self, model: Model) -> Model:
        if self.window:
            model = replace(model, window=self.window, window_from="the server")
        if self.max_output and not model.max_output:
            model = replace(model, max_output=self.max_output, max_output_from="the server")
        return model


class ProbeSchedule:
    """When to ask an unresponsive server again: immediately the first times, then after growing pauses."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures, self._next = 0, float("-inf")

    @property
    def is_due(self) -> bool:
        return self._clock() >= self._next

    def failed(self) -> None:
        self._failures += 1
        if self._failures >= FREE_FAILURES:
            self._next = self._clock() + min(2.0**self._failures, LONGEST_PAUSE_S)


class ModelList:
    def __init__(self, ask: Ask, urls: Sequence[str], clock: Callable[[], float] = time.monotonic) -> None:
        """The later URLs are asked only for windows that the earlier ones do not report."""
        self._ask, self._urls = ask, urls
        self._known: dict[str, ListedModel | None] = {}
        self._settled = set[str]()
        self._schedule = ProbeSchedule(clock)

    async def about(self, id: str) -> ListedModel | None:
        """The server's entry for a model; None if there is none, or no answer. Asked again while it is not loaded."""
        if id not in self._settled and self._schedule.is_due:
            try:
                self._known[id] = found = _named(id, await self.all())
            except Unreachable:
                self._schedule.failed()
            else:
                if found is None or found.is_loaded:
                    self._settled.add(id)
                else:
                    self._schedule.failed()
        return self._known.get(id)

    async def all(self) -> list[ListedModel]:
        """Every model that the server lists. Raises Unreachable."""
        offered: dict[str, ListedModel] = {}
        for url in self._urls:
            for model in await self._read(url):
                known = offered.get(model.id)
                offered[model.id] = model if known is None or not known.window else known
            if offered and all(model.window for model in offered.values()):
                break
        return list(offered.values())

    async def _read(self, url: str) -> list[ListedModel]:
        status, answer = await self._ask(url)
        if status >= 500 or status in (408, 429):
            raise Unreachable(f"The server answers with status {status}.")
        return read_model_list(answer) if 200 <= status < 300 else []


def read_model_list(answer: Json) -> list[ListedModel]:
    """The models of a list, each once; of several entries with one name the smallest window counts."""
    if isinstance(answer, dict):
        answer = next((answer[name] for name in ("data", "models") if isinstance(answer.get(name), list)), None)
    found: dict[str, ListedModel] = {}
    for item in answer if isinstance(answer, list) else ():
        id = next((item[name] for name in NAMES if item.get(name)), None) if isinstance(item, dict) else None
        if isinstance(id, str):
            window, most = _number(item, WINDOW_FIELDS), _number(item, OUTPUT_FIELDS)
            if (known := found.get(id)) and known.window and window:
                window = min(known.window, window)
            found[id] = ListedModel(id, window, most, item.get("state") != "not-loaded")
    return list(found.values())


def _number(item: Mapping[str, Any], names: Sequence[str]) -> int | None:
    tables = list(_tables(item))
    counts = (reported_count(table.get(name)) for name in names for table in tables)
    return next((count for count in counts if count and SMALLEST_WINDOW <= count <= LARGEST_WINDOW), None)


def _tables(item: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The entry and the tables in it that hold facts."""
    yield item
    for name in INNER:
        if isinstance(inner := item.get(name), dict):
            yield from _tables(inner)


def _named(id: str, models: Sequence[ListedModel]) -> ListedModel | None:
    """The entry of a model: by its id, or by the last part of it."""
    wanted = id.lower()
    bare = wanted.rsplit("/", 1)[-1]
    same = [model for model in models if model.id.lower() == wanted]
    return next(iter(same or [model for model in models if model.id.lower().rsplit("/", 1)[-1] == bare]), None)
