"""Tokens per second of our exact counts, for a first look and for a second one, which reads the stored counts.

By kind of text, with the error of a quarter of the characters (our fallback adds 5 %) and of LangChain's
count_tokens_approximately beside it. No goal but that a second look costs less than the first. Times are of the
processor: a look takes a millisecond, and what else runs on the machine would decide the ratios.
"""

import asyncio
import hashlib
import json
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import corpus, peers
from bench.figure import Figure, cost
from bench.table import judged, show
from recto.chat.blocks import Text
from recto.providers.model import Model, VocabularyCounter, vocabulary
from recto.providers.openai import OpenAIFormat
from recto.store.store import Store
from recto.window.count import Count
from recto.window.request import Entry, Piece

RUNS, SMALL_RUNS, LOOKS = 5, 3, 15
# The tokenizer builds its table of merges when it first meets a word that is not one token.
WARM_UP = "Defenestration, pragmatically speaking."
MODEL = Model("openai:any", "openai", "any", None, "unknown", tokenizer="o200k_base", exact=True)


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one kind of text."""

    tokens: int
    """In all messages, their frames included."""
    text_tokens: int
    characters: int
    bytes: int
    messages: int
    first_s: float
    second_s: float


def main(quick: bool) -> None:
    peers.install()
    kinds = corpus.kinds(200_000 if quick else 2_000_000)
    with tempfile.TemporaryDirectory(dir=peers.FOLDER) as folder:
        _show(*_measure_all(Path(folder), kinds, RUNS))


def small(home: Path) -> Iterator[Figure]:
    """A message counted for the first time and again, beside LangChain's approximate count."""
    ours, theirs = _measure_all(home, corpus.kinds(30_000), SMALL_RUNS)
    approximate = sum(statistics.median(theirs[kind]["seconds"]) for kind in ours)
    for look in ("first", "second"):
        seconds = sum(getattr(figures, f"{look}_s") for figures in ours.values())
        yield cost(f"count: {look} look", seconds, "approximately", approximate)


def _measure_all(folder: Path, kinds: dict[str, list[str]], runs: int) -> tuple[dict[str, Figures], dict[str, Any]]:
    given = folder / "texts.json"
    given.write_text(json.dumps(kinds), "utf-8")
    pieces = {kind: _pieces(texts) for kind, texts in kinds.items()}
    looks = [_first_looks(pieces) for _ in range(runs + 1)][1:]  # the first imports
    first = {kind: statistics.median(look[kind] for look in looks) for kind in kinds}
    ours = {kind: _measure(folder / f"{kind}.db", texts, pieces[kind], first[kind]) for kind, texts in kinds.items()}
    return ours, peers.ask("count", given)


def _pieces(texts: Sequence[str]) -> list[Piece]:
    wire = [OpenAIFormat().entry(Entry("user", (Text(text),)), MODEL.provider)[0] for text in texts]
    return [Piece("message", data) for data in wire]


def _measure(path: Path, texts: Sequence[str], pieces: Sequence[Piece], first_s: float) -> Figures:
    counter = VocabularyCounter(MODEL, OpenAIFormat())
    count = vocabulary(MODEL.tokenizer)
    counts = asyncio.run(counter.count(pieces))
    return Figures(
        tokens=sum(count.tokens for count in counts),
        text_tokens=sum(map(count, texts)),
        characters=sum(map(len, texts)),
        bytes=sum(len(text.encode()) for text in texts),
        messages=len(texts),
        first_s=first_s,
        second_s=_second_look(path, counter.key, pieces, counts),
    )


def _first_looks(kinds: dict[str, list[Piece]]) -> dict[str, float]:
    """With a new tokenizer: an old one remembers texts."""
    counter = VocabularyCounter(MODEL, OpenAIFormat())
    vocabulary.cache_clear()
    vocabulary(MODEL.tokenizer)(WARM_UP)
    return {kind: _first_look(counter, pieces) for kind, pieces in kinds.items()}


def _first_look(counter: VocabularyCounter, pieces: Sequence[Piece]) -> float:
    started = time.process_time()
    asyncio.run(counter.count(pieces))
    return time.process_time() - started


def _second_look(path: Path, key: str, pieces: Sequence[Piece], counts: Sequence[Count]) -> float:
    """As the scale does it: the hash of each piece, then what the store knows, a window of 100 messages at a time."""
    known = dict(zip((piece.sha256 for piece in pieces), counts, strict=True))
    with Store(path) as store:
        store.token_counts.save(key, known)
    with Store(path) as store:
        return statistics.median(_look(store, key, pieces) for _ in range(LOOKS))


def _look(store: Store, key: str, pieces: Sequence[Piece]) -> float:
    started = time.process_time()
    for start in range(0, len(pieces), 100):
        hashes = [hashlib.sha256(piece.data).digest() for piece in pieces[start : start + 100]]
        if len(store.token_counts.find(key, hashes)) != len(set(hashes)):
            raise SystemExit("the store has forgotten counts that it was given: this is a bug")
    return time.process_time() - started


def _show(ours: dict[str, Figures], theirs: dict[str, Any]) -> None:
    rows = [_row(kind, figures, theirs[kind]) for kind, figures in ours.items()]
    messages = sum(figures.messages for figures in ours.values())
    first, second = (sum(getattr(each, look) for each in ours.values()) for look in ("first_s", "second_s"))
    one, two = (f"{1e6 * seconds / messages:.0f} µs" for seconds in (first, second))
    columns = ("characters", "tokens", "first look tokens/s", "MB/s", "second look tokens/s", "chars/4")
    show(
        f"Counting with {MODEL.tokenizer}, messages of 600 characters (median of {RUNS} runs)",
        ("", *columns, "approximately", "its tokens/s"),
        rows,
        notes=(
            f"a message costs {one} at the first look, {two} at the second (goal {judged(second / first, 1, '≤ 1×')})",
            "chars/4: its error against the exact count of the texts",
            f"approximately: langchain-core {theirs['version']}, count_tokens_approximately, its error by message",
        ),
    )


def _row(kind: str, figures: Figures, their: dict[str, Any]) -> list[str]:
    quarter = figures.characters / 4 / figures.text_tokens - 1
    approximate = their["tokens"] / figures.tokens - 1
    return [
        kind,
        f"{figures.characters:,}",
        f"{figures.tokens:,}",
        f"{figures.tokens / figures.first_s:,.0f}",
        f"{figures.bytes / figures.first_s / 1e6:.1f}",
        f"{figures.tokens / figures.second_s:,.0f}",
        f"{quarter:+.0%}",
        f"{approximate:+.0%}",
        f"{figures.tokens / statistics.median(their['seconds']):,.0f}",
    ]
