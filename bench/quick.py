"""A small form of every bench in under three minutes, as ratios that can be held against those of the last time.

A time stands beside a peer's of the same run, or beside a yardstick's: what the machine is and does cancels out. A
quality stands for itself. `bench/last.json` keeps what was measured when a change was merged: `--save` writes it.
"""

import json
import math
import os
import platform
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from types import ModuleType

from bench import peers
from bench.figure import YARDSTICK, Figure, yardstick
from bench.table import show
from bench.turn import apart

LAST = Path(__file__).parent / "last.json"
DIGITS = 3
WORSE = 1.3
GOAL_S = 180
TIMED, UNTIMED, PREPARED = "small", "small_untimed", "small_prepared"
"""The functions of a bench. Each is given a folder: what `small_prepared` leaves there is what `small` finds."""
FORMS = {TIMED: "{}", UNTIMED: "{}, untimed", PREPARED: "{}, prepared"}
# How many benches run at the same time where nothing is timed: qualities, bytes, tokens, and what is prepared.
AT_ONCE = 2
# Begun first, so that no long one is left alone at the end.
LONGEST = (("cache", UNTIMED), ("scale", UNTIMED), ("commands", PREPARED), ("turn", PREPARED), ("valid", UNTIMED))


@dataclass(frozen=True, slots=True)
class Last:
    """The figures of an earlier run: ratios, and qualities as they are."""

    date: str
    python: str
    figures: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Change:
    shown: str
    is_worse: bool = False


def main(names: Sequence[str], *, save: bool, path: Path = LAST) -> None:
    peers.install()
    started, before = time.monotonic(), os.getloadavg()[0]
    # beside the project, not in a temporary folder that may be memory
    with tempfile.TemporaryDirectory(dir=peers.FOLDER) as folder:
        untimed = measure_untimed(names, Path(folder))
        figures = [figure for name in names for figure in (*measure(name, TIMED, Path(folder)), *untimed.get(name, ()))]
    took, load = time.monotonic() - started, f"load {before:.1f} before, {os.getloadavg()[0]:.1f} after"
    show_all(figures, read(path), f"{took:.0f} s in all (goal ≤ {GOAL_S} s on a quiet machine); {load}")
    if save:
        write(path, figures)


def measure_untimed(names: Sequence[str], folder: Path) -> dict[str, list[Figure]]:
    """What takes no time disturbs nobody: figures without a clock, and what timed ones need before they begin."""
    lenders = {name: _lender(name) for name in names if hasattr(_bench_of(name), PREPARED)}
    jobs = [*((name, UNTIMED) for name in names), *((lender, PREPARED) for lender in sorted({*lenders.values()}))]
    jobs.sort(key=lambda job: LONGEST.index(job) if job in LONGEST else len(LONGEST))
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = list(pool.map(lambda job: measure(job[0], job[1], folder), jobs))
    for name, lender in lenders.items():
        if name != lender:
            shutil.copytree(folder / lender, folder / name)
    return {name: figures for (name, form), figures in zip(jobs, found, strict=True) if form == UNTIMED}


def _lender(name: str) -> str:
    """Who prepares what this bench needs: benches that share a function share what it makes."""
    return str(getattr(_bench_of(name), PREPARED).__module__).removeprefix("bench.")


def _bench_of(name: str) -> ModuleType:
    return import_module(f"bench.{name}")


def measure(name: str, form: str, folder: Path) -> list[Figure]:
    """The figures of one form of a bench, made in a process of its own; beside a timed one nothing else runs, and the
    yardstick is taken before it and after it."""
    if not hasattr(_bench_of(name), form):
        return []
    before = yardstick() if form == TIMED else 0.0
    found, took = apart(_measured, name, form, folder)
    print(f"  {FORMS[form].format(name)}: {took:.0f} s", flush=True)
    return with_yardstick(found, (before + yardstick()) / 2) if form == TIMED else found


def _measured(name: str, form: str, folder: Path) -> tuple[list[Figure], float]:
    started = time.monotonic()
    # what was prepared is in the folder that the timed form gets
    home = folder / (f"{name}-untimed" if form == UNTIMED else name)
    home.mkdir(exist_ok=True)
    figures = list(getattr(_bench_of(name), form)(home) or ())
    return figures, time.monotonic() - started


def with_yardstick(figures: Sequence[Figure], seconds: float) -> list[Figure]:
    return [replace(each, reference=seconds * 1000) if each.of == YARDSTICK else each for each in figures]


# -- the last time


def rounded(value: float, digits: int = DIGITS) -> float:
    """Significant digits: more would be chance."""
    return round(value, digits - 1 - math.floor(math.log10(abs(value)))) if value else 0.0


def change(figure: Figure, last: float | None) -> Change:
    """Of a ratio how many times it is what it was; of a quality the difference."""
    now = rounded(figure.value)
    if last is None:
        return Change("new")
    if figure.is_quality:
        more = now - last
        worse = more < 0 if figure.more_is_better else more > 0
        return Change(f"{more:+.3g}" if more else "=", worse)
    times = now / last if last else math.inf
    return Change(f"{times:.2f}×", times > WORSE)


def read(path: Path) -> Last | None:
    if not path.is_file():
        return None
    found = json.loads(path.read_text("utf-8"))
    return Last(found["date"], found["python"], found["figures"])


def write(path: Path, figures: Sequence[Figure]) -> None:
    """What another run is held against; figures of benches that did not run this time stay."""
    before, ran = read(path), {_bench(each.name) for each in figures}
    kept = {name: value for name, value in before.figures.items() if _bench(name) not in ran} if before else {}
    told = {
        "date": datetime.now(UTC).date().isoformat(),
        "python": platform.python_version(),
        "figures": kept | {each.name: rounded(each.value) for each in figures},
    }
    path.write_text(json.dumps(told, indent=2, sort_keys=True, ensure_ascii=False) + "\n", "utf-8")


def _bench(figure: str) -> str:
    return figure.partition(":")[0]


# -- the table


def rows(figures: Sequence[Figure], last: Mapping[str, float]) -> list[list[str]]:
    return [_row(each, last.get(each.name)) for each in figures]


def _row(figure: Figure, last: float | None) -> list[str]:
    changed = change(figure, last)
    mark = ("FELL" if figure.is_quality else "WORSE") if changed.is_worse else ""
    reference = "–" if figure.is_quality else f"{_number(figure.reference)} ({figure.of})"
    sign = "" if figure.is_quality else "×"
    then = "–" if last is None else f"{_number(last)}{sign}"
    return [
        figure.name,
        f"{_number(figure.ours)} {figure.unit}",
        reference,
        f"{_number(figure.value)}{sign}",
        then,
        changed.shown,
        mark,
    ]


def _number(value: float) -> str:
    return f"{rounded(value):,.10g}"


def show_all(figures: Sequence[Figure], last: Last | None, note: str) -> None:
    known = last.figures if last else {}
    gone = sorted(set(known) - {each.name for each in figures})
    since = f"last: {last.date}, Python {last.python}" if last else f"there is no {LAST.name} yet: --save writes it"
    show(
        "Every bench in small",
        ("figure", "ours", "reference", "ratio", "last", "change", ""),
        rows(figures, known),
        notes=(
            f"WORSE: more than {WORSE} times the ratio of the last time; FELL: a quality that is not what it was",
            "yardstick: a fixed piece of work in Python, SQLite and zlib, measured before and after each bench",
            since,
            *([f"not measured this time: {', '.join(gone)}"] if gone else []),
            note,
        ),
    )
