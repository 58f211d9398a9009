"""LangChain's trim_messages on a history that is in memory already. Argument: a file of [role, text] lines.

Prints {"version", "approximate": seconds, "exact": seconds}; runs with the peers' Python.
"""

import json
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

# the peers' packages are not in the environment that checks types
from langchain_core.messages import AIMessage, HumanMessage, trim_messages  # type: ignore[import-not-found]
from splintr import Tokenizer

# As our own window: 8192 less 512 for the reply.
MAX_TOKENS = 8192 - 512
KINDS = {"user": HumanMessage, "assistant": AIMessage}
encode = Tokenizer.from_pretrained("o200k_base").encode_ordinary


def exact(messages: list[Any]) -> int:
    return sum(3 + len(encode(message.content)) for message in messages)


def timed(history: list[Any], counter: Callable[[list[Any]], int] | str, runs: int) -> list[float]:
    times = []
    for _ in range(runs):
        started = time.perf_counter()
        trim_messages(history, max_tokens=MAX_TOKENS, strategy="last", token_counter=counter)
        times.append(time.perf_counter() - started)
    return times


def main() -> None:
    lines = Path(sys.argv[1]).read_text("utf-8").splitlines()
    history = [KINDS[role](text) for role, text in map(json.loads, lines)]
    timed(history[:1000], exact, 1)
    found = {"approximate": timed(history, "approximate", 15), "exact": timed(history, exact, 5)}
    print(json.dumps({"version": version("langchain-core"), **found}))


main()
