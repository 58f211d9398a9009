"""How far our estimates are from what a provider reports, after so many replies, for tokenizers that we do not know.

Conversations of mixed texts (English, German, Chinese, code, tables, JSON) with tools. Their model counts with a
vocabulary of its own, frames messages in its own way and reports what it counted; we count with o200k and learn. Goals:
a mean error of at most 3 % after 5 replies and 2 % after 20. Beside it: without learning, with every tenth report
wild, and at the first message of another conversation.
"""

import asyncio
import json
import tempfile
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any

from bench import corpus
from bench.figure import Figure
from bench.table import judged, show
from recto.api.blocking import Desk, open_desk
from recto.chat.message import Usage
from recto.providers.model import Done, ReplyPart, TextPart, vocabulary
from recto.search.minilm import WordPiece
from recto.sources.source import Tool
from recto.weights import named

KINDS = ("English", "German", "Chinese", "code", "table", "JSON")
GERMAN = (
    ("Der Kapitän", "Unsere Buchhalterin", "Die neue Tischlerei", "Der Hafenmeister", "Der gesamte Vorstand"),
    ("hat gestern endlich", "wird nächste Woche", "konnte trotz des schlechten Wetters", "möchte vor der Versammlung"),
    ("die Reling ausgebessert", "sämtliche Rechnungen überprüft", "den Entwurf zurückgeschickt", "die Pumpe ersetzt"),
    (".", ", weil die Lieferung ausgeblieben ist.", "; die Kosten belaufen sich auf 3.200 Euro."),
)
# after so many replies the next request is judged
STEPS = (1, 5, 20)
GOALS = {5: 0.03, 20: 0.02}
WILD_EVERY, WILD = 10, (1.4, 1.8, 4.0)
WINDOW = 1_000_000


@dataclass(frozen=True, slots=True)
class Unknown:
    """A provider's way to count: its vocabulary, and what it puts around each message."""

    name: str
    count: Callable[[str], int]
    frame: int

    def request(self, body: bytes) -> int:
        sent = json.loads(body)
        texts = [f"{message['role']}\n{message['content']}" for message in sent["messages"]]
        tools = [json.dumps(tool, indent=1) for tool in sent.get("tools", ())]
        return sum(self.count(text) + self.frame for text in texts) + sum(map(self.count, tools))


@dataclass(slots=True)
class Errors:
    by_step: dict[int, list[float]] = field(default_factory=lambda: {step: [] for step in STEPS})
    elsewhere: list[float] = field(default_factory=list)

    def mean(self, step: int) -> float:
        return fmean(self.by_step[step])


def main(quick: bool) -> None:
    talks = range(4 if quick else 20)
    tokenizers = list(_tokenizers())
    rows, worst = [], dict.fromkeys(GOALS, 0.0)
    for each in tokenizers:
        plain, wild = _measure(each, talks, wild=False), _measure(each, talks, wild=True)
        worst = {step: max(worst[step], plain.mean(step)) for step in GOALS}
        rows.append(_row(each, plain, wild, _unlearned(each, talks)))
    goals = ", ".join(f"after {step}: {judged(worst[step], goal, f'≤ {goal:.0%}')}" for step, goal in GOALS.items())
    columns = ("unlearned", *(f"after {step}" for step in STEPS), *(f"wild, after {step}" for step in GOALS))
    show(
        f"Mean error of the estimate against reported usage ({len(talks)} conversations of mixed texts)",
        ("", *columns, "another conversation"),
        rows,
        notes=(
            f"goals: {goals}",
            "unlearned: the 6th request as o200k alone counts it",
            f"wild: one report in {WILD_EVERY} is {WILD[0]:g} to {WILD[-1]:g} times too high",
            "another conversation: its first message, after 20 replies elsewhere",
        ),
    )


def small_untimed(home: Path) -> Iterator[Figure]:
    """Beside the error without learning: texts are of our own source, so that both change a little with it."""
    talks, tokenizers = range(2), list(_tokenizers())
    errors = [_measure(each, talks, wild=False) for each in tokenizers]
    unlearned = fmean(_unlearned(each, talks) for each in tokenizers)
    for step in GOALS:
        error = fmean(each.mean(step) for each in errors)
        yield Figure(f"calibration: error after {step}", 100 * error, "%", "unlearned", 100 * unlearned)


def _tokenizers() -> Iterator[Unknown]:
    pieces = WordPiece(named("minilm").path(named("minilm").files[1]))
    yield Unknown("WordPiece", lambda text: len(pieces.ids(text, len(text) + 2)), 2)
    yield Unknown("Mistral", vocabulary("mistral_v3"), 3)
    yield Unknown("Gemma", vocabulary("gemma4"), 7)


def _row(each: Unknown, plain: Errors, wild: Errors, unlearned: float) -> list[str]:
    after = [plain.mean(step) for step in STEPS] + [wild.mean(step) for step in GOALS]
    return [each.name, *(f"{error:.1%}" for error in (unlearned, *after, fmean(plain.elsewhere)))]


def _measure(each: Unknown, talks: Sequence[int], *, wild: bool) -> Errors:
    """Every conversation in a home of its own, so that it begins without anything learned."""
    errors = Errors()
    for number in talks:
        with tempfile.TemporaryDirectory() as folder:
            _talk(Path(folder), each, Random(number), errors, wild)
    return errors


def _talk(folder: Path, each: Unknown, random: Random, errors: Errors, wild: bool) -> None:
    with _open(folder, each, random, wild) as desk:
        talk = desk.conversation()
        for replies in range(max(STEPS) + 1):
            reply = talk.ask(_text(random, 60, 1500), tools=TOOLS)
            if replies in errors.by_step:
                errors.by_step[replies].append(_error(each, reply.window.total, desk.rebuild(reply.request_id)))
        other = desk.conversation().ask(_text(random, 60, 1500), tools=TOOLS)
        errors.elsewhere.append(_error(each, other.window.total, desk.rebuild(other.request_id)))


def _error(each: Unknown, counted: int, body: bytes) -> float:
    real = each.request(body)
    return abs(counted - real) / real


def _unlearned(each: Unknown, talks: Sequence[int]) -> float:
    """The same sixth request, where the provider reports nothing."""
    found = []
    for number in talks:
        with tempfile.TemporaryDirectory() as folder, _open(Path(folder), None, Random(number), False) as desk:
            talk, random = desk.conversation(), Random(number)
            replies = [talk.ask(_text(random, 60, 1500), tools=TOOLS) for _ in range(6)]
            found.append(_error(each, replies[-1].window.total, desk.rebuild(replies[-1].request_id)))
    return fmean(found)


def _open(folder: Path, each: Unknown | None, random: Random, wild: bool) -> Desk:
    """A desk whose model says mixed texts and counts as `each` does."""
    script = folder / "script.json"
    script.write_text(json.dumps({"limit": WINDOW, "exact": False, "steps": [{"text": "ok"}]}))
    desk = open_desk(home=folder / "home", model=f"scripted:{script}", settings={"search.embedder": "none"})
    provider, asked = desk.engine.models.provider(desk.settings.model), Random(random.random())
    mood = Random(random.random())

    async def stream(body: bytes, purpose: Any) -> AsyncGenerator[ReplyPart, None]:
        await asyncio.sleep(0)
        text = _text(asked, 200, 2500)
        yield TextPart(text)
        factor = mood.choice(WILD) if wild and mood.randrange(WILD_EVERY) == 0 else 1.0
        yield Done("stop", Usage(round(each.request(body) * factor), each.count(text)) if each else None)

    provider.stream = stream  # type: ignore[method-assign]
    return desk


def _text(random: Random, least: int, most: int) -> str:
    kind, size = random.choice(KINDS), random.randint(least, most)
    if kind == "German":
        return _joined(random, GERMAN, " ", size)
    if kind == "Chinese":
        return _joined(random, corpus.CHINESE, "", size // 2)
    if kind == "code":
        start = random.randrange(len(_code()) - size)
        return _code()[start : start + size]
    if kind == "table":
        return "\n".join(_table_row(random) for _ in range(1 + size // 36))
    return corpus.passage(kind, size, random)


@cache
def _code() -> str:
    return "".join(corpus.kinds(400_000)["code"])


def _joined(random: Random, parts: Sequence[Sequence[str]], between: str, size: int) -> str:
    said = ""
    while len(said) < size:
        said += between.join(random.choice(part) for part in parts) + between
    return said[:size]


def _table_row(random: Random) -> str:
    day = f"2026-{random.randint(1, 12):02}-{random.randint(1, 28):02}"
    name = random.choice(("mast", "sail", "engine", "galley"))
    return f"| {name} | {random.randrange(10**5)} | {random.random() * 900:.2f} | {day} |"


def _tool(number: int) -> Tool:
    speaker = corpus.Speaker(number)
    argument = {"type": "string", "description": speaker.text(60)}
    schema = {"type": "object", "properties": {"path": argument, "limit": {"type": "integer"}}}
    return Tool(f"tool_{number}", speaker.text(160), schema=schema)


TOOLS = tuple(_tool(number) for number in range(4))
