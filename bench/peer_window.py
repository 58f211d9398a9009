"""How long a peer takes for one request. Arguments: its name, how it counts, a file {"limits", "summary", "history"}.

The history is in memory already, in the peer's own messages. Prints {"version", "first": seconds, "next": seconds}:
for a request on the whole history, and for those after it. Runs with the peers' Python.
"""

import asyncio
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bench.wire import Limits, Wire, tokens

FIRST, NEXT = 5, 15
# Seconds after which a slow one is not tried again.
ENOUGH_S = 10.0
QUESTION: Wire = {"role": "user", "content": "And what does the manual say about names that are bound twice?"}
ANSWER: Wire = {"role": "assistant", "content": "That the last binding counts, and that the first value is let go."}

Chat = Callable[[], Iterator[Callable[[], object]]]
"""A new conversation on the history: what makes its first request, then the next, and so on."""


def langchain(name: str, how: str, limits: Limits, task: dict[str, Any]) -> Chat:
    from bench.keep_langchain import keeper, native  # heavy, and only one of the two is needed

    history = [native(message) for message in task["history"]]

    def chat() -> Iterator[Callable[[], object]]:
        keeps = keeper(name, how, limits, task["summary"])
        keeps.messages = list(history)
        while True:
            keeps.say(QUESTION)
            yield keeps.next
            keeps.say(ANSWER)

    return chat


def harness(name: str, how: str, limits: Limits, task: dict[str, Any]) -> Chat:
    from bench.keep_pydantic import STRATEGIES, TOKENIZERS, Answering, hooked, native  # as above

    history, runner = native(task["history"]), asyncio.Runner()
    model, strategy = Answering(task["summary"]).model, STRATEGIES[name](limits, TOKENIZERS[how])

    def chat() -> Iterator[Callable[[], object]]:
        messages = list(history)
        request = partial(hooked, strategy, model, messages)
        while True:
            messages.extend(native([QUESTION]))
            yield lambda: runner.run(request())
            messages.extend(native([ANSWER]))

    return chat


def timed(work: Callable[[], object]) -> float:
    """With nothing counted before: who counts exactly counts anew with every call."""
    tokens.cache_clear()
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def several(measure: Callable[[], float], runs: int) -> list[float]:
    seconds = [measure()]
    while len(seconds) < runs and sum(seconds) < ENOUGH_S:
        seconds.append(measure())
    return seconds


def main() -> None:
    name, how, given = sys.argv[1:]
    warnings.simplefilter("ignore")
    task = json.loads(Path(given).read_text("utf-8"))
    make = harness if name.startswith("harness") else langchain
    limits = Limits(**task["limits"])
    short = make(name, how, limits, task | {"history": task["history"][:1000]})()
    timed(next(short))  # what is built on first use belongs to the start of a process
    chat = make(name, how, limits, task)
    first = several(lambda: timed(next(chat())), FIRST)
    requests = chat()
    timed(next(requests))
    later = several(lambda: timed(next(requests)), NEXT)
    package = {"harness": "pydantic-ai-harness", "langmem": "langmem"}.get(name.split(",")[0], "langchain")
    print(json.dumps({"version": f"{package} {version(package)}", "first": first, "next": later}))


main()
