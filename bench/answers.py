"""From the start of `recto ask` to the answer on the screen: the twelve questions of the example vault.

Each in a process of its own, with the embedded model, over notes that are indexed. What is waited for is the quote that
answers. Goal: every question is answered by a quote, at most 2 s after the start for nineteen of twenty.
"""

import os
import pty
import re
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench import peers
from bench.figure import Figure, cost, share
from bench.table import Times, judged, ms, show
from recto.api.blocking import open_desk
from recto.providers.embedded import missing_parts

VAULT = Path(__file__).parents[1] / "examples" / "vault"
QUESTIONS = {
    "What is in this vault?": "This vault is about Sorrel.",
    "How much did we plan to spend in 2026, and how much did we spend?": "We spent £21,891 of £22,800 in 2026.",
    "Why did timber cost more than planned in 2025?": "because there was more rot than the survey had found.",
    "Which engine did we choose in the end, and why not the electric motor?": "diesel",
    "How often did the launch date change?": "launch on Saturday 13 June 2026.",
    "What is the serial number of the engine?": "N328-40716",
    "How many planks did the surveyor want to replace, and how many were replaced?": "Sixteen planks",
    "At what wind speed do we take the second reef?": "from 24 knots",
    "Who must not eat shellfish?": "[[Oskar Lindqvist]]: He is allergic to shellfish.",
    "What does the yard charge for rent in 2026?": "2026: £325",
    "Which fuse protects the bilge pump?": "Fuse: 5 · Circuit: Bilge pump",
    "How many hours did each of us work?": "Ned 612 · Maren 455 · Oskar 318",
}
"""Question -> what must stand on the screen."""
MODEL = "qwen2.5-coder-1.5b"
GOAL_S, PATIENCE_S = 2.0, 60.0
_CONTROL = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|\][^\x1b\x07]*(?:\x1b\\|\x07)?)")


def main(quick: bool) -> None:
    peers.FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=peers.FOLDER) as folder:
        if missing := missing_parts(MODEL):
            print(f"answers were not measured: {missing}\n")
            return
        prepare(Path(folder))
        times = [
            seconds_to_quote(Path(folder), each) for each in list(QUESTIONS)[:: 4 if quick else 1] * (1 if quick else 2)
        ]
    seen = [each for each in times if each is not None]
    waited = Times(tuple(seen) or (PATIENCE_S,))
    row = ("recto ask, embedded model", f"{len(seen)} of {len(times)}", ms(waited.p50), ms(waited.p95))
    show(
        "From the start of the process to the quote that answers, in ms",
        ("", "answered", "p50", "p95", "goal"),
        [(*row, judged(waited.p95, GOAL_S, f"≤ {ms(GOAL_S)}"))],
    )


def small_prepared(home: Path) -> None:
    if not missing_parts(MODEL):
        prepare(home)


def small(home: Path) -> Iterator[Figure]:
    if missing_parts(MODEL):
        return
    times = [seconds_to_quote(home, each) for each in list(QUESTIONS)[::8]]
    seen = [each for each in times if each is not None]
    yield share("answers: quotes on the screen", len(seen) / len(times))
    if seen:
        yield cost("answers: start to quote", Times(tuple(seen)).p50)


def prepare(home: Path) -> None:
    """An index with all vectors, and files that the system has read before."""
    with open_desk(home=home, project=home, vault=VAULT) as desk:
        assert desk.vault_search is not None
        desk.vault_search.fill(vectors=True)
    seconds_to_quote(home, next(iter(QUESTIONS)))


def seconds_to_quote(home: Path, question: str) -> float | None:
    """None where the quote does not come."""
    wanted, started = _squeezed(QUESTIONS[question]), time.monotonic()
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "recto", "ask", "--vault", str(VAULT), question]
    surroundings = peers.surroundings(RECTO_HOME=str(home), COLUMNS="100", TERM="xterm-256color")
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=home, env=surroundings) as process:
        os.close(theirs)
        try:
            return _seen_after(ours, wanted, started)
        finally:
            process.kill()
            os.close(ours)


def _seen_after(screen: int, wanted: str, started: float) -> float | None:
    shown = b""
    while (left := started + PATIENCE_S - time.monotonic()) > 0 and select.select([screen], [], [], left)[0]:
        try:
            shown += os.read(screen, 65536)
        except OSError:  # the process has ended
            return None
        if wanted in _squeezed(_CONTROL.sub("", shown.decode(errors="replace"))):
            return time.monotonic() - started
    return None


def _squeezed(text: str) -> str:
    """Without white space: a line may be broken anywhere."""
    return "".join(text.split())
