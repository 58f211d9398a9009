"""A server written by hand, which does in each mode one thing that a server should not."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Json = dict[str, Any]
SCHEMA: Json = {"type": "object", "properties": {}}
LOOP: Json = {"type": "object", "properties": {"next": {"$ref": "#/properties/next"}, "self": {"$ref": "#"}}}


def send(**message: Any) -> None:
    raw(json.dumps({"jsonrpc": "2.0", **message}))


def raw(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def text(id: Any, text: str) -> None:
    send(id=id, result={"content": [{"type": "text", "text": text}]})


def tool(name: Any, schema: Any = SCHEMA, **more: Any) -> Json:
    return {"name": name, "inputSchema": schema, **more}


def die(id: Any, given: Json) -> None:
    print("out of luck", file=sys.stderr, flush=True)
    os._exit(3)


def hang(id: Any, given: Json) -> None:
    Path(given["path"]).write_text("hanging")
    time.sleep(600)


def garbage(id: Any, given: Json) -> None:
    for _ in range(given["lines"]):
        raw("this is not JSON")
    text(id, "after the garbage")


def flood(id: Any, given: Json) -> None:
    for number in range(given["lines"]):
        send(method="notifications/message", params={"level": "info", "data": f"line {number}"})
        send(method="notifications/progress", params={"progressToken": 1, "progress": number})
    text(id, "after the flood")


def endless(id: Any, given: Json) -> None:
    while True:
        sys.stdout.write("x" * 1_000_000)


def huge(id: Any, given: Json) -> None:
    text(id, "x" * given["size"])


def deep(id: Any, given: Json) -> None:
    nested = '{"a":' * 5_000 + "1" + "}" * 5_000
    raw(f'{{"jsonrpc":"2.0","id":{id},"result":{{"content":[],"structuredContent":{nested}}}}}')


def noise(id: Any, given: Json) -> None:
    sys.stderr.write("y" * 3_000_000 + "\nlast words\n")
    sys.stderr.flush()
    text(id, "after the noise")


def invalid(id: Any, given: Json) -> None:
    send(id=id, result={"content": "not a list"})


def shapeless(id: Any, given: Json) -> None:
    raw(json.dumps({"jsonrpc": "2.0", "id": id, "result": ["not", "an", "object"]}))


def half(id: Any, given: Json) -> None:
    text(id, "half \ud83d of one")


def refuse(id: Any, given: Json) -> None:
    send(id=id, error={"code": -32000, "message": "not today"})


def structured(id: Any, given: Json) -> None:
    send(id=id, result={"content": [], "structuredContent": {"sum": 3}})


def broken_image(id: Any, given: Json) -> None:
    blob = {"uri": "file:///a.bin", "blob": "AAEC"}
    content = [{"type": "image", "mimeType": "image/png", "data": "%%%"}, {"type": "resource", "resource": blob}]
    send(id=id, result={"content": content})


def ask(id: Any, given: Json) -> None:
    for number, method in enumerate(given["methods"]):
        params: Json = {} if method == "roots/list" else {"messages": [], "maxTokens": 1, "message": "?"}
        send(id=f"mine-{number}", method=method, params=params)
        answer = json.loads(sys.stdin.readline())
        assert answer["id"] == f"mine-{number}"
        answers.append(answer.get("error", {}).get("message", "allowed"))
    text(id, " / ".join(answers))


def beg(id: Any, given: Json) -> None:
    """Asks and never listens to the answers."""
    for number in range(100_000):
        send(id=f"mine-{number}", method="roots/list", params={})


def capabilities(id: Any, given: Json) -> None:
    text(id, json.dumps(offered))


def learn(id: Any, given: Json) -> None:
    TOOLS["learn"] = (learn, [tool("learn"), tool("learnt")])
    send(method="notifications/tools/list_changed")
    text(id, "learnt")


def learn_quietly(id: Any, given: Json) -> None:
    TOOLS["learn_quietly"] = (learn_quietly, [tool("learn_quietly"), tool("learnt")])
    text(id, "learnt")


def restless(id: Any, given: Json) -> None:
    for _ in range(5_000):
        send(method="notifications/tools/list_changed")
    text(id, "restless")


def count(id: Any, given: Json) -> None:
    path = Path(given["path"])
    path.write_text(str(int(path.read_text()) + 1 if path.exists() else 1))
    os._exit(4)


def pid(id: Any, given: Json) -> None:
    text(id, str(os.getpid()))


def child(id: Any, given: Json) -> None:
    text(id, str(subprocess.Popen(["sleep", "600"]).pid))


def stubborn(id: Any, given: Json) -> None:
    """Goes on when it is asked to end, until it is killed."""
    import signal

    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    text(id, "stubborn")
    while True:
        time.sleep(1)


Run = Callable[[Any, Json], None]
TOOLS: dict[str, tuple[Run, list[Any]]] = {
    run.__name__: (run, [tool(run.__name__)])
    for run in (
        huge,
        deep,
        die,
        hang,
        garbage,
        flood,
        endless,
        noise,
        invalid,
        shapeless,
        half,
        refuse,
        structured,
        broken_image,
    )
}
TOOLS |= {run.__name__: (run, [tool(run.__name__)]) for run in (ask, beg, capabilities, learn, learn_quietly, restless)}
TOOLS |= {run.__name__: (run, [tool(run.__name__)]) for run in (count, pid, child, stubborn)}
LISTS: dict[str, list[Any]] = {
    "strange": [
        tool("good", description="x" * 1_000_000),
        tool("good"),
        tool(""),
        tool(7),
        "not a tool",
        tool("flat", "not an object"),
        tool("huge", {"type": "object", "description": "z" * 100_001}),
        tool("loop", LOOP),
        tool("untyped", {}),
        tool("odd.name/with spaces", {"type": "object", "properties": {"a": True}}),
    ],
    "many": [tool(f"tool-{number}") for number in range(25)],
    "none": [],
}
answers: list[str] = []
offered: Json = {}


def listed(id: Any, params: Json) -> None:
    tools = LISTS.get(mode) or [each for _, listed in TOOLS.values() for each in listed]
    start = int(params.get("cursor") or 0)
    more = {"nextCursor": str(start + 10)} if mode == "many" and start + 10 < len(tools) else {}
    send(id=id, result={"tools": tools[start : start + 10] if mode == "many" else tools, **more})


def handle(message: Json) -> None:
    id, method, params = message.get("id"), message.get("method"), message.get("params") or {}
    if method == "initialize":
        offered.update(params["capabilities"])
        about = {"name": "odd", "version": "1"}
        caps = {"tools": {"listChanged": True}}
        send(id=id, result={"protocolVersion": params["protocolVersion"], "capabilities": caps, "serverInfo": about})
    elif method == "tools/list" and mode == "none":
        send(id=id, error={"code": -32601, "message": "Method not found"})
    elif method == "tools/list" and mode == "wrong":
        send(id=id, result={"tools": {"not": "a list"}})
    elif method == "tools/list":
        listed(id, params)
    elif method == "tools/call":
        TOOLS[params["name"]][0](id, params.get("arguments") or {})
    elif method == "ping":
        send(id=id, result={})
    elif id is not None:
        send(id=id, error={"code": -32601, "message": "Method not found"})


mode = sys.argv[1] if sys.argv[1:] else ""
if mode == "mute":
    print("thinking hard", file=sys.stderr, flush=True)
    time.sleep(600)
if mode == "stillborn":
    sys.exit("no such database")
if mode == "chatty":
    raw("Welcome to the odd server!")
    raw("")
for line in sys.stdin:
    handle(json.loads(line))
