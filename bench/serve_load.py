"""Clients of an endpoint that cost next to nothing: requests over connections that stay open, and when bytes came.

Of HTTP they know what it takes: a head, a length or chunks. A status other than 200 ends the run with what was said.
"""

import asyncio
import json
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.wire import Wire

NUMBER = re.compile(r"\d+\.\d{4}")
PATH = "/v1/chat/completions"


@dataclass(frozen=True, slots=True)
class Address:
    port: int
    model: str
    headers: tuple[str, ...] = ()
    """Lines that go with every request."""

    def request(self, messages: Sequence[Wire], *, stream: bool) -> bytes:
        asked = {"model": self.model, "stream": stream, "messages": messages}
        body = json.dumps(asked, ensure_ascii=False).encode()
        head = (f"POST {PATH} HTTP/1.1", f"host: 127.0.0.1:{self.port}", "content-type: application/json")
        lines = (*head, *self.headers, f"content-length: {len(body)}", "", "")
        return "\r\n".join(lines).encode() + body


@dataclass(slots=True)
class Heard:
    """An answer: seconds to its first byte and to its end, and its text."""

    first_s: float = 0.0
    whole_s: float = 0.0
    text: str = ""
    late_s: list[float] = field(default_factory=list)
    """Of each word that tells when it left: how much later it came."""


class Connection:
    def __init__(self, address: Address) -> None:
        self._address = address
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, messages: Sequence[Wire], *, stream: bool = True) -> Heard:
        request, was_open = self._address.request(messages, stream=stream), self._streams is not None
        try:
            return await self._ask(request, stream=stream)
        except (asyncio.IncompleteReadError, ConnectionError):
            if not was_open:
                raise
            self._streams = None  # the endpoint had closed it meanwhile
            return await self._ask(request, stream=stream)

    async def _ask(self, request: bytes, *, stream: bool) -> Heard:
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._address.port, limit=1 << 24)
        reader, writer = self._streams
        heard, began = Heard(), time.monotonic()
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        body = await self._body(reader, head.lower(), heard, began)
        heard.whole_s = time.monotonic() - began
        if b" 200 " not in head[:20]:
            raise SystemExit(f"the endpoint at {self._address.port} answered {head[:20]!r}: {body[:500]!r}")
        heard.text = _text(body, stream=stream)
        return heard

    async def _body(self, reader: asyncio.StreamReader, head: bytes, heard: Heard, began: float) -> bytes:
        if b"transfer-encoding: chunked" not in head:
            length = int(head.partition(b"content-length:")[2].split(b"\r\n", 1)[0])
            body = await reader.readexactly(length)
            heard.first_s = time.monotonic() - began
            return body
        parts = []
        while size := int((await reader.readuntil(b"\r\n"))[:-2], 16):
            chunk = (await reader.readexactly(size + 2))[:-2]
            at = time.monotonic()
            heard.first_s = heard.first_s or at - began
            heard.late_s += [at - float(sent) for sent in NUMBER.findall(chunk.decode("utf-8", "ignore"))]
            parts.append(chunk)
        await reader.readexactly(2)
        return b"".join(parts)

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()


def _text(body: bytes, *, stream: bool) -> str:
    if not stream:
        return str(json.loads(body)["choices"][0]["message"]["content"])
    lines = [line[6:] for line in body.decode().splitlines() if line.startswith("data: {")]
    choices = [choice for line in lines for choice in json.loads(line).get("choices", ())]
    return "".join(choice["delta"].get("content") or "" for choice in choices)


class Client:
    """A conversation that goes on: every request repeats all of it, as clients do."""

    def __init__(self, address: Address, history: Sequence[Wire]) -> None:
        self._connection, self.messages = Connection(address), [*history]

    async def ask(self, said: str, *, stream: bool = True) -> Heard:
        self.messages.append({"role": "user", "content": said})
        heard = await self._connection.ask(self.messages, stream=stream)
        self.messages.append({"role": "assistant", "content": heard.text})
        return heard

    def close(self) -> None:
        self._connection.close()


async def one_by_one(clients: Sequence[Client], turns: int) -> list[Heard]:
    """One request at a time, round the clients."""
    return [await client.ask(f"Question {number}: is that so?") for number in range(turns) for client in clients]


async def all_at_once(clients: Sequence[Client], turns: int, *, stream: bool = False) -> tuple[list[Heard], float]:
    """Every client asks as soon as it has its answer. Also how long it took in all."""
    began = time.monotonic()

    async def talk(client: Client) -> list[Heard]:
        return [await client.ask(f"Question {number}: is that so?", stream=stream) for number in range(turns)]

    found: list[Any] = await asyncio.gather(*(talk(client) for client in clients))
    return [heard for each in found for heard in each], time.monotonic() - began
