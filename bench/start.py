"""Whole processes from start to end: `recto` beside simonw's `llm`, run in turn, bytecode compiled on both sides.

Goals: `recto --help` at most 0.1 times `llm --help`, `recto conversations list` at most 0.4 times `llm logs list`, and
`recto ask` with a scripted model at most 1.5 times `llm` with a model that answers at once. Then opening a desk on an
existing store, less a process that imports SQLAlchemy alone: at most 150 ms.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import copyfile

from bench import corpus, peers
from bench.figure import Figure, cost
from bench.table import Times, judged, ms, show
from recto.api.blocking import open_desk

CONVERSATIONS = 20


GOAL_OPEN_S = 0.150
QUESTION = "Is this on?"
INSTANT = "Name: llm-instant\nVersion: 1\nMetadata-Version: 2.1\n"


@dataclass(frozen=True, slots=True)
class Pair:
    """Two commands that do the like, and how much of the peer's time ours may take."""

    ours: tuple[str, ...]
    theirs: tuple[str, ...]
    goal: float


PAIRS = (
    Pair(("--help",), ("--help",), 0.1),
    Pair(("conversations", "list"), ("logs", "list"), 0.4),
    Pair(("ask", "--model", "scripted:script.json", QUESTION), ("--model", "instant", QUESTION), 1.5),
)
OPENED = (
    "from recto.api.blocking import open_desk\n"
    "open_desk(home='recto', project='.', model='scripted:script.json').close()"
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where processes are started: both stores, and the peer's version."""

    home: Path
    version: str = ""

    def timed(self, command: Sequence[str]) -> float:
        known = peers.surroundings(
            RECTO_HOME=str(self.home / "recto"),
            LLM_USER_PATH=str(self.home / "llm"),
            PYTHONPATH=str(self.home / "plugins"),
        )
        return _timed(command, self.home, known)

    def warm_up(self, *commands: Sequence[str]) -> None:
        for command in commands:
            self.timed(command)

    def in_turn(self, *commands: Sequence[str], runs: int) -> list[Times]:
        """One after the other, so that all have the same share of whatever else this machine does."""
        spans = [[self.timed(command) for command in commands] for _ in range(runs)]
        return [Times(times) for times in zip(*spans, strict=True)]


def main(quick: bool) -> None:
    peers.install()
    runs = 7 if quick else 25
    with tempfile.TemporaryDirectory(dir=peers.FOLDER) as folder:
        place = prepared(Path(folder))
        for pair in PAIRS:
            place.warm_up(*commands_of(pair))
        rows = [row for pair in PAIRS for row in _rows(pair, pair_times(place, pair, runs))]
        rows += _open_rows(*open_times(place, runs))
        bare = place.timed([sys.executable, "-c", ""])
    show(
        f"Whole processes, in ms ({runs} runs each, in turn)",
        ("", "p50", "p95", "of the peer", "goal"),
        rows,
        notes=(
            f"{CONVERSATIONS} conversations of one turn in each store; llm {place.version} wrote its own by log_to_db",
            "ask: a new conversation; both store the question and the reply",
            f"an empty Python process: {ms(bare)}",
        ),
    )


def small_prepared(home: Path) -> None:
    place = prepared(home)
    for pair in PAIRS:
        place.warm_up(*commands_of(pair))


def small(home: Path) -> Iterator[Figure]:
    place = Place(home)
    for pair, name in zip(PAIRS, ("--help", "conversations list", "ask"), strict=True):
        ours, theirs = pair_times(place, pair, 3)
        yield cost(f"start: {name}", ours.p50, "llm", theirs.p50)


def prepared(home: Path) -> Place:
    """The same conversations in both stores."""
    speaker = corpus.Speaker(3)
    turns = [[(speaker.message(), speaker.message())] for _ in range(CONVERSATIONS)]
    (home / "turns.json").write_text(json.dumps(turns), "utf-8")
    script = home / "script.json"
    script.write_text(json.dumps([{"text": reply} for [(_, reply)] in turns]), "utf-8")
    with open_desk(home=home / "recto", project=home, model=f"scripted:{script}") as desk:
        for [(said, _)] in turns:
            desk.conversation().ask(said)
    (home / "llm").mkdir()
    found = peers.ask("llm", home / "turns.json", home / "llm" / "logs.db", LLM_USER_PATH=str(home / "llm"))
    _register(home / "plugins")
    return Place(home, str(found["version"]))


def _register(plugins: Path) -> None:
    """A plugin as pip would install it, in a folder of its own on the peers' path."""
    told = plugins / "llm_instant-1.dist-info"
    told.mkdir(parents=True)
    (told / "METADATA").write_text(INSTANT, "utf-8")
    (told / "entry_points.txt").write_text("[llm]\ninstant = instant_model\n", "utf-8")
    copyfile(peers.HERE / "peer_instant.py", plugins / "instant_model.py")


def commands_of(pair: Pair) -> tuple[list[str], list[str]]:
    recto, llm = str(Path(sys.executable).parent / "recto"), str(peers.BIN / "llm")
    return [recto, *pair.ours], [llm, *pair.theirs]


def pair_times(place: Place, pair: Pair, runs: int) -> tuple[Times, Times]:
    ours, theirs = place.in_turn(*commands_of(pair), runs=runs)
    return ours, theirs


def open_times(place: Place, runs: int) -> tuple[Times, Times]:
    """A process that opens a desk and closes it, and one that imports SQLAlchemy alone."""
    commands = [sys.executable, "-c", OPENED], [sys.executable, "-c", "import sqlalchemy"]
    place.warm_up(*commands)
    opened, imported = place.in_turn(*commands, runs=runs)
    return opened, imported


def _rows(pair: Pair, times: tuple[Times, Times]) -> list[list[str]]:
    ours, theirs = times
    ratio = ours.p50 / theirs.p50
    goal = judged(ratio, pair.goal, f"≤ {pair.goal}×")
    return [
        [" ".join(("recto", *pair.ours)), ms(ours.p50), ms(ours.p95), f"{ratio:.2f}×", goal],
        [" ".join(("llm", *pair.theirs)), ms(theirs.p50), ms(theirs.p95), "", ""],
    ]


def _open_rows(opened: Times, imported: Times) -> list[list[str]]:
    beyond = opened.p50 - imported.p50
    goal = judged(beyond, GOAL_OPEN_S, "≤ 150 ms")
    return [
        ["a desk opened and closed", ms(opened.p50), ms(opened.p95), "", ""],
        ["import sqlalchemy", ms(imported.p50), ms(imported.p95), "", ""],
        ["  a desk opened, beyond that", ms(beyond), "", "", goal],
    ]


def _timed(command: Sequence[str], folder: Path, surroundings: Mapping[str, str]) -> float:
    started = time.perf_counter()
    done = subprocess.run(command, cwd=folder, env=surroundings, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    took = time.perf_counter() - started
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed: {done.stderr.decode(errors='replace').strip()}")
    return took
