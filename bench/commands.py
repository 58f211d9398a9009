"""Read commands on a large store beside the same commands on a store of one short conversation: whole processes.

Goal: on 1,000 conversations and a million messages (`--full`) every command takes at most 0.2 s more of the processor's
time: others may be at work on the machine. Otherwise a tenth of that is measured. The large store is made of copies of
one real conversation (`bench/large_store.py`), a million messages in five minutes; BENCH_STORE names a folder where it
is kept for the next run. Search goes by words alone: a million vectors would take hours to make, and `bench/search.py`
measures them.
"""

import os
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench import large_store, peers
from bench.figure import Figure, cost
from bench.table import Times, judged, ms, show

GOAL_S = 0.2
FULL_CONVERSATIONS, CONVERSATIONS, QUICK_CONVERSATIONS, SMALL_CONVERSATIONS = 1_000, 100, 20, 5
REPEATS = 10
RUNS = 3
KEPT = "BENCH_STORE"
READY = "ready"

# Not here: what reads or writes all of the store by its nature (store check and backup, request verify, export --all,
# sources export), and replay --at-once, which prints all.
COMMANDS = (
    "conversations list",
    "conversations list --json",
    "conversations list --hidden",
    "conversations list --trash",
    "conversations show",
    "conversations show --json",
    "conversations show --branches",
    "conversations show 1",
    "conversations search 'function argument'",
    "conversations search the",
    "conversations search --json 'function argument'",
    "conversations search -c 1 'function argument'",
    "conversations search --role user --since 2027-01-01 function",
    "context show",
    "context show --json",
    "context stats",
    "context stats --json",
    "context stats --by turn",
    "context whatif",
    "context summary",
    "context summary --all",
    "context summary --lost",
    "context strategy",
    "context cost",
    "context cost --all",
    "context cost --all --by model",
    "context cost --all --by conversation",
    "context cost --all --by purpose --json",
    "context export --format markdown -o export.md 1",
    "request show",
    "request show --json",
    "request diff",
    "request rebuild",
    "request verify {request}",
    "sources list",
    "sources stats",
    "sources stats --json",
    "sources stats --by month",
    "agent list",
    "agent show default",
    "vault status",
    "vault search 'function argument'",
    "vault links 'Note 1'",
    "vault backlinks 'Note 1'",
    "vault broken",
    "vault stats",
    "vault graph --used",
    "vault stats --by conversation",
    "vault stats --by month --json",
    "vault stats --unused",
    "vault suggest",
    "config show",
    "config show -c 1",
    "models list",
    "models show",
    "keys list",
)
FEW = ("conversations list", "conversations search 'function argument'", "context stats", "request show")


@dataclass(frozen=True, slots=True)
class Homes:
    """Two homes over one vault: one conversation, and as many as there are."""

    bare: Path
    full: Path
    messages: int

    def timed(self, home: Path, command: str) -> tuple[float, float]:
        """By the clock, and of the processor: others may be at work on the machine."""
        request = list(large_store.names(home))[1] if "{" in command else ""
        words = shlex.split(command.format(request=request))
        surroundings = peers.surroundings(RECTO_HOME=str(home), PYTHONPATH=str(peers.HERE.parent / "src"))
        started, before = time.perf_counter(), _of_children()
        done = subprocess.run(
            [sys.executable, "-m", "recto", *words], cwd=home, env=surroundings, capture_output=True, check=False
        )
        took = time.perf_counter() - started, _of_children() - before
        if done.returncode:
            raise SystemExit(f"recto {command} failed: {done.stderr.decode(errors='replace').strip()}")
        return took

    def warm_up(self, command: str) -> None:
        """A run on each that is not counted."""
        for home in (self.bare, self.full):
            self.timed(home, command)

    def pair(self, command: str, runs: int) -> "Pair":
        """The times on the bare store and on the full one, in turn."""
        spans = [(self.timed(self.bare, command), self.timed(self.full, command)) for _ in range(runs)]
        bare, full = zip(*spans, strict=True)
        return Pair(*(Times(tuple(each)) for side in (bare, full) for each in zip(*side, strict=True)))


@dataclass(frozen=True, slots=True)
class Pair:
    bare: Times
    bare_worked: Times
    full: Times
    full_worked: Times


def _of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main(quick: bool, full: bool = False) -> None:
    peers.compile_ours()
    conversations = FULL_CONVERSATIONS if full else QUICK_CONVERSATIONS if quick else CONVERSATIONS
    with _folder() as folder:
        homes = prepared(folder, conversations)
        found = dict(_measured(homes))
    show(
        f"Read commands on {homes.messages:,} messages, in ms ({RUNS} runs each, in turn)",
        ("recto", "one p50", "full p50", "p95", "more", "more of the processor", "goal"),
        [_row(command, times) for command, times in found.items()],
        notes=(f"whole processes; {homes.full.parent.name} holds both stores; search by words alone",),
    )


def _measured(homes: Homes) -> Iterator[tuple[str, Pair]]:
    """Tells each command on stderr as soon as it is measured: all of them take a quarter of an hour."""
    for number, command in enumerate(COMMANDS, 1):
        homes.warm_up(command)
        times = homes.pair(command, RUNS)
        more = times.full_worked.p50 - times.bare_worked.p50
        print(
            f"{number} of {len(COMMANDS)}: {command}, {more * 1000:+.0f} ms of the processor",
            file=sys.stderr,
            flush=True,
        )
        yield command, times


def small_prepared(home: Path) -> None:
    homes = prepared(home, SMALL_CONVERSATIONS)
    for command in FEW:
        homes.warm_up(command)


def small(home: Path) -> Iterator[Figure]:
    homes = prepared(home, SMALL_CONVERSATIONS)
    for command in FEW:
        times = homes.pair(command, 2)
        yield cost(f"commands: {command.replace(chr(39), '')}", times.full.p50, "one conversation", times.bare.p50)


def prepared(folder: Path, conversations: int) -> Homes:
    """Both stores, made unless they are in the folder already."""
    homes = folder / "bare", folder / f"full-{conversations}"
    ready = folder / f"{READY}-{conversations}"
    if not ready.exists():
        bare, full = homes
        if not bare.exists():
            large_store.make_home(bare, folder / "notes")
        if not full.exists():
            shutil.copytree(bare, full)
        ready.write_text(str(large_store.multiply(homes[1], conversations, REPEATS)), "utf-8")
    return Homes(*homes, messages=int(ready.read_text("utf-8")))


@contextmanager
def _folder() -> Iterator[Path]:
    if kept := os.environ.get(KEPT):
        Path(kept).mkdir(parents=True, exist_ok=True)
        yield Path(kept)
        return
    peers.FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=peers.FOLDER) as folder:
        yield Path(folder)


def _row(command: str, times: Pair) -> list[str]:
    bare, full = times.bare, times.full
    more, worked = full.p50 - bare.p50, times.full_worked.p50 - times.bare_worked.p50
    return [command, ms(bare.p50), ms(full.p50), ms(full.p95), ms(more), ms(worked), judged(worked, GOAL_S, "≤ 200")]
