"""A long run through our own engine: every request it made, with those for summaries, as it was recorded.

The model answers as the recorded one did, and the tools give what they gave then.
"""

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from bench.runs import Run
from bench.wire import Wire, numbered
from recto.api.blocking import Desk, open_desk
from recto.chat.blocks import ToolCall, ToolResult
from recto.sources.tools import Toolbox, ToolOutcome
from recto.turn import context

# More than a run ever needs; the last one would go on answering.
SUMMARIES = 100


@dataclass(frozen=True, slots=True)
class Made:
    """A request: its purpose, what was sent, and which Compaction it stands on."""

    purpose: str
    messages: list[Wire]
    compaction: int | None = None


class RecordedTools(Toolbox):
    """Offers nothing, so that the body holds the messages alone as the peers' do, and answers whatever is called."""

    def __init__(self, results: dict[str, str]) -> None:
        super().__init__([])
        self._results = results

    async def run(self, call: ToolCall) -> ToolOutcome:
        return ToolOutcome(ToolResult(call.id, call.name, self._results[call.id]))


def replay(home: Path, run: Run, window: int, summary: str, settings: dict[str, Any]) -> Iterator[Made]:
    home.mkdir()
    script = home / "script.json"
    script.write_text(json.dumps({"limit": window, "steps": [*steps(run), *summaries(summary)]}), "utf-8")
    chosen = {"system_prompt": run.system, "tools.step_limit": 100, **settings}
    results = {id: text for turn in run.turns for each in turn.rounds for id, text in each.results.items()}
    model = f"scripted:{script}"
    with open_desk(home=home, project=home, model=model, settings=chosen) as desk, recorded_tools(results):
        talk = desk.conversation()
        for turn in run.turns:
            talk.ask(turn.question)
        yield from recorded(desk, talk.id)


def recorded_tools(results: dict[str, str]) -> AbstractContextManager[object]:
    """Recorded tools cannot run again, and a desk takes none of ours: this is where the world ends."""
    return patch.object(context, "Toolbox", lambda *_, **__: RecordedTools(results))


def steps(run: Run) -> Iterator[dict[str, Any]]:
    """Usage is given, as providers do: the script would else count every request whole."""
    used = {"usage": {"input": 1, "output": 1}}
    for turn in run.turns:
        for each in turn.rounds:
            calls = [{"id": call["id"], **call["function"]} for call in each.calls]
            yield {"text": each.text, "tool_calls": calls} | used
        yield {"text": turn.reply} | used


def summaries(summary: str) -> Iterator[dict[str, Any]]:
    used = {"usage": {"input": 1, "output": 1}}
    for number in range(1, SUMMARIES + 1):
        yield {"when": "summary", "text": numbered(summary, number)} | used
        yield {"when": "ahead", "text": numbered(summary, number)} | used


def recorded(desk: Desk, conversation: str | None) -> Iterator[Made]:
    for id in desk.store.records.ids(conversation):
        record = desk.record(id)
        body = json.loads(desk.rebuild(id))
        yield Made(record.purpose, body["messages"], record.account.compaction)
