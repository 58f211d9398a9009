"""What a peer would send for each of many conversations. Arguments: its name, how it counts, two files: in and out.

The first holds {"limits", "summary", "conversations"}; the second gets a line for each conversation: {"sent", "asked"}
or {"error"}. Prints the version; runs with the peers' Python.
"""

import asyncio
import json
import sys
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bench.wire import Limits, Wire

Sender = Callable[[list[Wire]], dict[str, Any]]


def langchain(name: str, how: str, limits: Limits, summary: str) -> Sender:
    from bench.keep_langchain import keeper, wired  # heavy, and only one of the two is needed

    def send(conversation: list[Wire]) -> dict[str, Any]:
        keeps = keeper(name, how, limits, summary)
        for message in conversation:
            keeps.say(message)
        return {"sent": wired(keeps.next()), "asked": keeps.asked}

    return send


def harness(name: str, how: str, limits: Limits, summary: str) -> Sender:
    from bench.keep_pydantic import STRATEGIES, TOKENIZERS, Answering, native, sent  # as above

    strategy, answering, runner = STRATEGIES[name](limits, TOKENIZERS[how]), Answering(summary), asyncio.Runner()

    def send(conversation: list[Wire]) -> dict[str, Any]:
        answering.bodies.clear()
        messages = runner.run(sent(strategy, answering, native(conversation)))
        return {"sent": messages, "asked": [body["messages"] for body in answering.bodies[:-1]]}

    return send


def tried(send: Sender, conversation: list[Wire]) -> dict[str, Any]:
    try:
        return send(conversation)
    except Exception as why:  # whatever goes wrong in a peer is what is counted here
        return {"error": f"{type(why).__name__}: {why}"[:200]}


def main() -> None:
    name, how, given, out = sys.argv[1:]
    warnings.simplefilter("ignore")
    task = json.loads(Path(given).read_text("utf-8"))
    make = harness if name.startswith("harness") else langchain
    send = make(name, how, Limits(**task["limits"]), task["summary"])
    with Path(out).open("w", encoding="utf-8") as file:
        for conversation in task["conversations"]:
            file.write(json.dumps(tried(send, conversation)) + "\n")
    package = {"harness": "pydantic-ai-harness", "langmem": "langmem"}.get(name.split(",")[0], "langchain")
    print(json.dumps({"version": f"{package} {version(package)}"}))


main()
