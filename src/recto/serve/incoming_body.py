"""IncomingBody: the body of a request as it comes in, within its bounds; and whether its client is still there."""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable
from typing import TypeVar

from starlette.requests import Request

from recto.errors import Invalid
from recto.serve.access import Limits

T = TypeVar("T")


class BodyTooLarge(Invalid):
    """The body of a request is larger than the server takes."""


class IncomingBody:
    def __init__(self, request: Request, limits: Limits) -> None:
        self._limits, self._parts = limits, request.stream()
        self._begun: list[bytes] = []
        length = request.headers.get("content-length", "")
        self.declared = int(length) if length.isdecimal() else None
        """How large it will be, where its client says so."""

    async def is_larger_than(self, size: int) -> bool:
        """Reads only as much as it takes to know."""
        if self.declared is not None:
            return self.declared > size
        began = 0
        async for part in self.parts():
            self._begun.append(part)
            began += len(part)
            if began > size:
                return True
        return False

    async def whole(self) -> bytes:
        return b"".join([part async for part in self.parts()])

    async def parts(self) -> AsyncGenerator[bytes, None]:
        """BodyTooLarge for more than is allowed, Invalid where the client takes too long."""
        most, within_s = self._limits.body_bytes, self._limits.read_s
        if self.declared is not None and self.declared > most:
            raise _too_large(most)
        while self._begun:
            yield self._begun.pop(0)
        size, waited_s = 0, 0.0
        while True:
            began = time.monotonic()
            try:
                async with asyncio.timeout(within_s - waited_s):
                    part = await anext(self._parts, None)
            except TimeoutError as why:
                raise Invalid(f"The request did not come within {within_s:g} s.", field="") from why
            waited_s += time.monotonic() - began
            if part is None:
                return
            size += len(part)
            if size > most:
                raise _too_large(most)
            yield part


def _too_large(most: int) -> BodyTooLarge:
    return BodyTooLarge(f"The request is larger than the {most:,} bytes that this server takes.", field="")


async def while_there(request: Request, work: Awaitable[T]) -> T | None:
    """What is waited for; None if the client has left before it came."""
    working, leaving = asyncio.ensure_future(work), asyncio.ensure_future(_gone(request))
    try:
        await asyncio.wait([working, leaving], return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        for each in (working, leaving):
            each.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)


async def _gone(request: Request) -> None:
    """Until the client has gone."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
