"""A session with an MCP server over the SDK: opens it, lists its tools, calls them.

Imported late, because the SDK is slow to load.
"""

import asyncio
import base64
import binascii
import json
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

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

from mcp import Client, MCPError
from recto.errors import RectoError
from recto.mcp.connection_state import RAW_TOOLS, ConnectionState
from recto.mcp.server_target import ServerTarget
from recto.mcp.tool_list import MAX_LISTED_TOOLS, ToolList, check_tools
from recto.mcp.transports import INVALID_ARGUMENTS, OWN_ERROR, cancel_tasks, filtered_transport
from recto.sources.tools import Arguments, Media, ToolOutput

if TYPE_CHECKING:
    from mcp.types import CallToolResult, ContentBlock


MAX_PAGES = 200
CLIENT_INFO = Implementation(name="recto", version="0.1.0")
OCTET_STREAM = "application/octet-stream"

# The SDK logs servers' faults, which Python would print on the terminal; Recto reports them itself.
for _name in ("mcp", "client"):
    logging.getLogger(_name).addHandler(logging.NullHandler())


class ServerGone(Exception):
    """The server ended before it answered."""


@asynccontextmanager
async def open_session(
    target: ServerTarget, environment: Mapping[str, str], state: ConnectionState
) -> AsyncIterator[Client]:
    """Open a session that offers the server nothing: no sampling, no elicitation, no roots."""

    async def listen() -> None:
        with suppress(MCPError, SubscriptionLost, ListenNotSupportedError, TimeoutError):
            async with client.listen(tools_list_changed=True) as changes:
                async for _ in changes:  # ConnectionState sees them
                    continue

    transport = filtered_transport(target, environment, state)
    async with Client(transport, client_info=CLIENT_INFO, cache=None) as client:
        tools, tasks = client.server_capabilities.tools, list[asyncio.Task[None]]()
        # servers of protocol 2026 announce changes of the tool list only to subscribers
        if client.protocol_version in MODERN_PROTOCOL_VERSIONS and tools and tools.list_changed:
            tasks.append(asyncio.create_task(listen()))
        try:
            yield client
        finally:
            await cancel_tasks(*tasks)


async def list_tools(client: Client, name: str) -> ToolList:
    raw: list[object] = []
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        try:
            page = await client.session.list_tools(params=PaginatedRequestParams(cursor=cursor) if cursor else None)
        except MCPError as why:
            if why.code == METHOD_NOT_FOUND and not raw:
                return ToolList()
            raise
        raw += (page.meta or {}).get(RAW_TOOLS, ())
        if not page.next_cursor or page.next_cursor == cursor or len(raw) > MAX_LISTED_TOOLS:
            break
        cursor = page.next_cursor
    return check_tools(name, raw)


async def call_tool(client: Client, state: ConnectionState, tool: str, arguments: Arguments) -> ToolOutput:
    """Call a tool. Raises ServerGone if the server ended; any other failure is a result that the model reads."""
    name = state.name
    try:  # arguments that JSON cannot encode, such as lone surrogates, would end the connection and its other calls
        to_json(dict(arguments))
    except (ValueError, RecursionError):
        return ToolOutput(f"the call was not sent to the MCP server {name}: {INVALID_ARGUMENTS}", is_error=True)
    try:
        return tool_output(await client.call_tool(tool, dict(arguments)))
    except MCPError as why:
        # before 2026 a failed call has HTTP status 200: an error status means that the server forgot the session
        is_forgotten = state.http_error and client.protocol_version not in MODERN_PROTOCOL_VERSIONS
        if why.error.data == OWN_ERROR:
            problem = f"the call failed on the MCP server {name}: {why.error.message}"
        elif is_disconnect(why) or is_forgotten:
            raise ServerGone from why
        else:
            problem = f"the MCP server {name} answered with an error: {why.error.message}"
    except ValidationError as why:
        problem = f"the MCP server {name} sent a result that is not valid: {_first_error(why)}"
    except RuntimeError as why:
        problem = f"the call failed on the MCP server {name}: {why}"
    return ToolOutput(problem, is_error=True)


def is_disconnect(why: MCPError) -> bool:
    """True for the SDK's own disconnect messages: servers use its error code for many things."""
    return why.error.message in ("Connection closed", "Session terminated")


async def is_alive(client: Client, timeout_s: float) -> bool:
    """True if the server answers a ping, even with an error."""
    try:
        async with asyncio.timeout(timeout_s):
            if client.protocol_version in MODERN_PROTOCOL_VERSIONS:
                await client.session.send_discover(client.protocol_version)
            else:
                await client.session.send_request(PingRequest(), EmptyResult)
    except MCPError as why:
        return why.code != REQUEST_TIMEOUT and not is_disconnect(why)
    except TimeoutError:
        return False
    except ValidationError:
        pass
    return True


def error_text(why: BaseException) -> str:
    while isinstance(why, BaseExceptionGroup):
        why = why.exceptions[0]
    match why:
        case FileNotFoundError() | NotADirectoryError():
            return f"there is no {why.filename}"
        case PermissionError():
            return f"{why.filename} cannot be executed"
        case MCPError():
            return why.error.message
        case ValidationError():
            return f"its response is not valid: {_first_error(why)}"
        case RectoError():
            return why.message
    return str(why) or type(why).__name__


def _first_error(why: ValidationError) -> str:
    error: Any = why.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, error['loc']))}: {error['msg']}" if error["loc"] else str(error["msg"])


# -- results


def tool_output(result: "CallToolResult") -> ToolOutput:
    blocks = [_convert(block) for block in result.content]
    texts = [text for text, _ in blocks if text]
    if not texts and result.structured_content is not None:
        texts = [json.dumps(result.structured_content, ensure_ascii=False)]
    media = tuple(item for _, item in blocks if item)
    return ToolOutput("\n\n".join(texts), result.is_error, media)


def _convert(block: "ContentBlock") -> tuple[str, Media | None]:
    match block.type:
        case "text":
            return block.text, None
        case "image" | "audio":
            return _convert_media(block.type, block.mime_type, block.data)
        case "resource":
            resource = block.resource
            if (text := getattr(resource, "text", None)) is not None:
                return f"{resource.uri}\n{text}", None
            encoded = getattr(resource, "blob", "")
            return _convert_media(f"file {resource.uri}", resource.mime_type or OCTET_STREAM, encoded)
        case "resource_link":
            about = f": {block.description}" if block.description else ""
            return f"[resource: {block.title or block.name}, {block.uri}{about}]", None


def _convert_media(label: str, media_type: str, encoded: str) -> tuple[str, Media | None]:
    try:
        data = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        return f"[{label}: {media_type}, not valid base64, left out]", None
    return f"[{label}: {media_type}, {len(data):,} bytes, kept]", Media(media_type, data)
