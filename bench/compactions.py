"""A conversation through the real engine and store until it was compacted so many times.

The summaries are sentences chosen without a model, or those of a model that keeps some sentences, drops the rest and
makes things up (`bench.lossy`).
"""

import json
import multiprocessing
import os
import re
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from bench import planted
from bench.lossy import Lossy
from bench.replay import recorded_tools
from bench.replay import steps as steps_of
from bench.runs import Round, Run, Turn
from bench.wire import Wire, tokens
from recto.api.blocking import Desk, Talk, open_desk
from recto.chat.blocks import Compaction
from recto.chat.message import Message, Usage
from recto.providers.model import Done, ReplyPart, TextPart
from recto.recall.recall_tool import recall_tool
from recto.settings.settings import ContextSettings
from recto.turn.context import longest_summary

SYSTEM = "You help with whatever comes up."
RESERVE = 512
TOKENS_PER_WORD = 1 / 0.6
J = TypeVar("J")
V = TypeVar("V")
_WORDS = re.compile(r"at most (\d+) words")


@dataclass(slots=True)
class Compacted:
    """A conversation that is still open, and its Compactions."""

    desk: Desk
    talk: Talk
    window: int
    blocks: list[Compaction] = field(default_factory=list)

    @property
    def sent(self) -> str:
        return told(self.blocks[-1])

    @property
    def lifted(self) -> list[str]:
        """What is sent word for word although it is covered."""
        return [message.text for message in self.covered() if message.id in self.blocks[-1].lifted]

    @property
    def room_used(self) -> float:
        return tokens("\n".join((self.sent, *self.blocks[-1].contents))) / cap(self.window)

    def covered(self) -> list[Message]:
        said = self.talk.messages(limit=None, with_system=False)
        last = [message.id for message in said].index(self.blocks[-1].last or "")
        return said[: last + 1]

    def index(self) -> None:
        """These chats are said within seconds; the index of one that people lead is long made."""
        self.desk.engine.message_index.catch_up(vectors=True)

    def recalled(self, query: str) -> str:
        """What one call of the recall tool brings back."""
        return recall_tool(self.desk.engine.message_index, self.desk.store, self.talk.session).run({"query": query})


def cap(window: int) -> int:
    """The room of a summary and its ledger, as the settings have it unless told otherwise."""
    return longest_summary(window, window - RESERVE, ContextSettings(), has_writer=True)


def told(block: Compaction) -> str:
    return "\n".join((block.summary, *block.ledger))


@contextmanager
def compacted(home: Path, run: Run, window: int, number: int, writer: Lossy | None) -> Iterator[Compacted]:
    """As many compactions as the run leads to, at most `number`."""
    home.mkdir(parents=True)
    script = home / "script.json"
    steps = [*steps_of(run), {"error": "unreachable", "when": "summary"}]
    script.write_text(json.dumps({"limit": window, "steps": steps}), "utf-8")
    # what is recalled is in no compaction, and would cost half of the time
    settings = {"system_prompt": run.system, "tools.step_limit": 100, "context.recall_ratio": 0.0}
    results = {id: text for turn in run.turns for each in turn.rounds for id, text in each.results.items()}
    model = f"scripted:{script}"
    with open_desk(home=home, project=home, model=model, settings=settings) as desk, recorded_tools(results):
        found = Compacted(desk, desk.conversation(), window)
        if writer:
            give_writer(desk, found.talk, writer)
        for turn in run.turns:
            found.talk.ask(turn.question)
            block = found.talk.compaction()
            if block and (not found.blocks or block != found.blocks[-1]):
                found.blocks.append(block)
            if block and block.compaction_number >= number:
                break
        yield found


def give_writer(desk: Desk, talk: Talk, writer: Lossy) -> None:
    """A script cannot read what it is to sum up: this is where the world ends."""
    provider = desk.engine.models.provider(talk.model)
    streamed = provider.stream

    async def stream(body: bytes, purpose: Any) -> AsyncGenerator[ReplyPart, None]:
        if purpose == "summary":
            read = [str(message.get("content") or "") for message in json.loads(body)["messages"][1:]]
            wanted = _WORDS.search(read[-1])
            room = int(int(wanted[1]) * TOKENS_PER_WORD) if wanted else 400
            yield TextPart(writer.write(read[:-1], room))
            yield Done("stop", Usage(input=1, output=1))
            return
        async for part in streamed(body, purpose):
            yield part

    provider.stream = stream  # type: ignore[method-assign]


def in_parallel(work: Callable[[J], V], jobs: Sequence[J]) -> list[V]:
    """In processes of their own, as many at once as there are cores."""
    with ProcessPoolExecutor(os.cpu_count(), mp_context=multiprocessing.get_context("spawn")) as pool:
        return list(pool.map(work, jobs))


def run_of(said: Sequence[planted.Turn]) -> Run:
    return Run(SYSTEM, tuple(_turns(said)))


def _turns(said: Sequence[planted.Turn]) -> Iterator[Turn]:
    """As an agent has them: what the user says, rounds of calls, a reply."""
    asked: list[str] = []
    rounds: list[Round] = []
    held: list[str] = []
    for number, turn in enumerate(said):
        if turn.role == "user":
            if held or rounds:
                yield Turn("\n".join(asked) or "Go on.", tuple(rounds), "\n".join(held) or "Done.")
                asked, rounds, held = [], [], []
            asked.append(turn.text)
        elif turn.role == "tool":
            call: Wire = {"id": f"call_{number}", "type": "function", "function": {"name": "look", "arguments": "{}"}}
            rounds.append(Round("\n".join(held), (call,), {call["id"]: turn.text}))
            held = []
        else:
            held.append(turn.text)
    yield Turn("\n".join(asked) or "Go on.", tuple(rounds), "\n".join(held) or "Done.")


def text_of(message: Message) -> str:
    calls = (f"{call.name} {call.arguments}" for call in message.calls)
    return "\n".join((message.text, *calls, *(result.text for result in message.results)))
