"""Planning and building one request at a budget of 8k tokens, on histories of 1,000 to 100,000 messages.

Ours is `talk.window`: on a cold store (desk opened anew each time) and with the desk left open, where 50 ms pass before
each window, outside the timing, since a person types; after a first turn has compacted, with all words in the search
index. Goals, where nothing is recalled: at most 10 ms p95 at every size, and at 100,000 messages 1.3 times the figure
at 1,000. Beside it the peers, for the first request on the whole history and for the next, whose history is in memory
and stored nowhere.
"""

import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from bench import corpus, peers
from bench.figure import Figure, cost
from bench.table import Times, judged, ms, show
from bench.turn import (
    COLD,
    NO_RECALL,
    NOTHING,
    OFF,
    OPEN,
    PAUSE_S,
    QUICK_SIZES,
    RECALLED,
    SIZES,
    SMALL_SIZE,
    WARM_UP,
    Chat,
    apart,
    first_turn,
    growth,
    has_recalled,
    import_history,
    imported,
    prepare_small_chats,
)
from bench.wire import Limits
from recto.api.blocking import Talk, open_desk

LIMITS = Limits(most=8192 - 512, trigger=8192 - 512, keep=(8192 - 512) // 2)
SUMMARY = corpus.Speaker(12).text(500)
PEERS = (
    ("trim_messages", "approximate"),
    ("trim_messages", "exact"),
    ("SummarizationMiddleware", "approximate"),
    ("langmem", "approximate"),
    ("harness, sliding", "approximate"),
    ("harness, tiered", "approximate"),
)
GOAL_S = 0.010
# One before anything is compacted tells enough; it is no figure with a goal.
FIRST = 5
SMALL_RUNS = 10


@dataclass(frozen=True, slots=True)
class Made:
    """How long one window took, and what of it this process really computed."""

    seconds: float
    cpu: float
    has_recalled: bool


BySize = dict[int, list[Made]]
Rows = dict[tuple[str, str], BySize]
"""By how the desk was opened, and what became of recall."""


@dataclass(frozen=True, slots=True)
class Theirs:
    first: Times
    next: Times
    version: str


def main(quick: bool) -> None:
    peers.install()
    sizes, runs = (QUICK_SIZES, 20) if quick else (SIZES, 60)
    with tempfile.TemporaryDirectory(dir=peers.FOLDER) as folder:
        chats = {size: apart(import_history, Path(folder) / str(size), size) for size in sizes}
        first = apart(cold_windows, chats, FIRST, corpus.Speaker(3))
        for chat in chats.values():
            apart(first_turn, chat)
        rows = apart(windows, chats, runs)
        theirs = {(peer, size): _peer(Path(folder) / f"{size}.json", size, *peer) for peer in PEERS for size in sizes}
    _show(first, rows, theirs)


small_prepared = prepare_small_chats


def small(home: Path) -> Iterator[Figure]:
    """Windows on a few hundred messages with all their vectors, beside trim_messages on the same."""
    first_turn(imported(home / "chat"))  # what a process loads once
    chats = {SMALL_SIZE: imported(home / "later")}
    rows, trim = windows(chats, SMALL_RUNS), _peer(home / "history.json", SMALL_SIZE, "trim_messages", "exact").next
    for way in (COLD, OPEN):
        made = rows[way, NOTHING][SMALL_SIZE] + rows[way, RECALLED][SMALL_SIZE]
        yield cost(f"window: {way}", _times(made).p50, "trim_messages", trim.p50)


def windows(chats: dict[int, Chat], runs: int) -> Rows:
    without = {size: replace(chat, settings=NO_RECALL) for size, chat in chats.items()}
    rows: Rows = {}
    speaker = corpus.Speaker(1)  # one for all: what was said before and stands in the window is not recalled
    for way, make in ((COLD, cold_windows), (OPEN, warm_windows)):
        rows[way, OFF], made = make(without, runs, speaker), make(chats, runs, speaker)
        for what in (NOTHING, RECALLED):
            rows[way, what] = {
                size: [one for one in each if one.has_recalled == (what == RECALLED)] for size, each in made.items()
            }
    return rows


def cold_windows(chats: dict[int, Chat], runs: int, speaker: corpus.Speaker) -> BySize:
    """The sizes in turn, so that all have the same share of whatever else this machine does."""
    _warm_up(next(iter(chats.values())))
    found = {size: list[Made]() for size in chats}
    for said in (speaker.message() for _ in range(runs)):
        for size, chat in chats.items():
            with chat.open() as desk:
                found[size].append(_timed(desk.conversation(chat.conversation), said))
    return found


def warm_windows(chats: dict[int, Chat], runs: int, speaker: corpus.Speaker) -> BySize:
    """With a turn before each, as in a chat: what is timed is never the same window twice."""
    found = {size: list[Made]() for size in chats}
    with ExitStack() as stack:
        desks = {size: stack.enter_context(chat.open()) for size, chat in chats.items()}
        talks = {size: desks[size].conversation(chat.conversation) for size, chat in chats.items()}
        for said, then in ((speaker.message(), speaker.message()) for _ in range(runs)):
            for size, talk in talks.items():
                talk.ask(said)
                time.sleep(PAUSE_S)
                found[size].append(_timed(talk, then))
    return found


def _timed(talk: Talk, said: str) -> Made:
    started, computed = time.perf_counter(), time.process_time()
    window = talk.window(said)
    return Made(time.perf_counter() - started, time.process_time() - computed, has_recalled(window))


def _warm_up(chat: Chat) -> None:
    """Imports and the tokenizer belong to the start of a process."""
    with (
        tempfile.TemporaryDirectory(dir=chat.home) as elsewhere,
        open_desk(home=elsewhere, project=elsewhere, model=chat.model) as desk,
    ):
        desk.conversation().window(WARM_UP)


def _peer(path: Path, size: int, name: str, how: str) -> Theirs:
    if not path.is_file():
        history = [{"role": role, "content": text} for role, text in corpus.chat(size)]
        path.write_text(json.dumps({"limits": LIMITS.to_json(), "summary": SUMMARY, "history": history}), "utf-8")
    found = peers.ask("window", name, how, path)
    return Theirs(Times(tuple(found["first"])), Times(tuple(found["next"])), found["version"])


def _show(first: BySize, made: Rows, theirs: dict[tuple[tuple[str, str], int], Theirs]) -> None:
    rows = [_our_row("cold store, not compacted", size, (), some) for size, some in first.items()]
    rows += [
        _our_row(f"{way}, {what}", size, some, judge=what != RECALLED)
        for (way, what), by_size in made.items()
        for size, some in by_size.items()
        if some
    ]
    rows += [_their_row(", ".join(peer), size, found) for (peer, size), found in theirs.items()]
    show(
        f"One request at a budget of {LIMITS.most:,} tokens: plan and build, in ms",
        ("", "messages", "windows", "first p50", "next p50", "next p95", "CPU p50", "goal"),
        rows,
        notes=(
            *(
                growth(f"{way}, {what}", {size: _times(some) for size, some in by_size.items() if some})
                for (way, what), by_size in made.items()
            ),
            "first: on the whole history, with a compaction (ours only planned); next: those after it",
            "summaries come at once; the peers hold their messages in memory, and what they have cut is gone",
            ", ".join(sorted({found.version for found in theirs.values()})),
        ),
    )


def _times(made: Sequence[Made]) -> Times:
    return Times(tuple(each.seconds for each in made))


def _our_row(
    name: str, size: int, made: Sequence[Made], first: Sequence[Made] = (), *, judge: bool = False
) -> list[str]:
    start = [f"{len(made or first)}", ms(_times(first).p50) if first else "–"]
    if not made:
        return [name, f"{size:,}", *start, "–", "–", "–", ""]
    times, cpu = _times(made), Times(tuple(each.cpu for each in made))
    goal = judged(times.p95, GOAL_S, "p95 ≤ 10 ms") if judge else ""
    return [name, f"{size:,}", *start, ms(times.p50), ms(times.p95), ms(cpu.p50), goal]


def _their_row(name: str, size: int, found: Theirs) -> list[str]:
    return [name, f"{size:,}", "–", ms(found.first.p50), ms(found.next.p50), ms(found.next.p95), "–", ""]
