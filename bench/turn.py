"""What a long history costs a new message: from `send` to the request leaving, from the reply's end to stored.

On a cold store (desk closed and opened anew for every turn) and with the desk left open, where 50 ms pass between two
turns, outside the timing, since a person types; with a `scripted:` model. Turns without recall, those with it in which
nothing was recalled, and those in which something was, each with its goals for both together (p95) and CPU (p50); at
100,000 messages at most 1.3 times the figure at 1,000. Turns that made a compaction are in rows of their own: a summary
was written in them, and the model's is not accepted. All words are in the search index before these turns, as in a
chat that people lead; vectors are still made in the background, as after an import. Beside it LangChain's trim_messages
on the same history. The second table tells where the time went: see `bench/steps.py`.
"""

import asyncio
import gc
import json
import multiprocessing
import os
import resource
import shutil
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from bench import corpus, peers
from bench.figure import Figure, cost
from bench.steps import BESIDE, REST, STEPS, Recorder, recorded
from bench.table import Times, judged, ms, show
from recto.api.blocking import Desk, Talk, open_desk
from recto.base.ids import new_id
from recto.base.locations import STORE_FILE
from recto.chat.blocks import Text
from recto.chat.message import Message
from recto.events import ContextCompacted, Replied, Sent, TextDelta
from recto.store.store import Store
from recto.window.window import Window

P = ParamSpec("P")
T = TypeVar("T")

SIZES = (1_000, 10_000, 100_000)
QUICK_SIZES = (1_000, 10_000)
SMALL_SIZE, SMALL_TURNS = 500, 12
GOAL_GROWTH = 1.3
GOAL_FIRST_S = 1.0
SCRIPT, NO_SUMMARIES = "script.json", "no_summaries.json"
NO_RECALL = {"context.recall_ratio": 0}
PAUSE_S = 0.05
COLD, OPEN = "cold store", "desk left open"
OFF, NOTHING, RECALLED = "recall off", "nothing recalled", "recalled"
COMPACTED = "with a compaction"
# The tokenizer builds its table of merges when it first meets a word that is not one token.
WARM_UP = "Is this on? Defenestration, pragmatically speaking."
REPLY = "That is so: the value is bound to the name, and the name is looked up again when the function is called."


@dataclass(frozen=True, slots=True)
class Chat:
    """A conversation in a store of its own."""

    home: Path
    conversation: str
    model: str
    imported_s: float = 0.0
    settings: dict[str, Any] = field(default_factory=dict)

    def open(self) -> Desk:
        return open_desk(home=self.home, project=self.home, model=self.model, settings=self.settings)


@dataclass(frozen=True, slots=True)
class FirstTurn:
    """The first turn on an imported history: in seconds, and in MB at the most."""

    to_sent: float
    cpu: float
    """Of it, what this process really computed."""
    indexed_cpu: float
    """Until all words are in the search index too."""
    memory: int


@dataclass(frozen=True, slots=True)
class Turn:
    """How long one turn took, in seconds, without the model's own time."""

    to_sent: float
    to_stored: float
    cpu: float
    """What of both this process really computed: the rest is the disk, and whoever else uses the machine."""
    has_recalled: bool = False
    has_compacted: bool = False
    steps: dict[str, float] = field(default_factory=dict)

    @property
    def both(self) -> float:
        return self.to_sent + self.to_stored

    def belongs_to(self, what: str) -> bool:
        if self.has_compacted or what == COMPACTED:
            return self.has_compacted and what == COMPACTED
        return what == OFF or self.has_recalled == (what == RECALLED)


Turns = dict[int, list[Turn]]
"""By the size of the conversation."""
Rows = dict[tuple[str, str], Turns]
"""By how the desk was opened, and what became of recall."""


@dataclass(frozen=True, slots=True)
class Goal:
    """The most for both together (p95) and for what is computed (p50), in seconds."""

    both: float
    cpu: float

    def judged(self, turns: Sequence[Turn]) -> str:
        both, cpu = _both(turns).p95, Times(tuple(turn.cpu for turn in turns)).p50
        return f"{_judged(both, self.both, '')}, {_judged(cpu, self.cpu, 'CPU ')}"


def _judged(figure: float, goal: float, name: str) -> str:
    return judged(figure, goal, f"{name}≤ {goal * 1000:.0f}")


GOALS = {
    (COLD, OFF): Goal(0.020, 0.015),
    (COLD, NOTHING): Goal(0.020, 0.015),
    (COLD, RECALLED): Goal(0.045, 0.040),
    (OPEN, OFF): Goal(0.015, 0.015),
    (OPEN, NOTHING): Goal(0.015, 0.015),
    (OPEN, RECALLED): Goal(0.030, 0.040),
}
"""Those with a compaction have none: a summary takes what it takes."""


def main(quick: bool) -> None:
    peers.install()
    sizes, turns = (QUICK_SIZES, 20) if quick else (SIZES, 40)
    # beside the project, not in a temporary folder that may be memory: commits are meant to reach a disk
    with tempfile.TemporaryDirectory(dir=peers.FOLDER) as folder:
        chats = {size: apart(import_history, Path(folder) / str(size), size) for size in sizes}
        first = {size: apart(first_turn, chat) for size, chat in chats.items()}
        rows = apart(later_turns, chats, turns)
        disk = _syncs(Path(folder) / "sync")
        theirs = {size: _trim(Path(folder) / f"{size}.jsonl", size) for size in sizes}
    _show(chats, first, rows, theirs, disk)
    _show_steps(rows)


def prepare_small_chats(home: Path) -> None:
    """A conversation as an import leaves it, and the same after its first turn, with all its vectors."""
    import_history(home / "chat", SMALL_SIZE)
    shutil.copytree(home / "chat", home / "later")
    later = imported(home / "later")
    first_turn(later)
    make_vectors(later)


small_prepared = prepare_small_chats


def small(home: Path) -> Iterator[Figure]:
    """Turns on a few hundred messages with all their vectors, beside trim_messages on the same."""
    size = SMALL_SIZE
    yield cost("turn: first on an import", first_turn(imported(home / "chat")).to_sent)
    chats = {size: imported(home / "later")}
    rows, trim = later_turns(chats, SMALL_TURNS), _trim(home / "lines.jsonl", size)["exact"]
    recalling = rows[OPEN, NOTHING][size] + rows[OPEN, RECALLED][size]
    for name, turns in ((OFF, rows[OPEN, OFF][size]), ("recall on", recalling)):
        yield cost(f"turn: desk left open, {name}", _both(turns).p50, "trim_messages", Times(tuple(trim)).p50)


def imported(home: Path) -> Chat:
    """The conversation that `import_history` left there."""
    with closing(sqlite3.connect(home / STORE_FILE)) as connection:
        [[conversation]] = connection.execute("SELECT id FROM conversations").fetchall()
    return Chat(home, conversation, f"scripted:{home / SCRIPT}")


_processes = multiprocessing.get_context("forkserver")
# Imported once, by the process that all others are forked from: it takes longer than many a measurement.
_processes.set_forkserver_preload([__name__])


def apart(work: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
    """Does it in a new process, so that nothing it leaves in memory weighs on what is measured next."""
    with ProcessPoolExecutor(1, mp_context=_processes) as pool:
        return pool.submit(_surrounded, dict(os.environ), partial(work, *args, **named)).result()


def _surrounded(surroundings: dict[str, str], work: Callable[[], T]) -> T:
    """In the surroundings of who asks, not those of the process that was forked."""
    os.environ.clear()
    os.environ.update(surroundings)
    gc.collect()  # writes to what was imported: pages are copied now, not while something is timed
    return work()


def import_history(home: Path, size: int) -> Chat:
    """A conversation as an import would leave it: every message stored, nothing counted, nothing compacted."""
    home.mkdir()
    script = home / SCRIPT
    # usage is given, as providers do: the script would else count the whole request between the reply and its end
    steps = [{"text": REPLY, "usage": {"input": 4000, "output": 24}}]
    script.write_text(json.dumps(steps), "utf-8")
    (home / NO_SUMMARIES).write_text(json.dumps({"summarizes": False, "steps": steps}), "utf-8")
    texts = list(corpus.chat(size))
    with Store(home / STORE_FILE) as store:
        made = store.tree.create(title="A long chat")
        started = time.perf_counter()
        store.tree.append_all(made.id, (Message(new_id(), role, (Text(words),)) for role, words in texts))  # type: ignore[arg-type]
        return Chat(home, made.id, f"scripted:{script}", time.perf_counter() - started)


def first_turn(chat: Chat) -> FirstTurn:
    """The first message after the import: counts what fits in the window and makes the first Compaction, without a
    model."""
    return asyncio.run(_first_turn(replace(chat, model=f"scripted:{chat.home / NO_SUMMARIES}")))


async def _first_turn(chat: Chat) -> FirstTurn:
    await _warm_up(chat)
    _forget_peak()
    with chat.open() as desk:
        talk, began, sent = desk.conversation(chat.conversation), _clocks(), None
        async for event in talk.asynchronous.stream("Where were we?"):
            sent = _clocks() if isinstance(event, Sent) else sent
        assert sent is not None
        await asyncio.to_thread(_wait_for_index, desk)
        indexed, memory = time.process_time() - began[1], peak_mb()
    return FirstTurn(sent[0] - began[0], sent[1] - began[1], indexed, memory)


def _forget_peak() -> None:
    """The warm-up converts the weights of the embedder, which takes more memory than anything later."""
    with suppress(OSError):  # Linux only
        Path("/proc/self/clear_refs").write_text("5", "utf-8")


def peak_mb() -> int:
    """In MB."""
    with suppress(OSError, StopIteration):
        lines = Path("/proc/self/status").read_text("utf-8").splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) // 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def _wait_for_index(desk: Desk) -> None:
    while desk.engine.message_index.left:
        time.sleep(0.05)


def make_vectors(chat: Chat) -> None:
    with chat.open() as desk:
        desk.index(vectors=True)


def later_turns(chats: dict[int, Chat], turns: int) -> Rows:
    """On stores opened anew for each turn, then on desks that stay open, with recall and without; the sizes in turn, so
    that all have the same share of whatever else this machine does."""
    without = {size: replace(chat, settings=NO_RECALL) for size, chat in chats.items()}
    rows: Rows = {}
    speaker = corpus.Speaker(1)  # one for all: what was said before and stands in the window is not recalled
    with recorded() as recorder:
        for way, take in ((COLD, _cold_turns), (OPEN, _warm_turns)):
            off = asyncio.run(take(without, turns, speaker, recorder))
            taken = asyncio.run(take(chats, turns, speaker, recorder))
            rows[way, OFF] = _those(off, OFF)
            rows |= {(way, what): _those(taken, what) for what in (NOTHING, RECALLED)}
            rows[way, COMPACTED] = _those({size: off[size] + taken[size] for size in chats}, COMPACTED)
    return rows


def _those(taken: Turns, what: str) -> Turns:
    return {size: [turn for turn in turns if turn.belongs_to(what)] for size, turns in taken.items()}


async def _cold_turns(chats: dict[int, Chat], turns: int, speaker: corpus.Speaker, recorder: Recorder) -> Turns:
    await _warm_up(next(iter(chats.values())))
    found = {size: list[Turn]() for size in chats}
    for said in (speaker.message() for _ in range(turns)):
        for size, chat in chats.items():
            found[size].append(await _cold_turn(chat, said, recorder))
    return found


async def _cold_turn(chat: Chat, said: str, recorder: Recorder | None = None) -> Turn:
    with chat.open() as desk:
        return await take_turn(desk.conversation(chat.conversation), said, recorder)


async def _warm_turns(chats: dict[int, Chat], turns: int, speaker: corpus.Speaker, recorder: Recorder) -> Turns:
    found = {size: list[Turn]() for size in chats}
    with ExitStack() as stack:
        desks = {size: stack.enter_context(chat.open()) for size, chat in chats.items()}
        talks = {size: desks[size].conversation(chat.conversation) for size, chat in chats.items()}
        for said in (speaker.message() for _ in range(turns + 1)):
            for size, talk in talks.items():
                found[size].append(await take_turn(talk, said, recorder))
                await asyncio.sleep(PAUSE_S)
    return {size: times[1:] for size, times in found.items()}


async def _warm_up(chat: Chat) -> None:
    """A turn in a new store: imports, the tokenizer and the embedder belong to the start of a process, not to a turn;
    `talk.wake()` loads them while the user types."""
    with (
        tempfile.TemporaryDirectory(dir=chat.home) as elsewhere,
        open_desk(home=elsewhere, project=elsewhere, model=chat.model) as desk,
    ):
        await desk.asynchronous.check_embedder()
        await take_turn(desk.conversation(), WARM_UP)


async def take_turn(talk: Talk, said: str, recorder: Recorder | None = None) -> Turn:
    started = sent = last = stored = _clocks()
    recalled = compacted = False
    async for event in talk.asynchronous.stream(said):
        compacted |= isinstance(event, ContextCompacted)
        if isinstance(event, Sent):
            sent, recalled = _clocks(), has_recalled(event.window)
        elif isinstance(event, TextDelta):
            last = _clocks()
        elif isinstance(event, Replied):
            stored = _clocks()
    steps = recorder.take([(started[0], sent[0]), (last[0], stored[0])]) if recorder else {}
    cpu = sent[1] - started[1] + stored[1] - last[1]
    return Turn(sent[0] - started[0], stored[0] - last[0], cpu, recalled, compacted, steps)


def has_recalled(window: Window) -> bool:
    return any(section.name == "recalled" and section.tokens for section in window.sections)


def _clocks() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def _syncs(path: Path) -> Times:
    """What a commit cannot go below: a page written and flushed to this disk."""
    seconds = []
    with path.open("wb", buffering=0) as file:
        for _ in range(100):
            file.write(bytes(4096))
            started = time.perf_counter()
            os.fsync(file.fileno())
            seconds.append(time.perf_counter() - started)
    return Times(tuple(seconds))


def _trim(path: Path, size: int) -> dict[str, list[float]]:
    path.write_text("\n".join(json.dumps(line) for line in corpus.chat(size)), "utf-8")
    found: dict[str, list[float]] = peers.ask("trim", path)
    return found


def _show(
    chats: dict[int, Chat],
    first: dict[int, FirstTurn],
    rows: Rows,
    theirs: dict[int, dict[str, list[float]]],
    disk: Times,
) -> None:
    shown = [
        _our_row(f"{way}, {what}", size, turns, GOALS.get((way, what)))
        for (way, what), by_size in rows.items()
        for size, turns in by_size.items()
        if turns
    ]
    for kind in ("approximate", "exact"):
        shown += [_their_row(f"trim_messages, {kind}", size, found[kind]) for size, found in theirs.items()]
    imported = ", ".join(
        f"{chats[size].imported_s:.1f} s to import {size:,}, {ms(turn.to_sent)} ms to sent ({ms(turn.cpu)} CPU), "
        f"{turn.indexed_cpu:.1f} s CPU until indexed, {turn.memory} MB"
        for size, turn in first.items()
    )
    slowest = judged(first[max(first)].to_sent, GOAL_FIRST_S, f"sent ≤ {GOAL_FIRST_S:.0f} s")
    versions = {found["version"] for found in theirs.values()}
    show(
        "One turn on a long history, in ms",
        ("", "messages", "turns", "sent p50", "p95", "stored p50", "p95", "both p50", "p95", "CPU p50", "goal"),
        shown,
        notes=(
            "sent: from `send` to the request leaving; stored: from the reply's end to stored; goals: both p95, CPU",
            *(growth(f"{way}, {what}", _both_by_size(rows[way, what])) for way, what in GOALS),
            f"first turn on an imported history (no counts, no Compaction, no model): {imported} (goal {slowest})",
            f"flushing a page to this disk, as every commit does: p50 {ms(disk.p50)} ms, p95 {ms(disk.p95)} ms",
            f"langchain-core {', '.join(map(str, versions))}: trim_messages works on a list in memory, stores nothing",
        ),
    )


def _show_steps(rows: Rows) -> None:
    columns = [f"{step}, beside" if step in BESIDE else step for step in (*STEPS, REST)]
    shown = [
        [
            f"{way}, {what}",
            f"{size:,}",
            *(ms(statistics.median(turn.steps[step] for turn in turns)) for step in (*STEPS, REST)),
        ]
        for (way, what), by_size in rows.items()
        for size, turns in by_size.items()
        if turns
    ]
    show(
        "Where the time of a turn goes, in ms (medians, of both together)",
        ("", "messages", *columns),
        shown,
        notes=(
            "each step's own time, without the steps within it; rest: the loop, waiting for threads, everything else",
            "beside: in a thread of its own, at the same time as other steps; who waits for it counts that too",
        ),
    )


def _both(turns: Sequence[Turn]) -> Times:
    return Times(tuple(turn.both for turn in turns))


def _both_by_size(turns: Turns) -> dict[int, Times]:
    return {size: _both(taken) for size, taken in turns.items() if taken}


def growth(name: str, times: dict[int, Times]) -> str:
    if len(times) < 2:
        return f"growth, {name}: too few turns"
    (first, before), *_, (last, after) = times.items()
    p50, p95 = after.p50 / before.p50, after.p95 / before.p95
    goal = judged(p50, GOAL_GROWTH, f"p50 ≤ {GOAL_GROWTH}×")
    return f"growth from {first:,} to {last:,} messages, {name}: p50 {p50:.2f}×, p95 {p95:.2f}× (goal {goal})"


def _our_row(name: str, size: int, turns: Sequence[Turn], goal: Goal | None) -> list[str]:
    sent, stored, both = (
        Times(tuple(getattr(turn, span) for turn in turns)) for span in ("to_sent", "to_stored", "both")
    )
    times = [ms(value) for each in (sent, stored, both) for value in (each.p50, each.p95)]
    cpu = ms(Times(tuple(turn.cpu for turn in turns)).p50)
    return [name, f"{size:,}", f"{len(turns)}", *times, cpu, goal.judged(turns) if goal else ""]


def _their_row(name: str, size: int, seconds: list[float]) -> list[str]:
    times = Times(tuple(seconds))
    return [name, f"{size:,}", "–", ms(times.p50), ms(times.p95), "–", "–", ms(times.p50), ms(times.p95), "–", ""]
