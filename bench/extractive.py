"""Who should sum up for a model that is too small for it: chosen sentences, cut texts, peers, the embedded model.

Chats with planted statements; counted are those that a summary still tells, how much of the time it covers, what it
has invented and what it says twice. The second table sums up ten times over: each summary is part of the next.
"""

import asyncio
import json
import os
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path

from bench import peers
from bench.figure import Figure, cost, share
from bench.planted import KINDS, LANGUAGES, Chat, Turn, is_outdated, is_told
from bench.planted import chat as planted_chat
from bench.table import show
from bench.turn import apart
from bench.wire import tokens
from recto.chat.blocks import Text
from recto.errors import NotFound
from recto.providers.embedded import NAME, TINY
from recto.providers.model import Provider, TextPart
from recto.providers.registry import open_provider
from recto.sentences.segments import sentences
from recto.summary.extractive_summary import Extraction, PlainMessage
from recto.summary.prompt import SUMMARIZER_INSTRUCTIONS, SummaryOptions, summary_prompt
from recto.summary.truncation import cut_to_fit
from recto.window.request import Entry, Parameters, Piece

CAPS = (200, 500)
CHATS, QUICK_CHATS, SIZE = 30, 4, 3_000
# The embedded model reads a chat for a minute, on a busy machine for several.
BY_MODEL, QUICK_BY_MODEL, SHORT = 2, 1, 1_500
LONG_CHATS, QUICK_LONG_CHATS, LONG, ROUNDS = 8, 2, 11_000, 10
MODEL = f"{NAME}:{TINY}"
WINDOW = 4_096
TIMEOUT_S = 300
STRETCHES = 10
ENGLISH = [kind for kind in KINDS if kind not in LANGUAGES]
PEERS = ("TextRank", "LexRank")
REWRITE = (
    "These sentences were taken from a conversation, in order. Rewrite them as one summary in plain sentences. Keep "
    "every name, number, date and path as it is. Say only what is said above. Answer with the summary alone."
)
NUMBER = re.compile(r"\d[\d.,:]*\d|\d")
NAMED = re.compile(r"(?<=[a-z,] )[A-Z][\w-]+")
WORD = re.compile(r"[^\W_][\w./-]*\w")


Rounds = Sequence[Sequence[Turn]]
Made = tuple[Sequence[str], float]


@dataclass(frozen=True, slots=True)
class Verdict:
    """On one summary."""

    kept: int
    stale: int
    """Statements that were corrected, of which only the former value is told."""
    statements: int
    covered: float
    invented: int
    repeated: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Result:
    verdicts: Sequence[Verdict]
    seconds: float
    """For one summary."""


def main(quick: bool) -> None:
    peers.install()
    chats = [chat(number, SIZE) for number in range(QUICK_CHATS if quick else CHATS)]
    for cap in CAPS:
        title = f"Summaries of {len(chats)} chats of about 3,000 tokens, at most {cap} tokens"
        _show(title, _judged(chats, _without_model([[each.turns] for each in chats], cap)))
    few = [chat(number, SHORT) for number in range(QUICK_BY_MODEL if quick else BY_MODEL)]
    for cap in CAPS[:1] if quick else CAPS:
        title = f"With the model inside Recto: {len(few)} chats of about 1,500 tokens, at most {cap} tokens"
        _show(title, _judged(few, [*_without_model([[each.turns] for each in few], cap)[:1], *_with_model(few, cap)]))
    long = [chat(number, LONG) for number in range(QUICK_LONG_CHATS if quick else LONG_CHATS)]
    title = f"After {ROUNDS} compactions of {len(long)} chats of about 11,000 tokens, at most {CAPS[-1]} tokens"
    _show(title, _judged(long, _without_model([parts(each) for each in long], CAPS[-1])))


def small(home: Path) -> Iterator[Figure]:
    """Chosen sentences, beside those of TextRank."""
    cap, chats = CAPS[0], [chat(number, SIZE) for number in range(4)]
    rounds = [[each.turns] for each in chats]
    ours = judged(chats, _timed(rounds, lambda turns, former: sentences_of(turns, cap, former)))
    _, seconds = _peer(PEERS[0], rounds, cap)
    yield share("extractive: statements kept", _kept(ours))
    yield cost("extractive: one written", ours.seconds, PEERS[0], seconds)


def _judged(chats: Sequence[Chat], made: Sequence[tuple[str, Made]]) -> dict[str, Result]:
    return {name: judged(chats, summaries) for name, summaries in made}


def chat(number: int, size: int) -> Chat:
    """In English, which the peers can read too."""
    return planted_chat(ENGLISH[number % len(ENGLISH)], number, size)


def parts(whole: Chat) -> list[Sequence[Turn]]:
    number = len(whole.turns)
    return [whole.turns[at * number // ROUNDS : (at + 1) * number // ROUNDS] for at in range(ROUNDS)]


# -- who sums up


def _without_model(chats: Sequence[Rounds], cap: int) -> list[tuple[str, Made]]:
    ours = [("recto, sentences", _timed(chats, lambda turns, former: sentences_of(turns, cap, former)))]
    cuts = [("first and last", _timed(chats, lambda turns, former: ends_of(turns, cap, former)))]
    return [*ours, *cuts, *((f"sumy, {peer}", _peer(peer, chats, cap)) for peer in PEERS)]


def _timed(chats: Sequence[Rounds], sum_up: Callable[[Sequence[Turn], str], str]) -> Made:
    started, made = time.perf_counter(), []
    for rounds in chats:
        former = ""
        for turns in rounds:
            former = sum_up(turns, former)
        made.append(former)
    return made, (time.perf_counter() - started) / len(chats)


def sentences_of(turns: Sequence[Turn], cap: int, former: str = "") -> str:
    said = [
        PlainMessage("tool" if turn.role == "tool" else "user" if turn.role == "user" else "assistant", turn.text)
        for turn in turns
    ]
    return Extraction(said, tokens, former).within(cap)


def ends_of(turns: Sequence[Turn], cap: int, former: str = "") -> str:
    """What there was first, and what there was last."""
    text = "\n".join([*([former] if former else []), *map(_told, turns)])
    first = cut_to_fit(text, cap // 2, tokens)
    last = " ".join(reversed(cut_to_fit(" ".join(reversed(text.split(" "))), cap - cap // 2 - 1, tokens).split(" ")))
    return text if tokens(text) <= cap else f"{first}\n{last}"


def _told(turn: Turn) -> str:
    return f"{turn.role.capitalize()}: {turn.text}"


def _peer(peer: str, chats: Sequence[Rounds], cap: int) -> Made:
    said = [
        [[(turn.role.capitalize(), text) for turn in turns for text in sentences(turn.text)] for turns in rounds]
        for rounds in chats
    ]
    with tempfile.TemporaryDirectory(dir=peers.FOLDER) as folder:
        path = Path(folder) / "chats.json"
        path.write_text(json.dumps({"cap": cap, "chats": said}), "utf-8")
        found = peers.ask("extractive", peer, path)
    return found["summaries"], found["seconds"]


def _with_model(chats: Sequence[Chat], cap: int) -> list[tuple[str, Made]]:
    """The embedded model on the whole chat, and on what was chosen of it, twice as much as there is room for."""
    asked = [
        ("\n".join(map(_told, each.turns)), summary_prompt(SummaryOptions(cap), above=False, has_former=False))
        for each in chats
    ]
    chosen = [(sentences_of(each.turns, 2 * cap), REWRITE) for each in chats]
    try:
        return [(MODEL, apart(written, asked, cap)), ("sentences, rewritten by it", apart(written, chosen, cap))]
    except NotFound as why:
        print(f"{MODEL} was left out: {why.message}")
        return []


def written(asked: Sequence[tuple[str, str]], cap: int) -> Made:
    return asyncio.run(_written(asked, cap))


async def _written(asked: Sequence[tuple[str, str]], cap: int) -> Made:
    home = Path(tempfile.gettempdir())
    provider = open_provider(NAME, home=home, project=None, environment=os.environ, window=WINDOW)
    await _answer(provider, "Hello.", 4)  # loading the weights belongs to the start
    started = time.perf_counter()
    made = [cut_to_fit(await _answer(provider, f"{text}\n\n{prompt}", cap), cap, tokens) for text, prompt in asked]
    await provider.close()
    return made, (time.perf_counter() - started) / len(made)


async def _answer(provider: Provider, text: str, most: int) -> str:
    parameters = Parameters(max_tokens=most, temperature=0.0)
    pieces = [
        *provider.format.preamble(TINY, parameters, SUMMARIZER_INSTRUCTIONS, ()),
        *(Piece("message", b"," + data) for data in provider.format.entry(Entry("user", (Text(text),)), NAME)),
        provider.format.closing(parameters),
    ]
    said: list[str] = []
    try:
        async with (
            asyncio.timeout(TIMEOUT_S),
            aclosing(provider.stream(b"".join(each.data for each in pieces), "summary")) as got,
        ):
            async for part in got:
                said += [part.text] if isinstance(part, TextPart) else []
    except TimeoutError:
        pass  # what there is by then is what a chat would have to live with
    return "".join(said).strip()


# -- how good it is


def judged(chats: Sequence[Chat], made: Made) -> Result:
    summaries, seconds = made
    return Result([judge(each, summary) for each, summary in zip(chats, summaries, strict=True)], seconds)


def judge(whole: Chat, summary: str) -> Verdict:
    return Verdict(
        kept=sum(is_told(each, summary) for each in whole.statements),
        stale=sum(is_outdated(each, summary) for each in whole.statements),
        statements=len(whole.statements),
        covered=covered(whole, summary),
        invented=len(invented(whole.text, summary)),
        repeated=repeated(summary),
        tokens=tokens(summary),
    )


def covered(whole: Chat, summary: str) -> float:
    """The share of ten stretches of which it has a word that stands nowhere else."""
    number = len(whole.turns)
    stretches = [whole.turns[at * number // STRETCHES : (at + 1) * number // STRETCHES] for at in range(STRETCHES)]
    words = [_words("\n".join(turn.text for turn in turns)) for turns in stretches]
    times = Counter(word for stretch in words for word in stretch)
    told = {word for word in _words(summary) if times[word] == 1}
    return sum(not told.isdisjoint(stretch) for stretch in words) / len(words)


def _words(text: str) -> set[str]:
    return {word.casefold() for word in WORD.findall(text)}


def invented(source: str, summary: str) -> set[str]:
    """Numbers and names of the summary that are nowhere in the source."""
    known, numbers = _words(source), set(NUMBER.findall(source))
    names = {name for name in NAMED.findall(summary) if name.casefold() not in known}
    return names | {number for number in NUMBER.findall(summary) if number not in numbers}


def repeated(summary: str) -> int:
    """How many of its sentences stood there before."""
    found = [" ".join(WORD.findall(text.casefold())) for text in sentences(summary)]
    return sum(times - 1 for text, times in Counter(found).items() if text.count(" ") >= 2)


def _show(title: str, rows: dict[str, Result]) -> None:
    show(
        title,
        ("", "kept", "outdated", "time covered", "invented", "repeated", "tokens", "s"),
        [_row(name, result) for name, result in rows.items()],
        notes=(
            "kept: of the planted statements; outdated: corrected ones of which only the former value is told",
            "time covered: tenths of the chat of which something is told; invented: numbers and names that nobody said",
        ),
    )


def _kept(result: Result) -> float:
    return sum(each.kept for each in result.verdicts) / sum(each.statements for each in result.verdicts)


def _row(name: str, result: Result) -> list[str]:
    found, number = result.verdicts, len(result.verdicts)
    return [
        name,
        f"{_kept(result):.0%}",
        f"{sum(each.stale for each in found)}",
        f"{sum(each.covered for each in found) / number:.0%}",
        f"{sum(each.invented for each in found) / number:.1f}",
        f"{sum(each.repeated for each in found) / number:.1f}",
        f"{sum(each.tokens for each in found) / number:.0f}",
        f"{result.seconds:.2f}",
    ]
