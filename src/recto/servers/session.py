"""A session with a server, by the SDK: opened, asked for all its tools, asked whether it is still there. Imported only
with a server at hand, for the SDK takes a second to load."""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

from mcp import Client, MCPError
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
from mcp.types import (
    METHOD_NOT_FOUND,
    REQUEST_TIMEOUT,
    EmptyResult,
    Implementation,
    PaginatedRequestParams,
    PingRequest,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError
from pydantic_core import to_json

from recto.errors import RectoError
from recto.servers.answer import OURS, UNSENT
from recto.servers.http import http
from recto.servers.listing import MOST_TOOLS, Listing, check
from recto.servers.outcome import outcome_of
from recto.servers.pipe import pipe
from recto.servers.reach import Reach
from recto.servers.seen import RAW, Seen
from recto.servers.sifted import sifted
from recto.sources.tools import Arguments, Outcome

MOST_PAGES = 200
US = Implementation(name="recto", version="0.1.0")

# what the SDK logs of a server's faults is said in our own words; Python would put it on the terminal
for _name in ("mcp", "client"):
    logging.getLogger(_name).addHandler(logging.NullHandler())


class Gone(Exception):
    """The server ended before it answered."""


@asynccontextmanager
async def session(reach: Reach, environment: Mapping[str, str], seen: Seen) -> AsyncIterator[Client]:
    """Nothing is offered to the server in return: no sampling, no questions, no roots."""
    transport = pipe(reach, environment, seen) if reach.command else http(reach, seen)
    async with Client(sifted(transport, seen), client_info=US, cache=None) as client, _listening(client):
        yield client


@asynccontextmanager
async def _listening(client: Client) -> AsyncIterator[None]:
    """Since 2026 a server tells of changed tools only whom it was asked to; what it tells is seen on its way."""

    async def listen() -> None:
        with suppress(MCPError, SubscriptionLost, ListenNotSupportedError, TimeoutError):
            async with client.listen(tools_list_changed=True) as changes:
                async for _ in changes:
                    continue

    tools = client.server_capabilities.tools
    if client.protocol_version not in MODERN_PROTOCOL_VERSIONS or tools is None or not tools.list_changed:
        yield
        return
    task = asyncio.create_task(listen())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def list_tools(client: Client, name: str) -> Listing:
    """All pages."""
    raw: list[object] = []
    cursor: str | None = None
    for _ in range(MOST_PAGES):
        try:
            page = await client.session.list_tools(params=PaginatedRequestParams(cursor=cursor) if cursor else None)
        except MCPError as why:
            if why.code == METHOD_NOT_FOUND and not raw:
                return Listing()
            raise
        raw += (page.meta or {}).get(RAW, ())
        if not page.next_cursor or page.next_cursor == cursor or len(raw) > MOST_TOOLS:
            break
        cursor = page.next_cursor
    return check(name, raw)


async def call_tool(client: Client, seen: Seen, tool: str, arguments: Arguments) -> Outcome:
    """Raises Gone where the server ended; whatever else goes wrong is a result that the model can read."""
    name = seen.name
    if not _can_be_sent(arguments):
        return Outcome(f"the call was not sent to the MCP server {name}: {UNSENT}", is_error=True)
    try:
        return outcome_of(await client.call_tool(tool, dict(arguments)))
    except MCPError as why:
        if why.error.data == OURS:
            return Outcome(f"the call failed on the MCP server {name}: {why.error.message}", is_error=True)
        # before 2026 an error of a call has no status: one that has is about the session, which such a server forgets
        if is_gone(why) or (seen.failure and client.protocol_version not in MODERN_PROTOCOL_VERSIONS):
            raise Gone from why
        return Outcome(f"the MCP server {name} answered with an error: {why.error.message}", is_error=True)
    except ValidationError as why:
        return Outcome(f"the MCP server {name} sent a result that is not valid: {_first(why)}", is_error=True)
    except RuntimeError as why:
        return Outcome(f"the call failed on the MCP server {name}: {why}", is_error=True)


def _can_be_sent(arguments: Arguments) -> bool:
    """Halves of characters and the like would end the connection, and other calls with it."""
    try:
        to_json(dict(arguments))
    except (ValueError, RecursionError):
        return False
    return True


def is_gone(why: MCPError) -> bool:
    """In the SDK's own words, for servers use its code for many things."""
    return why.error.message in ("Connection closed", "Session terminated")


async def answers(client: Client, within_s: float) -> bool:
    """Whether it answers at all; an error is an answer."""
    try:
        async with asyncio.timeout(within_s):
            if client.protocol_version in MODERN_PROTOCOL_VERSIONS:
                await client.session.send_discover(client.protocol_version)
            else:
                await client.session.send_request(PingRequest(), EmptyResult)
    except MCPError as why:
        return why.code != REQUEST_TIMEOUT and not is_gone(why)
    except TimeoutError:
        return False
    except ValidationError:
        return True
    return True


def told(why: BaseException) -> str:
    """What went wrong, in words, without what only a programmer reads."""
    while isinstance(why, BaseExceptionGroup):
        why = why.exceptions[0]
    match why:
        case FileNotFoundError() | NotADirectoryError():
            return f"there is no {why.filename}"
        case PermissionError():
            return f"{why.filename} may not be run"
        case MCPError():
            return why.error.message
        case ValidationError():
            return f"what it sent is not valid: {_first(why)}"
        case RectoError():
            return why.message
    return str(why) or type(why).__name__


def _first(why: ValidationError) -> str:
    error: Any = why.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, error['loc']))}: {error['msg']}" if error["loc"] else str(error["msg"])
