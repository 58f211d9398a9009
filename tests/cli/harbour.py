"""A small agent with rules and references, and a real MCP server with two tools."""

import json
import sys
from pathlib import Path
from typing import Any

SERVER = '''
import time
from mcp.server.mcpserver import MCPServer

server = MCPServer("harbour")

@server.tool()
def berth(boat: str, nights: int = 1) -> str:
    """Books a berth for a boat."""
    return f"{boat} lies at pier 7 for {nights} nights"

@server.tool()
def wait(seconds: float) -> str:
    """Waits for the tide."""
    time.sleep(seconds)
    return "the tide is in"

server.run("stdio")
'''
BERTH = {"name": "harbour__berth", "arguments": {"boat": "Sorrel", "nights": 3}}
WAIT = {"name": "harbour__wait", "arguments": {"seconds": 600}}


def write_source(folder: Path, kind: str, name: str, text: str, **front: Any) -> Path:
    """A rule or a reference in the folder of an agent."""
    path = folder / f"{kind}s" / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = "".join(f"{key}: {json.dumps(value)}\n" for key, value in front.items())
    path.write_text(f"---\n{lines}---\n{text}\n")
    return path


def write_agent(folder: Path) -> None:
    write_source(folder, "rule", "style", "Write short sentences.", description="How we write", include="always")
    write_source(folder, "rule", "my tests", "Test everything.", description="How we test", include="agent")
    write_source(folder, "reference", "prices", "A night is 20 euros.", description="What a berth costs")


def write_server(folder: Path, **more: Any) -> Path:
    """The server, and the file that names it, as a home or a project has it."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "harbour.py"
    program.write_text(SERVER)
    said = {"command": sys.executable, "args": [str(program)], "env": {"HARBOUR_KEY": "hush"}, **more}
    path = folder / ".mcp.json"
    path.write_text(json.dumps({"mcpServers": {"harbour": said}}))
    return path
