"""A server whose tools are those of a JSON file, read at every listing; it writes down each call that it runs.

The tool `announce` says that the tools have changed. By hand, as the SDK would take half a second to start.
"""

import json
import sys
from pathlib import Path
from typing import Any

tools_path, calls_path = Path(sys.argv[1]), Path(sys.argv[2])


def send(**said: Any) -> None:
    print(json.dumps({"jsonrpc": "2.0", **said}), flush=True)


for line in sys.stdin:
    asked = json.loads(line)
    id, method, params = asked.get("id"), asked["method"], asked.get("params") or {}
    if method == "initialize":
        about = {"protocolVersion": params["protocolVersion"], "serverInfo": {"name": "changing", "version": "1"}}
        send(id=id, result={**about, "capabilities": {"tools": {"listChanged": True}}})
    elif method == "tools/list":
        send(id=id, result={"tools": json.loads(tools_path.read_text())})
    elif method == "tools/call":
        with calls_path.open("a") as calls:
            calls.write(params["name"] + "\n")
        if params["name"] == "announce":
            tools_path.write_text(Path(params["arguments"]["from"]).read_text())
            send(method="notifications/tools/list_changed")
        send(id=id, result={"content": [{"type": "text", "text": "done"}]})
    elif id is not None:
        send(id=id, error={"code": -32601, "message": "Method not found"})
