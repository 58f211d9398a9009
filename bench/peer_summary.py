"""SummarizationMiddleware with a summariser that makes things up. Arguments: the keeper's name, a file {"limits",
"runs", "seeds", "cap", "least"}.

Prints {"version", "runs": [{"summaries", "covered": how many messages it stands for, "compactions", "invented"}]}; runs
with the peers' Python.
"""

import json
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bench.keep_langchain import Native, Summarize, exact
from bench.lossy import Lossy
from bench.wire import Limits, Wire


class Keeps(Summarize):
    """The middleware with what the lossy writer makes of the messages that go, in place of a model's answer."""

    def __init__(self, limits: Limits, writer: Lossy, cap: int) -> None:
        super().__init__(limits, exact, "")
        self.summaries: list[str] = []

        def write(going: list[Native]) -> str:
            self.summaries.append(writer.write([message.text for message in going], cap))
            return self.summaries[-1]

        self._middleware._create_summary = write


def played(run: list[Wire], task: dict[str, Any], seed: int) -> dict[str, Any]:
    writer = Lossy(seed)
    keeps = Keeps(Limits(**task["limits"]), writer, task["cap"])
    covered = 0
    for place, message in enumerate(run):
        if message["role"] == "assistant":
            before = len(keeps.summaries)
            keeps.next()
            if len(keeps.summaries) > before:
                covered = place - (len(keeps.messages) - 1)
                if len(keeps.summaries) >= task["least"]:
                    break
        keeps.say(message)
    return {
        "summaries": keeps.summaries,
        "covered": covered,
        "invented": writer.invented,
    }


def main() -> None:
    task = json.loads(Path(sys.argv[2]).read_text("utf-8"))
    runs = [played(run, task, seed) for run, seed in zip(task["runs"], task["seeds"], strict=True)]
    print(json.dumps({"version": f"langchain {version('langchain')}", "runs": runs}))


main()
