"""Whole processes from start to end: `recto` beside simonw's `llm`, run in turn, bytecode compiled on both sides.

Goals: `recto --help` at most 0.2 times `llm --help`, `recto conversations list` at most 0.5 times `llm logs list`.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench import corpus, peers
from bench.table import Times, judged, ms, show
from recto.blocking import open_desk

CONVERSATIONS = 20


@dataclass(frozen=True, slots=True)
class Pair:
    """Two commands that do the like, and how much of the peer's time ours may take."""

    ours: tuple[str, ...]
    theirs: tuple[str, ...]
    goal: float


PAIRS = (
    Pair(("--help",), ("--help",), 0.2),
    Pair(("conversations", "list"), ("logs", "list"), 0.5),
)


def main(quick: bool) -> None:
    peers.install()
    runs = 7 if quick else 25
    with tempfile.TemporaryDirectory(dir=peers.FOLDER) as folder:
        home = Path(folder)
        version = _prepare(home)
        surroundings = peers.surroundings(RECTO_HOME=str(home / "recto"), LLM_USER_PATH=str(home / "llm"))
        rows = [row for pair in PAIRS for row in _rows(pair, runs, home, surroundings)]
        bare = _timed([sys.executable, "-c", ""], home, surroundings)
    show(
        f"Whole processes, in ms ({runs} runs each, in turn)",
        ("", "p50", "p95", "of the peer", "goal"),
        rows,
        notes=(
            f"{CONVERSATIONS} conversations of one turn in each store; llm {version} wrote its own by log_to_db",
            f"an empty Python process: {ms(bare)}",
        ),
    )


def _prepare(home: Path) -> str:
    """The same conversations in both stores; gives the peer's version."""
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
    return str(found["version"])


def _rows(pair: Pair, runs: int, home: Path, surroundings: Mapping[str, str]) -> list[list[str]]:
    recto = [str(Path(sys.executable).parent / "recto"), *pair.ours]
    llm = [str(peers.BIN / "llm"), *pair.theirs]
    for command in (recto, llm):
        _timed(command, home, surroundings)
    spans = [(_timed(recto, home, surroundings), _timed(llm, home, surroundings)) for _ in range(runs)]
    ours, theirs = (Times(times) for times in zip(*spans, strict=True))
    ratio = ours.p50 / theirs.p50
    goal = judged(ratio, pair.goal, f"≤ {pair.goal}×")
    return [
        [" ".join(("recto", *pair.ours)), ms(ours.p50), ms(ours.p95), f"{ratio:.2f}×", goal],
        [" ".join(("llm", *pair.theirs)), ms(theirs.p50), ms(theirs.p95), "", ""],
    ]


def _timed(command: Sequence[str], folder: Path, surroundings: Mapping[str, str]) -> float:
    started = time.perf_counter()
    done = subprocess.run(command, cwd=folder, env=surroundings, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    took = time.perf_counter() - started
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed: {done.stderr.decode(errors='replace').strip()}")
    return took
