"""Every request a peer makes over long runs. Arguments: its name, a file {"limits", "summary", "runs"}, one to answer.

That gets {"messages": all that differ, "runs": [[{"purpose", "messages": numbers}]]}; counts are exact. Prints the
version; runs with the peers' Python.
"""

import json
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bench.keep_langchain import Keeper, Native, keeper, wired
from bench.wire import Limits, Wire


class Numbers:
    """Gives every message that differs a number."""

    def __init__(self) -> None:
        self.messages: list[Wire] = []
        self._known: dict[str, int] = {}
        self._seen: dict[tuple[str, Any, str], int] = {}

    def of(self, message: Wire) -> int:
        text = json.dumps(message)
        if text not in self._known:
            self._known[text] = len(self.messages)
            self.messages.append(message)
        return self._known[text]

    def of_native(self, message: Native) -> int:
        """Found again by id and text: converting anew at every step would take minutes."""
        key = (message.type, message.id, message.content)
        if message.id is None or key not in self._seen:
            self._seen[key] = self.of(wired([message])[0])
        return self._seen[key]


def requests(keeps: Keeper, run: list[Wire], numbers: Numbers) -> list[dict[str, Any]]:
    """One before each message of the assistant, with the summaries it asks for on the way."""
    made: list[dict[str, Any]] = []
    for message in run:
        if message["role"] == "assistant":
            before = len(keeps.asked)
            sent = keeps.next()
            asked = keeps.asked[before:]
            made += [{"purpose": "summary", "messages": [numbers.of(each) for each in one]} for one in asked]
            made.append({"purpose": "reply", "messages": [numbers.of_native(each) for each in sent]})
        keeps.say(message)
    return made


def main() -> None:
    name, given, out = sys.argv[1:]
    task = json.loads(Path(given).read_text("utf-8"))
    limits, numbers = Limits(**task["limits"]), Numbers()
    made = [requests(keeper(name, "exact", limits, task["summary"]), run, numbers) for run in task["runs"]]
    Path(out).write_text(json.dumps({"messages": numbers.messages, "runs": made}), "utf-8")
    print(json.dumps({"version": f"langchain {version('langchain')}"}))


main()
