"""A provider over the network: its key, its catalog, its way. What it says is the wire format's business."""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from json import JSONDecoder
from typing import Protocol
from urllib.parse import urlsplit

from recto.errors import Invalid, NoKey, Refused
from recto.providers.failure import Asked
from recto.providers.http import Call, Reader, Transport
from recto.providers.model import Model
from recto.providers.provider import Part
from recto.providers.vocabulary import VocabularyMeter
from recto.window.count import Meter
from recto.window.request import Format, Purpose

OPENS = '{"model":'


class Catalog(Protocol):
    """Knows the facts about models."""

    def find(self, provider: str, id: str) -> Model: ...


class RemoteProvider(ABC):
    """What the providers over HTTP share; a wire format's own subclass says `url`, `headers` and `reader`."""

    format: Format
    reader: Callable[[], Reader]

    def __init__(
        self,
        name: str,
        base_url: str,
        key: str | None,
        catalog: Catalog,
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
        """Where requests are posted."""

    @abstractmethod
    def headers(self, key: str | None) -> Mapping[str, str]:
        """The format's own headers, the key among them."""

    async def model(self, name: str) -> Model:
        return self.catalog.find(self.name, name.removeprefix(f"{self.name}:"))

    async def meter(self, model: Model) -> Meter:
        return VocabularyMeter(model)

    async def stream(self, body: bytes, purpose: Purpose) -> AsyncGenerator[Part]:
        key = self._checked_key()
        asked = Asked(self.name, self.url, _model_in(body), self.key_variable, key)
        # some servers hold a stream back until they can compress it
        common = {"content-type": "application/json", "accept": "text/event-stream", "accept-encoding": "identity"}
        call = Call(asked, {**common, "user-agent": "recto", **self.headers(key)}, body)
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
                f"The key in {self.key_variable or self.name} holds characters that no key has; copy it again."
            )
        return self._key


def _address(provider: str, base_url: str) -> str:
    address = base_url.strip().rstrip("/")
    try:
        parts = urlsplit(address)
        # asking for the port is what checks it
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good:
        raise Invalid(f"base_url of {provider} must be an address like http://localhost:8080/v1, not {base_url!r}.")
    return address


def _model_in(body: bytes) -> str:
    """The model's name, which our bodies begin with; the rest need not be parsed."""
    start = body[:2000].decode("utf-8", "ignore")
    try:
        return str(JSONDecoder().raw_decode(start, len(OPENS))[0]) if start.startswith(OPENS) else "this model"
    except ValueError:
        return "this model"
