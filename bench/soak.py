"""What one open desk costs after thousands of turns: open files, threads and memory must stay flat.

Rules, references and a vault are on; the window is small, so the conversation is compacted again and
again, and every tenth turn reads notes by tools. The model is `scripted:`.
"""

import gc
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench import corpus, peers
from bench.figure import Figure, cost, wrong
from bench.notes import Notes, write_notes
from bench.table import Times, ms, show
from bench.turn import apart
from recto.api.blocking import Desk, Talk, open_desk
from recto.search.embedder import LOCAL

TURNS, QUICK_TURNS, PER_SAMPLE = 2_000, 400, 500
NOTES, SOURCES = 60, 12
WINDOW = 6_000
USAGE = {"input": 4000, "output": 24}
TOOL_TURNS = 10
"""Every so many turns one calls tools."""
# After the first sample, which warms caches up, a thread more or less is chance; memory may grow by what a process
# that does the same work over and over gains by fragmentation.
MORE_FILES, MORE_THREADS, MORE_MEMORY = 4, 2, 1.10


@dataclass(frozen=True, slots=True)
class Sample:
    turn: int
    files: int
    threads: int
    memory: int
    """Resident, in bytes."""
    times: Times

    @property
    def row(self) -> list[str]:
        memory = f"{self.memory / 1e6:.0f}"
        return [f"{self.turn:,}", str(self.files), str(self.threads), memory, ms(self.times.p50), ms(self.times.p95)]


def main(quick: bool, count: int | None = None) -> None:
    peers.FOLDER.mkdir(exist_ok=True)
    turns = count or (QUICK_TURNS if quick else TURNS)
    with tempfile.TemporaryDirectory(dir=peers.FOLDER) as folder:
        samples = apart(soak, Path(folder), turns, max(1, min(PER_SAMPLE, turns // 4)))
    show(
        f"One desk over {turns:,} turns",
        ("turns", "open files", "threads", "memory MB", "turn p50 ms", "p95"),
        [sample.row for sample in samples],
        notes=_notes(samples),
    )


def small(home: Path) -> Iterator[Figure]:
    samples = soak(home / "words", 120, 40)
    yield cost("soak: a turn", samples[-1].times.p50)
    yield cost("soak: a turn, sources by meaning", soak(home / "meaning", 30, 15, LOCAL)[-1].times.p50)
    yield wrong("soak: resources that grow", sum(not is_flat for is_flat in _flat(samples).values()))


def _flat(samples: list[Sample]) -> dict[str, bool]:
    first, last = _compared(samples)
    return {
        "open files": last.files <= first.files + MORE_FILES,
        "threads": last.threads <= first.threads + MORE_THREADS,
        "memory": last.memory <= first.memory * MORE_MEMORY,
    }


def _compared(samples: list[Sample]) -> tuple[Sample, Sample]:
    return samples[min(1, len(samples) - 1)], samples[-1]


def _notes(samples: list[Sample]) -> tuple[str, ...]:
    first, _ = _compared(samples)
    said = (f"{name}: {'flat' if is_flat else 'GROWING'}" for name, is_flat in _flat(samples).items())
    return (f"since turn {first.turn:,}: {', '.join(said)}",)


def soak(folder: Path, turns: int, per_sample: int, embedder: str = "none") -> list[Sample]:
    """Takes the turns and a sample after every so many of them."""
    samples: list[Sample] = []
    with soaked_desk(folder, embedder) as ask:
        for start in range(0, turns, per_sample):
            numbers = range(start, min(start + per_sample, turns))
            times = Times(tuple(_timed(ask, number) for number in numbers))
            samples.append(Sample(numbers.stop, *open_resources(), times))
            print("  after", *samples[-1].row, file=sys.stderr, flush=True)  # the whole takes a while
    return samples


@contextmanager
def soaked_desk(folder: Path, embedder: str) -> Iterator[Callable[[int], Sequence[str]]]:
    """A desk with everything on; the function takes the turn of this number and gives its notes."""
    notes = write_notes(folder / "notes", NOTES)
    home = folder / "home"
    _write_sources(home / "agents" / "default")
    model = _write_script(home / "script.json", notes)
    settings = {"search.embedder": embedder, "tools.step_limit": 4}
    with open_desk(home=home, project=home, vault=notes.root, model=model, settings=settings) as desk:
        talk, speaker = desk.conversation(), corpus.Speaker(1)
        yield lambda number: _take(desk, talk, f"{speaker.message()} {_mention(notes, number)}", number)


def _take(desk: Desk, talk: Talk, said: str, number: int) -> Sequence[str]:
    if number % TOOL_TURNS == 0:  # the script begins anew with its round of tools
        desk.run(desk.engine.models.provider(talk.model).close())
    reply = talk.ask(said)
    assert reply.text, reply
    if number % TOOL_TURNS == 1:
        desk.search(said, limit=3)
    return reply.notes


def _timed(ask: Callable[[int], object], number: int) -> float:
    started = time.perf_counter()
    ask(number)
    return time.perf_counter() - started


def open_resources() -> tuple[int, int, int]:
    """Open files, threads and resident memory of this process."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return (
        len(os.listdir("/proc/self/fd")),
        len(os.listdir("/proc/self/task")),
        pages * os.sysconf("SC_PAGE_SIZE"),
    )


def _mention(notes: Notes, number: int) -> str:
    return f"[[{notes.paths[number % len(notes.paths)]}]]" if number % 3 == 0 else ""


def _write_sources(agent: Path) -> None:
    speaker = corpus.Speaker(2)
    for kind in ("rules", "references"):
        (agent / kind).mkdir(parents=True)
        for number in range(SOURCES):
            include = "always" if number < 2 else "agent"
            head = f"---\ndescription: {speaker.message()}\ninclude: {include}\n---\n"
            (agent / kind / f"{kind}-{number}.md").write_text(head + speaker.text(400), "utf-8")


def _write_script(path: Path, notes: Notes) -> str:
    calls = [{"name": "read_document", "arguments": {"path": path}} for path in notes.paths[:2]]
    reply = {"text": corpus.Speaker(3).message(), "usage": USAGE}
    summary = {"text": corpus.Speaker(4).message(), "when": "summary", "usage": USAGE}
    gist = {"text": "A note.", "when": "gist", "usage": USAGE}
    steps = [{"tool_calls": calls, "usage": USAGE}, reply, summary, gist]
    path.write_text(json.dumps({"limit": WINDOW, "steps": steps}), "utf-8")
    return f"scripted:{path}"
