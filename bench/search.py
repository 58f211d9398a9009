"""What search costs: filling its index, what a turn waits for that, and finding words among a million messages.

Filling and turns go through the real store, archive and engine; the million is put into the index directly, since a
store of that size takes longer to write than to search. Beside us a plain FTS5 table (porter), ranked by its own bm25.
Goals: a turn waits at most 5 ms for the index; words among a million messages at most 30 ms p95.
"""

import asyncio
import multiprocessing
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from itertools import chain, cycle, islice
from pathlib import Path
from random import Random
from threading import Event
from typing import Any, ParamSpec, TypeVar

from bench import corpus, peers
from bench.table import Times, judged, ms, show
from bench.turn import WARM_UP, Chat, apart, import_history
from recto.chat.blocks import Text
from recto.chat.message import Message
from recto.desk import Desk, open_desk
from recto.events import Sent
from recto.ids import new_id
from recto.places import SEARCH_FILE, STORE_FILE
from recto.search.finder import Finder, Wanted
from recto.search.index import ANYTHING, Filter, Index, Item
from recto.search.terms import STOP
from recto.store.store import Store
from recto.talk import Talk
from recto.walk.shelving import TALK, TOOLS

P = ParamSpec("P")
T = TypeVar("T")
Settings = dict[str, Any]

GOAL_WAIT_S, GOAL_SEARCH_S = 0.005, 0.030
WORDS_ALONE: Settings = {"search.embedder": "none"}
NO_RECALL: Settings = {**WORDS_ALONE, "context.recall_ratio": 0}
# As many messages as `Archive.catch_up` commits at once.
COMMITTED = 512


def main(quick: bool) -> None:
    peers.FOLDER.mkdir(exist_ok=True)
    # beside the project, not in a temporary folder that may be memory
    with tempfile.TemporaryDirectory(dir=peers.FOLDER) as folder:
        home = Path(folder)
        _show_filling(*((5_000, 200) if quick else (50_000, 1_000)), home)
        _show_turns(*((1_500, 30) if quick else (5_000, 100)), home)
        _show_finding(*((50_000, 100) if quick else (1_000_000, 2_000)), home)


class Plain:
    """SQLite's full-text search as it comes: it keeps the texts, and ranks what holds all words by its own bm25."""

    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(path, isolation_level=None)
        # the same journal as ours, so that only the tables differ
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=NORMAL")
        self._db.execute("CREATE VIRTUAL TABLE said USING fts5(text, kind UNINDEXED, at UNINDEXED, tokenize='porter')")

    def add(self, items: Iterable[Item]) -> None:
        rows = [(item.number, item.text, item.kind, item.at) for item in items]
        self._db.execute("BEGIN")
        self._db.executemany("INSERT INTO said (rowid, text, kind, at) VALUES (?, ?, ?, ?)", rows)
        self._db.execute("COMMIT")

    def find(self, text: str, only: Filter, most: int) -> list[int]:
        wanted = {"kind = ?": only.kind, "at >= ?": only.since, "at < ?": only.before}
        given = {part: value for part, value in wanted.items() if value is not None}
        query = " AND ".join(["SELECT rowid FROM said WHERE said MATCH ?", *given]) + " ORDER BY rank LIMIT ?"
        return [row[0] for row in self._db.execute(query, (text, *given.values(), most))]

    def holds(self, text: str, number: int) -> bool:
        return bool(self._db.execute("SELECT 1 FROM said WHERE said MATCH ? AND rowid = ?", (text, number)).fetchone())

    def close(self) -> None:
        self._db.close()


# -- filling


@dataclass(frozen=True, slots=True)
class Filled:
    count: int
    seconds: float
    bytes: int
    opening: float = 0.0
    """What an embedder took for its first text."""
    why: str = ""


def _show_filling(messages: int, vectors: int, home: Path) -> None:
    ours, plain = apart(_words, home / "words", messages), apart(_plain, home / "plain.db", messages)
    made = apart(_vectors, home / "vectors", vectors)
    said = sum(len(text.encode()) for _, text in corpus.chat(messages))
    rows = [_filled_row("words: Archive.catch_up from a store", ours), _filled_row("words: plain FTS5", plain)]
    rows.append(_filled_row("vectors: make_vectors, MiniLM", made) if not made.why else ["vectors", made.why, "", ""])
    notes = [
        f"{said / 1e6:.1f} MB of text: ours reads it from the store and keeps none, FTS5 is given it and keeps it",
        f"both commit {COMMITTED} messages at once, to a WAL; opening MiniLM, not counted, took {made.opening:.1f} s",
    ]
    show("Filling the index", ("", "messages", "a second", "file, MB"), rows, notes)


def _filled_row(name: str, filled: Filled) -> list[str]:
    return [name, f"{filled.count:,}", f"{filled.count / filled.seconds:,.0f}", f"{filled.bytes / 1e6:.1f}"]


def _words(home: Path, size: int) -> Filled:
    with _opened(import_history(home, size), WORDS_ALONE) as desk:
        _, took = _took(desk.engine.archive.catch_up)
    return Filled(size, took, (home / SEARCH_FILE).stat().st_size)


def _plain(path: Path, size: int) -> Filled:
    items = (Item(number, text) for number, (_, text) in enumerate(corpus.chat(size), 1))
    taken = 0.0
    with closing(Plain(path)) as plain:
        while some := list(islice(items, COMMITTED)):
            taken += _took(plain.add, some)[1]
    return Filled(size, taken, path.stat().st_size)


def _vectors(home: Path, size: int) -> Filled:
    with _opened(import_history(home, size)) as desk:
        archive = desk.engine.archive
        archive.catch_up()
        why, opening = _took(archive.check)
        _, took = _took(archive.make_vectors)
    return Filled(size, took, (home / SEARCH_FILE).stat().st_size, opening, why)


def _opened(chat: Chat, settings: Settings | None = None) -> Desk:
    return open_desk(home=chat.home, project=chat.home, model=chat.model, settings=settings or {})


def _took(work: Callable[P, T], *args: P.args, **named: P.kwargs) -> tuple[T, float]:
    started = time.perf_counter()
    return work(*args, **named), time.perf_counter() - started


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
        talk, archive = desk.conversation(chat.conversation), desk.engine.archive
        other = without.conversation(twin.conversation)
        for each in (other, talk):  # the first turn compacts, and opens what is opened once
            await _to_sent(each, WARM_UP)
        archive.catch_up(vectors=True)
        await _to_sent(talk, WARM_UP)
        before = desk.store.tree.newest_number()
        if is_busy:
            stack.enter_context(_another_writer([chat.home, twin.home]))
        stack.enter_context(_watched(archive, "_ready", waits.feeding))
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
        found, took = _took(work, *args, **named)
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
    async for event in talk.send(said):
        if isinstance(event, Sent):
            taken = time.perf_counter() - started
            recalled = any(section.name == "recalled" and section.tokens for section in event.window.sections)
    return taken, recalled


# -- finding

FIRST, SPAN = datetime(2023, 1, 1), timedelta(days=3 * 365)
QUERIES, MOST = 200, 60
AT_ONCE = 8
SORTS = ("rare", "common", "mixed")
FILTERS = {
    "no filter": ANYTHING,
    "kind": Filter("user"),
    "a month": Filter(since="2024-03-01", before="2024-04-01"),
    "kind and a year": Filter("tool", "2024-01-01", "2025-01-01"),
}
SENTENCES, NAMES = 20_000, 100_000
UNCOMMON = 4


@dataclass(frozen=True, slots=True)
class Query:
    sort: str
    text: str


@dataclass(slots=True)
class Searched:
    """Of one filter: seconds by sort of query, and of the queries that FTS5 finds something for how many we do well."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: {sort: [] for sort in SORTS})
    computed: list[float] = field(default_factory=list)
    """What of all of them was not the machine's other work."""
    answerable: int = 0
    whole: int = 0
    """Where our first hit holds all words."""

    def timed(self, sort: str, work: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        computed = time.thread_time()
        found, took = _took(work, *args, **named)
        self.computed.append(time.thread_time() - computed)
        self.seconds[sort].append(took)
        return found


Compared = dict[str, tuple[Searched, Searched]]


def _show_finding(messages: int, conversations: int, home: Path) -> None:
    filled, compared = apart(_finding, home, messages, conversations)
    rows = [_found_row(f"recto, {name}", ours, judge=True) for name, (ours, _) in compared.items()]
    rows += [_found_row(f"FTS5, {name}", theirs) for name, (_, theirs) in compared.items()]
    parts = (f"{sort} {part}" for sort in (*SORTS, "all") for part in ("p50", "p95"))
    (ours, theirs), (answerable, whole) = filled, _sums(compared)
    notes = (
        f"{QUERIES} queries of 1–4 words that some message holds, caches warm after one round; the {MOST} best of each",
        f"our first hit holds all words in {whole} of {answerable} cases where FTS5 finds such a message at all",
        f"filled without the store: recto {_rate(ours)}, FTS5 {_rate(theirs)} with texts",
    )
    title = f"Words among {messages:,} messages in {conversations:,} conversations, in ms"
    show(title, ("", *parts, "CPU p95", "goal"), rows, notes)


def _rate(filled: Filled) -> str:
    return f"{filled.count / filled.seconds:,.0f} messages a second, {filled.bytes / 1e6:,.0f} MB"


def _sums(compared: Compared) -> tuple[int, int]:
    ours = [each for each, _ in compared.values()]
    return sum(each.answerable for each in ours), sum(each.whole for each in ours)


def _found_row(name: str, searched: Searched, *, judge: bool = False) -> list[str]:
    every = Times(tuple(second for seconds in searched.seconds.values() for second in seconds))
    parts = [*(Times(tuple(seconds)) for seconds in searched.seconds.values()), every]
    goal = judged(every.p95, GOAL_SEARCH_S, "p95 ≤ 30 ms") if judge else ""
    times = [ms(value) for each in parts for value in (each.p50, each.p95)]
    return [name, *times, ms(Times(tuple(searched.computed)).p95), goal]


def _finding(home: Path, messages: int, conversations: int) -> tuple[tuple[Filled, Filled], Compared]:
    each = messages // conversations
    with closing(Index(home / SEARCH_FILE)) as index, closing(Plain(home / "finding.db")) as plain:
        ours, theirs = _fill(index, plain, each, conversations)
        finder, queries = Finder(index), queries_of(each, conversations)
        _search(finder, plain, queries, ANYTHING)
        compared = {name: _search(finder, plain, queries, only) for name, only in FILTERS.items()}
    sizes = [(home / name).stat().st_size for name in (SEARCH_FILE, "finding.db")]
    return (Filled(messages, ours, sizes[0]), Filled(messages, theirs, sizes[1])), compared


def _fill(index: Index, plain: Plain, each: int, conversations: int) -> tuple[float, float]:
    """Seconds for ours and for theirs."""
    ours = theirs = 0.0
    for start in range(0, conversations, AT_ONCE):
        numbers = range(start, min(start + AT_ONCE, conversations))
        shelves = {str(number): conversation(number, each, conversations) for number in numbers}
        ours += _took(index.add, shelves)[1]
        theirs += _took(plain.add, [item for some in shelves.values() for item in some])[1]
    return ours, theirs


def conversation(number: int, size: int, conversations: int) -> list[Item]:
    """User and assistant in turn, every tenth a tool; a minute apart."""
    random, begins = Random(number), FIRST + SPAN * (number / conversations)
    items = []
    for place in range(1, size + 1):
        kind = "tool" if place % 10 == 0 else "assistant" if place % 2 == 0 else "user"
        at = (begins + timedelta(minutes=place)).isoformat(timespec="seconds")
        lane = TOOLS if kind == "tool" else TALK
        items.append(Item(number * size + place, _said(random), place, 1, kind, "", at, lane))
    return items


def _said(random: Random) -> str:
    """A few uncommon words, the nth of them a nth as often as the first, then two of the sentences made before."""
    names, sentences = _vocabulary()
    uncommon = [names[int(NAMES ** random.random()) - 1] for _ in range(UNCOMMON)]
    return f"{' '.join(uncommon)}. {random.choice(sentences)} {random.choice(sentences)}"


@cache
def _vocabulary() -> tuple[list[str], list[str]]:
    """A manual has only some 3,000 words: names of three syllables are the many that hardly anybody says."""
    speaker = corpus.Speaker(7)
    syllables = [consonant + vowel for consonant in "bcdfghjklmnpqrstvwxz" for vowel in "aeiou"]
    # 7919 shares no divisor with 100 ** 3: all names differ, and neighbours do not look alike
    scattered = [number * 7919 % 100**3 for number in range(NAMES)]
    names = [syllables[n // 10_000] + syllables[n // 100 % 100] + syllables[n % 100] for n in scattered]
    return names, [speaker.text(80) for _ in range(SENTENCES)]


def queries_of(each: int, conversations: int) -> list[Query]:
    """Of words that stand together in a message; sorts and lengths in turn."""
    random, found = Random(8), []
    rank = {name: number for number, name in enumerate(_vocabulary()[0])}
    for number in range(QUERIES):
        text = random.choice(conversation(random.randrange(conversations), each, conversations)).text
        words = list(dict.fromkeys(text.lower().replace(".", " ").replace("?", " ").replace("!", " ").split()))
        rare = sorted(words[:UNCOMMON], key=lambda word: -rank.get(word, 0))
        common = [word for word in words[UNCOMMON:] if word not in STOP and len(word) > 1]
        sort, length = SORTS[number % 3], 1 + number // 3 % 4
        mixed = [word for pair in zip(rare, common, strict=False) for word in pair]
        found.append(Query(sort, " ".join({"rare": rare, "common": common, "mixed": mixed}[sort][:length])))
    return found


def _search(finder: Finder, plain: Plain, queries: Sequence[Query], only: Filter) -> tuple[Searched, Searched]:
    ours, theirs = Searched(), Searched()
    for query in queries:
        wanted = Wanted(query.text, only=only, spreads=False, most=MOST)
        found = ours.timed(query.sort, finder.find, wanted)
        rows = theirs.timed(query.sort, plain.find, query.text, only, MOST)
        ours.answerable += bool(rows)
        ours.whole += bool(rows and found.hits and plain.holds(query.text, found.hits[0].passage.item))
    return ours, theirs
