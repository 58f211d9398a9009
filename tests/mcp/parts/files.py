"""A server for the files of one folder, by the SDK, with the names that the one published on npm has."""

import sys
from pathlib import Path

from mcp.server.mcpserver import MCPServer

server, folder = MCPServer("files"), Path(sys.argv[1])


@server.tool(structured_output=False)
def list_directory(path: str) -> str:
    """Lists a folder."""
    return "\n".join(f"[FILE] {each.name}" for each in sorted((folder / path).iterdir()))


@server.tool(structured_output=False)
def read_text_file(path: str) -> str:
    """Reads a file."""
    return (folder / path).read_text()


@server.tool(structured_output=False)
def write_file(path: str, content: str) -> str:
    """Writes a file."""
    (folder / path).write_text(content)
    return f"Successfully wrote to {path}"


server.run()
