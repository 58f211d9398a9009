"""Planning and building one request at a budget of 8k tokens, on histories of 1,000 to 100,000 messages.

Ours is `talk.window`: on a cold store (desk opened anew each time) and with the desk left open, after a first turn has
compacted. Goals: at most 10 ms p95 at 100,000 messages, and 1.5 times the figure at 1,000. Beside it the peers, for
the first request on the whole history and for the next, whose history is in memory and stored nowhere.
"""

import json
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bench import corpus, peers
from bench.table import Times, judged, ms, show
from bench.turn import GOAL_GROWTH, GOAL_S, QUICK_SIZES, SIZES, WARM_UP, Chat, apart, first_turn, import_history
from bench.wire import Limits
from recto.blocking import Talk, open_desk

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
# One before anything is compacted tells enough; it is no figure with a goal.
FIRST = 5


@dataclass(frozen=True, slots=True)
class Made:
    """How long one window took, and what of it this process really computed."""

    seconds: float
    cpu: float


BySize = dict[int, list[Made]]


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
        first = apart(cold_windows, chats, FIRST)
        for chat in chats.values():
            apart(first_turn, chat)
        cold, warm = apart(cold_windows, chats, runs), apart(warm_windows, chats, runs)
        theirs = {(peer, size): _peer(Path(folder) / f"{size}.json", size, *peer) for peer in PEERS for size in sizes}
    _show(first, cold, warm, theirs)


def cold_windows(chats: dict[int, Chat], runs: int) -> BySize:
    """The sizes in turn, so that all have the same share of whatever else this machine does."""
    _warm_up(next(iter(chats.values())))
    speaker, found = corpus.Speaker(1), {size: list[Made]() for size in chats}
    for said in (speaker.message() for _ in range(runs)):
        for size, chat in chats.items():
            with chat.open() as desk:
                found[size].append(_timed(desk.conversation(chat.conversation), said))
    return found


def warm_windows(chats: dict[int, Chat], runs: int) -> BySize:
    """With a turn before each, as in a chat: what is timed is never the same window twice."""
    speaker, found = corpus.Speaker(2), {size: list[Made]() for size in chats}
    with ExitStack() as stack:
        desks = {size: stack.enter_context(chat.open()) for size, chat in chats.items()}
        talks = {size: desks[size].conversation(chat.conversation) for size, chat in chats.items()}
        for said, then in ((speaker.message(), speaker.message()) for _ in range(runs)):
            for size, talk in talks.items():
                talk.ask(said)
                found[size].append(_timed(talk, then))
    return found


def _timed(talk: Talk, said: str) -> Made:
    started, computed = time.perf_counter(), time.process_time()
    talk.window(said)
    return Made(time.perf_counter() - started, time.process_time() - computed)


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


def _show(first: BySize, cold: BySize, warm: BySize, theirs: dict[tuple[tuple[str, str], int], Theirs]) -> None:
    *_, last = cold
    rows = [_our_row("recto, cold store", size, made, first[size]) for size, made in cold.items()]
    rows[-1][-1] = judged(_times(cold[last]).p95, GOAL_S, "p95 ≤ 10 ms")
    rows += [_our_row("recto, desk left open", size, made) for size, made in warm.items()]
    rows += [_their_row(", ".join(peer), size, found) for (peer, size), found in theirs.items()]
    show(
        f"One request at a budget of {LIMITS.most:,} tokens: plan and build, in ms",
        ("", "messages", "first p50", "next p50", "next p95", "CPU p50", "goal"),
        rows,
        notes=(
            _growth(cold),
            "first: on the whole history, with a compaction (ours only planned); next: those after it",
            "summaries come at once; the peers hold their messages in memory, and what they have cut is gone",
            ", ".join(sorted({found.version for found in theirs.values()})),
        ),
    )


def _times(made: Sequence[Made]) -> Times:
    return Times(tuple(each.seconds for each in made))


def _growth(cold: BySize) -> str:
    smallest, *_, largest = cold
    before, after = _times(cold[smallest]), _times(cold[largest])
    p50, p95 = after.p50 / before.p50, after.p95 / before.p95
    goal = judged(p50, GOAL_GROWTH, f"p50 ≤ {GOAL_GROWTH}×")
    return f"growth from {smallest:,} to {largest:,} messages, cold: p50 {p50:.2f}×, p95 {p95:.2f}× (goal {goal})"


def _our_row(name: str, size: int, made: Sequence[Made], first: Sequence[Made] = ()) -> list[str]:
    times, cpu = _times(made), Times(tuple(each.cpu for each in made))
    start = ms(_times(first).p50) if first else "–"
    return [name, f"{size:,}", start, ms(times.p50), ms(times.p95), ms(cpu.p50), ""]


def _their_row(name: str, size: int, found: Theirs) -> list[str]:
    return [name, f"{size:,}", ms(found.first.p50), ms(found.next.p50), ms(found.next.p95), "–", ""]
