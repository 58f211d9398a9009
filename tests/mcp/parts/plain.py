"""A server with ordinary tools, by the SDK: adds, waits, shows, and gains a tool when it is told to."""

import asyncio
import os
import sys
from pathlib import Path

from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.types import EmbeddedResource, ResourceLink, TextContent, TextResourceContents

server = MCPServer("plain")
print("plain is up", file=sys.stderr)


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool(structured_output=False)
def environment() -> str:
    """Tells the names of its environment and where it runs."""
    return "\n".join([*sorted(os.environ), os.getcwd(), os.environ.get("GREETING", "")])


@server.tool(structured_output=False)
async def wait(path: str) -> str:
    """Waits for ever, and writes into the file when it is cancelled."""
    write(path, "waiting")
    try:
        await asyncio.sleep(3600)
    except BaseException:
        write(path, "cancelled")
        raise
    return "never"


def write(path: str, text: str) -> None:
    Path(path).write_text(text)


@server.tool(structured_output=False)
def show() -> list[object]:
    """Shows everything that a tool can give."""
    return [
        TextContent(text="first"),
        Image(data=b"\x89PNG", format="png"),
        EmbeddedResource(resource=TextResourceContents(uri="note://one", text="a note")),
        ResourceLink(name="two", uri="note://two"),
        TextContent(text="last"),
    ]


@server.tool(structured_output=False)
def fail() -> str:
    """Fails."""
    raise ValueError("no luck today")


@server.tool(structured_output=False)
def big(size: int) -> str:
    """A long text."""
    return "a line of text that is long\n" * (size // 28)


@server.tool(structured_output=False)
async def learn(name: str, ctx: Context) -> str:
    """Gains a tool."""
    server.add_tool(lambda: "learnt", name=name, description="New.", structured_output=False)
    await ctx.notify_tools_changed()
    return "learnt"


if __name__ == "__main__":
    if sys.argv[1:] == ["http"]:
        server.run("streamable-http", port=int(os.environ["PORT"]))
    else:
        server.run("stdio")
