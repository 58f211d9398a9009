"""Long agent runs, made of the recorded ones beside the project, as turns: a question, rounds of calls, a reply.

Run n starts with record n and goes on through all of them, again and again, until it is long enough; questions and
results get the number of their place, since a message that comes again would be found in a cache as it is not in life.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count, cycle

from bench import corpus
from bench.wire import Wire, weight

FOLDER = corpus.DATA / "agent_runs"
# Some of the runs end with a result; an agent would have said something.
CLOSING = "That is done."


@dataclass(frozen=True, slots=True)
class Round:
    """A message that calls tools, and their results by the id of the call."""

    text: str
    calls: tuple[Wire, ...]
    results: dict[str, str]


@dataclass(frozen=True, slots=True)
class Turn:
    question: str
    rounds: tuple[Round, ...]
    reply: str

    def wire(self) -> Iterator[Wire]:
        yield {"role": "user", "content": self.question}
        for each in self.rounds:
            yield {"role": "assistant", "content": each.text or None, "tool_calls": list(each.calls)}
            for id, text in each.results.items():
                yield {"role": "tool", "tool_call_id": id, "content": text}
        yield {"role": "assistant", "content": self.reply}


@dataclass(frozen=True, slots=True)
class Run:
    system: str
    turns: tuple[Turn, ...]

    def wire(self) -> list[Wire]:
        return [{"role": "system", "content": self.system}, *(each for turn in self.turns for each in turn.wire())]


def records() -> list[list[Wire]]:
    """The recorded runs, by name; none where they do not lie."""
    return [json.loads(path.read_bytes())["messages"] for path in sorted(FOLDER.glob("*.json"))]


def long_run(recorded: list[list[Wire]], number: int, tokens: int) -> Run:
    """About as many tokens: it ends with the turn that reaches them."""
    order = recorded[number % len(recorded) :] + recorded[: number % len(recorded)]
    place = count(1)
    turns: list[Turn] = []
    total = 0
    for turn in (turn for messages in cycle(order) for turn in turns_of(messages, place)):
        turns.append(turn)
        total += sum(map(weight, turn.wire()))
        if total >= tokens:
            break
    return Run(order[0][0]["content"], tuple(turns))


def turns_of(messages: Iterable[Wire], place: Iterator[int]) -> Iterator[Turn]:
    """Questions that follow each other are one. `place` numbers what is said, and keeps the ids of calls apart."""
    asked: list[str] = []
    rounds: list[Round] = []
    ids: dict[str, str] = {}
    for message in messages:
        if message["role"] == "user":
            asked.append(f"[{next(place)}] {message['content']}")
        elif message["role"] == "tool":
            rounds[-1].results[ids[message["tool_call_id"]]] = f"[{next(place)}] {message['content']}"
        elif calls := message.get("tool_calls"):
            ids = {call["id"]: f"{call['id']}_{next(place)}" for call in calls}
            rounds.append(Round(message["content"], tuple({**call, "id": ids[call["id"]]} for call in calls), {}))
        elif message["role"] == "assistant":
            yield Turn("\n\n".join(asked), tuple(rounds), message["content"])
            asked, rounds = [], []
    if asked:
        yield Turn("\n\n".join(asked), tuple(rounds), CLOSING)
