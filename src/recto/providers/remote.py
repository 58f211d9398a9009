"""RemoteProvider: the shared part of providers over HTTP: key, catalog, transport. Subclasses know the format."""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from json import JSONDecoder
from typing import Protocol
from urllib.parse import urlsplit

from recto.errors import Invalid, NoKey, Refused
from recto.providers.failure import RequestTarget
from recto.providers.families import VocabularyCounter
from recto.providers.http import Call, ReplyReader, Transport
from recto.providers.model import Model, ReplyPart
from recto.window.count import TokenCounter
from recto.window.request import Format, Purpose

BODY_START = '{"model":'


class ModelLookup(Protocol):
    """Looks up the facts about a model."""

    def find(self, provider: str, id: str) -> Model: ...


class RemoteProvider(ABC):
    """The shared part of providers over HTTP; the subclass of a wire format defines `url`, `headers` and `reader`."""

    format: Format
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
    ) -> None:
        self.name, self.base_url, self.catalog = name, _address(name, base_url), catalog
        self.key_variable, self.transport = key_variable, transport or Transport()
        self._key = (key or "").strip() or None

    @property
    @abstractmethod
    def url(self) -> str:
        """The URL that requests are posted to."""

    @abstractmethod
    def headers(self, key: str | None) -> Mapping[str, str]:
        """The headers of the format, including the key."""

    async def model(self, name: str) -> Model:
        return self.catalog.find(self.name, name.removeprefix(f"{self.name}:"))

    async def counter(self, model: Model) -> TokenCounter:
        return VocabularyCounter(model, self.format)

    async def stream(self, body: bytes, purpose: Purpose) -> AsyncGenerator[ReplyPart]:
        key = self._checked_key()
        target = RequestTarget(self.name, self.url, _model_in(body), self.key_variable, key)
        # some servers delay a stream in order to compress it
        common = {"content-type": "application/json", "accept": "text/event-stream", "accept-encoding": "identity"}
        call = Call(target, {**common, "user-agent": "recto", **self.headers(key)}, body)
        async with aclosing(self.transport.post_stream(call, self.reader)) as parts:
            async for part in parts:
                yield part

    async def close(self) -> None:
        await self.transport.close()

    def _checked_key(self) -> str | None:
        if self._key is None and self.key_variable:
            raise NoKey(
                f"{self.name} needs a key; set {self.key_variable} in the environment.", variable=self.key_variable
            )
        if self._key and not (self._key.isascii() and self._key.isprintable()):
            raise Refused(
                f"The key in {self.key_variable or self.name} contains characters that no key has; copy it again."
            )
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
        raise Invalid(f"base_url of {provider} must be an address like http://localhost:8080/v1, not {base_url!r}.")
    return address


def _model_in(body: bytes) -> str:
    """The model's name, which is at the start of our bodies; the rest is not parsed."""
    start = body[:2000].decode("utf-8", "ignore")
    try:
        found = start.startswith(BODY_START)
        return str(JSONDecoder().raw_decode(start, len(BODY_START))[0]) if found else "this model"
    except ValueError:
        return "this model"
