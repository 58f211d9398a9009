"""SummarizationMiddleware with a summariser that makes things up. Arguments: the keeper's name, a file {"limits",
"runs", "cap", "covered", "least"}.

Prints {"version", "runs": [{"summary", "covered": how many messages it stands for, "compactions", "invented"}]}; runs
with the peers' Python.
"""

import json
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bench.keep_langchain import Native, Summarize, exact
from bench.lossy import Lossy
from bench.wire import Limits, Wire, weight


class Keeps(Summarize):
    """The middleware with what the lossy writer makes of the messages that go, in place of a model's answer."""

    def __init__(self, limits: Limits, writer: Lossy, cap: int) -> None:
        super().__init__(limits, exact, "")
        self.summaries: list[str] = []

        def write(going: list[Native]) -> str:
            self.summaries.append(writer.write([message.text for message in going], cap))
            return self.summaries[-1]

        self._middleware._create_summary = write


def played(run: list[Wire], task: dict[str, Any], number: int) -> dict[str, Any]:
    writer = Lossy(number)
    keeps = Keeps(Limits(**task["limits"]), writer, task["cap"])
    covered = 0
    for place, message in enumerate(run):
        if message["role"] == "assistant":
            before = len(keeps.summaries)
            keeps.next()
            if len(keeps.summaries) > before:
                covered = place - (len(keeps.messages) - 1)
                if len(keeps.summaries) >= task["least"] and sum(map(weight, run[:covered])) >= task["covered"]:
                    break
        keeps.say(message)
    return {
        "summary": keeps.summaries[-1],
        "covered": covered,
        "compactions": len(keeps.summaries),
        "invented": writer.invented,
    }


def main() -> None:
    task = json.loads(Path(sys.argv[2]).read_text("utf-8"))
    runs = [played(run, task, number) for number, run in enumerate(task["runs"])]
    print(json.dumps({"version": f"langchain {version('langchain')}", "runs": runs}))


main()
