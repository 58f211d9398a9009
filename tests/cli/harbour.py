"""A small agent with rules and references, and an MCP server with two tools."""

import json
import sys
from pathlib import Path
from typing import Any

# By hand, as it would take the SDK half a second to start; tests/mcp has one by the SDK.
SERVER = """
import json, sys, threading, time

def berth(boat, nights=1):
    return f"{boat} lies at pier 7 for {nights} nights"

def wait(seconds):
    time.sleep(seconds)
    return "the tide is in"

def tool(name, description, required, **properties):
    schema = {"type": "object", "properties": properties, "required": required}
    return {"name": name, "description": description, "inputSchema": schema}

TOOLS = [
    tool("berth", "Books a berth for a boat.", ["boat"], boat={"type": "string"}, nights={"type": "integer"}),
    tool("wait", "Waits for the tide.", ["seconds"], seconds={"type": "number"}),
]

def send(id, **said):
    print(json.dumps({"jsonrpc": "2.0", "id": id, **said}), flush=True)

def call(id, name, arguments):
    text = {"berth": berth, "wait": wait}[name](**arguments)
    send(id, result={"content": [{"type": "text", "text": text}]})

for line in sys.stdin:
    asked = json.loads(line)
    id, method, params = asked.get("id"), asked["method"], asked.get("params") or {}
    if method == "initialize":
        about = {"protocolVersion": params["protocolVersion"], "serverInfo": {"name": "harbour", "version": "1"}}
        send(id, result={**about, "capabilities": {"tools": {}}})
    elif method == "tools/list":
        send(id, result={"tools": TOOLS})
    elif method == "tools/call":
        threading.Thread(target=call, args=(id, params["name"], params["arguments"]), daemon=True).start()
    elif id is not None:
        send(id, error={"code": -32601, "message": "Method not found"})
"""
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
