"""RemoteProvider: the shared part of providers over HTTP: key, catalog, transport. Subclasses know the format."""

import re
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from http import HTTPStatus
from json import JSONDecoder
from typing import Protocol
from urllib.parse import urlsplit

from msgspec import Struct

from recto.errors import Invalid, NoKey, Refused, Unreachable
from recto.providers.failure import RequestTarget
from recto.providers.families import VocabularyCounter
from recto.providers.http import Call, ReplyReader, Transport
from recto.providers.model import Model, ReplyPart, reported_count
from recto.providers.model_list import ModelList, ask_json
from recto.window.count import TokenCounter
from recto.window.request import Format, Purpose
from recto.wire import Json

BODY_START = '{"model":'


class ModelLookup(Protocol):
    """Looks up the facts about a model."""

    def find(self, provider: str, id: str) -> Model: ...


class CountRequest(Struct, frozen=True):
    """A request for a count of tokens, which stands in `field` of the answer."""

    url: str
    headers: Mapping[str, str]
    """With the key."""
    body: bytes
    field: str


class RemoteProvider(ABC):
    """The shared part of providers over HTTP; the subclass of a wire format defines `url`, `headers` and `reader`."""

    format: Format
    length_field: str = "max_tokens"
    """What its API calls the longest reply."""
    reader: Callable[[], ReplyReader]

    def __init__(
        self,
        name: str,
        base_url: str,
        key: str | None,
        catalog: ModelLookup,
        *,
        key_variable: str | None = None,
        transport: Transport | None = None,
        is_custom: bool = False,
    ) -> None:
        """`is_custom`: the user gave the address, so its server knows more about its models than any table."""
        self.name, self.base_url, self.catalog = name, _address(name, base_url), catalog
        self.key_variable, self.transport, self.is_custom = key_variable, transport or Transport(), is_custom
        self._key = (key or "").strip() or None
        self.listed = ModelList(self._ask, self.list_urls)

    @property
    @abstractmethod
    def url(self) -> str:
        """The URL that requests are posted to."""

    @property
    @abstractmethod
    def list_urls(self) -> tuple[str, ...]:
        """The URLs that list models; the later ones tell windows that the first may not."""

    @abstractmethod
    def headers(self, key: str | None) -> Mapping[str, str]:
        """The headers of the format, including the key."""

    async def model(self, name: str) -> Model:
        """The facts of the catalog; the server is asked where the user gave its address, or nobody else knows."""
        model = self.known(name)
        is_told = model.window_from == "models.toml" or (model.window is not None and not self.is_custom)
        if is_told:
            return model
        found = await self.listed.about(model.id)
        return found.applied(model) if found else model

    def known(self, name: str) -> Model:
        """The facts of the catalog alone."""
        return self.catalog.find(self.name, name.removeprefix(f"{self.name}:"))

    async def offered(self) -> list[Model]:
        """The models that the server lists. Raises Unreachable."""
        return [found.applied(self.known(found.id)) for found in await self.listed.all()]

    async def _ask(self, url: str) -> tuple[int, Json]:
        try:
            headers = {"user-agent": "recto", **self.headers(self.checked_key())}
        except (NoKey, Refused) as why:
            raise Unreachable(why.message) from why
        return await ask_json(self.transport.client(url), url, headers)

    def count_request(self, body: bytes) -> CountRequest | None:
        """What asks the provider to count the tokens of a request; None where it has no endpoint for that."""
        return None

    async def count_tokens(self, body: bytes, wait_s: float) -> int | None:
        """The provider's own count of a request; None where it has none, or there is no key. Raises Unreachable."""
        asked = self.count_request(body) if self._key else None
        if asked is None:
            return None
        headers = {"user-agent": "recto", "content-type": "application/json", **asked.headers}
        client = self.transport.client(asked.url)
        status, answer = await ask_json(client, asked.url, headers, asked.body, wait_s)
        count = reported_count(answer.get(asked.field)) if isinstance(answer, dict) else None
        if status != HTTPStatus.OK or not count:
            raise Unreachable(f"{self.name} did not count the tokens of a request (status {status}).")
        return count

    async def counter(self, model: Model) -> TokenCounter:
        return VocabularyCounter(model, self.format)

    async def stream(self, body: bytes, purpose: Purpose) -> AsyncGenerator[ReplyPart]:
        key = self.checked_key()
        target = RequestTarget(self.name, self.url, _model_in(body), self.key_variable, key)
        # some servers delay a stream in order to compress it
        common = {"content-type": "application/json", "accept": "text/event-stream", "accept-encoding": "identity"}
        call = Call(target, {**common, "user-agent": "recto", **self.headers(key)}, body)
        async with aclosing(self.transport.post_stream(call, self.reader)) as parts:
            async for part in parts:
                yield part

    async def close(self) -> None:
        await self.transport.close()

    def checked_key(self) -> str | None:
        if self._key is None and self.key_variable:
            raise NoKey(no_key_in_words(self.name, self.key_variable), variable=self.key_variable)
        if self._key and not (self._key.isascii() and self._key.isprintable()):
            refused = Refused(
                f"The key in {self.key_variable or self.name} contains characters that no key has; copy it again."
            )
            refused.sent = False
            raise refused
        return self._key


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


def no_key_in_words(provider: str, variable: str) -> str:
    return f"{provider} needs a key; set {variable} in the environment, or store it with `recto keys set {provider}`."
