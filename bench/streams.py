"""What it costs to store replies while they stream: 1,000 words at 50 a second, one stream and eight at once.

Rows and commits of deltas, the time that they take in the store's thread, bytes written, and how long a word was on the
screen before it was stored: the goal is a tenth of a second. Beside it a tick of a quarter of a second.
"""

import json
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from bench.figure import Figure, cost
from bench.table import Times, judged, ms, show
from recto.api.blocking import Desk, open_desk
from recto.events import TextDelta
from recto.turn import incoming_message
from recto.turn.incoming_message import OpenStreams

WORDS, QUICK_WORDS = 1000, 100
DELAY_S = 0.02
TICKS_S = (incoming_message.TICK_S, 0.25)
STREAMS = (1, 8)
GOAL_S = 0.1


@dataclass(slots=True)
class Costs:
    commits: int = 0
    rows: int = 0
    seconds: float = 0.0
    bytes: int = 0
    waits: list[float] = field(default_factory=list)


def main(quick: bool) -> None:
    words = QUICK_WORDS if quick else WORDS
    rows = []
    for tick_s in TICKS_S:
        for streams in STREAMS:
            costs = _measure(tick_s, streams, words)
            waits = Times(tuple(costs.waits))
            worst = max(costs.waits)
            rows.append(
                (
                    f"every {ms(tick_s)} ms, {streams} at once",
                    *(f"{figure:,}" for figure in (costs.commits, costs.rows)),
                    ms(costs.seconds),
                    f"{costs.bytes / 1000:,.0f}",
                    *(ms(each) for each in (waits.p50, waits.p95, worst)),
                    judged(worst, GOAL_S, f"{ms(GOAL_S)} ms"),
                )
            )
    columns = ("tick", "commits", "rows", "ms in all", "kB written", "p50 ms", "p95 ms", "worst ms", "shown to stored")
    show(f"Storing {words:,} words of each reply as they come", columns, rows)


def small(home: Path) -> Iterator[Figure]:
    words, streams = 60, 4
    costs = _measure(TICKS_S[0], streams, words)
    yield cost("streams: a commit", costs.seconds / costs.commits)
    yield Figure("streams: bytes written", costs.bytes / 1000, "kB", "the text", streams * words * len("word ") / 1000)


def _measure(tick_s: float, streams: int, words: int) -> Costs:
    incoming_message.TICK_S = tick_s  # the bench alone changes it
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        home = Path(folder)
        (home / "script.json").write_text(json.dumps([{"text": "word " * words, "delay_s": DELAY_S}]))
        with open_desk(home=home, project=home, model=f"scripted:{home / 'script.json'}") as desk:
            return _streamed(desk, streams)


def _streamed(desk: Desk, streams: int) -> Costs:
    costs, shown = Costs(), dict[str, list[float]]()
    storing, open_streams = OpenStreams._store, desk.engine.streams
    grow = desk.store.tree.grow
    grown: list[tuple[str, int]] = []

    def note(message: str, steps: list[list[str]]) -> None:
        grow(message, steps)
        grown.append((message, sum(step[1].count("word") for step in steps)))

    def timed() -> None:
        began, before = time.perf_counter(), _written()
        storing(open_streams)
        if grown:
            ended = time.monotonic()
            costs.commits, costs.rows = costs.commits + 1, costs.rows + len(grown)
            costs.seconds, costs.bytes = costs.seconds + time.perf_counter() - began, costs.bytes + _written() - before
            for message, count in grown:
                costs.waits += [ended - at for at in shown.get(message, ())[:count]]
                del shown.setdefault(message, [])[:count]
            grown.clear()

    desk.store.tree.grow = note  # type: ignore[method-assign]
    open_streams._store = timed  # type: ignore[method-assign]
    threads = [threading.Thread(target=_listen, args=(desk, shown)) for _ in range(streams)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return costs


def _listen(desk: Desk, shown: dict[str, list[float]]) -> None:
    talk = desk.conversation()
    with closing(talk.stream("Go on.")) as events:
        for event in events:
            if isinstance(event, TextDelta):
                shown.setdefault(talk.head or "", []).append(time.monotonic())


def _written() -> int:
    """Bytes that this process has handed to the system."""
    fields = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(fields["wchar"])
