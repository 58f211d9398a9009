"""LangChain's count_tokens_approximately, message by message. Argument: a file of texts by kind.

Prints {"version", kind: {"tokens", "seconds"}}; runs with the peers' Python.
"""

import json
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

# the peers' packages are not in the environment that checks types
from langchain_core.messages import HumanMessage  # type: ignore[import-not-found]
from langchain_core.messages.utils import count_tokens_approximately  # type: ignore[import-not-found]

RUNS = 15


def counted(texts: list[str]) -> dict[str, Any]:
    messages = [HumanMessage(text) for text in texts]
    seconds, tokens = [], 0
    for _ in range(RUNS):
        started = time.process_time()
        tokens = sum(count_tokens_approximately([message]) for message in messages)
        seconds.append(time.process_time() - started)
    return {"tokens": tokens, "seconds": seconds}


def main() -> None:
    kinds = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    found = {kind: counted(texts) for kind, texts in kinds.items()}
    print(json.dumps({"version": version("langchain-core"), **found}))


main()
