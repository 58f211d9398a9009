"""What tracking references adds to a turn: the same message with three links and three notes read by tools, with and
without. Goal: less than 5 ms.
"""

import asyncio
import json
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from bench.notes import Notes
from bench.table import Times, judged, ms, show
from bench.turn import WARM_UP, apart
from recto.api.blocking import Desk, open_desk
from recto.chat.message import Message
from recto.events import Referenced, Replied

GOAL_S = 0.005
LINKED = 3
USAGE = {"input": 4000, "output": 24}
# Lines that a model writes about notes are made behind the reply; here they would take replies out of the script.
SETTINGS = {"search.embedder": "none", "references.gists": False}


@dataclass(slots=True)
class Turns:
    seconds: list[float] = field(default_factory=list)
    computed: list[float] = field(default_factory=list)
    references: int = 0

    @property
    def times(self) -> tuple[Times, Times]:
        return Times(tuple(self.seconds)), Times(tuple(self.computed))


def show_turns(notes: Notes, home: Path, turns: int) -> None:
    tracked, untracked = apart(_taken, notes, home / "turns", turns)
    rows = [_row("tracked", *tracked.times), _row("not tracked", *untracked.times)]
    # pair by pair: both turns of one had the machine's other work in common
    longer, more = (_apart(one, other) for one, other in zip(tracked.times, untracked.times, strict=True))
    rows.append(["longer", ms(longer.p50), "", ms(more.p50), judged(longer.p50, GOAL_S, "< 5 ms")])
    said = (
        f"{turns} turns each, one after the other, in new conversations over {len(notes.paths):,} watched notes",
        f"{LINKED} links in the message, {LINKED} notes read by tools: {tracked.references / turns:.0f} references",
    )
    show("What tracking references adds to a turn, in ms", ("", "p50", "p95", "CPU p50", "goal"), rows, said)


def _row(name: str, took: Times, computed: Times) -> list[str]:
    return [name, ms(took.p50), ms(took.p95), ms(computed.p50), ""]


def _apart(one: Times, other: Times) -> Times:
    return Times(tuple(more - less for more, less in zip(one.seconds, other.seconds, strict=True)))


def _taken(notes: Notes, home: Path, turns: int) -> tuple[Turns, Turns]:
    return asyncio.run(_take(notes, home, turns))


async def _take(notes: Notes, home: Path, turns: int) -> tuple[Turns, Turns]:
    both = Turns(), Turns()
    with ExitStack() as stack:
        desks = [stack.enter_context(_desk(notes, home / name, name == "on")) for name in ("on", "off")]
        for desk in desks:
            assert desk.vault
            desk.vault.watch().wait(10)
            await _turn(desk, WARM_UP, Turns())
        for number in range(turns):
            said = f"How do {', '.join(f'[[{path}]]' for path in _some(notes, number, 0))} go together?"
            # the second of two finds the notes in the disk's cache
            for desk, taken in list(zip(desks, both, strict=True))[:: -1 if number % 2 else 1]:
                await _turn(desk, said, taken)
    return both


def _desk(notes: Notes, home: Path, is_on: bool) -> Desk:
    home.mkdir(parents=True)
    script = home / "script.json"
    script.write_text(json.dumps(_steps(notes)), "utf-8")
    settings = {**SETTINGS, "references.enabled": is_on}
    return open_desk(home=home, project=home, vault=notes.root, model=f"scripted:{script}", settings=settings)


def _steps(notes: Notes) -> list[dict[str, object]]:
    """For each turn one round of calls, then the reply; the first turn has no links."""
    steps: list[dict[str, object]] = []
    for number in range(len(notes.paths) // (2 * LINKED)):
        calls = [{"name": "read_document", "arguments": {"path": path}} for path in _some(notes, number, LINKED)]
        steps += [{"tool_calls": calls, "usage": USAGE}, {"text": "So they do.", "usage": USAGE}]
    return steps


def _some(notes: Notes, number: int, after: int) -> tuple[str, ...]:
    start = 2 * LINKED * number + after
    return notes.paths[start : start + LINKED]


async def _turn(desk: Desk, said: str, turns: Turns) -> None:
    told, talk = list[Message](), desk.conversation()
    begun, computed = time.perf_counter(), time.process_time()
    async for event in talk.asynchronous.stream(said):
        if isinstance(event, Referenced | Replied):
            told.append(event.message)
    turns.seconds.append(time.perf_counter() - begun)
    turns.computed.append(time.process_time() - computed)
    turns.references += sum(len(message.references) for message in told)
