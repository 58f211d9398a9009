"""What search costs: filling its index, what a turn waits for that, and finding words among a million messages.

Filling and turns go through the real store, archive and engine; the million is put into the index directly, since a
store of that size takes longer to write than to search. Beside us a plain FTS5 table (porter), ranked by its own bm25.
Goals: a turn waits at most 5 ms for the index; words among a million messages at most 30 ms p95.
"""

import asyncio
import multiprocessing
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from itertools import chain, cycle, islice
from pathlib import Path
from threading import Event
from typing import Any, ParamSpec, TypeVar

from bench import corpus, peers
from bench.figure import Figure, cost
from bench.plain import Filled, Plain, timing
from bench.search_vectors import show_vectors
from bench.search_words import show_finding
from bench.search_words import small as small_finding
from bench.table import Times, judged, ms, show
from bench.turn import WARM_UP, Chat, apart, has_recalled, import_history
from recto.api.blocking import Desk, Talk, open_desk
from recto.base.ids import new_id
from recto.base.locations import SEARCH_FILE, STORE_FILE
from recto.chat.blocks import Text
from recto.chat.message import Message
from recto.events import Sent
from recto.search.keyword_index import IndexItem
from recto.store.store import Store

P = ParamSpec("P")
T = TypeVar("T")
Settings = dict[str, Any]

GOAL_WAIT_S = 0.005
WORDS_ALONE: Settings = {"search.embedder": "none"}
NO_RECALL: Settings = {**WORDS_ALONE, "context.recall_ratio": 0}
# As many messages as `MessageIndex.catch_up` commits at once.
COMMITTED = 512


def main(quick: bool) -> None:
    peers.FOLDER.mkdir(exist_ok=True)
    # beside the project, not in a temporary folder that may be memory
    with tempfile.TemporaryDirectory(dir=peers.FOLDER) as folder:
        home = Path(folder)
        _show_filling(*((5_000, 200) if quick else (50_000, 1_000)), home)
        _show_turns(*((1_500, 30) if quick else (5_000, 100)), home)
        show_finding(*((50_000, 100) if quick else (1_000_000, 2_000)), home)
        show_vectors((10_000, 100_000) if quick else (10_000, 100_000, 1_000_000))


def small(home: Path) -> Iterator[Figure]:
    ours, plain = _words(home / "words", 2_000), _plain(home / "plain.db", 2_000)
    yield cost("search: index filled", ours.seconds, "FTS5", plain.seconds)
    yield from small_finding(home)


# -- filling


def _show_filling(messages: int, vectors: int, home: Path) -> None:
    ours, plain = apart(_words, home / "words", messages), apart(_plain, home / "plain.db", messages)
    made = apart(_vectors, home / "vectors", vectors)
    said = sum(len(text.encode()) for _, text in corpus.chat(messages))
    rows = [_filled_row("words: MessageIndex.catch_up from a store", ours), _filled_row("words: plain FTS5", plain)]
    rows.append(_filled_row("vectors: make_vectors, MiniLM", made) if not made.why else ["vectors", made.why, "", ""])
    notes = [
        f"{said / 1e6:.1f} MB of text: ours reads it from the store and keeps none, FTS5 is given it and keeps it",
        f"both commit {COMMITTED} messages at once, to a WAL; opening MiniLM, not counted, took {made.preamble:.1f} s",
    ]
    show("Filling the index", ("", "messages", "a second", "file, MB"), rows, notes)


def _filled_row(name: str, filled: Filled) -> list[str]:
    return [name, f"{filled.count:,}", f"{filled.count / filled.seconds:,.0f}", f"{filled.bytes / 1e6:.1f}"]


def _words(home: Path, size: int) -> Filled:
    with _opened(import_history(home, size), WORDS_ALONE) as desk:
        _, took = timing(desk.engine.message_index.catch_up)
    return Filled(size, took, (home / SEARCH_FILE).stat().st_size)


def _plain(path: Path, size: int) -> Filled:
    items = (IndexItem(number, text) for number, (_, text) in enumerate(corpus.chat(size), 1))
    taken = 0.0
    with closing(Plain(path)) as plain:
        while some := list(islice(items, COMMITTED)):
            taken += timing(plain.add, some)[1]
    return Filled(size, taken, path.stat().st_size)


def _vectors(home: Path, size: int) -> Filled:
    with _opened(import_history(home, size)) as desk:
        archive = desk.engine.message_index
        archive.catch_up()
        why, preamble = timing(archive.check)
        _, took = timing(lambda: archive.catch_up(vectors=True))
    return Filled(size, took, (home / SEARCH_FILE).stat().st_size, preamble, why)


def _opened(chat: Chat, settings: Settings | None = None) -> Desk:
    return open_desk(home=chat.home, project=chat.home, model=chat.model, settings=settings or {})


# -- turns

# What another writer has written before, and goes on writing at once: few enough for a turn to feed, and too many.
WAITING, BURSTS = 3_000, (3, 20, 150)
PAUSE_S = 0.05


@dataclass(slots=True)
class Waits:
    """Seconds, turn by turn."""

    feeding: list[tuple[float, float]] = field(default_factory=list)
    finding: list[tuple[float, float]] = field(default_factory=list)
    """And what of it this thread really computed."""
    recalling: list[float] = field(default_factory=list)
    """To sent, with recall."""
    plain: list[float] = field(default_factory=list)
    """To sent, without."""
    recalled: int = 0
    told: str = ""


def _show_turns(size: int, turns: int, home: Path) -> None:
    calm, busy = (apart(_turns, home / f"turns-{busy}", size, turns, busy) for busy in (False, True))
    rows = [_waits_row("calm", calm), _waits_row("busy", busy)]
    waited = ("fed p50", "p95", "most", "CPU p95", "found p50", "p95")
    columns = ("", *waited, "sent p50", "no recall", "longer", "recalled", "goal")
    notes = (
        f"{turns} turns on a compacted conversation of {size:,} messages, each again on a twin without recall",
        "fed: what a turn waits for the index to be ready; found: the search itself, the question's vector included",
        "recalled: turns in which something was; calm: all words and vectors are made",
        f"busy: another process has written {WAITING:,} messages that nobody has fed; meanwhile {busy.told}",
    )
    show("What a turn waits for search, in ms", columns, rows, notes)


def _waits_row(name: str, waits: Waits) -> list[str]:
    fed, computed = (Times(seconds) for seconds in zip(*waits.feeding, strict=True))
    found = Times(tuple(took for took, _ in waits.finding))
    recalling, plain = Times(tuple(waits.recalling)), Times(tuple(waits.plain))
    times = (fed.p50, fed.p95, max(fed.seconds), computed.p95, found.p50, found.p95)
    sent = (recalling.p50, plain.p50, recalling.p50 - plain.p50)
    goal = judged(max(fed.seconds), GOAL_WAIT_S, "fed ≤ 5 ms")
    return [name, *map(ms, times), *map(ms, sent), f"{waits.recalled}", goal]


def _turns(home: Path, size: int, turns: int, is_busy: bool) -> Waits:
    home.mkdir()
    twins = import_history(home / "recall", size), import_history(home / "plain", size)
    return asyncio.run(_take(*twins, turns, is_busy))


async def _take(chat: Chat, twin: Chat, turns: int, is_busy: bool) -> Waits:
    waits, speaker = Waits(), corpus.Speaker(6)
    with _opened(chat) as desk, _opened(twin, NO_RECALL) as without, ExitStack() as stack:
        talk, archive = desk.conversation(chat.conversation), desk.engine.message_index
        other = without.conversation(twin.conversation)
        for each in (other, talk):  # the first turn compacts, and opens what is opened once
            await _to_sent(each, WARM_UP)
        archive.catch_up(vectors=True)
        await _to_sent(talk, WARM_UP)
        before = desk.store.tree.newest_number()
        if is_busy:
            stack.enter_context(_another_writer([chat.home, twin.home]))
        stack.enter_context(_watched(archive, "_prepare_index", waits.feeding))
        stack.enter_context(_watched(archive._finder, "find", waits.finding))
        for said in (speaker.message() for _ in range(turns)):
            waits.plain.append((await _to_sent(other, said))[0])
            taken, recalled = await _to_sent(talk, said)
            waits.recalling.append(taken)
            waits.recalled += recalled
            await asyncio.sleep(0 if is_busy else PAUSE_S)
        others = desk.store.tree.newest_number() - before - 2 * turns - WAITING
        waits.told = f"{others:,} more come, and {archive.filled.waiting:,} vectors wait at the end"
    return waits


@contextmanager
def _another_writer(homes: Sequence[Path]) -> Iterator[None]:
    """Has written a lot into each of these stores, in a conversation of its own, and goes on, in another process."""
    context = multiprocessing.get_context("spawn")
    begun, stop = context.Event(), context.Event()
    writer = context.Process(target=_write_on, args=(homes, begun, stop))
    writer.start()
    try:
        begun.wait()
        yield
    finally:
        stop.set()
        writer.join()


def _write_on(homes: Sequence[Path], begun: Event, stop: Event) -> None:
    speaker = corpus.Speaker(5)
    with ExitStack() as stack:
        stores = [stack.enter_context(Store(home / STORE_FILE)) for home in homes]
        ends = {store: (store.tree.create(title="Elsewhere").id, "") for store in stores}
        for amount in chain((WAITING,), cycle(BURSTS)):
            said = [speaker.message() for _ in range(amount)]
            for store, (conversation, parent) in ends.items():
                ends[store] = conversation, _append(store, conversation, parent, said)
            begun.set()
            if stop.wait(PAUSE_S):
                return


def _append(store: Store, conversation: str, parent: str, said: Sequence[str]) -> str:
    """Gives back the last of them."""
    with store.database.write():
        for text in said:
            message = Message(new_id(), "user", (Text(text),), parent=parent or None)
            parent = store.tree.append(conversation, message).message.id
    return parent


@contextmanager
def _watched(owner: object, name: str, seconds: list[tuple[float, float]]) -> Iterator[None]:
    """Notes how long each call of a method takes, and how long it computes: the rest is whoever else is at work."""
    work = getattr(owner, name)

    def timed(*args: Any, **named: Any) -> Any:
        computed = time.thread_time()
        found, took = timing(work, *args, **named)
        seconds.append((took, time.thread_time() - computed))
        return found

    setattr(owner, name, timed)
    try:
        yield
    finally:
        delattr(owner, name)


async def _to_sent(talk: Talk, said: str) -> tuple[float, bool]:
    """How long until the request leaves, and whether something was recalled into it."""
    started, taken, recalled = time.perf_counter(), 0.0, False
    async for event in talk.asynchronous.stream(said):
        if isinstance(event, Sent):
            taken = time.perf_counter() - started
            recalled = has_recalled(event.window)
    return taken, recalled
