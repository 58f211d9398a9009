"""Time to the first token with a real model and a real cache: the embedded one in a small window, 20 turns.

Beside us a window that slides: at every turn the oldest messages go until the rest fits, straight to the same
provider. Both ask the same questions, and their replies are as short.
"""

import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import corpus, peers
from bench.figure import Figure, share
from bench.table import show
from bench.turn import apart
from recto.api.blocking import Talk, open_desk
from recto.chat.blocks import Text
from recto.chat.message import Role, Usage
from recto.errors import NotFound
from recto.events import ContextCompacted, Replied, TextDelta
from recto.providers.embedded import NAME, TINY
from recto.providers.model import Done, Provider, TextPart
from recto.providers.registry import open_provider
from recto.settings.settings import SYSTEM_PROMPT
from recto.window.request import Entry, Parameters, Piece

MODEL = f"{NAME}:{TINY}"
WINDOW, RESERVE = 1_024, 64
REPLY = Parameters(max_tokens=24, temperature=0.0)
TURNS, QUICK_TURNS = 20, 6
# The first is the default.
STRATEGIES = ("summarize", "discard")
# About 75 tokens: with its reply the window is full after nine turns.
ASKED = 330


@dataclass(frozen=True, slots=True)
class Waited:
    """One turn: seconds to the first token, and the provider's own count of its input and what of it was cached."""

    seconds: float
    usage: Usage
    compactions: int = 0


def main(quick: bool) -> None:
    turns, strategies = (QUICK_TURNS, STRATEGIES[:1]) if quick else (TURNS, STRATEGIES)
    with tempfile.TemporaryDirectory(dir=peers.FOLDER) as folder:
        try:
            ours = {strategy: apart(our_turns, Path(folder) / strategy, strategy, turns) for strategy in strategies}
        except NotFound as why:
            print(f"time to first token was not measured: {why.message}\n")
            return
        theirs = apart(sliding_turns, Path(folder), turns)
    _show(ours, theirs)


def small(home: Path) -> Iterator[Figure]:
    """Of what the embedded model is sent with its second question, how much it need not read again."""
    try:
        *_, last = our_turns(home / "embedded", STRATEGIES[0], 2, warm_up=False)
    except NotFound:
        return
    yield share("cache: embedded model, second turn", last.usage.cache_read / last.usage.input)


def questions(turns: int) -> list[str]:
    speaker = corpus.Speaker(7)
    return [f"{number}. {speaker.text(ASKED)}" for number in range(1, turns + 1)]


# -- ours


def our_turns(home: Path, strategy: str, turns: int, *, warm_up: bool = True) -> list[Waited]:
    settings: dict[str, Any] = {
        "embedded.window": WINDOW,
        "context.reserved_response_tokens": RESERVE,
        "context.strategy": strategy,
        "reply.max_tokens": REPLY.max_tokens,
        "reply.temperature": REPLY.temperature,
    }
    with open_desk(home=home, project=home, model=MODEL, settings=settings) as desk:
        if warm_up:  # loading the weights belongs to the start
            desk.conversation().ask("Hello.")
        talk = desk.conversation()
        return [asyncio.run(_our_turn(talk, said)) for said in questions(turns)]


async def _our_turn(talk: Talk, said: str) -> Waited:
    started, first, compactions, usage = time.perf_counter(), 0.0, 0, Usage()
    async with aclosing(talk.asynchronous.stream(said)) as events:
        async for event in events:
            if isinstance(event, TextDelta):
                first = first or time.perf_counter() - started
            elif isinstance(event, ContextCompacted):
                compactions += 1
            elif isinstance(event, Replied):
                usage = event.message.usage or usage
    return Waited(first, usage, compactions)


# -- the window that slides


def sliding_turns(home: Path, turns: int) -> list[Waited]:
    return asyncio.run(_sliding_turns(home, turns))


async def _sliding_turns(home: Path, turns: int) -> list[Waited]:
    provider = open_provider(NAME, home=home, project=None, environment=os.environ, window=WINDOW)
    slides = Sliding(provider)
    await slides.ask("Hello.")
    slides.said.clear()
    found = [await slides.ask(said) for said in questions(turns)]
    await provider.close()
    return found


class Sliding:
    """Keeps all that was said and sends what fits of it, the newest first."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self.said: list[Piece] = []

    async def ask(self, text: str) -> Waited:
        started, first, reply, usage = time.perf_counter(), 0.0, "", Usage()
        self._say("user", text)
        async with aclosing(self._provider.stream(await self._body(), "reply")) as parts:
            async for part in parts:
                if isinstance(part, TextPart):
                    first, reply = first or time.perf_counter() - started, reply + part.text
                elif isinstance(part, Done):
                    usage = part.usage or usage
        self._say("assistant", reply or "…")
        return Waited(first, usage)

    def _say(self, role: Role, text: str) -> None:
        self.said += [Piece("message", data) for data in self._provider.format.entry(Entry(role, (Text(text),)), NAME)]

    async def _body(self) -> bytes:
        format, counter = self._provider.format, await self._provider.counter(await self._provider.model(MODEL))
        preamble = format.preamble(TINY, REPLY, SYSTEM_PROMPT, ())
        costs = [count.tokens for count in await counter.count([*preamble, *self.said])]
        fixed, room = sum(costs[: len(preamble)]) + counter.priming.tokens, WINDOW - RESERVE
        start = 0
        while fixed + sum(costs[len(preamble) + start :]) > room:
            start += 1
        messages = b"".join(b"," + piece.data for piece in self.said[start:])
        return b"".join(piece.data for piece in preamble) + messages + format.closing(REPLY).data


# -- the table


def _show(ours: dict[str, list[Waited]], theirs: list[Waited]) -> None:
    everyone = {**{f"recto, {strategy}": turns for strategy, turns in ours.items()}, "a window that slides": theirs}
    show(
        f"Time to first token with {MODEL} in a window of {WINDOW:,}, {len(theirs)} turns, in s",
        ("", "sum", "to sliding", "median", "longest", "input", "cached", "of it", "compactions"),
        [_row(name, turns, theirs) for name, turns in everyone.items()],
        notes=("from the question to the first word of its reply, compactions and their summaries included",),
    )


def _row(name: str, turns: Sequence[Waited], theirs: Sequence[Waited]) -> list[str]:
    seconds = [turn.seconds for turn in turns]
    sent, read = sum(turn.usage.input for turn in turns), sum(turn.usage.cache_read for turn in turns)
    return [
        name,
        f"{sum(seconds):.1f}",
        f"{sum(seconds) / sum(turn.seconds for turn in theirs):.2f}×",
        f"{statistics.median(seconds):.2f}",
        f"{max(seconds):.2f}",
        f"{sent:,}",
        f"{read:,}",
        f"{read / sent:.0%}" if sent else "–",
        f"{sum(turn.compactions for turn in turns)}",
    ]
